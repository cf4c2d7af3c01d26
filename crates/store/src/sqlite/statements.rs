//! The longer statements, as constants.

use super::decode::{event_columns, inbox_columns, run_columns, task_columns, wait_columns};

pub(super) const RUN_BY_ID: &str = concat!("SELECT ", run_columns!(), " FROM run WHERE ns = ?1 AND id = ?2");

/// A run that a plain commit may advance: the conditions of the shared logic, and nothing about the row is damaged.
pub(super) const ADVANCING: &str = "SELECT row, generation FROM run WHERE ns = ?1 AND id = ?2 AND fence = ?3 AND next = ?4 \
     AND status = 1 AND owner IS NOT NULL AND deleted_at IS NULL AND workflow <> '' AND version <> ''";

/// The same, where the run's row is known, or believed to be; and its advance, which names no indexed column, so that no
/// index is touched.
pub(super) const ADVANCE: &str = "UPDATE run SET next = ?7, tries = 0 WHERE row = ?1 AND ns = ?2 AND id = ?3 \
     AND generation = ?4 AND fence = ?5 AND next = ?6 \
     AND status = 1 AND owner IS NOT NULL AND deleted_at IS NULL AND workflow <> '' AND version <> ''";

pub(super) const INSERT_RUN: &str = "INSERT INTO run (ns, id, workflow, version, status, generation, next, fence, owner, \
     claim, ready_at, priority, tries, parent, parent_generation, parent_key, detached, root, created_at, inbox_next, \
     signals, answered, side, controlled, input) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, \
     ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)";

pub(super) const UPDATE_RUN: &str = "UPDATE run SET version = ?2, status = ?3, generation = ?4, next = ?5, fence = ?6, \
     owner = ?7, claim = ?8, ready_at = ?9, tries = ?10, finished_at = ?11, note = ?12, deleted_at = ?13, \
     inbox_next = ?14, signals = ?15, answered = ?16, side = ?17, next_place = ?18, parked_at = ?19 WHERE row = ?1";

/// The same without what indexes are made from, so that none is touched.
pub(super) const UPDATE_RUN_IN_PLACE: &str = "UPDATE run SET version = ?2, generation = ?3, next = ?4, fence = ?5, claim = ?6, \
     tries = ?7, note = ?8, inbox_next = ?9, signals = ?10, answered = ?11, side = ?12, next_place = ?13 WHERE row = ?1";

/// What a claim holds already.
pub(super) const HELD: &str =
    concat!("SELECT ", run_columns!(), " FROM run WHERE owner = ?1 AND claim = ?2 ORDER BY row LIMIT ?3");

/// The highest priority of a ready run, below one.
pub(super) const READY_PRIORITY: &str = "SELECT priority FROM run WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3 \
     AND priority < ?1 ORDER BY priority DESC LIMIT 1";

/// The next namespace with a ready run of a priority.
pub(super) const READY_NAMESPACE: &str = "SELECT ns FROM run INDEXED BY run_ready WHERE ready_at IS NOT NULL AND owner IS NULL \
     AND status < 3 AND priority = ?1 AND ns > ?2 ORDER BY ns LIMIT 1";

/// Ready runs of a priority and namespace: the partial index in its own order, so that neither waiting nor finished rows are
/// visited.
pub(super) const READY: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run INDEXED BY run_ready WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3 AND priority = ?1 AND ns = ?2 \
     ORDER BY ready_at, row"
);

/// Runs whose owner's lease is over.
pub(super) const ORPHANED: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run WHERE owner IN (SELECT id FROM lease WHERE until <= ?1) ORDER BY owner, row"
);

pub(super) const ANNOUNCE: &str = "INSERT INTO served (workflow, version, at) VALUES (?1, ?2, ?3) \
     ON CONFLICT (workflow, version) DO UPDATE SET at = excluded.at";

pub(super) const SERVED: &str = "SELECT workflow, version FROM served WHERE at > ?1";

pub(super) const FORGET_SERVED: &str = "DELETE FROM served WHERE (workflow, version) IN \
     (SELECT workflow, version FROM served WHERE at <= ?1 ORDER BY at LIMIT ?2)";

pub(super) const WOKEN: &str =
    "SELECT ns, id FROM run WHERE owner = ?1 AND owner IS NOT NULL AND ready_at IS NOT NULL ORDER BY row LIMIT ?2";

pub(super) const PARK_CORRUPT: &str =
    "UPDATE run SET status = 4, note = ?2, parked_at = ?3, owner = NULL, claim = NULL WHERE row = ?1";

pub(super) const INSERT_EVENT: &str = "INSERT INTO event (ns, run, generation, idx, kind, version, key, at, meta, payload) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

pub(super) const EVENT_AT: &str =
    concat!("SELECT ", event_columns!(), " FROM event WHERE ns = ?1 AND run = ?2 AND generation = ?3 AND idx = ?4");

/// A journal from an index on: one range scan.
pub(super) const EVENTS_FROM: &str = concat!(
    "SELECT idx, ",
    event_columns!(),
    " FROM event WHERE ns = ?1 AND run = ?2 AND generation = ?3 AND idx >= ?4 ORDER BY idx LIMIT ?5"
);

pub(super) const INSERT_INBOX: &str = "INSERT INTO inbox (ns, run, id, kind, key, name, delivery, at, meta, payload) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

pub(super) const INBOX: &str =
    concat!("SELECT ", inbox_columns!(), " FROM inbox WHERE ns = ?1 AND run = ?2 ORDER BY id");

/// The same, of a run by its name.
pub(super) const INBOX_OF: &str = concat!(
    "SELECT ",
    inbox_columns!(),
    " FROM inbox WHERE ns = ?1 AND run = (SELECT row FROM run WHERE ns = ?1 AND id = ?2) ORDER BY id"
);

pub(super) const PUT_WAIT: &str = "INSERT OR REPLACE INTO wait (ns, run, key, kind, state, name, token, heartbeat, \
     assignee, meta, since, answer) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

pub(super) const WAIT_AT: &str =
    concat!("SELECT ", wait_columns!(), " FROM wait WHERE ns = ?1 AND run = ?2 AND key = ?3");

pub(super) const WAITS_IN_STATE: &str =
    concat!("SELECT ", wait_columns!(), " FROM wait WHERE ns = ?1 AND run = ?2 AND state = ?3 ORDER BY key");

/// Due timers: the index in its own order.
pub(super) const TIMERS_DUE: &str =
    "SELECT run, key, kind, due FROM timer WHERE due <= ?1 ORDER BY due, run, key, kind LIMIT ?2";

pub(super) const PUT_TASK: &str = concat!(
    "INSERT OR REPLACE INTO task (",
    task_columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
     ?22, ?23, ?24)"
);

/// Leaves those indexes alone that it does not concern.
pub(super) const HAND_OUT: &str = "UPDATE task SET state = ?3, attempt = ?4, token = ?5, worker = ?6, claim = ?7, until = ?8, \
     began = ?9, lapse = ?10, lapsed = ?11 WHERE ns = ?1 AND id = ?2";

pub(super) const TASK_AT: &str = concat!("SELECT ", task_columns!(), " FROM task WHERE ns = ?1 AND id = ?2");

/// The task of an operation where its name says that it is; most are there.
pub(super) const TASK_OF: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task WHERE ns = ?1 AND id = ?2 || '/0/' || ?3 AND run = ?2 AND key = ?3"
);

/// One that has another name. A partial index is not chosen by itself where the primary key begins with the same column.
pub(super) const TASK_OF_ELSEWHERE: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task INDEXED BY task_awaited WHERE ns = ?1 AND run = ?2 AND key = ?3 AND run IS NOT NULL \
     AND id <> run || '/0/' || key"
);

/// The tasks of a run that are where their names say, and the others. `0` follows `/`, so this is all that begins with `run/0/`.
pub(super) const DETACH_TASKS: [&str; 2] = [
    "UPDATE task SET run = NULL, key = NULL WHERE ns = ?1 AND id >= ?2 || '/0/' AND id < ?2 || '/00' AND run = ?2",
    "UPDATE task INDEXED BY task_awaited SET run = NULL, key = NULL WHERE ns = ?1 AND run = ?2 AND run IS NOT NULL \
     AND id <> run || '/0/' || key",
];

pub(super) const TASKS_HELD: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task WHERE state = 1 AND worker = ?1 AND claim = ?2 AND until > ?3 ORDER BY priority DESC, place, id"
);

/// Delayed tasks of one queue whose time has come, and those whose worker fell silent.
pub(super) const TASKS_ENDED: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task WHERE until IS NOT NULL AND queue = ?1 AND until <= ?2 ORDER BY until, ns, id LIMIT ?3"
);

/// The highest priority of a ready task of a queue, below one.
pub(super) const TASK_PRIORITY: &str =
    "SELECT priority FROM task WHERE state = 0 AND queue = ?1 AND priority < ?2 ORDER BY priority DESC LIMIT 1";

/// The next namespace with a ready task of a queue and priority.
pub(super) const TASK_NAMESPACE: &str = "SELECT ns FROM task INDEXED BY task_ready \
     WHERE state = 0 AND queue = ?1 AND priority = ?2 AND ns > ?3 ORDER BY ns LIMIT 1";

/// Ready tasks of a queue, priority and namespace, in the index's own order.
pub(super) const TASKS_READY: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task INDEXED BY task_ready WHERE state = 0 AND queue = ?1 AND priority = ?2 AND ns = ?3 ORDER BY place, id"
);

/// Sets a task aside that cannot be read.
pub(super) const BURY_TASK: &str = "UPDATE task SET state = 2, worker = NULL, claim = NULL, until = NULL, died_at = ?3 \
     WHERE ns = ?1 AND id = ?2";

/// Tasks that died before, the longest dead first.
pub(super) const BURY_OLD: &str = "DELETE FROM task WHERE (ns, id) IN \
     (SELECT ns, id FROM task WHERE state = 2 AND died_at <= ?1 ORDER BY died_at LIMIT ?2)";

/// Dead tasks of a deleted run.
pub(super) const BURY_OF: &str = "DELETE FROM task WHERE ns = ?1 AND id IN (SELECT id FROM task INDEXED BY task_grave \
     WHERE state = 2 AND origin IS NOT NULL AND ns = ?1 AND origin = ?2 LIMIT ?3)";

pub(super) const PUT_SNAPSHOT: &str = "INSERT OR REPLACE INTO snapshot (ns, run, generation, idx, definition, data) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

pub(super) const TASKS_OF: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task WHERE ns = ?1 AND id >= ?2 || '/0/' AND id < ?2 || '/00' AND run = ?2 AND id = run || '/0/' || key \
     UNION ALL SELECT ",
    task_columns!(),
    " FROM task INDEXED BY task_awaited WHERE ns = ?1 AND run = ?2 AND run IS NOT NULL AND id <> run || '/0/' || key"
);

pub(super) const CHILDREN_OF: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run INDEXED BY run_child WHERE ns = ?1 AND parent = ?2 AND parent IS NOT NULL AND status < 5"
);

/// Tops of trees that ended long enough ago, with nothing in them that did not.
pub(super) const RIPE: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run WHERE root IS NULL AND finished_at IS NOT NULL AND deleted_at IS NULL AND finished_at <= ?1 \
     AND NOT EXISTS (SELECT 1 FROM run member INDEXED BY run_tree WHERE member.ns = run.ns AND member.root = run.id \
     AND member.root IS NOT NULL AND member.deleted_at IS NULL \
     AND (member.finished_at IS NULL OR member.finished_at > ?1)) \
     ORDER BY finished_at, row LIMIT ?2"
);

/// Members of deleted trees that are not deleted yet.
pub(super) const DOOMED_MEMBERS: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run WHERE row IN (SELECT member.row FROM run top JOIN run member \
     ON member.ns = top.ns AND member.root = top.id AND member.root IS NOT NULL \
     WHERE top.deleted_at IS NOT NULL AND member.deleted_at IS NULL LIMIT ?1)"
);

/// Deleted runs that still have rows.
pub(super) const DOOMED: &str =
    concat!("SELECT ", run_columns!(), " FROM run WHERE deleted_at IS NOT NULL AND side = 1 LIMIT ?1");

pub(super) const LIVE_MEMBER: &str = "SELECT id FROM run INDEXED BY run_tree WHERE ns = ?1 AND root = ?2 AND root IS NOT NULL \
     AND deleted_at IS NULL AND status < 5 ORDER BY id LIMIT 1";

pub(super) const FORGET: &str = "DELETE FROM run WHERE row IN (SELECT top.row FROM run top \
     WHERE top.deleted_at IS NOT NULL AND top.deleted_at <= ?1 AND top.side = 0 \
     AND NOT EXISTS (SELECT 1 FROM run member INDEXED BY run_tree WHERE member.ns = top.ns AND member.root = top.id \
     AND member.root IS NOT NULL AND member.deleted_at IS NULL) LIMIT ?2)";

pub(super) const SCHEDULES: &str =
    "SELECT ns, id, revision, spec, state, next_at FROM schedule WHERE ns = ?1 ORDER BY id";
pub(super) const SCHEDULE: &str =
    "SELECT ns, id, revision, spec, state, next_at FROM schedule WHERE ns = ?1 AND id = ?2";
pub(super) const SCHEDULES_DUE: &str = "SELECT s.ns, s.id, s.revision, s.spec, s.state, s.next_at \
     FROM schedule s INDEXED BY schedule_due JOIN namespace n ON n.id = s.ns \
     WHERE s.next_at IS NOT NULL AND s.next_at <= ?1 ORDER BY s.next_at, n.name, s.id LIMIT ?2";
pub(super) const SCHEDULES_DUE_AFTER: &str = "SELECT s.ns, s.id, s.revision, s.spec, s.state, s.next_at \
     FROM schedule s INDEXED BY schedule_due JOIN namespace n ON n.id = s.ns \
     WHERE s.next_at IS NOT NULL AND s.next_at BETWEEN ?3 AND ?1 AND (s.next_at, n.name, s.id) > (?3, ?4, ?5) \
     ORDER BY s.next_at, n.name, s.id LIMIT ?2";
/// When the first schedule is to be looked at that is not due.
pub(super) const SCHEDULE_NEXT: &str =
    "SELECT min(next_at) FROM schedule INDEXED BY schedule_due WHERE next_at IS NOT NULL AND next_at > ?1";
