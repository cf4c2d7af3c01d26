//! Sleeping.

use std::panic::Location;
use std::task::Context;

use outlast_core::operation::{Due, Operation as Request, OperationKind};

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::slot::Outcome;
use crate::error::Result;

/// A sleep. See [`Ctx::sleep`] and [`Ctx::sleep_until`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Sleep {
    pending: Pending,
    due: Due,
}

impl Sleep {
    #[track_caller]
    pub(super) fn new(ctx: &Ctx, due: Due) -> Self {
        Sleep { pending: Pending::unnamed(ctx, OperationKind::Timer, None, Location::caller()), due }
    }

    /// Gives it a name. It keeps its place in the count of unnamed ones, so that naming one does not rename the next.
    #[track_caller]
    pub fn id(mut self, name: &str) -> Self {
        self.pending.rename(name, Location::caller());
        self
    }

    /// Starts it now, to be awaited later.
    pub fn start(mut self) -> Handle<()> {
        self.begin();
        self.pending.into_handle(codec::done)
    }

    fn begin(&mut self) {
        let due = self.due;
        self.pending.start(|key| Request::StartTimer { key, due });
    }

    fn advance(&mut self, _: &mut Context<'_>) {}

    fn decode(&self, outcome: Outcome) -> Result<()> {
        codec::done(outcome)
    }
}

operation!(impl[] Sleep => ());
