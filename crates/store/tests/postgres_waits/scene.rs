//! A schema of its own on the test's server, stores in it, and connections past every store.

use std::time::Duration;

use outlast_store::{Clock, ManualClock, PostgresOptions, PostgresStore};
use tokio::task::JoinHandle;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, NoTls};

/// How often a condition outside this process is looked at before it is given up: ten seconds.
const LOOKS_MAX: u32 = 2_000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The server all tests share.
pub(crate) fn shared_server() -> String {
    match std::env::var("OUTLAST_TEST_POSTGRES") {
        Ok(url) if !url.is_empty() => url,
        _ => panic!("run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES"),
    }
}

/// Waits for a condition outside this process.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds().await {
            return;
        }
        pause().await;
    }
    panic!("{what}: it never came to that");
}

/// Between two attempts at something outside this process.
pub(crate) async fn pause() {
    tokio::time::sleep(BETWEEN_LOOKS).await;
}

/// A place for one test.
pub(crate) struct Scene {
    server: String,
    schema: String,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene::on(shared_server())
    }

    /// On this server.
    pub(crate) fn on(server: String) -> Scene {
        Scene { server, schema: format!("faults_{}", uuid::Uuid::new_v4().simple()) }
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions { schema: Some(self.schema.clone()), ..PostgresOptions::default() }
    }

    /// Where the scene's stores connect. Their sessions carry the schema's name.
    pub(crate) fn url(&self) -> String {
        self.url_through(&self.server)
    }

    /// As [`Scene::url`], by way of another address.
    pub(crate) fn url_through(&self, server: &str) -> String {
        let joint = if server.contains('?') { '&' } else { '?' };
        format!("{server}{joint}application_name={}", self.schema)
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::connect(&self.url(), self.options()).await.unwrap()
    }

    pub(crate) async fn open_with_clock(&self, clock: &ManualClock) -> PostgresStore {
        let options = PostgresOptions { clock: Clock::Manual(clock.clone()), ..self.options() };
        PostgresStore::connect(&self.url(), options).await.unwrap()
    }

    /// A connection past every store.
    pub(crate) async fn raw(&self) -> Raw {
        let raw = Raw::connect(&self.server).await;
        raw.run(&format!("SET search_path = {}", self.schema)).await;
        raw
    }

    /// Waits until so many sessions of the scene's stores wait for a lock.
    pub(crate) async fn blocked(&self, sessions: i64) {
        let watcher = self.raw().await;
        until(&format!("{sessions} sessions wait for a lock"), async || {
            self.sessions(&watcher, "wait_event_type = 'Lock'").await >= sessions
        })
        .await;
    }

    /// How many sessions of the scene's stores are like this.
    pub(crate) async fn sessions(&self, watcher: &Raw, like: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'", self.schema);
        watcher.one(&format!("{sql} AND {like}")).await
    }

    pub(crate) async fn close(self) {
        self.raw().await.run(&format!("DROP SCHEMA {} CASCADE", self.schema)).await;
    }
}

/// A connection past every store.
pub(crate) struct Raw {
    client: Client,
    connection: JoinHandle<()>,
}

impl Raw {
    pub(crate) async fn connect(server: &str) -> Raw {
        let (client, connection) = tokio_postgres::connect(server, NoTls).await.unwrap();
        // How the connection ends is seen by whoever uses it.
        let connection = tokio::spawn(async move { drop(connection.await) });
        Raw { client, connection }
    }

    pub(crate) async fn run(&self, statements: &str) {
        self.try_run(statements).await.unwrap();
    }

    pub(crate) async fn try_run(&self, statements: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(statements).await
    }

    /// The one value a question has for an answer.
    pub(crate) async fn one<T: FromSqlOwned>(&self, question: &str) -> T {
        self.client.query_one(question, &[]).await.unwrap().get(0)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
