//! Watching a run.

use std::collections::VecDeque;
use std::pin::pin;

use futures_util::Stream;
use futures_util::future::{Either, select};
use outlast_core::commit::Status;
use outlast_core::event::Event;
use outlast_core::id::{Generation, Index, RunKey};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Excerpt, LIST_PAGE_MAX, Load, LoadFrom, RunView};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use super::EngineError;
use crate::board::Told;
use crate::engine::Engine;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// In which generation's journal.
    pub generation: u64,
    /// Its place there; none for what is only told, which is not kept.
    pub index: Option<u64>,
    /// When it happened; none for what is only told.
    pub at: Option<Timestamp>,
    /// What happened.
    pub event: Event,
}

impl Observed {
    pub(super) fn read(
        run: &RunKey,
        generation: Generation,
        index: Index,
        record: &Record,
    ) -> Result<Self, EngineError> {
        let event = Event::decode(record).map_err(|error| EngineError::Codec(format!("{run}: {error}")))?;
        Ok(Observed { generation: generation.0, index: Some(index.0), at: Some(record.at), event })
    }

    fn told(generation: Generation, event: Event) -> Observed {
        Observed { generation: generation.0, index: None, at: None, event }
    }
}

/// A run that is being watched. It is only read: watching never drives it, and anybody may watch at any time.
pub struct Attached {
    engine: Engine,
    run: RunKey,
    stage: Stage,
    told: VecDeque<Observed>,
    /// Where to begin; with its start if nobody says otherwise.
    from: Option<(Generation, Index)>,
    /// What was only emitted, and where it belongs.
    emitted: VecDeque<(Generation, Index, Event)>,
    to_pause: bool,
    /// Heard since this was made, until it is read: nothing that is told after that is missed, not even of a run that is
    /// started later.
    heard: Option<broadcast::Receiver<Told>>,
}

enum Stage {
    Beginning,
    Watching { generation: Generation, next: Index, live: broadcast::Receiver<Told> },
    Over,
}

impl Attached {
    pub(super) fn new(engine: &Engine, run: RunKey) -> Attached {
        let heard = Some(engine.inner.board.observe(&run));
        Attached {
            engine: engine.clone(),
            run,
            stage: Stage::Beginning,
            told: VecDeque::new(),
            from: None,
            emitted: VecDeque::new(),
            to_pause: false,
            heard,
        }
    }

    /// Ends also when the run waits for something and nobody drives it.
    #[must_use]
    pub fn until_it_waits(mut self) -> Attached {
        self.to_pause = true;
        self
    }

    /// Begins behind an event that was seen before, instead of with the run's start: by its generation and index.
    #[must_use]
    pub fn after(mut self, generation: u64, index: u64) -> Attached {
        self.from = Some((Generation(generation), Index(index).next()));
        self
    }

    /// The next event; none when the run has ended, or rests because it is paused or parked.
    pub async fn next(&mut self) -> Result<Option<Event>, EngineError> {
        Ok(self.observe().await?.map(|observed| observed.event))
    }

    /// The same, with its place in the journal and its time.
    pub async fn observe(&mut self) -> Result<Option<Observed>, EngineError> {
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

    /// The events as a stream, which ends where [`Attached::next`] gives none. An error ends it too.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, EngineError>> {
        futures_util::stream::unfold(Some(self), |attached| async move {
            let mut attached = attached?;
            match attached.next().await {
                Ok(event) => Some((Ok(event?), Some(attached))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn view(&self) -> Result<RunView, EngineError> {
        Ok(self.engine.inner.store()?.get(self.run.clone()).await?)
    }

    async fn begin(&mut self) -> Result<(), EngineError> {
        // Before the journal is read, so that nothing between the two is missed.
        let live = self.heard.take().unwrap_or_else(|| self.engine.inner.board.observe(&self.run));
        let view = self.view().await?;
        if let Some((generation, next)) = self.from {
            if (generation, next) > (view.generation, view.next) {
                let message = format!("{} has no event before {next} of generation {generation} yet", self.run);
                return Err(EngineError::Invalid(message));
            }
            self.stage = Stage::Watching { generation, next, live };
            return Ok(());
        }
        let load = Load { run: self.run.clone(), from: LoadFrom::Index(view.next) };
        let input = match self.engine.inner.store()?.load(vec![load]).await.pop() {
            Some(loaded) => loaded?.input,
            None => bytes::Bytes::new(),
        };
        let started = Event::RunStarted { workflow: view.workflow, version: view.version, input };
        self.told.push_back(Observed::told(view.generation, started));
        self.stage = Stage::Watching { generation: view.generation, next: Index(0), live };
        Ok(())
    }

    /// Reads what is new in the journal; if nothing is, waits until something may be.
    async fn watch(&mut self) -> Result<(), EngineError> {
        let Stage::Watching { generation, next, .. } = &self.stage else { return Ok(()) };
        let (generation, from) = (*generation, *next);
        // The run first: what it says must not be newer than what is read.
        let view = self.view().await?;
        let excerpt = Excerpt { run: self.run.clone(), generation: Some(generation), from, limit: LIST_PAGE_MAX };
        let mut records = self.engine.inner.store()?.excerpt(excerpt).await?;
        // Whoever begins behind the end of an earlier generation goes on with the next one.
        let ended = records.is_empty() && view.generation > generation;
        // What a commit emits is told before its events are. Asked after they were read: a commit is on its way before it is
        // applied, so whatever was read and is not on its way any more has been published, and its emits are here.
        let under_way = self.engine.inner.board.under_way(&self.run);
        let published = under_way.map_or(u64::MAX, |first| first.0.saturating_sub(from.0));
        records.truncate(usize::try_from(published).unwrap_or(usize::MAX));
        self.take_emitted();
        let mut at = from;
        for record in &records {
            self.tell_emitted(generation, at);
            self.told.push_back(Observed::read(&self.run, generation, at, record)?);
            at = at.next();
        }
        let continued = self.told.back().is_some_and(|last| matches!(last.event, Event::RunContinued { .. }));
        self.tell_emitted(generation, at);
        self.go_on(if continued || ended { (generation.next(), Index(0)) } else { (generation, at) });
        if ended || !records.is_empty() || !self.told.is_empty() {
            return Ok(());
        }
        let waits = self.to_pause && view.status == Status::Waiting && !view.ready && view.owner.is_none();
        let rests = waits || view.status.is_terminal() || matches!(view.status, Status::Paused | Status::Parked);
        if rests && under_way.is_none() && view.generation == generation {
            self.stage = Stage::Over;
            return Ok(());
        }
        self.wait().await
    }

    fn go_on(&mut self, (generation, next): (Generation, Index)) {
        if let Stage::Watching { generation: at, next: place, .. } = &mut self.stage {
            (*at, *place) = (generation, next);
        }
    }

    /// Waits until something may be new.
    async fn wait(&mut self) -> Result<(), EngineError> {
        let Stage::Watching { live, .. } = &mut self.stage else { return Ok(()) };
        let host = self.engine.inner.time.host();
        let poll = host.sleep_until(host.elapsed() + self.engine.inner.poll);
        // It may be driven elsewhere, or this observer may be slow: the journal has what matters.
        if let Either::Left((Ok(Told::Emitted { generation, before, event }), _)) =
            select(pin!(live.recv()), poll).await
        {
            self.emitted.push_back((generation, before, Event::clone(&event)));
        }
        Ok(())
    }

    /// Takes what was only emitted and waits to be told. What a slow observer missed is gone.
    fn take_emitted(&mut self) {
        let Stage::Watching { live, .. } = &mut self.stage else { return };
        loop {
            match live.try_recv() {
                Ok(Told::Emitted { generation, before, event }) => {
                    self.emitted.push_back((generation, before, Event::clone(&event)));
                }
                Ok(Told::Grown) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Tells what was emitted before the event with this index.
    fn tell_emitted(&mut self, generation: Generation, at: Index) {
        while let Some((of, before, _)) = self.emitted.front()
            && (*of, *before) <= (generation, at)
        {
            self.told.extend(self.emitted.pop_front().map(|(of, _, event)| Observed::told(of, event)));
        }
    }
}
