//! Calls that can be suspended.

use outlast_core::operation::Operations;

use super::{Frame, FrameKind, Job, Machine, Outcome};
use crate::heap::{Cell, Promise, PromiseState, Reaction, Task};
use crate::value::{Id, Value};

impl Machine {
    /// A call that is about to begin, with the promise its caller gets.
    pub(super) fn new_task(&mut self) -> Id {
        let promise = self.heap.alloc(Cell::Promise(Promise::default()));
        self.heap.alloc(Cell::Task(Task { promise: Some(promise), ..Task::default() }))
    }

    /// Suspends the call on top until a value is there; its caller goes on with a promise.
    pub(super) fn suspend(&mut self, value: Value, ops: &mut Operations) {
        if let Value::Promise(promise) = value {
            // While the call is still there to say where.
            self.note_awaited(promise, ops);
        }
        let Some(frame) = self.frames.pop() else { return };
        let base = frame.base as usize;
        let (task, has_caller) = match frame.kind {
            // Only functions that can be suspended contain an await.
            FrameKind::Plain => return,
            FrameKind::Task(task) => (task, true),
            FrameKind::ResumedTask(task) => (task, false),
        };
        let variables = self.stack.split_off(base);
        self.stack.truncate(base - 1);
        let mut promise = None;
        if let Some(task) = self.heap.task_mut(task) {
            task.closure = frame.closure;
            task.function = frame.function;
            task.at = frame.at;
            task.stack = variables;
            promise = task.promise;
        }
        if let (true, Some(promise)) = (has_caller, promise) {
            self.stack.push(Value::Promise(promise));
        }
        self.when_settled(value, Reaction::Resume(task), ops);
    }

    /// Puts a suspended call back on the stack. An error is thrown by whoever calls this.
    pub(super) fn resume_task(&mut self, id: Id, outcome: Outcome) {
        let Some(task) = self.heap.task_mut(id) else { return };
        let variables = std::mem::take(&mut task.stack);
        // Zero says that it runs.
        let (function, closure, at) = (task.function, task.closure, std::mem::take(&mut task.at));
        self.stack.push(Value::Null);
        let base = u32::try_from(self.stack.len()).unwrap_or(u32::MAX);
        self.stack.extend(variables);
        if let Outcome::Value(value) = outcome {
            self.stack.push(value);
        }
        self.frames.push(Frame { function, closure, at, base, kind: FrameKind::ResumedTask(id) });
    }

    /// A call that can be suspended is over; its promise.
    pub(super) fn end_task(&mut self, task: Id, outcome: Outcome) -> Value {
        let Some(promise) = self.heap.task_mut(task).and_then(|task| task.promise) else { return Value::Null };
        match outcome {
            Outcome::Value(value) => self.resolve(promise, value),
            Outcome::Error(_) => self.settle(promise, outcome),
        }
        Value::Promise(promise)
    }

    /// Does something once a value is there: at once, that is after everything that is due now, unless it is a promise
    /// that is not settled.
    pub(super) fn when_settled(&mut self, value: Value, reaction: Reaction, ops: &mut Operations) {
        let Value::Promise(id) = value else {
            self.jobs.push_back(reaction.job(Outcome::Value(value)));
            return;
        };
        self.note_awaited(id, ops);
        let Some(promise) = self.heap.promise_mut(id) else { return };
        match promise.state {
            PromiseState::Pending | PromiseState::Following => {
                promise.reactions.push(reaction);
                self.heap.grew(16);
            }
            PromiseState::Fulfilled(value) => self.jobs.push_back(reaction.job(Outcome::Value(value))),
            PromiseState::Rejected(error) => self.jobs.push_back(reaction.job(Outcome::Error(error))),
        }
    }

    /// Tells the driver, once, that an operation is awaited.
    pub(super) fn note_awaited(&mut self, promise: Id, ops: &mut Operations) {
        let Some(key) = self.heap.promise_of(promise).and_then(|promise| promise.operation.clone()) else { return };
        if self.world.open.get(&key).is_some_and(|open| !open.is_awaited) {
            let at = self.location();
            self.world.note_awaited(&key, at, ops);
        }
    }
}

impl Reaction {
    pub(super) fn job(self, outcome: Outcome) -> Job {
        match self {
            Reaction::Resume(task) => Job::Resume { task, outcome },
            Reaction::Follow(promise) => Job::Settle { promise, outcome },
            Reaction::Item { combine, place } => Job::Item { combine, place, outcome },
        }
    }
}
