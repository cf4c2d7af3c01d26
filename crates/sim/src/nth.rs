//! Every call to the store, made to fail once, in three ways.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::case::{Case, Fails, Fault, Programs, Timed};
use crate::oracle::Violation;
use crate::play::{Verdict, play};
use crate::scenarios::{Scenario, all};

/// The three ways.
const WAYS: [Fails; 3] = [Fails::Refused, Fails::AppliedInDoubt, Fails::AppliedThenCrash];

/// What came of it.
#[derive(Debug, Default)]
pub struct Looped {
    /// Scenarios that were played.
    pub scenarios: usize,
    /// Calls that were made to fail, each in one way.
    pub failed_calls: u64,
    /// Cases that broke a promise.
    pub failures: Vec<(Case, Verdict)>,
}

impl fmt::Display for Looped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "every call: {} scenarios, {} calls made to fail", self.scenarios, self.failed_calls)
    }
}

/// Plays every scenario with every call failing in every way.
pub fn every_call(threads: usize) -> Looped {
    let scenarios = all();
    let next = AtomicUsize::new(0);
    let looped = Mutex::new(Looped { scenarios: scenarios.len(), ..Looped::default() });
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (failed_calls, failures) = one(scenario);
                    let mut looped = looped.lock().unwrap_or_else(PoisonError::into_inner);
                    looped.failed_calls += failed_calls;
                    looped.failures.extend(failures);
                }
            });
        }
    });
    looped.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// One scenario; the first case that breaks a promise ends it.
fn one(scenario: &Scenario) -> (u64, Option<(Case, Verdict)>) {
    let calm = scenario.case();
    let verdict = play(&calm);
    if !verdict.violations.is_empty() {
        return (0, Some((calm, named(scenario, verdict))));
    }
    let mut failed = 0;
    // The engine, and the client behind it.
    for process in [0, 1] {
        for fails in WAYS {
            if process == 1 && fails == Fails::AppliedThenCrash {
                continue;
            }
            for skip in 0..verdict.tally.calls {
                let case = with_fault(&calm, process, skip, fails);
                let verdict = play(&case);
                if verdict.tally.faults.is_empty() && verdict.violations.is_empty() {
                    // There is no such call any more.
                    break;
                }
                failed += 1;
                if !verdict.violations.is_empty() {
                    return (failed, Some((case, named(scenario, verdict))));
                }
            }
        }
    }
    (failed, None)
}

fn with_fault(calm: &Case, process: usize, skip: u64, fails: Fails) -> Case {
    let mut case = calm.clone();
    case.faults.push(Timed { at: 0, what: Fault::Call { process, skip, fails } });
    case.options.programs = if skip.is_multiple_of(2) { Programs::Kept } else { Programs::Dropped };
    case
}

fn named(scenario: &Scenario, mut verdict: Verdict) -> Verdict {
    let tell = |violation: &mut Violation| violation.text = format!("{}: {}", scenario.name, violation.text);
    verdict.violations.iter_mut().for_each(tell);
    verdict
}
