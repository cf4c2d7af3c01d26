//! Scopes: a part of a workflow with keys and a result of its own.

use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use outlast_core::operation::Operation as Request;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::shared::Shared;
use super::slot::{Outcome, Slot};
use crate::error::Result;

/// A part of a workflow with keys and a result of its own. See [`Ctx::scope`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Scope<'a, T> {
    pending: Pending,
    inside: Inside<'a>,
    value: PhantomData<fn() -> T>,
}

impl<'a, T: Serialize + DeserializeOwned + 'a> Scope<'a, T> {
    #[track_caller]
    pub(super) fn new<F>(ctx: &Ctx, name: &str, body: F) -> Self
    where
        F: AsyncFnOnce(Ctx) -> Result<T> + 'a,
    {
        let pending = Pending::named(ctx, name, Location::caller());
        let inner = Ctx { shared: Rc::clone(&ctx.shared), scope: pending.key().cloned() };
        let body = Box::pin(async move {
            let value = body(inner).await;
            Closing { result: value.and_then(|value| codec::encode("what the scope returned", &value)), reason: None }
        });
        Scope { pending, inside: Inside::new(body), value: PhantomData }
    }

    fn begin(&mut self) {
        self.pending.start_scope(None);
    }

    fn advance(&mut self, cx: &mut Context<'_>) {
        self.inside.advance(&self.pending, cx);
    }

    fn decode(&self, outcome: Outcome) -> Result<T> {
        codec::value(outcome)
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Scope<'static, T> {
    /// Starts it now, to be awaited later. It runs beside the workflow.
    pub fn start(mut self) -> Handle<T> {
        self.begin();
        self.inside.hand_over(&self.pending);
        self.pending.into_handle(codec::value)
    }
}

operation!(impl['a, T: Serialize + DeserializeOwned + 'a] Scope<'a, T> => T);

/// What the code inside a scope came to.
pub(super) struct Closing {
    pub(super) result: Result<Bytes>,
    /// Why a batch is complete.
    pub(super) reason: Option<&'static str>,
}

/// The code inside a scope. It does nothing before it is polled.
pub(super) type ScopeBody<'a> = Pin<Box<dyn Future<Output = Closing> + 'a>>;

/// The inside of a scope: runs its code, and asks for its end.
pub(super) struct Inside<'a> {
    /// None once the scope's end is requested or recorded.
    body: Option<ScopeBody<'a>>,
    is_new: bool,
}

impl<'a> Inside<'a> {
    pub(super) fn new(body: ScopeBody<'a>) -> Self {
        Inside { body: Some(body), is_new: true }
    }

    /// Runs it as the part of an operation that was started.
    pub(super) fn advance(&mut self, pending: &Pending, cx: &mut Context<'_>) {
        match pending.slot() {
            Some(slot) => {
                let _ = self.poll(pending.shared(), slot, cx);
            }
            None => self.body = None,
        }
    }

    fn poll(&mut self, shared: &Shared, slot: &Slot, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.is_new, false) && shared.ask(|ops| ops.is_closed(&slot.key)) {
            // Its end is recorded, and what happened inside is not fed: there is nothing to run.
            self.body = None;
        }
        if !slot.is_open() {
            self.body = None;
        }
        let Some(body) = &mut self.body else { return Poll::Ready(()) };
        let Poll::Ready(closing) = body.as_mut().poll(cx) else { return Poll::Pending };
        self.body = None;
        close(shared, slot, closing);
        Poll::Ready(())
    }
}

impl Inside<'static> {
    /// Lets it run beside the workflow.
    pub(super) fn hand_over(self, pending: &Pending) {
        if let Some(slot) = pending.slot() {
            let (shared, slot) = (Rc::clone(pending.shared()), Rc::clone(slot));
            pending.shared().start_scope(StartedScope { inside: self, shared, slot });
        }
    }
}

fn close(shared: &Shared, slot: &Slot, closing: Closing) {
    shared.close_below(&slot.key);
    let key = slot.key.clone();
    let request = match closing.result {
        Ok(result) => {
            // Too large a result is not recorded: then this is where the scope's fact finds it.
            slot.keep(result.clone());
            Request::FinishScope { key, result, reason: closing.reason.map(str::to_owned) }
        }
        Err(error) if shared.is_continued() => return shared.settle_unrecorded(slot, error.into_failure()),
        Err(error) => Request::FailScope { key, error: error.into_failure() },
    };
    shared.request(request, slot.at);
}

/// The inside of a scope that was started and not awaited.
pub(super) struct StartedScope {
    inside: Inside<'static>,
    shared: Rc<Shared>,
    slot: Rc<Slot>,
}

impl Future for StartedScope {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let StartedScope { inside, shared, slot } = &mut *self;
        slot.set_inside(cx.waker().clone());
        inside.poll(shared, slot, cx)
    }
}
