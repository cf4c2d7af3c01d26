//! Runs the branches of a batch.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use outlast_core::id::Key;
use outlast_core::operation::branch;
use outlast_core::planted;
use serde::Serialize;

use super::policy::{Policy, Tally};
use super::{Batch, BatchItem, BatchReason};
use crate::code::codec;
use crate::code::ctx::Ctx;
use crate::code::scope::Closing;
use crate::code::shared::Shared;
use crate::code::wake::Many;
use crate::error::{Error, Result};

/// A branch that runs.
pub(super) type Branch<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;
/// A branch that is to be started.
pub(super) type Start<'a, T> = Box<dyn FnOnce(Ctx) -> Branch<'a, T> + 'a>;
/// The branches that are to be started.
pub(super) type Starts<'a, T> = Box<dyn Iterator<Item = Start<'a, T>> + 'a>;

/// What a batch is to do.
pub(super) struct Plan<'a, T> {
    pub(super) starts: Starts<'a, T>,
    pub(super) total: usize,
    pub(super) concurrency: usize,
    pub(super) policy: Policy,
}

/// The inside of a batch.
pub(super) struct Run<'a, T> {
    shared: Rc<Shared>,
    scope: Key,
    plan: Plan<'a, T>,
    branches: Vec<State<'a, T>>,
    many: Many,
    woken: VecDeque<(usize, Waker)>,
    tally: Tally,
    /// How often the run had been cancelled when this began.
    cancellations: u32,
    /// The generation ends because a branch said so.
    continued: Option<Error>,
}

enum State<'a, T> {
    Running(Branch<'a, T>),
    Over(BatchItem<T>),
}

impl<'a, T: Serialize + 'a> Run<'a, T> {
    pub(super) fn new(shared: Rc<Shared>, scope: Key, plan: Plan<'a, T>) -> Self {
        let tally = Tally { succeeded: 0, failed: 0, total: plan.total };
        let cancellations = shared.cancellations();
        Run {
            shared,
            scope,
            plan,
            branches: Vec::new(),
            many: Many::new(),
            woken: VecDeque::new(),
            tally,
            cancellations,
            continued: None,
        }
    }

    fn running(&self) -> usize {
        self.branches.len() - self.tally.succeeded - self.tally.failed
    }

    /// The run was asked to stop while this ran: nothing new is started, and what runs may clean up.
    fn is_stopped(&self) -> bool {
        self.shared.cancellations() != self.cancellations
    }

    /// Whether it is over, asked after each branch that ended.
    fn decide(&mut self) -> Option<Closing> {
        if let Some(error) = self.continued.take() {
            return Some(Closing { result: Err(error), reason: None });
        }
        if self.is_stopped() {
            let failure = self.shared.cancelled_with().filter(|_| self.running() == 0)?;
            return Some(Closing { result: Err(failure.into()), reason: None });
        }
        let reason = self.plan.policy.decide(self.tally)?;
        Some(Closing { result: self.result(reason), reason: Some(reason.as_str()) })
    }

    fn result(&mut self, reason: BatchReason) -> Result<bytes::Bytes> {
        // The end of the scope cancels what is open in it. Forgotten first, so that dropping it says nothing.
        self.shared.close_below(&self.scope);
        let items = std::mem::take(&mut self.branches).into_iter().map(|branch| match branch {
            State::Running(_) => BatchItem::Cancelled,
            State::Over(item) => item,
        });
        codec::encode("what the branches returned", &Batch { items: items.collect(), reason })
    }

    /// Starts the next branch, if there is one and it may run.
    fn start_next(&mut self) -> bool {
        let concurrency = self.plan.concurrency.saturating_add(usize::from(planted!("one-branch-too-many")));
        if self.running() >= concurrency || self.is_stopped() {
            return false;
        }
        let Some(start) = self.plan.starts.next() else { return false };
        let place = self.branches.len();
        let branch: Branch<'a, T> = match branch(&self.scope, place) {
            Ok(scope) => start(Ctx { shared: Rc::clone(&self.shared), scope: Some(scope) }),
            Err(error) => Box::pin(std::future::ready(Err(Error::invalid(error.to_string())))),
        };
        self.branches.push(State::Running(branch));
        let waker = self.many.add();
        self.poll_branch(place, &waker);
        true
    }

    fn poll_branch(&mut self, place: usize, waker: &Waker) {
        let State::Running(branch) = &mut self.branches[place] else { return };
        let Poll::Ready(result) = branch.as_mut().poll(&mut Context::from_waker(waker)) else { return };
        let item = match result {
            Ok(value) => {
                self.tally.succeeded += 1;
                BatchItem::Succeeded(value)
            }
            Err(error) => {
                self.tally.failed += 1;
                if self.shared.is_continued() {
                    self.continued = Some(error.clone());
                }
                BatchItem::Failed(error)
            }
        };
        self.branches[place] = State::Over(item);
    }
}

// Branches are boxed, and values are only kept.
impl<T> Unpin for Run<'_, T> {}

impl<'a, T: Serialize + 'a> Future for Run<'a, T> {
    type Output = Closing;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Closing> {
        self.many.set_owner(cx.waker());
        loop {
            if let Some(closing) = self.decide() {
                return Poll::Ready(closing);
            }
            if self.start_next() {
                continue;
            }
            if self.woken.is_empty() {
                self.woken = self.many.take_woken().into();
            }
            let Some((place, waker)) = self.woken.pop_front() else { return Poll::Pending };
            self.poll_branch(place, &waker);
        }
    }
}
