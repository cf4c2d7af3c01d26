//! Suites: many cases on all cores.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outlast_core::event::Kind;
use outlast_core::failure::code;

use crate::case::{Act, Case, Fault};
use crate::draw::draw;
use crate::ground;
use crate::interpret::PLANNED;
use crate::oracle;
use crate::play::Verdict;
use crate::tally::Tally;

/// One seed in so many is played twice, and both traces must be the same.
const TWICE: u64 = 100;
/// After so many failures the rest is not worth the time.
pub const FAILURES_MAX: usize = 5;
/// Fewer seeds than this cannot be expected to meet everything.
pub const SEEDS_FOR_EVERYTHING: u64 = 5_000;

/// Operations, by the kinds they are named after, of which a suite must have seen some.
pub const OPERATIONS: [&str; 18] = [
    "step",
    "transaction",
    "task",
    "sleep",
    "wait",
    "approve",
    "callback",
    "submit",
    "condition",
    "child",
    "batch",
    "member",
    "scope",
    "started",
    "nap0",
    "now",
    "uuid",
    "random",
];
/// Groups and batches, by what is awaited of them, what they are made of and how they end, cleanups, and what is said about
/// children, likewise; how runs of texts ended, and that they went on from a state that was kept.
pub const PARTS: [&str; 25] = [
    "group All",
    "group Any",
    "group Race",
    "group AllSettled",
    "group of Scopes",
    "group of Started",
    "group of Sleeps",
    "group of Trio",
    "group of Family",
    "group of Tasks",
    "batch AllCompleted",
    "batch MinSuccessfulReached",
    "batch FailureToleranceExceeded",
    "child Cancel",
    "child Terminate",
    "child Abandon",
    "cleanup",
    "script finished",
    "script failed",
    "script cancelled",
    "script restored",
    "flow finished",
    "flow failed",
    "flow cancelled",
    "flow restored",
];
/// Calls of which some must have failed. The others are rare: [`crate::nth`] lets each of them fail.
pub const CALLS_FAILED: [&str; 16] = [
    "admit",
    "announce",
    "awaiting",
    "claim",
    "claim_tasks",
    "commit",
    "create",
    "deliver",
    "due_schedules",
    "heartbeat",
    "load",
    "outlook",
    "renew",
    "sweep",
    "take",
    "wakes",
];
/// Codes of failures, likewise. Transactions have no SQL in memory.
pub const CODES: [&str; 9] = [
    PLANNED,
    code::PANIC,
    code::LIMIT_EXCEEDED,
    code::TIMEOUT,
    code::STEP_IN_DOUBT,
    code::WORKER_LOST,
    code::TRANSACTIONS_UNSUPPORTED,
    "no_runtime",
    "condition_not_met",
];

/// What came of a suite.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that were played.
    pub played: u64,
    /// Those that broke a promise.
    pub failures: Vec<(Case, Verdict)>,
    /// Seeds that did not do the same twice.
    pub fickle: Vec<u64>,
    /// What happened how often.
    pub tally: Tally,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// Takes in what came of a case, and of a second time if there was one.
    fn take(&mut self, case: Case, verdict: Verdict, second: Option<&Verdict>) {
        self.played += 1;
        self.tally.add(&verdict.tally);
        if second.is_some_and(|second| !second.repeats(&verdict)) {
            self.fickle.push(case.seed);
        }
        if !verdict.violations.is_empty() {
            self.failures.push((case, verdict));
        }
    }

    /// Adds a line to a file, for whoever adds up several reports.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn add_to(&self, file: &Path) -> std::io::Result<()> {
        let millis = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        let line = serde_json::json!({ "seeds": self.played, "millis": millis, "tally": self.tally });
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        writeln!(file, "{line}")
    }

    /// What is wrong beside broken promises: cases that are not the same twice, and what should have occurred.
    pub fn complaints(&self, repeats: bool) -> Vec<String> {
        let fickle = self.fickle.iter();
        let mut complaints: Vec<String> =
            fickle.map(|seed| format!("seed {seed} does not do the same twice")).collect();
        if self.played == 0 {
            complaints.push("an empty pass: no case was played".to_owned());
        }
        if repeats && self.played >= SEEDS_FOR_EVERYTHING {
            complaints.extend(self.missing().iter().map(|what| format!("an empty pass: {what} never occurred")));
        }
        complaints
    }

    /// Kinds of faults, acts, events and invariants that did not occur.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let mut look = |what: &str, name: &str, seen: bool| {
            if !seen {
                missing.push(format!("{what} {name:?}"));
            }
        };
        for kind in Fault::KINDS.into_iter().chain(Fault::EFFECTS) {
            look("the fault", kind, self.tally.faults.contains_key(kind));
        }
        for kind in Act::KINDS {
            look("the act", kind, self.tally.acts.contains_key(kind));
        }
        for kind in Kind::ALL.iter().filter(|kind| !oracle::LATER_EVENTS.contains(kind)) {
            look("the event", kind.name(), self.tally.events.contains_key(kind.name()));
        }
        for kind in OPERATIONS {
            look("the operation", kind, self.tally.operations.contains_key(kind));
        }
        for part in PARTS {
            look("the part", part, self.tally.parts.contains_key(part));
        }
        for call in CALLS_FAILED {
            look("a failure of the call", call, self.tally.calls_failed.contains_key(call));
        }
        for kind in crate::watch::OUTCOMES {
            look("an instant", kind, self.tally.instants.contains_key(kind));
        }
        for kind in crate::watch::FLOWS {
            look("a start", kind, self.tally.flows.contains_key(kind));
        }
        for code in CODES {
            look("a failure with the code", code, self.tally.codes.contains_key(code));
        }
        for invariant in oracle::INVARIANTS.into_iter().chain([crate::judge::MODEL]) {
            look("the invariant", &invariant.to_string(), self.tally.invariants.contains_key(&invariant));
        }
        missing
    }
}

/// When a suite ends before its last seed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After so long.
    pub time: Option<Duration>,
    /// After so many failures.
    pub failures: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time: None, failures: FAILURES_MAX }
    }
}

/// Plays the cases of seeds, on so many threads.
#[expect(clippy::disallowed_methods, reason = "how long a suite takes is measured in real time")]
pub fn random(ground: &ground::Kind, seeds: Range<u64>, threads: usize, limits: Limits) -> Report {
    let begun = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let report = Mutex::new(Report::default());
    let over = |report: &Report| {
        report.failures.len() >= limits.failures || limits.time.is_some_and(|time| begun.elapsed() >= time)
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // A seed that was taken is played: so the smallest one that fails is found whoever is faster.
                while !over(&lock(&report)) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    one(ground, draw(seed), &report);
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report.took = begun.elapsed();
    report.failures.sort_by_key(|(case, _)| case.seed);
    report
}

fn one(ground: &ground::Kind, case: Case, report: &Mutex<Report>) {
    let (verdict, second) = if ground.repeats() && case.seed.is_multiple_of(TWICE) {
        let (first, second) = ground.play_twice(&case);
        (first, Some(second))
    } else {
        (ground.play(&case), None)
    };
    lock(report).take(case, verdict, second.as_ref());
}

fn lock(report: &Mutex<Report>) -> std::sync::MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The invariants two verdicts break.
pub fn broken(verdict: &Verdict) -> BTreeSet<u8> {
    verdict.violations.iter().map(|violation| violation.invariant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::Violation;

    fn verdict(trace: u64) -> Verdict {
        Verdict { trace, ..Verdict::default() }
    }

    #[test]
    fn an_empty_report_is_missing_everything() {
        let missing = Report::default().missing();
        let events = Kind::ALL.iter().filter(|kind| !oracle::LATER_EVENTS.contains(kind)).count();
        let kinds = Fault::KINDS.len()
            + Fault::EFFECTS.len()
            + Act::KINDS.len()
            + OPERATIONS.len()
            + CODES.len()
            + PARTS.len()
            + CALLS_FAILED.len()
            + crate::watch::OUTCOMES.len()
            + crate::watch::FLOWS.len()
            + oracle::INVARIANTS.len()
            + 1;
        assert_eq!(missing.len(), events + kinds, "{missing:?}");
        assert!(missing.contains(&"the fault \"crash\"".to_owned()), "{missing:?}");
    }

    #[test]
    fn what_has_occurred_is_not_missing() {
        let mut report = Report::default();
        let mut verdict = verdict(1);
        verdict.tally.faults.insert("crash", 1);
        report.take(draw(0), verdict, None);
        assert_eq!(report.missing().len() + 1, Report::default().missing().len());
    }

    #[test]
    fn two_different_traces_are_reported() {
        let mut report = Report::default();
        report.take(draw(100), verdict(1), Some(&verdict(1)));
        assert_eq!(report.complaints(true), Vec::<String>::new());
        report.take(draw(200), verdict(1), Some(&verdict(2)));
        assert_eq!(report.complaints(true), ["seed 200 does not do the same twice"]);
    }

    #[test]
    fn a_broken_promise_is_a_failure_of_its_case() {
        let mut report = Report::default();
        let violations = vec![Violation { invariant: 3, text: "two ends".to_owned() }];
        report.take(draw(7), Verdict { violations, ..Verdict::default() }, None);
        report.take(draw(8), verdict(0), None);
        let failed: Vec<u64> = report.failures.iter().map(|(case, _)| case.seed).collect();
        assert_eq!((report.played, failed), (2, vec![7]));
    }

    #[test]
    fn a_report_complains_about_an_empty_pass_and_only_many_seeds_must_meet_everything() {
        let played = |played| Report { played, ..Report::default() };
        assert_eq!(played(0).complaints(true), ["an empty pass: no case was played"]);
        assert_eq!(played(SEEDS_FOR_EVERYTHING - 1).complaints(true), Vec::<String>::new());
        assert_eq!(played(SEEDS_FOR_EVERYTHING).complaints(true).len(), Report::default().missing().len());
        assert_eq!(played(SEEDS_FOR_EVERYTHING).complaints(false), Vec::<String>::new());
    }
}
