//! Who offers to drive what.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast_core::id::{RunKey, Version, WorkflowName};
use tokio_postgres::Row;

use super::claim::{LAPSED, is_ready, lines};
use super::decode::{self, number, run_columns};
use super::failure::Failure;
use super::session::{CLOCK, Session, Step};
use super::working_set::WorkingSet;
use super::{Core, flush, transact};
use crate::error::StoreError;
use crate::logic::serve::{UNSERVED_SCAN_MAX, before, forgotten, park};
use crate::rows::{Fault, RunRow};

/// Rows in the order of their key, so that two announcements at once do not lock each other out.
pub(super) const ANNOUNCE: &str = "INSERT INTO served (workflow, version, at) SELECT k.workflow, k.version, \
     coalesce($3::bigint, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) \
     FROM unnest($1::text[], $2::text[]) k (workflow, version) \
     ON CONFLICT (workflow, version) DO UPDATE SET at = excluded.at";

/// Ready runs that were not announced since $1. Looked for without locks among the first $3 of each line, then locked and looked
/// at again; those that somebody else holds are about to be claimed.
pub(super) const UNSERVED: &str = concat!(
    lines!(),
    "SELECT ",
    run_columns!(),
    " FROM (SELECT q.seq FROM line l CROSS JOIN LATERAL (SELECT r.seq, r.workflow, r.version FROM run r WHERE ",
    is_ready!(),
    " AND - r.priority::int = l.level AND r.ns + 0 = l.ns AND r.ready_at <= $1 \
      ORDER BY r.ready_at, r.seq LIMIT $3) q WHERE NOT EXISTS \
      (SELECT 1 FROM served s WHERE s.workflow = q.workflow AND s.version = q.version AND s.at + 0 > $1 OFFSET 0) LIMIT $2) k \
      JOIN run r ON r.seq = k.seq AND r.ready_at + 0 <= $1 AND r.owner IS NULL AND r.status + 0 < 3 \
      FOR UPDATE OF r SKIP LOCKED"
);

/// Runs of an owner whose lease is over that were not announced since $2.
pub(super) const ORPHANED: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run r WHERE r.owner = $1 AND NOT EXISTS \
      (SELECT 1 FROM served s WHERE s.workflow = r.workflow AND s.version = r.version AND s.at + 0 > $2 OFFSET 0) \
      ORDER BY r.seq + 0 LIMIT $3 FOR UPDATE OF r SKIP LOCKED"
);

pub(super) const FORGET: &str = "DELETE FROM served WHERE (workflow, version) IN (SELECT workflow, version FROM served \
     WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)";

pub(super) async fn announce(core: &Core, serves: Vec<(WorkflowName, Version)>) -> Result<(), StoreError> {
    // Each once: a statement may not write a row twice.
    let serves: BTreeSet<(WorkflowName, Version)> = serves.into_iter().collect();
    if serves.is_empty() {
        return Ok(());
    }
    let (workflows, versions): (Vec<String>, Vec<String>) =
        serves.iter().map(|(workflow, version)| (workflow.to_string(), version.to_string())).unzip();
    transact!(core, |session| try_announce(core, session, &workflows, &versions))
}

async fn try_announce(
    core: &Core,
    session: &mut Session,
    workflows: &[String],
    versions: &[String],
) -> Result<(), Failure> {
    session.ask(ANNOUNCE, vec![Box::new(workflows), Box::new(versions), Box::new(core.manual_now())]).await?;
    Ok(())
}

pub(super) async fn park_unserved(core: &Core, grace: Duration, limit: usize) -> Result<Vec<RunKey>, StoreError> {
    transact!(core, |session| try_park(core, session, grace, limit))
}

async fn try_park(core: &Core, session: &mut Session, grace: Duration, limit: usize) -> Result<Vec<RunKey>, Failure> {
    // The clock is read before the locks are held: so fewer are parked than might be, never more.
    let begin =
        [Step::Plain("BEGIN"), Step::new(CLOCK, Vec::new()), Step::new(LAPSED, vec![Box::new(core.manual_now())])];
    let answers = session.send_all(&begin).await?;
    let [_, clock, lapsed] = answers.as_slice() else {
        return Err(StoreError::unavailable(crate::Trouble::Other, "the server left a statement unanswered").into());
    };
    let mut set = WorkingSet { now: core.now(clock)?, ..WorkingSet::default() };
    let rows = unserved(session, lapsed, before(set.now, grace).as_millis(), limit).await?;
    core.namespaces.cover(session, &rows).await?;
    let mut parked = Vec::new();
    for row in rows.iter() {
        // One that cannot be read is set aside by the next claim.
        let Ok(run) = decode::run(row, &core.namespaces) else { continue };
        if parked.len() < limit && try_park_one(&mut set, row.try_get(0)?, &run, grace)? {
            parked.push(run.key);
        }
    }
    let forgotten = forgotten(set.now, grace).as_millis();
    let mut steps = flush::steps(&set);
    steps.push(Step::new(FORGET, vec![Box::new(forgotten), Box::new(number(limit as u64))]));
    session.commit(steps).await?;
    Ok(parked)
}

/// Ready runs by priority, namespace and age, then those whose owner's lease is over.
async fn unserved(session: &mut Session, lapsed: &[Row], cutoff: i64, limit: usize) -> Result<Vec<Row>, Failure> {
    let (limit, scan) = (number(limit as u64), number(UNSERVED_SCAN_MAX as u64));
    let mut steps = vec![Step::new(UNSERVED, vec![Box::new(cutoff), Box::new(limit), Box::new(scan)])];
    for row in lapsed {
        let owner: i64 = row.try_get(0)?;
        steps.push(Step::new(ORPHANED, vec![Box::new(owner), Box::new(cutoff), Box::new(limit)]));
    }
    Ok(session.send_all(&steps).await?.into_iter().flatten().collect())
}

fn try_park_one(set: &mut WorkingSet, ns: i32, run: &RunRow, grace: Duration) -> Result<bool, Failure> {
    set.hold(ns, run.clone());
    park(set, run, grace).map_err(|fault| match fault {
        Fault::Failed(error) => error.into(),
        Fault::Miss => {
            StoreError::unavailable(crate::Trouble::Other, "a row was asked for that was not fetched").into()
        }
    })
}
