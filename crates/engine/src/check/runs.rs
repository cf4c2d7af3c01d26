//! Checking the runs of a store.

use std::sync::Arc;

use outlast_core::commit::Status;
use outlast_core::id::{Index, Namespace, RunKey, Version, WorkflowName};
use outlast_store::{Filter, LIST_PAGE_MAX, Load, LoadFrom, RunView, Store, StoreError};

use super::{Checker, Located, Recording, ReplayError, Replayed};
use crate::client::{EngineError, RunHandle};
use crate::engine::Engine;
use crate::token::Secret;

/// The longest journal that is replayed for somebody who looks, in events.
const EVENTS_MAX: u64 = 50_000;

/// A run that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRun {
    /// Which.
    pub run: RunKey,
    /// Which workflow.
    pub workflow: WorkflowName,
    /// Which version of it.
    pub version: Version,
    /// Where it stands.
    pub status: Status,
    /// Where the code comes to with its journal, or why it cannot go on with it.
    pub outcome: Result<Replayed, ReplayError>,
}

impl Checker {
    /// Replays the journal of every run of a namespace that has not ended. The store is only read.
    pub async fn check_live(&self, store: &dyn Store, namespace: Namespace) -> Result<Vec<CheckedRun>, EngineError> {
        let live = Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect();
        let mut filter = Filter { status: live, limit: LIST_PAGE_MAX, ..Filter::all(namespace) };
        let mut checked = Vec::new();
        loop {
            let page = store.list(filter.clone()).await?;
            for view in page.runs {
                let outcome = match Recording::read(store, &view.run).await {
                    Ok(recording) => self.check(&recording),
                    // It was deleted since it was listed.
                    Err(StoreError::NotFound(_) | StoreError::Deleted { .. }) => continue,
                    // Damage to one run says nothing about the others.
                    Err(error @ StoreError::Corrupt { .. }) => Err(ReplayError::Unreadable(error.to_string())),
                    Err(error) => return Err(error.into()),
                };
                let RunView { run, workflow, version, status, .. } = view;
                checked.push(CheckedRun { run, workflow, version, status, outcome });
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(checked),
            }
        }
    }
}

impl Recording {
    /// Reads the current generation of a run from a store.
    pub async fn read(store: &dyn Store, run: &RunKey) -> Result<Recording, StoreError> {
        loop {
            let view = store.get(run.clone()).await?;
            let load = Load { run: run.clone(), from: LoadFrom::Index(Index(0)) };
            let loaded = store.load(vec![load]).await.pop();
            let loaded = loaded.unwrap_or_else(|| Err(StoreError::NotFound(run.clone())))?;
            // Between the two questions the run may have begun its next generation, with another version.
            if loaded.generation == view.generation {
                let RunView { workflow, version, generation, .. } = view;
                let (input, events) = (loaded.input, loaded.events);
                return Ok(Recording { run: run.clone(), generation, workflow, version, input, events });
            }
        }
    }
}

/// A run whose journal was read, to be replayed with the code that is registered here.
pub struct Replay {
    checker: Checker,
    recording: Recording,
}

impl Replay {
    /// How many events its journal has.
    pub fn events(&self) -> u64 {
        self.recording.len() as u64
    }

    /// Where in the source its operations were asked for. Replaying takes a while and waits for nothing: call it where it
    /// disturbs nobody. What the code does between its operations is done once more, as after any restart.
    pub fn locate(&self) -> Result<Located, ReplayError> {
        self.checker.locate(&self.recording)
    }
}

impl RunHandle {
    /// Reads what is needed to replay the run's current generation with the code that is registered here, which tells where in
    /// the source each operation was asked for.
    ///
    /// ```
    /// # use outlast::{Ctx, Outlast};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// async fn double(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    ///     ctx.step("twice", async |_| Ok(n * 2)).await
    /// }
    /// let engine = Outlast::memory().workflow("double", double).start().await?;
    /// engine.start("double", &21).id("a").await?.result::<u32>().await?;
    /// let located = engine.run("a")?.replay().await?.locate().expect("the code is here");
    /// let (key, location) = located.locations.iter().next().expect("it has one step");
    /// assert_eq!(key.as_str(), "twice");
    /// assert!(location.to_string().contains(".rs:"));
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replay(&self) -> Result<Replay, EngineError> {
        let inner = &self.engine().inner;
        let store = inner.store()?;
        let RunView { workflow, version, next, .. } = self.view().await?;
        if next.0 > EVENTS_MAX {
            return Err(EngineError::Invalid(format!(
                "the journal of {} has {} events, the limit for replaying it here is {EVENTS_MAX}; read its events instead",
                self.key(),
                next.0
            )));
        }
        if !inner.registry.knows(&workflow, &version) {
            inner.registry.learn(&*store).await?;
        }
        Ok(Replay { checker: self.engine().checker(&*store).await?, recording: self.export().await? })
    }

    /// The run's current generation with its journal, to keep and to replay later: see [`crate::check_replay`].
    pub async fn export(&self) -> Result<Recording, EngineError> {
        let store: Arc<dyn Store> = self.engine().inner.store()?;
        Ok(Recording::read(&*store, self.key()).await?)
    }
}

impl Engine {
    /// Replays the journal of every run of this engine's namespace that has not ended, with the code that is registered
    /// here. Nothing is driven or written by it.
    pub async fn check_replay(&self) -> Result<Vec<CheckedRun>, EngineError> {
        let store = self.inner.store()?;
        self.checker(&*store).await?.check_live(&*store, self.namespace.clone()).await
    }

    async fn checker(&self, store: &dyn Store) -> Result<Checker, EngineError> {
        let secret = Secret::new(store.secret().await?);
        Ok(Checker::new(Arc::clone(&self.inner.registry), self.inner.limits.clone(), Some(secret)))
    }
}
