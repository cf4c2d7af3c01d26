-- Every table is keyed by namespace, and by run where it belongs to one, so that the schema shards.
-- Ids compare by byte (COLLATE "C"): every store lists in the same order.
-- The types refuse what the API refuses: an empty or oversize id, an oversize payload, an unknown code. They are domains
-- and not CHECKs of a table, because the server reads every CHECK of a table anew for each statement that writes to it,
-- whatever the statement changes; a domain costs only where a value is given.
-- Times are milliseconds since the Unix epoch.
--
-- Plans are made once, maybe while a table is empty, and then every index looks as good as any other. So each statement
-- on a hot path finds exactly one index it could use at all: further indexes are partial, with a predicate the
-- statement does not imply, or have expressions (`run + 0`) where a column would match.

CREATE DOMAIN text_64 AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 64);
CREATE DOMAIN text_128 AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 128);
CREATE DOMAIN text_255 AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 255);
CREATE DOMAIN text_512 AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 512);
CREATE DOMAIN text_1024 AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 1024);
CREATE DOMAIN file_name AS text COLLATE "C" CHECK (octet_length(VALUE) <= 8192);
CREATE DOMAIN payload AS bytea CHECK (octet_length(VALUE) <= 16777216);
CREATE DOMAIN whole AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN small_whole AS int CHECK (VALUE >= 0);
CREATE DOMAIN code_1 AS smallint CHECK (VALUE BETWEEN 0 AND 1);
CREATE DOMAIN code_2 AS smallint CHECK (VALUE BETWEEN 0 AND 2);
CREATE DOMAIN code_3 AS smallint CHECK (VALUE BETWEEN 0 AND 3);
CREATE DOMAIN code_7 AS smallint CHECK (VALUE BETWEEN 0 AND 7);
CREATE DOMAIN code_10 AS smallint CHECK (VALUE BETWEEN 0 AND 10);
CREATE DOMAIN code_65535 AS int CHECK (VALUE BETWEEN 0 AND 65535);

CREATE TABLE namespace (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text_64 NOT NULL UNIQUE
);
INSERT INTO namespace (name) VALUES ('default');

-- Made once; tokens that nobody else can guess are made with it. A random UUID has 122 random bits.
CREATE TABLE secret (
    id int PRIMARY KEY CHECK (id = 1),
    value bytea NOT NULL CHECK (octet_length(value) = 32)
);
INSERT INTO secret (id, value)
    VALUES (1, decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

-- One row per node name: registering locks it, so that of two registrations at once one ends the other's lease.
CREATE TABLE node (
    name text_128 PRIMARY KEY
);

CREATE TABLE lease (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node text_128 NOT NULL,
    until bigint NOT NULL,
    -- Lapsed long ago and owns nothing: claims need not look for its runs any more.
    drained boolean NOT NULL DEFAULT false
);
CREATE INDEX lease_node ON lease (node);
CREATE INDEX lease_open ON lease ((id + 0)) WHERE NOT drained;

-- What somebody offered to drive, and when last.
CREATE TABLE served (
    workflow text_128 NOT NULL,
    version text_128 NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (workflow, version)
);
CREATE INDEX served_at ON served (at);

CREATE SEQUENCE run_seq;

-- The run. What only its journal's growth changes (next, tries and the counters) is in no index and no index's
-- predicate, so that a commit in the middle of a turn stays a heap-only update.
CREATE TABLE run (
    ns int NOT NULL,
    seq bigint NOT NULL,
    id text_255 NOT NULL,
    workflow text_128 NOT NULL,
    version text_128 NOT NULL,
    status code_7 NOT NULL,
    generation whole NOT NULL,
    next whole NOT NULL,
    fence whole NOT NULL,
    owner bigint,
    claim bigint,
    ready_at bigint,
    priority smallint NOT NULL,
    tries small_whole NOT NULL,
    parent text_255,
    parent_generation whole,
    parent_key text_1024,
    parent_detached boolean,
    root text_255,
    created_at bigint NOT NULL,
    finished_at bigint,
    note text,
    deleted_at bigint,
    inbox_next whole NOT NULL,
    signals small_whole NOT NULL,
    answered small_whole NOT NULL,
    side boolean NOT NULL,
    next_place bigint,
    input payload NOT NULL,
    -- Started under flow control: its end has something to give back.
    controlled boolean NOT NULL DEFAULT false,
    -- Since when it is parked.
    parked_at bigint,
    PRIMARY KEY (seq),
    UNIQUE (ns, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
-- Namespaces take turns: what is ready lines up by priority and namespace.
CREATE INDEX run_claimable ON run ((- priority::int), (ns + 0), ready_at, seq)
    WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3;
CREATE INDEX run_owned ON run (owner, claim, seq) WHERE owner IS NOT NULL;
CREATE INDEX run_woken ON run (owner, seq) WHERE owner IS NOT NULL AND ready_at IS NOT NULL;
CREATE INDEX run_live ON run (ns, seq) WHERE status < 5;
CREATE INDEX run_lost ON run (ns, seq) WHERE status >= 6;
CREATE INDEX run_ripe ON run (finished_at, seq) WHERE root IS NULL AND finished_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX run_member ON run (root, id) WHERE root IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX run_child ON run (parent, seq) WHERE parent IS NOT NULL;
CREATE INDEX run_doomed ON run (deleted_at, seq) WHERE deleted_at IS NOT NULL AND side;
CREATE INDEX run_tombstone ON run (deleted_at, seq) WHERE deleted_at IS NOT NULL AND NOT side;

-- Inputs of later generations; the first one's is in the run.
CREATE TABLE run_input (
    ns int NOT NULL,
    run bigint NOT NULL,
    generation bigint NOT NULL CHECK (generation > 0),
    input payload NOT NULL,
    PRIMARY KEY (ns, run, generation)
);

CREATE TABLE event (
    ns int NOT NULL,
    run bigint NOT NULL,
    generation whole NOT NULL,
    idx whole NOT NULL,
    kind code_65535 NOT NULL,
    version code_65535 NOT NULL,
    key text_1024,
    at bigint NOT NULL,
    meta payload,
    payload payload,
    PRIMARY KEY (ns, run, generation, idx)
);

CREATE TABLE inbox (
    ns int NOT NULL,
    run bigint NOT NULL,
    id whole NOT NULL,
    kind code_10 NOT NULL,
    key text_1024,
    name text COLLATE "C",
    delivery text_255,
    at bigint NOT NULL,
    meta payload,
    payload payload,
    PRIMARY KEY (ns, run, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

CREATE TABLE delivered (
    ns int NOT NULL,
    run bigint NOT NULL,
    id text_255 NOT NULL,
    PRIMARY KEY (ns, run, id)
);

CREATE TABLE wait (
    ns int NOT NULL,
    run bigint NOT NULL,
    key text_1024 NOT NULL,
    kind code_2 NOT NULL,
    state code_3 NOT NULL,
    name text_255,
    token text,
    heartbeat whole,
    assignee text,
    meta payload,
    since bigint NOT NULL,
    answer whole,
    PRIMARY KEY (ns, run, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

CREATE TABLE timer (
    ns int NOT NULL,
    run bigint NOT NULL,
    key text_1024 NOT NULL,
    kind code_3 NOT NULL,
    due bigint NOT NULL,
    PRIMARY KEY (ns, run, key, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX timer_due ON timer (due, (run + 0));

CREATE TABLE task (
    ns int NOT NULL,
    id text_512 NOT NULL,
    run text_255,
    key text_1024,
    name text_128 NOT NULL,
    queue text_128 NOT NULL,
    priority smallint NOT NULL,
    args payload NOT NULL,
    state code_3 NOT NULL,
    attempt small_whole NOT NULL,
    token whole NOT NULL,
    worker text_128,
    claim bigint,
    available_at bigint NOT NULL,
    until bigint,
    cancelled boolean NOT NULL,
    meta payload,
    note payload,
    origin text_255,
    place bigint NOT NULL,
    died_at bigint,
    began bigint,
    lapse code_3,
    lapsed code_3,
    PRIMARY KEY (ns, id),
    CHECK ((state IN (1, 3)) = (until IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX task_ready ON task (queue, (- priority::int), (ns + 0), place, id) WHERE state = 0;
-- Delayed and claimed ones, by when they are to be made ready.
CREATE INDEX task_until ON task (queue, until) WHERE until IS NOT NULL;
CREATE INDEX task_held ON task (worker, claim) WHERE worker IS NOT NULL;
CREATE INDEX task_awaited ON task (run, key) WHERE run IS NOT NULL;
CREATE INDEX task_died ON task (died_at) WHERE state = 2;
CREATE INDEX task_grave ON task (origin) WHERE state = 2 AND origin IS NOT NULL;

-- Who works, and when it was seen last. Those that work for all namespaces have the number 0.
CREATE TABLE worker (
    ns int NOT NULL,
    id text_128 NOT NULL,
    about payload NOT NULL,
    started bigint NOT NULL,
    seen bigint NOT NULL,
    PRIMARY KEY (ns, id)
) WITH (fillfactor = 80);
CREATE INDEX worker_seen ON worker (seen);

-- What was replied under a key, so that whoever asks again is told the same.
CREATE TABLE reply (
    ns int NOT NULL,
    key text_255 NOT NULL,
    at bigint NOT NULL,
    reply payload NOT NULL,
    PRIMARY KEY (ns, key)
);
CREATE INDEX reply_at ON reply (at);

-- Workflows that are text, every version. The current one of a workflow has the largest revision.
CREATE TABLE definition (
    ns int NOT NULL,
    workflow text_128 NOT NULL,
    version text_128 NOT NULL,
    style code_1 NOT NULL,
    file file_name NOT NULL,
    defined_at bigint NOT NULL,
    revision whole NOT NULL UNIQUE,
    text payload NOT NULL,
    PRIMARY KEY (ns, workflow, version)
);
CREATE INDEX definition_latest ON definition ((ns + 0), workflow, (revision + 0));

-- The largest revision that was ever given. Whoever defines or forgets holds this row: revisions are seen in their order.
CREATE TABLE defining (
    id int PRIMARY KEY CHECK (id = 1),
    revision whole NOT NULL
);
INSERT INTO defining (id, revision) VALUES (1, 0);

CREATE TABLE snapshot (
    ns int NOT NULL,
    run bigint NOT NULL,
    generation whole NOT NULL,
    idx whole NOT NULL,
    definition text NOT NULL,
    data payload NOT NULL,
    PRIMARY KEY (ns, run)
);

CREATE TABLE attribute (
    ns int NOT NULL,
    run bigint NOT NULL,
    name text_64 NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (ns, run, name)
);
-- A long value does not fit into an index: its beginning finds it, the whole decides.
CREATE INDEX attribute_value ON attribute (left(value, 128), (name || ''), (run + 0));

CREATE TABLE schedule (
    ns int NOT NULL,
    id text_255 NOT NULL,
    revision bigint NOT NULL,
    spec payload NOT NULL,
    state payload NOT NULL,
    next_at bigint,
    PRIMARY KEY (ns, id)
);
CREATE INDEX schedule_due ON schedule (next_at) WHERE next_at IS NOT NULL;

-- What became of a transaction whose reply may be lost. `at` is always the server's own clock.
CREATE TABLE txn (
    id uuid PRIMARY KEY,
    applied boolean NOT NULL,
    at bigint NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
);
CREATE INDEX txn_at ON txn (at);

CREATE DOMAIN gate_name AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 3 AND 257);

-- Whoever admits holds this row: nobody else does at the same time.
CREATE TABLE admission (
    id int PRIMARY KEY CHECK (id = 1)
);
INSERT INTO admission (id) VALUES (1);

-- Runs that flow control holds back. Those that were looked at and found no room stand in the line of one gate.
CREATE TABLE held (
    ns int NOT NULL,
    run bigint PRIMARY KEY,
    not_before bigint NOT NULL,
    priority smallint NOT NULL,
    place bigint,
    gate gate_name,
    first gate_name,
    terms text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX held_fresh ON held (not_before, (run + 0)) WHERE gate IS NULL;
CREATE INDEX held_first ON held (first, (ns + 0)) WHERE place IS NOT NULL;
CREATE INDEX held_line ON held (gate, (ns + 0), priority DESC, place, (run + 0)) WHERE gate IS NOT NULL;

-- One limit key of one kind, and how much of it is used. Only whoever admits writes here.
CREATE TABLE gate (
    ns int NOT NULL,
    name gate_name NOT NULL,
    bound text NOT NULL,
    used small_whole NOT NULL,
    tat bigint,
    passed bigint NOT NULL,
    look_at bigint,
    PRIMARY KEY (ns, name)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX gate_due ON gate (look_at) WHERE look_at IS NOT NULL;

-- Who uses a gate, from its admission to its end.
CREATE TABLE slot (
    ns int NOT NULL,
    run bigint NOT NULL,
    gate gate_name NOT NULL,
    done boolean NOT NULL,
    PRIMARY KEY (run, gate)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX slot_done ON slot ((run + 0), (gate || '')) WHERE done;

-- How far those who share a gate are.
CREATE TABLE flow (
    ns int NOT NULL,
    gate gate_name NOT NULL,
    key text COLLATE "C" NOT NULL,
    finish bigint NOT NULL,
    PRIMARY KEY (ns, gate, key)
);

-- Whose a start key is: an idempotency window (0), a singleton (1), a debounce (2).
CREATE TABLE start_key (
    ns int NOT NULL,
    kind code_2 NOT NULL,
    key text_255 NOT NULL,
    run text_255 NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (ns, kind, key)
);
CREATE INDEX start_key_run ON start_key (run, (ns + 0)) WHERE kind > 0;
CREATE INDEX start_key_until ON start_key (until) WHERE kind = 0;
