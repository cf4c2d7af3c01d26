//! What the witnesses found: broken promises, and how often each promise was looked at.

use std::collections::BTreeMap;
use std::fmt;

/// The number of the finding about an error that was logged and nobody expected: no invariant, but never right.
pub const UNEXPECTED_ERROR: u8 = 0;

/// The invariants of the reliability page, and who sees to them.
pub const TABLE: [(u8, &str, Judge); 23] = [
    (UNEXPECTED_ERROR, "no error is logged that the faults do not explain", Judge::Overheard),
    (1, "journals are contiguous from 0, with one writer per index, and never change", Judge::Both),
    (2, "what was acknowledged is there after any crash", Judge::Both),
    (3, "one end, and nothing after it", Judge::Both),
    (4, "one result per step, at least one body per result, one idempotency key per step", Judge::Both),
    (5, "whatever is not over has something that wakes it", Judge::Oracle),
    (6, "whatever is over owns nothing", Judge::Both),
    (7, "one owner at a time, of runs and of tasks, and a stale fence or token changes nothing", Judge::Watch),
    (8, "signals: accepted is consumed or still there, once, in order", Judge::Both),
    (9, "a wait is resolved once, by an answer that was given", Judge::Watch),
    (10, "no timer fires before it is due by the store's clock", Judge::Both),
    (11, "schedules: one run per instant, none that policy demands is missing", Judge::Both),
    (12, "one decision per approval, with who made it, none after its end", Judge::Both),
    (13, "children are closed as was said, and nobody else's", Judge::Both),
    (14, "the code replays every journal", Judge::Oracle),
    (15, "attempts and delays are within the policy", Judge::Both),
    (16, "a cancellation reaches every descendant", Judge::Oracle),
    (17, "tasks: queued is done, dead, taken back or still there; limits of tasks and of starts hold", Judge::Both),
    (18, "only runs that nobody can go on with are parked", Judge::Both),
    (19, "retention deletes only what is over and old", Judge::Watch),
    (20, "everything stays in its namespace", Judge::Both),
    (21, "secrets appear nowhere", Judge::Later),
    (22, "a run goes on only with its recorded version", Judge::Both),
];

/// Who looks at an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The watch, with every call.
    Watch,
    /// The oracle, at the end.
    Oracle,
    /// The watch and the oracle.
    Both,
    /// Whoever listens to the log.
    Overheard,
    /// It belongs to a part of the product that is not simulated yet.
    Later,
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one: see [`TABLE`].
    pub invariant: u8,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.text)
    }
}

/// What was found, and how often each invariant was looked at: a pass that looked at nothing shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The promises that were not kept.
    pub violations: Vec<Violation>,
    /// How often each invariant was checked.
    pub checked: BTreeMap<u8, u64>,
}

impl Findings {
    /// Counts a check, and keeps what is wrong.
    pub fn check(&mut self, invariant: u8, verdict: Result<(), String>) {
        *self.checked.entry(invariant).or_default() += 1;
        if let Err(text) = verdict {
            self.violations.push(Violation { invariant, text });
        }
    }

    /// Counts a check that should hold.
    pub fn ensure(&mut self, invariant: u8, holds: bool, otherwise: impl FnOnce() -> String) {
        self.check(invariant, if holds { Ok(()) } else { Err(otherwise()) });
    }

    /// The same, unless something excuses it: then nothing was checked, and nothing is counted.
    pub fn ensure_unless(&mut self, excused: bool, invariant: u8, holds: bool, otherwise: impl FnOnce() -> String) {
        if !excused {
            self.ensure(invariant, holds, otherwise);
        }
    }

    /// Takes over what somebody else found.
    pub fn merge(&mut self, other: Findings) {
        self.violations.extend(other.violations);
        for (invariant, times) in other.checked {
            *self.checked.entry(invariant).or_default() += times;
        }
    }

    /// The invariants that were broken, each once.
    pub fn broken(&self) -> Vec<u8> {
        let mut broken: Vec<u8> = self.violations.iter().map(|violation| violation.invariant).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invariant_is_in_the_table_once_and_in_order() {
        let numbers: Vec<u8> = TABLE.iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers, (0..=22).collect::<Vec<u8>>());
    }

    #[test]
    fn a_check_that_holds_is_counted_and_one_that_does_not_is_kept() {
        let mut findings = Findings::default();
        findings.ensure(3, true, || unreachable!("it holds"));
        findings.ensure(3, false, || "two ends".to_owned());
        assert_eq!((findings.checked[&3], findings.broken()), (2, vec![3]));
    }

    #[test]
    fn a_check_that_is_excused_is_not_counted() {
        let mut findings = Findings::default();
        findings.ensure_unless(true, 3, false, || unreachable!("nobody looks"));
        assert_eq!(findings, Findings::default());
        findings.ensure_unless(false, 3, false, || "two ends".to_owned());
        assert_eq!((findings.checked[&3], findings.broken()), (1, vec![3]));
    }
}
