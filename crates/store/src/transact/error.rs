//! What can go wrong inside a transaction.

use std::time::Duration;

use outlast_core::failure::{Failure, code};
use thiserror::Error;

/// Why a statement inside a transaction, or reading its rows, did not work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TxError {
    /// The database refused the statement.
    #[error("the database refused the statement: {message}")]
    Refused {
        /// Its own words.
        message: String,
        /// Its own code for it: an SQLSTATE, or the number of an extended result code.
        code: Option<String>,
    },
    /// The statement is not allowed inside a transaction.
    #[error("{what} is not allowed inside a transaction; {instead}")]
    Denied {
        /// What it asked for.
        what: String,
        /// What to do.
        instead: &'static str,
    },
    /// The transaction took longer than its store allows.
    #[error("the transaction took longer than {limit:?}; make it smaller, or allow more in the store's options")]
    TooLong {
        /// How long it may take.
        limit: Duration,
    },
    /// The transaction has ended.
    #[error("the transaction is over; use its Tx only inside the closure that got it")]
    Over,
    /// There is no such column in the row.
    #[error("the row has no column {column}; it has {there}")]
    NoSuchColumn {
        /// Which was asked for.
        column: String,
        /// Which there are.
        there: String,
    },
    /// A value has another type than what was asked for.
    #[error("column {column} is {found}, not {wanted}; ask for another type, or cast it in the statement")]
    Type {
        /// Which column.
        column: String,
        /// What was asked for.
        wanted: &'static str,
        /// What is there.
        found: String,
    },
    /// A parameter cannot be sent as what the statement wants.
    #[error("parameter {place} is {found}, the statement wants {wanted}; cast it there, as in ${place}::{hint}")]
    Parameter {
        /// Which, from 1.
        place: usize,
        /// What it is.
        found: &'static str,
        /// What the database wants.
        wanted: String,
        /// A type that would do, with what it is cast to.
        hint: String,
    },
    /// The statement did not give exactly one row.
    #[error("the statement gave {found} rows, not one; use query, or narrow the statement down")]
    NotOneRow {
        /// How many it gave.
        found: usize,
    },
}

impl TxError {
    /// What programs branch on: one of [`outlast_core::failure::code`].
    pub fn code(&self) -> &'static str {
        match self {
            TxError::Refused { .. } | TxError::NotOneRow { .. } => code::SQL_ERROR,
            TxError::Denied { .. } => code::SQL_DENIED,
            TxError::TooLong { .. } => code::TRANSACTION_TIMEOUT,
            TxError::Over => code::TRANSACTION_MISUSED,
            TxError::NoSuchColumn { .. } | TxError::Type { .. } | TxError::Parameter { .. } => code::SQL_TYPE,
        }
    }

    /// Whether the same code would fail again, whatever is in the database.
    pub fn is_permanent(&self) -> bool {
        match self {
            TxError::Denied { .. }
            | TxError::Over
            | TxError::NoSuchColumn { .. }
            | TxError::Type { .. }
            | TxError::Parameter { .. } => true,
            TxError::Refused { .. } | TxError::TooLong { .. } | TxError::NotOneRow { .. } => false,
        }
    }
}

impl From<TxError> for Failure {
    fn from(error: TxError) -> Self {
        let failure = Failure::new(error.code(), error.to_string());
        if error.is_permanent() { failure.permanent() } else { failure }
    }
}
