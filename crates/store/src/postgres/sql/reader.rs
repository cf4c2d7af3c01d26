//! Who asks questions in SQL: a role that was given everything but what nobody may know, and the function it owns.

use tokio_postgres::error::SqlState;

use crate::error::StoreError;
use crate::postgres::failure::Failure;
use crate::postgres::migrate::{self, MIGRATIONS};
use crate::postgres::session::Session;

const PREPARE: &str = include_str!("reader.sql");

/// Roles belong to all databases of a server: each schema has one of its own.
const READER: &str = "format('outlast_sql_%s_%s', (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()), \
     (SELECT n.oid FROM pg_namespace n WHERE n.nspname = current_schema()))";

/// Whether the function is there, and is what it must be: a copy of a database may have brought it with another owner.
const READY: &str = "SELECT count(*) = 1 FROM pg_proc p JOIN pg_roles o ON o.oid = p.proowner \
     WHERE p.oid = to_regprocedure('@ANSWER@(text, int, int)') AND p.prosecdef AND o.rolname = @READER@ AND NOT o.rolsuper \
     AND NOT has_column_privilege(o.oid, to_regclass('secret'), 'value', 'SELECT') AND has_function_privilege(p.oid, 'EXECUTE')";

/// What somebody else has to do if we may not.
const HELP: &str = "SELECT format('CREATE ROLE %1$I NOLOGIN; GRANT %1$I TO %2$I;', @READER@, current_user)";

/// A function for each version of the schema: a new one brings new tables.
fn named(sql: &str) -> String {
    let version = MIGRATIONS.last().map_or(0, |migration| migration.version());
    sql.replace("@READER@", READER).replace("@ANSWER@", &format!("sql_answer_{version}"))
}

/// The question itself: its text, and how many rows and bytes it is given.
pub(super) fn answer() -> String {
    named("SELECT * FROM @ANSWER@($1, $2, $3)")
}

/// Makes sure that questions can be asked.
pub(super) async fn prepare(session: &mut Session) -> Result<(), StoreError> {
    if is_ready(session).await? {
        return Ok(());
    }
    let made = make(session).await;
    session.batch_execute("ROLLBACK").await.map_err(|error| Failure::from(error).error)?;
    session.closed();
    match made {
        Ok(()) if is_ready(session).await? => Ok(()),
        Ok(()) => Err(unprepared(session, "the function that asks them is not ours").await),
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let why = error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned());
            Err(unprepared(session, &why).await)
        }
        Err(error) => Err(Failure::from(error).error),
    }
}

async fn is_ready(session: &mut Session) -> Result<bool, StoreError> {
    let rows = session.ask(&named(READY), Vec::new()).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

async fn make(session: &mut Session) -> Result<(), tokio_postgres::Error> {
    session.batch_execute(&format!("BEGIN; {}", migrate::LOCK)).await?;
    // Of two processes that ask first, one makes it; the other one must not take it away from whoever asks by now.
    if !session.query_one(&named(READY), &[]).await?.try_get::<_, bool>(0)? {
        session.batch_execute(&named(PREPARE)).await?;
    }
    session.batch_execute("COMMIT").await
}

async fn unprepared(session: &mut Session, why: &str) -> StoreError {
    let help = match session.ask(&named(HELP), Vec::new()).await {
        Ok(rows) => rows.first().map(|row| row.get::<_, String>(0)).unwrap_or_default(),
        Err(failure) => return failure.error,
    };
    StoreError::Settings(format!(
        "questions in SQL are asked as a role that cannot read the secret, and it cannot be made ({why}); \
         let an administrator of the database say: {help}"
    ))
}
