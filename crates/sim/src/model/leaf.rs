//! Single operations.

use outlast::Failure;
use outlast_core::failure::code;

use super::{At, Judge, Judged, Past, refuse};
use crate::interpret::PLANNED;
use crate::outcome::Outcome;
use crate::tree::{Tree, Wait, Work, callback_key};

impl Judge<'_> {
    pub(super) fn leaf_gives(&mut self, at: &At<'_>, tree: &Tree, outcome: &Outcome, past: Past) -> Judged {
        let is_possible = match (tree, outcome) {
            (Tree::Step(work), Outcome::Step(attempt)) => can_succeed(work, *attempt, self.facts.calm),
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
            (Tree::Condition { not, checks }, Outcome::Condition(checked)) => not < checks && checked == not,
            (Tree::Now, Outcome::Now(now)) => return self.passes(at, tree, *now, past),
            (Tree::Uuid, Outcome::Uuid(id)) => self.drawn.insert(id.clone()),
            (Tree::Random, Outcome::Random(number)) => self.drawn.insert(number.to_string()),
            (_, _) => false,
        };
        if is_possible { Ok(past) } else { refuse(at, tree, format_args!("{tree:?} gave {outcome:?}")) }
    }

    pub(super) fn leaf_fails(&mut self, at: &At<'_>, tree: &Tree, failure: &Failure, past: Past) -> Judged {
        let is_possible = match tree {
            Tree::Step(work) => can_fail(work, failure, self.facts.calm),
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
            Tree::Condition { not, checks } => {
                let state = failure.data.as_deref().and_then(|data| serde_json::from_slice::<u32>(data).ok());
                not >= checks && failure.code == "condition_not_met" && state == Some(*checks)
            }
            Tree::Batch(batch) => batch.concurrency == Some(0) && failure.code == code::VALIDATION_ERROR,
            _ => false,
        };
        if is_possible { Ok(past) } else { refuse(at, tree, format_args!("{tree:?} failed: {failure}")) }
    }
}

fn is_late(wait: &Wait, failure: &Failure) -> bool {
    let names_signal = failure.message.contains(&format!("{:?}", wait.name));
    wait.timeout.is_some() && wait.or_fail && failure.code == "wait_timeout" && names_signal
}

/// Whether an attempt may be found too slow.
fn is_limited(work: &Work) -> bool {
    work.timeout.is_some() || work.heartbeat.is_some()
}

/// Whether every attempt is too slow if nothing disturbs it.
fn is_slow(work: &Work) -> bool {
    let takes = work.takes.unwrap_or(u64::MAX);
    work.timeout.is_some_and(|timeout| takes > timeout)
        || (!work.beats && work.heartbeat.is_some_and(|silence| takes > silence))
}

/// Whether this attempt can have succeeded. An attempt that a crash interrupted is made again under its number: only what
/// is known to have failed counts, so that the number of the attempt that succeeds is certain, unless one was too slow.
fn can_succeed(work: &Work, attempt: u32, calm: bool) -> bool {
    let is_allowed = attempt > work.fails && attempt <= work.attempts && work.takes.is_some();
    if calm || !is_limited(work) {
        let is_retried = work.fails == 0 || !work.permanent;
        is_allowed && is_retried && attempt == work.fails + 1 && !is_slow(work)
    } else {
        is_allowed
    }
}

/// Whether the step can have failed so.
fn can_fail(work: &Work, failure: &Failure, calm: bool) -> bool {
    let is_certain = calm || !is_limited(work);
    match failure.code.as_str() {
        PLANNED => {
            let attempt = failure.message.strip_prefix("attempt ").and_then(|number| number.parse::<u32>().ok());
            let is_planned = |attempt| attempt > 0 && attempt <= work.fails && attempt <= work.attempts;
            let is_last = |attempt| match work.permanent {
                // The first planned failure ends it; only attempts that were too slow may come before.
                true => attempt == 1 || !is_certain,
                false => attempt == work.attempts,
            };
            let is_in_time = !(is_certain && is_slow(work)) && work.takes.is_some();
            failure.permanent == work.permanent && is_in_time && attempt.is_some_and(|n| is_planned(n) && is_last(n))
        }
        code::TIMEOUT => {
            if is_certain {
                is_slow(work)
            } else {
                true
            }
        }
        code::STEP_IN_DOUBT => work.at_most_once && !calm,
        _ => false,
    }
}
