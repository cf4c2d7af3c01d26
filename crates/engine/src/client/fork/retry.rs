//! Trying again a run that has failed: a fork of it, cut before what made it fail.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::commit::Status;
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::{Index, Key};
use outlast_store::{Load, LoadFrom, StoreError};

use super::{EngineError, Fork, Forked, RunHandle};

/// How often a run and its forks are tried again, one after the other.
const RETRIES_MAX: usize = 1_000;

impl RunHandle {
    /// A fork of a run that has failed, cut before what made it fail: that is asked for anew, with all its attempts and with a
    /// deadline counted from now on. What was recorded before the cut is not done again; what came after it, clean-up included, is
    /// forgotten. Steps and tasks that are tried again have other idempotency keys, because they belong to another run.
    ///
    /// Nobody records what an author's code made of an error. Taken for what made the run fail is whatever failed with an error that
    /// the run's own one repeats or mentions, and otherwise what failed last; and with it everything that failed before without
    /// anything that succeeded in between. If that is wrong, [`RunHandle::fork`] cuts anywhere.
    ///
    /// The new run is named for this one and the cut, unless [`Fork::id`] names it: asked for again it is the same one.
    pub async fn fork_before_failure(&self) -> Result<Fork<'_>, EngineError> {
        let view = self.view().await?;
        let refused = |why| EngineError::NothingToRetry { run: view.run.clone(), why };
        if view.status != Status::Failed {
            return Err(refused("it has not failed; fork it where it is to go on, with `at`"));
        }
        let load = Load { run: view.run.clone(), from: LoadFrom::Index(Index(0)) };
        let loaded = self.engine.inner.store()?.load(vec![load]).await.pop();
        let loaded = loaded.ok_or_else(|| StoreError::NotFound(view.run.clone()))??;
        let events: Result<Vec<Event>, _> = loaded.events.iter().map(Event::decode).collect();
        let events = events.map_err(|error| EngineError::Codec(format!("{}: {error}", view.run)))?;
        let cut = Cut::of(&events).ok_or_else(|| {
            refused(
                "nothing that it did has failed, the workflow itself gave up, and would again; fork it with another input, or \
                 start it anew with a workflow that was mended",
            )
        })?;
        let name = format!("{}\n{}\n{}", view.run.id, loaded.generation.0, cut.at);
        let mut fork = self.fork(cut.at).id(&format!("fork-{}", crate::token::digest(&name)));
        fork.anew = cut.anew;
        Ok(fork)
    }

    /// Tries a run again that has failed, as [`RunHandle::fork_before_failure`] says. If that was done before, the run that came of it
    /// is the answer, and is tried again itself if it has failed as well: so whatever succeeded once is not done twice, however often
    /// somebody asks.
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicBool, Ordering};
    /// # use outlast::{Ctx, Outlast};
    /// static MENDED: AtomicBool = AtomicBool::new(false);
    ///
    /// async fn ship(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    ///     let paid = ctx.step("pay", async |_| Ok(41)).await?;
    ///     let mended = async |_: outlast::StepContext| match MENDED.load(Ordering::Relaxed) {
    ///         true => Ok(1),
    ///         false => Err(outlast::Error::new("closed", "nobody is there").permanent()),
    ///     };
    ///     Ok(paid + ctx.step("send", mended).await?)
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().workflow("ship", ship).start().await?;
    /// assert!(engine.start("ship", &()).id("a").await?.result::<u32>().await.is_err());
    /// MENDED.store(true, Ordering::Relaxed);
    /// let again = engine.run("a")?.retry().await?;
    /// let run = again.run.id().clone();
    /// assert_eq!(again.run.result::<u32>().await?, 42);
    /// assert_eq!(engine.run("a")?.retry().await?.run.id(), &run);
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry(&self) -> Result<Forked, EngineError> {
        let mut last = RunHandle::new(&self.engine, self.run.clone());
        for _ in 0..RETRIES_MAX {
            let forked = last.fork_before_failure().await?.await?;
            if forked.run.is_new() || forked.run.status().await? != Status::Failed {
                return Ok(forked);
            }
            last = forked.run;
        }
        let why = "it was tried again 1000 times; fork it where it is to go on, with `at`";
        Err(EngineError::NothingToRetry { run: self.run.clone(), why })
    }
}

/// Where a journal is cut, and what is asked for anew behind it.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    at: u64,
    anew: BTreeSet<Key>,
}

/// Something that failed.
#[derive(Clone, Copy)]
struct Failed<'e> {
    index: usize,
    key: &'e Key,
    /// None if nothing more is known than that it was too late, or never so.
    error: Option<&'e Failure>,
}

impl Cut {
    fn of(events: &[Event]) -> Option<Cut> {
        let failed: Vec<Failed<'_>> = events.iter().enumerate().filter_map(failure).collect();
        let causes = causes(events, &failed);
        let mut at = causes.or_else(|| failed.last().map(|last| last.index))?;
        // What failed before it, with no success in between, may as well have made it fail: to forget it repeats nothing.
        let mut first = BTreeMap::new();
        for (index, key) in events.iter().enumerate().filter_map(|(index, event)| Some((index, event.key()?))) {
            first.entry(key).or_insert(index);
        }
        for Failed { index: earlier, .. } in failed.iter().rev() {
            let between = events.get(earlier + 1..at).unwrap_or_default().iter();
            // What had begun by then does not show that the author's code went on.
            let mut went_on = between.filter(|event| succeeds(event)).filter_map(Event::key);
            if *earlier < at && went_on.any(|key| first.get(key).is_none_or(|began| began > earlier)) {
                break;
            }
            at = at.min(*earlier);
        }
        let anew = failed.iter().filter(|failed| failed.index >= at).map(|failed| failed.key.clone()).collect();
        Some(Cut { at: at as u64, anew })
    }
}

/// The first of those failures that the run's own error repeats or mentions; of each error the last time that it came.
fn causes(events: &[Event], failed: &[Failed<'_>]) -> Option<usize> {
    let own = events.iter().rev().find_map(|event| match event {
        Event::RunErrored { error } => Some(error),
        _ => None,
    })?;
    let mut last = BTreeMap::new();
    for failed in failed {
        let Some(error) = failed.error else { continue };
        let is_named = own.code == error.code && own.message == error.message
            || !error.message.is_empty() && own.message.contains(&error.message);
        if is_named {
            last.insert((&error.code, &error.message), failed.index);
        }
    }
    last.into_values().min()
}

fn failure((index, event): (usize, &Event)) -> Option<Failed<'_>> {
    let (key, error) = match event {
        Event::StepFailed { key, error, .. }
        | Event::TaskFailed { key, error, .. }
        | Event::ChildFailed { key, error, .. }
        | Event::CallbackFailed { key, error, .. }
        | Event::OperationRefused { key, error } => (key, Some(error)),
        Event::SignalTimedOut { key, .. }
        | Event::ApprovalTimedOut { key, .. }
        | Event::CallbackTimedOut { key, .. }
        | Event::ConditionChecked { key, met: false, next_at: None, .. } => (key, None),
        // Scopes and nodes fail because something in them did, or because their author says so.
        _ => return None,
    };
    Some(Failed { index, key, error })
}

/// Whether an event is the success of an operation. What was only begun is begun again without harm.
fn succeeds(event: &Event) -> bool {
    matches!(
        event,
        Event::StepFinished { .. }
            | Event::TaskFinished { .. }
            | Event::TimerFired { .. }
            | Event::SignalResolved { .. }
            | Event::ApprovalResolved { .. }
            | Event::CallbackResolved { .. }
            | Event::ChildFinished { .. }
            | Event::ConditionChecked { met: true, .. }
            | Event::ScopeFinished { .. }
    )
}
