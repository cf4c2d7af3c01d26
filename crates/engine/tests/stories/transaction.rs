//! Transactions, on a real SQLite file in virtual time.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast::testing::World;
use outlast::{Ctx, Engine, Error, Outlast, Retry, Status, Tx, params};
use outlast_core::event::Event;
use outlast_core::id::Index;
use outlast_core::limits::Limits;
use outlast_store::{Load, LoadFrom, SqliteOptions, SqliteStore, Store};

use super::support::{Tally, key, kinds, seconds, tell};

/// A world with one SQLite file.
pub(crate) struct Bank {
    pub(crate) world: World,
    pub(crate) store: Arc<SqliteStore>,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Bank {
    pub(crate) fn new() -> Bank {
        // Long enough for a machine that is busy with something else.
        Bank::with(SqliteOptions { transaction_limit: seconds(60), ..SqliteOptions::default() })
    }

    pub(crate) fn with(options: SqliteOptions) -> Bank {
        let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
        let path = folder.path().join("bank.db");
        let options = SqliteOptions { clock: world.clock(), ..options };
        let store = Arc::new(world.block_on(SqliteStore::open(&path, options)).unwrap());
        let bank = Bank { world, store, path, _folder: folder };
        let tables = "CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
                      CREATE TABLE ledger (entry TEXT NOT NULL);
                      INSERT INTO account VALUES ('ann', 100), ('ben', 0)";
        bank.author().execute_batch(tables).unwrap();
        bank
    }

    /// The author's own connection.
    pub(crate) fn author(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.path).unwrap()
    }

    /// Tells a story with one engine.
    fn tell<T>(&self, register: impl FnOnce(Outlast) -> Outlast, story: impl AsyncFnOnce(Engine) -> T) -> T {
        self.world.block_on(async {
            let engine = register(self.world.engine_on(self.store.clone())).start().await.unwrap();
            story(engine).await
        })
    }

    pub(crate) fn ledger(&self) -> Vec<String> {
        let author = self.author();
        let mut entries = author.prepare("SELECT entry FROM ledger ORDER BY rowid").unwrap();
        entries.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    pub(crate) fn balances(&self) -> Vec<i64> {
        let author = self.author();
        let mut balances = author.prepare("SELECT balance FROM account ORDER BY id").unwrap();
        balances.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

/// Writes an entry.
pub(crate) async fn enter(tx: &Tx, entry: impl Into<String>) -> outlast::Result<()> {
    tx.execute("INSERT INTO ledger VALUES (?1)", params![entry.into()]).await?;
    Ok(())
}

async fn debit(ctx: Ctx, amount: i64) -> outlast::Result<i64> {
    ctx.transaction("debit", move |tx| async move {
        enter(&tx, format!("{} attempt {}", tx.idempotency_key(), tx.attempt())).await?;
        tx.execute("UPDATE account SET balance = balance - ?1 WHERE id = 'ann'", params![amount]).await?;
        Ok(tx.query_one("SELECT balance FROM account WHERE id = 'ann'", params![]).await?.get("balance")?)
    })
    .retry(Retry::attempts(2))
    .await
}

#[test]
fn a_transaction_is_a_step_with_rows_beside_its_record() {
    let bank = Bank::new();
    bank.tell(
        |engine| engine.workflow("debit", debit),
        async |engine| {
            let left: i64 = engine.start("debit", &30).id("a").await.unwrap().result().await.unwrap();
            assert_eq!(left, 70);
            assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "RUN_FINISHED"]);
        },
    );
    assert_eq!(bank.balances(), [70, 0]);
    assert_eq!(bank.ledger(), ["default/a/0/debit attempt 1"]);
}

/// What an author sees when the database refuses: the step fails, and nothing it did is there.
#[test]
fn a_refused_statement_fails_the_attempt_and_undoes_all_of_it() {
    let bank = Bank::new();
    bank.tell(
        |engine| engine.workflow("debit", debit),
        async |engine| {
            let error = engine.start("debit", &101).id("a").await.unwrap().result::<i64>().await.unwrap_err();
            assert_eq!(error.code(), "sql_error", "{error}");
            assert!(error.to_string().contains("CHECK constraint failed"), "{error}");
            assert_eq!(kinds(&engine, "a").await, ["STEP_RETRY_SCHEDULED", "STEP_FAILED", "RUN_ERRORED"]);
        },
    );
    assert_eq!((bank.balances(), bank.ledger()), (vec![100, 0], vec![]));
}

#[test]
fn a_failed_attempt_is_rolled_back_and_the_next_one_counts_alone() {
    async fn flaky(ctx: Ctx, _: ()) -> outlast::Result<u32> {
        let body = |tx: Tx| async move {
            enter(&tx, format!("attempt {}", tx.attempt())).await?;
            if tx.attempt() < 3 { Err(Error::new("busy", "later")) } else { Ok(tx.attempt()) }
        };
        let attempts = ctx.transaction("flaky", body).retry(Retry::attempts(5)).await?;
        ctx.wait_for::<()>("go").await?;
        Ok(attempts)
    }
    let bank = Bank::new();
    bank.tell(
        |engine| engine.workflow("flaky", flaky).hot_runs(0),
        async |engine| {
            let run = engine.start("flaky", &()).id("a").await.unwrap();
            let mut attached = engine.run("a").unwrap().attach();
            while !matches!(attached.next().await.unwrap(), Some(Event::SignalAwaited { .. })) {}
            let load = Load { run: key("a"), from: LoadFrom::Index(Index(0)) };
            let inbox = bank.store.load(vec![load]).await.remove(0).unwrap().inbox;
            assert_eq!(inbox, [], "what said that the retry was due went with the attempt");
            engine.run("a").unwrap().signal("go", &(), "1").await.unwrap();
            assert_eq!(run.result::<u32>().await.unwrap(), 3);
            let expected = ["STEP_RETRY_SCHEDULED", "STEP_RETRY_SCHEDULED", "STEP_FINISHED"];
            assert_eq!(kinds(&engine, "a").await[..3], expected);
        },
    );
    assert_eq!(bank.ledger(), ["attempt 3"]);
}

/// Each sleep drops the program: what follows is replayed from the journal.
#[test]
fn replay_gives_recorded_values_and_errors_without_running_the_closure() {
    let (bank, ran) = (Bank::new(), Tally::default());
    let counted = ran.clone();
    let twice = move |ctx: Ctx, _: ()| {
        let ran = counted.clone();
        async move {
            let (good, bad) = (ran.clone(), ran);
            let value: u32 = ctx.transaction("good", move |_| std::future::ready(Ok(good.add()))).await?;
            let refused = move |_| std::future::ready(Err(Error::new("no", bad.add().to_string()).permanent()));
            let error: Error = ctx.transaction::<(), _, _>("bad", refused).await.unwrap_err();
            ctx.sleep(seconds(60)).await?;
            ctx.sleep(seconds(60)).await?;
            Ok((value, error))
        }
    };
    bank.tell(
        |engine| engine.workflow("twice", twice).hot_runs(0),
        async |engine| {
            let (value, error): (u32, Error) = engine.start("twice", &()).await.unwrap().result().await.unwrap();
            assert_eq!((value, error.code(), error.message()), (1, "no", "2"));
        },
    );
    assert_eq!(ran.count(), 2);
}

#[test]
fn a_store_without_sql_says_which_stores_have_it_and_is_not_asked_again() {
    tell(
        |engine| engine.workflow("debit", debit),
        async |_, engine| {
            let error = engine.start("debit", &1).id("a").await.unwrap().result::<i64>().await.unwrap_err();
            assert_eq!(error.code(), "transactions_unsupported", "{error}");
            assert!(error.to_string().contains("SQLite or PostgreSQL"), "{error}");
            assert_eq!(kinds(&engine, "a").await, ["STEP_FAILED", "RUN_ERRORED"]);
        },
    );
}

async fn misbehaves(ctx: Ctx, how: String) -> outlast::Result<serde_json::Value> {
    let body = move |tx: Tx| {
        let how = how.clone();
        assert_ne!(how, "panics at once");
        async move {
            enter(&tx, "never").await?;
            match how.as_str() {
                "panics" => panic!("at the disco"),
                "returns too much" => Ok(serde_json::json!("x".repeat(4_000))),
                "waits" => std::future::pending().await,
                "waits for a timer" => {
                    // There is no runtime here, and so no timer.
                    let _ = tokio::time::timeout(seconds(1), std::future::pending::<()>()).await;
                    Ok(serde_json::Value::Null)
                }
                "goes on after a failure" => {
                    let refused = tx.execute("INSERT INTO account VALUES ('ann', 0)", params![]).await;
                    Ok(serde_json::json!(refused.is_err()))
                }
                "takes too long" => {
                    let forever =
                        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
                    tx.query(forever, params![]).await?;
                    Ok(serde_json::Value::Null)
                }
                "writes for too long" => {
                    let forever = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                                   INSERT INTO ledger SELECT i FROM n";
                    let _ = tx.execute(forever, params![]).await;
                    Ok(serde_json::Value::Null)
                }
                "yields for too long" => loop {
                    tokio::task::yield_now().await;
                },
                other => tx.execute(other, params![]).await.map(Into::into).map_err(Into::into),
            }
        }
    };
    ctx.transaction("step", body).retry(Retry::never()).await
}

/// JSON has no maps with such keys.
async fn unwritable(ctx: Ctx, _: ()) -> outlast::Result<()> {
    let body = |tx: Tx| async move {
        enter(&tx, "never").await?;
        Ok(BTreeMap::from([((1, 2), 3)]))
    };
    ctx.transaction::<BTreeMap<(u32, u32), u32>, _, _>("odd", body).await.map(|_| ())
}

/// Everything fails with a code of its own, nothing is kept, and the writer goes on.
#[test]
fn a_transaction_that_misbehaves_fails_alone() {
    let limits = Limits { payload_bytes: 4_000, ..Limits::default() };
    let limit = Duration::from_millis(50);
    let bank =
        Bank::with(SqliteOptions { limits: limits.clone(), transaction_limit: limit, ..SqliteOptions::default() });
    let expected = [
        ("panics", "panic"),
        ("panics at once", "panic"),
        ("waits for a timer", "panic"),
        ("returns too much", "limit_exceeded"),
        ("waits", "transaction_misused"),
        ("goes on after a failure", "sql_error"),
        ("takes too long", "transaction_timeout"),
        ("writes for too long", "transaction_timeout"),
        ("yields for too long", "transaction_timeout"),
        ("COMMIT", "sql_denied"),
        ("DELETE FROM run", "sql_denied"),
    ];
    bank.tell(
        |engine| {
            let engine = engine.workflow("misbehaves", misbehaves).workflow("unwritable", unwritable);
            engine.workflow("debit", debit).limits(limits)
        },
        async |engine| {
            for (how, code) in expected {
                let run = engine.start("misbehaves", how).await.unwrap();
                let error = run.result::<serde_json::Value>().await.unwrap_err();
                assert_eq!(error.code(), code, "{how}: {error}");
            }
            let error = engine.start("unwritable", &()).await.unwrap().result::<()>().await.unwrap_err();
            assert_eq!(error.code(), "validation_error", "{error}");
            assert_eq!(engine.start("debit", &1).await.unwrap().result::<i64>().await.unwrap(), 99);
        },
    );
    assert_eq!(bank.ledger().len(), 1, "{:?}", bank.ledger());
}

/// Invariant 5 of the promise: what a transaction depends on is durable before it begins.
#[test]
fn it_runs_only_after_what_came_before_is_durable() {
    let bank = Bank::new();
    let path = bank.path.clone();
    let careful = move |ctx: Ctx, _: ()| {
        let path = path.clone();
        async move {
            ctx.step("first", async |_| Ok(())).await?;
            ctx.uuid().await?;
            ctx.transaction("count", move |_| {
                // Another connection sees only what is committed.
                let others = rusqlite::Connection::open(&path).unwrap();
                let seen = others.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0)).unwrap();
                std::future::ready(Ok(seen))
            })
            .await
        }
    };
    bank.tell(
        |engine| engine.workflow("careful", careful),
        async |engine| {
            assert_eq!(engine.start("careful", &()).await.unwrap().result::<i64>().await.unwrap(), 2);
        },
    );
}

/// The run's other bodies go on beside a transaction, and many transactions of one run take turns.
#[test]
fn transactions_and_steps_of_one_run_run_beside_each_other() {
    async fn many(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        let steps: Vec<_> = (0..n).map(|i| ctx.step("step", async move |_| Ok(i)).start()).collect();
        let transactions: Vec<_> = (0..n)
            .map(|i| {
                let body = move |tx: Tx| async move {
                    enter(&tx, i.to_string()).await?;
                    Ok(i)
                };
                ctx.transaction("transaction", body).start()
            })
            .collect();
        let mut sum = 0;
        for handle in transactions.into_iter().chain(steps) {
            sum += handle.await?;
        }
        Ok(sum)
    }
    let bank = Bank::new();
    bank.tell(
        |engine| engine.workflow("many", many),
        async |engine| {
            assert_eq!(engine.start("many", &20).await.unwrap().result::<u32>().await.unwrap(), 380);
        },
    );
    assert_eq!(bank.ledger().len(), 20);
}

/// Half of the runs fail, in the same groups as the others.
#[test]
fn a_transaction_that_fails_does_not_touch_its_neighbours() {
    async fn odd(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        let body = move |tx: Tx| async move {
            enter(&tx, n.to_string()).await?;
            match n % 4 {
                0 => Err(Error::new("even", "no")),
                // SQLite rolls the whole group back, and everybody else in it is done again.
                2 => Ok(tx.execute("INSERT OR ROLLBACK INTO account VALUES ('ann', 0)", params![]).await.map(|_| n)?),
                _ => Ok(n),
            }
        };
        ctx.transaction("enter", body).retry(Retry::never()).await
    }
    let bank = Bank::new();
    bank.tell(
        |engine| engine.workflow("odd", odd),
        async |engine| {
            let starts = (0..40_u32).map(|n| {
                let engine = engine.clone();
                async move { engine.start("odd", &n).await.unwrap().result::<u32>().await.is_ok() }
            });
            let ended = futures_util::future::join_all(starts).await;
            assert_eq!(ended, (0..40).map(|n| n % 2 == 1).collect::<Vec<_>>());
        },
    );
    let mut entries = bank.ledger();
    entries.sort_by_key(|entry| entry.parse::<u32>().unwrap());
    assert_eq!(entries, (0..40).filter(|n| n % 2 == 1).map(|n: u32| n.to_string()).collect::<Vec<_>>());
}

/// The author may create tables in a transaction, and use them in the same one.
#[test]
fn tables_can_be_created_in_a_transaction() {
    async fn creates(ctx: Ctx, fail: bool) -> outlast::Result<i64> {
        let body = move |tx: Tx| async move {
            tx.execute("CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, text TEXT)", params![]).await?;
            tx.execute("CREATE INDEX IF NOT EXISTS note_text ON note (text)", params![]).await?;
            let changed = tx.execute("INSERT INTO note (text) VALUES (?1), (?2)", params!["a", None::<&str>]).await?;
            assert_eq!(changed, 2);
            if fail {
                return Err(Error::new("no", "after all"));
            }
            Ok(tx.query_one("SELECT count(*) FROM note WHERE text = 'a'", params![]).await?.get(0)?)
        };
        ctx.transaction("create", body).retry(Retry::never()).await
    }
    let bank = Bank::new();
    bank.tell(
        |engine| engine.workflow("creates", creates),
        async |engine| {
            assert!(engine.start("creates", &true).await.unwrap().result::<i64>().await.is_err());
            for count in 1..=2 {
                assert_eq!(engine.start("creates", &false).await.unwrap().result::<i64>().await.unwrap(), count);
            }
        },
    );
}

#[test]
fn a_race_that_a_transaction_loses_leaves_nothing_of_it_behind() {
    async fn race(ctx: Ctx, _: ()) -> outlast::Result<&'static str> {
        let never = |tx: Tx| async move {
            enter(&tx, "never").await?;
            Err::<(), _>(Error::new("busy", "later"))
        };
        let slow = ctx.transaction("slow", never).retry(Retry::attempts(3));
        let fast = ctx.sleep(Duration::from_millis(1));
        ctx.race((slow, fast)).await.map(|_| "raced")
    }
    let bank = Bank::new();
    bank.tell(
        |engine| engine.workflow("race", race),
        async |engine| {
            let run = engine.start("race", &()).id("a").await.unwrap();
            assert_eq!(run.result::<String>().await.unwrap(), "raced");
            assert_eq!(engine.run("a").unwrap().status().await.unwrap(), Status::Completed);
        },
    );
    assert_eq!(bank.ledger(), [""; 0]);
}
