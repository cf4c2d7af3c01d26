//! Claims of tasks: those whose time has come are made ready, then namespaces take turns.

pub(super) mod lines;
pub(super) mod list;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::claim::{missing_answer, refused};
use super::decode::{self, Fields, claim_number, number, task_columns};
use super::failure::Failure;
use super::session::{CLOCK, Param, Session, Step};
use super::turns::{self, Read, Ready, numbers};
use super::working_set::WorkingSet;
use super::{Core, flush, transact};
use crate::api::{ClaimTasks, ClaimedTask};
use crate::error::StoreError;
use crate::logic;
use crate::logic::task::{PROMOTE_MAX, order};
use crate::logic::turns::{Ask, Round};
use crate::rows::TaskRow;
use lines::{Seen, Whole};

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

/// What this claim took before. Written so that no other index fits: one for tasks that have an end would, if it seemed empty.
pub(super) const HELD: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task t WHERE t.worker = $7 AND t.claim = $8 AND t.state + 0 = 1 AND coalesce(t.until, 0) > ",
    now!(),
    " AND t.queue || '' = ANY($3::text[]) AND ($9::int IS NULL OR t.ns + 0 = $9) AND ",
    fits!(),
    " ORDER BY - t.priority::int, t.place, t.id LIMIT $2 FOR UPDATE"
);

/// Makes delayed tasks ready whose time has come, and those whose worker fell silent. See [`logic::task::promoted`].
pub(super) const PROMOTE: &str = concat!(
    "UPDATE task t SET state = 0, until = NULL, claim = NULL, lapse = NULL, lapsed = coalesce(t.lapsed, t.lapse), \
     place = CASE WHEN t.state = 1 AND t.attempt > 1 THEN t.until ELSE t.place END \
     FROM (SELECT d.ns, d.id FROM unnest($2::text[], $3::bigint[]) q (queue, floor) CROSS JOIN LATERAL \
     (SELECT t.ns, t.id FROM task t WHERE t.queue = q.queue AND t.until >= q.floor AND t.until <= ",
    now!(),
    " ORDER BY t.until LIMIT $4 FOR UPDATE SKIP LOCKED) d) d \
     WHERE t.ns = ANY(ARRAY[d.ns]) AND t.id = d.id RETURNING t.queue, - t.priority::int, t.ns, t.place"
);

/// The first ones of some lines.
pub(super) const READY: &str = concat!(
    "SELECT t.* FROM unnest($1::text[], $2::int[], $3::int[], $7::bigint[]) k (queue, level, ns, floor) \
     CROSS JOIN LATERAL (SELECT ",
    task_columns!(),
    " FROM task t WHERE t.queue = k.queue AND t.state = 0 AND - t.priority::int = k.level AND t.ns + 0 = k.ns \
     AND t.place >= k.floor AND ",
    fits!(),
    " ORDER BY t.place, t.id LIMIT $8 FOR UPDATE SKIP LOCKED) t"
);

/// Sets a task aside that cannot be read.
const BURY: &str = "UPDATE task SET state = 2, worker = NULL, claim = NULL, until = NULL, \
     died_at = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE ns = $1 AND id = $2";

/// Damaged rows a claim sets aside before it gives up looking further.
const DAMAGED_MAX: usize = 64;

type RawName = (i32, String);

pub(super) async fn claim(core: &Arc<Core>, claim: &ClaimTasks) -> Result<Vec<ClaimedTask>, StoreError> {
    let mut skipped: Vec<RawName> = Vec::new();
    loop {
        let attempt: Result<Attempt, StoreError> = transact!(core, |session| attempt(core, session, claim, &skipped));
        match attempt? {
            Attempt::Claimed(claimed) => {
                look_at_whole_lines(core, claim);
                return Ok(claimed);
            }
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

/// Has the whole of the claim's lines looked at beside it, if it is time.
fn look_at_whole_lines(core: &Arc<Core>, claim: &ClaimTasks) {
    if core.manual_now().is_some() {
        return;
    }
    let queues: BTreeSet<&str> = claim.queues.iter().map(|queue| queue.as_str()).collect();
    let Some(look) = core.lines.lock().unwrap_or_else(PoisonError::into_inner).overdue(&queues) else { return };
    let own = Arc::clone(core);
    core.own(async move {
        // What could not be looked at is looked at the next time.
        let whole = whole_lines(&own, &look).await.ok();
        own.lines.lock().unwrap_or_else(PoisonError::into_inner).note_whole(&look, whole.as_ref());
    });
}

async fn whole_lines(core: &Core, look: &lines::Look) -> Result<Whole, Failure> {
    let mut session = Session::begin(&core.pool).await?;
    let answers = session.send_all(&look.whole_steps()).await?;
    let [heads, ends] = answers.as_slice() else { return Err(missing_answer()) };
    Whole::read(heads, ends)
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
    let limit = claim.limit.min(CLAIM_BATCH_MAX);
    let Some(only) = only(core, session, claim).await? else { return Ok(Attempt::Claimed(Vec::new())) };
    let queues: BTreeSet<&str> = claim.queues.iter().map(|queue| queue.as_str()).collect();
    let skips = core.manual_now().is_none();
    let look = core.lines.lock().unwrap_or_else(PoisonError::into_inner).look(&queues, skips);
    let [heads, gaps] = look.steps();
    let steps = [
        Step::Plain("BEGIN"),
        Step::new(HELD, held_params(core, claim, only, &queues, limit, skipped)),
        Step::new(PROMOTE, promote_params(core, &look)),
        heads,
        gaps,
        Step::new(CLOCK, Vec::new()),
    ];
    let answers = session.send_all(&steps).await?;
    let [_, held, promoted, heads, gaps, clock] = answers.as_slice() else { return Err(missing_answer()) };
    let now = core.now(clock)?;
    let seen = Seen::read(promoted, heads, gaps, PROMOTE_MAX)?;
    core.lines.lock().unwrap_or_else(PoisonError::into_inner).note(&look, &seen, now.as_millis());
    let mut search = Search { core, claim, skipped, queues, now, damaged: Vec::new() };
    let mut tasks = search.readable(session, held).await?;
    tasks.sort_by_key(order);
    let (round, room) = (|priority| Round::of(claim, priority), limit.saturating_sub(tasks.len()));
    tasks.extend(turns::take(core, session, &mut search, seen.levels(only), round, room).await?);
    if !search.damaged.is_empty() {
        return Ok(Attempt::Damaged(search.damaged));
    }
    let mut set = WorkingSet { now: search.now, ..WorkingSet::default() };
    let claimed = take_all(core, &mut set, claim, tasks)?;
    let steps = flush::steps(&set);
    if !steps.is_empty() || seen.has_promoted() {
        session.commit(steps).await?;
    }
    Ok(Attempt::Claimed(claimed))
}

/// The number of the only namespace that tasks are wanted from, if there is one. None if there is no such namespace.
async fn only(core: &Core, session: &mut Session, claim: &ClaimTasks) -> Result<Option<Option<i32>>, Failure> {
    let Some(namespace) = &claim.namespace else { return Ok(Some(None)) };
    core.namespaces.learn(session, [namespace]).await?;
    Ok(core.namespaces.id(namespace).map(Some))
}

fn held_params<'p>(
    core: &Core,
    claim: &'p ClaimTasks,
    only: Option<i32>,
    queues: &BTreeSet<&'p str>,
    limit: usize,
    skipped: &'p [RawName],
) -> Vec<Param<'p>> {
    vec![
        Box::new(core.manual_now()),
        Box::new(number(limit as u64)),
        Box::new(queues.iter().copied().collect::<Vec<_>>()),
        Box::new(claim.names.iter().map(|name| name.as_str()).collect::<Vec<_>>()),
        Box::new(skipped.iter().map(|(ns, _)| *ns).collect::<Vec<_>>()),
        Box::new(skipped.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>()),
        Box::new(claim.worker.as_str()),
        Box::new(claim_number(claim.id)),
        Box::new(only),
    ]
}

fn promote_params<'p>(core: &Core, look: &'p lines::Look) -> Vec<Param<'p>> {
    vec![
        Box::new(core.manual_now()),
        Box::new(look.ends.iter().map(|(queue, ..)| queue.as_str()).collect::<Vec<_>>()),
        Box::new(look.ends.iter().map(|(_, from)| from.floor).collect::<Vec<_>>()),
        Box::new(number(PROMOTE_MAX as u64)),
    ]
}

/// Ready tasks that a claim asks for.
struct Search<'c> {
    core: &'c Core,
    claim: &'c ClaimTasks,
    skipped: &'c [RawName],
    queues: BTreeSet<&'c str>,
    now: Timestamp,
    /// Rows that cannot be read.
    damaged: Vec<RawName>,
}

impl Search<'_> {
    async fn readable(&mut self, session: &mut Session, rows: &[Row]) -> Result<Vec<TaskRow>, Failure> {
        self.core.namespaces.cover(session, rows).await?;
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows {
            match decode::task(&mut Fields::from(row, 0), &self.core.namespaces) {
                Ok(task) => tasks.push(task),
                Err(_) => self.damaged.push((row.try_get(0)?, row.try_get(1)?)),
            }
        }
        Ok(tasks)
    }

    fn params(&self, level: i32, ask: &Ask) -> Vec<Param<'_>> {
        let namespaces = numbers(ask);
        let lines: Vec<(&str, i32)> =
            self.queues.iter().flat_map(|queue| namespaces.iter().map(|ns| (*queue, *ns))).collect();
        let known = self.core.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let floors: Vec<i64> = match self.core.manual_now() {
            Some(_) => vec![i64::MIN; lines.len()],
            None => lines.iter().map(|(queue, ns)| known.floor(&((*queue).to_owned(), level, *ns))).collect(),
        };
        vec![
            Box::new(lines.iter().map(|(queue, _)| *queue).collect::<Vec<_>>()),
            Box::new(vec![level; lines.len()]),
            Box::new(lines.iter().map(|(_, ns)| *ns).collect::<Vec<_>>()),
            Box::new(self.claim.names.iter().map(|name| name.as_str()).collect::<Vec<_>>()),
            Box::new(self.skipped.iter().map(|(ns, _)| *ns).collect::<Vec<_>>()),
            Box::new(self.skipped.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>()),
            Box::new(floors),
            Box::new(number(ask.each as u64)),
        ]
    }
}

impl Ready for Search<'_> {
    type Item = TaskRow;

    async fn lock(&mut self, session: &mut Session, level: i32, ask: &Ask) -> Result<Read<TaskRow>, Failure> {
        let answers = {
            let steps = [Step::new(READY, self.params(level, ask)), Step::new(CLOCK, Vec::new())];
            session.send_all(&steps).await?
        };
        let [rows, clock] = answers.as_slice() else { return Err(missing_answer()) };
        self.now = self.core.now(clock)?;
        let mut read = Read::new();
        for task in self.readable(session, rows).await? {
            let number = self.core.namespaces.id(&task.namespace).map_or(0, i64::from);
            read.entry(number).or_default().push(task);
        }
        read.values_mut().for_each(|tasks| tasks.sort_by_key(order));
        Ok(read)
    }
}

fn take_all(
    core: &Core,
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
    Ok(claimed)
}

async fn bury(core: &Core, name: &RawName) {
    if let Ok(mut session) = Session::begin(&core.pool).await {
        let _ = session.ask(BURY, vec![Box::new(name.0), Box::new(name.1.as_str())]).await;
    }
}
