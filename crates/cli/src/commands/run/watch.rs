//! Watching a run and its children until something is to be said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IsTerminal;
use std::time::Duration;

use futures_util::stream::{BoxStream, SelectAll, StreamExt, unfold};
use outlast::{Attached, Awaited, Engine, EngineError, Event, Observed, RunView, Status, TaskState};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::ask::Questions;
use super::begin::Begun;
use crate::progress::{Progress, What, question_of};

/// How often it is looked what the journal does not tell: attempts at tasks, and time that passes.
const LOOK: Duration = Duration::from_millis(200);
/// How many runs are watched at once. The others go on unseen until there is room.
const WATCHED_MAX: usize = 64;
/// How long it may take to hear what was recorded before. Until then nobody is asked what may have an answer.
const HISTORY: Duration = Duration::from_secs(1);
/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Why watching is over.
pub(super) enum Outcome {
    /// The run ended with this event.
    Ended(Box<Event>),
    /// Somebody asked this process to stop.
    Interrupted,
    /// The time is up.
    TimedOut(Status),
    /// Only people can move it, and nobody can be asked here.
    Waits(Vec<(String, What)>),
    /// A task that nobody can do.
    Nobody(String),
    /// It is paused or parked.
    Rests(Box<RunView>),
}

/// What was heard of a run: something that happened, or that nothing more comes.
type Heard = (String, Result<Option<Observed>, EngineError>);

/// Watches a run.
pub(super) struct Watcher<'e> {
    engine: &'e Engine,
    run: String,
    progress: Progress,
    questions: Questions,
    streams: SelectAll<BoxStream<'static, Heard>>,
    /// What was heard before its turn.
    held: VecDeque<Heard>,
    watched: BTreeMap<String, Watched>,
    /// Children for which there is no room yet, each with what stands before what it does.
    crowd: VecDeque<(String, String)>,
    /// The tasks that can be done here.
    known: BTreeSet<String>,
    /// Since when it is watched.
    since: Instant,
    /// Nobody else has the database: what cannot be done here is not done at all.
    is_sole: bool,
}

/// A run that is watched.
struct Watched {
    /// What stands before what it does.
    prefix: String,
    /// How many of the events it had are not heard yet.
    unheard: u64,
}

impl<'e> Watcher<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        (begun, attached): (&Begun, Attached),
        progress: Progress,
        known: BTreeSet<String>,
        is_sole: bool,
    ) -> Watcher<'e> {
        let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let questions = Questions::new(can_ask);
        let mut watcher = Watcher {
            engine,
            run: begun.id.clone(),
            progress,
            questions,
            streams: SelectAll::new(),
            held: VecDeque::new(),
            watched: BTreeMap::new(),
            crowd: VecDeque::new(),
            known,
            since: Instant::now(),
            is_sole,
        };
        watcher.listen(attached, &begun.id, String::new(), begun.recorded);
        watcher
    }

    /// Watches a child, unless all it did was done before anybody looked. If there is no room, when another one has ended.
    async fn attach(&mut self, run: &str, prefix: String) {
        if self.watched.contains_key(run) {
            return;
        }
        if self.watched.len() >= WATCHED_MAX {
            self.crowd.push_back((run.to_owned(), prefix));
            return;
        }
        let Ok(handle) = self.engine.run(run) else { return };
        let Ok(view) = handle.view().await else { return };
        if view.finished_at.is_none_or(|at| self.progress.is_new(Some(at))) {
            self.listen(handle.attach(), run, prefix, view.next.0);
        }
    }

    fn listen(&mut self, attached: Attached, run: &str, prefix: String, unheard: u64) {
        let name = run.to_owned();
        // It ends behind the first that says so.
        let events = unfold(Some(attached), move |attached| {
            let name = name.clone();
            async move {
                let mut attached = attached?;
                let heard = attached.observe().await;
                let goes_on = matches!(heard, Ok(Some(_)));
                Some(((name, heard), goes_on.then_some(attached)))
            }
        });
        self.streams.push(events.boxed());
        self.watched.insert(run.to_owned(), Watched { prefix, unheard });
    }

    /// Watches until there is something to say.
    pub(super) async fn watch(mut self, timeout: Option<Duration>) -> Result<Outcome, EngineError> {
        let outcome = self.until(timeout).await;
        self.progress.screen().clear();
        outcome
    }

    async fn until(&mut self, timeout: Option<Duration>) -> Result<Outcome, EngineError> {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = Instant::now() + timeout.unwrap_or(FOR_EVER);
        let mut interrupts = std::pin::pin!(interrupted());
        loop {
            let outcome = tokio::select! {
                () = &mut interrupts => Some(Outcome::Interrupted),
                Some((run, heard)) = next(&mut self.held, &mut self.streams) => self.heard(&run, heard).await?,
                answer = self.questions.answer() => match answer {
                    Some(answer) => {
                        self.questions.take(self.engine, &answer).await?;
                        None
                    }
                    // Ctrl-D: whoever was asked has left.
                    None => Some(Outcome::Waits(self.open_questions())),
                },
                () = sleep_until(deadline) => Some(Outcome::TimedOut(self.engine.run(&self.run)?.status().await?)),
                _ = looks.tick() => self.look().await?,
            };
            if let Some(outcome) = outcome {
                self.questions.close();
                return Ok(outcome);
            }
            if self.has_heard_all() {
                self.questions.ask(&self.progress);
            }
        }
    }

    /// Whether what was recorded before is known, or should be.
    fn has_heard_all(&self) -> bool {
        self.watched.values().all(|watched| watched.unheard == 0) || self.since.elapsed() > HISTORY
    }

    fn open_questions(&self) -> Vec<(String, What)> {
        let open = self.progress.open();
        open.filter_map(|(run, what)| question_of(what).map(|what| (run.to_owned(), what.clone()))).collect()
    }

    async fn heard(
        &mut self,
        run: &str,
        heard: Result<Option<Observed>, EngineError>,
    ) -> Result<Option<Outcome>, EngineError> {
        let is_main = run == self.run;
        let Some(Observed { at, event, .. }) = heard? else {
            self.watched.remove(run);
            if let Some((next, prefix)) = self.crowd.pop_front() {
                self.attach(&next, prefix).await;
            }
            return Ok(if is_main {
                Some(Outcome::Rests(Box::new(self.engine.run(run)?.view().await?)))
            } else {
                None
            });
        };
        let is_new = self.progress.is_new(at);
        let mut prefix = String::new();
        if let Some(watched) = self.watched.get_mut(run) {
            prefix.clone_from(&watched.prefix);
            watched.unheard = watched.unheard.saturating_sub(u64::from(at.is_some()));
        }
        match &event {
            Event::ChildStarted { child, workflow, .. } => {
                self.attach(child.as_str(), format!("{prefix}{workflow} › ")).await;
            }
            // What the child did comes first: it happened before.
            Event::ChildFinished { child, .. } | Event::ChildFailed { child, .. } if is_new => {
                Box::pin(self.hear_out(child.as_str())).await?;
            }
            _ => {}
        }
        self.progress.happened(run, &prefix, &event, is_new);
        self.progress.draw();
        let is_end = matches!(
            event,
            Event::RunFinished { .. }
                | Event::RunErrored { .. }
                | Event::RunCancelled { .. }
                | Event::RunTerminated { .. }
        );
        Ok((is_main && is_end).then(|| Outcome::Ended(Box::new(event))))
    }

    /// Hears all that is to be heard of a run, if it has ended. What comes of others meanwhile has its turn later.
    async fn hear_out(&mut self, run: &str) -> Result<(), EngineError> {
        let has_ended = self.engine.run(run)?.status().await.is_ok_and(Status::is_terminal);
        if !has_ended {
            return Ok(());
        }
        while self.watched.contains_key(run) {
            let held = self.held.iter().position(|(of, _)| of == run).and_then(|place| self.held.remove(place));
            match held {
                Some((_, heard)) => drop(self.heard(run, heard).await?),
                None => match self.streams.next().await {
                    Some(heard) => self.held.push_back(heard),
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Looks at what the journal does not tell.
    async fn look(&mut self) -> Result<Option<Outcome>, EngineError> {
        self.progress.draw();
        if self.progress.has_tasks() {
            return self.look_at_tasks().await;
        }
        if !self.is_sole || self.questions.can_ask() {
            return Ok(None);
        }
        let mut waits = Vec::new();
        let stuck = only_people(self.engine, &self.run, &mut waits).await?;
        // What it waits for is shown first: the events may be on their way.
        let is_shown = |(run, what): &(String, What)| self.progress.open().any(|open| open == (run.as_str(), what));
        let all_shown = !self.crowd.is_empty() || waits.iter().all(is_shown);
        Ok((stuck && all_shown && !waits.is_empty()).then_some(Outcome::Waits(waits)))
    }

    async fn look_at_tasks(&mut self) -> Result<Option<Outcome>, EngineError> {
        for run in self.watched.keys() {
            for task in self.engine.tasks().run(run).await?.tasks {
                if self.is_sole && task.state == TaskState::Ready && !self.known.contains(task.name.as_str()) {
                    return Ok(Some(Outcome::Nobody(task.name.to_string())));
                }
                self.progress.task_stands(&task);
            }
        }
        Ok(None)
    }
}

/// What is heard next: first what was heard before its turn.
async fn next(held: &mut VecDeque<Heard>, streams: &mut SelectAll<BoxStream<'static, Heard>>) -> Option<Heard> {
    match held.pop_front() {
        Some(heard) => Some(heard),
        None => streams.next().await,
    }
}

/// Whether nothing but people can move a run: nothing executes, no time passes that it waits for. Who is waited for is added.
async fn only_people(engine: &Engine, run: &str, waits: &mut Vec<(String, What)>) -> Result<bool, EngineError> {
    let handle = engine.run(run)?;
    let view = handle.view().await?;
    if view.status != Status::Waiting || view.ready || view.owner.is_some() {
        return Ok(false);
    }
    for awaited in handle.awaiting().await? {
        match awaited {
            Awaited::Wait { answered: false, .. } => {}
            Awaited::Child { run, .. } => {
                if !Box::pin(only_people(engine, run.as_str(), waits)).await? {
                    return Ok(false);
                }
            }
            Awaited::Wait { answered: true, .. } | Awaited::Timer { .. } | Awaited::Task { .. } => return Ok(false),
        }
    }
    let journal = handle.journal().await?;
    // A deadline that passed while this was read moves it.
    let now = handle.view().await?;
    if now.next != view.next || now.status != view.status || now.ready || now.owner.is_some() {
        return Ok(false);
    }
    waits.extend(crate::progress::open_questions(run, &journal).into_iter().map(|what| (run.to_owned(), what)));
    Ok(true)
}

/// Completes when this process is asked to stop.
async fn interrupted() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        asked = tokio::signal::ctrl_c() => {
            if asked.is_err() {
                std::future::pending::<()>().await;
            }
        }
        () = terminated => {}
    }
}

/// Stops politely, unless somebody has no patience. What takes no time need not be explained.
pub(super) async fn shutdown_or_interrupt(engine: &Engine, explain: impl FnOnce()) {
    let polite = async {
        let mut stopping = std::pin::pin!(engine.shutdown());
        if tokio::time::timeout(LOOK, &mut stopping).await.is_err() {
            explain();
            stopping.await;
        }
    };
    tokio::select! {
        () = polite => {}
        () = interrupted() => {}
    }
}
