//! SQLite: a folder per case, gone afterwards.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::id::RunKey;
use outlast_core::limits::Limits;
use outlast_store::contract::{Fixture, Harness, Hold, RawWrite};
use outlast_store::{BoxFuture, Clock, ManualClock, SqliteOptions, SqliteStore};
use tempfile::TempDir;

use super::sql::Dialect;

const DIALECT: Dialect = Dialect {
    row: "row",
    oversize: "zeroblob(16777217)",
    unchecked: |_, _| "PRAGMA ignore_check_constraints = ON;".to_owned(),
};

/// The SQLite store.
pub(crate) struct SqliteHarness;

struct Kept {
    path: PathBuf,
    _folder: TempDir,
}

impl Harness for SqliteHarness {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn open(&self, limits: Limits) -> BoxFuture<'_, Fixture> {
        Box::pin(async move {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("outlast.db");
            let clock = ManualClock::at(0);
            let options = SqliteOptions {
                clock: Clock::Manual(clock.clone()),
                limits,
                // No story is about it, and a busy machine may be slow.
                transaction_limit: Duration::from_secs(60),
                ..SqliteOptions::default()
            };
            let store = SqliteStore::open(&path, options).await.unwrap();
            Fixture::new(Arc::new(store), clock).keeping(Kept { path, _folder: folder })
        })
    }

    fn raw<'a>(&'a self, fixture: &'a Fixture, write: RawWrite) -> BoxFuture<'a, Option<Result<(), String>>> {
        Box::pin(async move {
            let kept: &Kept = fixture.keep.downcast_ref().unwrap();
            let connection = rusqlite::Connection::open(&kept.path).unwrap();
            connection.busy_timeout(Duration::from_secs(10)).unwrap();
            Some(connection.execute_batch(&DIALECT.statements(&write)).map_err(|error| error.to_string()))
        })
    }

    fn hold<'a>(&'a self, fixture: &'a Fixture, _run: RunKey) -> BoxFuture<'a, Option<Box<dyn Hold>>> {
        Box::pin(async move {
            let kept: &Kept = fixture.keep.downcast_ref().unwrap();
            let connection = rusqlite::Connection::open(&kept.path).unwrap();
            connection.busy_timeout(Duration::from_secs(10)).unwrap();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            let hold: Box<dyn Hold> = Box::new(Writing(connection));
            Some(hold)
        })
    }
}

/// SQLite has one lock for all: the writer's.
struct Writing(rusqlite::Connection);

impl Hold for Writing {
    fn blocked(&mut self) -> BoxFuture<'_, ()> {
        // SQLite does not tell who waits: give the other side a chance to.
        Box::pin(async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.0.execute_batch("ROLLBACK").unwrap() })
    }
}
