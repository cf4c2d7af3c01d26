//! What happens to the operations of a run, for those who watch.

use std::fmt;

use outlast_core::id::Key;
use outlast_core::lifecycle::{State, SuspendReason};
use outlast_core::operation::OperationKind;

/// Something that happened to the operations of a run while it was driven. A replayed prefix tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// `operation:state-changed`
    StateChanged {
        /// Which operation.
        key: Key,
        /// What it is.
        kind: OperationKind,
        /// Where it stood; none if it is new.
        from: Option<State>,
        /// Where it stands.
        to: State,
    },
    /// `all-operations-idle`: nothing executes, and the turn ends.
    AllIdle {
        /// What the run waits for, the most telling.
        reason: SuspendReason,
    },
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lifecycle::StateChanged { key, kind, from: Some(from), to } => {
                write!(f, "operation:state-changed {kind} {key}: {from} to {to}")
            }
            Lifecycle::StateChanged { key, kind, from: None, to } => {
                write!(f, "operation:state-changed {kind} {key}: {to}")
            }
            Lifecycle::AllIdle { reason } => write!(f, "all-operations-idle: {}", reason.name()),
        }
    }
}

/// What was noted since it was taken last; nothing while nobody watches.
#[derive(Debug, Default)]
pub(super) struct Notes {
    watched: bool,
    /// Facts are fed again: what they did is not news.
    replaying: bool,
    noted: Vec<Lifecycle>,
}

impl Notes {
    pub(super) fn set_watched(&mut self, watched: bool) {
        self.watched = watched;
    }

    pub(super) fn set_replaying(&mut self, replaying: bool) {
        self.replaying = replaying;
    }

    pub(super) fn note(&mut self, lifecycle: impl FnOnce() -> Lifecycle) {
        if self.watched && !self.replaying {
            self.noted.push(lifecycle());
        }
    }

    pub(super) fn take(&mut self) -> Vec<Lifecycle> {
        std::mem::take(&mut self.noted)
    }
}
