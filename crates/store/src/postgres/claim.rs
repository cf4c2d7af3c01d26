//! Claims of runs: rows that others hold are skipped, never waited for.

use outlast_core::id::RunKey;
use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_core::planted;
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::decode::{self, Damaged, Fields, claim_number, number, run_columns};
use super::failure::Failure;
use super::session::{CLOCK, Param, Session, Step};
use super::turns::{self, Levels, Read, Ready, numbers};
use super::working_set::WorkingSet;
use super::{Core, flush, transact};
use crate::api::{Claim, Claimed, Serves};
use crate::error::StoreError;
use crate::logic::Halt;
use crate::logic::claim::{check_lease, for_orphans, take_over};
use crate::logic::turns::{Ask, Round};
use crate::rows::{Fault, RunRow};

/// What this claim took before: its reply was lost. Here the lock is waited for, because a row that is skipped now
/// would stay with an owner who does not know of it.
pub(super) const HELD: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run r WHERE r.owner = $1 AND r.claim = $2 AND r.seq <> ALL($4::bigint[]) ORDER BY r.seq LIMIT $3 FOR UPDATE"
);

macro_rules! is_ready {
    () => {
        "r.ready_at IS NOT NULL AND r.owner IS NULL AND r.status < 3"
    };
}
/// The lines of ready runs, by priority (negated) and namespace: from one to the next, without reading what is in them.
macro_rules! lines {
    () => {
        concat!(
            "WITH RECURSIVE line AS ((SELECT - r.priority::int AS level, r.ns + 0 AS ns FROM run r WHERE ",
            $crate::postgres::claim::is_ready!(),
            " ORDER BY - r.priority::int, r.ns + 0, r.ready_at, r.seq LIMIT 1) \
              UNION ALL SELECT n.level, n.ns FROM line l CROSS JOIN LATERAL \
              (SELECT - r.priority::int AS level, r.ns + 0 AS ns FROM run r WHERE ",
            $crate::postgres::claim::is_ready!(),
            " AND (- r.priority::int, r.ns + 0) > (l.level, l.ns) \
              ORDER BY - r.priority::int, r.ns + 0, r.ready_at, r.seq LIMIT 1) n) "
        )
    };
}
pub(super) use {is_ready, lines};

pub(super) const LINES: &str = concat!(lines!(), "SELECT level, ns FROM line");

/// The first ones of some lines. No id contains a control character, so the pair of workflow and version can be compared as one
/// text.
pub(super) const READY: &str = concat!(
    "SELECT r.* FROM unnest($1::int[]) k (ns) CROSS JOIN LATERAL (SELECT ",
    run_columns!(),
    " FROM run r WHERE ",
    is_ready!(),
    " AND - r.priority::int = $2 AND r.ns + 0 = k.ns \
      AND ($3::text[] IS NULL OR r.workflow || chr(31) || r.version = ANY($3)) AND r.seq <> ALL($4::bigint[]) \
      ORDER BY r.ready_at, r.seq LIMIT $5 FOR UPDATE SKIP LOCKED) r"
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
const PARK: &str = "UPDATE run SET status = 4, owner = NULL, claim = NULL, note = $2, \
     parked_at = (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) WHERE seq = $1";

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
    let mut search =
        Search { core, served: served(&claim.serves), skipped, set: WorkingSet::default(), damaged: Vec::new() };
    let mut runs = candidates(core, session, claim, &mut search).await?;
    runs.truncate(limit);
    let Search { mut set, damaged, .. } = search;
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

/// Ready runs that a claimer can drive.
struct Search<'c> {
    core: &'c Core,
    served: Option<Vec<String>>,
    skipped: &'c [i64],
    set: WorkingSet,
    /// Rows that cannot be read.
    damaged: Vec<Damaged>,
}

type Found = (i32, RunRow);

impl Search<'_> {
    async fn readable(&mut self, session: &mut Session, rows: &[Row]) -> Result<Vec<Found>, Failure> {
        self.core.namespaces.cover(session, rows).await?;
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            match decode::run(row, &self.core.namespaces) {
                Ok(run) => runs.push((row.try_get(0)?, run)),
                Err(damaged) => self.damaged.push(damaged),
            }
        }
        Ok(runs)
    }

    /// Sends statements that lock, and then reads the clock.
    async fn locking(&mut self, session: &mut Session, mut steps: Vec<Step<'_>>) -> Result<Vec<Row>, Failure> {
        steps.push(Step::new(CLOCK, Vec::new()));
        let mut answers = session.send_all(&steps).await?;
        self.set.now = self.core.now(&answers.pop().unwrap_or_default())?;
        Ok(answers.into_iter().flatten().collect())
    }
}

impl Ready for Search<'_> {
    type Item = Found;

    async fn lock(&mut self, session: &mut Session, level: i32, ask: &Ask) -> Result<Read<Found>, Failure> {
        let params: Vec<Param<'_>> = vec![
            Box::new(numbers(ask)),
            Box::new(level),
            Box::new(self.served.clone()),
            Box::new(self.skipped.to_vec()),
            Box::new(number(ask.each as u64)),
        ];
        let rows = self.locking(session, vec![Step::new(READY, params)]).await?;
        let mut read = Read::new();
        for found in self.readable(session, &rows).await? {
            read.entry(i64::from(found.0)).or_default().push(found);
        }
        read.values_mut().for_each(|runs| runs.sort_by_key(|(_, run)| (run.ready_at, run.row)));
        Ok(read)
    }
}

/// Locks what may be claimed, then reads the clock.
async fn candidates(
    core: &Core,
    session: &mut Session,
    claim: &Claim,
    search: &mut Search<'_>,
) -> Result<Vec<Found>, Failure> {
    let limit = claim.limit.min(CLAIM_BATCH_MAX);
    let (lease, most, skipped) = (number(claim.lease.0), number(limit as u64), search.skipped.to_vec());
    let held = vec![Box::new(lease) as Param<'_>, Box::new(claim_number(claim.id)), Box::new(most), Box::new(skipped)];
    let early = if planted!("postgres-claimed-twice") { 86_400_000 } else { 0 };
    let lapsed_at = core.manual_now().map(|now| now + early);
    let steps = [
        Step::Plain("BEGIN"),
        Step::new(LOCK_LEASE, vec![Box::new(lease)]),
        Step::new(HELD, held),
        Step::new(LINES, Vec::new()),
        Step::new(LAPSED, vec![Box::new(lapsed_at)]),
        Step::new(CLOCK, Vec::new()),
    ];
    let answers = session.send_all(&steps).await?;
    let [_, until, held, lines, lapsed, clock] = answers.as_slice() else { return Err(missing_answer()) };
    search.set.now = core.now(clock)?;
    let until = until.first().map(|row| row.try_get(0)).transpose()?;
    search.set.facts.leases.insert(claim.lease, until.map(Timestamp::from_millis));
    // Before anybody has a turn: whoever may not claim must not use one up.
    refused(check_lease(&mut search.set, claim.lease))?;
    let mut found = search.readable(session, held).await?;
    let mut levels = Levels::new();
    for row in lines {
        levels.entry(row.try_get(0)?).or_default().push(i64::from(row.try_get::<_, i32>(1)?));
    }
    let room = limit.saturating_sub(found.len());
    let mut orphans = orphans(session, search, lapsed, room).await?.into_iter();
    found.extend(orphans.by_ref().take(for_orphans(room)));
    let room = limit.saturating_sub(found.len());
    found.extend(turns::take(core, session, search, levels, Round::Runs, room).await?);
    found.extend(orphans);
    Ok(found)
}

/// Locks runs whose owners are gone, at most so many of each.
async fn orphans(
    session: &mut Session,
    search: &mut Search<'_>,
    lapsed: &[Row],
    most: usize,
) -> Result<Vec<Found>, Failure> {
    if lapsed.is_empty() || most == 0 {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for row in lapsed {
        let owner: i64 = row.try_get(0)?;
        let (served, skipped) = (search.served.clone(), search.skipped.to_vec());
        let params: Vec<Param<'_>> =
            vec![Box::new(owner), Box::new(number(most as u64)), Box::new(served), Box::new(skipped)];
        steps.push(Step::new(ORPHANED, params));
    }
    let rows = search.locking(session, steps).await?;
    search.readable(session, &rows).await
}

pub(super) fn missing_answer() -> Failure {
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
