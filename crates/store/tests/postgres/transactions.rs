//! What only PostgreSQL's transactions have: a connection of their own, races, lost replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outlast_core::commit::Commit;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Fence, Index, LeaseId, NodeId, TxnId};
use outlast_core::record::Record;
use outlast_store::{
    Claim, CommitError, Delivered, Pick, PostgresOptions, PostgresStore, Resolution, Store, Transact, Transacted, Tx,
    TxError, params,
};
use tokio::sync::Notify;
use tokio_postgres::Client;

use super::proxy::{Plan, Proxy};
use super::scene::{PATIENCE, Schema, append, claim, create_owned, events, record, register, run, signal, url};

struct Scene {
    schema: Schema,
    store: Arc<PostgresStore>,
    /// A session of the author's own.
    author: Client,
    lease: LeaseId,
    fence: Fence,
}

impl Scene {
    async fn begin() -> Scene {
        Scene::with(|options| options).await
    }

    async fn with(change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> Scene {
        let schema = Schema::new();
        let options = change(PostgresOptions { transactions: 1, ..schema.options() });
        let store = Arc::new(PostgresStore::connect(&schema.url, options).await.unwrap());
        let author = schema.raw().await;
        author.batch_execute("CREATE TABLE mine (note TEXT); CREATE SEQUENCE tries").await.unwrap();
        let lease = register(&*store).await;
        let fence = create_owned(&*store, "a", lease).await;
        Scene { schema, store, author, lease, fence }
    }

    fn transact<Fut>(&self, body: impl Fn(Tx) -> Fut + Send + Sync + 'static) -> Transact
    where
        Fut: Future<Output = Result<Vec<Record>, Failure>> + Send + 'static,
    {
        self.transact_at(0, body)
    }

    fn transact_at<Fut>(&self, index: u64, body: impl Fn(Tx) -> Fut + Send + Sync + 'static) -> Transact
    where
        Fut: Future<Output = Result<Vec<Record>, Failure>> + Send + 'static,
    {
        Transact {
            commit: Commit::new(run("a"), self.fence, Index(index)),
            body: Arc::new(move |tx| Box::pin(body(tx))),
            idempotency_key: "key".to_owned(),
            attempt: 1,
        }
    }

    /// A statement about the author's table, which is in the schema of the story.
    fn enter(&self) -> String {
        format!("INSERT INTO {}.mine VALUES ($1)", self.schema.name)
    }

    /// Sends statements, one after the other.
    fn sending(&self, statements: Vec<String>) -> Transact {
        self.transact(move |tx| {
            let statements = statements.clone();
            async move {
                for sql in statements {
                    tx.query(sql, params![]).await?;
                }
                Ok(vec![record("x")])
            }
        })
    }

    async fn rows(&self) -> i64 {
        self.author.query_one("SELECT count(*) FROM mine", &[]).await.unwrap().get(0)
    }

    async fn end(self) {
        drop((self.store, self.author));
        self.schema.end().await;
    }
}

fn committed(answer: &Result<Transacted, CommitError>) -> bool {
    matches!(answer, Ok(Transacted::Committed(_)))
}

fn rolled_back(answer: Result<Transacted, CommitError>) -> Failure {
    match answer {
        Ok(Transacted::RolledBack(failure)) => failure,
        other => panic!("it is rolled back: {other:?}"),
    }
}

/// Raises an error of this class the first so many times. A sequence is not rolled back.
async fn losing_races(scene: &Scene, errcode: &str, times: u32) -> String {
    let name = &scene.schema.name;
    let function = format!(
        "CREATE FUNCTION {name}.race() RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
         IF nextval('{name}.tries') <= {times} THEN RAISE EXCEPTION 'lost' USING ERRCODE = '{errcode}'; END IF; END $$"
    );
    scene.author.batch_execute(&function).await.unwrap();
    format!("SELECT {name}.race()")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_loses_a_race_is_run_again() {
    for errcode in ["40001", "40P01"] {
        let scene = Scene::begin().await;
        let race = losing_races(&scene, errcode, 3).await;
        let (enter, ran) = (scene.enter(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&ran);
        let transact = scene.transact(move |tx| {
            let (enter, race) = (enter.clone(), race.clone());
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                tx.execute(enter, params!["once"]).await?;
                tx.query(race, params![]).await?;
                Ok(vec![record("x")])
            }
        });
        assert!(committed(&scene.store.transact(transact).await));
        assert_eq!((ran.load(Ordering::SeqCst), scene.rows().await), (4, 1));
        assert_eq!(events(&*scene.store, "a").await, 1);
        scene.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_loses_every_race_fails_like_any_other() {
    let scene = Scene::begin().await;
    let race = losing_races(&scene, "40001", 1_000).await;
    let failure = rolled_back(scene.store.transact(scene.sending(vec![race])).await);
    assert_eq!((failure.code.as_str(), failure.permanent), (code::SQL_ERROR, false), "{failure}");
    scene.end().await;
}

/// What an author changes about the session is gone for the next one, and does not lead our own statements astray.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_about_the_session_outlives_a_transaction() {
    let scene = Scene::begin().await;
    let changes = [
        "SELECT set_config('work_mem', '123kB', false)",
        "SELECT set_config('search_path', 'pg_catalog', false)",
        "SELECT set_config('default_transaction_read_only', 'on', false)",
        "SELECT pg_advisory_lock(77)",
        "CREATE TEMP TABLE left_over (n INT)",
        "CREATE TEMP TABLE run (n INT)",
    ];
    let answer = scene.store.transact(scene.sending(changes.map(str::to_owned).to_vec())).await;
    assert!(committed(&answer), "{answer:?}");
    let seen = scene.transact_at(1, |tx| async move {
        let row = tx
            .query_one(
                "SELECT current_setting('work_mem'), current_setting('search_path'), to_regclass('pg_temp.left_over') IS NULL",
                params![],
            )
            .await?;
        assert_ne!(row.get::<String>(0)?, "123kB");
        assert!(row.get::<String>(1)?.contains("public"), "an author's tables are found where they always are");
        assert!(row.get::<bool>(2)?, "temporary tables are gone");
        assert_eq!(tx.query_one("SHOW enable_seqscan", params![]).await?.get::<String>(0)?, "on");
        Ok(vec![record("x")])
    });
    let answer = scene.store.transact(seen).await;
    assert!(committed(&answer), "{answer:?}");
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND $1 <> ''";
    scene.schema.until(locks, 0).await;
    assert_eq!(events(&*scene.store, "a").await, 2);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_takes_too_long_is_stopped_and_may_be_retried() {
    let limit = Duration::from_millis(300);
    let scene = Scene::with(|options| PostgresOptions { statement_timeout: limit, ..options }).await;
    let failure = rolled_back(scene.store.transact(scene.sending(vec!["SELECT pg_sleep(60)".to_owned()])).await);
    assert_eq!((failure.code.as_str(), failure.permanent), (code::TRANSACTION_TIMEOUT, false), "{failure}");
    let waits = scene.transact(|_| std::future::pending());
    assert_eq!(rolled_back(scene.store.transact(waits).await).code, code::TRANSACTION_TIMEOUT);
    assert!(committed(&scene.store.transact(scene.sending(vec!["SELECT 1".to_owned()])).await), "the store goes on");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_constraint_that_is_checked_at_the_end_fails_the_transaction() {
    let scene = Scene::begin().await;
    let name = &scene.schema.name;
    let tables = "CREATE TABLE parent (id INT PRIMARY KEY); \
                  CREATE TABLE child (parent INT REFERENCES parent DEFERRABLE INITIALLY DEFERRED)";
    scene.author.batch_execute(tables).await.unwrap();
    let orphan = format!("INSERT INTO {name}.child VALUES (77)");
    let failure = rolled_back(scene.store.transact(scene.sending(vec![orphan])).await);
    assert!(failure.code == code::SQL_ERROR && failure.message.contains("child_parent_fkey"), "{failure}");
    assert_eq!(events(&*scene.store, "a").await, 0);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_columns_of_other_types_say_how_to_cast_them() {
    let scene = Scene::begin().await;
    let body = |tx: Tx| async move {
        let row = tx.query_one(
            "SELECT $1::jsonb, $2::uuid, $3::float8, 7::smallint",
            params![r#"{"a": 1}"#, "6f9619ff-8b86-d011-b42d-00c04fc964ff", 3],
        );
        let row = row.await?;
        assert_eq!(row.get::<String>(0)?, r#"{"a": 1}"#);
        assert_eq!(row.get::<String>(1)?, "6f9619ff-8b86-d011-b42d-00c04fc964ff");
        assert_eq!((row.get::<f64>(2)?, row.get::<i64>(3)?), (3.0, 7));
        tx.query("SELECT $1::text::timestamptz", params!["2026-01-01"]).await.unwrap_err();
        Ok(vec![record("x")])
    };
    let failure = rolled_back(scene.store.transact(scene.transact(body)).await);
    assert_eq!(failure.code, code::SQL_TYPE, "a column that is not read here: {failure}");
    assert!(failure.message.contains("timestamptz") && failure.message.contains("cast"), "{failure}");
    let body = |tx: Tx| async move {
        let refused = tx.query("SELECT $1::timestamptz", params!["2026-01-01"]).await.unwrap_err();
        assert!(matches!(refused, TxError::Parameter { place: 1, .. }), "{refused:?}");
        Err(refused.into())
    };
    let failure = rolled_back(scene.store.transact(scene.transact(body)).await);
    assert!(failure.message.contains("$1::text::timestamptz"), "{failure}");
    scene.end().await;
}

/// Somebody takes the run over while the body runs: everything it did is undone. Meanwhile nobody waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_is_found_out_at_the_end_and_holds_nobody_up() {
    let scene = Scene::begin().await;
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes_on, enter) = (Arc::clone(&begun), Arc::clone(&go_on), scene.enter());
    let transact = scene.transact(move |tx| {
        let (begun, go_on, enter) = (Arc::clone(&begins), Arc::clone(&goes_on), enter.clone());
        async move {
            tx.execute(enter, params!["zombie"]).await?;
            begun.notify_one();
            go_on.notified().await;
            Ok(vec![record("zombie")])
        }
    });
    let store = Arc::clone(&scene.store);
    let zombie = tokio::spawn(async move { store.transact(transact).await });
    tokio::time::timeout(PATIENCE, begun.notified()).await.unwrap();
    // A signal for the run does not wait for the author's statements.
    let delivered = tokio::time::timeout(PATIENCE, scene.store.deliver(vec![signal("a", "d")])).await.unwrap();
    assert_eq!(delivered, [Ok(Delivered::Buffered)]);
    let heir = scene.store.register(NodeId::new("heir").unwrap(), PATIENCE).await.unwrap().id;
    let seized = scene.store.claim(Claim { pick: Pick::Seize(run("a")), ..claim(heir, 7, 1) }).await.unwrap();
    append(&*scene.store, "a", seized[0].fence, 0, "heir").await.unwrap();
    go_on.notify_one();
    let refused = tokio::time::timeout(PATIENCE, zombie).await.unwrap().unwrap().unwrap_err();
    assert_eq!(refused, CommitError::Fenced { held: scene.fence, current: seized[0].fence });
    assert_eq!((scene.rows().await, events(&*scene.store, "a").await), (0, 1));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_nobody_waits_for_any_more_ends_by_itself() {
    let scene = Scene::begin().await;
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes_on, enter) = (Arc::clone(&begun), Arc::clone(&go_on), scene.enter());
    let transact = scene.transact(move |tx| {
        let (begun, go_on, enter) = (Arc::clone(&begins), Arc::clone(&goes_on), enter.clone());
        async move {
            begun.notify_one();
            go_on.notified().await;
            tx.execute(enter, params!["kept"]).await?;
            Ok(vec![record("kept")])
        }
    });
    let store = Arc::clone(&scene.store);
    let call = tokio::spawn(async move { store.transact(transact).await });
    tokio::time::timeout(PATIENCE, begun.notified()).await.unwrap();
    call.abort();
    go_on.notify_one();
    let kept = "SELECT count(*) FROM mine WHERE $1 <> ''";
    scene.schema.until(kept, 1).await;
    assert_eq!(events(&*scene.store, "a").await, 1);
    scene.end().await;
}

/// A store behind a proxy.
struct Through {
    scene: Scene,
    proxy: Proxy,
    store: PostgresStore,
}

impl Through {
    async fn begin() -> Through {
        let scene = Scene::begin().await;
        let server: tokio_postgres::Config = url().parse().unwrap();
        let port = server.get_ports()[0];
        let proxy = Proxy::start(format!("127.0.0.1:{port}").parse().unwrap()).await;
        let through = scene.schema.url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port));
        let options = PostgresOptions { transactions: 1, ..scene.schema.options() };
        let store = PostgresStore::connect(&through, options).await.unwrap();
        Through { scene, proxy, store }
    }

    async fn entering(&self) -> Result<Transacted, CommitError> {
        let enter = self.scene.enter();
        let transact = self.scene.transact(move |tx| {
            let enter = enter.clone();
            async move {
                tx.execute(enter, params!["x"]).await?;
                Ok(vec![record("x")])
            }
        });
        self.store.transact(transact).await
    }

    async fn end(self) {
        assert!(self.proxy.is_idle(), "a trap was not sprung");
        drop(self.store);
        self.scene.end().await;
    }
}

fn unknown(answer: Result<Transacted, CommitError>) -> TxnId {
    match answer {
        Err(CommitError::Unknown(txn)) => txn,
        other => panic!("it should not be known: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_whose_reply_was_lost_is_unknown_and_resolves_to_applied() {
    let story = Through::begin().await;
    story.proxy.trap("COMMIT\0", Plan::SwallowReply);
    let txn = unknown(story.entering().await);
    assert_eq!(story.store.resolve(txn).await.unwrap(), Resolution::Applied);
    assert_eq!((story.scene.rows().await, events(&story.store, "a").await), (1, 1));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_whose_commit_never_arrived_is_unknown_and_resolves_to_not_applied() {
    let story = Through::begin().await;
    story.proxy.trap("COMMIT\0", Plan::Cut);
    let txn = unknown(story.entering().await);
    assert_eq!(story.store.resolve(txn).await.unwrap(), Resolution::NotApplied);
    assert_eq!((story.scene.rows().await, events(&story.store, "a").await), (0, 0));
    assert!(committed(&story.entering().await), "it may be sent again");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_in_the_middle_is_not_the_authors_fault() {
    let story = Through::begin().await;
    story.proxy.trap(".mine VALUES", Plan::Cut);
    match story.entering().await {
        Err(CommitError::NotApplied(error)) => assert!(error.is_retryable(), "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(committed(&story.entering().await), "it may be sent again");
    assert_eq!(story.scene.rows().await, 1);
    story.end().await;
}

/// Transactions have connections of their own: however many wait for the author's locks, commits go on.
#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_wait_for_each_other_do_not_hold_up_commits() {
    let scene = Scene::with(|options| PostgresOptions { connections: 2, transactions: 2, ..options }).await;
    let go_on = Arc::new(Notify::new());
    let mut calls = Vec::new();
    for n in 0..4 {
        let name = format!("t-{n}");
        let fence = create_owned(&*scene.store, &name, scene.lease).await;
        let (goes_on, enter) = (Arc::clone(&go_on), scene.enter());
        let transact = scene.transact(move |tx| {
            let (go_on, enter) = (Arc::clone(&goes_on), enter.clone());
            async move {
                tx.execute(enter, params!["x"]).await?;
                go_on.notified().await;
                Ok(vec![record("x")])
            }
        });
        let transact = Transact { commit: Commit::new(run(&name), fence, Index(0)), ..transact };
        let store = Arc::clone(&scene.store);
        calls.push(tokio::spawn(async move { store.transact(transact).await }));
    }
    for index in 0..5 {
        let appended = append(&*scene.store, "a", scene.fence, index, "x");
        tokio::time::timeout(PATIENCE, appended).await.unwrap().unwrap();
    }
    for _ in 0..4 {
        go_on.notify_one();
        tokio::task::yield_now().await;
    }
    for call in calls {
        go_on.notify_one();
        let ended = async {
            let mut call = call;
            loop {
                tokio::select! {
                    ended = &mut call => break ended.unwrap(),
                    () = tokio::task::yield_now() => go_on.notify_one(),
                }
            }
        };
        assert!(committed(&tokio::time::timeout(PATIENCE, ended).await.unwrap()));
    }
    assert_eq!(scene.rows().await, 4);
    scene.end().await;
}
