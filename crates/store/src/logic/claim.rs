//! Ownership: leases, claims, wakes, releases.

use outlast_core::commit::Status;
use outlast_core::id::{Fence, Generation, Index, LeaseId, RunKey};
use outlast_core::limits::TRIES_MAX;
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::{Halt, live_row, refuse};
use crate::api::{Claim, Claimed, Pick, Release, Serves, Take};
use crate::error::StoreError;
use crate::rows::{Rows, RunRow};

/// A lease is over from `until` on.
pub(crate) fn lapsed(until: Timestamp, now: Timestamp) -> bool {
    until <= now
}

/// Refuses unless the lease is live.
pub(crate) fn check_lease(rows: &mut dyn Rows, lease: LeaseId) -> Result<(), Halt<StoreError>> {
    match rows.lease_until(lease)? {
        Some(until) if !lapsed(until, rows.now()) => Ok(()),
        until => refuse(StoreError::LeaseLapsed { lease, until: until.unwrap_or(Timestamp::EPOCH) }),
    }
}

/// Of the room in a claim, what runs get whose owner is gone, before any that is ready: in a long line they would never be
/// taken over. Half of it, because one of them may be what killed its owner, and the others must go on.
pub(crate) fn for_orphans(room: usize) -> usize {
    if planted!("orphans-last") { 0 } else { room.div_ceil(2) }
}

/// Whether the claimer can drive the run.
pub(crate) fn serves(serves: &Serves, run: &RunRow) -> bool {
    match serves {
        Serves::Everything => true,
        Serves::Only(served) => served.iter().any(|(name, version)| {
            *name == run.workflow && (*version == run.version || planted!("claim-ignores-version"))
        }),
    }
}

/// Takes a run the store picked: a ready one without owner, one whose owner's lease lapsed, or one this very claim
/// holds already. None if it was parked because it was taken too often without progress.
pub(crate) fn take_over(rows: &mut dyn Rows, run: &RunRow, claim: &Claim) -> Result<Option<Claimed>, Halt<StoreError>> {
    let now = rows.now();
    if run.owner == Some(claim.lease) && run.claim == Some(claim.id) {
        return Ok(Some(claimed(run, run.status, now)));
    }
    let mut after = run.clone();
    // Not released since it was last claimed: its driver died in the middle. Counted here, in the claim itself, so
    // that a run that kills every driver parks, whatever became of their leases.
    // A seizure is no try, and gets a poisonous run too: how else could it be terminated or repaired?
    let seize = matches!(claim.pick, Pick::Seize(_));
    if run.is_held() && !seize {
        // Whoever seized it to end it is gone: it is held back as before, and must not begin.
        after.disown();
        rows.update_run(run, &after)?;
        rows.rehold(run)?;
        return Ok(None);
    }
    if run.owner.is_some() && !seize && !planted!("poison-not-counted") {
        after.tries = run.tries.saturating_add(1);
    }
    if after.tries >= TRIES_MAX && !seize {
        let why = format!(
            "claimed {TRIES_MAX} times without progress: a turn of this run kills its driver; fix the workflow, then unpark"
        );
        after.disown();
        after.park(why, now);
        rows.update_run(run, &after)?;
        return Ok(None);
    }
    after.fence = run.fence.next();
    after.owner = Some(claim.lease);
    after.claim = Some(claim.id);
    after.ready_at = None;
    if !run.is_held() {
        after.status = Status::Running;
    }
    rows.update_run(run, &after)?;
    Ok(Some(claimed(&after, run.status, now)))
}

/// Claims the one run a [`Pick::Run`] or [`Pick::Seize`] names, if it may be had.
pub(crate) fn claim_named(
    rows: &mut dyn Rows,
    key: &RunKey,
    claim: &Claim,
) -> Result<Option<Claimed>, Halt<StoreError>> {
    let run = live_row(rows, key)?;
    let seize = matches!(claim.pick, Pick::Seize(_));
    let mine = run.owner == Some(claim.lease) && run.claim == Some(claim.id);
    let free = match run.owner {
        None => run.ready_at.is_some() && run.status.is_claimable(),
        Some(owner) => match rows.lease_until(owner)? {
            Some(until) => lapsed(until, rows.now()),
            None => true,
        },
    };
    // Whoever cannot drive it must not get it: it would park a run that others serve.
    let had = mine || seize || (free && serves(&claim.serves, &run));
    if run.status.is_terminal() || !had { Ok(None) } else { take_over(rows, &run, claim) }
}

fn claimed(run: &RunRow, was: Status, now: Timestamp) -> Claimed {
    Claimed {
        run: run.key.clone(),
        fence: run.fence,
        generation: run.generation,
        next: run.next,
        workflow: run.workflow.clone(),
        version: run.version.clone(),
        parent: run.parent.clone(),
        tries: run.tries,
        was,
        inbox: None,
        now,
    }
}

/// The run, if it is held under that fence.
fn held(rows: &mut dyn Rows, key: &RunKey, fence: Fence) -> Result<RunRow, Halt<StoreError>> {
    let run = live_row(rows, key)?;
    if run.owner.is_none() || run.fence != fence {
        return refuse(StoreError::Fenced { run: key.clone(), held: fence });
    }
    Ok(run)
}

/// Takes the unclaimed resume of an owned run, unless something came that its owner has not read. While a run is owned every
/// wake comes with an inbox item, so the items tell one wake from another: a call that was delayed, and whose sender has
/// long gone on, takes only what was read then.
pub(crate) fn take(rows: &mut dyn Rows, take: &Take) -> Result<bool, Halt<StoreError>> {
    let run = held(rows, &take.run, take.fence)?;
    if run.inbox_next != take.read && !planted!("unread-wake-taken") {
        return Ok(false);
    }
    let after = RunRow { ready_at: None, ..run.clone() };
    rows.update_run(&run, &after)?;
    Ok(true)
}

/// Gives a run back without appending. A wake that came meanwhile is its unclaimed resume and outlives the turn.
pub(crate) fn release(rows: &mut dyn Rows, release: &Release) -> Result<(), Halt<StoreError>> {
    let run = held(rows, &release.run, release.fence)?;
    let mut after = run.clone();
    after.disown();
    if run.is_held() {
        rows.update_run(&run, &after)?;
        rows.rehold(&run)?;
        return Ok(());
    }
    let untouched = run.next == Index(0) && run.generation == Generation(0);
    // A run that was never driven has nothing else that would wake it. Before it is queued: what is queued and not ready is
    // held back.
    if release.again || untouched {
        after.wake(rows.now());
    }
    after.status = if untouched { Status::Queued } else { Status::Waiting };
    rows.update_run(&run, &after)?;
    Ok(())
}

/// Lets a parked run go on.
pub(crate) fn unpark(rows: &mut dyn Rows, key: &RunKey) -> Result<bool, Halt<StoreError>> {
    let run = live_row(rows, key)?;
    if run.status != Status::Parked {
        return Ok(false);
    }
    let mut after = run.clone();
    after.status = Status::Queued;
    (after.note, after.parked_at) = (None, None);
    after.tries = 0;
    // Ready from now on, whatever woke it meanwhile: it must not park again at once for having waited too long. One that
    // was held back still is.
    let held = run.controlled && rows.held(&run)?.is_some();
    after.ready_at = (!held).then(|| rows.now());
    rows.update_run(&run, &after)?;
    if held {
        rows.rehold(&run)?;
    }
    Ok(true)
}
