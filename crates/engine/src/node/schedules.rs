//! Looks after schedules: fires what is due, and starts what waited for a run to end.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Control, Delivery};
use outlast_core::id::{ClaimId, DeliveryId, Revision, RunId, RunKey};
use outlast_core::time::Timestamp;
use outlast_store::{Fire, Fired, Schedule, StoreError};
use tokio::sync::oneshot;

use super::Node;
use crate::board::EndOfRun;
use crate::drive::ControlMeta;
use crate::driver::{Command, Terminate};
use crate::schedule::{Plan, State, Stop, Turn, is_running, new_run};

/// Schedules read at once.
const DUE_BATCH_MAX: usize = 100;
/// Runs one schedule starts before others have their turn.
const STARTS_MAX: usize = 32;
/// What nobody gave notice of is looked for every so many polls: what other processes put, and runs that ended elsewhere.
const POLLS: u32 = 5;
/// The request to make way for the next run: one in the life of a run.
const CANCEL_ID: &str = "outlast.schedule.cancel";
const REASON: &str = "the next run of its schedule is due";

/// When to look at schedules, and whose ends they wait for.
pub(super) struct Schedules {
    look_at: Duration,
    /// Runs that something waits for, and that may end here.
    ends: BTreeMap<RunKey, EndOfRun>,
}

/// A schedule was looked at.
#[derive(Default)]
struct Looked {
    /// When its next instant is due.
    next: Option<Timestamp>,
    /// It has more to do at once.
    more: bool,
}

impl Schedules {
    pub(super) fn new(now: Duration) -> Schedules {
        Schedules { look_at: now, ends: BTreeMap::new() }
    }

    /// When to look, even if nothing happens.
    pub(super) fn look_at(&self) -> Duration {
        self.look_at
    }

    /// Looks at once.
    pub(super) fn look_now(&mut self) {
        self.look_at = Duration::ZERO;
    }

    /// Completes when a run has ended that something waits for.
    pub(super) async fn ended(&mut self) {
        poll_fn(|context| {
            let mut ended = |end: &mut EndOfRun| pin!(end.event()).poll(context).is_ready();
            let run = self.ends.iter_mut().find_map(|(run, end)| ended(end).then(|| run.clone()));
            let Some(run) = run else { return Poll::Pending };
            self.ends.remove(&run);
            self.look_at = Duration::ZERO;
            Poll::Ready(())
        })
        .await;
    }
}

impl Node {
    /// Looks at the schedules that are due when it is time, when a run has ended that one waits for, or when somebody here
    /// changed one. Whether runs may have been started.
    pub(super) async fn look_after_schedules(&self, now: Duration, schedules: &mut Schedules) -> bool {
        let changed = self.schedules.take();
        if !changed && now < schedules.look_at {
            return false;
        }
        let (started, look_at) = match self.look_at_schedules(schedules).await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::warn!(%error, "schedules could not be looked at; they are looked at again");
                (true, self.after(self.poll))
            }
        };
        schedules.look_at = look_at;
        started
    }

    /// Looks at all that are due; whether there were any, and when to look again.
    async fn look_at_schedules(&self, schedules: &mut Schedules) -> Result<(bool, Duration), StoreError> {
        let mut next: Option<Timestamp> = None;
        let mut any = false;
        let mut more = false;
        let mut after = None;
        let mut ends = BTreeMap::new();
        loop {
            let asked = self.time.asked();
            let due = self.store.due_schedules(after, DUE_BATCH_MAX).await?;
            self.time.observe(asked, due.now);
            any |= !due.schedules.is_empty();
            for schedule in &due.schedules {
                let looked = match self.look_at_one(schedule, due.now, &mut ends).await {
                    Ok(looked) => looked,
                    Err(problem) => {
                        let Schedule { namespace, id, .. } = schedule;
                        tracing::warn!(%namespace, %id, problem, "a schedule could not be looked at; it is looked at again");
                        Looked::default()
                    }
                };
                next = next.into_iter().chain(looked.next).min();
                more |= looked.more;
            }
            next = next.into_iter().chain(due.next_due).min();
            if due.schedules.len() < DUE_BATCH_MAX {
                break;
            }
            after = due.schedules.last().and_then(Schedule::cursor);
        }
        schedules.ends = ends;
        if more {
            return Ok((any, Duration::ZERO));
        }
        let poll = self.after((self.poll * POLLS).max(self.rest));
        Ok((any, next.map_or(poll, |next| poll.min(self.time.instant(next)))))
    }

    /// Does what a schedule has to do now, one write after the other. Whoever else looks at it at the same time decides on the
    /// same revision, and one of the two is told that it is stale.
    async fn look_at_one(
        &self,
        schedule: &Schedule,
        now: Timestamp,
        ends: &mut BTreeMap<RunKey, EndOfRun>,
    ) -> Result<Looked, String> {
        let (plan, mut state) = Plan::read(schedule)?;
        if plan.spec.version.is_none() && self.registry.newest(&plan.namespace, &plan.spec.workflow).is_none() {
            // Others have its workflow, or will.
            return Ok(Looked::default());
        }
        let mut revision = schedule.revision;
        for _ in 0..STARTS_MAX {
            let previous = state.previous.clone().map(|run| RunKey::new(plan.namespace.clone(), run));
            // Before it is asked whether the run has ended, so that its end is not missed.
            let end = previous.as_ref().map(|run| self.board.await_end(run));
            let running = match previous.clone() {
                Some(run) => is_running(&*self.store, run).await.map_err(|error| error.to_string())?,
                None => false,
            };
            let before = state.previous.clone();
            let turn = plan.turn(&mut state, now, running);
            if let (true, true, Some(run), Some(end)) = (running, state.waits(), previous.clone(), end) {
                ends.insert(run, end);
            }
            match (turn, previous) {
                (Turn::Write(write), _) => {
                    let fire = self.fire_of(&plan, &state, revision, write.at, write.start)?;
                    match self.write(fire, &plan, &mut state, before).await? {
                        Fired::Fired { revision: written, .. } => revision = written,
                        // Somebody else was first: what is next is in the store.
                        Fired::Stale => return Ok(Looked { next: None, more: true }),
                        // The clock went back meanwhile.
                        Fired::Early => return Ok(Looked::default()),
                    }
                }
                (Turn::Stop(stop), Some(run)) => {
                    self.stop(run, stop).await.map_err(|error| error.to_string())?;
                    return Ok(Looked { next: plan.next_due(&state), more: false });
                }
                (Turn::Rest | Turn::Stop(_), _) => return Ok(Looked { next: plan.next_due(&state), more: false }),
            }
        }
        Ok(Looked { next: None, more: true })
    }

    fn fire_of(
        &self,
        plan: &Plan,
        state: &State,
        revision: Revision,
        at: Option<Timestamp>,
        start: Option<RunId>,
    ) -> Result<Fire, String> {
        let run = start.and_then(|run| new_run(plan, &self.registry, run));
        let encoded = serde_json::to_vec(state).map_err(|error| error.to_string())?;
        let (namespace, id) = (plan.namespace.clone(), plan.id.clone());
        Ok(Fire { namespace, id, revision, at, state: Bytes::from(encoded), next_at: plan.look_at(state), run })
    }

    /// Writes what was decided. A run that cannot be started must not keep the schedule from going on.
    async fn write(&self, fire: Fire, plan: &Plan, state: &mut State, before: Option<RunId>) -> Result<Fired, String> {
        let fired = match self.store.fire(fire.clone()).await {
            Err(error) if fire.run.is_some() && !error.is_retryable() => {
                let Fire { namespace, id, .. } = &fire;
                tracing::warn!(%namespace, %id, %error, "a schedule could not start its run; it goes on with the next");
                state.refuse(before, error.to_string());
                let without = self.fire_of(plan, state, fire.revision, fire.at, None)?;
                self.store.fire(without).await
            }
            fired => fired,
        };
        fired.map_err(|error| error.to_string())
    }

    /// Asks a run to make way, or ends it. What waits for that is stored: after a crash it is asked again.
    async fn stop(&self, run: RunKey, stop: Stop) -> Result<(), StoreError> {
        match stop {
            Stop::Cancel => {
                let meta = ControlMeta { reason: Some(REASON.to_owned()), ..ControlMeta::default() };
                let meta = serde_json::to_vec(&meta).ok().map(Bytes::from);
                let id = DeliveryId::new(CANCEL_ID).expect("a short id");
                let cancel = Delivery::Control { run, control: Control::Cancel, id, meta, child_of: None };
                let delivered = self.store.deliver(vec![cancel]).await.pop();
                self.board.somebody_woken();
                delivered.transpose().map(drop)
            }
            Stop::Terminate => {
                // Nobody waits for the answer: its end is noticed, or it is asked for again.
                let (reply, _) = oneshot::channel();
                let claim = ClaimId(u64::try_from(self.time.host().random() >> 66).unwrap_or(0) | (1 << 62));
                let order = Terminate { run: run.clone(), reason: REASON.to_owned(), by: None, claim, reply };
                self.drivers.send(&run, Command::Terminate(Box::new(order)));
                Ok(())
            }
        }
    }
}
