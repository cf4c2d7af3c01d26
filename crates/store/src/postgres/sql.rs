//! Questions in SQL: a role that may only read what may be known, a transaction that can only read, and a time. The connection is not
//! used for anything else after it.

mod reader;

use serde_json::{Map, Value};
use tokio_postgres::error::SqlState;

use super::Core;
use super::failure::Failure;
use super::session::{Session, plans_of_others};
use crate::api::{SqlAnswer, SqlQuestion, unanswered};
use crate::error::StoreError;

/// How many are asked at a time. They have connections of their own: whoever asks must not keep runs waiting.
pub(super) const AT_ONCE: usize = 2;

pub(super) async fn answer(core: &Core, question: &SqlQuestion) -> Result<SqlAnswer, StoreError> {
    let mut session = Session::begin(&core.questions).await?;
    let answered = ask(&mut session, question).await;
    // Whatever the question left in its session goes with it: locks, settings.
    session.spend();
    answered
}

async fn ask(session: &mut Session, question: &SqlQuestion) -> Result<SqlAnswer, StoreError> {
    reader::prepare(session).await?;
    let millis = question.time.as_millis().clamp(1, 600_000);
    let settings =
        "BEGIN READ ONLY; ".to_owned() + &plans_of_others() + "SET LOCAL statement_timeout = " + &millis.to_string();
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
        (Some(code), Some(said)) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            let hidden =
                "nobody may read views, the table `secret`, and the column `token` of `wait`; name the other columns";
            unanswered(format!("{}: {hidden}", said.message()))
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
    let rows = i32::try_from(question.rows).unwrap_or(i32::MAX);
    let bytes = i32::try_from(question.bytes).unwrap_or(i32::MAX);
    let text = question.text.trim().trim_end_matches(';');
    let rows = session.query(&reader::answer(), &[&text, &rows, &bytes]).await?;
    let (mut answer, mut used) = (SqlAnswer { columns, ..SqlAnswer::default() }, 0);
    for row in rows {
        let text: Option<String> = row.try_get(0)?;
        let (bytes, values) = match &text {
            Some(text) => (text.len(), values(&answer.columns, text)?),
            None => (usize::MAX, Vec::new()),
        };
        if !question.keep(&mut answer, &mut used, values, bytes) {
            break;
        }
    }
    Ok(answer)
}

fn values(columns: &[String], row: &str) -> Result<Vec<Value>, Trouble> {
    let unreadable = |error: serde_json::Error| Trouble::Question(format!("a row cannot be shown: {error}"));
    let mut row: Map<String, Value> = serde_json::from_str(row).map_err(unreadable)?;
    Ok(columns.iter().map(|column| row.remove(column).unwrap_or_default()).collect())
}
