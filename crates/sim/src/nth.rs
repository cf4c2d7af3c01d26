//! Every call to the store, made to fail once, in five ways.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::case::{Case, Fails, Fault, Programs, Timed};
use crate::oracle::Violation;
use crate::play::{Verdict, play};
use crate::scenarios::{Scenario, all};

/// The five ways. What is late is late enough for others to come in between, and not so late that the process looks
/// around again meanwhile; what is sent before a crash arrives when another process is under way.
const WAYS: [Fails; 5] = [
    Fails::Refused,
    Fails::AppliedInDoubt,
    Fails::Late { before: 700, after: 0 },
    Fails::AppliedThenCrash,
    Fails::SentThenCrash { before: 4_000 },
];

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

/// Plays every scenario with every call failing in every way, until so many have failed.
pub fn every_call(threads: usize, failures_max: usize) -> Looped {
    let scenarios = all();
    let next = AtomicUsize::new(0);
    let looped = Mutex::new(Looped { scenarios: scenarios.len(), ..Looped::default() });
    let lock = || looped.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while lock().failures.len() < failures_max
                    && let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let (failed_calls, failures) = one(scenario);
                    let mut looped = lock();
                    looped.failed_calls += failed_calls;
                    looped.failures.extend(failures);
                }
            });
        }
    });
    looped.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The first scenario that breaks a promise although nothing goes wrong, and how many were played until then.
pub fn undisturbed() -> (u64, Option<(Case, Verdict)>) {
    let mut played = 0;
    for scenario in all() {
        played += 1;
        if let Some(failed) = calm(&scenario).err() {
            return (played, Some(*failed));
        }
    }
    (played, None)
}

/// The scenario with nothing going wrong, and how many calls that takes.
fn calm(scenario: &Scenario) -> Result<(Case, u64), Box<(Case, Verdict)>> {
    let case = scenario.case();
    let verdict = play(&case);
    if verdict.violations.is_empty() {
        Ok((case, verdict.tally.calls))
    } else {
        Err(Box::new((case, named(scenario, verdict))))
    }
}

/// One scenario; the first case that breaks a promise ends it.
fn one(scenario: &Scenario) -> (u64, Option<(Case, Verdict)>) {
    let (calm, calls) = match calm(scenario) {
        Ok(calm) => calm,
        Err(failed) => return (0, Some(*failed)),
    };
    let mut failed = 0;
    // The engine, and the client behind it.
    for process in [0, 1] {
        for fails in WAYS {
            let kills = matches!(fails, Fails::AppliedThenCrash | Fails::SentThenCrash { .. });
            if process == 1 && kills {
                continue;
            }
            for skip in 0..calls {
                let case = with_fault(&calm, process, skip, fails);
                let verdict = play(&case);
                let has_landed =
                    case.faults.last().is_some_and(|fault| verdict.tally.faults.contains_key(fault.what.kind()));
                if !has_landed && verdict.violations.is_empty() {
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
    case.faults.push(Timed { at: 0, what: Fault::Call { process, skip, of: None, fails } });
    case.options.programs = if skip.is_multiple_of(2) { Programs::Kept } else { Programs::Dropped };
    case
}

/// The scenario a case that broke a promise was made of.
pub fn scenario_of(verdict: &Verdict) -> &'static str {
    let said = verdict.violations.first().map_or("", |violation| violation.text.as_str());
    let names = all().into_iter().map(|scenario| scenario.name);
    // One name may begin with another.
    names.filter(|name| said.starts_with(&format!("{name}: "))).max_by_key(|name| name.len()).unwrap_or("scenario")
}

fn named(scenario: &Scenario, mut verdict: Verdict) -> Verdict {
    let tell = |violation: &mut Violation| violation.text = format!("{}: {}", scenario.name, violation.text);
    verdict.violations.iter_mut().for_each(tell);
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_named_after_its_scenario() {
        let scenario = all().remove(0);
        let violations = vec![Violation { invariant: 1, text: "a gap".to_owned() }];
        let verdict = named(&scenario, Verdict { violations, ..Verdict::default() });
        assert_eq!(verdict.violations[0].text, format!("{}: a gap", scenario.name));
        assert_eq!(scenario_of(&verdict), scenario.name);
        assert_eq!(scenario_of(&Verdict::default()), "scenario");
    }

    #[test]
    fn one_scenario_without_bugs_is_played_with_every_call_failing() {
        let (calls, failed) = one(&all().remove(0));
        assert!(calls > 20, "{calls}");
        assert!(failed.is_none(), "{:?}", failed.map(|(_, verdict)| verdict.violations));
    }
}
