//! Migrations: forward only, each once, safe when several processes start at once.
//!
//! Not refinery: it commits each migration in a transaction of its own, so it cannot run inside the one that holds the
//! lock, and it brings a regular-expression engine, a TOML parser and a directory walker to everybody who embeds us.
//! What is left without them is a list of files and a table.

use deadpool_postgres::Pool;

use super::failure::Failure;
use super::session::{Session, Step};
use crate::error::StoreError;

/// One step from a version of the schema to the next.
pub(super) struct Migration {
    version: i32,
    sql: &'static str,
}

impl Migration {
    pub(super) fn version(&self) -> i32 {
        self.version
    }
}

/// In order, without gaps. What was released is never edited.
pub(super) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, sql: include_str!("migrations/V1__foundation.sql") }];

/// Held while migrating; chosen once, at random. Not on the hot path, so an advisory lock will do.
pub(super) const LOCK: &str = "SELECT pg_advisory_xact_lock(4704231172836185661)";
const CREATE_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS schema_version (version int PRIMARY KEY, \
     applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
const VERSION: &str = "SELECT coalesce(max(version), 0) FROM schema_version";
const APPLIED: &str = "INSERT INTO schema_version (version) VALUES ($1)";

/// Brings the database to the newest version this program knows.
pub(super) async fn migrate(pool: &Pool, schema: Option<&str>, migrations: &[Migration]) -> Result<(), Failure> {
    let mut session = Session::begin(pool).await?;
    let ended = apply(&mut session, schema, migrations).await;
    session.rollback().await;
    ended
}

async fn apply(session: &mut Session, schema: Option<&str>, migrations: &[Migration]) -> Result<(), Failure> {
    // Whoever comes second waits here, and then finds everything done.
    session.send_all(&[Step::Plain("BEGIN"), Step::Plain(LOCK)]).await?;
    if let Some(schema) = schema {
        // Asked first, because a user who may not create schemas may still use one that is there.
        let there = session.ask("SELECT 1 FROM pg_namespace WHERE nspname = $1", vec![Box::new(schema)]).await?;
        if there.is_empty() {
            session.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
        }
    }
    session.batch_execute(CREATE_VERSIONS).await?;
    let found: i32 = session.query_one(VERSION, &[]).await?.try_get(0)?;
    let known = migrations.last().map_or(0, |migration| migration.version);
    if found > known {
        let number = |version: i32| u32::try_from(version).unwrap_or(0);
        return Err(StoreError::NewerDatabase { found: number(found), known: number(known) }.into());
    }
    for migration in migrations.iter().filter(|migration| migration.version > found) {
        session.batch_execute(migration.sql).await?;
        session.execute(APPLIED, &[&migration.version]).await?;
    }
    session.commit(Vec::new()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::options::PostgresOptions;
    use crate::postgres::session;

    const OLD: &[Migration] = &[Migration { version: 1, sql: "CREATE TABLE book (id int)" }];
    const NEW: &[Migration] = &[
        Migration { version: 1, sql: "CREATE TABLE book (id int)" },
        Migration { version: 2, sql: "ALTER TABLE book ADD title text; UPDATE book SET title = 'untitled'" },
    ];

    /// A pool whose connections use a schema of their own, which does not exist yet.
    fn pool(schema: &str) -> Pool {
        let url = std::env::var("OUTLAST_TEST_POSTGRES")
            .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
        let options = PostgresOptions { schema: Some(schema.to_owned()), ..PostgresOptions::default() };
        session::pool(session::config(&url, &options).unwrap(), &options, 8).unwrap()
    }

    async fn drop_schema(pool: &Pool, schema: &str) {
        pool.get().await.unwrap().batch_execute(&format!("DROP SCHEMA \"{schema}\" CASCADE")).await.unwrap();
    }

    #[tokio::test]
    async fn an_older_database_is_upgraded_and_keeps_its_rows_and_a_newer_one_is_refused() {
        let schema = format!("migrate_{}", uuid::Uuid::new_v4().simple());
        let pool = pool(&schema);
        migrate(&pool, Some(&schema), OLD).await.unwrap();
        pool.get().await.unwrap().batch_execute("INSERT INTO book VALUES (7)").await.unwrap();

        migrate(&pool, Some(&schema), NEW).await.unwrap();
        migrate(&pool, Some(&schema), NEW).await.unwrap();
        let row = pool.get().await.unwrap().query_one("SELECT id, title FROM book", &[]).await.unwrap();
        assert_eq!((row.get::<_, i32>(0), row.get::<_, &str>(1)), (7, "untitled"));

        let error = migrate(&pool, Some(&schema), OLD).await.unwrap_err().error;
        assert_eq!(error, StoreError::NewerDatabase { found: 2, known: 1 });
        drop_schema(&pool, &schema).await;
    }

    #[test]
    fn versions_count_up_from_one_without_gaps() {
        for (expected, migration) in (1..).zip(MIGRATIONS) {
            assert_eq!(migration.version, expected);
        }
    }
}
