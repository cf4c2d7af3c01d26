//! Waiting for a signal.

use std::marker::PhantomData;
use std::panic::Location;
use std::task::Context;
use std::time::Duration;

use outlast_core::failure::Failure;
use outlast_core::id::SignalName;
use outlast_core::operation::{Due, Operation as Request, OperationKind};
use outlast_core::time::Timestamp;
use serde::de::DeserializeOwned;

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::slot::{CheckPayload, Outcome};
use crate::error::{Error, Result};

/// A wait for a signal. See [`Ctx::wait_for`]. It gives a `T`; with a deadline, an `Option<T>`.
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct WaitFor<T, O = T> {
    pending: Pending,
    name: Option<SignalName>,
    deadline: Option<Due>,
    decode: fn(Outcome) -> Result<O>,
    check: CheckPayload,
    payload: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> WaitFor<T, T> {
    #[track_caller]
    pub(super) fn new(ctx: &Ctx, name: &str) -> Self {
        let mut pending = Pending::unnamed(ctx, OperationKind::Signal, Some(name), Location::caller());
        let name = pending.accept_id(SignalName::new(name));
        WaitFor { pending, name, deadline: None, decode: codec::value, check: fits::<T>, payload: PhantomData }
    }

    /// Waits so long at most, and gives `None` then.
    pub fn timeout(mut self, timeout: Duration) -> WaitFor<T, Option<T>> {
        self.pending.refuse_zero("wait", timeout);
        self.until(Due::After(timeout))
    }

    /// Waits until this instant at most, and gives `None` then.
    pub fn deadline(self, deadline: Timestamp) -> WaitFor<T, Option<T>> {
        self.until(Due::At(deadline))
    }

    fn until(self, due: Due) -> WaitFor<T, Option<T>> {
        let WaitFor { pending, name, check, .. } = self;
        WaitFor { pending, name, deadline: Some(due), decode: codec::value_in_time, check, payload: PhantomData }
    }
}

impl<T: DeserializeOwned> WaitFor<T, Option<T>> {
    /// Fails with the code `wait_timeout`, which names the signal, instead of giving `None`.
    pub fn or_fail(self) -> WaitFor<T, T> {
        let WaitFor { pending, name, deadline, check, .. } = self;
        let decode = codec::value_or_wait_timeout;
        WaitFor { pending, name, deadline, decode, check, payload: PhantomData }
    }
}

/// Whether a payload can be read as what the wait gives.
fn fits<T: DeserializeOwned>(payload: &[u8]) -> Result<(), Failure> {
    codec::decode::<T>("the payload", payload).map(drop).map_err(Error::into_failure)
}

impl<T, O> WaitFor<T, O> {
    /// Gives it a name. It keeps its place in the count of unnamed ones, so that naming one does not rename the next.
    #[track_caller]
    pub fn id(mut self, name: &str) -> Self {
        self.pending.rename(name, Location::caller());
        self
    }

    /// Starts it now, to be awaited later.
    pub fn start(mut self) -> Handle<O> {
        self.begin();
        self.pending.into_handle(self.decode)
    }

    fn begin(&mut self) {
        if let Some(name) = self.name.take() {
            let deadline = self.deadline;
            self.pending.start(|key| Request::AwaitSignal { key, name, deadline, schema: None });
            if let Some(slot) = self.pending.slot() {
                slot.set_check(self.check);
            }
        }
    }

    fn advance(&mut self, _: &mut Context<'_>) {}

    fn decode(&self, outcome: Outcome) -> Result<O> {
        (self.decode)(outcome)
    }
}

operation!(impl[T, O] WaitFor<T, O> => O);
