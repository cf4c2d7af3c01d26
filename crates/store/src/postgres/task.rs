//! Claims of tasks, and their list.

use std::collections::BTreeSet;

use outlast_core::id::{Namespace, TaskId};
use outlast_core::limits::CLAIM_BATCH_MAX;
use tokio_postgres::Row;

use super::claim::refused;
use super::decode::{self, Fields, claim_number, number, task_columns};
use super::failure::Failure;
use super::session::{CLOCK, Param, Session, Step};
use super::working_set::WorkingSet;
use super::{Core, flush, transact};
use crate::api::{ClaimTasks, ClaimedTask, TaskView};
use crate::error::StoreError;
use crate::logic;
use crate::rows::TaskRow;

macro_rules! now {
    () => {
        "coalesce($1::bigint, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))"
    };
}
macro_rules! fits {
    () => {
        "(cardinality($4::text[]) = 0 OR t.name = ANY($4)) AND NOT ((t.ns, t.id) IN \
         (SELECT s.ns, s.id FROM unnest($5::int[], $6::text[]) s (ns, id)))"
    };
}

/// What this claim took before.
pub(super) const HELD: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task t WHERE t.worker = $7 AND t.claim = $8 AND t.state + 0 = 1 AND t.until > ",
    now!(),
    " AND t.queue = ANY($3::text[]) AND ",
    fits!(),
    " ORDER BY t.priority DESC, t.available_at, t.id LIMIT $2 FOR UPDATE"
);

/// Queue by queue, so that each is read in the order of its index.
pub(super) const READY: &str = concat!(
    "SELECT t.* FROM unnest($3::text[]) q (queue) CROSS JOIN LATERAL (SELECT ",
    task_columns!(),
    " FROM task t WHERE t.queue = q.queue AND t.state = 0 AND t.available_at <= ",
    now!(),
    " AND ",
    fits!(),
    " ORDER BY t.priority DESC, t.available_at, t.id LIMIT $2 FOR UPDATE SKIP LOCKED) t"
);

/// Those whose worker fell silent.
pub(super) const SILENT: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task t WHERE t.state = 1 AND t.until <= ",
    now!(),
    " AND t.queue = ANY($3::text[]) AND ",
    fits!(),
    " ORDER BY t.priority DESC, t.available_at, t.id LIMIT $2 FOR UPDATE SKIP LOCKED"
);

/// Sets a task aside that cannot be read.
const BURY: &str = "UPDATE task SET state = 2, worker = NULL, claim = NULL, until = NULL WHERE ns = $1 AND id = $2";

const LIST: &str = concat!("SELECT ", task_columns!(), " FROM task t WHERE t.ns = $1 ORDER BY t.id LIMIT $2");

/// Damaged rows a claim sets aside before it gives up looking further.
const DAMAGED_MAX: usize = 64;

type RawName = (i32, String);

pub(super) async fn claim(core: &Core, claim: &ClaimTasks) -> Result<Vec<ClaimedTask>, StoreError> {
    let mut skipped: Vec<RawName> = Vec::new();
    loop {
        let attempt: Result<Attempt, StoreError> = transact!(core, |session| attempt(core, session, claim, &skipped));
        match attempt? {
            Attempt::Claimed(claimed) => return Ok(claimed),
            Attempt::Damaged(damaged) => {
                for name in damaged {
                    bury(core, &name).await;
                    skipped.push(name);
                }
                if skipped.len() > DAMAGED_MAX {
                    return Ok(Vec::new());
                }
            }
        }
    }
}

enum Attempt {
    Claimed(Vec<ClaimedTask>),
    Damaged(Vec<RawName>),
}

async fn attempt(
    core: &Core,
    session: &mut Session,
    claim: &ClaimTasks,
    skipped: &[RawName],
) -> Result<Attempt, Failure> {
    let common = |limit: usize| -> Vec<Param<'_>> {
        let queues: BTreeSet<&str> = claim.queues.iter().map(|queue| queue.as_str()).collect();
        let names: Vec<&str> = claim.names.iter().map(|name| name.as_str()).collect();
        vec![
            Box::new(core.manual_now()),
            Box::new(number(limit as u64)),
            Box::new(queues.into_iter().collect::<Vec<_>>()),
            Box::new(names),
            Box::new(skipped.iter().map(|(ns, _)| *ns).collect::<Vec<_>>()),
            Box::new(skipped.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>()),
        ]
    };
    let limit = claim.limit.min(CLAIM_BATCH_MAX);
    let mut held = common(limit);
    held.push(Box::new(claim.worker.as_str()));
    held.push(Box::new(claim_number(claim.id)));
    let steps = [
        Step::Plain("BEGIN"),
        Step::new(HELD, held),
        Step::new(READY, common(limit)),
        Step::new(SILENT, common(limit)),
        Step::new(CLOCK, Vec::new()),
    ];
    let mut answers = session.send_all(&steps).await?;
    let mut set = WorkingSet { now: core.now(&answers.pop().unwrap_or_default())?, ..WorkingSet::default() };
    let (mut tasks, mut damaged) = (Vec::new(), Vec::new());
    // What this claim has already, and then the rest: those whose worker fell silent take their old place.
    let free: Vec<Row> = answers.split_off(answers.len().min(2)).into_iter().flatten().collect();
    let held: Vec<Row> = answers.into_iter().flatten().collect();
    for rows in [held, free] {
        core.namespaces.cover(session, &rows).await?;
        tasks.extend(readable(core, &rows, &mut damaged)?);
    }
    if !damaged.is_empty() {
        return Ok(Attempt::Damaged(damaged));
    }
    tasks.truncate(limit);
    take_all(core, session, &mut set, claim, tasks).await.map(Attempt::Claimed)
}

/// The tasks of one statement, in the order in which they are claimed.
fn readable(core: &Core, rows: &[Row], damaged: &mut Vec<RawName>) -> Result<Vec<TaskRow>, Failure> {
    let mut tasks = Vec::with_capacity(rows.len());
    for row in rows {
        match decode::task(&mut Fields::from(row, 0), &core.namespaces) {
            Ok(task) => tasks.push(task),
            Err(_) => damaged.push((row.try_get(0)?, row.try_get(1)?)),
        }
    }
    let order =
        |task: &TaskRow| (-i32::from(task.priority), task.available_at, task.id.clone(), task.namespace.clone());
    tasks.sort_by_key(order);
    Ok(tasks)
}

async fn take_all(
    core: &Core,
    session: &mut Session,
    set: &mut WorkingSet,
    claim: &ClaimTasks,
    tasks: Vec<TaskRow>,
) -> Result<Vec<ClaimedTask>, Failure> {
    let mut claimed = Vec::with_capacity(tasks.len());
    for task in tasks {
        if let Some(ns) = core.namespaces.id(&task.namespace) {
            set.facts.namespaces.insert(task.namespace.clone(), ns);
        }
        set.facts.tasks.insert((task.namespace.clone(), task.id.clone()), Ok(Some(task.clone())));
        claimed.extend(refused(logic::task::take(set, &task, claim))?);
    }
    let steps = flush::steps(set);
    if !steps.is_empty() {
        session.commit(steps).await?;
    }
    Ok(claimed)
}

async fn bury(core: &Core, name: &RawName) {
    if let Ok(mut session) = Session::begin(&core.pool).await {
        let _ = session.ask(BURY, vec![Box::new(name.0), Box::new(name.1.as_str())]).await;
    }
}

/// Tasks of a namespace, oldest id first.
pub(super) async fn list(core: &Core, namespace: &Namespace, limit: usize) -> Result<Vec<TaskView>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    core.namespaces.learn(&mut session, [namespace]).await?;
    let Some(ns) = core.namespaces.id(namespace) else { return Ok(Vec::new()) };
    let rows = session.ask(LIST, vec![Box::new(ns), Box::new(number(limit as u64))]).await?;
    let view = |row: &Row| {
        let task = decode::task(&mut Fields::from(row, 0), &core.namespaces);
        let id: Option<TaskId> = Fields::from(row, 1).id().ok();
        let what = || id.map_or_else(|| "the table of tasks".to_owned(), |id| format!("task {namespace}/{id}"));
        task.map(|task| task.view()).map_err(|detail| StoreError::corrupt(what(), detail))
    };
    rows.iter().map(view).collect()
}
