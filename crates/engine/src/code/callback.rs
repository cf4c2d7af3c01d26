//! Callbacks: a token that somebody else answers.

/// How long an operation waits that has a `pending` and a `patience`; part of its builder.
macro_rules! patience {
    () => {
        /// Waits so long at most; then it fails with the code `timeout`.
        pub fn timeout(mut self, timeout: Duration) -> Self {
            self.pending.refuse_zero("callback", timeout);
            self.patience.deadline = Some(Due::After(timeout));
            self
        }

        /// Waits until this instant at most; then it fails with the code `timeout`.
        pub fn deadline(mut self, deadline: Timestamp) -> Self {
            self.patience.deadline = Some(Due::At(deadline));
            self
        }

        /// Whoever holds the token must give a sign of life so often; otherwise it fails with the code `timeout`.
        pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
            if heartbeat.is_zero() {
                self.pending.refuse_option("the heartbeat of a callback must be more than zero");
            }
            self.patience.heartbeat = Some(heartbeat);
            self
        }
    };
}

mod submitted;

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::FusedFuture;
use outlast_core::id::Index;
use outlast_core::operation::{Due, Operation as Request, OperationKind};
use outlast_core::time::Timestamp;
use serde::de::DeserializeOwned;

pub use submitted::{Token, WaitForCallback};

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Operation, Pending, Settles};
use crate::error::Result;

/// How long a callback waits.
#[derive(Clone, Copy, Default)]
struct Patience {
    deadline: Option<Due>,
    heartbeat: Option<Duration>,
}

/// A callback that is not created yet. See [`Ctx::callback`].
#[must_use = "a callback does nothing before it is created"]
pub struct Callback<T> {
    pending: Pending,
    patience: Patience,
    answer: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Callback<T> {
    #[track_caller]
    pub(super) fn new(ctx: &Ctx) -> Self {
        let pending = Pending::unnamed(ctx, OperationKind::Callback, None, Location::caller());
        Callback { pending, patience: Patience::default(), answer: PhantomData }
    }

    /// Gives it a name. It keeps its place in the count of unnamed ones, so that naming one does not rename the next.
    #[track_caller]
    pub fn id(mut self, name: &str) -> Self {
        self.pending.rename(name, Location::caller());
        self
    }

    patience!();

    /// Creates it: from now on its token may be used.
    pub fn create(mut self) -> CallbackHandle<T> {
        let Patience { deadline, heartbeat } = self.patience;
        self.pending.start(|key| Request::CreateCallback { key, deadline, heartbeat });
        let id = self.pending.key().map(ToString::to_string).unwrap_or_default();
        let handle = self.pending.into_handle(codec::value);
        CallbackHandle { token: handle.token(), id, handle }
    }
}

/// A callback that can be answered. Await it for the answer.
///
/// Dropping it does not cancel the callback.
#[must_use = "a callback that is not awaited hides its answer"]
pub struct CallbackHandle<T> {
    handle: Handle<T>,
    id: String,
    token: String,
}

impl<T> CallbackHandle<T> {
    /// Its public id, which is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its token: whoever knows it can answer. It is a secret, and not recorded.
    pub fn token(&self) -> String {
        self.token.clone()
    }

    /// Cancels it, unless it is answered.
    pub fn cancel(self) {
        self.handle.cancel();
    }
}

impl<T> fmt::Debug for CallbackHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallbackHandle").field(&self.id).finish()
    }
}

impl<T> Future for CallbackHandle<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        Pin::new(&mut self.handle).poll(cx)
    }
}

impl<T> FusedFuture for CallbackHandle<T> {
    fn is_terminated(&self) -> bool {
        self.handle.is_terminated()
    }
}

impl<T> Settles for CallbackHandle<T> {
    fn settled_at(&self) -> Option<Index> {
        self.handle.settled_at()
    }

    fn abandon(&mut self) {
        self.handle.abandon();
    }
}

impl<T> Operation for CallbackHandle<T> {
    type Value = T;
}
