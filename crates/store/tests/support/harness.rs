//! The stores of this crate, as the contract suite opens them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use outlast_core::limits::Limits;
use outlast_store::contract::{Fixture, Harness};
use outlast_store::{BoxFuture, Clock, ManualClock, MemoryStore};

#[cfg(feature = "postgres")]
#[path = "harness/postgres.rs"]
mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[path = "harness/sql.rs"]
mod sql;
#[cfg(feature = "sqlite")]
#[path = "harness/sqlite.rs"]
mod sqlite;

#[cfg(feature = "postgres")]
pub(crate) use postgres::PostgresHarness;
#[cfg(feature = "sqlite")]
pub(crate) use sqlite::SqliteHarness;

/// The reference store.
pub(crate) struct MemoryHarness;

impl Harness for MemoryHarness {
    fn name(&self) -> &str {
        "memory"
    }

    fn open(&self, limits: Limits) -> BoxFuture<'_, Fixture> {
        Box::pin(async move {
            let clock = ManualClock::at(0);
            let store = MemoryStore::new(Clock::Manual(clock.clone()), limits);
            Fixture::new(Arc::new(store), clock)
        })
    }
}

/// The stores this build has.
pub(crate) fn harnesses() -> Vec<Box<dyn Harness>> {
    vec![
        Box::new(MemoryHarness),
        #[cfg(feature = "sqlite")]
        Box::new(SqliteHarness),
        #[cfg(feature = "postgres")]
        Box::new(PostgresHarness),
    ]
}
