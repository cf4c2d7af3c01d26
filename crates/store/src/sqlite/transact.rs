//! An author's transaction, on the writer's thread, in a savepoint of the group it shares with its neighbours.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use outlast_core::failure::{Failure, code};
use outlast_core::limits::Limits;
use outlast_core::record::Record;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql};

use super::guard::Guard;
use super::rows::SqliteRows;
use super::{answer, commit_one};
use crate::BoxFuture;
use crate::error::{CommitError, StoreError, Trouble};
use crate::logic;
use crate::rows::Fault;
use crate::transact::{
    Answer, Request, Row, SqlValue, Statements, Transact, Transacted, TxError, awaited_elsewhere, doomed, guarded,
};

/// A transaction on its way through the writer.
#[derive(Clone)]
pub(super) struct Job {
    transact: Transact,
    limits: Arc<Limits>,
    guard: Arc<Guard>,
    /// What the body came to when SQLite gave up the whole group because of it. The neighbours are done again; this one
    /// is not, it only says why.
    gave_up: Arc<Mutex<Option<Failure>>>,
}

type Ended = Result<Transacted, CommitError>;

impl Job {
    pub(super) fn new(transact: Transact, limits: Arc<Limits>, guard: Arc<Guard>) -> Self {
        Job { transact, limits, guard, gave_up: Arc::default() }
    }

    /// Runs it in the writer's transaction.
    pub(super) fn run(&self, rows: &mut SqliteRows<'_>) -> Result<Ended, Fault> {
        if let Some(failure) = self.gave_up() {
            return Ok(Ok(Transacted::RolledBack(failure)));
        }
        if let Err(refusal) = answer(logic::commit::check_guard(rows, &self.transact.commit))? {
            return Ok(Err(refusal));
        }
        rows.execute("SAVEPOINT outlast_transact", [])?;
        let outcome = Running::new(rows.connection, &self.transact, &self.guard).run();
        if rows.connection.is_autocommit() {
            return Err(self.give_up(outcome));
        }
        let ended = match outcome {
            Ok(events) => {
                let committed = answer(commit_one(rows, &self.transact.commit_with(events), &self.limits))?;
                committed.map(Transacted::Committed)
            }
            Err(failure) => Ok(Transacted::RolledBack(failure)),
        };
        if !matches!(ended, Ok(Transacted::Committed(_))) {
            rows.execute("ROLLBACK TO outlast_transact", [])?;
        }
        rows.execute("RELEASE outlast_transact", [])?;
        Ok(ended)
    }

    /// What the writer's answer means.
    pub(super) fn ended(&self, answer: Result<Ended, StoreError>) -> Ended {
        match (answer, self.gave_up()) {
            (Ok(ended), _) => ended,
            (Err(_), Some(failure)) => Ok(Transacted::RolledBack(failure)),
            // A constraint that is only checked at the end.
            (Err(StoreError::Settings(message)), None) => {
                Ok(Transacted::RolledBack(Failure::new(code::SQL_ERROR, message)))
            }
            (Err(error), None) => Err(CommitError::NotApplied(error)),
        }
    }

    fn gave_up(&self) -> Option<Failure> {
        self.gave_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// SQLite rolled everything back, also the neighbours: an interrupted write, `OR ROLLBACK`, a full disk.
    fn give_up(&self, outcome: Result<Vec<Record>, Failure>) -> Fault {
        let failure = outcome.err().unwrap_or_else(|| {
            Failure::new(code::SQL_ERROR, "a statement made SQLite roll the transaction back; see its conflict clauses")
        });
        let message = format!("a transaction made SQLite roll its group back: {failure}");
        *self.gave_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        Fault::Failed(StoreError::unavailable(Trouble::Other, message))
    }
}

/// One run of a body.
struct Running<'c> {
    connection: &'c Connection,
    guard: &'c Guard,
    body: Option<BoxFuture<'static, Result<Vec<Record>, Failure>>>,
    statements: Statements,
    /// The first statement that failed.
    failed: Option<TxError>,
    panicked: Option<Failure>,
}

impl<'c> Running<'c> {
    fn new(connection: &'c Connection, transact: &Transact, guard: &'c Guard) -> Self {
        guard.begin();
        let (tx, statements) = transact.open();
        let made = guarded(|| (transact.body)(tx));
        let (body, panicked) = match made {
            Ok(body) => (Some(body), None),
            Err(panic) => (None, Some(panic)),
        };
        Running { connection, guard, body, statements, failed: None, panicked }
    }

    fn run(mut self) -> Result<Vec<Record>, Failure> {
        let outcome = match self.panicked.take() {
            Some(panic) => Err(panic),
            None => self.poll_to_end(),
        };
        // A destructor that panics must not take the writer with it.
        let body = self.body.take();
        let dropped = guarded(|| drop(body));
        let events = outcome?;
        dropped?;
        match self.failed {
            Some(error) => Err(doomed(&error)),
            None if self.guard.is_late() => Err(self.guard.too_long().into()),
            None => Ok(events),
        }
    }

    /// Polls the body, and runs what it asks for in between.
    fn poll_to_end(&mut self) -> Result<Vec<Record>, Failure> {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        loop {
            let Some(body) = &mut self.body else { return Err(awaited_elsewhere()) };
            let polled = guarded(|| Pin::new(body).poll(&mut Context::from_waker(&waker)))?;
            if let Poll::Ready(outcome) = polled {
                return outcome;
            }
            if self.guard.is_late() {
                return Err(self.guard.too_long().into());
            }
            // One that only yields, or whose statement was answered, goes on; nobody else may be waited for.
            if !self.answer_all() && !woken.take() {
                return Err(awaited_elsewhere());
            }
        }
    }

    /// Runs the statements that wait; whether there were any.
    fn answer_all(&mut self) -> bool {
        let mut any = false;
        while let Some(request) = self.statements.next() {
            any = true;
            let answer = self.statement(&request);
            if let Err(error) = &answer {
                self.failed.get_or_insert_with(|| error.clone());
            }
            request.answer(answer);
        }
        any
    }

    fn statement(&self, request: &Request) -> Result<Answer, TxError> {
        // SQLite may have rolled everything back, and what is written now would stay.
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let _inside = self.guard.enter();
        let before = self.connection.total_changes();
        self.rows(request).map_err(|error| self.explain(&error)).map(|rows| {
            if request.rows {
                return Answer::Rows(rows);
            }
            // A statement that changes no rows leaves the count of the one before.
            let changed = self.connection.total_changes() != before;
            Answer::Changed(if changed { self.connection.changes() } else { 0 })
        })
    }

    fn rows(&self, request: &Request) -> rusqlite::Result<Vec<Row>> {
        // Never from the cache: what is prepared there was authorized as ours.
        let mut statement = self.connection.prepare(&request.sql)?;
        bind(&mut statement, &request.params)?;
        let columns: Arc<[String]> = statement.column_names().map(str::to_owned).collect();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if request.rows {
                let values = (0..columns.len()).map(|place| Ok(value(row.get_ref(place)?)));
                found.push(Row::new(Arc::clone(&columns), values.collect::<rusqlite::Result<_>>()?));
            }
        }
        Ok(found)
    }

    fn explain(&self, error: &rusqlite::Error) -> TxError {
        if let Some(denied) = self.guard.take_denied() {
            return denied;
        }
        if self.guard.is_late() {
            return self.guard.too_long();
        }
        let code = match error {
            rusqlite::Error::SqliteFailure(failure, _) | rusqlite::Error::SqlInputError { error: failure, .. } => {
                Some(failure.extended_code.to_string())
            }
            _ => None,
        };
        TxError::Refused { message: error.to_string(), code }
    }
}

fn bind(statement: &mut Statement<'_>, params: &[SqlValue]) -> rusqlite::Result<()> {
    let wanted = statement.parameter_count();
    if wanted != params.len() {
        return Err(rusqlite::Error::InvalidParameterCount(params.len(), wanted));
    }
    for (place, value) in params.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, value)?;
    }
    Ok(())
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            SqlValue::Null => ValueRef::Null,
            SqlValue::Integer(value) => ValueRef::Integer(*value),
            SqlValue::Real(value) => ValueRef::Real(*value),
            SqlValue::Text(value) => ValueRef::Text(value.as_bytes()),
            SqlValue::Blob(value) => ValueRef::Blob(value),
            SqlValue::Boolean(value) => ValueRef::Integer(i64::from(*value)),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn value(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Integer(value),
        ValueRef::Real(value) => SqlValue::Real(value),
        // SQLite keeps any bytes as text; what is not a text for us is still bytes.
        ValueRef::Text(value) => match std::str::from_utf8(value) {
            Ok(text) => SqlValue::Text(text.to_owned()),
            Err(_) => SqlValue::Blob(value.to_vec()),
        },
        ValueRef::Blob(value) => SqlValue::Blob(value.to_vec()),
    }
}

/// Notes that somebody woke the body.
#[derive(Default)]
struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
