//! Looking back at a run of a script: where it was, and what its variables held.

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::id::{Index, Key};
use outlast_script::{RunInfo, Script, Trace, trace};
use outlast_store::{Load, LoadFrom, RunView, StoreError};

use super::{EngineError, RunHandle};

/// The longest journal that is looked back at, in events: it is read and replayed from its beginning.
const EVENTS_MAX: u64 = 50_000;

/// A run of a script whose journal was read, to be replayed up to an event.
pub struct LookBack {
    script: Script,
    info: RunInfo,
    input: Bytes,
    events: Vec<Event>,
}

impl LookBack {
    /// How many events its journal has.
    pub fn events(&self) -> u64 {
        self.events.len() as u64
    }

    /// Where the run was after so many events, and what its variables held. Replaying takes a while and does not wait
    /// for anything: call it where that disturbs nobody.
    pub fn after(&self, events: u64) -> Trace {
        let until = Index(events.min(self.events()));
        trace(&self.script, self.info.clone(), self.input.clone(), &self.events, until)
    }
}

impl RunHandle {
    /// Reads what is needed to look back at a run of a script, in its current generation.
    ///
    /// ```
    /// # use outlast::Outlast;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let text = "let paid = 0
    /// for (const part of Inputs) {
    ///   const tip = await Signal.next('tip')
    ///   paid += part + tip
    /// }";
    /// let engine = Outlast::memory().script("pay.wf", text).start().await?;
    /// let run = engine.start("pay", &[10, 20]).id("a").await?;
    /// run.signal("tip", &1, "first").await?;
    /// # while run.view().await?.next.0 < 3 { tokio::task::yield_now().await }
    /// let seen = run.look_back().await?.after(3);
    /// let call = &seen.waiting[0];
    /// assert_eq!(call.position.line, 3);
    /// assert!(call.variables.contains(&("paid".to_owned(), "11".to_owned())));
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn look_back(&self) -> Result<LookBack, EngineError> {
        let inner = &self.engine.inner;
        let store = inner.store()?;
        let RunView { workflow, version, next, .. } = self.view().await?;
        if next.0 > EVENTS_MAX {
            return Err(EngineError::Invalid(format!(
                "the journal of {} has {} events, the limit for looking back is {EVENTS_MAX}; read its events instead",
                self.run, next.0
            )));
        }
        if !inner.registry.knows(&workflow, &version) {
            inner.registry.learn(&*store).await?;
        }
        let unknown = || EngineError::VersionMismatch { workflow: workflow.to_string(), version: version.to_string() };
        let definition = inner.registry.definition(&workflow, &version).ok_or_else(unknown)?;
        let Some(script) = definition.script().cloned() else {
            return Err(EngineError::Invalid(format!(
                "{} is not a run of a script; only those have variables",
                self.run
            )));
        };
        let load = Load { run: self.run.clone(), from: LoadFrom::Index(Index(0)) };
        let loaded = store.load(vec![load]).await.pop().ok_or_else(|| StoreError::NotFound(self.run.clone()))??;
        let events = loaded.events.iter().map(Event::decode).collect::<Result<_, _>>();
        let events = events.map_err(|error| EngineError::Codec(format!("{}: {error}", self.run)))?;
        // Whoever may look at a run may not answer its callbacks for that.
        let tokens = Arc::new(|key: &Key| format!("token of {key}"));
        let info = RunInfo { run_id: self.run.id.to_string(), workflow: workflow.to_string(), tokens };
        Ok(LookBack { script, info, input: loaded.input, events })
    }
}
