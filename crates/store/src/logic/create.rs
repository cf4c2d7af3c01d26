//! Creating runs.

use bytes::Bytes;
use outlast_core::commit::{NewRun, NewWait, Status};
use outlast_core::id::{Fence, Generation, InboxId, Index, RunId, RunKey};
use outlast_core::limits::{LimitExceeded, Limits, within};
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::start::{self, Other};
use super::{Halt, deliver, refuse};
use crate::api::Created;
use crate::error::StoreError;
use crate::rows::{HeldRow, Rows, RunRow, TimerRow, WaitRow};

/// Creates a run, or finds it again: the same id with the same workflow, parent and input.
pub(crate) fn create(rows: &mut dyn Rows, new: &NewRun, limits: &Limits) -> Result<Created, Halt<StoreError>> {
    start::check(new).map_err(Halt::Refused)?;
    check_limits(new, limits).map_err(|error| Halt::Refused(error.into()))?;
    if !rows.has_namespace(&new.run.namespace)? {
        return refuse(StoreError::UnknownNamespace(new.run.namespace.clone()));
    }
    let found = rows.run(&new.run)?;
    // Whoever repeats a start names the run that it made; only a new one looks for another.
    let other = if found.is_none() { start::other(rows, new)? } else { Other::None };
    let signals = signals_after(rows, found.as_ref().or(other.joined()), new)?;
    within("the number of signals nobody consumed", signals, limits.unconsumed_signals, "signals")
        .map_err(|error| Halt::Refused(error.into()))?;
    let target = other.joined().map_or_else(|| new.run.clone(), |run| run.key.clone());
    let created = match (found, other) {
        (Some(run), _) => existing(rows, &run, new)?,
        (None, Other::Joined(run)) => start::join(rows, &run, new)?,
        (None, other @ (Other::None | Other::Replaced(_))) => {
            if let Some(owner) = new.owner {
                super::claim::check_lease(rows, owner.lease)?;
            }
            let created = insert(rows, new)?;
            start::settle(rows, new, other, limits)?;
            created
        }
    };
    for signal in &new.signals {
        deliver::signal(rows, &target, signal, limits)?;
    }
    Ok(created)
}

/// How many signals the run would have that nobody consumed. A start that is repeated brings the same ones again.
fn signals_after(rows: &mut dyn Rows, found: Option<&RunRow>, new: &NewRun) -> Result<usize, Halt<StoreError>> {
    let Some(run) = found else { return Ok(new.signals.len()) };
    let mut fresh = 0;
    for signal in &new.signals {
        fresh += usize::from(!rows.was_delivered(run, &signal.id)?);
    }
    Ok(if fresh == 0 { 0 } else { run.signals as usize + fresh })
}

/// What a new run brings must fit.
pub(crate) fn check_limits(new: &NewRun, limits: &Limits) -> Result<(), LimitExceeded> {
    limits.check_payload("the input", new.input.len())?;
    for (_, value) in &new.attributes {
        limits.check_attribute(value)?;
    }
    limits.check_events(new.history.len())?;
    for record in &new.history {
        limits.check_event(record)?;
    }
    check_waits(&new.waits, limits)?;
    let said = new.admission.as_ref().and_then(|admission| admission.single.as_ref()?.meta.as_ref());
    limits.check_payload("what a singleton says to the one before", said.map_or(0, Bytes::len))?;
    within("the number of signals with the start", new.signals.len(), limits.unconsumed_signals, "signals")?;
    for signal in &new.signals {
        limits.check_payload("a signal's payload", signal.payload.len())?;
    }
    Ok(())
}

/// What people and tools are told about waits must fit.
pub(crate) fn check_waits(waits: &[NewWait], limits: &Limits) -> Result<(), LimitExceeded> {
    for wait in waits {
        limits.check_payload("a wait's description", wait.meta.as_ref().map_or(0, Bytes::len))?;
        limits.check_text("a wait's token", wait.token.as_deref().unwrap_or_default())?;
        limits.check_text("a wait's assignee", wait.assignee.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

fn existing(rows: &mut dyn Rows, run: &RunRow, new: &NewRun) -> Result<Created, Halt<StoreError>> {
    let differs = |what| StoreError::Exists { run: new.run.clone(), what };
    if run.deleted_at.is_some() {
        return refuse(run.deleted());
    }
    if run.workflow != new.workflow {
        return refuse(differs("workflow"));
    }
    if run.parent != new.parent {
        return refuse(differs("parent"));
    }
    // A debounced start may have replaced its input since.
    let debounced = new.admission.as_ref().is_some_and(|admission| admission.debounce.is_some());
    if !debounced && rows.input(run, Generation(0))? != new.input && !planted!("start-ignores-input") {
        return refuse(differs("input"));
    }
    // The same owner asks again because the reply was lost: it holds the run, so it must learn the fence.
    let untouched = run.next == Index(new.history.len() as u64) && run.generation == Generation(0);
    match new.owner {
        Some(owner) if run.owner == Some(owner.lease) && run.claim == Some(owner.claim) && untouched => {
            Ok(Created::Created { fence: run.fence, at: run.created_at })
        }
        _ => Ok(Created::Existing { status: run.status }),
    }
}

/// Inserts a run that was checked to be new, within limits and, if owned, under a live lease.
pub(crate) fn insert(rows: &mut dyn Rows, new: &NewRun) -> Result<Created, Halt<StoreError>> {
    let now = rows.now();
    let root = root_of(rows, new)?;
    let mut run = fresh(new, root, now);
    run.row = rows.insert_run(&run, &new.input)?;
    if let Some(admission) = new.admission.as_ref().filter(|admission| admission.holds()) {
        rows.put_held(&HeldRow::new(&run, admission, now))?;
    }
    if !new.history.is_empty() {
        rows.append(&run, Index(0), &new.history)?;
    }
    for timer in &new.timers {
        rows.put_timer(&run, &TimerRow { timer: timer.timer.clone(), due: timer.due })?;
    }
    for wait in &new.waits {
        rows.put_wait(&run, &WaitRow::open(wait, now))?;
    }
    for (name, value) in &new.attributes {
        rows.put_attribute(&run, name, Some(value))?;
    }
    Ok(Created::Created { fence: run.fence, at: now })
}

fn root_of(rows: &mut dyn Rows, new: &NewRun) -> Result<Option<RunId>, Halt<StoreError>> {
    let Some(parent) = new.parent.as_ref().filter(|parent| !parent.detached) else { return Ok(None) };
    let key = RunKey::new(new.run.namespace.clone(), parent.run.clone());
    // A parent that is not there, or no longer, dooms nobody: without it the run is the top of its own tree.
    let found = rows.run(&key)?.filter(|found| found.deleted_at.is_none());
    Ok(found.map(|found| found.root.unwrap_or_else(|| parent.run.clone())))
}

fn fresh(new: &NewRun, root: Option<RunId>, now: Timestamp) -> RunRow {
    let held = new.admission.as_ref().is_some_and(|admission| admission.holds());
    RunRow {
        row: 0,
        key: new.run.clone(),
        workflow: new.workflow.clone(),
        version: new.version.clone(),
        status: if new.owner.is_some() { Status::Running } else { Status::Queued },
        generation: Generation(0),
        next: Index(new.history.len() as u64),
        fence: if new.owner.is_some() { Fence(1) } else { Fence(0) },
        owner: new.owner.map(|owner| owner.lease),
        claim: new.owner.map(|owner| owner.claim),
        ready_at: if new.owner.is_some() || held { None } else { Some(now) },
        priority: new.priority,
        tries: 0,
        parent: new.parent.clone(),
        root,
        created_at: now,
        finished_at: None,
        note: None,
        parked_at: None,
        deleted_at: None,
        inbox_next: InboxId(0),
        signals: 0,
        answered: 0,
        next_place: None,
        side: !(new.timers.is_empty() && new.waits.is_empty()),
        controlled: held,
    }
}
