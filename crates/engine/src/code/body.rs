//! Bodies: the author's code that runs once, whatever replay does. They begin when the driver says so, have the Tokio
//! runtime, and are the only code here that anything may wake.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use outlast_core::failure::Failure;
use outlast_core::operation::Operation as Request;
use tokio::runtime;

use super::panics::guard;
use super::shared::Shared;
use super::slot::Slot;
use super::step_context::StepContext;
use super::wake::{BodyWaker, Inside};
use crate::error::Result;

/// What a body returned, as it is recorded.
pub(super) struct Returned {
    pub(super) result: Bytes,
    /// Whether the condition holds; none for a step.
    pub(super) met: Option<bool>,
}

/// One attempt.
pub(super) type BodyFuture<'a> = Pin<Box<dyn Future<Output = Result<Returned>> + 'a>>;

/// Makes the attempts at one operation.
pub(super) trait Body<'a> {
    /// A future that does nothing before it is polled. `kept` is what the last check of a condition left.
    fn begin(&self, context: StepContext, kept: Option<Bytes>) -> BodyFuture<'a>;
}

/// Runs the attempts at one operation, as they are ordered and called off in its slot.
pub(super) struct Runner<'a, B> {
    body: B,
    running: Option<Running<'a>>,
}

impl<B> Runner<'_, B> {
    pub(super) fn new(body: B) -> Self {
        Runner { body, running: None }
    }

    /// Takes the body, to be run elsewhere. Nothing runs yet.
    pub(super) fn into_body(self) -> B {
        self.body
    }

    /// Drops the attempt that runs.
    pub(super) fn stop(&mut self) {
        self.running = None;
    }
}

impl<'a, B: Body<'a>> Runner<'a, B> {
    pub(super) fn poll(&mut self, shared: &Shared, slot: &Slot) {
        let wanted = slot.attempt_number();
        if self.running.as_ref().is_some_and(|running| Some(running.attempt) != wanted) {
            self.running = None;
        }
        if self.running.is_none()
            && let Some(context) = slot.attempt()
        {
            self.running = Some(Running::new(shared, slot, &self.body, context));
        }
        let Some(running) = &mut self.running else { return };
        if let Poll::Ready(outcome) = running.poll() {
            self.running = None;
            shared.note_returned(slot);
            shared.request(finish(slot, outcome), slot.at);
        }
    }
}

fn finish(slot: &Slot, outcome: Result<Returned, Failure>) -> Request {
    let key = slot.key.clone();
    match outcome {
        Ok(Returned { result, met }) => Request::FinishStep { key, result, met },
        Err(error) => Request::FailStep { key, error },
    }
}

/// A body that runs beside the workflow: of a step that was started and not awaited.
pub(super) trait StartedBody {
    fn poll(&mut self, shared: &Shared, slot: &Rc<Slot>);
}

impl<B: Body<'static>> StartedBody for Runner<'static, B> {
    fn poll(&mut self, shared: &Shared, slot: &Rc<Slot>) {
        Runner::poll(self, shared, slot);
    }
}

/// An attempt that runs.
struct Running<'a> {
    /// None once it is dropped.
    future: Option<BodyFuture<'a>>,
    attempt: u32,
    woken: Arc<BodyWaker>,
    waker: Waker,
    runtime: Option<runtime::Handle>,
}

impl<'a> Running<'a> {
    fn new(shared: &Shared, slot: &Slot, body: &impl Body<'a>, context: StepContext) -> Self {
        let attempt = context.attempt();
        let woken = BodyWaker::new(Arc::clone(&shared.wakes), slot.key.clone());
        let waker = Waker::from(Arc::clone(&woken));
        let future = Some(body.begin(context, slot.kept()));
        Running { future, attempt, woken, waker, runtime: shared.runtime.clone() }
    }

    fn poll(&mut self) -> Poll<Result<Returned, Failure>> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        if !self.woken.take_woken() {
            return Poll::Pending;
        }
        let _outside = Inside::leave();
        let _entered = self.runtime.as_ref().map(runtime::Handle::enter);
        let polled = guard("the body", || future.as_mut().poll(&mut Context::from_waker(&self.waker)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(outcome)) => Poll::Ready(outcome.map_err(crate::error::Error::into_failure)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _outside = Inside::leave();
        // What a body holds of the runtime, such as a timer, looks for it when it is dropped.
        let _entered = self.runtime.as_ref().map(runtime::Handle::enter);
        // A destructor that panics must not take the driver's thread with it.
        let _ = guard("the body", || self.future = None);
    }
}
