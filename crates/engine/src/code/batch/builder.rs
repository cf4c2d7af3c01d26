//! `map` and `parallel`, before they run.

use std::panic::Location;
use std::rc::Rc;
use std::task::Context;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Batch;
use super::policy::Policy;
use super::run::{Plan, Run, Start, Starts};
use crate::code::codec;
use crate::code::ctx::Ctx;
use crate::code::operation::{Handle, Pending, operation};
use crate::code::scope::Inside;
use crate::code::slot::Outcome;
use crate::error::Result;

/// The same code for each item. See [`Ctx::map`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Map<'a, T> {
    pending: Pending,
    inside: Option<Inside<'a>>,
    branches: Option<(Starts<'a, T>, usize)>,
    options: Options,
}

/// Several branches. See [`Ctx::parallel`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Parallel<'a, T> {
    pending: Pending,
    inside: Option<Inside<'a>>,
    branches: Vec<Start<'a, T>>,
    options: Options,
}

#[derive(Default)]
struct Options {
    concurrency: Option<usize>,
    policy: Policy,
}

impl<'a, T: Serialize + DeserializeOwned + 'a> Map<'a, T> {
    #[track_caller]
    pub(in crate::code) fn new<I, F>(ctx: &Ctx, name: &str, items: Vec<I>, body: F) -> Self
    where
        F: AsyncFn(Ctx, I, usize) -> Result<T> + 'a,
        I: 'a,
    {
        let pending = Pending::named(ctx, name, Location::caller());
        let (body, total) = (Rc::new(body), items.len());
        let starts = items.into_iter().enumerate().map(move |(place, item)| -> Start<'a, T> {
            let body = Rc::clone(&body);
            Box::new(move |ctx| Box::pin(async move { body(ctx, item, place).await }))
        });
        Map { pending, inside: None, branches: Some((Box::new(starts), total)), options: Options::default() }
    }

    fn take_branches(&mut self) -> Option<(Starts<'a, T>, usize)> {
        self.branches.take()
    }
}

impl<'a, T: Serialize + DeserializeOwned + 'a> Parallel<'a, T> {
    #[track_caller]
    pub(in crate::code) fn new(ctx: &Ctx, name: &str) -> Self {
        let pending = Pending::named(ctx, name, Location::caller());
        Parallel { pending, inside: None, branches: Vec::new(), options: Options::default() }
    }

    /// Adds a branch.
    pub fn branch<F>(mut self, body: F) -> Self
    where
        F: AsyncFnOnce(Ctx) -> Result<T> + 'a,
    {
        self.branches.push(Box::new(move |ctx| Box::pin(async move { body(ctx).await })));
        self
    }

    fn take_branches(&mut self) -> Option<(Starts<'a, T>, usize)> {
        let branches = std::mem::take(&mut self.branches);
        let total = branches.len();
        Some((Box::new(branches.into_iter()), total))
    }
}

macro_rules! batch {
    ($builder:ident) => {
        impl<'a, T: Serialize + DeserializeOwned + 'a> $builder<'a, T> {
            /// How many branches run at once; all of them otherwise. Zero is an error.
            pub fn max_concurrency(mut self, max: usize) -> Self {
                if max == 0 {
                    self.pending.refuse_option("the concurrency of a batch must be more than zero");
                }
                self.options.concurrency = Some(max);
                self
            }

            /// Complete as soon as so many branches succeeded. Failures are tolerated then, unless another option says
            /// how many.
            pub fn min_successful(mut self, min: usize) -> Self {
                self.options.policy.min_successful = Some(min);
                self
            }

            /// Complete as soon as more than so many branches failed. Without this and its like, one failure is too
            /// many.
            pub fn tolerate_failures(mut self, max: usize) -> Self {
                self.options.policy.tolerated = Some(max);
                self
            }

            /// Complete as soon as more than this part of all branches failed.
            pub fn tolerate_percent(mut self, percent: u32) -> Self {
                self.options.policy.tolerated_percent = Some(percent);
                self
            }

            fn begin(&mut self) {
                // Taken once: afterwards there is nothing to start.
                if self.pending.slot().is_some() || self.pending.is_done() {
                    return;
                }
                let Some((starts, total)) = self.take_branches() else { return };
                let Ok(count) = u32::try_from(total) else {
                    return self.pending.refuse_option(format!("a batch cannot have {total} branches"));
                };
                let Some(slot) = self.pending.start_scope(Some(count)) else { return };
                let concurrency = self.options.concurrency.unwrap_or(usize::MAX);
                let plan = Plan { starts, total, concurrency, policy: self.options.policy };
                let run = Run::new(Rc::clone(self.pending.shared()), slot.key.clone(), plan);
                self.inside = Some(Inside::new(Box::pin(run)));
            }

            fn advance(&mut self, cx: &mut Context<'_>) {
                if let Some(inside) = &mut self.inside {
                    inside.advance(&self.pending, cx);
                }
            }

            fn decode(&self, outcome: Outcome) -> Result<Batch<T>> {
                codec::value(outcome)
            }
        }

        impl<T: Serialize + DeserializeOwned + 'static> $builder<'static, T> {
            /// Starts it now, to be awaited later. It runs beside the workflow.
            pub fn start(mut self) -> Handle<Batch<T>> {
                self.begin();
                if let Some(inside) = self.inside.take() {
                    inside.hand_over(&self.pending);
                }
                self.pending.into_handle(codec::value)
            }
        }

        operation!(impl['a, T: Serialize + DeserializeOwned + 'a] $builder<'a, T> => Batch<T>);
    };
}

batch!(Map);
batch!(Parallel);
