//! Tasks: work that a worker does, here or in another process.

use std::marker::PhantomData;
use std::panic::Location;
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::id::{QueueName, TaskId, TaskName};
use outlast_core::operation::{Due, Operation as Request, OperationKind};
use outlast_core::retry::Retry;
use outlast_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::slot::Outcome;
use crate::error::Result;
use crate::worker::DEFAULT_QUEUE;

/// Work that a worker does. See [`Ctx::task`]. It gives what the worker's handler returns; detached, the task's id.
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Task<T, O = T> {
    pending: Pending,
    options: Options,
    decode: fn(Outcome) -> Result<O>,
    value: PhantomData<fn() -> T>,
}

struct Options {
    /// The handler's name and what it gets; none once they were used, or if they are not usable.
    what: Option<(TaskName, Bytes)>,
    queue: Option<QueueName>,
    priority: i16,
    retry: Retry,
    timeout: Option<Duration>,
    heartbeat: Option<Duration>,
    begin: Option<Due>,
    detached: bool,
}

impl<T: DeserializeOwned> Task<T, T> {
    #[track_caller]
    pub(super) fn new(ctx: &Ctx, name: &str, args: &(impl Serialize + ?Sized)) -> Self {
        let mut pending = Pending::unnamed(ctx, OperationKind::Task, Some(name), Location::caller());
        let name = pending.accept_id(TaskName::new(name));
        let args = pending.accept(codec::encode("what the task is given", args));
        let options = Options {
            what: name.zip(args),
            queue: QueueName::new(DEFAULT_QUEUE).ok(),
            priority: 0,
            retry: Retry::default(),
            timeout: None,
            heartbeat: None,
            begin: None,
            detached: false,
        };
        Task { pending, options, decode: codec::value, value: PhantomData }
    }

    /// Queues it and does not wait for its end. It gives the task's id once that is recorded, and nobody is told what
    /// becomes of it.
    pub fn detach(self) -> Task<T, TaskId> {
        let Task { pending, options, .. } = self;
        Task { pending, options: Options { detached: true, ..options }, decode: queued, value: PhantomData }
    }
}

impl<T, O> Task<T, O> {
    /// Gives the operation a name. It keeps its place in the count of unnamed ones, so that naming one does not rename the
    /// next.
    #[track_caller]
    pub fn id(mut self, name: &str) -> Self {
        self.pending.rename(name, Location::caller());
        self
    }

    /// The queue it goes to; `default` otherwise.
    pub fn queue(mut self, queue: &str) -> Self {
        self.options.queue = self.pending.accept_id(QueueName::new(queue));
        self
    }

    /// Larger is claimed sooner; 0 otherwise.
    pub fn priority(mut self, priority: i16) -> Self {
        self.options.priority = priority;
        self
    }

    /// When to try again after a failure; [`Retry::default`] otherwise. An error that is permanent is not retried. An attempt
    /// whose worker dies counts like one that failed.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = retry;
        self
    }

    /// How long one attempt may take. One that takes longer is stopped, and counts as a failure with the code `timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.pending.refuse_zero("task", timeout);
        self.options.timeout = Some(timeout);
        self
    }

    /// How long a handler may be silent: an attempt that does not call
    /// [`TaskContext::heartbeat`](crate::TaskContext::heartbeat) so often is stopped, and counts as a failure with the
    /// code `timeout`.
    pub fn heartbeat(mut self, silence: Duration) -> Self {
        if silence.is_zero() {
            self.pending.refuse_option("the silence allowed to a task must be more than zero");
        }
        self.options.heartbeat = Some(silence);
        self
    }

    /// Lets it begin so much later.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.begin = Some(Due::After(delay));
        self
    }

    /// Lets it begin at this instant.
    pub fn begin_at(mut self, at: Timestamp) -> Self {
        self.options.begin = Some(Due::At(at));
        self
    }

    /// Queues it now, to be awaited later.
    pub fn start(mut self) -> Handle<O> {
        self.begin();
        self.pending.into_handle(self.decode)
    }

    fn begin(&mut self) {
        let Options { what, queue, priority, retry, timeout, heartbeat, begin, detached } = &mut self.options;
        let (Some((name, args)), Some(queue)) = (what.take(), queue.take()) else { return };
        let (priority, retry, timeout, heartbeat) = (*priority, *retry, *timeout, *heartbeat);
        let (begin, detached) = (*begin, *detached);
        self.pending.start(|key| Request::ScheduleTask {
            key,
            name,
            queue,
            priority,
            args,
            retry,
            timeout,
            heartbeat,
            begin,
            detached,
        });
    }

    fn advance(&mut self, _: &mut Context<'_>) {}

    fn decode(&self, outcome: Outcome) -> Result<O> {
        (self.decode)(outcome)
    }
}

operation!(impl[T, O] Task<T, O> => O);

fn queued(outcome: Outcome) -> Result<TaskId> {
    match outcome {
        Outcome::Queued(task) => Ok(task),
        Outcome::Failed(failure) => Err(failure.into()),
        Outcome::TimedOut(_) => Err(codec::late()),
        Outcome::Value(_) | Outcome::Done | Outcome::Decided(_) | Outcome::Started(_) => {
            Err(codec::unexpected("the start of a task"))
        }
    }
}
