//! Firing due timers.

use std::time::Duration;

use outlast_core::id::RunKey;
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::claim::{park, refused};
use super::decode::{self, Damaged, Fields, RUN_COLUMNS, number, run_columns};
use super::failure::Failure;
use super::session::{CLOCK, Session, Step};
use super::working_set::WorkingSet;
use super::{Core, flush, transact};
use crate::api::Swept;
use crate::error::StoreError;
use crate::logic::deliver::fire_timer;
use crate::rows::TimerRow;

/// Due timers with their runs, both locked; those that somebody else holds are left for the next sweep.
pub(super) const DUE: &str = concat!(
    "SELECT ",
    run_columns!(),
    ", t.key, t.kind, t.due FROM timer t JOIN run r ON r.seq = t.run \
      WHERE t.due <= coalesce($1::bigint, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) \
      AND t.run <> ALL($3::bigint[]) ORDER BY t.due, t.run + 0, t.key, t.kind LIMIT $2 FOR UPDATE OF t, r SKIP LOCKED"
);

pub(super) const NEXT_DUE: &str =
    "SELECT t.due FROM timer t WHERE t.run <> ALL($1::bigint[]) ORDER BY t.due, t.run + 0 LIMIT 1";

/// Due timers whose run is gone.
const FORGET_ORPHANS: &str = "DELETE FROM timer WHERE (ns, run, key, kind) IN (SELECT t.ns, t.run, t.key, t.kind FROM timer t \
     WHERE t.due <= $1::bigint AND NOT EXISTS (SELECT 1 FROM run r WHERE r.seq = t.run) \
     ORDER BY t.due, t.run + 0 LIMIT 1000 FOR UPDATE OF t SKIP LOCKED)";

/// Transactions that have been over for an hour are nobody's question any more.
pub(super) const FORGET_TXNS: &str = "DELETE FROM txn WHERE id IN (SELECT id FROM txn \
     WHERE at < (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) - 3600000 \
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// Leases that lapsed an hour ago and own nothing. Not sooner: a run may be created under a lease that lapses before
/// that transaction commits.
pub(super) const DRAIN_LEASES: &str = "UPDATE lease l SET drained = true FROM (SELECT l.id FROM lease l \
     WHERE NOT l.drained AND l.until <= $1::bigint - 3600000 AND NOT EXISTS (SELECT 1 FROM run r WHERE r.owner = l.id OFFSET 0) \
     ORDER BY l.id + 0 LIMIT 100 FOR UPDATE OF l SKIP LOCKED) k WHERE l.id = k.id";

/// Damaged runs a sweep goes around before it gives up.
const DAMAGED_MAX: usize = 64;

pub(super) async fn sweep(core: &Core, limit: usize) -> Result<Swept, StoreError> {
    let mut skipped: Vec<i64> = Vec::new();
    loop {
        let attempt: Result<Attempt, StoreError> = transact!(core, |session| attempt(core, session, limit, &skipped));
        match attempt? {
            Attempt::Swept(swept) => {
                // What is due and was not found is held by somebody else, or has no run that could be told.
                if swept.fired == 0 && swept.next_due.is_some_and(|due| due <= swept.now) {
                    let mut session = Session::begin(&core.pool).await?;
                    session.ask(FORGET_ORPHANS, vec![Box::new(swept.now.as_millis())]).await?;
                }
                return Ok(swept);
            }
            Attempt::Damaged(damaged) => {
                for row in &damaged {
                    park(core, row).await;
                    skipped.push(row.seq);
                }
                if skipped.len() > DAMAGED_MAX {
                    let what = "the timers of many runs";
                    return Err(StoreError::corrupt(what, "their runs cannot be read"));
                }
            }
        }
    }
}

enum Attempt {
    Swept(Swept),
    Damaged(Vec<Damaged>),
}

async fn attempt(core: &Core, session: &mut Session, limit: usize, skipped: &[i64]) -> Result<Attempt, Failure> {
    let steps = [
        Step::Plain("BEGIN"),
        Step::new(DUE, vec![Box::new(core.manual_now()), Box::new(number(limit as u64)), Box::new(skipped.to_vec())]),
        Step::new(CLOCK, Vec::new()),
    ];
    let answers = session.send_all(&steps).await?;
    let mut set = WorkingSet { now: core.now(answers.last().map_or(&[], Vec::as_slice))?, ..WorkingSet::default() };
    let rows = answers.get(1).map_or(&[][..], Vec::as_slice);
    core.namespaces.cover(session, rows).await?;
    let mut due: Vec<(RunKey, TimerRow)> = Vec::with_capacity(rows.len());
    let mut damaged = Vec::new();
    for row in rows {
        match hold(core, &mut set, row) {
            Ok(timer) => due.push(timer),
            Err(row) => damaged.push(row),
        }
    }
    if !damaged.is_empty() {
        return Ok(Attempt::Damaged(damaged));
    }
    let late = due.first().map_or(Duration::ZERO, |(_, timer)| set.now.since(timer.due));
    let mut fired = 0;
    for (run, timer) in &due {
        fired += usize::from(refused(fire_timer(&mut set, run, &timer.timer))?);
    }
    let mut steps = flush::steps(&set);
    steps.push(Step::new(FORGET_TXNS, Vec::new()));
    steps.push(Step::new(DRAIN_LEASES, vec![Box::new(set.now.as_millis())]));
    steps.push(Step::new(NEXT_DUE, vec![Box::new(skipped.to_vec())]));
    let answers = session.commit(steps).await?;
    let next_due = answers.last().and_then(|rows| rows.first()).map(|row| row.try_get(0)).transpose()?;
    let next_due = next_due.map(Timestamp::from_millis);
    if fired > 0 {
        core.hint();
    }
    let more = rows.len() == limit && next_due.is_some_and(|due| due <= set.now);
    Ok(Attempt::Swept(Swept { now: set.now, fired, late, next_due, more }))
}

/// Puts a due timer and its run into the working set.
fn hold(core: &Core, set: &mut WorkingSet, row: &Row) -> Result<(RunKey, TimerRow), Damaged> {
    let run = decode::run(row, &core.namespaces)?;
    let (ns, seq, key) = (row.try_get(0).unwrap_or(0), run.row, run.key.clone());
    let timer: TimerRow = decode::timer(&mut Fields::from(row, RUN_COLUMNS))
        .map_err(|detail| Damaged { seq, error: StoreError::corrupt(key.to_string(), detail) })?;
    set.hold(ns, run);
    let facts = set.facts.runs.entry(key.clone()).or_default();
    facts.timers.insert(timer.timer.clone(), Ok(Some(timer.clone())));
    Ok((key, timer))
}
