//! SQLite's words in ours.

use rusqlite::ErrorCode;

use crate::DeliveredAndClaimed;
use crate::error::{StoreError, Trouble};
use crate::rows::Fault;

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Failed(store_error(&error))
    }
}

/// What an error of SQLite means to a caller. What is transient is never called corrupt.
pub(super) fn store_error(error: &rusqlite::Error) -> StoreError {
    let message = error.to_string();
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => StoreError::unavailable(Trouble::DiskFull, message),
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                StoreError::unavailable(Trouble::ReadOnly, message)
            }
            ErrorCode::SystemIoFailure => StoreError::unavailable(Trouble::Io, message),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
                StoreError::unavailable(Trouble::Busy, message)
            }
            // Trying again would not help.
            ErrorCode::ConstraintViolation => {
                StoreError::Settings(format!("SQLite refused the rows: {message}; change the request"))
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::corrupt("the database file", message),
            _ => StoreError::unavailable(Trouble::Other, message),
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => StoreError::corrupt("the database", message),
        _ => StoreError::unavailable(Trouble::Other, message),
    }
}

/// A value in a row that cannot be.
pub(super) fn bad_value(what: &str, detail: impl std::fmt::Display) -> rusqlite::Error {
    let detail = format!("{what}: {detail}");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Null, detail.into())
}

/// The same error for every item of a batch.
pub(super) fn repeat<T, E: Clone>(error: &E, count: usize) -> Vec<Result<T, E>> {
    (0..count).map(|_| Err(error.clone())).collect()
}

/// The same error for deliveries and for the claim with them.
pub(super) fn neither(error: StoreError, count: usize) -> DeliveredAndClaimed {
    DeliveredAndClaimed { delivered: repeat(&error, count), claimed: Some(Err(error)) }
}
