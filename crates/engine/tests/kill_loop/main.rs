//! A real process is killed with SIGKILL again and again; what was acknowledged is never lost, nothing is recorded twice, no
//! timer is early, and everything ends. All of it is judged from outside: from a ledger of what was acknowledged and which
//! bodies ran, and from what the store holds between two lives.
#![cfg(all(feature = "sqlite", feature = "postgres"))]
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "these stories are about real time and real processes")]

mod check;
mod doctored;
mod evidence;
mod killer;
mod ledger;
mod place;
mod worker;
mod workflows;

use place::Place;

/// The worker: this test's own binary, started again.
#[test]
fn worker() {
    if let Ok(place) = std::env::var("OUTLAST_KILL_WORKER") {
        worker::work(&place);
    }
}

/// How often a worker is killed; `OUTLAST_KILLS` says otherwise.
fn kills() -> u32 {
    let chosen = std::env::var("OUTLAST_KILLS").ok().map(|kills| kills.parse().expect("OUTLAST_KILLS is a number"));
    chosen.unwrap_or(if std::env::var_os("OUTLAST_QUICK").is_some() { 5 } else { 200 })
}

#[test]
fn nothing_is_lost_on_sqlite_however_often_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    killer::kill(|story| Place::Sqlite(path.join(format!("{story}.db"))), dir.path(), kills());
}

#[test]
fn nothing_is_lost_on_postgresql_however_often_the_process_is_killed() {
    let url = std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
    let dir = tempfile::tempdir().unwrap();
    let schema = format!("kill_{}", std::process::id());
    let place = |story| Place::Postgres { url: url.clone(), schema: format!("{schema}_{story}") };
    killer::kill(place, dir.path(), kills());
}
