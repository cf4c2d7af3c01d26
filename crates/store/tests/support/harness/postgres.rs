//! PostgreSQL: a schema per case, dropped afterwards.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use outlast_core::id::RunKey;
use outlast_core::limits::Limits;
use outlast_store::contract::{Fixture, Harness, Hold, RawWrite};
use outlast_store::{BoxFuture, Clock, ManualClock, PostgresOptions, PostgresStore, Store};
use tokio_postgres::NoTls;

use super::sql::Dialect;

const DIALECT: Dialect = Dialect {
    row: "seq",
    oversize: "convert_to(repeat('x', 16777217), 'UTF8')",
    unchecked: |table, column| {
        let kind = "SELECT domain_name FROM information_schema.columns WHERE table_schema = current_schema() AND";
        format!(
            "DO $$ DECLARE kind text; BEGIN {kind} table_name = '{table}' AND column_name = '{column}' INTO kind; \
             IF kind IS NOT NULL THEN EXECUTE format('ALTER DOMAIN %I DROP CONSTRAINT %I', kind, kind || '_check'); \
             END IF; END $$;"
        )
    },
};

/// The server to test against.
fn url() -> String {
    match std::env::var("OUTLAST_TEST_POSTGRES") {
        Ok(url) if !url.is_empty() => url,
        _ => panic!("run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES"),
    }
}

/// Runs statements in a schema, past every store.
async fn execute(schema: &str, statements: &str) -> Result<(), String> {
    let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.map_err(|error| error.to_string())?;
    let statements = format!("SET search_path TO {schema}; {statements}");
    let work = client.batch_execute(&statements);
    match select(pin!(connection), pin!(work)).await {
        Either::Left((ended, _)) => Err(format!("the connection ended: {ended:?}")),
        Either::Right((done, _)) => done.map_err(|error| match error.as_db_error() {
            Some(said) => said.to_string(),
            None => error.to_string(),
        }),
    }
}

/// The PostgreSQL store.
pub(crate) struct PostgresHarness;

struct Kept {
    schema: String,
    limits: Limits,
}

async fn connect(schema: &str, clock: &ManualClock, limits: &Limits) -> PostgresStore {
    let options = PostgresOptions {
        clock: Clock::Manual(clock.clone()),
        limits: limits.clone(),
        schema: Some(schema.to_owned()),
        ..PostgresOptions::default()
    };
    PostgresStore::connect(&url(), options).await.unwrap()
}

fn kept(fixture: &Fixture) -> &Kept {
    fixture.keep.downcast_ref().unwrap()
}

impl Harness for PostgresHarness {
    fn name(&self) -> &str {
        "postgres"
    }

    fn open(&self, limits: Limits) -> BoxFuture<'_, Fixture> {
        Box::pin(async move {
            let schema = format!("case_{}", uuid::Uuid::new_v4().simple());
            let clock = ManualClock::at(0);
            let store = connect(&schema, &clock, &limits).await;
            Fixture::new(Arc::new(store), clock).keeping(Kept { schema, limits })
        })
    }

    fn second<'a>(&'a self, fixture: &'a Fixture) -> BoxFuture<'a, Option<Arc<dyn Store>>> {
        Box::pin(async move {
            let Kept { schema, limits } = kept(fixture);
            let store: Arc<dyn Store> = Arc::new(connect(schema, &fixture.clock, limits).await);
            Some(store)
        })
    }

    fn raw<'a>(&'a self, fixture: &'a Fixture, write: RawWrite) -> BoxFuture<'a, Option<Result<(), String>>> {
        Box::pin(async move { Some(execute(&kept(fixture).schema, &DIALECT.statements(&write)).await) })
    }

    fn hold<'a>(&'a self, fixture: &'a Fixture, run: RunKey) -> BoxFuture<'a, Option<Box<dyn Hold>>> {
        Box::pin(async move {
            let hold: Box<dyn Hold> = Box::new(Holding::begin(&kept(fixture).schema, &run).await);
            Some(hold)
        })
    }

    fn close(&self, fixture: Fixture) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let schema = kept(&fixture).schema.clone();
            drop(fixture);
            execute(&schema, &format!("DROP SCHEMA {schema} CASCADE;")).await.unwrap();
        })
    }
}

/// A transaction that has locked rows.
struct Holding {
    client: tokio_postgres::Client,
    connection: tokio::task::JoinHandle<()>,
}

impl Holding {
    #[expect(clippy::disallowed_methods, reason = "a test may drive a connection of its own")]
    async fn begin(schema: &str, run: &RunKey) -> Holding {
        let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
        let connection = tokio::spawn(async move { connection.await.unwrap() });
        let locks = format!(
            "SET search_path TO {schema}; BEGIN; SELECT 1 FROM run WHERE {} FOR UPDATE; \
             SELECT 1 FROM lease FOR UPDATE; SELECT 1 FROM node FOR UPDATE;",
            DIALECT.is(run)
        );
        client.batch_execute(&locks).await.unwrap();
        Holding { client, connection }
    }
}

impl Hold for Holding {
    fn blocked(&mut self) -> BoxFuture<'_, ()> {
        let waits = "SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))";
        Box::pin(async move {
            // A call that does not wait for locks is never seen here.
            for _ in 0..2_000 {
                // The activity a transaction sees is a snapshot until it asks for a new one.
                self.client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
                if !self.client.query(waits, &[]).await.unwrap().is_empty() {
                    return;
                }
            }
        })
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Holding { client, connection } = *self;
            client.batch_execute("ROLLBACK").await.unwrap();
            drop(client);
            connection.await.unwrap();
        })
    }
}
