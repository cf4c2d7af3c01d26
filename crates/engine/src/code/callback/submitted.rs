//! A callback whose token is handed out by a step.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::operation::Due;
use outlast_core::retry::Retry;
use outlast_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Callback, Patience};
use crate::code::codec;
use crate::code::ctx::Ctx;
use crate::code::operation::{Handle, Pending, operation};
use crate::code::scope::{Closing, Inside};
use crate::code::slot::Outcome;
use crate::code::step_context::StepContext;
use crate::error::Result;

/// The token of a callback: whoever knows it can answer.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Token {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Token {
    /// A secret is not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A callback whose token is handed out by a step. See [`Ctx::wait_for_callback`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct WaitForCallback<'a, F, T> {
    pending: Pending,
    inside: Option<Inside<'a>>,
    submit: Option<F>,
    patience: Patience,
    retry: Retry,
    answer: PhantomData<fn() -> T>,
}

impl<'a, F, T> WaitForCallback<'a, F, T>
where
    F: AsyncFn(StepContext, Token) -> Result<()> + Send + 'a,
    T: DeserializeOwned,
{
    #[track_caller]
    pub(in crate::code) fn new(ctx: &Ctx, name: &str, submit: F) -> Self {
        WaitForCallback {
            pending: Pending::named(ctx, name, Location::caller()),
            inside: None,
            submit: Some(submit),
            patience: Patience::default(),
            retry: Retry::default(),
            answer: PhantomData,
        }
    }

    patience!();

    /// When to hand out the token again after a failure.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    fn begin(&mut self) {
        let Some(slot) = self.pending.start_scope(None) else { return };
        let Some(submit) = self.submit.take() else { return };
        let ctx = Ctx { shared: Rc::clone(self.pending.shared()), scope: Some(slot.key.clone()) };
        let (patience, retry) = (self.patience, self.retry);
        self.inside = Some(Inside::new(Box::pin(async move {
            Closing { result: run(ctx, submit, patience, retry).await, reason: None }
        })));
    }

    fn advance(&mut self, cx: &mut Context<'_>) {
        if let Some(inside) = &mut self.inside {
            inside.advance(&self.pending, cx);
        }
    }

    fn decode(&self, outcome: Outcome) -> Result<T> {
        codec::value(outcome)
    }
}

impl<F, T> WaitForCallback<'static, F, T>
where
    F: AsyncFn(StepContext, Token) -> Result<()> + Send + 'static,
    T: DeserializeOwned,
{
    /// Starts it now, to be awaited later.
    pub fn start(mut self) -> Handle<T> {
        self.begin();
        if let Some(inside) = self.inside.take() {
            inside.hand_over(&self.pending);
        }
        self.pending.into_handle(codec::value)
    }
}

// The closure is only kept.
impl<F, T> Unpin for WaitForCallback<'_, F, T> {}

operation!(
    impl['a, F: AsyncFn(StepContext, Token) -> Result<()> + Send + 'a, T: DeserializeOwned]
    WaitForCallback<'a, F, T> => T
);

/// The answer is passed on as it is: what it means is decided where it is awaited.
async fn run<F>(ctx: Ctx, submit: F, patience: Patience, retry: Retry) -> Result<Bytes>
where
    F: AsyncFn(StepContext, Token) -> Result<()> + Send,
{
    let mut callback = Callback::<Box<RawValue>>::new(&ctx);
    callback.patience = patience;
    let callback = callback.create();
    let token = Token(callback.token());
    ctx.step("submit", async move |step| submit(step, token.clone()).await).retry(retry).await?;
    let answer = callback.await?;
    Ok(Bytes::copy_from_slice(answer.get().as_bytes()))
}
