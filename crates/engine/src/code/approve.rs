//! Asking somebody to decide.

use std::panic::Location;
use std::task::Context;
use std::time::Duration;

use outlast_core::operation::{Due, Operation as Request, OperationKind};
use outlast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::slot::Outcome;
use crate::error::Result;

/// What somebody decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether it is a yes.
    pub approved: bool,
    /// Who decided, as far as that is known.
    pub by: Option<String>,
    /// What they said about it.
    pub feedback: Option<String>,
    /// The id of the approval.
    pub approval: String,
}

/// A question to a person. See [`Ctx::approve`]. It gives a [`Decision`]; with a deadline, an `Option<Decision>`.
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Approve<O = Decision> {
    pending: Pending,
    title: String,
    assignee: Option<String>,
    deadline: Option<Due>,
    decode: fn(Outcome) -> Result<O>,
}

impl Approve<Decision> {
    #[track_caller]
    pub(super) fn new(ctx: &Ctx, title: String) -> Self {
        let pending = Pending::unnamed(ctx, OperationKind::Approval, None, Location::caller());
        Approve { pending, title, assignee: None, deadline: None, decode: decision }
    }

    /// Waits so long at most, and gives `None` then.
    pub fn timeout(mut self, timeout: Duration) -> Approve<Option<Decision>> {
        self.pending.refuse_zero("question", timeout);
        self.until(Due::After(timeout))
    }

    /// Waits until this instant at most, and gives `None` then.
    pub fn deadline(self, deadline: Timestamp) -> Approve<Option<Decision>> {
        self.until(Due::At(deadline))
    }

    fn until(self, due: Due) -> Approve<Option<Decision>> {
        let Approve { pending, title, assignee, .. } = self;
        Approve { pending, title, assignee, deadline: Some(due), decode: decision_in_time }
    }
}

impl<O> Approve<O> {
    /// Who should decide.
    pub fn assignee(mut self, assignee: impl Into<String>) -> Self {
        self.assignee = Some(assignee.into());
        self
    }

    /// Gives it a name. It keeps its place in the count of unnamed ones, so that naming one does not rename the next.
    #[track_caller]
    pub fn id(mut self, name: &str) -> Self {
        self.pending.rename(name, Location::caller());
        self
    }

    /// Asks now, to be awaited later.
    pub fn start(mut self) -> Handle<O> {
        self.begin();
        self.pending.into_handle(self.decode)
    }

    fn begin(&mut self) {
        let Approve { pending, title, assignee, deadline, .. } = self;
        pending.start(|key| Request::RequestApproval {
            key,
            title: std::mem::take(title),
            assignee: assignee.take(),
            deadline: *deadline,
        });
    }

    fn advance(&mut self, _: &mut Context<'_>) {}

    fn decode(&self, outcome: Outcome) -> Result<O> {
        (self.decode)(outcome)
    }
}

operation!(impl[O] Approve<O> => O);

fn decision(outcome: Outcome) -> Result<Decision> {
    match outcome {
        Outcome::Decided(decision) => Ok(decision),
        Outcome::Failed(failure) => Err(failure.into()),
        Outcome::TimedOut(_) => Err(codec::late()),
        Outcome::Value(_) | Outcome::Done | Outcome::Started(_) | Outcome::Queued(_) => {
            Err(codec::unexpected("a decision"))
        }
    }
}

fn decision_in_time(outcome: Outcome) -> Result<Option<Decision>> {
    if matches!(outcome, Outcome::TimedOut(_)) { Ok(None) } else { decision(outcome).map(Some) }
}
