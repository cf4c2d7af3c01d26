//! Trying the trial: every planted bug is set to work in turn, and the suites must find it.
#![expect(clippy::print_stdout, reason = "a command prints its report")]

use std::collections::BTreeMap;

use outlast_core::planted::{BUGS, Bug, plant};

use crate::ground::Kind;
use crate::{nth, suite};

/// Cases that are played for one bug before it counts as not found.
const SEEDS: u64 = 4_000;
/// At most so many may be missed.
const MISSED_MAX: usize = 1;

/// Hunts one bug, or all of them; whether enough of them were found.
pub fn hunt(name: Option<&str>, threads: usize) -> bool {
    let chosen: Vec<&Bug> = BUGS.iter().filter(|bug| name.is_none_or(|name| bug.name == name)).collect();
    if chosen.is_empty() {
        println!("no bug is named {:?}; there are: {}", name.unwrap_or(""), names());
        return false;
    }
    let mut missed = Vec::new();
    let mut by_suite: BTreeMap<&str, usize> = BTreeMap::new();
    for bug in &chosen {
        // It is in the table.
        let _ = plant(Some(bug.name));
        match find(threads) {
            Some((suite, how)) => {
                *by_suite.entry(suite).or_default() += 1;
                println!("{:<34} found by {suite:<10} {how}", bug.name);
            }
            None => {
                println!("{:<34} NOT FOUND ({})", bug.name, bug.what);
                missed.push(bug.name);
            }
        }
    }
    let _ = plant(None);
    let found = chosen.len() - missed.len();
    println!("{found} of {} planted bugs found: {by_suite:?}", chosen.len());
    missed.len() <= if name.is_some() { 0 } else { MISSED_MAX }
}

/// Which suite finds the bug that is at work, and what it says.
fn find(threads: usize) -> Option<(&'static str, String)> {
    let report = suite::random(&Kind::Memory, 0..SEEDS, threads, suite::Limits { time: None, failures: 1 });
    if let Some((case, verdict)) = report.failures.first() {
        let broken = verdict.violations.first()?;
        let text: String = broken.text.lines().next().unwrap_or("").chars().take(140).collect();
        return Some(("random", format!("seed {}, invariant {}: {text}", case.seed, broken.invariant)));
    }
    if let Some(seed) = report.fickle.first() {
        return Some(("twice", format!("seed {seed} does not do the same twice")));
    }
    let looped = nth::every_call(threads);
    let (_, verdict) = looped.failures.first()?;
    let broken = verdict.violations.first()?;
    Some(("nth call", format!("invariant {}: {}", broken.invariant, broken.text.lines().next().unwrap_or(""))))
}

fn names() -> String {
    BUGS.iter().map(|bug| bug.name).collect::<Vec<_>>().join(", ")
}
