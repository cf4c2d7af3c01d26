//! A few threads that only read, so that a long listing never holds up a commit.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::error::store_error;
use super::names::Names;
use crate::error::{StoreError, Trouble};
use crate::rows::Fault;

/// Questions the queue holds before askers wait.
const QUEUE_MAX: usize = 1_024;

type Question = Box<dyn FnOnce(&Connection, &mut Names) + Send>;

/// The asking half.
#[derive(Clone)]
pub(super) struct ReaderQueue(mpsc::Sender<Question>);

/// The threads' shared queue.
#[derive(Clone)]
pub(super) struct Questions(Arc<Mutex<mpsc::Receiver<Question>>>);

pub(super) fn queue() -> (ReaderQueue, Questions) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    (ReaderQueue(sender), Questions(Arc::new(Mutex::new(receiver))))
}

impl ReaderQueue {
    /// Asks a question of one consistent state of the database.
    pub(super) async fn ask<T, F>(&self, question: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &mut Names) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let ask: Question = Box::new(move |connection, names| {
            let _ = reply.send(in_one_state(connection, names, question));
        });
        let closed = || StoreError::unavailable(Trouble::Closed, "the store is closed");
        self.0.send(ask).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

pub(super) fn in_one_state<T>(
    connection: &Connection,
    names: &mut Names,
    question: impl FnOnce(&Connection, &mut Names) -> Result<T, Fault>,
) -> Result<T, StoreError> {
    // A read transaction never upgrades: this connection is read-only. // tidy: not a write transaction
    let transaction = connection.unchecked_transaction().map_err(|error| store_error(&error))?;
    let answer = question(&transaction, names).map_err(|fault| match fault {
        Fault::Failed(error) => error,
        Fault::Miss => StoreError::corrupt("SQLite", "a row was asked for that SQLite does not fetch"),
    });
    drop(transaction);
    answer
}

/// Answers questions until every asker is gone.
pub(super) fn run(connection: Connection, questions: Questions) {
    let mut names = Names::default();
    loop {
        let next = questions.0.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        match next {
            Some(question) => question(&connection, &mut names),
            None => return,
        }
    }
}
