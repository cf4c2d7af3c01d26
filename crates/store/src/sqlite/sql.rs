//! Questions in SQL: a connection of their own that can only read, an authorizer that lets nothing else through, and a clock.

use std::path::Path;
use std::time::Instant;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode};
use serde_json::Value;

use super::error::store_error;
use super::schema;
use crate::api::{SqlAnswer, SqlQuestion, unanswered};
use crate::error::StoreError;

/// Steps of SQLite's machine between two looks at the clock.
const STEPS_PER_LOOK: i32 = 1_000;
/// Who reads it can make the tokens of others.
const SECRET: &str = "secret";
/// And who reads this has some already: what callbacks are answered by.
const TOKENS: (&str, &str) = ("wait", "token");

/// Answers a question. Nobody else waits for it: it has a connection and a thread of its own.
pub(super) fn answer(path: &Path, question: &SqlQuestion) -> Result<SqlAnswer, StoreError> {
    let mut connection = schema::open_reader(path)?;
    let most = i32::try_from(question.bytes).unwrap_or(i32::MAX);
    guard(&mut connection, now() + question.time, most).map_err(|error| store_error(&error))?;
    read(&connection, question).map_err(|error| match &error {
        Error::SqliteFailure(failure, _) if failure.code == ErrorCode::OperationInterrupted => {
            unanswered(format!("it took longer than {:?}", question.time))
        }
        Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                store_error(&error)
            }
            _ => unanswered(error),
        },
        _ => unanswered(error),
    })
}

fn guard(connection: &mut Connection, deadline: Instant, bytes_max: i32) -> rusqlite::Result<()> {
    connection.authorizer(Some(|context: AuthContext<'_>| match may(&context.action) {
        true => Authorization::Allow,
        false => Authorization::Deny,
    }))?;
    connection.progress_handler(STEPS_PER_LOOK, Some(move || now() >= deadline))?;
    // No value may grow larger than the whole answer.
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes_max)?;
    Ok(())
}

/// Only what reads, and nothing by which others are known.
fn may(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, column_name } => {
            let is = |table: &str| table_name.eq_ignore_ascii_case(table);
            let is_token = is(TOKENS.0) && column_name.eq_ignore_ascii_case(TOKENS.1);
            !is_token && !is(SECRET)
        }
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        _ => false,
    }
}

fn read(connection: &Connection, question: &SqlQuestion) -> rusqlite::Result<SqlAnswer> {
    let mut statement = connection.prepare(&question.text)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let (count, mut answer, mut used) = (columns.len(), SqlAnswer { columns, ..SqlAnswer::default() }, 0);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut bytes = 0;
        let mut values = Vec::with_capacity(count);
        for column in 0..count {
            let found = row.get_ref(column)?;
            bytes += size(found);
            values.push(value(found));
        }
        if !question.keep(&mut answer, &mut used, values, bytes) {
            break;
        }
    }
    Ok(answer)
}

fn size(found: ValueRef<'_>) -> usize {
    match found {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => 8 + bytes.len(),
    }
}

/// Bytes are shown as text if they are one: payloads are JSON.
fn value(found: ValueRef<'_>) -> Value {
    match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => bytes.iter().fold("\\x".to_owned(), |hex, byte| hex + &format!("{byte:02x}")).into(),
        },
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a question takes is real time, whatever the store's clock")]
fn now() -> Instant {
    Instant::now()
}
