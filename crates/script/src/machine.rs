//! The machine: it runs code, with a stack of calls and a stack of values of its own. Nothing here recurses.

mod arithmetic;
mod call;
mod combine;
mod error;
mod execute;
mod fact;
mod iterate;
mod json;
mod look;
mod lose;
mod member;
mod print;
mod promise;
mod task;

use std::collections::VecDeque;
use std::sync::Arc;

use outlast_core::failure::Failure;
use outlast_core::operation::Operations;

pub(crate) use arithmetic::power;
pub(crate) use error::codes;
pub(crate) use member::{count, place};

use crate::code::Code;
use crate::heap::Heap;
use crate::limits::Limits;
use crate::value::{Id, Value};
use crate::world::World;

/// Why something did not return a value.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An error the script can catch.
    Throw(Value),
    /// The run is over: a limit that nobody can catch.
    Fatal(Failure),
}

pub(crate) type Done<T = Value> = Result<T, Stop>;

/// A call that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) closure: Option<Id>,
    /// The instruction that comes next.
    pub(crate) at: u32,
    /// Where its variables begin on the stack.
    pub(crate) base: u32,
    pub(crate) kind: FrameKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// It returns to the call below.
    Plain,
    /// It can be suspended; its caller gets a promise.
    Task(Id),
    /// It was suspended before, and nobody waits for it on the stack.
    ResumedTask(Id),
}

/// Something to do once no call runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// A suspended call goes on.
    Resume { task: Id, outcome: Outcome },
    /// A promise follows another one.
    Follow { promise: Id, other: Id },
    /// A promise becomes what another one became.
    Settle { promise: Id, outcome: Outcome },
    /// An element of a combination is there.
    Item { combine: Id, place: u32, outcome: Outcome },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    Value(Value),
    Error(Value),
}

pub(crate) struct Machine {
    pub(crate) code: Arc<Code>,
    pub(crate) heap: Heap,
    pub(crate) stack: Vec<Value>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) limits: Limits,
    /// Instructions that are left until the next fact.
    pub(crate) fuel: u64,
    /// The promise of the run itself.
    pub(crate) main: Option<Id>,
    /// The call of the file, whatever it waits for.
    pub(crate) main_task: Option<Id>,
    pub(crate) inputs: Value,
    pub(crate) world: World,
}

impl Machine {
    pub(crate) fn new(code: Arc<Code>, world: World, limits: Limits) -> Machine {
        let heap = Heap::with_constants(&code.texts, limits.garbage_bytes);
        Machine {
            heap,
            code,
            stack: Vec::new(),
            frames: Vec::new(),
            jobs: VecDeque::new(),
            limits,
            fuel: limits.instructions,
            main: None,
            main_task: None,
            inputs: Value::Null,
            world,
        }
    }

    /// Calls the file, which runs to its first await.
    pub(crate) fn start(&mut self, ops: &mut Operations) -> Result<(), Failure> {
        let main = self.code.main;
        let task = self.new_task();
        self.main_task = Some(task);
        self.main = self.heap.task_mut(task).and_then(|task| task.promise);
        self.stack.push(Value::Null);
        let frame = Frame { function: main, closure: None, at: 0, base: 1, kind: FrameKind::ResumedTask(task) };
        let slots = usize::from(self.code.functions[main as usize].slots);
        self.stack.resize(1 + slots, Value::Null);
        self.frames.push(frame);
        self.run(ops)?;
        self.finish_turn(ops)
    }

    /// Does everything that can be done now, and takes back what nobody needs afterwards.
    pub(crate) fn finish_turn(&mut self, ops: &mut Operations) -> Result<(), Failure> {
        self.run_jobs(ops)?;
        self.give_up_losers(ops)
    }

    /// Does everything that can be done now.
    fn run_jobs(&mut self, ops: &mut Operations) -> Result<(), Failure> {
        while let Some(job) = self.jobs.pop_front() {
            match job {
                Job::Resume { task, outcome } => {
                    self.resume_task(task, outcome);
                    if let Outcome::Error(error) = outcome {
                        self.throw_into(error)?;
                    }
                    self.run(ops)?;
                }
                Job::Follow { promise, other } => self.follow(promise, other),
                Job::Settle { promise, outcome } => self.settle(promise, outcome),
                Job::Item { combine, place, outcome } => self.item(combine, place, outcome),
            }
            if self.heap.wants_collection() {
                self.collect()?;
            }
        }
        Ok(())
    }

    /// Runs until no call is left, or all are suspended.
    fn run(&mut self, ops: &mut Operations) -> Result<(), Failure> {
        let code = Arc::clone(&self.code);
        loop {
            match self.execute(&code, ops) {
                Ok(()) => return Ok(()),
                Err(Stop::Throw(error)) => self.throw_into(error)?,
                Err(Stop::Fatal(failure)) => return Err(failure),
            }
        }
    }

    /// Everything that is reachable no matter what.
    pub(crate) fn roots(&self) -> Vec<Id> {
        self.roots_of_calls().into_iter().chain(self.world.promises()).collect()
    }

    /// The same without what is open: what calls and jobs name.
    fn roots_of_calls(&self) -> Vec<Id> {
        let on_stack = self.stack.iter().filter_map(|value| value.id());
        let frames = self.frames.iter().flat_map(|frame| {
            let task = match frame.kind {
                FrameKind::Plain => None,
                FrameKind::Task(task) | FrameKind::ResumedTask(task) => Some(task),
            };
            frame.closure.into_iter().chain(task)
        });
        let jobs = self.jobs.iter().flat_map(|job| {
            let (id, other, outcome) = match *job {
                Job::Resume { task, outcome } => (task, None, Some(outcome)),
                Job::Follow { promise, other } => (promise, Some(other), None),
                Job::Settle { promise, outcome } => (promise, None, Some(outcome)),
                Job::Item { combine, outcome, .. } => (combine, None, Some(outcome)),
            };
            let value = outcome.map(|(Outcome::Value(value) | Outcome::Error(value))| value);
            [Some(id), other, value.and_then(Value::id)].into_iter().flatten()
        });
        let fixed = self.main.into_iter().chain(self.main_task).chain(self.inputs.id());
        on_stack.chain(frames).chain(jobs).chain(fixed).collect()
    }

    /// Frees what cannot be reached; fails if too much can. To be called only while every live value is on a stack.
    pub(crate) fn collect(&mut self) -> Result<(), Failure> {
        let roots = self.roots();
        self.heap.collect(roots);
        if self.heap.bytes() > self.limits.heap_bytes {
            let message = format!(
                "the values of the script take {} bytes, the limit is {}: keep less of them, or pass large ones by reference",
                self.heap.bytes(),
                self.limits.heap_bytes
            );
            return Err(self.fatal("heap_limit", message));
        }
        Ok(())
    }

    /// Uses up instructions.
    pub(crate) fn spend(&mut self, instructions: u64) -> Done<()> {
        match self.fuel.checked_sub(instructions) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => {
                self.fuel = 0;
                let message = format!(
                    "the script ran {} instructions without waiting for anything: is there a loop that never ends?",
                    self.limits.instructions
                );
                Err(Stop::Fatal(self.fatal("instruction_limit", message)))
            }
        }
    }
}

impl Machine {
    /// Line and column of what runs: of the innermost call that is the author's.
    pub(crate) fn location(&self) -> (u32, u32) {
        let visible = |frame: &&Frame| !self.code.functions[frame.function as usize].is_hidden;
        let Some(frame) = self.frames.iter().rev().find(visible) else { return (1, 1) };
        let function = &self.code.functions[frame.function as usize];
        let span = function.spans.get((frame.at as usize).saturating_sub(1)).copied().unwrap_or_default();
        let position = self.code.source.position(span.start);
        (position.line, position.column)
    }
}
