//! Suites: many cases on all cores.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outlast_core::event::Kind;

use crate::case::{Act, Case, Fault};
use crate::draw::draw;
use crate::oracle;
use crate::play::{Verdict, play};
use crate::tally::Tally;

/// One seed in so many is played twice, and both traces must be the same.
const TWICE: u64 = 100;
/// After so many failures the rest is not worth the time.
pub const FAILURES_MAX: usize = 5;
/// Fewer seeds than this cannot be expected to meet everything.
pub const SEEDS_FOR_EVERYTHING: u64 = 5_000;

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
    /// Kinds of faults, acts, events and invariants that did not occur.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let mut look = |what: &str, name: &str, seen: bool| {
            if !seen {
                missing.push(format!("{what} {name:?}"));
            }
        };
        for kind in Fault::KINDS {
            look("the fault", kind, self.tally.faults.contains_key(kind));
        }
        for kind in Act::KINDS {
            look("the act", kind, self.tally.acts.contains_key(kind));
        }
        for kind in Kind::ALL.iter().filter(|kind| !oracle::LATER_EVENTS.contains(kind)) {
            look("the event", kind.name(), self.tally.events.contains_key(kind.name()));
        }
        for invariant in oracle::INVARIANTS {
            look("the invariant", &invariant.to_string(), self.tally.invariants.contains_key(&invariant));
        }
        missing
    }
}

/// Plays the cases of seeds, on so many threads, until so many have failed.
#[expect(clippy::disallowed_methods, reason = "how long a suite takes is measured in real time")]
pub fn random(seeds: std::ops::Range<u64>, threads: usize, limit: Option<Duration>, failures_max: usize) -> Report {
    let begun = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let report = Mutex::new(Report::default());
    let over =
        |report: &Report| report.failures.len() >= failures_max || limit.is_some_and(|limit| begun.elapsed() >= limit);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || over(&lock(&report)) {
                        return;
                    }
                    one(seed, &report);
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report.took = begun.elapsed();
    report.failures.sort_by_key(|(case, _)| case.seed);
    report
}

fn one(seed: u64, report: &Mutex<Report>) {
    let case = draw(seed);
    let verdict = play(&case);
    let fickle = seed.is_multiple_of(TWICE) && play(&case).trace != verdict.trace;
    let mut report = lock(report);
    report.played += 1;
    report.tally.add(&verdict.tally);
    if fickle {
        report.fickle.push(seed);
    }
    if !verdict.violations.is_empty() {
        report.failures.push((case, verdict));
    }
}

fn lock(report: &Mutex<Report>) -> std::sync::MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The invariants two verdicts break.
pub fn broken(verdict: &Verdict) -> BTreeSet<u8> {
    verdict.violations.iter().map(|violation| violation.invariant).collect()
}
