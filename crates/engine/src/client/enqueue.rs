//! Tasks that no run waits for.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{NewTask, StandaloneTask};
use outlast_core::id::{QueueName, RunKey, TaskId, TaskName};
use outlast_core::retry::Retry;
use serde::Serialize;

use super::{EngineError, encode};
use crate::driver::{AGAIN_FIRST, pause};
use crate::engine::Engine;
use crate::worker::{DEFAULT_QUEUE, TaskPolicy, resume};

/// How often a task is queued whose reply is lost.
const TRIES_MAX: u32 = 8;

impl Engine {
    /// Queues a task that no run waits for. Await it to queue it: when that returns the task's id, it is durable.
    ///
    /// ```
    /// # async fn queue(engine: outlast::Engine) -> Result<(), outlast::EngineError> {
    /// engine.enqueue("send_mail", &"ann@example.org").id("welcome-ann").await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue(&self, name: &str, args: &(impl Serialize + ?Sized)) -> Enqueue {
        Enqueue {
            engine: self.clone(),
            name: name.to_owned(),
            args: encode(args),
            id: None,
            queue: DEFAULT_QUEUE.to_owned(),
            priority: 0,
            retry: Retry::default(),
            timeout: None,
            heartbeat: None,
            delay: None,
        }
    }

    /// The item `builtin.resume_workflow`, queued by hand: the run looks again at what it waits for.
    async fn resume_run(&self, args: &[u8], id: Option<String>) -> Result<TaskId, EngineError> {
        let inner = &self.inner;
        let run = RunKey::new(self.namespace.clone(), resume::run_of(args)?);
        let id = TaskId::new(id.unwrap_or_else(|| uuid::Uuid::from_u128(inner.time.host().random()).to_string()))?;
        let (mut wait, mut tries) = (AGAIN_FIRST, 1);
        loop {
            match inner.store()?.wake(run.clone()).await {
                Err(error) if error.is_retryable() && tries < TRIES_MAX => {
                    tracing::debug!(%error, "a resume got no answer; it is left again");
                    tries += 1;
                    pause(&inner.time, &mut wait).await;
                }
                woken => {
                    // A run that has ended needs none.
                    woken?;
                    inner.board.somebody_woken();
                    return Ok(id);
                }
            }
        }
    }
}

/// A task that is about to be queued. See [`Engine::enqueue`].
#[must_use = "a task is queued when this is awaited"]
pub struct Enqueue {
    engine: Engine,
    name: String,
    args: Result<Bytes, EngineError>,
    id: Option<String>,
    queue: String,
    priority: i16,
    retry: Retry,
    timeout: Option<Duration>,
    heartbeat: Option<Duration>,
    delay: Option<Duration>,
}

impl Enqueue {
    /// Its id, without a `/`. The same task under the same id is queued once, as long as it is there; another one is refused.
    pub fn id(mut self, id: impl Into<String>) -> Enqueue {
        self.id = Some(id.into());
        self
    }

    /// The queue it goes to; `default` otherwise.
    pub fn queue(mut self, queue: &str) -> Enqueue {
        queue.clone_into(&mut self.queue);
        self
    }

    /// Larger is claimed sooner; 0 otherwise.
    pub fn priority(mut self, priority: i16) -> Enqueue {
        self.priority = priority;
        self
    }

    /// When to try again after a failure.
    pub fn retry(mut self, retry: Retry) -> Enqueue {
        self.retry = retry;
        self
    }

    /// How long one attempt may take.
    pub fn timeout(mut self, timeout: Duration) -> Enqueue {
        self.timeout = Some(timeout);
        self
    }

    /// How long its handler may be silent.
    pub fn heartbeat(mut self, silence: Duration) -> Enqueue {
        self.heartbeat = Some(silence);
        self
    }

    /// Lets it begin so much later.
    pub fn delay(mut self, delay: Duration) -> Enqueue {
        self.delay = Some(delay);
        self
    }

    async fn send(self) -> Result<TaskId, EngineError> {
        let Enqueue { engine, name, args, id, queue, priority, retry, timeout, heartbeat, delay } = self;
        let inner = &engine.inner;
        if resume::is_reserved(&name) {
            return match name == resume::NAME && delay.is_none() {
                true => engine.resume_run(&args?, id).await,
                false => Err(EngineError::Invalid(resume::refusal(&name))),
            };
        }
        if [timeout, heartbeat].contains(&Some(Duration::ZERO)) {
            return Err(EngineError::Invalid("the timeout of a task must be more than zero".to_owned()));
        }
        if id.as_ref().is_some_and(|id| id.contains('/')) {
            let message = "the id of a task must have no '/': such ids are those of runs' own tasks";
            return Err(EngineError::Invalid(message.to_owned()));
        }
        let id = id.unwrap_or_else(|| uuid::Uuid::from_u128(inner.time.host().random()).to_string());
        let available_at = delay.map(|delay| inner.time.now() + delay);
        let task = NewTask {
            id: TaskId::new(id)?,
            key: None,
            name: TaskName::new(name)?,
            queue: QueueName::new(queue)?,
            priority,
            args: args?,
            available_at,
            meta: Some(TaskPolicy::new(retry, timeout, heartbeat).encode()),
        };
        let id = task.id.clone();
        let task = StandaloneTask { namespace: engine.namespace.clone(), task };
        let (mut wait, mut tries) = (AGAIN_FIRST, 1);
        loop {
            match inner.store()?.enqueue(vec![task.clone()]).await.pop() {
                Some(Err(error)) if error.is_retryable() && tries < TRIES_MAX => {
                    tracing::debug!(%error, "a task got no answer; it is queued again under its id");
                    tries += 1;
                    pause(&inner.time, &mut wait).await;
                }
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(())) | None => break,
            }
        }
        match available_at {
            Some(at) => inner.board.task_due(at),
            None => inner.board.somebody_has_tasks(),
        }
        Ok(id)
    }
}

impl IntoFuture for Enqueue {
    type Output = Result<TaskId, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<TaskId, EngineError>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
