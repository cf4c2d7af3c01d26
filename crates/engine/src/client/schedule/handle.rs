//! A schedule, from outside.

use std::time::Duration;

use outlast_core::id::{RunId, RunKey, ScheduleId, Version, WorkflowName};
use outlast_core::time::Timestamp;
use outlast_store::{Fire, Fired, Schedule, StoreError};

use super::super::{EngineError, RunHandle, encode};
use super::{TRIES_MAX, busy};
use crate::driver::{AGAIN_FIRST, pause};
use crate::engine::Engine;
use crate::schedule::{Cause, Firing, Overlap, Pause, Plan, State, Utc, Waiting, Wanted, is_running, new_run};
use crate::token::digest;

/// The most instants that can be asked for.
const TIMES_MAX: usize = 1_000;

/// A schedule, from outside. Dropping the handle does nothing to the schedule.
pub struct ScheduleHandle {
    engine: Engine,
    id: ScheduleId,
}

/// A schedule, for people and tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleView {
    /// Its id.
    pub id: ScheduleId,
    /// When it fires, in words: `cron 0 3 * * * in Europe/Berlin`.
    pub when: String,
    /// No instant before this one.
    pub from: Option<Timestamp>,
    /// No instant after this one.
    pub until: Option<Timestamp>,
    /// Which workflow it starts.
    pub workflow: WorkflowName,
    /// Which version of it; the newest one if none.
    pub version: Option<Version>,
    /// What it starts it with, as JSON.
    pub input: String,
    /// What becomes of a firing while the run before it has not ended.
    pub overlap: Overlap,
    /// How late a firing may be.
    pub catch_up: Duration,
    /// Fires later by some time up to this.
    pub jitter: Duration,
    /// How many runs its instants may still start.
    pub remaining: Option<u64>,
    /// For people who look at it.
    pub note: Option<String>,
    /// Why it is paused, and since when, if it is.
    pub paused: Option<(String, Timestamp)>,
    /// Its next five instants, before any jitter; none while it is paused.
    pub next_times: Vec<Timestamp>,
    /// The instants that wait for the run before them to end.
    pub waiting: Vec<Timestamp>,
    /// The run it started last.
    pub last_run: Option<RunId>,
    /// How many runs it has started.
    pub started: u64,
    /// How many firings did not take place because the run before them had not ended.
    pub skipped: u64,
    /// What became of its last ten firings, the newest last.
    pub recent: Vec<Firing>,
}

/// What became of a run that somebody wanted at once.
pub enum Triggered {
    /// It was started.
    Started(RunHandle),
    /// It waits for the end of the run before it.
    Waits,
    /// The run before it has not ended, and the schedule skips what overlaps ([`Overlap`]).
    Skipped,
}

impl ScheduleView {
    pub(super) fn of(schedule: &Schedule) -> Result<ScheduleView, EngineError> {
        let (plan, state) = read(schedule)?;
        let next_times = plan.next_times(&state, 5);
        let spec = plan.spec;
        let duration = |millis: i64| Duration::from_millis(millis.unsigned_abs());
        Ok(ScheduleView {
            id: plan.id,
            when: spec.when.to_string(),
            from: spec.from,
            until: spec.until,
            workflow: spec.workflow,
            version: spec.version,
            input: spec.input.get().to_owned(),
            overlap: spec.overlap,
            catch_up: duration(spec.catch_up_ms),
            jitter: duration(spec.jitter_ms),
            remaining: state.remaining,
            note: spec.note,
            paused: state.paused.map(|pause| (pause.reason, pause.at)),
            next_times,
            waiting: state.waiting.iter().map(|waiting| waiting.at).collect(),
            last_run: state.previous,
            started: state.started,
            skipped: state.skipped,
            recent: state.recent.into(),
        })
    }
}

/// What a decision depends on beside the schedule.
#[derive(Clone, Copy)]
struct Moment {
    /// The store's time.
    now: Timestamp,
    /// Whether the run that was started last has not ended.
    running: bool,
}

/// A schedule as it is stored.
pub(super) fn read(schedule: &Schedule) -> Result<(Plan, State), EngineError> {
    let unreadable = |problem| EngineError::Codec(format!("the schedule {:?} cannot be read: {problem}", schedule.id));
    Plan::read(schedule).map_err(unreadable)
}

impl ScheduleHandle {
    pub(super) fn new(engine: &Engine, id: ScheduleId) -> ScheduleHandle {
        ScheduleHandle { engine: engine.clone(), id }
    }

    /// Its id.
    pub fn id(&self) -> &ScheduleId {
        &self.id
    }

    /// What it says, and how far it is.
    pub async fn describe(&self) -> Result<ScheduleView, EngineError> {
        ScheduleView::of(&self.stored().await?)
    }

    /// Its next instants, before any jitter: so many, or all there are; at most a thousand. None while it is paused.
    pub async fn next_times(&self, count: usize) -> Result<Vec<Timestamp>, EngineError> {
        let (plan, state) = read(&self.stored().await?)?;
        Ok(plan.next_times(&state, count.min(TIMES_MAX)))
    }

    /// Lets no instant fire until it is resumed; what waits for a run to end waits on. What is triggered or backfilled is
    /// started all the same, and runs that were started go on. Pausing it again changes the reason.
    pub async fn pause(&self, reason: &str) -> Result<(), EngineError> {
        self.change(|_, state, Moment { now, .. }| {
            let at = state.paused.as_ref().map_or(now, |pause| pause.at);
            let pause = Pause { reason: reason.to_owned(), at };
            let changed = state.paused.as_ref() != Some(&pause);
            state.paused = Some(pause);
            Ok(changed.then_some(None))
        })
        .await
    }

    /// Lets it fire again, from now on: instants that passed meanwhile do not fire ([`ScheduleHandle::backfill`] them). Whether
    /// it was paused.
    pub async fn resume(&self) -> Result<bool, EngineError> {
        let mut paused = false;
        self.change(|plan, state, Moment { now, .. }| {
            let resumed = plan.resume(state, now);
            // If the reply to the first try was lost, the second finds it resumed.
            paused |= resumed;
            Ok(resumed.then_some(None))
        })
        .await?;
        Ok(paused)
    }

    /// Starts a run now, as if an instant came: what becomes of it while another runs is what the schedule says. Its id ends
    /// with `-manual`.
    pub async fn trigger_now(&self) -> Result<Triggered, EngineError> {
        self.trigger(None).await
    }

    /// As [`ScheduleHandle::trigger_now`], once for a key: under the same one again nothing happens, and the answer is that of the
    /// first time. The last 64 keys of a schedule are remembered.
    pub async fn trigger_once(&self, key: &str) -> Result<Triggered, EngineError> {
        // However long a key is, what is remembered of it is short.
        self.trigger(Some(&digest(key))).await
    }

    async fn trigger(&self, key: Option<&str>) -> Result<Triggered, EngineError> {
        let mut at = None;
        let mut answer = Wanted::Skipped;
        self.change(|plan, state, Moment { now, running }| {
            if let Some(known) = key.and_then(|key| state.wanted(key)) {
                answer = known.clone();
                return Ok(None);
            }
            // The same one at every try, so that one whose reply was lost is not made twice.
            let at = *at.get_or_insert(now);
            let waiting = Waiting { at, cause: Cause::Trigger };
            let run = plan.run_of(&waiting);
            let waits = state.waiting.contains(&waiting);
            if waits || state.previous.as_ref() == Some(&run) {
                answer = if waits { Wanted::Waits } else { Wanted::Started(run) };
                return Ok(None);
            }
            let write = plan.trigger(state, at, running);
            answer = match &write.start {
                Some(run) => Wanted::Started(run.clone()),
                None if state.waiting.contains(&waiting) => Wanted::Waits,
                None => Wanted::Skipped,
            };
            key.into_iter().for_each(|key| state.answer(key, answer.clone()));
            Ok(Some(write.start))
        })
        .await?;
        Ok(match answer {
            Wanted::Started(run) => Triggered::Started(RunHandle::new(&self.engine, self.run_key(&run))),
            Wanted::Waits => Triggered::Waits,
            Wanted::Skipped => Triggered::Skipped,
        })
    }

    /// Starts the runs of all its instants from one moment to another, both included and neither in the future: at once with
    /// [`Overlap::Allow`], otherwise one after the other; none is skipped. An instant whose run is there is not started again.
    /// A hundred at most can wait. How many instants that are.
    pub async fn backfill(&self, from: Timestamp, to: Timestamp) -> Result<usize, EngineError> {
        let mut found = 0;
        self.change(|plan, state, Moment { now, .. }| {
            let refused = |problem| {
                EngineError::Invalid(format!("the schedule {:?} cannot be backfilled: {problem}", plan.id.as_str()))
            };
            if to > now {
                return Err(refused(format!("{} is not in the past; what is to come fires by itself", Utc(to))));
            }
            found = plan.backfill(state, from, to).map_err(|most| {
                let (from, to) = (Utc(from), Utc(to));
                refused(format!(
                    "from {from} to {to} there are more instants than can wait, which is {most}; take less"
                ))
            })?;
            Ok((found > 0).then_some(None))
        })
        .await?;
        Ok(found)
    }

    /// Removes it; whether it was there. Runs that it started go on; what waits is forgotten.
    pub async fn remove(&self) -> Result<bool, EngineError> {
        let inner = &self.engine.inner;
        let mut delay = AGAIN_FIRST;
        for tries in 1.. {
            match inner.store()?.remove_schedule(self.engine.namespace.clone(), self.id.clone()).await {
                Err(error) if error.is_retryable() && tries < TRIES_MAX => pause(&inner.time, &mut delay).await,
                // A try whose reply was lost may have removed it.
                removed => return Ok(removed? || tries > 1),
            }
        }
        Ok(false)
    }

    async fn stored(&self) -> Result<Schedule, EngineError> {
        let inner = &self.engine.inner;
        let found = inner.store()?.schedules(self.engine.namespace.clone(), Some(self.id.clone())).await?.pop();
        found.ok_or_else(|| EngineError::UnknownSchedule(self.id.to_string()))
    }

    fn run_key(&self, run: &RunId) -> RunKey {
        RunKey::new(self.engine.namespace.clone(), run.clone())
    }

    /// Changes how far the schedule is, and starts a run with that if there is one to start. `decide` says nothing if nothing
    /// changes; it is asked again if somebody else changed the schedule meanwhile, or if the reply was lost.
    async fn change(
        &self,
        mut decide: impl FnMut(&Plan, &mut State, Moment) -> Result<Option<Option<RunId>>, EngineError>,
    ) -> Result<(), EngineError> {
        let inner = &self.engine.inner;
        let mut delay = AGAIN_FIRST;
        for _ in 0..TRIES_MAX {
            match self.try_to_change(&mut decide).await {
                Ok(Fired::Fired { .. }) => {
                    self.engine.schedules_changed();
                    return Ok(());
                }
                Ok(Fired::Stale | Fired::Early) => {}
                Err(EngineError::Store(error)) if error.is_retryable() => pause(&inner.time, &mut delay).await,
                Err(error) => return Err(error),
            }
        }
        Err(busy(&self.id))
    }

    async fn try_to_change(
        &self,
        decide: &mut impl FnMut(&Plan, &mut State, Moment) -> Result<Option<Option<RunId>>, EngineError>,
    ) -> Result<Fired, EngineError> {
        let inner = &self.engine.inner;
        let store = inner.store()?;
        let now = self.engine.store_now().await?;
        let stored = self.stored().await?;
        let (plan, mut state) = read(&stored)?;
        let revision = stored.revision;
        let running = match &state.previous {
            Some(previous) => is_running(&*store, self.run_key(previous)).await?,
            None => false,
        };
        let Some(start) = decide(&plan, &mut state, Moment { now, running })? else {
            return Ok(Fired::Fired { revision, run: None });
        };
        let run = match start {
            Some(run) => {
                let unknown = || EngineError::UnknownWorkflow(plan.spec.workflow.to_string());
                Some(new_run(&plan, &inner.registry, run).ok_or_else(unknown)?)
            }
            None => None,
        };
        let (namespace, id, next_at) = (plan.namespace.clone(), plan.id.clone(), plan.look_at(&state));
        let fire = Fire { namespace, id, revision, at: None, state: encode(&state)?, next_at, run };
        let fired: Result<Fired, StoreError> = store.fire(fire).await;
        Ok(fired?)
    }
}
