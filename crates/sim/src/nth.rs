//! Every call to the store, made to fail once, in five ways.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::case::{Aim, Case, Fails, Fault, Programs, Timed};
use crate::oracle::Violation;
use crate::play::{Verdict, play};
use crate::scenarios::{Scenario, all};
use crate::tally::Tally;

/// The five ways. What is late is late enough for others to come in between, and not so late that the process looks
/// around again meanwhile; what is sent before a crash arrives when another process is under way.
const WAYS: [Fails; 5] = [
    Fails::Refused,
    Fails::AppliedInDoubt,
    Fails::Late { before: 700, after: 0 },
    Fails::AppliedThenCrash,
    Fails::SentThenCrash { before: 4_000 },
];

/// Calls that come in the life of a process that others have died before: they are looked for by name, too.
const LATER: [Aim; 3] = [Aim::Release, Aim::Resolve, Aim::Heartbeat];
/// One number in two is tried with programs that are kept, the other with programs that are dropped: they make other calls.
const MISSED_MAX: u32 = 2;
/// A loop with fewer scenarios has not looked at enough.
const SCENARIOS_MIN: usize = 30;
/// The same of calls that were made to fail.
const CALLS_MIN: u64 = 10_000;
/// Every call that an engine makes to drive runs and do tasks, and its client to be told of them. Each must fail at some time.
/// `retain` and `park_unserved` are made after minutes, which is longer than a scenario.
pub const CALLS: [&str; 24] = [
    "admit",
    "announce",
    "awaiting",
    "claim",
    "claim_tasks",
    "commit",
    "create",
    "deliver",
    "delete",
    "due_schedules",
    "enqueue",
    "excerpt",
    "get",
    "heartbeat",
    "list",
    "load",
    "outlook",
    "register",
    "release",
    "renew",
    "resolve",
    "secret",
    "sweep",
    "take",
];

/// What came of it.
#[derive(Debug, Default)]
pub struct Looped {
    /// Scenarios that were played.
    pub scenarios: usize,
    /// Calls that were made to fail, each in one way.
    pub failed_calls: u64,
    /// The same, by the call's name.
    pub by_call: BTreeMap<&'static str, u64>,
    /// How long it took.
    pub took: Duration,
    /// Cases that broke a promise.
    pub failures: Vec<(Case, Verdict)>,
}

impl Looped {
    /// What a loop that came to its end should have tried and did not.
    pub fn complaints(&self) -> Vec<String> {
        let missing = CALLS.iter().filter(|call| !self.by_call.contains_key(*call));
        let mut complaints: Vec<String> =
            missing.map(|call| format!("every call: no {call:?} was made to fail")).collect();
        if self.scenarios < SCENARIOS_MIN || self.failed_calls < CALLS_MIN {
            let least = format!("{SCENARIOS_MIN} scenarios and {CALLS_MIN} calls are the least");
            complaints.push(format!("{self}: {least}"));
        }
        complaints
    }
}

impl fmt::Display for Looped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(
            f,
            "every call: {} scenarios, {} calls made to fail, in {seconds:.1} s",
            self.scenarios, self.failed_calls
        )
    }
}

/// Plays every scenario with every call failing in every way, until so many have failed.
#[expect(clippy::disallowed_methods, reason = "how long a suite takes is measured in real time")]
pub fn every_call(threads: usize, failures_max: usize) -> Looped {
    let begun = Instant::now();
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
                    let (by_call, failures) = one(scenario);
                    let mut looped = lock();
                    for (call, times) in by_call {
                        looped.failed_calls += times;
                        *looped.by_call.entry(call).or_default() += times;
                    }
                    looped.failures.extend(failures);
                }
            });
        }
    });
    let mut looped = looped.into_inner().unwrap_or_else(PoisonError::into_inner);
    looped.took = begun.elapsed();
    looped
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

/// The scenario with nothing going wrong but what belongs to it, and what happened then.
fn calm(scenario: &Scenario) -> Result<(Case, Tally), Box<(Case, Verdict)>> {
    let case = scenario.case();
    let verdict = play(&case);
    if verdict.violations.is_empty() {
        Ok((case, verdict.tally))
    } else {
        Err(Box::new((case, named(scenario, verdict))))
    }
}

/// Calls that were made to fail, by name.
type ByCall = BTreeMap<&'static str, u64>;

/// One scenario: the calls that were made to fail. The first case that breaks a promise ends it.
fn one(scenario: &Scenario) -> (ByCall, Option<(Case, Verdict)>) {
    let mut failed = ByCall::new();
    let calm = match calm(scenario) {
        Ok(calm) => calm,
        Err(broken) => return (failed, Some(*broken)),
    };
    // The engine, and the client behind it, which does not die.
    let whose = [(0, None), (1, None)].into_iter().chain(LATER.map(|aim| (0, Some(aim))));
    for (process, of) in whose {
        for fails in WAYS {
            let kills = matches!(fails, Fails::AppliedThenCrash | Fails::SentThenCrash { .. });
            if process == 1 && kills {
                continue;
            }
            if let Some((case, verdict)) = in_turn(&calm, (process, of), fails, &mut failed) {
                return (failed, Some((case, named(scenario, verdict))));
            }
        }
    }
    (failed, None)
}

/// Lets each call of a process fail in turn, or each of a name; the first case that breaks a promise.
fn in_turn(
    (calm, undisturbed): &(Case, Tally),
    (process, of): (usize, Option<Aim>),
    fails: Fails,
    failed: &mut ByCall,
) -> Option<(Case, Verdict)> {
    let mut missed = 0;
    for skip in 0..undisturbed.calls {
        let fault = Fault::Call { process, skip, of, fails, early: true };
        let landed = |tally: &Tally| tally.faults.get(fault.kind()).copied().unwrap_or(0);
        let case = with_fault(calm, skip, fault.clone());
        let verdict = play(&case);
        if !verdict.violations.is_empty() {
            return Some((case, verdict));
        }
        // The scenario may have such a fault of its own.
        if landed(&verdict.tally) <= landed(undisturbed) {
            // There is no such call any more: neither with programs that are kept nor with programs that are dropped.
            missed += 1;
            if missed == MISSED_MAX {
                break;
            }
            continue;
        }
        missed = 0;
        for (call, times) in &verdict.tally.calls_failed {
            let own = undisturbed.calls_failed.get(call).copied().unwrap_or(0);
            *failed.entry(*call).or_default() += times.saturating_sub(own);
        }
    }
    None
}

fn with_fault(calm: &Case, skip: u64, fault: Fault) -> Case {
    let mut case = calm.clone();
    case.faults.push(Timed { at: 0, what: fault });
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
    fn a_loop_that_tried_too_little_says_so() {
        let by_call: BTreeMap<&'static str, u64> = CALLS.into_iter().map(|call| (call, 1)).collect();
        let enough = || Looped { scenarios: 30, failed_calls: 10_000, by_call: by_call.clone(), ..Looped::default() };
        assert_eq!(enough().complaints(), [""; 0]);
        assert_eq!(Looped { scenarios: 29, ..enough() }.complaints().len(), 1);
        assert_eq!(Looped { failed_calls: 9_999, ..enough() }.complaints().len(), 1);
        let mut unregistered = enough();
        unregistered.by_call.remove("register");
        assert_eq!(unregistered.complaints(), ["every call: no \"register\" was made to fail"]);
    }

    #[test]
    fn one_scenario_without_bugs_is_played_with_every_call_failing() {
        let (calls, failed) = one(&all().remove(0));
        assert!(calls.values().sum::<u64>() > 20, "{calls:?}");
        assert!(calls.contains_key("register") && calls.contains_key("secret"), "from the first one on: {calls:?}");
        assert!(failed.is_none(), "{:?}", failed.map(|(_, verdict)| verdict.violations));
    }
}
