//! Questions about an event that do not need its content.

use std::fmt;

use super::{Class, Event, Kind};
use crate::id::Key;

impl Event {
    /// What the journal does with this event.
    pub const fn class(&self) -> Class {
        if matches!(self, Event::StepStarted { at_most_once: false, .. }) {
            return Class::EmitOnly;
        }
        self.kind().class()
    }

    /// The operation or node it is about; none for events of the run itself.
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Event::StepStarted { key, .. }
            | Event::StepFinished { key, .. }
            | Event::StepFailed { key, .. }
            | Event::StepRetryScheduled { key, .. }
            | Event::TaskScheduled { key, .. }
            | Event::TaskFinished { key, .. }
            | Event::TaskFailed { key, .. }
            | Event::TimerStarted { key, .. }
            | Event::TimerFired { key }
            | Event::SignalAwaited { key, .. }
            | Event::SignalResolved { key, .. }
            | Event::SignalTimedOut { key, .. }
            | Event::SignalRejected { key, .. }
            | Event::ApprovalRequested { key, .. }
            | Event::ApprovalResolved { key, .. }
            | Event::ApprovalTimedOut { key, .. }
            | Event::CallbackCreated { key, .. }
            | Event::CallbackResolved { key, .. }
            | Event::CallbackFailed { key, .. }
            | Event::CallbackTimedOut { key, .. }
            | Event::ChildStarted { key, .. }
            | Event::ChildFinished { key, .. }
            | Event::ChildFailed { key, .. }
            | Event::ConditionChecked { key, .. }
            | Event::ScopeStarted { key, .. }
            | Event::ScopeFinished { key, .. }
            | Event::ScopeFailed { key, .. }
            | Event::NowRecorded { key, .. }
            | Event::UuidRecorded { key, .. }
            | Event::RandomRecorded { key, .. }
            | Event::OperationCancelled { key }
            | Event::OperationRefused { key, .. } => Some(key),
            Event::NodeStarted { node, .. }
            | Event::NodeCompleted { node, .. }
            | Event::NodeError { node, .. }
            | Event::NodeSkipped { node, .. }
            | Event::NodeRetried { node, .. }
            | Event::InterventionRefused { node, .. }
            | Event::ContainerIterationStarted { node, .. }
            | Event::ContainerIterationCompleted { node, .. }
            | Event::ContainerChildStarted { node, .. }
            | Event::ContainerChildCompleted { node, .. } => Some(node),
            Event::LoopIterate { from, .. } => Some(from),
            Event::RunStarted { .. }
            | Event::RunFinished { .. }
            | Event::RunErrored { .. }
            | Event::RunCancelled { .. }
            | Event::RunTerminated { .. }
            | Event::RunContinued { .. }
            | Event::RunPaused { .. }
            | Event::RunResumed { .. }
            | Event::CancelRequested { .. }
            | Event::StateDelta { .. }
            | Event::Custom { .. } => None,
        }
    }

    /// Whether it is a flow's own word about where it stands, which the flow asked for. What an operator does to a node is not.
    pub const fn is_mark(&self) -> bool {
        matches!(
            self,
            Event::NodeStarted { .. }
                | Event::NodeCompleted { .. }
                | Event::NodeError { .. }
                | Event::NodeSkipped { by: None, .. }
                | Event::ContainerIterationStarted { .. }
                | Event::ContainerIterationCompleted { .. }
                | Event::ContainerChildStarted { .. }
                | Event::ContainerChildCompleted { .. }
                | Event::LoopIterate { .. }
        )
    }

    /// Whether an operator did something to a flow's node.
    pub const fn is_intervention(&self) -> bool {
        matches!(self, Event::NodeSkipped { by: Some(_), .. } | Event::NodeRetried { .. })
    }

    /// Whether the run is over.
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Event::RunFinished { .. }
                | Event::RunErrored { .. }
                | Event::RunCancelled { .. }
                | Event::RunTerminated { .. }
        )
    }

    /// Whether this journal is over: the run is, or its next generation began.
    pub const fn ends_generation(&self) -> bool {
        self.is_terminal() || matches!(self, Event::RunContinued { .. })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_code_and_by_its_name() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Kind::from_code(0), None);
        assert_eq!(Kind::from_name("step_finished"), None);
    }

    #[test]
    fn the_start_of_a_step_is_kept_only_where_it_must_not_run_twice() {
        let started = |at_most_once| Event::StepStarted { key: Key::new("pay").unwrap(), attempt: 1, at_most_once };
        assert_eq!(started(true).class(), Class::Coordination);
        assert_eq!(started(false).class(), Class::EmitOnly);
    }
}
