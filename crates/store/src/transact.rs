//! Transactions: an author's SQL and the record of its outcome, in one commit.
//!
//! A store that has SQL runs the body of a [`Transact`] inside a transaction of its own database, and appends what the
//! body gives to the run's journal in that same transaction. The body speaks to the database through a [`Tx`], which
//! hands statements to whoever runs the body: the writer's thread, or a task with its own connection. So a [`Tx`] borrows
//! nothing, and one author's closure serves every store.

mod error;
mod row;
mod tx;
mod value;

use std::fmt;
use std::sync::Arc;

use outlast_core::commit::Commit;
use outlast_core::failure::{Failure, code};
use outlast_core::record::Record;

pub use error::TxError;
pub use row::{Column, Row};
pub use tx::Tx;
pub(crate) use tx::{Answer, Request, Statements, guarded};
pub use value::{FromSqlValue, SqlValue};

use crate::BoxFuture;
use crate::api::Committed;

/// What runs inside a transaction: it gives the events to append, or says why everything is rolled back.
///
/// It may run more than once, also after it gave events: a group commit that is split, a serialisation failure. Only what
/// its last run did counts.
pub type TxBody = Arc<dyn Fn(Tx) -> BoxFuture<'static, Result<Vec<Record>, Failure>> + Send + Sync>;

/// A transaction to run.
#[derive(Clone)]
pub struct Transact {
    /// The guard (run, fence, expected index), and what else is done in the same transaction. Its events come from the
    /// body.
    pub commit: Commit,
    /// What runs.
    pub body: TxBody,
    /// The same for every attempt at the same thing; see [`Tx::idempotency_key`].
    pub idempotency_key: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
}

impl Transact {
    /// The handle for one run of the body, and the side that answers it.
    pub(crate) fn open(&self) -> (Tx, Statements) {
        Tx::open(self.idempotency_key.clone(), self.attempt)
    }

    /// The commit with the events the body gave.
    pub(crate) fn commit_with(&self, events: Vec<Record>) -> Commit {
        Commit { events, ..self.commit.clone() }
    }
}

impl fmt::Debug for Transact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transact").field("commit", &self.commit).field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transacted {
    /// What the body did and the events it gave are durable, together.
    Committed(Committed),
    /// Nothing was applied, because of the body: it failed, or did what it must not.
    RolledBack(Failure),
}

/// What a body failed with that returned although one of its statements had failed.
pub(crate) fn doomed(first: &TxError) -> Failure {
    let failure = Failure::from(first.clone());
    let message = format!("{}; a statement that fails undoes its whole transaction", failure.message);
    Failure { message, ..failure }
}

/// What a body fails with that waits for something its store cannot wait for.
#[cfg(feature = "sqlite")]
pub(crate) fn awaited_elsewhere() -> Failure {
    let message = "the transaction awaited something that is not a statement of its Tx; on SQLite a transaction holds up \
                   every other write, so do the waiting in a step before it";
    Failure::new(code::TRANSACTION_MISUSED, message).permanent()
}
