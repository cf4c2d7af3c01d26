//! Four engine processes and four worker processes on one PostgreSQL. All of them are killed and frozen at random, and the
//! server itself is killed every few seconds, while somebody starts runs, answers them, cancels some, and puts schedules. Judged
//! from outside: nothing that was acknowledged is lost, no stale result is accepted, who was told to stop has stopped, each
//! instant of a schedule has started one run, and all runs end.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "this story is about real time and real processes")]

mod client;
mod cluster;
mod dice;
mod judge;
mod lingering;
mod member;
#[path = "../../../store/tests/postgres/server.rs"]
mod server;
mod ticking;
mod witness;

use std::time::Duration;

/// A member of the cluster: this test's own binary, started again.
#[test]
fn member() {
    if let Ok(role) = std::env::var(member::ROLE) {
        member::live(&role);
    }
}

/// How long the trouble lasts; `OUTLAST_CHAOS_SECONDS` says otherwise, and so does a soak.
fn trouble() -> Duration {
    let chosen = ["OUTLAST_CHAOS_SECONDS", "OUTLAST_SOAK_SECONDS"].into_iter().find_map(|name| {
        let seconds = std::env::var(name).ok()?;
        Some(seconds.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    });
    let quick = std::env::var_os("OUTLAST_QUICK").is_some();
    Duration::from_secs(chosen.unwrap_or(if quick { 8 } else { 120 }))
}

/// In the second half every hint is lost: row 46.
#[test]
fn nothing_is_lost_while_engines_workers_and_the_server_are_killed_and_frozen_and_then_nobody_hints_at_anything() {
    cluster::trouble(trouble());
}
