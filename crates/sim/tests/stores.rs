//! Cases on real stores. Fewer than in memory, and judged by what can be seen from outside.
#![cfg(any(feature = "sqlite", feature = "postgres"))]

use outlast_sim::failure::Failure;
use outlast_sim::ground::Kind;
use outlast_sim::suite::{Limits, Report, random};

/// Plays the cases of seeds, and fails with the story of the first that broke something.
fn play(ground: &Kind, cases: u64) -> Report {
    let report = random(ground, 0..cases, THREADS, Limits::default());
    if let Some((case, verdict)) = report.failures.first() {
        let first = Failure::found(&format!("seed {}", case.seed), case, verdict, ground);
        panic!("{} cases failed; the first:\n{first}", report.failures.len());
    }
    assert_eq!(report.played, cases);
    report
}

/// Stores on disk wait for the disk: more than one case at a time.
const THREADS: usize = 2;

/// What a pass over few cases must have met, or it has shown nothing.
fn was_not_empty(report: &Report) {
    for fault in ["crash", "power cut", "call applied, in doubt", "jump back"] {
        assert!(report.tally.faults.contains_key(fault), "no {fault}: {}", report.tally);
    }
    for event in [
        "STEP_FINISHED",
        "STEP_FAILED",
        "RUN_FINISHED",
        "RUN_CONTINUED",
        "CHILD_FINISHED",
        "TIMER_FIRED",
        "TASK_FINISHED",
    ] {
        assert!(report.tally.events.contains_key(event), "no {event}: {}", report.tally);
    }
    for invariant in [1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 17, 18, 20, 22, 23] {
        assert!(report.tally.invariants.contains_key(&invariant), "nobody looked at {invariant}: {}", report.tally);
    }
    let damaged = outlast_sim::case::ROW;
    assert!(report.tally.faults.contains_key(damaged), "no row was damaged where it is kept: {}", report.tally);
    assert!(report.tally.entries > 0, "no transaction left anything: {}", report.tally);
}

#[cfg(feature = "sqlite")]
#[test]
fn lives_on_sqlite_files_keep_every_promise() {
    was_not_empty(&play(&Kind::Sqlite, 160));
}

#[cfg(feature = "postgres")]
#[test]
fn lives_on_postgres_keep_every_promise() {
    let server = outlast_sim::ground::Server::for_tests().unwrap_or_else(|missing| panic!("{missing}"));
    was_not_empty(&play(&Kind::Postgres(server.into()), 45));
}
