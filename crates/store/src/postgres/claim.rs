//! Claims of runs: rows that others hold are skipped, never waited for.

use outlast_core::id::RunKey;
use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::decode::{self, Damaged, Fields, claim_number, number, run_columns};
use super::failure::Failure;
use super::session::{CLOCK, Session, Step};
use super::working_set::WorkingSet;
use super::{Core, flush, transact};
use crate::api::{Claim, Claimed, Serves};
use crate::error::StoreError;
use crate::logic::Halt;
use crate::logic::claim::{check_lease, take_over};
use crate::rows::{Fault, RunRow};

/// What this claim took before: its reply was lost. Here the lock is waited for, because a row that is skipped now
/// would stay with an owner who does not know of it.
pub(super) const HELD: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run r WHERE r.owner = $1 AND r.claim = $2 AND r.seq <> ALL($4::bigint[]) ORDER BY r.seq LIMIT $3 FOR UPDATE"
);

/// No id contains a control character, so the pair of workflow and version can be compared as one text.
pub(super) const READY: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run r WHERE r.ready_at IS NOT NULL AND r.owner IS NULL AND r.status < 3 \
      AND ($2::text[] IS NULL OR r.workflow || chr(31) || r.version = ANY($2)) AND r.seq <> ALL($3::bigint[]) \
      ORDER BY r.priority DESC, r.ready_at, r.seq LIMIT $1 FOR UPDATE SKIP LOCKED"
);

/// Lapsed leases that still own runs. Asked from the leases' side: the index over owners is full of dead entries of
/// those that are alive and busy.
pub(super) const LAPSED: &str = "SELECT l.id FROM lease l WHERE NOT l.drained AND l.until <= \
     coalesce($1::bigint, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) \
     AND EXISTS (SELECT 1 FROM run r WHERE r.owner = l.id OFFSET 0) ORDER BY l.id + 0 LIMIT 64";

pub(super) const ORPHANED: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run r WHERE r.owner = $1 AND ($3::text[] IS NULL OR r.workflow || chr(31) || r.version = ANY($3)) \
      AND r.seq <> ALL($4::bigint[]) ORDER BY r.seq + 0 LIMIT $2 FOR UPDATE SKIP LOCKED"
);

/// Claims of one lease come one after the other: if the reply to one was lost while it is still in flight, the same
/// claim sent again must find what that one took, not find it locked and go away with nothing.
const LOCK_LEASE: &str = "SELECT until FROM lease WHERE id = $1 FOR UPDATE";

/// Sets a run aside that cannot be read, by its number alone.
const PARK: &str = "UPDATE run SET status = 4, owner = NULL, claim = NULL, note = $2 WHERE seq = $1";

pub(super) const WAKES: &str = "SELECT r.ns, r.id FROM run r WHERE r.owner = $1 AND r.owner IS NOT NULL \
     AND r.ready_at IS NOT NULL ORDER BY r.seq LIMIT $2";

/// Damaged rows a claim sets aside before it gives up looking further.
const DAMAGED_MAX: usize = 64;

/// Claims ready runs, and those whose owner's lease lapsed.
pub(super) async fn ready(core: &Core, claim: &Claim) -> Result<Vec<Claimed>, StoreError> {
    let mut skipped: Vec<i64> = Vec::new();
    loop {
        let attempt: Result<Attempt, StoreError> = transact!(core, |session| attempt(core, session, claim, &skipped));
        match attempt? {
            Attempt::Claimed(claimed) => return Ok(claimed),
            Attempt::Damaged(damaged) => {
                for row in &damaged {
                    park(core, row).await;
                    skipped.push(row.seq);
                }
                if skipped.len() > DAMAGED_MAX {
                    return Ok(Vec::new());
                }
            }
        }
    }
}

enum Attempt {
    Claimed(Vec<Claimed>),
    /// Some rows cannot be read; nothing was claimed.
    Damaged(Vec<Damaged>),
}

async fn attempt(core: &Core, session: &mut Session, claim: &Claim, skipped: &[i64]) -> Result<Attempt, Failure> {
    let limit = claim.limit.min(CLAIM_BATCH_MAX);
    let mut set = WorkingSet::default();
    let rows = candidates(core, session, claim, &mut set, skipped).await?;
    core.namespaces.cover(session, &rows).await?;
    let (mut runs, mut damaged): (Vec<(i32, RunRow)>, Vec<Damaged>) = (Vec::new(), Vec::new());
    for row in rows.iter().take(limit) {
        match decode::run(row, &core.namespaces) {
            Ok(run) => runs.push((row.try_get(0)?, run)),
            Err(row) => damaged.push(row),
        }
    }
    refused(check_lease(&mut set, claim.lease))?;
    if !damaged.is_empty() {
        return Ok(Attempt::Damaged(damaged));
    }
    let mut claimed = Vec::with_capacity(runs.len());
    for (ns, run) in runs {
        set.hold(ns, run.clone());
        claimed.extend(refused(take_over(&mut set, &run, claim))?);
    }
    let steps = flush::steps(&set);
    if !steps.is_empty() {
        session.commit(steps).await?;
    }
    Ok(Attempt::Claimed(claimed))
}

/// Locks what may be claimed, then reads the clock.
async fn candidates(
    core: &Core,
    session: &mut Session,
    claim: &Claim,
    set: &mut WorkingSet,
    skipped: &[i64],
) -> Result<Vec<Row>, Failure> {
    let limit = number(claim.limit.min(CLAIM_BATCH_MAX) as u64);
    let (lease, served) = (number(claim.lease.0), served(&claim.serves));
    let steps = [
        Step::Plain("BEGIN"),
        Step::new(LOCK_LEASE, vec![Box::new(lease)]),
        Step::new(
            HELD,
            vec![Box::new(lease), Box::new(claim_number(claim.id)), Box::new(limit), Box::new(skipped.to_vec())],
        ),
        Step::new(READY, vec![Box::new(limit), Box::new(served.clone()), Box::new(skipped.to_vec())]),
        Step::new(LAPSED, vec![Box::new(core.manual_now())]),
        Step::new(CLOCK, Vec::new()),
    ];
    let answers = session.send_all(&steps).await?;
    let [_, until, held, ready, lapsed, clock] = answers.as_slice() else { return Err(missing_answer()) };
    set.now = core.now(clock)?;
    let until = until.first().map(|row| row.try_get(0)).transpose()?;
    set.facts.leases.insert(claim.lease, until.map(Timestamp::from_millis));
    let mut rows: Vec<Row> = held.iter().chain(ready).cloned().collect();
    if number(rows.len() as u64) < limit && !lapsed.is_empty() {
        let mut steps = Vec::new();
        for row in lapsed {
            let owner: i64 = row.try_get(0)?;
            let params: Vec<super::session::Param<'_>> =
                vec![Box::new(owner), Box::new(limit), Box::new(served.clone()), Box::new(skipped.to_vec())];
            steps.push(Step::new(ORPHANED, params));
        }
        steps.push(Step::new(CLOCK, Vec::new()));
        let mut answers = session.send_all(&steps).await?;
        let clock = answers.pop().unwrap_or_default();
        set.now = core.now(&clock)?;
        rows.extend(answers.into_iter().flatten());
    }
    Ok(rows)
}

fn missing_answer() -> Failure {
    StoreError::unavailable(crate::error::Trouble::Other, "the server left a statement unanswered").into()
}

fn served(serves: &Serves) -> Option<Vec<String>> {
    match serves {
        Serves::Everything => None,
        Serves::Only(served) => {
            Some(served.iter().map(|(workflow, version)| format!("{workflow}\u{1f}{version}")).collect())
        }
    }
}

/// The answer of a piece of logic over rows that are all there.
pub(super) fn refused<T>(result: Result<T, Halt<StoreError>>) -> Result<T, Failure> {
    result.map_err(|halt| match halt {
        Halt::Refused(error) | Halt::Fault(Fault::Failed(error)) => error.into(),
        Halt::Fault(Fault::Miss) => {
            StoreError::unavailable(crate::error::Trouble::Other, "a row was asked for that was not fetched").into()
        }
    })
}

/// Sets a damaged run aside. If even that fails it stays where it is, and claims go around it.
pub(super) async fn park(core: &Core, row: &Damaged) {
    if let Ok(mut session) = Session::begin(&core.pool).await {
        let note = row.error.to_string();
        let _ = session.ask(PARK, vec![Box::new(row.seq), Box::new(note)]).await;
    }
}

/// Owned runs that were woken.
pub(super) async fn wakes(core: &Core, lease: i64, limit: usize) -> Result<Vec<RunKey>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let rows = session.ask(WAKES, vec![Box::new(lease), Box::new(number(limit as u64))]).await?;
    core.namespaces.cover(&mut session, &rows).await?;
    let mut woken = Vec::with_capacity(rows.len());
    for row in &rows {
        let namespace = core.namespaces.name(row.try_get(0).map_err(Failure::from)?);
        // A run without a readable name is set aside by the next claim.
        if let (Some(namespace), Ok(id)) = (namespace, Fields::from(row, 1).id()) {
            woken.push(RunKey::new(namespace, id));
        }
    }
    Ok(woken)
}
