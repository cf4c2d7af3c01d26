//! What only SQLite's transactions have: a writer they share, an authorizer, a limit of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_core::commit::Commit;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Fence, Index, LeaseId};
use outlast_core::record::Record;
use outlast_store::{CommitError, SqliteOptions, SqliteStore, Store, Transact, Transacted, Tx, params};

use super::scene::{Folder, append, create_owned, load, record, register, run};

struct Scene {
    folder: Folder,
    store: Arc<SqliteStore>,
    lease: LeaseId,
    fence: Fence,
}

const TABLES: &str = "CREATE TABLE mine (id INTEGER PRIMARY KEY, note TEXT UNIQUE);
     CREATE VIEW peek AS SELECT id FROM run;
     CREATE TABLE bait (n INTEGER);
     CREATE TRIGGER trap AFTER INSERT ON bait BEGIN DELETE FROM run; END;
     CREATE TABLE child (parent INTEGER REFERENCES mine (id) DEFERRABLE INITIALLY DEFERRED)";

impl Scene {
    async fn begin(limit: Duration) -> Scene {
        let folder = Folder::new();
        let options = SqliteOptions { transaction_limit: limit, ..SqliteOptions::default() };
        let store = Arc::new(folder.open(options).await.unwrap());
        rusqlite::Connection::open(folder.file()).unwrap().execute_batch(TABLES).unwrap();
        let lease = register(&*store).await;
        let fence = create_owned(&*store, "a", lease).await;
        Scene { folder, store, lease, fence }
    }

    fn transact<Fut>(&self, body: impl Fn(Tx) -> Fut + Send + Sync + 'static) -> Transact
    where
        Fut: Future<Output = Result<Vec<Record>, Failure>> + Send + 'static,
    {
        Transact {
            commit: Commit::new(run("a"), self.fence, Index(0)),
            body: Arc::new(move |tx| Box::pin(body(tx))),
            idempotency_key: "key".to_owned(),
            attempt: 1,
        }
    }

    /// Enters a row, then sends a statement and returns its error.
    fn sending(&self, sql: &'static str) -> Transact {
        self.transact(move |tx| async move {
            tx.execute("INSERT INTO mine (note) VALUES ('x')", params![]).await?;
            tx.query(sql, params![]).await?;
            Ok(vec![record("x")])
        })
    }

    async fn fails(&self, sql: &'static str) -> Failure {
        let failure = rolled_back(self.store.transact(self.sending(sql)).await, sql);
        assert_eq!((self.rows(), load(&*self.store, "a").await.unwrap().events.len()), (0, 0), "{sql}");
        failure
    }

    fn rows(&self) -> i64 {
        let author = rusqlite::Connection::open(self.folder.file()).unwrap();
        author
            .query_row("SELECT (SELECT count(*) FROM mine) + (SELECT count(*) FROM bait)", [], |row| row.get(0))
            .unwrap()
    }
}

fn rolled_back(answer: Result<Transacted, CommitError>, what: &str) -> Failure {
    match answer {
        Ok(Transacted::RolledBack(failure)) => failure,
        other => panic!("{what}: {other:?}"),
    }
}

/// No story is about it, and a busy machine may be slow.
const PATIENT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_reaches_beyond_the_authors_own_rows_is_denied() {
    let scene = Scene::begin(PATIENT).await;
    let denied = [
        "PRAGMA synchronous = OFF",
        "PRAGMA user_version",
        "SELECT * FROM pragma_table_info('mine')",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "ANALYZE",
        "REINDEX",
        "SAVEPOINT x",
        "RELEASE outlast_transact",
        "COMMIT",
        "BEGIN IMMEDIATE",
        "SELECT count(*) FROM run",
        "SELECT 1 FROM RUN",
        "SELECT payload FROM main.event",
        "SELECT * FROM secret",
        "UPDATE run SET fence = 9",
        "INSERT INTO namespace (name) VALUES ('x')",
        "DELETE FROM lease",
        "DROP TABLE event",
        "ALTER TABLE run RENAME TO walk",
        "CREATE INDEX mine_too ON run (id)",
        "CREATE TRIGGER spy AFTER UPDATE ON run BEGIN DELETE FROM mine; END",
        "CREATE TEMP TABLE run (id TEXT)",
        "CREATE TEMP VIEW run AS SELECT 1",
        "UPDATE sqlite_sequence SET seq = 0",
        "SELECT id FROM peek",
        "INSERT INTO bait VALUES (1)",
        "SELECT load_extension('x')",
    ];
    for sql in denied {
        let failure = scene.fails(sql).await;
        assert_eq!((failure.code.as_str(), failure.permanent), (code::SQL_DENIED, true), "{sql}: {failure}");
    }
    append(&*scene.store, "a", scene.fence, 0, "the store's own statements are not watched").await.unwrap();
}

#[tokio::test]
async fn what_an_author_needs_is_allowed() {
    let scene = Scene::begin(PATIENT).await;
    let allowed = [
        "CREATE TABLE IF NOT EXISTS other (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT)",
        "CREATE UNIQUE INDEX other_note ON other (note)",
        "CREATE VIEW both_of AS SELECT note FROM mine UNION SELECT note FROM other",
        "CREATE TRIGGER copies AFTER INSERT ON mine BEGIN INSERT INTO other (note) VALUES (new.note); END",
        "INSERT INTO mine (note) VALUES ('copied') RETURNING id",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
        "ALTER TABLE other ADD COLUMN more TEXT",
        "SELECT count(*), json('{}'), upper('x') FROM both_of",
        "DROP TRIGGER copies",
    ];
    let body = move |tx: Tx| async move {
        for sql in allowed {
            tx.query(sql, params![]).await?;
        }
        assert_eq!(tx.query_one("SELECT count(*) FROM other", params![]).await?.get::<i64>(0)?, 1);
        Ok(vec![record("x")])
    };
    let answer = scene.store.transact(scene.transact(body)).await;
    assert!(matches!(answer, Ok(Transacted::Committed(_))), "{answer:?}");
}

#[tokio::test]
async fn an_endless_statement_is_stopped_and_may_be_retried() {
    let scene = Scene::begin(Duration::from_millis(30)).await;
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    for end in ["SELECT max(i) FROM n", "INSERT INTO mine (note) SELECT i FROM n"] {
        let sql: &'static str = Box::leak(format!("{endless} {end}").into_boxed_str());
        let failure = scene.fails(sql).await;
        assert_eq!((failure.code.as_str(), failure.permanent), (code::TRANSACTION_TIMEOUT, false), "{end}: {failure}");
    }
}

/// SQLite rolls back the whole group when it stops a write; the others of the group are done again.
#[tokio::test]
async fn neighbours_stand_when_sqlite_gives_up_the_group() {
    let scene = Scene::begin(Duration::from_millis(30)).await;
    let mut fences = Vec::new();
    for n in 0..20 {
        fences.push(create_owned(&*scene.store, &format!("n-{n}"), scene.lease).await);
    }
    let endless =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO mine (note) SELECT i FROM n";
    let names: Vec<String> = (0..20).map(|n| format!("n-{n}")).collect();
    let neighbours = names.iter().zip(&fences).map(|(name, fence)| append(&*scene.store, name, *fence, 0, "x"));
    let all = futures_util::future::join(futures_util::future::join_all(neighbours), scene.fails(endless));
    let (neighbours, failure) = all.await;
    assert_eq!(failure.code, code::TRANSACTION_TIMEOUT);
    assert!(neighbours.iter().all(Result::is_ok), "{neighbours:?}");
}

#[tokio::test]
async fn a_conflict_clause_that_rolls_back_everything_fails_only_its_own_transaction() {
    let scene = Scene::begin(PATIENT).await;
    let body = |tx: Tx| async move {
        tx.execute("INSERT INTO mine (note) VALUES ('x')", params![]).await?;
        // Swallowed: there is no transaction any more, and nobody may write outside of one.
        let _ = tx.execute("INSERT OR ROLLBACK INTO mine (note) VALUES ('x')", params![]).await;
        let _ = tx.execute("INSERT INTO mine (note) VALUES ('outside')", params![]).await;
        Ok(vec![record("x")])
    };
    let failure = rolled_back(scene.store.transact(scene.transact(body)).await, "OR ROLLBACK");
    assert_eq!(failure.code, code::SQL_ERROR);
    assert_eq!(scene.rows(), 0);
    append(&*scene.store, "a", scene.fence, 0, "next").await.unwrap();
}

#[tokio::test]
async fn a_constraint_that_is_checked_at_the_end_fails_the_transaction_and_not_its_neighbours() {
    let scene = Scene::begin(PATIENT).await;
    let fence = create_owned(&*scene.store, "b", scene.lease).await;
    let orphan = scene.sending("INSERT INTO child VALUES (77)");
    let both = futures_util::future::join(scene.store.transact(orphan), append(&*scene.store, "b", fence, 0, "x"));
    let (orphan, neighbour) = both.await;
    let failure = rolled_back(orphan, "an orphan");
    assert!(failure.message.contains("FOREIGN KEY"), "{failure}");
    assert!(neighbour.is_ok(), "{neighbour:?}");
    assert_eq!(scene.rows(), 0);
}

#[tokio::test]
async fn a_transaction_nobody_waits_for_any_more_ends_by_itself() {
    let scene = Scene::begin(PATIENT).await;
    {
        let mut call = scene.store.transact(scene.sending("SELECT 1"));
        // Polled once, so that the writer has it.
        assert!(futures_util::poll!(&mut call).is_pending());
    }
    // Whatever is asked now comes after it.
    let refused = append(&*scene.store, "a", scene.fence, 0, "x").await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict { .. }), "{refused:?}");
    assert_eq!(scene.rows(), 1);
}

/// However many authors want the writer, a lease is renewed in between.
#[tokio::test(flavor = "multi_thread")]
async fn many_transactions_do_not_keep_a_lease_from_being_renewed() {
    let scene = Scene::begin(PATIENT).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let slow = scene.transact(move |tx| {
        let counted = Arc::clone(&counted);
        async move {
            let count =
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT max(i) FROM n";
            tx.query(count, params![]).await?;
            counted.fetch_add(1, Ordering::SeqCst);
            Err(Failure::new("never", "so that the run stays where it is"))
        }
    });
    let authors: Vec<_> = (0..40).map(|_| scene.store.transact(slow.clone())).collect();
    let authors = futures_util::future::join_all(authors);
    let renewed = async {
        scene.store.renew(scene.lease, Duration::from_secs(60)).await.unwrap();
        ran.load(Ordering::SeqCst)
    };
    // All transactions are asked for first.
    let (answers, before) = futures_util::future::join(authors, renewed).await;
    assert_eq!((answers.len(), ran.load(Ordering::SeqCst)), (40, 40));
    assert!(before <= 10, "{before} of 40 transactions came before the renewal");
}
