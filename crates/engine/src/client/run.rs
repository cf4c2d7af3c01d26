//! A run, from outside.

use std::pin::pin;

use futures_util::future::{Either, select};
use outlast_core::commit::{InboxItem, Status};
use outlast_core::event::Event;
use outlast_core::id::{Generation, Index, RunId, RunKey};
use outlast_core::record::Record;
use outlast_store::{Awaited, Excerpt, LIST_PAGE_MAX, Load, LoadFrom, RunView, StoreError};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::{Attached, EngineError, Observed, Watched};
use crate::board::EndOfRun;
use crate::drive::OperationInfo;
use crate::driver::{Command, Inspected};
use crate::engine::Engine;

/// A run, from outside: wait for its result, tell it things. Dropping the handle does nothing to the run.
pub struct RunHandle {
    pub(super) engine: Engine,
    pub(super) run: RunKey,
    /// Registered before the run began, for one that was started here.
    end: Option<EndOfRun>,
    /// Whether it is driven here, so that its end is told at once.
    mine: bool,
    /// Whether this very start made it.
    new: bool,
}

impl RunHandle {
    pub(super) fn new(engine: &Engine, run: RunKey) -> RunHandle {
        RunHandle { engine: engine.clone(), run, end: None, mine: false, new: false }
    }

    pub(super) fn started(engine: &Engine, run: RunKey, end: EndOfRun, mine: bool) -> RunHandle {
        RunHandle { engine: engine.clone(), run, end: Some(end), mine, new: mine }
    }

    /// The same, if it is known whether the start made the run.
    #[must_use]
    pub(super) fn made(self, new: bool) -> RunHandle {
        RunHandle { new, ..self }
    }

    /// Whether the start that gave this handle made the run. If not, the run was there already: it has the id that was
    /// asked for, or answers for the start because of its idempotency window, singleton or debounce key. False for a
    /// handle that no start gave.
    pub fn is_new(&self) -> bool {
        self.new
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.run.id
    }

    /// Its id and namespace.
    pub fn key(&self) -> &RunKey {
        &self.run
    }

    /// Waits for the run's end, however long that takes, and gives its output. May be asked again later, and elsewhere.
    ///
    /// A parked run has no end in sight: then this is [`EngineError::Parked`], which says why and what to do. The run is
    /// intact; once it is unparked, ask again.
    pub async fn result<T: DeserializeOwned>(mut self) -> Result<T, EngineError> {
        let event = self.end().await?;
        match &event {
            Event::RunFinished { output } => serde_json::from_slice(output).map_err(|error| {
                EngineError::Codec(format!("the output of {} is not what was expected: {error}", self.run))
            }),
            Event::RunErrored { error } => Err(EngineError::Failed(error.clone())),
            Event::RunCancelled { reason } | Event::RunTerminated { reason, .. } => {
                Err(EngineError::Cancelled(reason.clone()))
            }
            other => Err(EngineError::Codec(format!("{} ended with {}", self.run, other.kind()))),
        }
    }

    /// The event that ended the run.
    async fn end(&mut self) -> Result<Event, EngineError> {
        let board = self.engine.inner.board.clone();
        let mut end = self.end.take().unwrap_or_else(|| board.await_end(&self.run));
        let mut look = !self.mine;
        loop {
            if look && let Some(event) = self.stored_end().await? {
                return Ok(event);
            }
            // Somebody else may drive it: then its end is found in the store.
            look = true;
            let host = self.engine.inner.time.host();
            let poll = host.sleep_until(host.elapsed() + self.engine.inner.poll);
            let told = match select(pin!(end.event()), poll).await {
                Either::Left((told, _)) => told,
                Either::Right(_) => continue,
            };
            match told {
                Some(event) => return Ok(Event::clone(&event)),
                None => end = board.await_end(&self.run),
            }
        }
    }

    async fn stored_end(&self) -> Result<Option<Event>, EngineError> {
        let view = self.view().await?;
        if view.status == Status::Parked {
            return Err(EngineError::Parked { run: view.run, reason: view.note.unwrap_or_default() });
        }
        if !view.status.is_terminal() {
            return Ok(None);
        }
        let from = Index(view.next.0.saturating_sub(1));
        let excerpt = Excerpt { run: self.run.clone(), generation: Some(view.generation), from, limit: 1 };
        let records = self.engine.inner.store()?.excerpt(excerpt).await?;
        let event = records.last().map(Event::decode).transpose();
        event.map_err(|error| EngineError::Codec(format!("the end of {} cannot be read: {error}", self.run)))
    }

    /// Where the run stands.
    pub async fn view(&self) -> Result<RunView, EngineError> {
        Ok(self.engine.inner.store()?.get(self.run.clone()).await?)
    }

    /// Where the run stands, in a word.
    pub async fn status(&self) -> Result<Status, EngineError> {
        Ok(self.view().await?.status)
    }

    /// The journal of the current generation.
    pub async fn journal(&self) -> Result<Vec<Event>, EngineError> {
        self.events(None).await
    }

    /// The journal of a generation, from 0: of a run that continued as new, one before the current one.
    pub async fn journal_of(&self, generation: u64) -> Result<Vec<Event>, EngineError> {
        self.events(Some(Generation(generation))).await
    }

    async fn events(&self, generation: Option<Generation>) -> Result<Vec<Event>, EngineError> {
        let records = self.records(generation).await?;
        let decoded = records.iter().map(Event::decode).collect::<Result<_, _>>();
        decoded.map_err(|error| EngineError::Codec(format!("{}: {error}", self.run)))
    }

    /// The journal of a generation as it is stored; of the current one if none is named.
    pub(super) async fn records(&self, generation: Option<Generation>) -> Result<Vec<Record>, EngineError> {
        let mut records = Vec::new();
        let mut excerpt = Excerpt { run: self.run.clone(), generation, from: Index(0), limit: LIST_PAGE_MAX };
        loop {
            let page = self.engine.inner.store()?.excerpt(excerpt.clone()).await?;
            let is_last = excerpt.is_last(&page);
            excerpt = excerpt.after(&page);
            records.extend(page);
            if is_last {
                return Ok(records);
            }
        }
    }

    /// What lies in the run's inbox, the oldest first; none if that cannot be read.
    pub(super) async fn inbox(&self, next: Index) -> Result<Vec<InboxItem>, EngineError> {
        let load = Load { run: self.run.clone(), from: LoadFrom::Index(next) };
        match self.engine.inner.store()?.load(vec![load]).await.pop() {
            Some(Err(StoreError::Corrupt { .. })) | None => Ok(Vec::new()),
            Some(loaded) => Ok(loaded?.inbox),
        }
    }

    /// A part of the journal: the events from an index on, at most so many (1000 at the most), of a generation or the current one.
    /// Empty behind its end.
    pub async fn journal_page(
        &self,
        generation: Option<u64>,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Observed>, EngineError> {
        let generation = match generation {
            Some(generation) => Generation(generation),
            None => self.view().await?.generation,
        };
        let excerpt = Excerpt { run: self.run.clone(), generation: Some(generation), from: Index(from), limit };
        let records = self.engine.inner.store()?.excerpt(excerpt).await?;
        let observed = |(place, record)| Observed::read(&self.run, generation, Index(from + place), record);
        (0..).zip(&records).map(observed).collect()
    }

    /// What the current generation of the run began with, as JSON.
    pub async fn input(&self) -> Result<bytes::Bytes, EngineError> {
        let load = Load { run: self.run.clone(), from: LoadFrom::Index(self.view().await?.next) };
        match self.engine.inner.store()?.load(vec![load]).await.pop() {
            Some(loaded) => Ok(loaded?.input),
            None => Err(StoreError::NotFound(self.run.clone()).into()),
        }
    }

    /// Its search attributes.
    pub async fn attributes(&self) -> Result<Vec<(String, String)>, EngineError> {
        Ok(self.engine.inner.store()?.attributes(self.run.clone()).await?)
    }

    /// What the run waits for: timers, signals, approvals, callbacks, tasks and children.
    pub async fn awaiting(&self) -> Result<Vec<Awaited>, EngineError> {
        Ok(self.engine.inner.store()?.awaiting(self.run.clone()).await?)
    }

    /// Watches the run without driving it: `RUN_STARTED`, its journal so far, and then what happens, up to its end or a
    /// pause. What is only emitted is told from this call on: attach before the start to miss nothing.
    pub fn attach(&self) -> Attached {
        Attached::new(&self.engine, self.run.clone())
    }

    /// Watches what happens to the operations of the run while it is driven in this process.
    pub fn watch_operations(&self) -> Watched {
        Watched::new(self.engine.inner.board.watch(&self.run))
    }

    /// What the run does right now: every operation that is not completed. None if it is not driven in this process and
    /// its program is not kept here.
    pub async fn operations(&self) -> Option<Vec<OperationInfo>> {
        match self.inspect().await {
            Inspected::Driven { operations, .. } | Inspected::Kept(operations) => Some(operations),
            Inspected::Passing | Inspected::Nothing => None,
        }
    }

    /// What this process knows of the run beyond the store.
    pub(super) async fn inspect(&self) -> Inspected {
        let (reply, answer) = oneshot::channel();
        self.engine.inner.drivers.send(&self.run, Command::Inspect { run: self.run.clone(), reply });
        answer.await.unwrap_or(Inspected::Nothing)
    }

    /// Lets a parked run go on, after whatever stopped it was mended; whether it was parked.
    pub async fn unpark(&self) -> Result<bool, EngineError> {
        let unparked = self.engine.inner.store()?.unpark(self.run.clone()).await?;
        self.engine.inner.board.somebody_woken();
        Ok(unparked)
    }

    /// Deletes a run that has ended, and the reason is told to whoever asks for it within seven days. What it left in the
    /// database goes soon.
    pub async fn delete(&self, reason: &str) -> Result<(), EngineError> {
        let deleted = self.engine.inner.store()?.delete(self.run.clone(), reason.to_owned()).await;
        self.engine.inner.board.somebody_deleted();
        Ok(deleted?)
    }
}
