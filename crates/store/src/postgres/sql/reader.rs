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

/// The tables that may be read, and of which columns if not of all: Outlast's, and those of authors, which belong to the same owner.
/// Whoever reads a view reads as its owner: they are left out.
const READABLE: &str = "(SELECT c.oid, c.relname AS name, pg_has_role(c.relowner, 'USAGE') AS ours, \
     CASE c.relname WHEN 'wait' THEN (SELECT '(' || string_agg(quote_ident(a.attname), ', ') || ')' FROM pg_attribute a \
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> 'token') END AS columns \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND c.relname <> 'secret' \
     AND c.relowner = (SELECT o.relowner FROM pg_class o WHERE o.oid = to_regclass('run')))";

/// Whether a role knows what nobody may know.
const KNOWS: &str = "(has_any_column_privilege(r.oid, to_regclass('secret'), 'SELECT') \
     OR has_column_privilege(r.oid, to_regclass('wait'), 'token', 'SELECT'))";

/// Whether the function is there, and is what it must be: a copy of a database may have brought it with another owner, an author may
/// have made tables since.
const READY: &str = "SELECT count(*) = 1 FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner \
     WHERE p.oid = to_regprocedure('@ANSWER@(text, int, int)') AND p.prosecdef AND p.prosrc = $1 \
     AND r.rolname = @READER@ AND NOT r.rolsuper AND NOT @KNOWS@ \
     AND has_schema_privilege(r.oid, current_schema(), 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE') \
     AND NOT EXISTS (SELECT FROM @READABLE@ t WHERE NOT has_any_column_privilege(r.oid, t.oid, 'SELECT'))";

/// What somebody else has to do where we may not.
const HELP: &str = "SELECT concat_ws(' ', \
     (SELECT format('CREATE ROLE %I NOLOGIN;', i.reader) WHERE r.oid IS NULL), \
     (SELECT format('GRANT %I TO %I;', i.reader, current_user) WHERE r.oid IS NULL OR NOT pg_has_role(r.oid, 'MEMBER')), \
     (SELECT format('GRANT USAGE, CREATE ON SCHEMA %I TO %I;', n.nspname, i.reader) \
        WHERE NOT pg_has_role(n.nspowner, 'USAGE')), \
     (SELECT string_agg(format('GRANT SELECT %s ON %I.%I TO %I;', t.columns, n.nspname, t.name, i.reader), ' ') \
        FROM @READABLE@ t \
        WHERE NOT t.ours AND (r.oid IS NULL OR NOT has_any_column_privilege(r.oid, t.oid, 'SELECT'))), \
     (SELECT format('REVOKE ALL ON %1$I.secret, %1$I.wait FROM %2$I, PUBLIC;', n.nspname, i.reader) \
        WHERE r.oid IS NOT NULL AND @KNOWS@)) \
     FROM (SELECT @READER@ AS reader) i JOIN pg_namespace n ON n.nspname = current_schema() \
     LEFT JOIN pg_roles r ON r.rolname = i.reader";

/// A function for each version of the schema: programs of two versions may ask at the same time.
fn named(sql: &str) -> String {
    let version = MIGRATIONS.last().map_or(0, |migration| migration.version());
    let sql = sql.replace("@READABLE@", READABLE).replace("@KNOWS@", KNOWS).replace("@READER@", READER);
    sql.replace("@ANSWER@", &format!("sql_answer_{version}"))
}

/// What the function does, as the server keeps it.
fn body() -> &'static str {
    PREPARE.split("$answer$").nth(1).unwrap_or_default()
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
        Ok(()) => Err(unprepared(session, "it lacks something, or has what it must not have").await),
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let why = error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned());
            Err(unprepared(session, &why).await)
        }
        Err(error) => Err(Failure::from(error).error),
    }
}

async fn is_ready(session: &mut Session) -> Result<bool, StoreError> {
    let rows = session.ask(&named(READY), vec![Box::new(body())]).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

async fn make(session: &mut Session) -> Result<(), tokio_postgres::Error> {
    session.batch_execute(&format!("BEGIN; {}", migrate::LOCK)).await?;
    // Of two processes that ask first, one makes it; the other one must not take it away from whoever asks by now.
    if !session.query_one(&named(READY), &[&body()]).await?.try_get::<_, bool>(0)? {
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
