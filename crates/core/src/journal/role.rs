//! What each event does to the operation it is about.

use crate::event::{Event, Kind};
use crate::id::Key;

pub(super) enum Role {
    /// Starts it; a detached child is settled by its start.
    Start { settled: bool },
    /// Says something about an open one, or settles it; `needs` must have started it.
    Follow { needs: Kind, settles: bool },
    /// Says something about an attempt; the first such event starts the operation.
    Attempt(Attempt),
    /// Is all there is to say.
    Whole,
    /// Cancels it.
    Cancel,
    /// Says that it cannot be had after all.
    Refuse,
}

#[derive(Clone, Copy)]
pub(super) struct Attempt {
    /// Which attempt, from 1.
    pub(super) number: u32,
    /// Whether it has ended.
    pub(super) ended: bool,
    /// Whether it may be said about an attempt that is known to have ended: a step that waits for a retry may fail.
    pub(super) may_repeat: bool,
    /// Whether the operation is settled by it.
    pub(super) settles: bool,
}

impl Attempt {
    /// Grows from the beginning of an attempt to its end, and from there to the beginning of the next.
    pub(super) fn progress(self) -> u64 {
        2 * u64::from(self.number) + u64::from(self.ended)
    }
}

/// The operation an event is about, and what it does to it; none for events of the run and of flow nodes.
pub(super) fn role(event: &Event) -> Option<(&Key, Role)> {
    let ended = |number, may_repeat, settles| Role::Attempt(Attempt { number, ended: true, may_repeat, settles });
    let settle = |needs| Role::Follow { needs, settles: true };
    match event {
        Event::StepStarted { key, attempt, .. } => {
            Some((key, Role::Attempt(Attempt { number: *attempt, ended: false, may_repeat: false, settles: false })))
        }
        Event::StepRetryScheduled { key, attempt, .. } => Some((key, ended(*attempt, false, false))),
        Event::StepFinished { key, attempts, .. } => Some((key, ended(*attempts, false, true))),
        Event::StepFailed { key, attempts, .. } => Some((key, ended(*attempts, true, true))),
        Event::ConditionChecked { key, attempt, met, next_at, .. } => {
            Some((key, ended(*attempt, false, *met || next_at.is_none())))
        }
        Event::TimerStarted { key, .. }
        | Event::SignalAwaited { key, .. }
        | Event::ApprovalRequested { key, .. }
        | Event::CallbackCreated { key, .. }
        | Event::ScopeStarted { key, .. } => Some((key, Role::Start { settled: false })),
        Event::ChildStarted { key, detached, .. } | Event::TaskScheduled { key, detached, .. } => {
            Some((key, Role::Start { settled: *detached }))
        }
        Event::TaskFinished { key, .. } | Event::TaskFailed { key, .. } => Some((key, settle(Kind::TaskScheduled))),
        Event::TimerFired { key } => Some((key, settle(Kind::TimerStarted))),
        Event::SignalResolved { key, .. } | Event::SignalTimedOut { key, .. } => {
            Some((key, settle(Kind::SignalAwaited)))
        }
        Event::SignalRejected { key, .. } => Some((key, Role::Follow { needs: Kind::SignalAwaited, settles: false })),
        Event::ApprovalResolved { key, .. } | Event::ApprovalTimedOut { key, .. } => {
            Some((key, settle(Kind::ApprovalRequested)))
        }
        Event::CallbackResolved { key, .. }
        | Event::CallbackFailed { key, .. }
        | Event::CallbackTimedOut { key, .. } => Some((key, settle(Kind::CallbackCreated))),
        Event::ChildFinished { key, .. } | Event::ChildFailed { key, .. } => Some((key, settle(Kind::ChildStarted))),
        Event::ScopeFinished { key, .. } | Event::ScopeFailed { key, .. } => Some((key, settle(Kind::ScopeStarted))),
        Event::NowRecorded { key, .. } | Event::UuidRecorded { key, .. } | Event::RandomRecorded { key, .. } => {
            Some((key, Role::Whole))
        }
        Event::OperationCancelled { key } => Some((key, Role::Cancel)),
        Event::OperationRefused { key, .. } => Some((key, Role::Refuse)),
        Event::RunStarted { .. }
        | Event::RunFinished { .. }
        | Event::RunErrored { .. }
        | Event::RunCancelled { .. }
        | Event::RunTerminated { .. }
        | Event::RunContinued { .. }
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::CancelRequested { .. }
        | Event::NodeStarted { .. }
        | Event::NodeCompleted { .. }
        | Event::NodeError { .. }
        | Event::NodeSkipped { .. }
        | Event::NodeRetried { .. }
        | Event::InterventionRefused { .. }
        | Event::ContainerIterationStarted { .. }
        | Event::ContainerIterationCompleted { .. }
        | Event::ContainerChildStarted { .. }
        | Event::ContainerChildCompleted { .. }
        | Event::LoopIterate { .. }
        | Event::StateDelta { .. }
        | Event::Custom { .. } => None,
    }
}

/// The task, child, approval, callback or signal an event names beside its key.
pub(super) fn subject(event: &Event) -> Option<&str> {
    if let Event::TaskScheduled { task, .. } | Event::TaskFinished { task, .. } | Event::TaskFailed { task, .. } = event
    {
        return Some(task.as_str());
    }
    if let Event::ChildStarted { child, .. } | Event::ChildFinished { child, .. } | Event::ChildFailed { child, .. } =
        event
    {
        return Some(child.as_str());
    }
    if let Event::ApprovalRequested { approval, .. }
    | Event::ApprovalResolved { approval, .. }
    | Event::ApprovalTimedOut { approval, .. } = event
    {
        return Some(approval);
    }
    if let Event::CallbackCreated { callback, .. }
    | Event::CallbackResolved { callback, .. }
    | Event::CallbackFailed { callback, .. }
    | Event::CallbackTimedOut { callback, .. } = event
    {
        return Some(callback);
    }
    if let Event::SignalAwaited { name, .. }
    | Event::SignalResolved { name, .. }
    | Event::SignalTimedOut { name, .. }
    | Event::SignalRejected { name, .. } = event
    {
        return Some(name.as_str());
    }
    None
}
