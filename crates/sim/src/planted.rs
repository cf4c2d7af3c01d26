//! Trying the trial: every planted bug is set to work in turn, and the suites must find it.
#![expect(clippy::print_stdout, reason = "a command prints its report")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use outlast_core::planted::{BUGS, Bug, plant};

use crate::corpus::{self, Kept};
use crate::ground::Kind;
use crate::play::{Verdict, play};
use crate::{nth, suite};

/// Random cases that are played first: most bugs need no more.
const SEEDS_FIRST: u64 = 64;
/// Random cases that are played for one bug before it counts as not found.
const SEEDS: u64 = 4_000;
/// At most so many may be missed, beside those of which it is known.
const MISSED_MAX: usize = 1;

/// Bugs that these suites do not find, and why. They are hunted only by name.
const UNSEEN: [(&str, &str); 1] =
    [("pause-ignored-by-flow", "a journal does not say when a pause was asked for; a story of the engine finds it")];

/// Rows of the catalogue (docs/reliability.md) that have no planted bug, because other suites hold them.
const ELSEWHERE: [(u8, &str); 20] = [
    (2, "volume: a hundred thousand due timers, stories and contract"),
    (9, "summer time: schedules are compared with brute force"),
    (10, "plans of statements: the store's tests on PostgreSQL"),
    (14, "ids of requests are the client's own: stories of the client"),
    (15, "a stream of signals: stories of generations"),
    (25, "ids: the store's contract and its schemas"),
    (27, "nobody removes what is not found: the store's contract"),
    (32, "a run and its journal are one commit: the crash loop, and real processes that are killed"),
    (35, "code that changed: stories of replay"),
    (36, "golden files of every event"),
    (40, "limits: the store's contract, stories of limits"),
    (41, "the script's fuel: its own tests"),
    (42, "nesting: the script's own tests"),
    (43, "futures that are dropped: the store's tests on PostgreSQL"),
    (44, "writers of one file: the store's tests on SQLite"),
    (45, "connections that are cut: the store's tests on PostgreSQL"),
    (46, "hints that are lost: the store's tests on PostgreSQL"),
    (47, "nothing is notified in a journal's transaction: the store's tests on PostgreSQL"),
    (48, "an open snapshot: the store's tests on PostgreSQL"),
    (51, "a full disk: the store's tests on SQLite"),
];

/// Rows that nobody has.
fn forgotten() -> Vec<u8> {
    let planted = |row: &u8| BUGS.iter().any(|bug| bug.rows.contains(row));
    let elsewhere = |row: &u8| ELSEWHERE.iter().any(|(of, _)| of == row);
    (1..=52).filter(|row| planted(row) == elsewhere(row)).collect()
}

/// How a bug was found.
struct Found {
    suite: &'static str,
    /// The seed, the scenario or the kept case.
    with: String,
    /// Cases that suite had played by then.
    played: u64,
    /// What was broken.
    broken: String,
}

/// Hunts one bug, those of a family, or all of them; whether enough of them were found. First it is looked whether something is
/// found where nothing is planted, unless it is known that nothing is.
#[expect(clippy::disallowed_methods, reason = "how long a hunt takes is measured in real time")]
pub fn hunt(name: Option<&str>, threads: usize, is_sound: bool) -> bool {
    let chosen: Vec<&Bug> =
        BUGS.iter().filter(|bug| name.is_none_or(|name| bug.name == name || bug.family == name)).collect();
    if chosen.iter().any(|bug| name.is_some() && bug.adapter().is_some()) {
        println!("{} is in what only one store has: its contract looks for it", name.unwrap_or(""));
        return true;
    }
    let chosen: Vec<&Bug> = chosen.into_iter().filter(|bug| bug.adapter().is_none()).collect();
    if chosen.is_empty() {
        println!("no bug and no family is named {:?}; there are: {}", name.unwrap_or(""), names());
        return false;
    }
    let begun = Instant::now();
    let forgotten = forgotten();
    if !forgotten.is_empty() {
        println!("rows {forgotten:?} of the catalogue have neither a planted bug nor another suite, or both");
        return false;
    }
    // Whoever finds something in a sound program finds it with every bug, too: so it is looked at as widely as for a bug.
    if let Some(Found { suite, with, broken, .. }) = (!is_sound).then(|| find(threads)).flatten() {
        println!("{suite}, {with}, finds something although nothing is planted: {broken}");
        return false;
    }
    let mut hunted: Vec<(&Bug, Option<Found>, Duration)> = Vec::new();
    for bug in chosen {
        // It is in the table.
        let _ = plant(Some(bug.name));
        let begun = Instant::now();
        let is_hunted = unseen(bug).is_none() || name == Some(bug.name);
        let found = is_hunted.then(|| find(threads)).flatten();
        if let Some(found) = &found {
            println!("{}: {}", bug.name, found.broken);
        }
        hunted.push((bug, found, begun.elapsed()));
    }
    let _ = plant(None);
    let missed = table(&hunted);
    println!("in {:.1} s", begun.elapsed().as_secs_f64());
    missed <= if name.is_some() { 0 } else { MISSED_MAX }
}

/// Prints who found what; how many were missed of which it is not known.
fn table(hunted: &[(&Bug, Option<Found>, Duration)]) -> usize {
    let mut by_suite: BTreeMap<&str, usize> = BTreeMap::new();
    println!("\n{:<34} {:<22} {:<12} {:>6} {:>7}  with", "bug", "family", "suite", "cases", "seconds");
    for (bug, found, took) in hunted {
        let (suite, played, with) = match found {
            Some(Found { suite, with, played, .. }) => (*suite, played.to_string(), with.as_str()),
            None => ("NOT FOUND", "-".to_owned(), unseen(bug).unwrap_or(bug.what)),
        };
        println!("{:<34} {:<22} {suite:<12} {played:>6} {:>7.2}  {with}", bug.name, bug.family, took.as_secs_f64());
        if found.is_some() {
            *by_suite.entry(suite).or_default() += 1;
        }
    }
    let found: usize = by_suite.values().sum();
    println!("{found} of {} planted bugs found: {by_suite:?}", hunted.len());
    hunted.iter().filter(|(bug, found, _)| found.is_none() && unseen(bug).is_none()).count()
}

fn unseen(bug: &Bug) -> Option<&'static str> {
    UNSEEN.iter().find_map(|(name, why)| (*name == bug.name).then_some(*why))
}

/// Which suite finds the bug that is at work, and how. The quick ones come first.
fn find(threads: usize) -> Option<Found> {
    quick(threads).or_else(|| every_call(threads)).or_else(|| random(SEEDS_FIRST..SEEDS, threads))
}

fn quick(threads: usize) -> Option<Found> {
    kept().or_else(|| random(0..SEEDS_FIRST, threads)).or_else(undisturbed)
}

fn kept() -> Option<Found> {
    let cases = corpus::read().unwrap_or_default();
    cases.iter().zip(1..).find_map(|((name, Kept { case, .. }), played)| {
        Some(Found { suite: "corpus", with: name.clone(), played, broken: broken(&play(case))? })
    })
}

fn undisturbed() -> Option<Found> {
    let (played, failed) = nth::undisturbed();
    let broken = broken(&failed?.1)?;
    Some(Found { suite: "scenarios", with: scenario_of(&broken), played, broken })
}

fn every_call(threads: usize) -> Option<Found> {
    let looped = nth::every_call(threads, 1);
    let broken = broken(&looped.failures.first()?.1)?;
    Some(Found { suite: "every call", with: scenario_of(&broken), played: looped.failed_calls, broken })
}

fn random(seeds: std::ops::Range<u64>, threads: usize) -> Option<Found> {
    let report =
        suite::random(&Kind::Memory, seeds, threads, suite::Limits { failures: 1, ..suite::Limits::default() });
    if let Some((case, verdict)) = report.failures.first() {
        let (with, played) = (format!("seed {}", case.seed), case.seed + 1);
        return Some(Found { suite: "random", with, played, broken: broken(verdict)? });
    }
    let seed = report.fickle.first()?;
    let broken = format!("seed {seed} does not do the same twice");
    Some(Found { suite: "twice", with: format!("seed {seed}"), played: seed + 1, broken })
}

/// What a verdict says first, on one line.
fn broken(verdict: &Verdict) -> Option<String> {
    let broken = verdict.violations.first()?;
    let text: String = broken.text.lines().next().unwrap_or("").chars().take(160).collect();
    Some(format!("invariant {}: {text}", broken.invariant))
}

/// The scenario a finding begins with.
fn scenario_of(broken: &str) -> String {
    broken.split(": ").nth(1).unwrap_or("").to_owned()
}

fn names() -> String {
    BUGS.iter().map(|bug| bug.name).collect::<Vec<_>>().join(", ")
}
