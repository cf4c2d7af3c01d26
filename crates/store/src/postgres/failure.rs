//! What a database error means for whoever asked.

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::error::{Severity, SqlState};

use crate::error::{StoreError, Trouble};

/// What to do about a failed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// It lost a race (deadlock, serialisation, a unique key taken meanwhile): the same again may succeed at once.
    Again,
    /// The database refused the data itself: one item of the group is to blame.
    Isolate,
    /// Nothing here helps; the caller may repeat.
    Report,
}

/// A transaction that failed, before anything of it was applied.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) remedy: Remedy,
    pub(super) error: StoreError,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure { remedy: Remedy::Report, error }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure { remedy: remedy(&error), error: store_error(&error) }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        let error = match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => store_error(&error),
            PoolError::Timeout(_) => StoreError::unavailable(Trouble::Busy, "no connection became free in time"),
            PoolError::Closed => StoreError::unavailable(Trouble::Closed, "the store was closed"),
            PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(HookError::Message(_)) => {
                StoreError::unavailable(Trouble::Other, error.to_string())
            }
        };
        error.into()
    }
}

fn remedy(error: &tokio_postgres::Error) -> Remedy {
    let Some(db) = error.as_db_error() else { return Remedy::Report };
    let code = db.code();
    // Somebody resolved this very transaction as not applied: it must not happen later under another name.
    if *code == SqlState::UNIQUE_VIOLATION && db.constraint() == Some("txn_pkey") {
        return Remedy::Report;
    }
    match &code.code()[..2] {
        "40" => Remedy::Again,
        _ if *code == SqlState::UNIQUE_VIOLATION => Remedy::Again,
        "22" | "23" | "54" => Remedy::Isolate,
        _ => Remedy::Report,
    }
}

/// Whether a COMMIT that ended so was certainly not applied.
pub(super) fn commit_was_refused(error: &tokio_postgres::Error) -> bool {
    // An ERROR is a rollback. FATAL and PANIC may come after the commit record was written.
    error.as_db_error().is_some_and(|db| db.parsed_severity() == Some(Severity::Error))
}

/// The error as callers see it.
pub(super) fn store_error(error: &tokio_postgres::Error) -> StoreError {
    let Some(db) = error.as_db_error() else {
        return StoreError::unavailable(Trouble::Connection, describe(error));
    };
    let code = db.code().code();
    let trouble = match code {
        "53100" => Trouble::DiskFull,
        "25006" => Trouble::ReadOnly,
        "55P03" | "57014" | "40001" | "40P01" | "25P03" => Trouble::Busy,
        "58030" => Trouble::Io,
        _ => match &code[..2] {
            "08" | "57" | "53" | "28" => Trouble::Connection,
            "22" | "23" | "54" => {
                let message = format!("PostgreSQL refused the row: {} ({code}); change the request", db.message());
                return StoreError::Settings(message);
            }
            _ => Trouble::Other,
        },
    };
    StoreError::unavailable(trouble, format!("{} ({code})", db.message()))
}

/// With its causes: the outermost message alone is "error connecting to server".
fn describe(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let message = next.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = next.source();
    }
    text
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}
