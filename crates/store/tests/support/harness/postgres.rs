//! PostgreSQL: a schema per case, dropped afterwards.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use outlast_core::limits::Limits;
use outlast_store::contract::{Fixture, Harness, RawWrite};
use outlast_store::{BoxFuture, Clock, ManualClock, PostgresOptions, PostgresStore, Store};
use tokio_postgres::NoTls;

use super::sql::Dialect;

const DIALECT: Dialect = Dialect {
    row: "seq",
    oversize: "convert_to(repeat('x', 16777217), 'UTF8')",
    unchecked: |table, column| format!("ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_check;"),
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

    fn close(&self, fixture: Fixture) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let schema = kept(&fixture).schema.clone();
            drop(fixture);
            execute(&schema, &format!("DROP SCHEMA {schema} CASCADE;")).await.unwrap();
        })
    }
}
