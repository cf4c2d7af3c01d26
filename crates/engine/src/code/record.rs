//! Questions to the world that are answered at once, and the same way on replay.

use std::marker::PhantomData;
use std::panic::Location as Caller;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::FusedFuture;
use outlast_core::id::{Index, Key};
use outlast_core::operation::{Location, OperationKind, Operations};
use outlast_core::time::Timestamp;
use uuid::Uuid;

use super::codec;
use super::ctx::Ctx;
use super::operation::{Operation, Pending, Settles};
use super::slot::Outcome;
use crate::error::Result;

/// A question for the time. See [`Ctx::now`].
pub type Now = Record<Timestamp>;
/// A question for a unique id. See [`Ctx::uuid`].
pub type NewUuid = Record<Uuid>;
/// A question for a random number. See [`Ctx::random`].
pub type Random = Record<u64>;

/// A question that is answered when it is awaited, with a recorded answer. See [`Ctx::now`], [`Ctx::uuid`] and
/// [`Ctx::random`].
#[must_use = "a question is not asked before it is awaited"]
pub struct Record<T> {
    pending: Pending,
    answer: PhantomData<fn() -> T>,
}

/// What can be asked for.
pub trait Answer: Sized {
    /// What such a question is.
    #[doc(hidden)]
    const KIND: OperationKind;

    /// Asks it.
    #[doc(hidden)]
    fn ask(ops: &mut Operations, key: Key, at: Option<Location>) -> Self;
}

impl Answer for Timestamp {
    const KIND: OperationKind = OperationKind::Now;

    fn ask(ops: &mut Operations, key: Key, at: Option<Location>) -> Self {
        ops.record_now(key, at)
    }
}

impl Answer for Uuid {
    const KIND: OperationKind = OperationKind::Uuid;

    fn ask(ops: &mut Operations, key: Key, at: Option<Location>) -> Self {
        ops.record_uuid(key, at)
    }
}

impl Answer for u64 {
    const KIND: OperationKind = OperationKind::Random;

    fn ask(ops: &mut Operations, key: Key, at: Option<Location>) -> Self {
        ops.record_random(key, at)
    }
}

impl<T: Answer> Record<T> {
    #[track_caller]
    pub(super) fn new(ctx: &Ctx) -> Self {
        Record { pending: Pending::unnamed(ctx, T::KIND, None, Caller::caller()), answer: PhantomData }
    }

    /// Gives it a name. It keeps its place in the count of unnamed ones, so that naming one does not rename the next.
    #[track_caller]
    pub fn id(mut self, name: &str) -> Self {
        self.pending.rename(name, Caller::caller());
        self
    }
}

impl<T: Answer> Future for Record<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        if let Some(answer) = self.pending.ask(|shared, key, at| shared.ask(|ops| T::ask(ops, key, Some(at.into())))) {
            return Poll::Ready(Ok(answer));
        }
        self.pending.poll(cx).map(|outcome| match outcome {
            Outcome::Failed(failure) => Err(failure.into()),
            Outcome::Value(_)
            | Outcome::Done
            | Outcome::Decided(_)
            | Outcome::Started(_)
            | Outcome::Queued(_)
            | Outcome::TimedOut(_) => Err(codec::unexpected("an answer")),
        })
    }
}

impl<T: Answer> FusedFuture for Record<T> {
    fn is_terminated(&self) -> bool {
        self.pending.is_done()
    }
}

impl<T> Settles for Record<T> {
    // It needs no fact.
    fn settled_at(&self) -> Option<Index> {
        None
    }

    fn abandon(&mut self) {}
}

impl<T: Answer> Operation for Record<T> {
    type Value = T;
}
