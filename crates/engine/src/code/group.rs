//! Several operations together: all of them, any, the first.

mod combine;
mod tuples;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use outlast_core::failure::Failure;
use outlast_core::id::Index;

pub use combine::{All, AllSettled, Any, Race};
pub use tuples::{Race2, Race3, Race4, Race5, Race6, Race7, Race8};

use super::operation::Operation;
use super::wake::Many;
use crate::error::{Error, Result};

/// Several operations: a tuple of two to eight of any kinds, or a `Vec` of one kind.
pub trait Group {
    /// What all of them give.
    type Values;
    /// What became of each.
    type Outcomes;
    /// What one of them gives, and which: `Race2::First(…)`, or a place in the `Vec`.
    type Winner;
    /// The operations while they are awaited.
    #[doc(hidden)]
    type Members: Members<Values = Self::Values, Outcomes = Self::Outcomes, Winner = Self::Winner>;

    /// Takes the operations, to await them.
    #[doc(hidden)]
    fn into_members(self) -> Self::Members;
}

/// The operations of a group while they are awaited, by their places.
pub trait Members {
    /// What all of them give.
    type Values;
    /// What became of each.
    type Outcomes;
    /// What one of them gives, and which.
    type Winner;

    /// How many there are.
    fn count(&self) -> usize;

    /// Polls one, and keeps its outcome.
    fn poll(&mut self, place: usize, cx: &mut Context<'_>) -> Poll<Settled>;

    /// The outcome of one that is settled.
    fn take_winner(&mut self, place: usize) -> Option<Result<Self::Winner>>;

    /// The values, once all are settled and none failed.
    fn take_values(&mut self) -> Option<Self::Values>;

    /// The outcomes, once all are settled.
    fn take_outcomes(&mut self) -> Option<Self::Outcomes>;

    /// How those failed that did, in order of their places.
    fn failures(&self) -> Vec<&Failure>;

    /// Cancels those that are open.
    fn abandon(&mut self);
}

/// That an operation of a group was settled.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// Where in the journal; none for what needs no fact, which is before everything else.
    at: Option<Index>,
    has_failed: bool,
}

/// One operation of a group.
pub struct Member<O: Operation> {
    operation: Option<O>,
    outcome: Option<Result<O::Value>>,
}

impl<O: Operation> Member<O> {
    fn new(operation: O) -> Self {
        Member { operation: Some(operation), outcome: None }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Settled> {
        let Some(operation) = &mut self.operation else { return Poll::Pending };
        let outcome = ready!(Pin::new(&mut *operation).poll(cx));
        let settled = Settled { at: operation.settled_at(), has_failed: outcome.is_err() };
        self.operation = None;
        self.outcome = Some(outcome);
        Poll::Ready(settled)
    }

    fn failure(&self) -> Option<&Failure> {
        self.outcome.as_ref()?.as_ref().err().map(Error::failure)
    }

    fn abandon(&mut self) {
        if let Some(mut operation) = self.operation.take() {
            operation.abandon();
        }
    }
}

impl<O: Operation> Group for Vec<O> {
    type Values = Vec<O::Value>;
    type Outcomes = Vec<Result<O::Value>>;
    type Winner = (usize, O::Value);
    type Members = Vec<Member<O>>;

    fn into_members(self) -> Self::Members {
        self.into_iter().map(Member::new).collect()
    }
}

impl<O: Operation> Members for Vec<Member<O>> {
    type Values = Vec<O::Value>;
    type Outcomes = Vec<Result<O::Value>>;
    type Winner = (usize, O::Value);

    fn count(&self) -> usize {
        self.len()
    }

    fn poll(&mut self, place: usize, cx: &mut Context<'_>) -> Poll<Settled> {
        self[place].poll(cx)
    }

    fn take_winner(&mut self, place: usize) -> Option<Result<Self::Winner>> {
        Some(self[place].outcome.take()?.map(|value| (place, value)))
    }

    fn take_values(&mut self) -> Option<Self::Values> {
        self.iter_mut().map(|member| member.outcome.take()?.ok()).collect()
    }

    fn take_outcomes(&mut self) -> Option<Self::Outcomes> {
        self.iter_mut().map(|member| member.outcome.take()).collect()
    }

    fn failures(&self) -> Vec<&Failure> {
        self.iter().filter_map(Member::failure).collect()
    }

    fn abandon(&mut self) {
        for member in self {
            member.abandon();
        }
    }
}

/// Awaits the operations of a group. Those that are open when it is dropped are cancelled: it owns them.
struct Together<M: Members> {
    members: M,
    many: Many,
    is_new: bool,
    open: usize,
}

impl<M: Members> Together<M> {
    fn new(members: M) -> Self {
        let open = members.count();
        Together { members, many: Many::new(), is_new: true, open }
    }

    /// Polls those that can go on. Those that are settled now, the earliest in the journal first.
    fn poll(&mut self, cx: &Context<'_>) -> Vec<(usize, Settled)> {
        self.many.set_owner(cx.waker());
        let mut settled = Vec::new();
        if std::mem::replace(&mut self.is_new, false) {
            for place in 0..self.members.count() {
                let waker = self.many.add();
                if let Poll::Ready(now) = self.members.poll(place, &mut Context::from_waker(&waker)) {
                    settled.push((place, now));
                }
            }
        }
        for (place, waker) in self.many.take_woken() {
            if let Poll::Ready(now) = self.members.poll(place, &mut Context::from_waker(&waker)) {
                settled.push((place, now));
            }
        }
        self.open -= settled.len();
        settled.sort_by_key(|(place, settled)| (settled.at, *place));
        settled
    }
}

impl<M: Members> Drop for Together<M> {
    fn drop(&mut self) {
        self.members.abandon();
    }
}
