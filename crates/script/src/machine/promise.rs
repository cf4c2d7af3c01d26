//! Promises: how they settle, in JavaScript's order.

use super::{Job, Machine, Outcome, codes};
use crate::heap::{Cell, Promise, PromiseState, Reaction};
use crate::value::{Id, Value};

impl Machine {
    /// A promise that is settled.
    pub(crate) fn settled_promise(&mut self, outcome: Outcome) -> Value {
        let promise = self.heap.alloc(Cell::Promise(Promise::default()));
        match outcome {
            Outcome::Value(value) => self.resolve(promise, value),
            Outcome::Error(_) => self.settle(promise, outcome),
        }
        Value::Promise(promise)
    }

    /// Gives a promise its value; if that is a promise too, it becomes what that one becomes.
    pub(super) fn resolve(&mut self, promise: Id, value: Value) {
        match value {
            Value::Promise(other) if other == promise => {
                let (code, message) = (self.heap.text(codes::TYPE), self.heap.text("a promise cannot wait for itself"));
                let error = self.new_error(code, message, Value::Null);
                self.settle(promise, Outcome::Error(error));
            }
            Value::Promise(other) => {
                if let Some(cell) = self.heap.promise_mut(promise)
                    && cell.state == PromiseState::Pending
                {
                    cell.state = PromiseState::Following;
                    self.jobs.push_back(Job::Follow { promise, other });
                }
            }
            value => self.settle(promise, Outcome::Value(value)),
        }
    }

    pub(super) fn follow(&mut self, promise: Id, other: Id) {
        let reaction = Reaction::Follow(promise);
        let Some(cell) = self.heap.promise_mut(other) else { return };
        match cell.state {
            PromiseState::Pending | PromiseState::Following => cell.reactions.push(reaction),
            PromiseState::Fulfilled(value) => self.jobs.push_back(reaction.job(Outcome::Value(value))),
            PromiseState::Rejected(error) => self.jobs.push_back(reaction.job(Outcome::Error(error))),
        }
    }

    /// Settles a promise, unless it is settled, and lets everything react that waits for it.
    pub(crate) fn settle(&mut self, promise: Id, outcome: Outcome) {
        let Some(cell) = self.heap.promise_mut(promise) else { return };
        match cell.state {
            PromiseState::Fulfilled(_) | PromiseState::Rejected(_) => return,
            PromiseState::Pending | PromiseState::Following => {}
        }
        cell.state = match outcome {
            Outcome::Value(value) => PromiseState::Fulfilled(value),
            Outcome::Error(error) => PromiseState::Rejected(error),
        };
        let reactions = std::mem::take(&mut cell.reactions);
        self.jobs.extend(reactions.into_iter().map(|reaction| reaction.job(outcome)));
    }
}
