//! What each fact means to a program of the code style.

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::Key;

use super::approve::Decision;
use super::slot::Outcome;
use crate::error::Error;

/// What a fact does.
pub(super) enum Effect<'a> {
    /// The operation has its outcome.
    Settles(&'a Key, Outcome),
    /// The scope has its outcome; none if it is what its body returned.
    SettlesScope(&'a Key, Option<Outcome>),
    /// The attempt that runs is over, and another will follow.
    EndsAttempt(&'a Key),
    /// The condition does not hold; the next check starts from this.
    EndsCheck(&'a Key, Bytes),
    /// Everything that is open is cancelled.
    CancelsAll(Failure),
    /// Nothing that a program could see.
    Nothing,
}

/// The code of a condition that did not hold when it was checked for the last time.
const CONDITION_NOT_MET: &str = "condition_not_met";

pub(super) fn effect(event: &Event) -> Effect<'_> {
    match event {
        Event::StepFinished { key, result, .. }
        | Event::TaskFinished { key, result, .. }
        | Event::ChildFinished { key, result, .. } => Effect::Settles(key, Outcome::Value(result.clone())),
        Event::SignalResolved { key, payload, .. } | Event::CallbackResolved { key, payload, .. } => {
            Effect::Settles(key, Outcome::Value(payload.clone()))
        }
        Event::StepFailed { key, error, .. }
        | Event::TaskFailed { key, error, .. }
        | Event::ChildFailed { key, error, .. }
        | Event::CallbackFailed { key, error, .. }
        | Event::OperationRefused { key, error } => Effect::Settles(key, Outcome::Failed(error.clone())),
        Event::TimerFired { key } => Effect::Settles(key, Outcome::Done),
        Event::SignalTimedOut { key, name } => Effect::Settles(key, Outcome::TimedOut(Some(name.clone()))),
        Event::ApprovalTimedOut { key, .. } | Event::CallbackTimedOut { key, .. } => {
            Effect::Settles(key, Outcome::TimedOut(None))
        }
        Event::ApprovalResolved { key, approval, approved, by, feedback } => {
            let decision = Decision {
                approved: *approved,
                by: by.clone(),
                feedback: feedback.clone(),
                approval: approval.clone(),
            };
            Effect::Settles(key, Outcome::Decided(decision))
        }
        Event::ChildStarted { key, child, detached: true, .. } => Effect::Settles(key, Outcome::Started(child.clone())),
        Event::TaskScheduled { key, task, detached: true, .. } => Effect::Settles(key, Outcome::Queued(task.clone())),
        Event::ConditionChecked { key, met: true, state, .. } => Effect::Settles(key, Outcome::Value(state.clone())),
        Event::ConditionChecked { key, met: false, next_at: Some(_), state, .. } => {
            Effect::EndsCheck(key, state.clone())
        }
        Event::ConditionChecked { key, met: false, next_at: None, state, attempt } => {
            Effect::Settles(key, Outcome::Failed(not_met(*attempt, state)))
        }
        Event::ScopeFinished { key, result, .. } => Effect::SettlesScope(key, result.clone().map(Outcome::Value)),
        Event::ScopeFailed { key, error } => Effect::SettlesScope(key, Some(Outcome::Failed(error.clone()))),
        Event::StepRetryScheduled { key, .. } => Effect::EndsAttempt(key),
        Event::CancelRequested { reason, .. } => Effect::CancelsAll(cancelled(reason.as_deref())),
        Event::RunStarted { .. }
        | Event::RunFinished { .. }
        | Event::RunErrored { .. }
        | Event::RunCancelled { .. }
        | Event::RunTerminated { .. }
        | Event::RunContinued { .. }
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::StepStarted { .. }
        | Event::TaskScheduled { detached: false, .. }
        | Event::TimerStarted { .. }
        | Event::SignalAwaited { .. }
        | Event::SignalRejected { .. }
        | Event::ApprovalRequested { .. }
        | Event::CallbackCreated { .. }
        | Event::ChildStarted { detached: false, .. }
        | Event::ScopeStarted { .. }
        | Event::NowRecorded { .. }
        | Event::UuidRecorded { .. }
        | Event::RandomRecorded { .. }
        | Event::OperationCancelled { .. }
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
        | Event::Custom { .. } => Effect::Nothing,
    }
}

/// Why an operation fails when its run is asked to stop.
fn cancelled(reason: Option<&str>) -> Failure {
    Failure::cancelled(match reason {
        None | Some("") => "the run was cancelled".to_owned(),
        Some(reason) => format!("the run was cancelled: {reason}"),
    })
}

fn not_met(checks: u32, state: &Bytes) -> Failure {
    Error::new(CONDITION_NOT_MET, format!("the condition did not hold in {checks} checks"))
        .permanent()
        .into_failure()
        .with_data(state.clone())
}
