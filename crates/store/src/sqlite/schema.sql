-- Every table is keyed by namespace, and by run where it belongs to one. What the API refuses, the CHECKs refuse too.
CREATE TABLE namespace (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 64)
) STRICT;
INSERT INTO namespace (id, name) VALUES (1, 'default');

-- Made once; tokens that nobody else can guess are made with it.
CREATE TABLE secret (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    value BLOB NOT NULL CHECK (length(value) = 32)
) STRICT;
INSERT INTO secret (id, value) VALUES (1, randomblob(32));

CREATE TABLE lease (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    node  TEXT NOT NULL CHECK (length(CAST(node AS BLOB)) BETWEEN 1 AND 128),
    until INTEGER NOT NULL
) STRICT;
CREATE INDEX lease_until ON lease (until);

-- What somebody offered to drive, and when last.
CREATE TABLE served (
    workflow TEXT NOT NULL CHECK (workflow <> ''),
    version  TEXT NOT NULL CHECK (version <> ''),
    at       INTEGER NOT NULL,
    PRIMARY KEY (workflow, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX served_at ON served (at);

-- Small rows: whatever is rewritten by every commit must not carry payloads. An input over 1 KiB is in run_input.
CREATE TABLE run (
    row               INTEGER PRIMARY KEY,
    ns                INTEGER NOT NULL,
    id                TEXT NOT NULL CHECK (length(CAST(id AS BLOB)) BETWEEN 1 AND 255),
    workflow          TEXT NOT NULL CHECK (workflow <> ''),
    version           TEXT NOT NULL CHECK (version <> ''),
    status            INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7),
    generation        INTEGER NOT NULL CHECK (generation >= 0),
    next              INTEGER NOT NULL CHECK (next >= 0),
    fence             INTEGER NOT NULL CHECK (fence >= 0),
    owner             INTEGER,
    claim             INTEGER,
    ready_at          INTEGER,
    priority          INTEGER NOT NULL,
    tries             INTEGER NOT NULL CHECK (tries >= 0),
    parent            TEXT,
    parent_generation INTEGER,
    parent_key        TEXT,
    detached          INTEGER NOT NULL,
    root              TEXT,
    created_at        INTEGER NOT NULL,
    finished_at       INTEGER,
    note              TEXT,
    parked_at         INTEGER,
    deleted_at        INTEGER,
    inbox_next        INTEGER NOT NULL CHECK (inbox_next >= 0),
    signals           INTEGER NOT NULL CHECK (signals >= 0),
    answered          INTEGER NOT NULL CHECK (answered >= 0),
    side              INTEGER NOT NULL,
    next_place        INTEGER,
    controlled        INTEGER NOT NULL DEFAULT 0,
    input             BLOB CHECK (length(input) <= 16777216),
    UNIQUE (ns, id)
) STRICT;
-- Namespaces take turns: what is ready lines up by priority and namespace.
CREATE INDEX run_ready ON run (priority DESC, ns, ready_at, row) WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3;
CREATE INDEX run_owned ON run (owner, row) WHERE owner IS NOT NULL;
CREATE INDEX run_woken ON run (owner, row) WHERE owner IS NOT NULL AND ready_at IS NOT NULL;
-- Lists, the newest first.
CREATE INDEX run_newest ON run (ns, row);
CREATE INDEX run_live ON run (ns, row) WHERE status < 5;
CREATE INDEX run_spoilt ON run (ns, row) WHERE status > 5;
CREATE INDEX run_ripe ON run (finished_at, row) WHERE root IS NULL AND finished_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX run_tree ON run (ns, root) WHERE root IS NOT NULL;
CREATE INDEX run_child ON run (ns, parent) WHERE parent IS NOT NULL;
CREATE INDEX run_deleted ON run (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE run_input (
    ns         INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    generation INTEGER NOT NULL CHECK (generation >= 0),
    input      BLOB NOT NULL CHECK (length(input) <= 16777216),
    PRIMARY KEY (ns, run, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    ns         INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    generation INTEGER NOT NULL CHECK (generation >= 0),
    idx        INTEGER NOT NULL CHECK (idx >= 0),
    kind       INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    key        TEXT CHECK (key <> ''),
    at         INTEGER NOT NULL,
    meta       BLOB CHECK (length(meta) <= 16777216),
    payload    BLOB CHECK (length(payload) <= 16777216),
    -- A run's row is unique in the file. With the namespace before it, every comparison would begin with a tie.
    PRIMARY KEY (run, generation, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
    ns       INTEGER NOT NULL,
    run      INTEGER NOT NULL,
    id       INTEGER NOT NULL CHECK (id >= 0),
    kind     INTEGER NOT NULL,
    key      TEXT CHECK (key <> ''),
    name     TEXT,
    delivery TEXT CHECK (delivery <> ''),
    at       INTEGER NOT NULL,
    meta     BLOB CHECK (length(meta) <= 16777216),
    payload  BLOB CHECK (length(payload) <= 16777216),
    PRIMARY KEY (ns, run, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE delivered (
    ns  INTEGER NOT NULL,
    run INTEGER NOT NULL,
    id  TEXT NOT NULL CHECK (id <> ''),
    PRIMARY KEY (ns, run, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE wait (
    ns        INTEGER NOT NULL,
    run       INTEGER NOT NULL,
    key       TEXT NOT NULL CHECK (key <> ''),
    kind      INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
    state     INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    name      TEXT,
    token     TEXT,
    heartbeat INTEGER,
    assignee  TEXT,
    meta      BLOB CHECK (length(meta) <= 16777216),
    since     INTEGER NOT NULL,
    answer    INTEGER,
    PRIMARY KEY (ns, run, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE timer (
    ns   INTEGER NOT NULL,
    run  INTEGER NOT NULL,
    key  TEXT NOT NULL CHECK (key <> ''),
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 3),
    due  INTEGER NOT NULL,
    PRIMARY KEY (ns, run, key, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX timer_due ON timer (due, run, key, kind);

CREATE TABLE task (
    ns           INTEGER NOT NULL,
    id           TEXT NOT NULL CHECK (length(CAST(id AS BLOB)) BETWEEN 1 AND 512),
    run          TEXT,
    key          TEXT,
    origin       TEXT,
    name         TEXT NOT NULL CHECK (name <> ''),
    queue        TEXT NOT NULL CHECK (queue <> ''),
    priority     INTEGER NOT NULL,
    args         BLOB NOT NULL CHECK (length(args) <= 16777216),
    state        INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    attempt      INTEGER NOT NULL CHECK (attempt >= 0),
    token        INTEGER NOT NULL CHECK (token >= 0),
    worker       TEXT,
    claim        INTEGER,
    available_at INTEGER NOT NULL,
    place        INTEGER NOT NULL,
    until        INTEGER,
    began        INTEGER,
    lapse        INTEGER CHECK (lapse BETWEEN 0 AND 1),
    lapsed       INTEGER CHECK (lapsed BETWEEN 0 AND 1),
    died_at      INTEGER,
    cancelled    INTEGER NOT NULL,
    meta         BLOB,
    note         BLOB,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_ready ON task (queue, priority DESC, ns, place, id) WHERE state = 0;
-- Delayed and claimed ones, by when they are to be made ready.
CREATE INDEX task_until ON task (queue, until) WHERE until IS NOT NULL;
CREATE INDEX task_claim ON task (worker, claim) WHERE state = 1;
-- A run's tasks of its first generation mostly are where their names say: `run/0/key`. Only others need an index to be found.
CREATE INDEX task_awaited ON task (ns, run, key) WHERE run IS NOT NULL AND id <> run || '/0/' || key;
CREATE INDEX task_died ON task (died_at) WHERE state = 2;
CREATE INDEX task_grave ON task (ns, origin) WHERE state = 2 AND origin IS NOT NULL;

-- Who works, and when it was seen last. Those that work for all namespaces have the number 0.
CREATE TABLE worker (
    ns      INTEGER NOT NULL,
    id      TEXT NOT NULL CHECK (length(CAST(id AS BLOB)) BETWEEN 1 AND 128),
    about   BLOB NOT NULL CHECK (length(about) <= 16777216),
    started INTEGER NOT NULL,
    seen    INTEGER NOT NULL,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX worker_seen ON worker (seen);

-- What was replied under a key, so that whoever asks again is told the same.
CREATE TABLE reply (
    ns    INTEGER NOT NULL,
    key   TEXT NOT NULL CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 255),
    at    INTEGER NOT NULL,
    reply BLOB NOT NULL CHECK (length(reply) <= 16777216),
    PRIMARY KEY (ns, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX reply_at ON reply (at);

-- Workflows that are text, every version. The current one of a workflow has the largest revision.
CREATE TABLE definition (
    ns         INTEGER NOT NULL,
    workflow   TEXT NOT NULL CHECK (length(CAST(workflow AS BLOB)) BETWEEN 1 AND 128),
    version    TEXT NOT NULL CHECK (length(CAST(version AS BLOB)) BETWEEN 1 AND 128),
    style      INTEGER NOT NULL CHECK (style BETWEEN 0 AND 1),
    file       TEXT NOT NULL CHECK (length(CAST(file AS BLOB)) <= 8192),
    defined_at INTEGER NOT NULL,
    revision   INTEGER NOT NULL UNIQUE CHECK (revision > 0),
    -- The last column, so that listings need not read it.
    text       BLOB NOT NULL CHECK (length(text) <= 16777216),
    UNIQUE (ns, workflow, version)
) STRICT;
CREATE INDEX definition_latest ON definition (ns, workflow, revision);

-- The largest revision that was ever given.
CREATE TABLE defining (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO defining (id, revision) VALUES (1, 0);

CREATE TABLE snapshot (
    ns         INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    idx        INTEGER NOT NULL,
    definition TEXT NOT NULL,
    data       BLOB NOT NULL CHECK (length(data) <= 16777216),
    PRIMARY KEY (ns, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE attribute (
    ns    INTEGER NOT NULL,
    run   INTEGER NOT NULL,
    name  TEXT NOT NULL CHECK (name <> ''),
    value TEXT NOT NULL,
    PRIMARY KEY (ns, run, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX attribute_value ON attribute (ns, name, value, run);

CREATE TABLE schedule (
    ns      INTEGER NOT NULL,
    id      TEXT NOT NULL CHECK (length(CAST(id AS BLOB)) BETWEEN 1 AND 255),
    revision INTEGER NOT NULL,
    spec    BLOB NOT NULL CHECK (length(spec) <= 16777216),
    state   BLOB NOT NULL CHECK (length(state) <= 16777216),
    next_at INTEGER,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_due ON schedule (next_at, id) WHERE next_at IS NOT NULL;

-- Runs that flow control holds back. Those that were looked at and found no room stand in the line of one gate.
CREATE TABLE held (
    ns         INTEGER NOT NULL,
    run        INTEGER PRIMARY KEY,
    not_before INTEGER NOT NULL,
    priority   INTEGER NOT NULL,
    place      INTEGER,
    gate       TEXT CHECK (length(CAST(gate AS BLOB)) BETWEEN 3 AND 257),
    first      TEXT,
    terms      TEXT NOT NULL
) STRICT;
CREATE INDEX held_fresh ON held (not_before, run) WHERE gate IS NULL;
CREATE INDEX held_first ON held (ns, first) WHERE place IS NOT NULL;
CREATE INDEX held_line ON held (ns, gate, priority DESC, place, run) WHERE gate IS NOT NULL;

-- One limit key of one kind, and how much of it is used. Only admitting writes here.
CREATE TABLE gate (
    ns      INTEGER NOT NULL,
    name    TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 3 AND 257),
    bound   TEXT NOT NULL,
    used    INTEGER NOT NULL CHECK (used >= 0),
    tat     INTEGER,
    passed  INTEGER NOT NULL,
    look_at INTEGER,
    PRIMARY KEY (ns, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX gate_due ON gate (look_at) WHERE look_at IS NOT NULL;

-- Who uses a gate, from its admission to its end.
CREATE TABLE slot (
    ns   INTEGER NOT NULL,
    run  INTEGER NOT NULL,
    gate TEXT NOT NULL CHECK (gate <> ''),
    done INTEGER NOT NULL,
    PRIMARY KEY (run, gate)
) STRICT, WITHOUT ROWID;
CREATE INDEX slot_done ON slot (run, gate) WHERE done;

-- How far those who share a gate are.
CREATE TABLE flow (
    ns     INTEGER NOT NULL,
    gate   TEXT NOT NULL CHECK (gate <> ''),
    key    TEXT NOT NULL,
    finish INTEGER NOT NULL,
    PRIMARY KEY (ns, gate, key)
) STRICT, WITHOUT ROWID;

-- Whose a start key is: an idempotency window (0), a singleton (1), a debounce (2).
CREATE TABLE start_key (
    ns    INTEGER NOT NULL,
    kind  INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
    key   TEXT NOT NULL CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 255),
    run   TEXT NOT NULL CHECK (run <> ''),
    until INTEGER NOT NULL,
    PRIMARY KEY (ns, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX start_key_run ON start_key (ns, run) WHERE kind > 0;
CREATE INDEX start_key_until ON start_key (until) WHERE kind = 0;
