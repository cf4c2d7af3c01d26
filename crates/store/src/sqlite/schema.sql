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
    deleted_at        INTEGER,
    inbox_next        INTEGER NOT NULL CHECK (inbox_next >= 0),
    signals           INTEGER NOT NULL CHECK (signals >= 0),
    answered          INTEGER NOT NULL CHECK (answered >= 0),
    side              INTEGER NOT NULL,
    input             BLOB CHECK (length(input) <= 16777216),
    UNIQUE (ns, id)
) STRICT;
CREATE INDEX run_ready ON run (priority DESC, ready_at, row) WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3;
CREATE INDEX run_owned ON run (owner, row) WHERE owner IS NOT NULL;
CREATE INDEX run_woken ON run (owner, row) WHERE owner IS NOT NULL AND ready_at IS NOT NULL;
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
    name         TEXT NOT NULL CHECK (name <> ''),
    queue        TEXT NOT NULL CHECK (queue <> ''),
    priority     INTEGER NOT NULL,
    args         BLOB NOT NULL CHECK (length(args) <= 16777216),
    state        INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2),
    attempt      INTEGER NOT NULL CHECK (attempt >= 0),
    token        INTEGER NOT NULL CHECK (token >= 0),
    worker       TEXT,
    claim        INTEGER,
    available_at INTEGER NOT NULL,
    until        INTEGER,
    cancelled    INTEGER NOT NULL,
    meta         BLOB,
    note         BLOB,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_ready ON task (queue, priority DESC, available_at, id) WHERE state = 0;
CREATE INDEX task_held ON task (queue, until) WHERE state = 1;
CREATE INDEX task_claim ON task (worker, claim) WHERE state = 1;
CREATE INDEX task_awaited ON task (ns, run, key) WHERE run IS NOT NULL;

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
    spec    BLOB NOT NULL CHECK (length(spec) <= 16777216),
    next_at INTEGER,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_due ON schedule (next_at, id) WHERE next_at IS NOT NULL;
