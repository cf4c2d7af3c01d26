//! The two ends of a transaction: the author's handle, and the statements that wait to be run.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use outlast_core::failure::{Failure, code};
use tokio::sync::oneshot;

use super::error::TxError;
use super::row::Row;
use super::value::SqlValue;

/// A transaction, for the closure that runs inside it.
///
/// Statements are the database's own, placeholders too: `?1` on SQLite, `$1` on PostgreSQL. A statement that fails dooms
/// its transaction: whatever the closure does then, everything is rolled back. Use `ON CONFLICT` where a conflict is
/// expected.
#[derive(Clone)]
pub struct Tx {
    about: Arc<About>,
    queue: Arc<Mutex<Queue>>,
}

struct About {
    idempotency_key: String,
    attempt: u32,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Request>,
    over: bool,
    /// Whoever runs the statements.
    waker: Option<Waker>,
}

/// A statement to run.
pub(crate) struct Request {
    pub(crate) sql: String,
    pub(crate) params: Vec<SqlValue>,
    /// Whether its rows are wanted, or only how many it changed.
    pub(crate) rows: bool,
    reply: oneshot::Sender<Result<Answer, TxError>>,
}

impl Request {
    pub(crate) fn answer(self, answer: Result<Answer, TxError>) {
        // The closure may have stopped waiting.
        let _ = self.reply.send(answer);
    }
}

/// What a statement came to.
pub(crate) enum Answer {
    Changed(u64),
    Rows(Vec<Row>),
}

impl Tx {
    pub(super) fn open(idempotency_key: String, attempt: u32) -> (Tx, Statements) {
        let queue = Arc::<Mutex<Queue>>::default();
        let tx = Tx { about: Arc::new(About { idempotency_key, attempt }), queue: Arc::clone(&queue) };
        (tx, Statements { queue })
    }

    /// Runs a statement; how many rows it changed.
    ///
    /// # Errors
    ///
    /// If the database refuses it, or it is not allowed here.
    pub async fn execute(&self, sql: impl Into<String>, params: impl Into<Vec<SqlValue>>) -> Result<u64, TxError> {
        match self.ask(sql.into(), params.into(), false).await? {
            Answer::Changed(changed) => Ok(changed),
            Answer::Rows(rows) => Ok(rows.len() as u64),
        }
    }

    /// Runs a statement and gives its rows.
    ///
    /// # Errors
    ///
    /// If the database refuses it, or it is not allowed here.
    pub async fn query(&self, sql: impl Into<String>, params: impl Into<Vec<SqlValue>>) -> Result<Vec<Row>, TxError> {
        match self.ask(sql.into(), params.into(), true).await? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Changed(_) => Ok(Vec::new()),
        }
    }

    /// Runs a statement that gives exactly one row.
    ///
    /// # Errors
    ///
    /// As [`Tx::query`], and if there is another number of rows.
    pub async fn query_one(&self, sql: impl Into<String>, params: impl Into<Vec<SqlValue>>) -> Result<Row, TxError> {
        let mut rows = self.query(sql, params).await?;
        match (rows.pop(), rows.len()) {
            (Some(row), 0) => Ok(row),
            (Some(_), more) => Err(TxError::NotOneRow { found: more + 1 }),
            (None, _) => Err(TxError::NotOneRow { found: 0 }),
        }
    }

    /// The same for all attempts at this transaction, and for no other one: `namespace/run/generation/key`.
    pub fn idempotency_key(&self) -> &str {
        &self.about.idempotency_key
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.about.attempt
    }

    async fn ask(&self, sql: String, params: Vec<SqlValue>, rows: bool) -> Result<Answer, TxError> {
        let (reply, answer) = oneshot::channel();
        let waker = {
            let mut queue = lock(&self.queue);
            if queue.over {
                return Err(TxError::Over);
            }
            queue.waiting.push_back(Request { sql, params, rows, reply });
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        // Nobody will run it any more: the transaction ended first.
        answer.await.unwrap_or(Err(TxError::Over))
    }
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("key", &self.about.idempotency_key).field("attempt", &self.about.attempt).finish()
    }
}

/// The statements of a transaction, for whoever runs them. Once it is dropped, the transaction is over.
pub(crate) struct Statements {
    queue: Arc<Mutex<Queue>>,
}

impl Statements {
    /// The next statement to run.
    #[cfg(feature = "sqlite")]
    pub(crate) fn next(&self) -> Option<Request> {
        lock(&self.queue).waiting.pop_front()
    }

    /// As [`Statements::next`]; if there is none, the waker is called when there is.
    #[cfg(feature = "postgres")]
    pub(crate) fn next_or_wake(&self, waker: &Waker) -> Option<Request> {
        let mut queue = lock(&self.queue);
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.waker = Some(waker.clone());
        }
        next
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        let mut queue = lock(&self.queue);
        queue.over = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        // Outside of the lock: whoever waits for an answer is woken.
        drop(waiting);
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs code of a body. What a panic leaves behind is only dropped.
pub(crate) fn guarded<R>(run: impl FnOnce() -> R) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| Failure::new(code::PANIC, "the transaction panicked"))
}
