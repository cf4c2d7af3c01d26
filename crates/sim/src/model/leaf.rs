//! Single operations.

use outlast::Failure;
use outlast_core::failure::code;

use super::{At, Judge, Judged, Past, refuse};
use crate::interpret::PLANNED;
use crate::outcome::Outcome;
use crate::tree::{Mishap, Tree, Wait, Work, callback_key};

impl Judge<'_> {
    pub(super) fn leaf_gives(&mut self, at: &At<'_>, tree: &Tree, outcome: &Outcome, past: Past) -> Judged {
        let is_possible = match (tree, outcome) {
            (Tree::Step(work), Outcome::Step(attempt)) => can_succeed(work, *attempt, self.facts.calm),
            (Tree::Transaction(work), Outcome::Step(attempt)) => {
                self.facts.sql && can_succeed(work, *attempt, self.facts.calm)
            }
            (Tree::Task(errand), Outcome::Task(attempt)) => {
                !errand.detached && can_be_done(&errand.work, *attempt, self.facts.calm)
            }
            (Tree::Task(errand), Outcome::Queued(id)) => errand.detached && self.is_own_task(at, id),
            (Tree::Sleep(_), Outcome::Done) | (Tree::Emit | Tree::SetState, Outcome::Done) => true,
            (Tree::SleepUntil(ms), Outcome::SleptUntil { until, after }) => {
                let begun = self.passes(at, tree, until.saturating_sub(*ms), past)?;
                return self.passes(at, tree, *after, Past { now: begun.now.max(*until), ..begun });
            }
            (Tree::Wait(wait), Outcome::Signal(payload)) => {
                let fits = !wait.number || payload.is_u64();
                fits && self.consumes(at.run, &at.place.key("wait"), &wait.name, payload)
            }
            (Tree::Wait(wait), Outcome::NoSignal) => wait.timeout.is_some() && !wait.or_fail,
            (Tree::Approve(_), Outcome::Decided(approved)) => {
                let key = at.place.key("approve");
                self.told(at.run).decisions.iter().any(|told| told.key == key && told.approved == *approved)
            }
            (Tree::Approve(timeout), Outcome::Undecided) => timeout.is_some(),
            (Tree::Callback(call), Outcome::Answered(value)) => {
                let key = callback_key(&at.place, call);
                self.told(at.run).answers.iter().any(|told| told.key == key && told.what.as_ref() == Ok(value))
            }
            (Tree::Condition { not, checks, fails, .. }, Outcome::Condition(checked)) => {
                fails + not < *checks && checked == not
            }
            (Tree::Now, Outcome::Now(now)) if self.is_recorded(at, tree, &now.to_string()) => {
                return self.passes(at, tree, *now, past);
            }
            (Tree::Uuid, Outcome::Uuid(id)) => self.is_recorded(at, tree, id) && self.drawn.insert(id.clone()),
            (Tree::Random, Outcome::Random(number)) => {
                let number = number.to_string();
                self.is_recorded(at, tree, &number) && self.drawn.insert(number)
            }
            (_, _) => false,
        };
        if is_possible { Ok(past) } else { refuse(at, tree, format_args!("{tree:?} gave {outcome:?}")) }
    }

    pub(super) fn leaf_fails(&mut self, at: &At<'_>, tree: &Tree, failure: &Failure, past: Past) -> Judged {
        let is_possible = match tree {
            Tree::Step(work) => can_fail(work, failure, self.facts.calm),
            Tree::Transaction(_) if !self.facts.sql => {
                failure.code == code::TRANSACTIONS_UNSUPPORTED && failure.permanent
            }
            Tree::Transaction(work) => can_fail(work, failure, self.facts.calm),
            Tree::Task(errand) => !errand.detached && can_go_wrong(&errand.work, failure, self.facts.calm),
            Tree::Wait(wait) => is_late(wait, failure),
            Tree::Callback(call) => {
                let key = callback_key(&at.place, call);
                let can_be_late = call.timeout.is_some() || call.heartbeat.is_some();
                (can_be_late && failure.code == code::TIMEOUT)
                    || self
                        .told(at.run)
                        .answers
                        .iter()
                        .any(|told| told.key == key && told.what.as_ref() == Err(failure))
            }
            Tree::Condition { not, checks, fails, panics } => can_end(failure, (*not, *checks, *fails, *panics)),
            Tree::Batch(batch) => batch.concurrency == Some(0) && failure.code == code::VALIDATION_ERROR,
            _ => false,
        };
        if is_possible { Ok(past) } else { refuse(at, tree, format_args!("{tree:?} failed: {failure}")) }
    }
}

impl Judge<'_> {
    /// Whether the id is that of a task which this operation queued.
    fn is_own_task(&mut self, at: &At<'_>, id: &str) -> bool {
        let ends = id.ends_with(&format!("/{}", at.place.key("task")));
        // A fork has it from the run that queued it.
        let begins = |run: &str| id.starts_with(&format!("{}/", run.replace('/', "%2F")));
        (self.facts.forked || at.run.is_none_or(begins)) && ends && self.drawn.insert(id.to_owned())
    }

    /// Whether a program was told what is on record. Only of the run itself the record is known.
    fn is_recorded(&self, at: &At<'_>, tree: &Tree, told: &str) -> bool {
        let own = at.run == Some(self.facts.run.as_str());
        match &self.facts.recorded {
            Some(recorded) if own => recorded.get(&at.place.key(tree.kind())).is_some_and(|found| found == told),
            Some(_) | None => true,
        }
    }
}

fn is_late(wait: &Wait, failure: &Failure) -> bool {
    let names_signal = failure.message.contains(&format!("{:?}", wait.name));
    wait.timeout.is_some() && wait.or_fail && failure.code == "wait_timeout" && names_signal
}

/// Whether an attempt may be found too slow.
pub(crate) fn is_limited(work: &Work) -> bool {
    work.timeout.is_some() || work.heartbeat.is_some()
}

/// Whether every attempt is too slow if nothing disturbs it.
pub(crate) fn is_slow(work: &Work) -> bool {
    let takes = work.takes.unwrap_or(u64::MAX);
    work.timeout.is_some_and(|timeout| takes > timeout)
        || (!work.beats && work.heartbeat.is_some_and(|silence| takes > silence))
}

/// Whether trying again is pointless after the first failure.
pub(crate) fn is_permanent(work: &Work) -> bool {
    match work.mishap {
        Mishap::Error => work.permanent,
        Mishap::Panic => false,
        Mishap::TooLarge => true,
    }
}

/// Whether this attempt can have succeeded. An attempt that a crash interrupted is made again under its number: only what
/// is known to have failed counts, so that the number of the attempt that succeeds is certain, unless one was too slow.
pub(crate) fn can_succeed(work: &Work, attempt: u32, calm: bool) -> bool {
    let is_allowed = !work.spawned && attempt > work.fails && attempt <= work.attempts && work.takes.is_some();
    if calm || !is_limited(work) {
        let is_retried = work.fails == 0 || !is_permanent(work);
        is_allowed && is_retried && attempt == work.fails + 1 && !is_slow(work)
    } else {
        is_allowed
    }
}

/// Whether this attempt at a task can have succeeded. An attempt counts as soon as a worker has it: one that was lost with
/// its worker is not made again under its number, and what it would have come to nobody knows.
pub(crate) fn can_be_done(work: &Work, attempt: u32, calm: bool) -> bool {
    if calm {
        return can_succeed(work, attempt, calm);
    }
    attempt > work.fails && attempt <= work.attempts && work.takes.is_some()
}

/// Whether a task can have failed so.
fn can_go_wrong(work: &Work, failure: &Failure, calm: bool) -> bool {
    match failure.code.as_str() {
        code::WORKER_LOST => !calm && failure.permanent,
        code::TIMEOUT => is_slow(work) || (!calm && is_limited(work)),
        said if said == code_of(work.mishap) => {
            let is_in_time = !(calm && is_slow(work)) && work.takes.is_some();
            failure.permanent == is_permanent(work) && is_in_time && is_last(work, failure, calm)
        }
        _ => false,
    }
}

/// Whether the step can have failed so.
fn can_fail(work: &Work, failure: &Failure, calm: bool) -> bool {
    if work.spawned {
        return failure.code == "no_runtime" && failure.permanent;
    }
    let is_certain = calm || !is_limited(work);
    match failure.code.as_str() {
        code::TIMEOUT => !is_certain || is_slow(work),
        code::STEP_IN_DOUBT => work.at_most_once && !calm,
        said if said == code_of(work.mishap) => {
            let is_in_time = !(is_certain && is_slow(work)) && work.takes.is_some();
            failure.permanent == is_permanent(work) && is_in_time && is_last(work, failure, is_certain)
        }
        _ => false,
    }
}

/// What a step fails with.
pub(crate) fn code_of(mishap: Mishap) -> &'static str {
    match mishap {
        Mishap::Error => PLANNED,
        Mishap::Panic => code::PANIC,
        Mishap::TooLarge => code::LIMIT_EXCEEDED,
    }
}

/// Whether a planned failure can be the one that ends it.
fn is_last(work: &Work, failure: &Failure, is_certain: bool) -> bool {
    let is_planned = |attempt| attempt > 0 && attempt <= work.fails && attempt <= work.attempts;
    match attempt_of(failure) {
        // The first planned failure ends it; only attempts that were too slow may come before.
        Some(attempt) if is_permanent(work) => is_planned(attempt) && (attempt == 1 || !is_certain),
        Some(attempt) => is_planned(attempt) && attempt == work.attempts,
        None => work.mishap == Mishap::TooLarge && is_planned(1),
    }
}

/// Which attempt a planned failure is of, if it says so.
fn attempt_of(failure: &Failure) -> Option<u32> {
    let (_, number) = failure.message.rsplit_once("attempt ")?;
    number.parse().ok()
}

/// Whether a condition can have failed so: its last check failed, or said no.
fn can_end(failure: &Failure, (not, checks, fails, panics): (u32, u32, u32, bool)) -> bool {
    if fails >= checks {
        let said = if panics { code::PANIC } else { PLANNED };
        return failure.code == said && attempt_of(failure) == Some(checks);
    }
    let state = failure.data.as_deref().and_then(|data| serde_json::from_slice::<u32>(data).ok());
    fails + not >= checks && failure.code == "condition_not_met" && state == Some(checks - fails)
}
