//! Finding tasks, and what to do about those that failed for good.

use std::future::IntoFuture;
use std::pin::Pin;

use outlast_core::id::{QueueName, RunId, TaskId, TaskName};
use outlast_store::{Store, StoreError, TaskDetail, TaskFilter, TaskPage, TaskState};

use super::EngineError;
use crate::driver::{AGAIN_FIRST, pause};
use crate::engine::Engine;

/// How often a change is asked for whose reply is lost.
const TRIES_MAX: u32 = 8;

impl Engine {
    /// Tasks that are queued, running, or failed for good, by id. Say which, and await it for a page of them.
    ///
    /// ```
    /// # use outlast::{Error, Outlast, TaskContext, TaskState};
    /// # async fn charge(_: TaskContext, _: u32) -> outlast::Result<()> { Err(Error::new("broke", "no funds").permanent()) }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().task("charge", charge).start().await?;
    /// engine.enqueue("charge", &1).id("ann").await?;
    /// # while engine.tasks().state(TaskState::Dead).await?.tasks.is_empty() { tokio::task::yield_now().await }
    /// for task in engine.tasks().state(TaskState::Dead).name("charge").await?.tasks {
    ///     println!("{} failed after {} attempts", task.id, task.attempt);
    ///     engine.discard_task(task.id.as_str()).await?;
    /// }
    /// assert!(engine.tasks().await?.tasks.is_empty());
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tasks(&self) -> Tasks<'_> {
        Tasks { engine: self, filter: Ok(TaskFilter::all(self.namespace.clone())) }
    }

    /// One task, with what its handler gets and the last error.
    pub async fn task(&self, id: &str) -> Result<TaskDetail, EngineError> {
        Ok(self.inner.store()?.task(self.namespace.clone(), TaskId::new(id)?).await?)
    }

    /// Queues a task anew that failed for good, with all its attempts. Nobody waits for it any more: if it belonged to a run, that
    /// has got the failure. One that is not dead is refused.
    pub async fn retry_task(&self, id: &str) -> Result<(), EngineError> {
        self.change_dead(
            id,
            |store, namespace, task| store.retry_task(namespace, task),
            |error| matches!(error, StoreError::TaskNotDead { .. }),
        )
        .await?;
        self.inner.board.somebody_has_tasks();
        Ok(())
    }

    /// Removes a task that failed for good. One that is not dead is refused.
    pub async fn discard_task(&self, id: &str) -> Result<(), EngineError> {
        let gone = |error: &StoreError| matches!(error, StoreError::UnknownTask(_));
        self.change_dead(id, |store, namespace, task| store.discard_task(namespace, task), gone).await
    }

    /// Asks until there is an answer. If an earlier one was lost, `done` tells that it was done.
    async fn change_dead(
        &self,
        id: &str,
        ask: impl Fn(&dyn Store, outlast_core::id::Namespace, TaskId) -> Answer<'_>,
        done: impl Fn(&StoreError) -> bool,
    ) -> Result<(), EngineError> {
        let (inner, task) = (&self.inner, TaskId::new(id)?);
        let (mut wait, mut tries) = (AGAIN_FIRST, 1);
        loop {
            let store = inner.store()?;
            match ask(&*store, self.namespace.clone(), task.clone()).await {
                Err(error) if error.is_retryable() && tries < TRIES_MAX => {
                    tries += 1;
                    pause(&inner.time, &mut wait).await;
                }
                Err(error) if tries > 1 && done(&error) => return Ok(()),
                answer => return Ok(answer?),
            }
        }
    }
}

type Answer<'a> = outlast_store::BoxFuture<'a, Result<(), StoreError>>;

/// A question for tasks. Everything that is said must hold. Await it for a [`TaskPage`].
#[must_use = "nothing is looked for until this is awaited"]
pub struct Tasks<'e> {
    engine: &'e Engine,
    filter: Result<TaskFilter, EngineError>,
}

impl Tasks<'_> {
    /// Those that stand here. Said more than once: at any of these.
    pub fn state(self, state: TaskState) -> Self {
        self.with(|filter| {
            filter.state.push(state);
            Ok(())
        })
    }

    /// Those of this queue.
    pub fn queue(self, queue: &str) -> Self {
        self.with(|filter| {
            filter.queue = Some(QueueName::new(queue)?);
            Ok(())
        })
    }

    /// Those for this handler.
    pub fn name(self, name: &str) -> Self {
        self.with(|filter| {
            filter.name = Some(TaskName::new(name)?);
            Ok(())
        })
    }

    /// Those that this run queued.
    pub fn run(self, run: &str) -> Self {
        self.with(|filter| {
            filter.origin = Some(RunId::new(run)?);
            Ok(())
        })
    }

    /// At most so many on a page: 100 if nobody says otherwise, and never more than 1000.
    pub fn page_size(self, tasks: usize) -> Self {
        self.with(|filter| {
            filter.limit = tasks.max(1);
            Ok(())
        })
    }

    /// Goes on where another page ended, which is [`TaskPage::next`]; with none, from the start.
    pub fn after(self, task: Option<TaskId>) -> Self {
        self.with(|filter| {
            filter.after = task;
            Ok(())
        })
    }

    /// What is wrong with the question is said when it is asked.
    fn with(mut self, change: impl FnOnce(&mut TaskFilter) -> Result<(), EngineError>) -> Self {
        self.filter = self.filter.and_then(|mut filter| change(&mut filter).map(|()| filter));
        self
    }
}

impl<'e> IntoFuture for Tasks<'e> {
    type Output = Result<TaskPage, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'e>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.engine.inner.store()?.tasks(self.filter?).await?) })
    }
}
