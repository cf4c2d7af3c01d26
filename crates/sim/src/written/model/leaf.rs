//! What waits for somebody, and what somebody does: the same in both styles.

use outlast_core::failure::code;
use serde_json::Value;

use super::Judge;
use crate::model::{can_be_done, can_succeed, code_of, is_limited, is_permanent, is_slow};
use crate::tree::Work;

impl Judge<'_> {
    /// Whether a task can have succeeded with this attempt.
    pub(super) fn task_gives(&self, work: &Work, attempt: Option<&Value>) -> bool {
        number(attempt).is_some_and(|attempt| can_be_done(work, attempt, self.known.calm))
    }

    /// Whether a step can.
    pub(super) fn step_gives(&self, work: &Work, attempt: Option<&Value>) -> bool {
        number(attempt).is_some_and(|attempt| can_succeed(work, attempt, self.known.calm))
    }

    /// Whether a task can have failed with this code.
    pub(super) fn task_fails(&self, work: &Work, said: &str) -> bool {
        (said == code::WORKER_LOST && !self.known.calm) || self.work_fails(work, said)
    }

    /// Whether a step can.
    pub(super) fn step_fails(&self, work: &Work, said: &str) -> bool {
        (said == code::STEP_IN_DOUBT && work.at_most_once && !self.known.calm) || self.work_fails(work, said)
    }

    fn work_fails(&self, work: &Work, said: &str) -> bool {
        let planned = work.fails >= work.attempts || (work.fails > 0 && is_permanent(work));
        match said {
            code::TIMEOUT => is_slow(work) || (!self.known.calm && is_limited(work)),
            said => said == code_of(work.mishap) && planned && work.takes.is_some(),
        }
    }

    /// Whether a signal of this name said so; it is not said to anybody else.
    pub(super) fn signal_gives(&mut self, name: &str, payload: &Value) -> bool {
        let sent = self.told().signals;
        let said = sent.iter().enumerate().find(|(place, sent)| {
            let again = sent.aimed.is_some() || sent.name != name || sent.payload != *payload;
            !again && !self.used.contains(place)
        });
        said.map(|(place, _)| self.used.insert(place)).is_some()
    }

    /// Whether somebody decided so. `is_it` says whether a key is the question's.
    pub(super) fn decided(&self, is_it: impl Fn(&str) -> bool, yes: bool) -> bool {
        self.told().decisions.iter().any(|decision| is_it(&decision.key) && decision.approved == yes)
    }

    /// Whether somebody answered so.
    pub(super) fn answered(&self, is_it: impl Fn(&str) -> bool, value: &Value) -> bool {
        self.told().answers.iter().any(|answer| is_it(&answer.key) && answer.what.as_ref() == Ok(value))
    }

    /// Whether somebody said that there is no answer, with this code.
    pub(super) fn unanswered(&self, is_it: impl Fn(&str) -> bool, said: &str) -> bool {
        let answers = self.told().answers;
        answers.iter().any(|answer| is_it(&answer.key) && answer.what.as_ref().is_err_and(|why| why.code == said))
    }
}

fn number(attempt: Option<&Value>) -> Option<u32> {
    u32::try_from(attempt?.as_u64()?).ok()
}
