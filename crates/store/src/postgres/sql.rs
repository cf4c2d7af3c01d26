//! Questions in SQL: a transaction that can only read, a cursor, and a time. The connection is not used for anything else after it.

use serde_json::{Map, Value};
use tokio_postgres::error::SqlState;

use super::Core;
use super::failure::Failure;
use super::session::{Session, plans_of_others};
use crate::api::{SqlAnswer, SqlQuestion, unanswered};
use crate::error::StoreError;

/// A cursor takes a query and nothing else: no COPY, no statement that writes in a WITH.
const BEGIN: &str = "DECLARE question NO SCROLL CURSOR FOR SELECT CASE WHEN octet_length(r.j) <= $1::int THEN r.j END FROM \
     (SELECT row_to_json(q)::text AS j FROM (\n";
const END: &str = "\n) q) r";
/// So many rows are held at once, each no larger than the whole answer may be.
const FETCH: &str = "FETCH 16 FROM question";

pub(super) async fn answer(core: &Core, question: &SqlQuestion) -> Result<SqlAnswer, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let answered = ask(&mut session, question).await;
    // Whatever the question left in its session goes with it: locks, settings.
    session.spend();
    answered
}

async fn ask(session: &mut Session, question: &SqlQuestion) -> Result<SqlAnswer, StoreError> {
    let millis = question.time.as_millis().clamp(1, 600_000);
    // Whoever reads the secret can make the tokens of others, and SQL has many ways to read. In this transaction it is gone, and it
    // is never committed.
    let begin = "BEGIN; DELETE FROM secret; SET TRANSACTION READ ONLY; ".to_owned();
    let settings = begin + &plans_of_others() + "SET LOCAL statement_timeout = " + &millis.to_string();
    session.batch_execute(&settings).await.map_err(|error| Failure::from(error).error)?;
    read(session, question).await.map_err(|error| refused(error, question))
}

enum Trouble {
    Database(tokio_postgres::Error),
    Question(String),
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        Trouble::Database(error)
    }
}

fn refused(trouble: Trouble, question: &SqlQuestion) -> StoreError {
    let error = match trouble {
        Trouble::Question(why) => return unanswered(why),
        Trouble::Database(error) => error,
    };
    match (error.code(), error.as_db_error()) {
        (Some(code), _) if *code == SqlState::QUERY_CANCELED => {
            unanswered(format!("it took longer than {:?}", question.time))
        }
        (_, Some(said)) => unanswered(said.message()),
        (_, None) => Failure::from(error).error,
    }
}

async fn read(session: &Session, question: &SqlQuestion) -> Result<SqlAnswer, Trouble> {
    let columns: Vec<String> =
        session.prepare(&question.text).await?.columns().iter().map(|column| column.name().to_owned()).collect();
    let twice = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name));
    if let Some((_, name)) = twice {
        return Err(Trouble::Question(format!("two columns are called {name:?}; name them apart with AS")));
    }
    let most = i32::try_from(question.bytes).unwrap_or(i32::MAX);
    let cursor = [BEGIN, question.text.trim().trim_end_matches(';'), END].concat();
    // A cursor is declared by a utility statement, which takes no parameters; but it is prepared, so that it is a single one.
    session.execute(&cursor.replacen("$1", &most.to_string(), 1), &[]).await?;
    let (mut answer, mut used) = (SqlAnswer { columns, ..SqlAnswer::default() }, 0);
    loop {
        let rows = session.query(FETCH, &[]).await?;
        if rows.is_empty() {
            return Ok(answer);
        }
        for row in rows {
            let text: Option<String> = row.try_get(0)?;
            let (bytes, values) = match &text {
                Some(text) => (text.len(), values(&answer.columns, text)?),
                None => (usize::MAX, Vec::new()),
            };
            if !question.keep(&mut answer, &mut used, values, bytes) {
                return Ok(answer);
            }
        }
    }
}

fn values(columns: &[String], row: &str) -> Result<Vec<Value>, Trouble> {
    let unreadable = |error: serde_json::Error| Trouble::Question(format!("a row cannot be shown: {error}"));
    let mut row: Map<String, Value> = serde_json::from_str(row).map_err(unreadable)?;
    Ok(columns.iter().map(|column| row.remove(column).unwrap_or_default()).collect())
}
