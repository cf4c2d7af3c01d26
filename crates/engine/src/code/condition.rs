//! Conditions: the author's code, asked again and again until it says yes.

use std::panic::Location;
use std::rc::Rc;
use std::task::Context;

use bytes::Bytes;
use outlast_core::operation::Operation as Request;
use outlast_core::retry::Retry;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::{Body, BodyFuture, Returned, Runner};
use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::slot::Outcome;
use super::step_context::StepContext;
use crate::error::Result;

/// How often a condition is checked if its author does not say.
const CHECKS_MAX: u32 = 60;

/// What a check of a condition found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check<S> {
    /// It holds. This is what the wait gives.
    Met(S),
    /// It does not hold yet. This is what the next check gets.
    Not(S),
}

/// A wait for a condition. See [`Ctx::wait_for_condition`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct WaitForCondition<'a, F, S> {
    // Dropped before the check: a check is told that it is cancelled before it is dropped.
    pending: Pending,
    runner: Runner<'a, CheckBody<F, S>>,
    initial: Option<Bytes>,
    retry: Retry,
}

impl<'a, F, S> WaitForCondition<'a, F, S>
where
    F: AsyncFn(StepContext, S) -> Result<Check<S>> + Send + 'a,
    S: Serialize + DeserializeOwned + 'a,
{
    #[track_caller]
    pub(super) fn new(ctx: &Ctx, name: &str, initial: &S, check: F) -> Self {
        let mut pending = Pending::named(ctx, name, Location::caller());
        let initial = pending.accept(codec::encode("the initial state", initial));
        let body = CheckBody { check: Rc::new(check), state: std::marker::PhantomData };
        WaitForCondition { pending, runner: Runner::new(body), initial, retry: Retry::attempts(CHECKS_MAX) }
    }

    /// How often to check, and how long to wait in between; 60 checks otherwise. When it did not hold in the last one,
    /// the wait fails with the code `condition_not_met`.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    fn begin(&mut self) {
        let Some(state) = self.initial.take() else { return };
        let retry = self.retry;
        let first = state.clone();
        self.pending.start(|key| Request::CheckCondition { key, state, retry });
        if let Some(slot) = self.pending.slot() {
            slot.keep(first);
        }
    }

    fn advance(&mut self, _: &mut Context<'_>) {
        match self.pending.slot() {
            Some(slot) => self.runner.poll(self.pending.shared(), slot),
            None => self.runner.stop(),
        }
    }

    fn decode(&self, outcome: Outcome) -> Result<S> {
        codec::value(outcome)
    }
}

impl<F, S> WaitForCondition<'static, F, S>
where
    F: AsyncFn(StepContext, S) -> Result<Check<S>> + Send + 'static,
    S: Serialize + DeserializeOwned + 'static,
{
    /// Starts it now, to be awaited later. Its checks run beside the workflow, on the same thread.
    pub fn start(mut self) -> Handle<S> {
        self.begin();
        let WaitForCondition { pending, runner, .. } = self;
        if let Some(slot) = pending.slot() {
            pending.shared().start_body(slot.key.clone(), Box::new(runner));
        }
        pending.into_handle(codec::value)
    }
}

operation!(
    impl['a, F: AsyncFn(StepContext, S) -> Result<Check<S>> + Send + 'a, S: Serialize + DeserializeOwned + 'a]
    WaitForCondition<'a, F, S> => S
);

/// Calls the closure for each check, with the state of the one before.
struct CheckBody<F, S> {
    check: Rc<F>,
    state: std::marker::PhantomData<fn() -> S>,
}

impl<'a, F, S> Body<'a> for CheckBody<F, S>
where
    F: AsyncFn(StepContext, S) -> Result<Check<S>> + 'a,
    S: Serialize + DeserializeOwned + 'a,
{
    fn begin(&self, context: StepContext, kept: Option<Bytes>) -> BodyFuture<'a> {
        let check = Rc::clone(&self.check);
        Box::pin(async move {
            let state = codec::decode("the recorded state", &kept.unwrap_or_default())?;
            let (state, met) = match check(context, state).await? {
                Check::Met(state) => (state, true),
                Check::Not(state) => (state, false),
            };
            Ok(Returned { result: codec::encode("the state", &state)?, met: Some(met) })
        })
    }
}
