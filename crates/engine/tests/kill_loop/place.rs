//! Where the runs are kept, and how to look at them from outside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast::Outlast;
use outlast_core::limits::Limits;
use outlast_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store};
use serde::{Deserialize, Serialize};

/// How many operations a run may have pending, so that one of the workflows can ask for one too many.
pub(crate) const PENDING_MAX: usize = 12;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres { url: String, schema: String },
}

fn limits() -> Limits {
    Limits { pending_operations: PENDING_MAX, ..Limits::default() }
}

impl Place {
    /// An engine there.
    pub(crate) async fn engine(&self) -> Outlast {
        match self {
            Place::Sqlite(path) => Outlast::sqlite(path),
            Place::Postgres { url, schema } => Outlast::store(connect(url, schema).await),
        }
        .limits(limits())
    }

    /// Something to read with, while no process has it open. A SQLite file is copied with its log first: the next process
    /// must find what the dead one left, and not what somebody who looked made of it.
    pub(crate) async fn reader(&self, scratch: &Path) -> Arc<dyn Store> {
        match self {
            Place::Sqlite(path) => {
                let _ = std::fs::remove_dir_all(scratch);
                std::fs::create_dir(scratch).unwrap();
                let copy = scratch.join("copy.db");
                std::fs::copy(path, &copy).unwrap();
                let log = PathBuf::from(format!("{}-wal", path.display()));
                if log.exists() {
                    std::fs::copy(log, scratch.join("copy.db-wal")).unwrap();
                }
                let options = SqliteOptions { readers: 1, ..SqliteOptions::default() };
                Arc::new(SqliteStore::open(&copy, options).await.unwrap())
            }
            Place::Postgres { url, schema } => connect(url, schema).await,
        }
    }

    /// Whether several processes may drive runs there at once.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Place::Postgres { .. })
    }
}

async fn connect(url: &str, schema: &str) -> Arc<dyn Store> {
    let options = PostgresOptions { schema: Some(schema.to_owned()), limits: limits(), ..PostgresOptions::default() };
    Arc::new(PostgresStore::connect(url, options).await.unwrap())
}
