//! A run: where it stands, and how it is created.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::admission::Admission;
use super::delivery::Signal;
use super::{NewTimer, NewWait};
use crate::id::{AttributeName, ClaimId, Generation, Key, LeaseId, RunId, RunKey, Version, WorkflowName};
use crate::record::Record;

/// The priority of a run's resume unless it asks for another; larger is sooner.
pub const PRIORITY_DEFAULT: i16 = 10;

/// Where a run stands. A waiting run's details are its open waits, timers, tasks and children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Created, not yet driven.
    Queued,
    /// Owned by a node.
    Running,
    /// Quiescent: something durable will wake it.
    Waiting,
    /// An operator paused it; facts gather in its inbox.
    Paused,
    /// The engine cannot go on with it; nothing is lost; `unpark` goes on.
    Parked,
    /// Ended with an output.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended by cancellation or termination.
    Cancelled,
}

impl Status {
    /// All of them, in the order of their codes.
    pub const ALL: [Status; 8] = [
        Status::Queued,
        Status::Running,
        Status::Waiting,
        Status::Paused,
        Status::Parked,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
    ];

    /// Whether nothing can happen to the run any more.
    pub fn is_terminal(self) -> bool {
        match self {
            Status::Completed | Status::Failed | Status::Cancelled => true,
            Status::Queued | Status::Running | Status::Waiting | Status::Paused | Status::Parked => false,
        }
    }

    /// Whether a ready run may be claimed.
    pub fn is_claimable(self) -> bool {
        match self {
            Status::Queued | Status::Running | Status::Waiting => true,
            Status::Paused | Status::Parked | Status::Completed | Status::Failed | Status::Cancelled => false,
        }
    }

    /// The stable number stores keep. Claimable ones are below 3, terminal ones from 5.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The status of a stored number.
    pub fn from_code(code: i64) -> Option<Status> {
        usize::try_from(code).ok().and_then(|code| Status::ALL.get(code)).copied()
    }

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Paused => "paused",
            Status::Parked => "parked",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

/// A run's parent: who is told when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The parent's id, in the same namespace.
    pub run: RunId,
    /// The generation of the parent that started this run.
    pub generation: Generation,
    /// The operation of the parent that started this run.
    pub key: Key,
    /// A detached child is a tree of its own: the parent is not told, and retention does not wait for it.
    pub detached: bool,
}

/// The operation that started a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// The parent's id, in the same namespace.
    pub run: RunId,
    /// The parent's generation.
    pub generation: Generation,
    /// The operation.
    pub key: Key,
}

impl Parent {
    /// Whether this operation started the run.
    pub fn is(&self, opener: &Opener) -> bool {
        self.run == opener.run && self.generation == opener.generation && self.key == opener.key
    }
}

/// Who owns a run from its creation on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The owner's live lease.
    pub lease: LeaseId,
    /// Names the claim: creating again with the same one gives the same fence, so that a lost reply strands nothing.
    pub claim: ClaimId,
}

/// A run to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// Its name. Creating the same one twice with the same workflow and input gives the existing run.
    pub run: RunKey,
    /// Which workflow.
    pub workflow: WorkflowName,
    /// Which version or content hash of it.
    pub version: Version,
    /// What it starts with.
    pub input: Bytes,
    /// Larger is claimed sooner.
    pub priority: i16,
    /// Who started it, if a run did.
    pub parent: Option<Parent>,
    /// The lease that owns it from the start, so that the creating node drives it without a claim.
    pub owner: Option<Owner>,
    /// Search attributes.
    pub attributes: Vec<(AttributeName, String)>,
    /// A journal prefix to begin with, for forks.
    pub history: Vec<Record>,
    /// Timers of what is open in that prefix, started in the same transaction.
    pub timers: Vec<NewTimer>,
    /// Waits of what is open in that prefix, opened in the same transaction.
    pub waits: Vec<NewWait>,
    /// Signals delivered in the same transaction, whether the run was created or existed.
    pub signals: Vec<Signal>,
    /// Flow control; none for a run that begins at once.
    pub admission: Option<Box<Admission>>,
}

impl NewRun {
    /// A run with defaults for everything but its identity and input.
    pub fn new(run: RunKey, workflow: WorkflowName, version: Version, input: Bytes) -> Self {
        NewRun {
            run,
            workflow,
            version,
            input,
            priority: PRIORITY_DEFAULT,
            parent: None,
            owner: None,
            attributes: Vec::new(),
            history: Vec::new(),
            timers: Vec::new(),
            waits: Vec::new(),
            signals: Vec::new(),
            admission: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back_as_what_they_were() {
        for status in Status::ALL {
            assert_eq!(Status::from_code(i64::from(status.code())), Some(status));
        }
        assert_eq!(Status::from_code(8), None);
        assert_eq!(Status::from_code(-1), None);
    }

    #[test]
    fn stores_may_rely_on_the_order_of_status_codes() {
        for status in Status::ALL {
            assert_eq!(status.is_claimable(), status.code() < 3, "{status:?}");
            assert_eq!(status.is_terminal(), status.code() >= 5, "{status:?}");
        }
    }
}
