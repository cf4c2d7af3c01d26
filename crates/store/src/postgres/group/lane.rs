//! A lane takes groups from the queue and commits them, one after the other.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::join;
use outlast_core::id::TxnId;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{Ending, GROUP_BYTES_MAX, GROUP_ITEMS_MAX, Job, Jobs, Line, SHARE_MIN, advance};
use crate::error::{StoreError, Trouble};
use crate::postgres::failure::{Failure, Remedy, commit_was_refused};
use crate::postgres::needs::Needs;
use crate::postgres::session::{Session, Step};
use crate::postgres::working_set::WorkingSet;
use crate::postgres::{ATTEMPTS_MAX, Core, fetch, flush};

/// More rounds of fetching than any item can need; a bug, not a load.
pub(in super::super) const ROUNDS_MAX: usize = 256;

/// How often nobody may have come before a group is closed.
const QUIET_YIELDS: u32 = 2;

pub(in super::super) const INSERT_TXN: &str = "INSERT INTO txn (id, applied) VALUES ($1, true)";

/// Works until the queue is closed and empty.
pub(super) async fn run(core: Arc<Core>, line: Arc<Line>) {
    while let Some(jobs) = next_group(&line).await {
        let taken = jobs.len();
        crate::meters::group(taken);
        // A panic must not take the lane along: its callers get no answer, the next ones do.
        let _ = AssertUnwindSafe(commit_group(&core, jobs)).catch_unwind().await;
        line.taken.fetch_sub(taken, Ordering::Relaxed);
    }
}

/// Commits a group and gives the answers. What only advances runs goes apart, because it needs one round trip where
/// everything else needs two.
async fn commit_group(core: &Core, jobs: Jobs) {
    let (plain, others) = advance::split(core, jobs);
    join(advance(core, plain), answer(core, others)).await;
}

async fn advance(core: &Core, mut jobs: Jobs) {
    if jobs.is_empty() {
        return;
    }
    match advance::commit(core, &mut jobs).await {
        // Whatever is still open goes the long way, which says why or tries again.
        Ok(()) | Err(Failure { remedy: Remedy::Again | Remedy::Isolate, .. }) => {}
        Err(failure) => jobs.iter_mut().for_each(|job| job.settle(&Ending::Failed(&failure.error))),
    }
    answer(core, jobs).await;
}

/// Commits what is open and gives the answers.
async fn answer(core: &Core, mut jobs: Jobs) {
    if jobs.iter().any(|job| job.is_open()) {
        commit(core, &mut jobs).await;
    }
    jobs.into_iter().for_each(Job::answer);
}

/// This lane's share of all that is asked and not answered, as far as it waits; at least one batch. If a lane took
/// everything that waits, all callers would soon move in one group, through one lane, with the others idle.
async fn next_group(line: &Line) -> Option<Jobs> {
    let mut waiting = line.waiting.lock().await;
    let first = waiting.recv().await?;
    gather(&waiting).await;
    let asked = line.taken.load(Ordering::Relaxed) + waiting.len() + 1;
    let share = asked.div_ceil(line.lanes).max(SHARE_MIN);
    let (mut items, mut bytes) = (first.items(), first.weight());
    let mut jobs = vec![first];
    while jobs.len() < share && items < GROUP_ITEMS_MAX && bytes < GROUP_BYTES_MAX {
        let Ok(job) = waiting.try_recv() else { break };
        items += job.items();
        bytes += job.weight();
        jobs.push(job);
    }
    line.taken.fetch_add(jobs.len(), Ordering::Relaxed);
    Some(jobs)
}

/// Lets callers that are about to ask do so, for as long as they come: those whose answers were just given have their
/// next question ready in a moment, and a transaction for the first of them alone would make all others wait for its
/// sync. This takes no time of its own; somebody who asks alone is not delayed.
async fn gather(waiting: &mpsc::Receiver<Box<dyn Job>>) {
    let mut quiet = 0;
    let mut seen = waiting.len();
    while quiet < QUIET_YIELDS && seen < GROUP_ITEMS_MAX {
        tokio::task::yield_now().await;
        let now = waiting.len();
        quiet = if now > seen { 0 } else { quiet + 1 };
        seen = now;
    }
}

/// Commits a group; afterwards every item is settled.
async fn commit(core: &Core, jobs: &mut Jobs) {
    match attempts(core, jobs).await {
        Ok(()) => {}
        Err(Failure { remedy: Remedy::Isolate, .. }) if jobs.iter().map(|job| job.items()).sum::<usize>() > 1 => {
            isolate(core, jobs).await;
        }
        Err(failure) => jobs.iter_mut().for_each(|job| job.settle(&Ending::Failed(&failure.error))),
    }
}

/// One item made the database refuse the whole group: each gets a transaction of its own.
async fn isolate(core: &Core, jobs: &mut Jobs) {
    for job in jobs {
        for item in 0..job.items() {
            job.focus(Some(item));
            let alone = std::slice::from_mut(job);
            if let Err(failure) = attempts(core, alone).await {
                job.settle(&Ending::Failed(&failure.error));
            }
        }
        job.focus(None);
    }
}

async fn attempts(core: &Core, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    let mut attempt = 1;
    loop {
        let mut session = Session::begin(&core.pool).await?;
        let ended = transaction(core, &mut session, jobs).await;
        session.rollback().await;
        match ended {
            Err(Failure { remedy: Remedy::Again, .. }) if attempt < ATTEMPTS_MAX => attempt += 1,
            ended => return ended,
        }
    }
}

async fn transaction(core: &Core, session: &mut Session, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    let set = decide(core, session, jobs).await?;
    let mut steps = flush::steps(&set);
    if steps.is_empty() {
        jobs.iter_mut().for_each(|job| job.settle(&Ending::Applied));
        return Ok(());
    }
    let txn = TxnId(Uuid::now_v7());
    if jobs.iter().any(|job| job.must_resolve()) {
        steps.push(Step::new(INSERT_TXN, vec![Box::new(txn.0)]));
    }
    match send_commit(session, steps).await? {
        Committed::Yes => {
            jobs.iter_mut().for_each(|job| job.settle(&Ending::Applied));
            if flush::wakes_anybody(&set) {
                core.hint();
            }
        }
        Committed::Unknown => jobs.iter_mut().for_each(|job| job.settle(&Ending::Unknown(txn))),
    }
    Ok(())
}

/// Fetches rows and runs the logic over them until it asks for nothing that is not there.
async fn decide(core: &Core, session: &mut Session, jobs: &mut [Box<dyn Job>]) -> Result<WorkingSet, Failure> {
    let mut needs = Needs::default();
    jobs.iter().for_each(|job| job.needs(&mut needs));
    let mut set = WorkingSet::default();
    fetch::begin(core, session, &mut set, &needs).await?;
    for _ in 0..ROUNDS_MAX {
        let passes: Vec<_> = jobs.iter_mut().map(|job| job.apply(&mut set, &core.limits)).collect();
        if passes.iter().all(|pass| !pass.missed && !pass.failed) {
            return Ok(set);
        }
        let missing = set.restart();
        if !missing.is_empty() {
            fetch::more(core, session, &mut set, &missing).await?;
        }
    }
    let message = "the rows an item needs could not be gathered";
    Err(StoreError::unavailable(Trouble::Other, message).into())
}

pub(in super::super) enum Committed {
    Yes,
    Unknown,
}

/// Writes and commits in one round trip. Fails only if certainly nothing was applied.
pub(in super::super) async fn send_commit(
    session: &mut Session,
    mut steps: Vec<Step<'_>>,
) -> Result<Committed, Failure> {
    steps.push(Step::Plain("COMMIT"));
    let mut answers = session.send(&steps).await?;
    let committed = answers.pop();
    for answer in answers {
        match answer {
            Ok(_) => {}
            // A write the server refused: the transaction is aborted, and COMMIT only ends it.
            Err(error) if error.as_db_error().is_some() => return Err(error.into()),
            Err(_) => return Ok(Committed::Unknown),
        }
    }
    match committed {
        Some(Ok(_)) => {
            session.closed();
            Ok(Committed::Yes)
        }
        Some(Err(error)) if commit_was_refused(&error) => Err(error.into()),
        Some(Err(_)) | None => Ok(Committed::Unknown),
    }
}
