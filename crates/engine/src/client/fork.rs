//! Forking: a new run that begins in the middle of another one's history.

mod plan;
mod retry;

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::pin::Pin;

use bytes::Bytes;
use outlast_core::commit::NewRun;
use outlast_core::id::{AttributeName, Generation, Index, Key, RunId, RunKey};
use outlast_core::operation::OperationKind;
use outlast_core::time::Timestamp;
use outlast_store::{Created, Excerpt, LIST_PAGE_MAX, Load, LoadFrom, Loaded, RunView, StoreError};
use serde::Serialize;
use tokio::sync::oneshot;

use self::plan::{Plan, Source};
use super::{EngineError, RunHandle, encode, start};
use crate::driver::Command;

/// A fork that is about to be made. Await it: when that returns, the new run is durable, with everything it waits for.
#[must_use = "a run is forked when this is awaited"]
pub struct Fork<'h> {
    handle: &'h RunHandle,
    at: u64,
    /// What is open at the cut and is asked for as if it had never been: with all its attempts, and a deadline counted anew.
    anew: BTreeSet<Key>,
    id: Option<String>,
    input: Option<Result<Bytes, EngineError>>,
}

/// A run that was forked.
pub struct Forked {
    /// The new run.
    pub run: RunHandle,
    /// What was open at the cut, and is issued again for the new run.
    pub reissued: Vec<Reissued>,
}

/// An operation that was open at the cut of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reissued {
    /// Which. An approval or callback is answered under this id, as one of the new run.
    pub key: Key,
    /// What it is.
    pub kind: OperationKind,
    /// When it fires, times out or is tried again: as it was recorded, not counted anew.
    pub deadline: Option<Timestamp>,
    /// The child or task the original run has for it.
    pub was: Option<String>,
    /// The child the new run starts for it; none if the workflow names its child itself. An id that is taken, by the
    /// original's child for instance, fails the operation with `child_exists`.
    pub child: Option<RunId>,
    /// The token of a callback. The original's does not answer the new run's.
    pub token: Option<String>,
}

impl RunHandle {
    /// Makes a new run out of the first `at` events of this one's journal, which is not touched. What is recorded there
    /// is not done again; what was open at the cut is issued again: sleeps, deadlines and retries at their recorded times,
    /// children and tasks anew, approvals and callbacks under the new run, all listed in [`Forked::reissued`]. What comes
    /// after the cut happens anew.
    ///
    /// The cut lies in the current generation's journal, before its end. Signals that wait in the mailbox, and answers that
    /// are not yet in the journal, are not copied; search attributes are.
    ///
    /// ```
    /// # use outlast::{Ctx, Outlast};
    /// # async fn sum(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    /// #     let one = ctx.step("one", async |_| Ok(1)).await?;
    /// #     let two = ctx.step("two", async |_| Ok(n)).await?;
    /// #     Ok(one + two)
    /// # }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().workflow("sum", sum).start().await?;
    /// let three: u32 = engine.start("sum", &2).id("a").await?.result().await?;
    /// let forked = engine.run("a")?.fork(1).id("b").input(&41).await?;
    /// let sum: u32 = forked.run.result().await?;
    /// assert_eq!((three, sum), (3, 42));
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn fork(&self, at: u64) -> Fork<'_> {
        Fork { handle: self, at, anew: BTreeSet::new(), id: None, input: None }
    }
}

impl Fork<'_> {
    /// The new run's id; a new unique one if nobody says otherwise. Forking to the same id again, in the same way, gives the
    /// same run.
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Another input than the original's. What is recorded must still be what the workflow asks for; if not, the new run
    /// parks and says where the two differ.
    pub fn input<I: Serialize + ?Sized>(mut self, input: &I) -> Self {
        self.input = Some(encode(input));
        self
    }

    async fn send(self) -> Result<Forked, EngineError> {
        let (engine, inner) = (&self.handle.engine, &self.handle.engine.inner);
        let id = match &self.id {
            Some(id) => RunId::new(id)?,
            None => start::fresh_id(inner.time.now(), inner.time.host().random())?,
        };
        let run = RunKey::new(engine.namespace.clone(), id);
        let view = self.handle.view().await?;
        let loaded = self.load(&view).await?;
        let token = |key: &Key| (inner.settings.token)(&run, Generation(0), key);
        // An engine that drives nothing may never have heard the store's clock.
        let asked = inner.time.asked();
        inner.time.observe(asked, inner.store()?.sweep(0).await?.now);
        let Plan { history, timers, waits, reissued } = Plan::new(&Source {
            from: &view.run,
            generation: view.generation,
            at: self.at,
            anew: &self.anew,
            records: &loaded.events,
            awaiting: &self.handle.awaiting().await?,
            to: &run,
            now: inner.time.now(),
            token: &token,
        })?;
        let dues: Vec<Timestamp> = timers.iter().map(|timer| timer.due).collect();
        let input = self.input.unwrap_or(Ok(loaded.input))?;
        let attributes = self.handle.attributes().await?.into_iter();
        let attributes = attributes.map(|(name, value)| Ok((AttributeName::new(name)?, value)));
        let attributes = attributes.collect::<Result<_, EngineError>>()?;
        // Before the run begins, so that its end is not missed.
        let end = inner.board.await_end(&run);
        let owner = inner.new_owner(&view.workflow, &view.version)?;
        let new = NewRun {
            owner,
            attributes,
            history: history.clone(),
            timers,
            waits,
            ..NewRun::new(run.clone(), view.workflow, view.version, input)
        };
        let (reply, answer) = oneshot::channel();
        if !inner.drivers.send(&run, Command::Create { new: Box::new(new), reply }) {
            return Err(EngineError::Stopped);
        }
        let created = answer.await.map_err(|_| EngineError::Stopped)??;
        let forked =
            RunHandle::started(engine, run, end, matches!(created, Created::Created { .. }) && owner.is_some())
                .made(matches!(created, Created::Created { .. }));
        if let Created::Existing { .. } = created {
            forked.check_history(&history).await?;
        }
        dues.into_iter().for_each(|due| inner.board.timer_due(due));
        inner.board.somebody_woken();
        Ok(Forked { run: forked, reissued })
    }

    /// The journal and input of the generation that was seen.
    async fn load(&self, view: &RunView) -> Result<Loaded, EngineError> {
        let load = Load { run: view.run.clone(), from: LoadFrom::Index(Index(0)) };
        let loaded = self.handle.engine.inner.store()?.load(vec![load]).await.pop();
        let loaded = loaded.ok_or(StoreError::NotFound(view.run.clone()))??;
        if loaded.generation != view.generation {
            let message = format!("{} continued as new meanwhile; fork it again, where it is now", view.run);
            return Err(EngineError::Invalid(message));
        }
        Ok(loaded)
    }
}

impl RunHandle {
    /// The run was there already: it must be the same fork.
    async fn check_history(&self, history: &[outlast_core::record::Record]) -> Result<(), EngineError> {
        let mut found = Vec::new();
        while found.len() < history.len() {
            let from = Index(found.len() as u64);
            let limit = LIST_PAGE_MAX.min(history.len() - found.len());
            let excerpt = Excerpt { run: self.run.clone(), generation: Some(Generation(0)), from, limit };
            let page = self.engine.inner.store()?.excerpt(excerpt).await?;
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        if found == history {
            return Ok(());
        }
        Err(StoreError::Exists { run: self.run.clone(), what: "history" }.into())
    }
}

impl<'h> IntoFuture for Fork<'h> {
    type Output = Result<Forked, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'h>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
