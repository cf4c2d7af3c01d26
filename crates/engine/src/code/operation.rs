//! What every operation of a `Ctx` has in common: it is claimed, started, awaited, and settled by a fact.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_util::future::FusedFuture;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Index, InvalidId, Key};
use outlast_core::operation::{Operation as Request, OperationKind};

use super::ctx::Ctx;
use super::shared::Shared;
use super::slot::{Outcome, Slot};
use crate::error::Result;

/// A durable operation, to be awaited: what [`Ctx`]'s methods return, and their handles.
///
/// It is a future like any other, so that `join!`, `select!` and `FuturesUnordered` take it as it is. What this trait
/// adds is known to [`Ctx::race`] and its like: when the operation was settled. Nobody else can implement it.
pub trait Operation: FusedFuture<Output = Result<Self::Value>> + Unpin + Settles {
    /// What it gives.
    type Value;
}

/// The sealed half of [`Operation`].
pub trait Settles {
    /// Where in the journal its outcome is; none as long as there is none, and for what needs no fact.
    #[doc(hidden)]
    fn settled_at(&self) -> Option<Index>;

    /// Cancels it, if dropping it would not.
    #[doc(hidden)]
    fn abandon(&mut self);
}

/// The part of an operation that waits for its fact.
pub(super) struct Pending {
    shared: Rc<Shared>,
    scope: Option<Key>,
    at: &'static Location<'static>,
    stage: Stage,
    on_drop: OnDrop,
}

enum Stage {
    /// It cannot be started: a name or an option is wrong. Whoever awaits it is told.
    Invalid(Failure),
    Claimed(Key),
    Started(Rc<Slot>),
    /// Its outcome was taken; where that is in the journal, if it is.
    Done(Option<Index>),
}

/// What becomes of an open operation when its future is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnDrop {
    Cancel,
    GoOn,
}

impl Pending {
    fn new(ctx: &Ctx, claimed: Result<Key, InvalidId>, at: &'static Location<'static>) -> Self {
        let (shared, scope) = (Rc::clone(&ctx.shared), ctx.scope.clone());
        Pending { shared, scope, at, stage: stage(claimed), on_drop: OnDrop::Cancel }
    }

    /// Claims the key of an operation that its author named.
    pub(super) fn named(ctx: &Ctx, name: &str, at: &'static Location<'static>) -> Self {
        Pending::new(ctx, ctx.shared.named(ctx.scope.as_ref(), name, at), at)
    }

    /// Claims the key of an unnamed operation.
    pub(super) fn unnamed(
        ctx: &Ctx,
        kind: OperationKind,
        detail: Option<&str>,
        at: &'static Location<'static>,
    ) -> Self {
        Pending::new(ctx, ctx.shared.positional(ctx.scope.as_ref(), kind, detail), at)
    }

    /// Claims a name instead.
    pub(super) fn rename(&mut self, name: &str, at: &'static Location<'static>) {
        if let Stage::Claimed(_) = self.stage {
            self.stage = stage(self.shared.named(self.scope.as_ref(), name, at));
        }
    }

    /// The operation cannot be started, because of an option.
    pub(super) fn refuse(&mut self, failure: Failure) {
        if let Stage::Claimed(_) = self.stage {
            self.stage = Stage::Invalid(failure);
        }
    }

    pub(super) fn refuse_option(&mut self, message: impl Into<String>) {
        self.refuse(Failure::new(code::VALIDATION_ERROR, message).permanent());
    }

    /// A timeout of no time is a mistake.
    pub(super) fn refuse_zero(&mut self, what: &str, timeout: std::time::Duration) {
        if timeout.is_zero() {
            self.refuse_option(format!("the timeout of a {what} must be more than zero"));
        }
    }

    /// Takes the value, or refuses the operation.
    pub(super) fn accept<T>(&mut self, value: Result<T>) -> Option<T> {
        value.map_err(|error| self.refuse(error.into_failure())).ok()
    }

    /// Takes the id, or refuses the operation.
    pub(super) fn accept_id<T>(&mut self, id: Result<T, InvalidId>) -> Option<T> {
        id.map_err(|error| self.refuse_option(error.to_string())).ok()
    }

    /// The key, before and after the start.
    pub(super) fn key(&self) -> Option<&Key> {
        match &self.stage {
            Stage::Claimed(key) => Some(key),
            Stage::Started(slot) => Some(&slot.key),
            Stage::Invalid(_) | Stage::Done(_) => None,
        }
    }

    pub(super) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// What is known of it, once it is started.
    pub(super) fn slot(&self) -> Option<&Rc<Slot>> {
        if let Stage::Started(slot) = &self.stage { Some(slot) } else { None }
    }

    /// Starts it, once.
    pub(super) fn start(&mut self, request: impl FnOnce(Key) -> Request) {
        self.open(false, request);
    }

    /// Starts a scope, once; its slot, if it was started now.
    pub(super) fn start_scope(&mut self, total: Option<u32>) -> Option<Rc<Slot>> {
        self.open(true, |key| Request::StartScope { key, total })
    }

    fn open(&mut self, is_scope: bool, request: impl FnOnce(Key) -> Request) -> Option<Rc<Slot>> {
        let Stage::Claimed(key) = &self.stage else { return None };
        let slot = self.shared.open(key.clone(), self.at, is_scope);
        self.shared.request(request(key.clone()), self.at);
        self.stage = Stage::Started(Rc::clone(&slot));
        Some(slot)
    }

    /// A question that is answered at once; none if it cannot be asked, or was.
    pub(super) fn ask<R>(&mut self, question: impl FnOnce(&Shared, Key, &'static Location<'static>) -> R) -> Option<R> {
        let Stage::Claimed(key) = &self.stage else { return None };
        let answer = question(&self.shared, key.clone(), self.at);
        self.stage = Stage::Done(None);
        Some(answer)
    }

    /// Tells the driver, once, that the program awaits it.
    pub(super) fn note_awaited(&self) {
        if let Stage::Started(slot) = &self.stage
            && slot.note_awaited()
        {
            self.shared.request(Request::Await { key: slot.key.clone() }, self.at);
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.note_awaited();
        match &mut self.stage {
            Stage::Started(slot) => match slot.take_outcome(cx.waker()) {
                Some((index, outcome)) => {
                    self.stage = Stage::Done(Some(index));
                    Poll::Ready(outcome)
                }
                None => Poll::Pending,
            },
            Stage::Invalid(_) => match std::mem::replace(&mut self.stage, Stage::Done(None)) {
                Stage::Invalid(failure) => Poll::Ready(Outcome::Failed(failure)),
                Stage::Claimed(_) | Stage::Started(_) | Stage::Done(_) => Poll::Pending,
            },
            // Not started, or asked again after its end: a fused future is never ready then.
            Stage::Claimed(_) | Stage::Done(_) => Poll::Pending,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done(_))
    }

    pub(super) fn settled_at(&self) -> Option<Index> {
        if let Stage::Done(index) = self.stage { index } else { None }
    }

    pub(super) fn cancel(&mut self) {
        if let Stage::Started(slot) = &self.stage {
            self.shared.cancel(slot);
        }
    }

    /// The same operation, owned by a handle.
    pub(super) fn into_handle<T>(mut self, decode: fn(Outcome) -> Result<T>) -> Handle<T> {
        self.on_drop = OnDrop::GoOn;
        Handle { pending: self, decode }
    }
}

fn stage(claimed: Result<Key, InvalidId>) -> Stage {
    match claimed {
        Ok(key) => Stage::Claimed(key),
        Err(error) => Stage::Invalid(Failure::new(code::VALIDATION_ERROR, error.to_string()).permanent()),
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::Cancel {
            self.cancel();
        }
    }
}

/// An operation that was started and goes on by itself. Await it for its outcome, now or later.
///
/// Dropping a handle does not cancel its operation; [`Handle::cancel`] does, and so does a race that the handle loses.
#[must_use = "a handle that is not awaited hides the outcome of its operation"]
pub struct Handle<T> {
    pending: Pending,
    decode: fn(Outcome) -> Result<T>,
}

impl<T> Handle<T> {
    /// Cancels the operation, unless it is settled.
    pub fn cancel(mut self) {
        self.pending.cancel();
    }

    pub(super) fn token(&self) -> String {
        let tokens = &self.pending.shared.info.tokens;
        self.pending.key().map(|key| tokens(key)).unwrap_or_default()
    }

    pub(super) fn key(&self) -> &str {
        self.pending.key().map_or("", Key::as_str)
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.key()).finish()
    }
}

impl<T> Future for Handle<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let outcome = ready!(self.pending.poll(cx));
        Poll::Ready((self.decode)(outcome))
    }
}

impl<T> FusedFuture for Handle<T> {
    fn is_terminated(&self) -> bool {
        self.pending.is_done()
    }
}

impl<T> Settles for Handle<T> {
    fn settled_at(&self) -> Option<Index> {
        self.pending.settled_at()
    }

    fn abandon(&mut self) {
        self.pending.cancel();
    }
}

impl<T> Operation for Handle<T> {
    type Value = T;
}

/// A borrowed operation stays its owner's: a race it loses does not cancel it.
impl<O: Settles> Settles for &mut O {
    fn settled_at(&self) -> Option<Index> {
        (**self).settled_at()
    }

    fn abandon(&mut self) {}
}

impl<O: Operation> Operation for &mut O {
    type Value = O::Value;
}

/// Makes a builder the future of its operation. It has a `pending`, and these methods: `begin`, which starts it, once;
/// `advance`, which runs what is the author's own of it; and `decode`.
macro_rules! operation {
    (impl[$($generics:tt)*] $builder:ty => $value:ty) => {
        impl<$($generics)*> Future for $builder {
            type Output = $crate::error::Result<$value>;

            fn poll(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Self::Output> {
                let this = &mut *self;
                this.begin();
                this.pending.note_awaited();
                this.advance(cx);
                let outcome = std::task::ready!(this.pending.poll(cx));
                std::task::Poll::Ready(this.decode(outcome))
            }
        }

        impl<$($generics)*> futures_util::future::FusedFuture for $builder {
            fn is_terminated(&self) -> bool {
                self.pending.is_done()
            }
        }

        impl<$($generics)*> $crate::code::operation::Settles for $builder {
            fn settled_at(&self) -> Option<outlast_core::id::Index> {
                self.pending.settled_at()
            }

            // Dropping it cancels it.
            fn abandon(&mut self) {}
        }

        impl<$($generics)*> $crate::code::operation::Operation for $builder {
            type Value = $value;
        }
    };
}
pub(super) use operation;
