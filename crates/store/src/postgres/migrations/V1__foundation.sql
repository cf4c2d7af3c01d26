-- Every table is keyed by namespace, and by run where it belongs to one, so that the schema shards.
-- Ids compare by byte (COLLATE "C"): every store lists in the same order.
-- The CHECKs refuse what the API refuses: an empty or oversize id, an oversize payload, an unknown code. On
-- the run and its events the numbers share one: every commit pays for each.
-- Times are milliseconds since the Unix epoch.
--
-- Plans are made once, maybe while a table is empty, and then every index looks as good as any other. So each statement
-- on a hot path finds exactly one index it could use at all: further indexes are partial, with a predicate the
-- statement does not imply, or have expressions (`run + 0`) where a column would match.

CREATE TABLE namespace (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 64)
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
    name text COLLATE "C" PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 128)
);

CREATE TABLE lease (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node text COLLATE "C" NOT NULL CHECK (octet_length(node) BETWEEN 1 AND 128),
    until bigint NOT NULL,
    -- Lapsed long ago and owns nothing: claims need not look for its runs any more.
    drained boolean NOT NULL DEFAULT false
);
CREATE INDEX lease_node ON lease (node);
CREATE INDEX lease_open ON lease ((id + 0)) WHERE NOT drained;

CREATE SEQUENCE run_seq;

-- The run. What only its journal's growth changes (next, tries and the counters) is in no index and no index's
-- predicate, so that a commit in the middle of a turn stays a heap-only update.
CREATE TABLE run (
    ns int NOT NULL,
    seq bigint NOT NULL,
    id text COLLATE "C" NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 255),
    workflow text COLLATE "C" NOT NULL CHECK (octet_length(workflow) BETWEEN 1 AND 128),
    version text COLLATE "C" NOT NULL CHECK (octet_length(version) BETWEEN 1 AND 128),
    status smallint NOT NULL CHECK (status BETWEEN 0 AND 7),
    generation bigint NOT NULL,
    next bigint NOT NULL,
    fence bigint NOT NULL,
    owner bigint,
    claim bigint,
    ready_at bigint,
    priority smallint NOT NULL,
    tries int NOT NULL,
    parent text COLLATE "C" CHECK (octet_length(parent) BETWEEN 1 AND 255),
    parent_generation bigint,
    parent_key text COLLATE "C" CHECK (octet_length(parent_key) BETWEEN 1 AND 1024),
    parent_detached boolean,
    root text COLLATE "C" CHECK (octet_length(root) BETWEEN 1 AND 255),
    created_at bigint NOT NULL,
    finished_at bigint,
    note text,
    deleted_at bigint,
    inbox_next bigint NOT NULL,
    signals int NOT NULL,
    answered int NOT NULL,
    side boolean NOT NULL,
    input bytea NOT NULL CHECK (octet_length(input) <= 16777216),
    PRIMARY KEY (seq),
    UNIQUE (ns, id),
    CONSTRAINT run_numbers_check CHECK (generation >= 0 AND next >= 0 AND fence >= 0 AND tries >= 0 AND inbox_next >= 0
        AND signals >= 0 AND answered >= 0 AND (parent_generation >= 0) IS NOT FALSE)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX run_claimable ON run (priority DESC, ready_at, seq)
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
    input bytea NOT NULL CHECK (octet_length(input) <= 16777216),
    PRIMARY KEY (ns, run, generation)
);

CREATE TABLE event (
    ns int NOT NULL,
    run bigint NOT NULL,
    generation bigint NOT NULL,
    idx bigint NOT NULL,
    kind int NOT NULL,
    version int NOT NULL,
    key text COLLATE "C" CHECK (octet_length(key) BETWEEN 1 AND 1024),
    at bigint NOT NULL,
    meta bytea CHECK (octet_length(meta) <= 16777216),
    payload bytea CHECK (octet_length(payload) <= 16777216),
    PRIMARY KEY (ns, run, generation, idx),
    CONSTRAINT event_numbers_check CHECK (generation >= 0 AND idx >= 0 AND kind BETWEEN 0 AND 65535
        AND version BETWEEN 0 AND 65535)
);

CREATE TABLE inbox (
    ns int NOT NULL,
    run bigint NOT NULL,
    id bigint NOT NULL CHECK (id >= 0),
    kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 9),
    key text COLLATE "C" CHECK (octet_length(key) BETWEEN 1 AND 1024),
    name text COLLATE "C",
    delivery text COLLATE "C" CHECK (octet_length(delivery) BETWEEN 1 AND 255),
    at bigint NOT NULL,
    meta bytea CHECK (octet_length(meta) <= 16777216),
    payload bytea CHECK (octet_length(payload) <= 16777216),
    PRIMARY KEY (ns, run, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

CREATE TABLE delivered (
    ns int NOT NULL,
    run bigint NOT NULL,
    id text COLLATE "C" NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 255),
    PRIMARY KEY (ns, run, id)
);

CREATE TABLE wait (
    ns int NOT NULL,
    run bigint NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 1024),
    kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 2),
    state smallint NOT NULL CHECK (state BETWEEN 0 AND 3),
    name text COLLATE "C" CHECK (octet_length(name) BETWEEN 1 AND 255),
    token text,
    heartbeat bigint CHECK (heartbeat >= 0),
    assignee text,
    meta bytea CHECK (octet_length(meta) <= 16777216),
    since bigint NOT NULL,
    answer bigint CHECK (answer >= 0),
    PRIMARY KEY (ns, run, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

CREATE TABLE timer (
    ns int NOT NULL,
    run bigint NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 1024),
    kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 3),
    due bigint NOT NULL,
    PRIMARY KEY (ns, run, key, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX timer_due ON timer (due, (run + 0));

CREATE TABLE task (
    ns int NOT NULL,
    id text COLLATE "C" NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 512),
    run text COLLATE "C" CHECK (octet_length(run) BETWEEN 1 AND 255),
    key text COLLATE "C" CHECK (octet_length(key) BETWEEN 1 AND 1024),
    name text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 128),
    queue text COLLATE "C" NOT NULL CHECK (octet_length(queue) BETWEEN 1 AND 128),
    priority smallint NOT NULL,
    args bytea NOT NULL CHECK (octet_length(args) <= 16777216),
    state smallint NOT NULL CHECK (state BETWEEN 0 AND 2),
    attempt int NOT NULL CHECK (attempt >= 0),
    token bigint NOT NULL CHECK (token >= 0),
    worker text COLLATE "C" CHECK (octet_length(worker) BETWEEN 1 AND 128),
    claim bigint,
    available_at bigint NOT NULL,
    until bigint,
    cancelled boolean NOT NULL,
    meta bytea CHECK (octet_length(meta) <= 16777216),
    note bytea CHECK (octet_length(note) <= 16777216),
    PRIMARY KEY (ns, id),
    CHECK (state <> 1 OR until IS NOT NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX task_ready ON task (queue, priority DESC, available_at, id) WHERE state = 0;
CREATE INDEX task_silent ON task (until) WHERE state = 1;
CREATE INDEX task_held ON task (worker, claim) WHERE claim IS NOT NULL;
CREATE INDEX task_awaited ON task (run, key) WHERE run IS NOT NULL;

CREATE TABLE snapshot (
    ns int NOT NULL,
    run bigint NOT NULL,
    generation bigint NOT NULL CHECK (generation >= 0),
    idx bigint NOT NULL CHECK (idx >= 0),
    definition text NOT NULL,
    data bytea NOT NULL CHECK (octet_length(data) <= 16777216),
    PRIMARY KEY (ns, run)
);

CREATE TABLE attribute (
    ns int NOT NULL,
    run bigint NOT NULL,
    name text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (ns, run, name)
);
-- A long value does not fit into an index: its beginning finds it, the whole decides.
CREATE INDEX attribute_value ON attribute (left(value, 128), (name || ''), (run + 0));

CREATE TABLE schedule (
    ns int NOT NULL,
    id text COLLATE "C" NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 255),
    spec bytea NOT NULL CHECK (octet_length(spec) <= 16777216),
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
