//! The rules of a store, written once over [`Rows`].
//!
//! Each function first decides, then writes: when it refuses, nothing has been written. So a store may run many of
//! them in one transaction, and one refusal does not touch its neighbours.

pub(crate) mod admit;
pub(crate) mod claim;
pub(crate) mod commit;
pub(crate) mod create;
pub(crate) mod definition;
pub(crate) mod deliver;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod start;
pub(crate) mod task;
pub(crate) mod turns;
pub(crate) mod worker;

use outlast_core::id::{Index, Key, RunKey};

use crate::api::{Awaited, TaskState};
use crate::error::StoreError;
use crate::rows::{Fault, Rows, RunRow, TaskRow, TimerRow, WaitRow, WaitState};

/// Why a piece of logic stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt<X> {
    /// The rows could not be had; nothing is decided.
    Fault(Fault),
    /// The request is refused; nothing was written.
    Refused(X),
}

impl<X> From<Fault> for Halt<X> {
    fn from(fault: Fault) -> Self {
        Halt::Fault(fault)
    }
}

/// Refuses.
pub(crate) fn refuse<T, X>(refusal: impl Into<X>) -> Result<T, Halt<X>> {
    Err(Halt::Refused(refusal.into()))
}

/// What a reason for deleting is called where it is too long.
pub(crate) const DELETION: &str = "the reason for a deletion";

/// The run, unless there is none or it was deleted.
pub(crate) fn live_row(rows: &mut dyn Rows, key: &RunKey) -> Result<RunRow, Halt<StoreError>> {
    match rows.run(key)? {
        None => refuse(StoreError::NotFound(key.clone())),
        Some(run) if run.deleted_at.is_some() => refuse(run.deleted()),
        Some(run) => Ok(run),
    }
}

/// Assert on both sides of the disk: what was loaded must reach exactly to the journal's end.
pub(crate) fn check_contiguous(run: &RunRow, first: Index, events: usize) -> Result<(), StoreError> {
    let expected = run.next.0.saturating_sub(first.0);
    if events as u64 == expected {
        return Ok(());
    }
    let detail = format!("the journal has {events} events from index {first}, it should have {expected}");
    Err(StoreError::corrupt(run.key.to_string(), detail))
}

/// A running timer, as people and tools see it.
pub(crate) fn awaited_timer(timer: TimerRow) -> Awaited {
    Awaited::Timer { key: timer.timer.key, kind: timer.timer.kind, due: timer.due }
}

/// An open wait, as people and tools see it.
pub(crate) fn awaited_wait(wait: &WaitRow) -> Awaited {
    Awaited::Wait {
        key: wait.key.clone(),
        kind: wait.kind,
        name: wait.name.as_ref().map(ToString::to_string),
        assignee: wait.assignee.clone(),
        answered: wait.state == WaitState::Answered,
        meta: wait.meta.clone(),
        since: wait.since,
    }
}

/// A task the run awaits, as people and tools see it.
pub(crate) fn awaited_task(task: &TaskRow, run: &RunRow) -> Option<Awaited> {
    let (owner, key) = task.awaited.as_ref()?;
    // A dead task is awaited no more: its failure is in the inbox, or was fed.
    let mine = task.namespace == run.key.namespace && *owner == run.key.id && task.state != TaskState::Dead;
    mine.then(|| Awaited::Task { key: key.clone(), id: task.id.clone(), state: task.state })
}

/// A child the run waits for, as people and tools see it.
pub(crate) fn awaited_child(child: &RunRow, run: &RunRow) -> Option<Awaited> {
    let parent = child.parent.as_ref()?;
    let mine = child.key.namespace == run.key.namespace
        && parent.run == run.key.id
        && parent.generation == run.generation
        && !parent.detached
        && !child.status.is_terminal()
        && !run.status.is_terminal();
    mine.then(|| Awaited::Child { key: parent.key.clone(), run: child.key.id.clone(), status: child.status })
}

/// By key, and children of one key by their ids, so that every store gives the same order.
pub(crate) fn sort_awaited(awaited: &mut [Awaited]) {
    let child = |awaited: &Awaited| match awaited {
        Awaited::Child { run, .. } => Some(run.clone()),
        Awaited::Timer { .. } | Awaited::Wait { .. } | Awaited::Task { .. } => None,
    };
    awaited.sort_by(|a, b| awaited_key(a).cmp(awaited_key(b)).then_with(|| child(a).cmp(&child(b))));
}

fn awaited_key(awaited: &Awaited) -> &Key {
    match awaited {
        Awaited::Timer { key, .. }
        | Awaited::Wait { key, .. }
        | Awaited::Task { key, .. }
        | Awaited::Child { key, .. } => key,
    }
}
