//! Putting schedules, and looking at them.

mod handle;

use std::time::Duration;

use bytes::Bytes;
use outlast_core::id::{Revision, ScheduleId, Version, WorkflowName};
use outlast_core::time::Timestamp;
use outlast_store::Schedule;
use serde::Serialize;

pub use handle::{ScheduleHandle, ScheduleView, Triggered};

use super::{EngineError, encode};
use crate::driver::{AGAIN_FIRST, pause};
use crate::engine::Engine;
use crate::schedule::{Asked, Draft, InvalidSchedule, Overlap, Pause, Plan};

/// How often a change is tried before whoever asked is told that it did not work: some seconds in all.
const TRIES_MAX: u32 = 8;

/// A schedule that is about to be put: say when it fires ([`NewSchedule::cron`], [`NewSchedule::every`] or
/// [`NewSchedule::once_at`]) and what it starts ([`NewSchedule::start`]), then [`NewSchedule::put`] it.
#[must_use = "a schedule is put when `put` is awaited"]
pub struct NewSchedule<'e> {
    engine: &'e Engine,
    id: String,
    draft: Draft,
    paused: bool,
    workflow: Option<(String, Result<Bytes, EngineError>)>,
    version: Option<String>,
}

impl Engine {
    /// Writes a schedule: a rule that says when to start a run, again and again. The run of an instant has the id
    /// `{schedule}-{instant}`, the instant as RFC 3339 in UTC, so that each has one; and the search attribute
    /// [`SCHEDULE_ATTRIBUTE`](crate::SCHEDULE_ATTRIBUTE).
    ///
    /// ```
    /// use outlast::{Ctx, Outlast, Overlap};
    ///
    /// async fn report(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ///     ctx.step("send", async |_| Ok(())).await
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let engine = Outlast::memory().workflow("report", report).start().await?;
    /// let nightly = engine
    ///     .schedule("nightly")
    ///     .cron("0 3 * * *")
    ///     .zone("Europe/Berlin")
    ///     .start("report", &())
    ///     .overlap(Overlap::Skip)
    ///     .put()
    ///     .await?;
    /// assert_eq!(nightly.next_times(5).await?.len(), 5);
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedule(&self, id: &str) -> NewSchedule<'_> {
        let (id, draft) = (id.to_owned(), Draft::default());
        NewSchedule { engine: self, id, draft, paused: false, workflow: None, version: None }
    }

    /// A schedule that was put before, here or elsewhere. Nothing is looked up yet.
    pub fn schedule_handle(&self, id: &str) -> Result<ScheduleHandle, EngineError> {
        Ok(ScheduleHandle::new(self, ScheduleId::new(id)?))
    }

    /// The schedules of this engine's namespace, by id.
    pub async fn schedules(&self) -> Result<Vec<ScheduleView>, EngineError> {
        let found = self.inner.store()?.schedules(self.namespace.clone(), None).await?;
        found.iter().map(ScheduleView::of).collect()
    }

    /// Asks the node to look at schedules now.
    fn schedules_changed(&self) {
        self.inner.schedules.tell();
        self.inner.board.somebody_woken();
    }

    /// The store's time: it decides what is due.
    async fn store_now(&self) -> Result<Timestamp, EngineError> {
        Ok(self.inner.store()?.due_schedules(None, 0).await?.now)
    }
}

impl NewSchedule<'_> {
    /// Fires when the wall clock shows what a cron expression says: minute, hour, day of the month, month and day of the week;
    /// before them may be seconds, behind them a year. Names (`MON`, `JAN`), lists, ranges, steps, `L`, `W`, `#` and nicknames
    /// (`@daily`) are understood; if both days are restricted, either will do.
    ///
    /// Where clocks change: an expression with one hour and one minute fires once a day all the same, right behind an hour that
    /// is skipped, and the first time in one that is repeated. Every other one fires whenever the clock shows what it says: not
    /// in an hour that is skipped, and both times in one that is repeated.
    pub fn cron(mut self, expression: &str) -> Self {
        self.draft.whens.push(Asked::Cron(expression.to_owned()));
        self
    }

    /// Whose wall clock: a name of the IANA database, like `Europe/Berlin`. UTC if nobody says otherwise.
    pub fn zone(mut self, zone: &str) -> Self {
        self.draft.zone = Some(zone.to_owned());
        self
    }

    /// Fires at regular intervals of at least a second, counted from the Unix epoch: every hour is at the full hour (in UTC),
    /// whenever the schedule was put.
    pub fn every(mut self, interval: Duration) -> Self {
        self.draft.whens.push(Asked::Every(interval));
        self
    }

    /// So much later than [`NewSchedule::every`] says; less than the interval.
    pub fn offset(mut self, offset: Duration) -> Self {
        self.draft.offset = Some(offset);
        self
    }

    /// Fires once; if that is in the past, at once, unless it is too late ([`NewSchedule::catch_up`]).
    pub fn once_at(mut self, at: Timestamp) -> Self {
        self.draft.whens.push(Asked::Once(at));
        self
    }

    /// Which workflow to start, and with what.
    pub fn start<I: Serialize + ?Sized>(mut self, workflow: &str, input: &I) -> Self {
        self.workflow = Some((workflow.to_owned(), encode(input)));
        self
    }

    /// Which version to start; the newest that whoever fires has if nobody says otherwise.
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// What becomes of a firing while the run before it has not ended; [`Overlap::Skip`] if nobody says otherwise.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.draft.overlap = overlap;
        self
    }

    /// How late a firing may be, when nobody was there at its time: what is later is skipped, what is not fires, one after
    /// the other, subject to [`NewSchedule::overlap`]. A day if nobody says otherwise; at least ten seconds, since nothing is
    /// ever quite on time.
    pub fn catch_up(mut self, window: Duration) -> Self {
        self.draft.catch_up = Some(window);
        self
    }

    /// Fires later by some time up to this: another one for every instant, and the same for everybody. At most a day. The ids
    /// of runs have the instant without it.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.draft.jitter = jitter;
        self
    }

    /// No instant before this one.
    pub fn from(mut self, from: Timestamp) -> Self {
        self.draft.from = Some(from);
        self
    }

    /// No instant after this one.
    pub fn until(mut self, until: Timestamp) -> Self {
        self.draft.until = Some(until);
        self
    }

    /// How many runs its instants start at most. What is triggered or backfilled does not count.
    pub fn remaining(mut self, runs: u64) -> Self {
        self.draft.remaining = Some(runs);
        self
    }

    /// For people who look at it.
    pub fn note(mut self, note: &str) -> Self {
        self.draft.note = Some(note.to_owned());
        self
    }

    /// If the schedule is new, it is paused from the start. One that is there already stays as it is, so that a program that
    /// puts its schedules whenever it starts does not undo what somebody paused or resumed.
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Puts it: creates it, or replaces what it said before. The same again changes nothing, and however often it is put, no
    /// instant fires twice: what it has dealt with, and what waits, stays as it is.
    pub async fn put(self) -> Result<ScheduleHandle, EngineError> {
        let (engine, paused) = (self.engine, self.paused);
        let plan = self.plan()?;
        let spec = encode(&plan.spec)?;
        let mut tries = 1;
        let mut delay = AGAIN_FIRST;
        loop {
            match put(engine, &plan, &spec, paused).await {
                Ok(true) => {
                    engine.schedules_changed();
                    return Ok(ScheduleHandle::new(engine, plan.id));
                }
                // Somebody changed it meanwhile.
                Ok(false) if tries < TRIES_MAX => {}
                Ok(false) => return Err(busy(&plan.id)),
                Err(EngineError::Store(error)) if error.is_retryable() && tries < TRIES_MAX => {
                    pause(&engine.inner.time, &mut delay).await;
                }
                Err(error) => return Err(error),
            }
            tries += 1;
        }
    }

    fn plan(self) -> Result<Plan, EngineError> {
        let NewSchedule { engine, id, draft, workflow, version, .. } = self;
        let inner = &engine.inner;
        let Some((workflow, input)) = workflow else {
            let problem = "say what it starts, with `start`".to_owned();
            return Err(InvalidSchedule { id, problem }.into());
        };
        let name = WorkflowName::new(&workflow)?;
        let version = version.map(Version::new).transpose()?;
        match &version {
            Some(version) => inner.registry.check(&name, version)?,
            None if inner.registry.newest(&engine.namespace, &name).is_none() => {
                return Err(EngineError::UnknownWorkflow(workflow));
            }
            None => {}
        }
        let schedule = ScheduleId::new(&id)?;
        let spec = draft.spec(&id, name, version, &input?)?;
        Ok(Plan::new(engine.namespace.clone(), schedule, spec)?)
    }
}

/// Puts a schedule as it stands; whether nobody changed it meanwhile.
async fn put(engine: &Engine, plan: &Plan, spec: &Bytes, paused: bool) -> Result<bool, EngineError> {
    let store = engine.inner.store()?;
    let now = engine.store_now().await?;
    let found = store.schedules(plan.namespace.clone(), Some(plan.id.clone())).await?.pop();
    let (revision, state) = match found {
        Some(found) if found.spec == *spec => return Ok(true),
        Some(found) => {
            let (before, mut state) = handle::read(&found)?;
            plan.replace(&before.spec, &mut state, now);
            (found.revision, state)
        }
        None => {
            let mut state = plan.begin(now);
            if state.next.is_none() {
                let problem = "no instant of it is to come; check when it fires, and when it ends".to_owned();
                return Err(InvalidSchedule { id: plan.id.to_string(), problem }.into());
            }
            state.paused = paused.then(|| Pause { reason: "put so".to_owned(), at: now });
            (Revision(0), state)
        }
    };
    let (namespace, id, next_at) = (plan.namespace.clone(), plan.id.clone(), plan.look_at(&state));
    let schedule = Schedule { namespace, id, revision, spec: spec.clone(), state: encode(&state)?, next_at };
    Ok(store.put_schedule(schedule).await?.is_some())
}

fn busy(id: &ScheduleId) -> EngineError {
    EngineError::Invalid(format!("the schedule {id:?} is changed by others again and again; ask again"))
}

impl From<InvalidSchedule> for EngineError {
    fn from(error: InvalidSchedule) -> Self {
        EngineError::Invalid(error.to_string())
    }
}
