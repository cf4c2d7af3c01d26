//! Handlers: the author's code for a task's name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outlast_core::id::{InvalidId, QueueName, TaskName};
use outlast_core::planted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

use super::held::Held;
use super::{DEFAULT_QUEUE, OfferedAttempt, TaskContext};
use crate::client::TaskOffer;
use crate::error::{Error, Result};

/// A handler that can be called.
pub(super) type Call = dyn Fn(TaskContext, Bytes) -> BoxFuture<'static, Result<Bytes>> + Send + Sync;

/// What does the tasks of one name. Registered with [`Outlast::handler`](crate::Outlast::handler); for one without options
/// [`Outlast::task`](crate::Outlast::task) is shorter.
///
/// ```
/// use outlast::{Handler, Outlast, TaskContext};
///
/// async fn resize(task: TaskContext, path: String) -> outlast::Result<u64> {
///     task.heartbeat();
///     Ok(path.len() as u64)
/// }
///
/// let engine = Outlast::memory().handler(Handler::new("resize", resize).queue("images").concurrency(2));
/// # drop(engine);
/// ```
#[derive(Clone)]
pub struct Handler {
    name: String,
    queue: String,
    concurrency: Option<usize>,
    call: Arc<Call>,
}

impl Handler {
    /// An `async fn(TaskContext, Args) -> outlast::Result<Output>` for the tasks of a name.
    pub fn new<A, T, F, Fut>(name: &str, handler: F) -> Handler
    where
        A: DeserializeOwned,
        T: Serialize,
        F: Fn(TaskContext, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        let call = move |context: TaskContext, args: Bytes| {
            let begun = serde_json::from_slice(&args)
                .map_err(|error| Error::invalid(format!("what the task is given has the wrong form: {error}")))
                .map(|args| handler(context, args));
            async move {
                let value = begun?.await?;
                let result = serde_json::to_vec(&value).map_err(|error| {
                    Error::invalid(format!("what the task gives cannot be written as JSON: {error}"))
                })?;
                Ok(Bytes::from(result))
            }
            .boxed()
        };
        Handler { name: name.to_owned(), queue: DEFAULT_QUEUE.to_owned(), concurrency: None, call: Arc::new(call) }
    }

    /// The tasks it does.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The queue its tasks are taken from; `default` otherwise.
    #[must_use]
    pub fn queue(mut self, queue: &str) -> Handler {
        queue.clone_into(&mut self.queue);
        self
    }

    /// The queue its tasks are taken from.
    pub fn takes_from(&self) -> &str {
        &self.queue
    }

    /// How many of these tasks one worker does at once; none if there is no limit of its own.
    pub fn at_once(&self) -> Option<usize> {
        self.concurrency
    }

    /// Prepares an attempt at a task that an engine elsewhere offered, for workers that ask over a network. Must be called inside a
    /// Tokio runtime.
    pub fn offered(&self, offer: &TaskOffer) -> OfferedAttempt {
        OfferedAttempt::new(Arc::clone(&self.call), offer, Handle::current())
    }

    /// How many of these tasks one worker does at once; as many as it does of all otherwise.
    #[must_use]
    pub fn concurrency(mut self, tasks: usize) -> Handler {
        self.concurrency = Some(tasks.max(1));
        self
    }
}

/// A handler whose names are known to be names.
pub(crate) struct Known {
    queue: QueueName,
    concurrency: Option<usize>,
    call: Arc<Call>,
}

impl Known {
    /// Whether its tasks have a limit of their own.
    pub(super) fn is_limited(&self) -> bool {
        self.concurrency.is_some()
    }

    pub(super) fn call(&self, context: TaskContext, args: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        (self.call)(context, args)
    }
}

/// The handlers of a worker.
#[derive(Clone, Default)]
pub(crate) struct Handlers(BTreeMap<TaskName, Arc<Known>>);

/// Why a handler was not added.
pub(crate) enum Refused {
    Name(InvalidId),
    Taken(TaskName),
}

/// Tasks to ask for in one claim.
pub(super) struct Order {
    pub(super) queues: Vec<QueueName>,
    pub(super) names: Vec<TaskName>,
    /// At most so many.
    pub(super) room: usize,
}

impl Handlers {
    pub(crate) fn add(&mut self, handler: Handler) -> Result<(), Refused> {
        let name = TaskName::new(&handler.name).map_err(Refused::Name)?;
        let queue = QueueName::new(&handler.queue).map_err(Refused::Name)?;
        if self.0.contains_key(&name) {
            return Err(Refused::Taken(name));
        }
        let Handler { concurrency, call, .. } = handler;
        self.0.insert(name, Arc::new(Known { queue, concurrency, call }));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &TaskName> {
        self.0.keys()
    }

    pub(super) fn get(&self, name: &TaskName) -> Option<&Arc<Known>> {
        self.0.get(name)
    }

    /// The queues that tasks come from.
    pub(super) fn queues(&self) -> Vec<QueueName> {
        let queues: BTreeSet<&QueueName> = self.0.values().map(|known| &known.queue).collect();
        queues.into_iter().cloned().collect()
    }

    /// What may be claimed while these are held: all without a limit of their own together, each other by itself.
    pub(super) fn orders(&self, held: &Held) -> Vec<Order> {
        let (limited, free): (Vec<_>, Vec<_>) = self.0.iter().partition(|(_, known)| known.concurrency.is_some());
        let mut by_queue: BTreeMap<BTreeSet<&QueueName>, Vec<TaskName>> = BTreeMap::new();
        for (name, known) in free {
            by_queue.entry(BTreeSet::from([&known.queue])).or_default().push(name.clone());
        }
        let together = by_queue.into_iter().map(|(queues, names)| Order {
            queues: queues.into_iter().cloned().collect(),
            names,
            room: usize::MAX,
        });
        let alone = limited.into_iter().map(|(name, known)| Order {
            queues: vec![known.queue.clone()],
            names: vec![name.clone()],
            room: match known.concurrency {
                Some(most) if !planted!("task-concurrency-ignored") => most.saturating_sub(held.of(name)),
                Some(_) | None => usize::MAX,
            },
        });
        together.chain(alone).collect()
    }
}
