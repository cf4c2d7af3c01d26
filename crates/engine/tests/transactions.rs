//! Transactions on PostgreSQL, with real threads.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "these stories are about real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast::{Ctx, Engine, Error, Outlast, Retry, Tx, params};
use outlast_core::event::Event;
use outlast_store::{PostgresOptions, PostgresStore};
use tokio::sync::Notify;
use tokio_postgres::{Client, NoTls};

const PATIENCE: Duration = Duration::from_secs(60);

/// A schema for the store, and one for the author's tables.
struct Bank {
    url: String,
    name: String,
    author: Client,
}

impl Bank {
    async fn new(name: &str) -> Bank {
        let url = std::env::var("OUTLAST_TEST_POSTGRES")
            .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
        let (author, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let name = format!("bank_{name}_{}", std::process::id());
        let tables = format!(
            "CREATE SCHEMA {name}_author; SET search_path TO {name}_author; \
             CREATE TABLE account (id TEXT PRIMARY KEY, balance BIGINT NOT NULL CHECK (balance >= 0)); \
             CREATE TABLE ledger (entry TEXT NOT NULL); INSERT INTO account VALUES ('ann', 100), ('ben', 0)"
        );
        author.batch_execute(&tables).await.unwrap();
        Bank { url, name, author }
    }

    async fn engine(&self, register: impl FnOnce(Outlast) -> Outlast) -> Engine {
        let options = PostgresOptions { schema: Some(self.name.clone()), ..PostgresOptions::default() };
        let store = PostgresStore::connect(&self.url, options).await.unwrap();
        let engine = register(Outlast::store(Arc::new(store)));
        engine.poll(Duration::from_millis(100)).start().await.unwrap()
    }

    async fn number(&self, sql: &str) -> i64 {
        self.author.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn end(self) {
        let drop = format!("DROP SCHEMA {0} CASCADE; DROP SCHEMA {0}_author CASCADE", self.name);
        self.author.batch_execute(&drop).await.unwrap();
    }
}

/// Moves 5 from ann to ben. Many do so at once, in both directions of locking, so that some lose races.
async fn transfer(ctx: Ctx, (bank, n): (String, u32)) -> outlast::Result<i64> {
    let body = move |tx: Tx| {
        let bank = bank.clone();
        async move {
            let ann = format!("UPDATE {bank}_author.account SET balance = balance - 5 WHERE id = $1");
            let ben = format!("UPDATE {bank}_author.account SET balance = balance + 5 WHERE id = $1");
            let moves = if n % 2 == 0 { [(&ann, "ann"), (&ben, "ben")] } else { [(&ben, "ben"), (&ann, "ann")] };
            for (sql, id) in moves {
                assert_eq!(tx.execute(sql, params![id]).await?, 1);
            }
            let entry = format!("INSERT INTO {bank}_author.ledger VALUES ($1)");
            tx.execute(entry, params![tx.idempotency_key()]).await?;
            let left = format!("SELECT balance FROM {bank}_author.account WHERE id = 'ann'");
            let left = tx.query_one(left, params![]).await?.get("balance")?;
            if n % 5 == 0 && tx.attempt() < 2 { Err(Error::new("busy", "later")) } else { Ok(left) }
        }
    };
    let retry = Retry::attempts(3).initial(Duration::from_millis(1));
    ctx.transaction("transfer", body).retry(retry).await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runs_transfer_at_once_and_every_transfer_counts_once() {
    let bank = Bank::new("many").await;
    let engine = bank.engine(|engine| engine.workflow("transfer", transfer)).await;
    let runs = (0..20_u32).map(|n| {
        let (engine, input) = (engine.clone(), (bank.name.clone(), n));
        async move { engine.start("transfer", &input).await.unwrap().result::<i64>().await.unwrap() }
    });
    let ended = tokio::time::timeout(PATIENCE, futures_util::future::join_all(runs)).await.unwrap();
    let mut left = ended.clone();
    left.sort_unstable();
    assert_eq!(left, (0..20).map(|n| n * 5).collect::<Vec<_>>(), "each saw a balance of its own");
    assert_eq!(bank.number("SELECT balance FROM account WHERE id = 'ben'").await, 100);
    assert_eq!(bank.number("SELECT count(DISTINCT entry) FROM ledger").await, 20);
    assert_eq!(bank.number("SELECT count(*) FROM ledger").await, 20);
    assert_eq!(engine.doctor().await.unwrap().findings, [], "the doctor has found something");
    engine.shutdown().await;
    bank.end().await;
}

/// On PostgreSQL a transaction may wait; what is sent to its run meanwhile is fed after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_lets_a_transaction_that_has_begun_end_first() {
    let bank = Bank::new("cancel").await;
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes_on) = (Arc::clone(&begun), Arc::clone(&go_on));
    let succeeded = Arc::new(AtomicBool::new(false));
    let success = Arc::clone(&succeeded);
    let slow = move |ctx: Ctx, bank: String| {
        let (begun, go_on, success) = (Arc::clone(&begins), Arc::clone(&goes_on), Arc::clone(&success));
        async move {
            let body = move |tx: Tx| {
                let (begun, go_on, bank) = (Arc::clone(&begun), Arc::clone(&go_on), bank.clone());
                async move {
                    tx.execute(format!("INSERT INTO {bank}_author.ledger VALUES ('slow')"), params![]).await?;
                    begun.notify_one();
                    go_on.notified().await;
                    Ok(())
                }
            };
            ctx.transaction("slow", body).await?;
            success.store(true, Ordering::SeqCst);
            ctx.sleep(Duration::from_secs(86_400)).await
        }
    };
    let engine = bank.engine(|engine| engine.workflow("slow", slow)).await;
    let run = engine.start("slow", &bank.name).id("a").await.unwrap();
    tokio::time::timeout(PATIENCE, begun.notified()).await.unwrap();
    let handle = engine.run("a").unwrap();
    // Acknowledged while the transaction is under way, and waits for nobody.
    tokio::time::timeout(PATIENCE, handle.cancel("enough")).await.unwrap().unwrap();
    assert_eq!(handle.journal().await.unwrap().len(), 0);
    go_on.notify_one();
    let error = tokio::time::timeout(PATIENCE, run.result::<()>()).await.unwrap().unwrap_err();
    assert_eq!(error.code(), "aborted", "{error}");
    let journal = handle.journal().await.unwrap();
    assert!(matches!(journal[0], Event::StepFinished { .. }), "{journal:?}");
    assert!(succeeded.load(Ordering::SeqCst), "the workflow saw what the journal says");
    assert_eq!(bank.number("SELECT count(*) FROM ledger").await, 1);
    assert_eq!(engine.doctor().await.unwrap().findings, [], "the doctor has found something");
    engine.shutdown().await;
    bank.end().await;
}
