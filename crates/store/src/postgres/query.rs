//! Questions people and tools ask.

use outlast_core::commit::Status;
use outlast_core::id::{Namespace, RunKey, ScheduleId};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::Core;
use super::decode::{self, Fields, number, run_columns, task_columns, wait_columns};
use super::failure::Failure;
use super::session::{Session, Step};
use crate::api::{Awaited, DueCursor, DueSchedules, EXCERPT_BYTES_MAX, Excerpt, RunView, Schedule};
use crate::error::StoreError;
use crate::logic;
use crate::rows::RunRow;

const RUN: &str = concat!("SELECT ", run_columns!(), " FROM run r WHERE r.ns = $1 AND r.id = $2");

const TIMERS: &str = "SELECT key, kind, due FROM timer WHERE ns = $1 AND run = $2 ORDER BY key, kind";
const WAITS: &str = concat!(
    "SELECT ",
    wait_columns!(),
    " FROM wait w WHERE w.ns = $1 AND w.run = $2 AND w.state IN (1, 2) ORDER BY w.key"
);
const TASKS: &str =
    concat!("SELECT ", task_columns!(), " FROM task t WHERE t.run = $2 AND t.ns + 0 = $1 ORDER BY t.id");
const CHILDREN: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run r WHERE r.parent = $2 AND r.ns + 0 = $1 AND r.status + 0 < 5 ORDER BY r.id"
);

const EXCERPT: &str = "SELECT kind, version, key, at, meta, payload FROM \
     (SELECT idx, kind, version, key, at, meta, payload, \
         sum(coalesce(octet_length(meta), 0) + coalesce(octet_length(payload), 0)) \
             OVER (ORDER BY idx ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
      FROM event WHERE ns = $1 AND run = $2 AND generation = $3 AND idx >= $4 ORDER BY idx LIMIT $5) page \
     WHERE before IS NULL OR before < $6 ORDER BY idx";
const ATTRIBUTES: &str = "SELECT name, value FROM attribute WHERE ns = $1 AND run = $2 ORDER BY name";
const COUNT: &str = "SELECT status, count(*) FROM run WHERE ns = $1 AND deleted_at IS NULL GROUP BY status";

const SCHEDULES: &str = "SELECT ns, id, revision, spec, state, next_at FROM schedule WHERE ns = $1 AND id = coalesce($2::text, id) ORDER BY id";
const REMOVE_SCHEDULE: &str = "DELETE FROM schedule WHERE ns = $1 AND id = $2 RETURNING id";
const SECRET: &str = "SELECT value FROM secret WHERE id = 1";

/// What time it is, whether a schedule is due, and when the first is that is not. When nothing is due, this is all that is
/// asked.
const SCHEDULES_AT: &str = "SELECT t.now, \
     EXISTS (SELECT 1 FROM schedule s WHERE s.next_at IS NOT NULL AND s.next_at <= t.now), \
     (SELECT min(s.next_at) FROM schedule s WHERE s.next_at IS NOT NULL AND s.next_at > t.now) \
     FROM (SELECT coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) t (now)";
const DUE_SCHEDULES: &str = "SELECT s.ns, s.id, s.revision, s.spec, s.state, s.next_at \
     FROM schedule s JOIN namespace n ON n.id = s.ns WHERE s.next_at IS NOT NULL AND s.next_at <= $1 \
     AND s.next_at >= $3 AND (s.next_at, n.name, s.id) > ($3, $4, $5) ORDER BY s.next_at, n.name, s.id LIMIT $2";

/// A run that is not deleted, with its namespace's number.
pub(super) async fn live(core: &Core, session: &mut Session, key: &RunKey) -> Result<(i32, RunRow), Failure> {
    core.namespaces.learn(session, [&key.namespace]).await?;
    let not_found = || Failure::from(StoreError::NotFound(key.clone()));
    let ns = core.namespaces.id(&key.namespace).ok_or_else(not_found)?;
    let rows = session.ask(RUN, vec![Box::new(ns), Box::new(key.id.as_str())]).await?;
    let row = rows.first().ok_or_else(not_found)?;
    let run = decode::run(row, &core.namespaces).map_err(|damaged| damaged.error)?;
    match run.deleted_at {
        Some(_) => Err(run.deleted().into()),
        None => Ok((ns, run)),
    }
}

pub(super) async fn secret(core: &Core) -> Result<[u8; 32], StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let rows = session.ask(SECRET, vec![]).await?;
    let secret = rows.first().and_then(|row| row.try_get::<_, &[u8]>(0).ok()).and_then(|bytes| bytes.try_into().ok());
    secret.ok_or_else(|| StoreError::corrupt("the table of the secret", "it has not one row of 32 bytes"))
}

pub(super) async fn get(core: &Core, key: &RunKey) -> Result<RunView, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    Ok(live(core, &mut session, key).await?.1.view())
}

pub(super) async fn count(core: &Core, namespace: &Namespace) -> Result<Vec<(Status, u64)>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [namespace]).await?;
    let Some(ns) = core.namespaces.id(namespace) else { return Ok(Vec::new()) };
    let rows = session.ask(COUNT, vec![Box::new(ns)]).await?;
    let mut counts = Vec::with_capacity(rows.len());
    for row in &rows {
        let code: i16 = row.try_get(0).map_err(Failure::from)?;
        let count: i64 = row.try_get(1).map_err(Failure::from)?;
        // What stands nowhere we know cannot be counted there.
        counts.extend(Status::from_code(i64::from(code)).map(|status| (status, u64::try_from(count).unwrap_or(0))));
    }
    counts.sort_unstable_by_key(|(status, _)| *status);
    Ok(counts)
}

/// Timers, then waits, then tasks, then children, each by key, all of one instant.
pub(super) async fn awaiting(core: &Core, key: &RunKey) -> Result<Vec<Awaited>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [&key.namespace]).await?;
    session.send_all(&[Step::Plain("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")]).await?;
    let awaited = read_awaiting(core, &mut session, key).await;
    session.rollback().await;
    Ok(awaited?)
}

async fn read_awaiting(core: &Core, session: &mut Session, key: &RunKey) -> Result<Vec<Awaited>, Failure> {
    let (ns, run) = live(core, session, key).await?;
    let id = run.key.id.as_str();
    let steps = [
        Step::new(TIMERS, vec![Box::new(ns), Box::new(run.row)]),
        Step::new(WAITS, vec![Box::new(ns), Box::new(run.row)]),
        Step::new(TASKS, vec![Box::new(ns), Box::new(id)]),
        Step::new(CHILDREN, vec![Box::new(ns), Box::new(id)]),
    ];
    let answers = session.send_all(&steps).await?;
    let corrupt = |detail| Failure::from(StoreError::corrupt(key.to_string(), detail));
    let rows = |at: usize| answers.get(at).map_or(&[][..], Vec::as_slice);
    let mut awaited = Vec::new();
    for row in rows(0) {
        awaited.push(logic::awaited_timer(decode::timer(&mut Fields::from(row, 0)).map_err(corrupt)?));
    }
    for row in rows(1) {
        awaited.push(logic::awaited_wait(&decode::wait(&mut Fields::from(row, 0)).map_err(corrupt)?));
    }
    let mut tasks = Vec::new();
    for row in rows(2) {
        let task = decode::task(&mut Fields::from(row, 0), &core.namespaces).map_err(corrupt)?;
        tasks.extend(logic::awaited_task(&task, &run));
    }
    let mut children = Vec::new();
    for row in rows(3) {
        let child = decode::run(row, &core.namespaces).map_err(|damaged| damaged.error)?;
        children.extend(logic::awaited_child(&child, &run));
    }
    logic::sort_awaited(&mut tasks);
    logic::sort_awaited(&mut children);
    awaited.extend(tasks);
    awaited.extend(children);
    Ok(awaited)
}

pub(super) async fn excerpt(core: &Core, excerpt: &Excerpt) -> Result<Vec<Record>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let (ns, run) = live(core, &mut session, &excerpt.run).await?;
    let generation = excerpt.generation.unwrap_or(run.generation);
    let rows = session
        .ask(
            EXCERPT,
            vec![
                Box::new(ns),
                Box::new(run.row),
                Box::new(number(generation.0)),
                Box::new(number(excerpt.from.0)),
                Box::new(number(excerpt.events_max() as u64)),
                Box::new(number(EXCERPT_BYTES_MAX as u64)),
            ],
        )
        .await?;
    let corrupt = |detail| StoreError::corrupt(excerpt.run.to_string(), detail);
    rows.iter().map(|row| decode::record(&mut Fields::from(row, 0)).map_err(corrupt)).collect()
}

pub(super) async fn attributes(core: &Core, key: &RunKey) -> Result<Vec<(String, String)>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let (ns, run) = live(core, &mut session, key).await?;
    let rows = session.ask(ATTRIBUTES, vec![Box::new(ns), Box::new(run.row)]).await?;
    let pair = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
    Ok(rows.iter().map(pair).collect::<Result<_, tokio_postgres::Error>>().map_err(Failure::from)?)
}

fn read_schedules(core: &Core, rows: &[Row]) -> Result<Vec<Schedule>, StoreError> {
    let corrupt = |detail| StoreError::corrupt("the table of schedules", detail);
    rows.iter().map(|row| decode::schedule(&mut Fields::from(row, 0), &core.namespaces).map_err(corrupt)).collect()
}

pub(super) async fn schedules(
    core: &Core,
    namespace: &Namespace,
    only: Option<&ScheduleId>,
) -> Result<Vec<Schedule>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [namespace]).await?;
    let Some(ns) = core.namespaces.id(namespace) else { return Ok(Vec::new()) };
    let rows = session.ask(SCHEDULES, vec![Box::new(ns), Box::new(only.map(ScheduleId::as_str))]).await?;
    read_schedules(core, &rows)
}

pub(super) async fn due_schedules(
    core: &Core,
    after: Option<&DueCursor>,
    limit: usize,
) -> Result<DueSchedules, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let rows = session.ask(SCHEDULES_AT, vec![Box::new(core.manual_now())]).await?;
    let at = rows.first().ok_or_else(|| StoreError::corrupt("the table of schedules", "no time".to_owned()))?;
    let (now, any, next): (i64, bool, Option<i64>) = read_at(at).map_err(Failure::from)?;
    let mut schedules = Vec::new();
    if any && limit > 0 {
        // Before the first of all: no name is empty.
        let (from, namespace, id) = after.map_or((i64::MIN, "", ""), |after| {
            (after.next_at.as_millis(), after.namespace.as_str(), after.id.as_str())
        });
        let params: Vec<super::session::Param<'_>> =
            vec![Box::new(now), Box::new(number(limit as u64)), Box::new(from), Box::new(namespace), Box::new(id)];
        let rows = session.ask(DUE_SCHEDULES, params).await?;
        core.namespaces.cover(&mut session, &rows).await?;
        schedules = read_schedules(core, &rows)?;
    }
    let next_due = next.map(Timestamp::from_millis);
    Ok(DueSchedules { schedules, next_due, now: Timestamp::from_millis(now) })
}

fn read_at(row: &Row) -> Result<(i64, bool, Option<i64>), tokio_postgres::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
}

pub(super) async fn remove_schedule(core: &Core, namespace: &Namespace, id: &ScheduleId) -> Result<bool, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [namespace]).await?;
    let Some(ns) = core.namespaces.id(namespace) else { return Ok(false) };
    let rows = session.ask(REMOVE_SCHEDULE, vec![Box::new(ns), Box::new(id.as_str())]).await?;
    Ok(!rows.is_empty())
}
