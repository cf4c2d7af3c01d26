//! Schedules, as they should be: which instants they have, which of them are dealt with, and which runs they started.
//!
//! What an instant is is worked out here, from what the schedule says, and not asked of those who fire it.

use std::collections::{BTreeMap, BTreeSet};

use outlast::Overlap;
use outlast_core::id::{Namespace, RunKey, ScheduleId};
use outlast_core::time::Timestamp;
use outlast_store::{Created, Fire, Fired, Schedule, StoreError};
use serde_json::Value;

use super::shadow::Shadow;
use super::sight::{Sight, Stand};
use crate::ledger::tick;
use crate::tally::count;
use crate::violation::Findings;

/// Instants that are looked at one by one when a schedule passes them; of more, the newest.
const PASSED_MAX: i64 = 200;

/// All schedules there ever were.
#[derive(Clone, Debug, Default)]
pub struct Almanac {
    editions: BTreeMap<(Namespace, ScheduleId), Vec<Edition>>,
    /// What became of instants, by kind.
    pub outcomes: BTreeMap<&'static str, u64>,
}

/// A schedule from when it was put to when it was removed.
#[derive(Clone, Debug)]
pub struct Edition {
    /// What it says.
    pub says: Says,
    /// What it said before.
    pub said: Vec<Says>,
    /// Whether it ever said that runs may overlap.
    pub ever_allowed: bool,
    /// Whether it fires no instants.
    pub paused: bool,
    /// Whether it was removed.
    pub removed: bool,
    /// Everything up to here is dealt with, or was before its time.
    pub dealt: i64,
    /// The latest that the store's clock had shown when an instant was last dealt with: what is too late by then is, too.
    pub looked: i64,
    /// Its instants that it passed without starting their runs at once.
    pub passed: Vec<Passed>,
    /// Runs that it started, or found there.
    pub started: Vec<Start>,
    /// Instants whose runs the store would not create.
    pub refused: BTreeSet<i64>,
    /// Whether one of its runs had not ended when it was last written.
    busy: bool,
}

/// What a schedule says, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Says {
    /// The time between two instants, in milliseconds.
    pub every: i64,
    /// When the first one of them all was, in milliseconds.
    pub offset: i64,
    /// No instant after this one.
    pub until: Option<i64>,
    /// What becomes of one while the run before it has not ended.
    pub overlap: Overlap,
    /// How late one may be, in milliseconds.
    pub catch_up: i64,
    /// By how much one may be put off.
    pub jitter: i64,
    /// How many runs its instants start.
    pub remaining: Option<i64>,
}

/// An instant that did not start its run when its time came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Which.
    pub instant: i64,
    /// What the schedule said about that.
    pub overlap: Overlap,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// When, among everything that happened.
    pub tick: u64,
    /// Whether it may have been too late by then.
    pub late: bool,
    /// Whether a run of the schedule had not ended: at some time since the schedule was last written, and then.
    pub busy: (bool, bool),
    /// When the last of its runs ended, if all had.
    pub free_since: Option<Timestamp>,
}

/// A run that a schedule started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Which.
    pub run: RunKey,
    /// For which instant.
    pub instant: i64,
    /// Whether somebody wanted it then.
    pub manual: bool,
    /// Whether it was not there before.
    pub created: bool,
    /// When, among everything that happened.
    pub tick: u64,
    /// Whether its time had just come; otherwise it waited, or was asked for.
    pub timely: bool,
}

impl Says {
    /// Reads what a schedule says; none if it is not one of those that cases have.
    pub fn read(spec: &[u8]) -> Option<Says> {
        let spec: Value = serde_json::from_slice(spec).ok()?;
        let number = |value: &Value| value.as_i64();
        let (every, offset) = match (spec.pointer("/when/every"), spec.pointer("/when/cron/expression")) {
            (Some(every), _) => (number(&every["every_ms"])?, number(&every["offset_ms"])?),
            (None, Some(expression)) => {
                let seconds: i64 = expression.as_str()?.strip_prefix("*/")?.split(' ').next()?.parse().ok()?;
                (seconds * 1_000, 0)
            }
            (None, None) => return None,
        };
        Some(Says {
            every: Some(every).filter(|every| *every > 0)?,
            offset,
            until: number(&spec["until"]),
            overlap: serde_json::from_value(spec["overlap"].clone()).ok()?,
            catch_up: number(&spec["catch_up_ms"])?,
            jitter: number(&spec["jitter_ms"])?,
            remaining: number(&spec["remaining"]),
        })
    }

    /// The last instant up to a moment.
    pub fn last(&self, moment: i64) -> i64 {
        let moment = self.until.map_or(moment, |until| moment.min(until));
        (moment - self.offset).div_euclid(self.every) * self.every + self.offset
    }

    fn has(&self, instant: i64) -> bool {
        (instant - self.offset).rem_euclid(self.every) == 0 && self.until.is_none_or(|until| instant <= until)
    }
}

/// The instant in the id of a run of a schedule, in milliseconds, and whether somebody wanted it then.
pub(super) fn instant_of(schedule: &str, run: &str) -> Option<(i64, bool)> {
    let rest = run.strip_prefix(schedule)?.strip_prefix('-')?;
    let (stamp, suffix) = rest.split_once('Z')?;
    let (date, time) = stamp.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, part) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let millis: i64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds * 1_000 + millis, suffix == "-manual"))
}

/// Days from 1970 to a date, counted in years that begin with March, so that the odd day is the last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl Almanac {
    /// Every schedule, and all it was between a put and a removal.
    pub fn all(&self) -> impl Iterator<Item = (&(Namespace, ScheduleId), &Edition)> {
        self.editions.iter().flat_map(|(id, editions)| editions.iter().map(move |edition| (id, edition)))
    }

    /// Whether the run is one that a schedule started.
    pub fn has_started(&self, run: &RunKey) -> bool {
        self.all().any(|(_, edition)| edition.started.iter().any(|start| start.run == *run))
    }

    /// Whether the run has to make way for the next one of its schedule.
    pub fn makes_way(&self, run: &RunKey) -> bool {
        let stops = |edition: &Edition| {
            matches!(edition.says.overlap, Overlap::CancelPrevious | Overlap::TerminatePrevious)
                && edition.started.iter().any(|start| start.run == *run)
        };
        self.all().any(|(_, edition)| stops(edition))
    }

    /// The present one, if it is there.
    fn present(&mut self, id: &(Namespace, ScheduleId)) -> Option<&mut Edition> {
        self.editions.get_mut(id)?.last_mut().filter(|edition| !edition.removed)
    }
}

impl Edition {
    /// One that is put now.
    pub(crate) fn new(says: Says, dealt: i64) -> Edition {
        let ever_allowed = says.overlap == Overlap::Allow;
        let (passed, started, refused) = (Vec::new(), Vec::new(), BTreeSet::new());
        Edition {
            says,
            said: Vec::new(),
            ever_allowed,
            paused: false,
            removed: false,
            dealt,
            looked: i64::MIN,
            passed,
            started,
            refused,
            busy: false,
        }
    }

    /// It says something from now on.
    fn say(&mut self, says: Says, now: i64) {
        self.ever_allowed |= says.overlap == Overlap::Allow;
        if (says.every, says.offset, says.until) != (self.says.every, self.says.offset, self.says.until) {
            self.dealt = self.dealt.max(now);
        }
        self.said.push(std::mem::replace(&mut self.says, says));
    }

    /// It is paused from now on, or is not.
    fn set_paused(&mut self, paused: bool, now: i64) {
        if self.paused && !paused {
            // What passed meanwhile does not fire.
            self.dealt = self.dealt.max(now);
        }
        self.paused = paused;
    }

    /// Everything up to `last` is dealt with; what became of it. One of them may have started its run at once.
    fn deal(&mut self, last: i64, at_once: Option<i64>, moment: &Moment) -> Vec<&'static str> {
        let mut seen = Vec::new();
        for instant in self.passes(last).into_iter().filter(|instant| Some(*instant) != at_once) {
            let late = instant + self.says.catch_up < moment.latest.as_millis();
            seen.push(if late { "late" } else { "passed" });
            self.passed.push(Passed {
                instant,
                overlap: self.says.overlap,
                at: moment.now,
                tick: tick(),
                late,
                busy: (self.busy, moment.may_be_busy),
                free_since: moment.free_since,
            });
        }
        self.dealt = self.dealt.max(last);
        self.looked = moment.latest.as_millis();
        seen
    }

    /// The instants that are dealt with when everything up to `last` is: all, or the newest of many.
    fn passes(&self, last: i64) -> Vec<i64> {
        let Says { every, .. } = self.says;
        let first = self.says.last(self.dealt).max(last - PASSED_MAX * every) + every;
        std::iter::successors(Some(first), |instant| Some(instant + every)).take_while(|at| *at <= last).collect()
    }
}

/// Whether a schedule's state says that it is paused.
fn is_paused(state: &[u8]) -> bool {
    serde_json::from_slice::<Value>(state).is_ok_and(|state| !state["paused"].is_null())
}

impl Sight {
    /// A schedule was put.
    pub(super) fn schedule_put(&mut self, schedule: &Schedule, now: Timestamp) {
        let Some(says) = Says::read(&schedule.spec) else { return };
        let (id, now) = ((schedule.namespace.clone(), schedule.id.clone()), now.as_millis());
        let paused = is_paused(&schedule.state);
        match self.almanac.present(&id) {
            Some(edition) => {
                edition.say(says, now);
                edition.set_paused(paused, now);
            }
            None => {
                let mut edition = Edition::new(says, now);
                edition.paused = paused;
                self.almanac.editions.entry(id).or_default().push(edition);
            }
        }
    }

    pub(super) fn schedule_removed(&mut self, id: &(Namespace, ScheduleId)) {
        if let Some(edition) = self.almanac.present(id) {
            edition.removed = true;
        }
    }

    /// Somebody fired a schedule, or changed how far it is, and what was answered.
    pub(super) fn fired(&mut self, fire: &Fire, answer: &Result<Fired, StoreError>, now: Timestamp, stand: Stand) {
        let id = (fire.namespace.clone(), fire.id.clone());
        let instant = fire.run.as_ref().and_then(|new| instant_of(fire.id.as_str(), new.run.id.as_str()));
        let created = match answer {
            Ok(Fired::Fired { run, .. }) => run,
            Ok(Fired::Stale | Fired::Early) => return,
            Err(error) => {
                if let (false, Some((instant, _)), Some(edition)) =
                    (error.is_retryable(), instant, self.almanac.present(&id))
                {
                    edition.refused.insert(instant);
                }
                return;
            }
        };
        let others = self.almanac.created(&id);
        let Some(edition) = self.almanac.present(&id) else { return };
        let runs = &self.runs;
        let moment = Moment::of(edition, now, self.clock.latest(), |run| runs.get(run));
        let mut found = Findings::default();
        let mut seen = Vec::new();
        if let (Some(new), Some(created)) = (&fire.run, created) {
            let start = Start {
                run: new.run.clone(),
                instant: instant.map_or(i64::MIN, |(instant, _)| instant),
                manual: instant.is_some_and(|(_, manual)| manual),
                created: matches!(created, Created::Created { .. }),
                tick: tick(),
                timely: fire.at.is_some(),
            };
            judge_start(edition, &start, &moment, &others, &mut found);
            seen.extend(outcomes_of(edition, &start, moment.busy.is_some()));
            edition.started.push(start);
        }
        if let Some(due) = fire.at {
            let at_once = instant.map(|(instant, _)| instant).filter(|_| created.is_some());
            seen.extend(edition.deal(edition.says.last(due.as_millis()), at_once, &moment));
        }
        edition.set_paused(is_paused(&fire.state), now.as_millis());
        edition.busy = moment.may_be_busy || created.is_some();
        seen.into_iter().for_each(|kind| count(&mut self.almanac.outcomes, kind));
        if stand.alone && !self.overlapped {
            self.findings.merge(found);
        }
    }
}

/// How things stand with the runs of a schedule when it is written.
struct Moment {
    now: Timestamp,
    /// The latest that the store's clock showed.
    latest: Timestamp,
    /// One that has surely not ended.
    busy: Option<RunKey>,
    /// Whether one may not have ended.
    may_be_busy: bool,
    /// When the last of them ended, if all have.
    free_since: Option<Timestamp>,
}

impl Moment {
    fn of<'s>(
        edition: &Edition,
        now: Timestamp,
        latest: Timestamp,
        shadow: impl Fn(&RunKey) -> Option<&'s Shadow>,
    ) -> Moment {
        let runs = || edition.started.iter().map(|start| &start.run);
        let goes_on = |shadow: &Shadow| !shadow.ended && !shadow.deleted;
        let surely = |run: &&RunKey| shadow(run).is_some_and(|shadow| shadow.sure && goes_on(shadow));
        let maybe = |run: &RunKey| shadow(run).is_none_or(|shadow| !shadow.sure || goes_on(shadow));
        let (busy, may_be_busy) = (runs().find(surely).cloned(), runs().any(maybe));
        let free_since = runs().filter_map(|run| shadow(run)?.ended_at).max().filter(|_| !may_be_busy);
        Moment { now, latest, busy, may_be_busy, free_since }
    }
}

impl Almanac {
    /// What all editions of a schedule started that was not there before.
    fn created(&self, id: &(Namespace, ScheduleId)) -> Vec<Start> {
        let editions = self.editions.get(id).into_iter().flatten();
        editions.flat_map(|edition| edition.started.iter().filter(|start| start.created).cloned()).collect()
    }
}

/// A run that a schedule starts is that of one of its instants, which has come, and the only one of it; and it begins beside
/// no other, unless that is allowed.
fn judge_start(edition: &Edition, start: &Start, moment: &Moment, others: &[Start], found: &mut Findings) {
    let Start { run, instant, manual, created, .. } = start;
    let is_one = edition.said.iter().chain([&edition.says]).any(|says| says.has(*instant));
    found.ensure(11, *manual || is_one, || {
        format!("{run} was started, and {instant} is no instant of its schedule: {:?}", edition.says)
    });
    let latest = moment.latest;
    found.ensure(11, Timestamp::from_millis(*instant) <= latest, || {
        format!("{run} was started, and the store's clock never passed {latest}")
    });
    let twice = others.iter().find(|other| (other.instant, other.manual) == (*instant, *manual));
    found.ensure(11, !created || twice.is_none(), || {
        format!("{run} was started, and {:?} was before, for the same instant", twice.map(|other| &other.run))
    });
    let beside = moment.busy.as_ref().filter(|_| *created && !edition.ever_allowed);
    found.ensure(11, beside.is_none(), || format!("{run} began while {beside:?} of its schedule had not ended"));
}

fn outcomes_of(edition: &Edition, start: &Start, overlaps: bool) -> Vec<&'static str> {
    let kind = match (start.created, start.manual, start.timely) {
        (false, _, _) => "was there",
        (true, true, _) => "triggered",
        (true, false, true) => "in time",
        (true, false, false) => "after waiting",
    };
    let beside = overlaps.then_some("beside another");
    [kind, policy(edition.says.overlap)].into_iter().chain(beside).collect()
}

/// A policy's name, for counting.
fn policy(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Skip => "skip",
        Overlap::Allow => "allow",
        Overlap::BufferOne => "buffer one",
        Overlap::BufferAll => "buffer all",
        Overlap::CancelPrevious => "cancel previous",
        Overlap::TerminatePrevious => "terminate previous",
    }
}

/// What a suite must have seen of schedules.
pub const OUTCOMES: [&str; 13] = [
    "was there",
    "triggered",
    "in time",
    "after waiting",
    "beside another",
    "late",
    "passed",
    "skip",
    "allow",
    "buffer one",
    "buffer all",
    "cancel previous",
    "terminate previous",
];
