//! The crash loop: small workflows, interrupted at every store call and in every way, must reach the same end, lose
//! nothing that was acknowledged, and break none of the invariants on the way.
//!
//! Everyday, every call of every story fails in every way, on memory and SQLite (and a few stories on PostgreSQL, if
//! `OUTLAST_TEST_POSTGRES` names one). `OUTLAST_QUICK` thins the calls, but not on memory. Beside that, random pairs
//! of faults hit stories whose actors take turns at random: `OUTLAST_SEED` and `OUTLAST_CASES` say which and how many.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod actors;
mod client;
mod driver;
mod exhaust;
#[cfg(feature = "postgres")]
#[path = "../support/harness.rs"]
#[allow(dead_code, unused_imports, reason = "the crash loop needs one of its stores")]
mod harness;
mod ledger;
mod operations;
mod places;
mod program;
mod random;
mod scenarios;
mod stage;

use libtest_mimic::{Arguments, Trial};

use exhaust::{exhaust, random_trouble, tell};
use places::{Kind, Place};
use random::Random;
use scenarios::{Scenario, scenarios};

/// How many calls lie between two that fail, when time is short.
const QUICK_STRIDE: u64 = 7;
/// Random pairs of faults, unless told otherwise.
const CASES: u64 = 300;
/// From here on, only some stories are told.
const DEAR: u64 = 30;
/// A random fault hits one of the first so many calls.
const RANDOM_CALLS: u64 = 60;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (kind, name) in kinds() {
        for scenario in scenarios().into_iter().filter(|scenario| takes_place(scenario, kind)) {
            let title = format!("{name}::crash_everywhere::{}", scenario.name);
            trials.push(Trial::test(title, move || {
                block_on(everywhere(&scenario, kind));
                Ok(())
            }));
        }
        trials.push(Trial::test(format!("{name}::crash_random_pairs"), move || {
            block_on(random_pairs(kind));
            Ok(())
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The databases that can be had here.
fn kinds() -> Vec<(Kind, &'static str)> {
    vec![
        (Kind::Memory, "memory"),
        #[cfg(feature = "sqlite")]
        (Kind::Sqlite, "sqlite"),
        #[cfg(feature = "postgres")]
        (Kind::Postgres, "postgres"),
    ]
}

fn takes_place(scenario: &Scenario, kind: Kind) -> bool {
    scenario.everywhere || dearness(kind) < DEAR
}

/// How much dearer than in memory a story is.
fn dearness(kind: Kind) -> u64 {
    match kind {
        Kind::Memory => 1,
        #[cfg(feature = "sqlite")]
        Kind::Sqlite => 10,
        #[cfg(feature = "postgres")]
        Kind::Postgres => DEAR,
    }
}

fn block_on(story: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(story);
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number")))
}

async fn everywhere(scenario: &Scenario, kind: Kind) {
    let quick = std::env::var_os("OUTLAST_QUICK").is_some() && kind != Kind::Memory;
    let stride = if quick { QUICK_STRIDE } else { 1 };
    let mut place = Place::new(kind).await;
    place.renew().await;
    let all = exhaust(scenario, &mut place, stride).await;
    place.close().await;
    println!("{}: {} calls, interrupted {} times", scenario.name, all.calls, all.landed);
    let expected = 3 * all.calls / stride;
    assert!(all.landed >= expected, "only {} interruptions of {expected}", all.landed);
}

/// Whether a soak has lasted as long as it was told to.
#[expect(clippy::disallowed_methods, reason = "a soak ends by the clock; no story reads it")]
fn deadline() -> impl Fn() -> bool {
    let start = std::time::Instant::now();
    let length = number("OUTLAST_SOAK_SECONDS").map(std::time::Duration::from_secs);
    move || length.is_some_and(|length| start.elapsed() >= length)
}

/// Two faults in one story, and a random order of turns.
async fn random_pairs(kind: Kind) {
    let seed = number("OUTLAST_SEED").unwrap_or(1);
    let cases = number("OUTLAST_CASES").unwrap_or(CASES) / dearness(kind);
    let stories: Vec<Scenario> = scenarios().into_iter().filter(|scenario| takes_place(scenario, kind)).collect();
    let mut place = Place::new(kind).await;
    let mut random = Random::new(seed);
    let (mut landed, mut told) = (0, 0_u64);
    let enough = deadline();
    while told < cases.max(1) && !enough() {
        let scenario = &stories[random.below(stories.len() as u64) as usize];
        let trouble = random_trouble(&mut random, RANDOM_CALLS);
        place.renew().await;
        landed += tell(scenario, &mut place, &trouble).await.landed as u64;
        told += 1;
    }
    place.close().await;
    println!("seed {seed}: {told} stories, {landed} faults");
    assert!(landed >= told, "random faults should land more often than not: {landed} in {told} stories");
}
