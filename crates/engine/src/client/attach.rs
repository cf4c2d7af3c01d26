//! Watching a run.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use outlast_core::commit::Status;
use outlast_core::event::{Class, Event};
use outlast_core::id::{Generation, Index, RunKey};
use outlast_store::{Excerpt, LIST_PAGE_MAX, Load, LoadFrom, RunView};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::EngineError;
use crate::engine::Engine;

/// A run that is being watched. It is only read: watching never drives it, and anybody may watch at any time.
pub struct Attached {
    engine: Engine,
    run: RunKey,
    stage: Stage,
    told: VecDeque<Event>,
}

enum Stage {
    Beginning,
    Watching { generation: Generation, next: Index, live: broadcast::Receiver<Arc<Event>> },
    Over,
}

impl Attached {
    pub(super) fn new(engine: &Engine, run: RunKey) -> Attached {
        Attached { engine: engine.clone(), run, stage: Stage::Beginning, told: VecDeque::new() }
    }

    /// The next event; none when the run has ended, or rests because it is paused or parked.
    pub async fn next(&mut self) -> Result<Option<Event>, EngineError> {
        loop {
            if let Some(event) = self.told.pop_front() {
                return Ok(Some(event));
            }
            match &self.stage {
                Stage::Over => return Ok(None),
                Stage::Beginning => self.begin().await?,
                Stage::Watching { .. } => self.watch().await?,
            }
        }
    }

    async fn view(&self) -> Result<RunView, EngineError> {
        Ok(self.engine.inner.store()?.get(self.run.clone()).await?)
    }

    async fn begin(&mut self) -> Result<(), EngineError> {
        // Before the journal is read, so that nothing between the two is missed.
        let live = self.engine.inner.board.observe(&self.run);
        let view = self.view().await?;
        let load = Load { run: self.run.clone(), from: LoadFrom::Index(view.next) };
        let input = match self.engine.inner.store()?.load(vec![load]).await.pop() {
            Some(loaded) => loaded?.input,
            None => bytes::Bytes::new(),
        };
        self.told.push_back(Event::RunStarted { workflow: view.workflow, version: view.version, input });
        self.stage = Stage::Watching { generation: view.generation, next: Index(0), live };
        Ok(())
    }

    /// Reads what is new in the journal; if nothing is, waits until something may be.
    async fn watch(&mut self) -> Result<(), EngineError> {
        let Stage::Watching { generation, next, live } = &mut self.stage else { return Ok(()) };
        let (generation, from) = (*generation, *next);
        // What was only emitted comes before the part of the journal that became durable with it.
        take_emitted(live, &mut self.told);
        // The run first: what it says must not be newer than what is read.
        let view = self.view().await?;
        let excerpt = Excerpt { run: self.run.clone(), generation: Some(generation), from, limit: LIST_PAGE_MAX };
        let records = self.engine.inner.store()?.excerpt(excerpt).await?;
        let Stage::Watching { generation: current, next, live } = &mut self.stage else { return Ok(()) };
        if view.status.is_terminal() {
            // The end comes last.
            take_emitted(live, &mut self.told);
        }
        for record in &records {
            let event = Event::decode(record);
            self.told.push_back(event.map_err(|error| EngineError::Codec(format!("{}: {error}", self.run)))?);
        }
        *next = Index(from.0 + records.len() as u64);
        if !records.is_empty() {
            if let Some(Event::RunContinued { .. }) = self.told.back() {
                (*current, *next) = (generation.next(), Index(0));
            }
            return Ok(());
        }
        let rests = view.status.is_terminal() || matches!(view.status, Status::Paused | Status::Parked);
        if rests && view.generation == generation {
            self.stage = Stage::Over;
            return Ok(());
        }
        let host = self.engine.inner.time.host();
        let poll = host.sleep_until(host.elapsed() + self.engine.inner.poll);
        let told = match select(pin!(live.recv()), poll).await {
            Either::Left((Ok(event), _)) => Some(event),
            // It is driven elsewhere, or this observer is slow: the journal has what matters.
            Either::Left((Err(RecvError::Lagged(_) | RecvError::Closed), _)) | Either::Right(_) => None,
        };
        // What is in the journal is read from there.
        self.told.extend(told.filter(|event| event.class() == Class::EmitOnly).map(|event| Event::clone(&event)));
        Ok(())
    }
}

/// Takes what was only emitted and waits to be told.
fn take_emitted(live: &mut broadcast::Receiver<Arc<Event>>, told: &mut VecDeque<Event>) {
    loop {
        match live.try_recv() {
            Ok(event) if event.class() == Class::EmitOnly => told.push_back(Event::clone(&event)),
            // The journal has what is kept, and what a slow observer missed is gone.
            Ok(_) | Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return,
        }
    }
}
