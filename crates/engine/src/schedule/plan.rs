//! What a schedule does next: decided here, done elsewhere.

#[cfg(test)]
mod tests;

use std::time::Duration;

use outlast_core::id::{Namespace, RunId, ScheduleId};
use outlast_core::planted;
use outlast_core::time::Timestamp;
use outlast_store::Schedule;

use super::rule::Rule;
use super::{Cause, FiringOutcome, InvalidSchedule, Overlap, Spec, State, Waiting, run_id};
use super::{ID_BYTES_MAX, WAITING_MAX};

/// Instants that are dealt with in one write, where they start nothing.
const INSTANTS_MAX: usize = 1_000;

/// A schedule, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) namespace: Namespace,
    pub(crate) id: ScheduleId,
    pub(crate) spec: Spec,
    rule: Rule,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing, until its time comes or the previous run ends.
    Rest,
    /// Write the state; and start a run with it, if there is one.
    Write(Write),
    /// End the previous run: what waits takes its place.
    Stop(Stop),
}

/// A change of a schedule's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Write {
    /// What must have passed by the store's clock.
    pub(crate) at: Option<Timestamp>,
    pub(crate) start: Option<RunId>,
}

/// How to end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancel,
    Terminate,
}

/// What became of something that wants to start a run.
enum Admitted {
    Starts(RunId),
    Waits,
    Skipped,
}

impl Plan {
    /// A schedule that is about to be put.
    pub(crate) fn new(namespace: Namespace, id: ScheduleId, spec: Spec) -> Result<Plan, InvalidSchedule> {
        let rule = Rule::new(&spec.when).map_err(|problem| InvalidSchedule { id: id.to_string(), problem })?;
        Ok(Plan { namespace, id, spec, rule })
    }

    /// A schedule as it is stored, and how far it is; what is wrong with it, if it cannot be read.
    pub(crate) fn read(schedule: &Schedule) -> Result<(Plan, State), String> {
        let spec: Spec = serde_json::from_slice(&schedule.spec).map_err(|error| format!("its rule: {error}"))?;
        let state: State = serde_json::from_slice(&schedule.state).map_err(|error| format!("its state: {error}"))?;
        if schedule.id.as_str().len() > ID_BYTES_MAX {
            return Err(format!("its id has more than {ID_BYTES_MAX} bytes"));
        }
        let plan = Plan::new(schedule.namespace.clone(), schedule.id.clone(), spec);
        Ok((plan.map_err(|error| error.problem)?, state))
    }

    /// How far a new schedule is.
    pub(crate) fn begin(&self, now: Timestamp) -> State {
        let next = self.within(self.rule.first(self.not_before(now), None));
        State { next, remaining: self.spec.remaining, ..State::default() }
    }

    /// How far a schedule is that says this from now on, and said something else before. What it dealt with stays dealt with;
    /// if its instants are the same, those that nobody looked at yet are still to come.
    pub(crate) fn replace(&self, before: &Spec, state: &mut State, now: Timestamp) {
        if self.spec.remaining != before.remaining {
            state.remaining = self.spec.remaining;
        }
        if !self.spec.fires_like(before) {
            state.next = self.within(self.rule.first(self.not_before(now), state.done));
        }
        self.end_if_spent(state);
    }

    /// Lets a paused schedule go on from now. What it did not do meanwhile it does not do now; and what it did because a clock
    /// was ahead it does not do again, because its run is there.
    pub(crate) fn resume(&self, state: &mut State, now: Timestamp) -> bool {
        let paused = state.paused.take().is_some();
        if paused {
            state.next = self.within(self.rule.after(self.not_before(now)));
            self.end_if_spent(state);
        }
        paused
    }

    /// What to do next. `running` is whether the run that was started last has not ended.
    pub(crate) fn turn(&self, state: &mut State, now: Timestamp, running: bool) -> Turn {
        let running = running && !planted!("overlap-ignored");
        if let Some(first) = state.first_waiting()
            && (!running || self.spec.overlap == Overlap::Allow)
            && let Some(waiting) = state.waiting.remove(first)
        {
            return Turn::Write(Write { at: None, start: Some(self.start(state, &waiting)) });
        }
        let mut write = Write::default();
        for _ in 0..INSTANTS_MAX {
            let Some(next) = state.next.filter(|next| state.paused.is_none() && self.due(*next) <= now) else { break };
            write.at = write.at.max(Some(self.due(next)));
            write.start = self.fire(state, next, now, running);
            if write.start.is_some() {
                break;
            }
        }
        if write.at.is_some() {
            return Turn::Write(write);
        }
        if !running || !self.takes_turns(state) {
            return Turn::Rest;
        }
        match self.spec.overlap {
            Overlap::CancelPrevious => Turn::Stop(Stop::Cancel),
            Overlap::TerminatePrevious => Turn::Stop(Stop::Terminate),
            Overlap::Skip | Overlap::Allow | Overlap::BufferOne | Overlap::BufferAll => Turn::Rest,
        }
    }

    /// Somebody wants a run now: what to write, if anything. Asked again with the same instant it is the same trigger.
    pub(crate) fn trigger(&self, state: &mut State, at: Timestamp, running: bool) -> Write {
        match self.admit(state, Waiting { at, cause: Cause::Trigger }, running) {
            Admitted::Starts(run) => Write { at: None, start: Some(run) },
            Admitted::Waits | Admitted::Skipped => Write::default(),
        }
    }

    /// Somebody wants what was missed, one after the other; how many instants that are, or too many.
    pub(crate) fn backfill(&self, state: &mut State, from: Timestamp, to: Timestamp) -> Result<usize, usize> {
        let mut found = 0;
        let mut next = self.at_or_after(from);
        while let Some(at) = next.filter(|at| *at <= to) {
            let waiting = Waiting { at, cause: Cause::Backfill };
            if !state.waiting.contains(&waiting) {
                if state.waiting.len() == WAITING_MAX {
                    return Err(WAITING_MAX);
                }
                state.waiting.push_back(waiting);
            }
            found += 1;
            next = self.rule.after(at);
        }
        Ok(found)
    }

    /// When to look at the schedule next, by the store's clock. What waits is looked at whenever somebody looks.
    pub(crate) fn look_at(&self, state: &State) -> Option<Timestamp> {
        let waiting = state.first_waiting().and_then(|first| Some(state.waiting.get(first)?.at));
        waiting.into_iter().chain(self.next_due(state)).min()
    }

    /// When its next instant is due, jitter and all.
    pub(crate) fn next_due(&self, state: &State) -> Option<Timestamp> {
        state.next.filter(|_| state.paused.is_none()).map(|next| self.due(next))
    }

    /// Its next instants, before any jitter; none while it is paused.
    pub(crate) fn next_times(&self, state: &State, count: usize) -> Vec<Timestamp> {
        let next = state.next.filter(|_| state.paused.is_none());
        let times = std::iter::successors(next, |at| self.within(self.rule.after(*at)));
        let count = state.remaining.map_or(count, |left| count.min(usize::try_from(left).unwrap_or(usize::MAX)));
        times.take(count).collect()
    }

    /// Deals with an instant that is due; the run it starts.
    fn fire(&self, state: &mut State, at: Timestamp, now: Timestamp, running: bool) -> Option<RunId> {
        let catch_up = if planted!("schedule-instant-skipped") { 1_000 } else { self.spec.catch_up_ms };
        let oldest = Timestamp::from_millis(now.as_millis().saturating_sub(catch_up));
        if self.due(at) < oldest {
            state.remember(at, FiringOutcome::Missed);
            // Nobody counts what passed while nobody looked; jitter may make the last of it late enough.
            let skipped = Timestamp::from_millis(oldest.as_millis().saturating_sub(self.spec.jitter_ms + 1)).max(at);
            state.done = Some(skipped);
            state.next = self.within(self.rule.after(skipped));
            return None;
        }
        let admitted = self.admit(state, Waiting { at, cause: Cause::Instant }, running);
        state.done = Some(at);
        state.next = self.within(self.rule.after(at));
        self.end_if_spent(state);
        match admitted {
            Admitted::Starts(run) => Some(run),
            Admitted::Waits | Admitted::Skipped => None,
        }
    }

    fn admit(&self, state: &mut State, waiting: Waiting, running: bool) -> Admitted {
        match (self.spec.overlap, running) {
            (Overlap::Allow, _) | (_, false) => {
                spend(state, &waiting);
                Admitted::Starts(self.start(state, &waiting))
            }
            (Overlap::BufferOne, true) if !self.takes_turns(state) => wait(state, waiting),
            (Overlap::BufferAll, true) if state.waiting.len() < WAITING_MAX => wait(state, waiting),
            (Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll, true) => {
                state.skip(waiting.at, FiringOutcome::Skipped);
                Admitted::Skipped
            }
            (Overlap::CancelPrevious | Overlap::TerminatePrevious, true) => {
                let (kept, replaced): (Vec<_>, Vec<_>) =
                    state.waiting.drain(..).partition(|waiting| waiting.cause == Cause::Backfill);
                state.waiting.extend(kept);
                for old in replaced {
                    if old.cause == Cause::Instant {
                        state.remaining = state.remaining.map(|left| left + 1);
                    }
                    state.skip(old.at, FiringOutcome::Replaced);
                }
                wait(state, waiting)
            }
        }
    }

    /// Whether something waits that is not only to be done some time.
    fn takes_turns(&self, state: &State) -> bool {
        let live = |waiting: &Waiting| state.paused.is_none() || waiting.cause != Cause::Instant;
        state.waiting.iter().any(|waiting| waiting.cause != Cause::Backfill && live(waiting))
    }

    /// The run of a firing.
    pub(crate) fn run_of(&self, waiting: &Waiting) -> RunId {
        run_id(&self.id, waiting)
    }

    fn start(&self, state: &mut State, waiting: &Waiting) -> RunId {
        let run = self.run_of(waiting);
        state.start(waiting.at, run.clone());
        run
    }

    /// When an instant is due: later by some part of the jitter, the same for everybody who asks.
    fn due(&self, at: Timestamp) -> Timestamp {
        if self.spec.jitter_ms <= 0 {
            return at;
        }
        let late = spread(&self.namespace, &self.id, at) % (self.spec.jitter_ms.unsigned_abs() + 1);
        at + Duration::from_millis(late)
    }

    /// An instant, if it is not after the end.
    fn within(&self, at: Option<Timestamp>) -> Option<Timestamp> {
        at.filter(|at| self.spec.until.is_none_or(|until| *at <= until))
    }

    /// The moment after which instants count: from now on, and from its beginning.
    fn not_before(&self, now: Timestamp) -> Timestamp {
        let before = |from: Timestamp| Timestamp::from_millis(from.as_millis().saturating_sub(1));
        self.spec.from.map_or(now, |from| now.max(before(from)))
    }

    fn at_or_after(&self, at: Timestamp) -> Option<Timestamp> {
        self.rule.after(Timestamp::from_millis(at.as_millis().saturating_sub(1)))
    }

    fn end_if_spent(&self, state: &mut State) {
        if state.remaining == Some(0) {
            state.next = None;
        }
    }
}

fn wait(state: &mut State, waiting: Waiting) -> Admitted {
    spend(state, &waiting);
    state.waiting.push_back(waiting);
    Admitted::Waits
}

/// Only what its own time brings counts against the number of times.
fn spend(state: &mut State, waiting: &Waiting) {
    if waiting.cause == Cause::Instant {
        state.remaining = state.remaining.map(|left| left.saturating_sub(1));
    }
}

/// A number that is the same in every process and every release: FNV-1a, and its bits mixed once more.
fn spread(namespace: &Namespace, id: &ScheduleId, at: Timestamp) -> u64 {
    let at = at.as_millis().to_be_bytes();
    let bytes = namespace.as_str().bytes().chain([0]).chain(id.as_str().bytes()).chain([0]).chain(at);
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 11
}
