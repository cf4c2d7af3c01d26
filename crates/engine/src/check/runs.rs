//! Checking the runs of a store.

use std::sync::Arc;

use outlast_core::commit::Status;
use outlast_core::id::{Index, Namespace, RunKey, Version, WorkflowName};
use outlast_store::{Filter, LIST_PAGE_MAX, Load, LoadFrom, RunView, Store, StoreError};

use super::{Checker, Recording, ReplayError, Replayed};
use crate::client::{EngineError, RunHandle};
use crate::engine::Engine;
use crate::token::Secret;

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

impl RunHandle {
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
        let (store, inner) = (self.inner.store()?, &self.inner);
        let secret = Secret::new(store.secret().await?);
        let checker = Checker::new(Arc::clone(&inner.registry), inner.limits.clone(), Some(secret));
        checker.check_live(&*store, self.namespace.clone()).await
    }
}
