//! Steps: the author's own side effects.

use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::operation::Operation as Request;
use outlast_core::retry::Retry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime;
use tokio::task::JoinHandle;

use super::body::{Body, BodyFuture, Returned, Runner, StartedBody};
use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::panics::guard;
use super::slot::Outcome;
use super::step_context::StepContext;
use crate::error::{Error, Result};

/// A step. See [`Ctx::step`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Step<'a, F, T> {
    // Dropped before the body: a body is told that it is cancelled before it is dropped.
    pending: Pending,
    runner: Runner<'a, StepBody<F, T>>,
    options: Options,
}

#[derive(Clone, Copy)]
struct Options {
    at_most_once: bool,
    retry: Retry,
    timeout: Option<Duration>,
    heartbeat: Option<Duration>,
}

impl<'a, F, T> Step<'a, F, T>
where
    F: AsyncFn(StepContext) -> Result<T> + Send + 'a,
    T: Serialize + DeserializeOwned + 'a,
{
    #[track_caller]
    pub(super) fn new(ctx: &Ctx, name: &str, body: F) -> Self {
        let options = Options { at_most_once: false, retry: Retry::default(), timeout: None, heartbeat: None };
        let body = StepBody { body: Rc::new(body), value: PhantomData };
        Step { pending: Pending::named(ctx, name, Location::caller()), runner: Runner::new(body), options }
    }

    /// When to try again after a failure; [`Retry::default`] otherwise. An error that is permanent is not retried.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = retry;
        self
    }

    /// How long one attempt may take. An attempt that takes longer is dropped, and counts as a failure with the code
    /// `timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.pending.refuse_zero("step", timeout);
        self.options.timeout = Some(timeout);
        self
    }

    /// How long one attempt may be silent: an attempt that does not call [`StepContext::heartbeat`] so often is dropped, and
    /// counts as a failure with the code `timeout`. It finds a body that hangs long before its timeout does.
    pub fn heartbeat(mut self, silence: Duration) -> Self {
        if silence.is_zero() {
            self.pending.refuse_option("the silence allowed to a step must be more than zero");
        }
        self.options.heartbeat = Some(silence);
        self
    }

    /// Never runs the body again when nobody knows whether it did its work: after a crash the step fails with the code
    /// `step_in_doubt` instead. An attempt that is known to have failed is retried all the same.
    pub fn at_most_once(mut self) -> Self {
        self.options.at_most_once = true;
        self
    }

    fn advance(&mut self, _: &mut Context<'_>) {
        match self.pending.slot() {
            Some(slot) => self.runner.poll(self.pending.shared(), slot),
            None => self.runner.stop(),
        }
    }

    fn decode(&self, outcome: Outcome) -> Result<T> {
        codec::value(outcome)
    }
}

impl<F, T> Step<'_, F, T> {
    fn begin(&mut self) {
        let Options { at_most_once, retry, timeout, heartbeat } = self.options;
        self.pending.start(|key| Request::StartStep { key, at_most_once, retry, timeout, heartbeat });
    }
}

impl<F, T> Step<'static, F, T>
where
    F: AsyncFn(StepContext) -> Result<T> + Send + 'static,
    T: Serialize + DeserializeOwned + 'static,
{
    /// Starts it now, to be awaited later. Its body runs beside the workflow, on the same thread.
    pub fn start(mut self) -> Handle<T> {
        self.begin();
        let Step { pending, runner, .. } = self;
        hand_over(&pending, Box::new(runner));
        pending.into_handle(codec::value)
    }
}

impl<F, Fut, T> Step<'static, F, T>
where
    F: Fn(StepContext) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: Serialize + DeserializeOwned + 'static,
{
    /// Starts it now, to be awaited later. Its body runs on the Tokio runtime, beside everything else: for work that
    /// keeps a core busy.
    pub fn spawn(mut self) -> Handle<T> {
        self.begin();
        let Step { pending, runner, .. } = self;
        let body = SpawnedBody { body: runner.into_body().body, runtime: pending.shared().runtime.clone() };
        hand_over(&pending, Box::new(Runner::new(body)));
        pending.into_handle(codec::value)
    }
}

fn hand_over(pending: &Pending, body: Box<dyn StartedBody>) {
    if let Some(slot) = pending.slot() {
        pending.shared().start_body(slot.key.clone(), body);
    }
}

operation!(
    impl['a, F: AsyncFn(StepContext) -> Result<T> + Send + 'a, T: Serialize + DeserializeOwned + 'a] Step<'a, F, T> => T
);

/// Calls the closure for each attempt. Shared with the attempt's future, which borrows from it.
struct StepBody<F, T> {
    body: Rc<F>,
    value: PhantomData<fn() -> T>,
}

impl<'a, F, T> Body<'a> for StepBody<F, T>
where
    F: AsyncFn(StepContext) -> Result<T> + 'a,
    T: Serialize + 'a,
{
    fn begin(&self, context: StepContext, _: Option<Bytes>) -> BodyFuture<'a> {
        let body = Rc::clone(&self.body);
        Box::pin(async move { returned(&body(context).await?) })
    }
}

fn returned(value: &impl Serialize) -> Result<Returned> {
    Ok(Returned { result: codec::encode("what the step returned", value)?, met: None })
}

/// Calls the closure for each attempt, and moves its future to the runtime.
struct SpawnedBody<F> {
    body: Rc<F>,
    runtime: Option<runtime::Handle>,
}

impl<F, Fut, T> Body<'static> for SpawnedBody<F>
where
    F: Fn(StepContext) -> Fut + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: Serialize + 'static,
{
    fn begin(&self, context: StepContext, _: Option<Bytes>) -> BodyFuture<'static> {
        let (body, runtime) = (Rc::clone(&self.body), self.runtime.clone());
        Box::pin(async move {
            let Some(runtime) = runtime else {
                return Err(Error::new("no_runtime", "there is no Tokio runtime to spawn a step on").permanent());
            };
            let mut future = Box::pin(body(context));
            let guarded = std::future::poll_fn(move |cx| match guard("the body", || future.as_mut().poll(cx)) {
                Ok(polled) => polled.map(|value| returned(&value?)),
                Err(panic) => std::task::Poll::Ready(Err(panic.into())),
            });
            #[expect(clippy::disallowed_methods, reason = "a spawned body belongs to its attempt, which aborts it")]
            let task = AbortOnDrop(runtime.spawn(guarded));
            task.await
        })
    }
}

struct AbortOnDrop(JoinHandle<Result<Returned>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Future for AbortOnDrop {
    type Output = Result<Returned>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> std::task::Poll<Self::Output> {
        let joined = std::task::ready!(std::pin::Pin::new(&mut self.0).poll(cx));
        std::task::Poll::Ready(joined.unwrap_or_else(|gone| Err(gone.into())))
    }
}
