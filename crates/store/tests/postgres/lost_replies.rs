//! Connections that break around COMMIT: certainly not applied, or unknown and then resolved, never guessed.

use std::sync::Arc;

use outlast_core::commit::{Commit, Then};
use outlast_core::id::{Fence, Index, LeaseId, TxnId};
use outlast_store::{
    CommitError, Committed, Created, Delivered, PostgresOptions, PostgresStore, Resolution, Store, StoreError, Trouble,
};
use tokio::sync::oneshot;

use super::proxy::{Fate, Plan, Proxy};
use super::scene::{PATIENCE, Schema, append, create_owned, events, new_run, record, register, run, signal, url};

/// A store behind a proxy, and another one past it.
struct Story {
    schema: Schema,
    proxy: Proxy,
    store: Arc<PostgresStore>,
    direct: Arc<PostgresStore>,
    lease: LeaseId,
    fence: Fence,
}

impl Story {
    async fn begin() -> Story {
        let schema = Schema::new();
        let server: tokio_postgres::Config = url().parse().unwrap();
        let proxy = Proxy::start(format!("127.0.0.1:{}", server.get_ports()[0]).parse().unwrap()).await;
        let direct = Arc::new(schema.connect().await);
        let through = schema.url.replace(&format!(":{}/", server.get_ports()[0]), &format!(":{}/", proxy.port));
        assert_ne!(through, schema.url, "the URL has no port to replace");
        let options = PostgresOptions { lanes: 1, ..schema.options() };
        let store = Arc::new(PostgresStore::connect(&through, options).await.unwrap());
        let lease = register(&*direct).await;
        let fence = create_owned(&*direct, "a", lease).await;
        // Every statement has been prepared once, so that the next message with a text is the one that is meant.
        let mut story = Story { schema, proxy, store, direct, lease, fence };
        story.suspend(0).await.unwrap();
        story.own_again().await;
        append(&*story.store, "a", story.fence, 1, "x").await.unwrap();
        story
    }

    /// A commit that goes the long way: lock, decide, write.
    fn suspending(&self, at: u64) -> Commit {
        let commit = Commit::new(run("a"), self.fence, Index(at));
        Commit { events: vec![record("y")], then: Then::Suspend, ..commit }
    }

    async fn suspend(&self, at: u64) -> Result<Committed, CommitError> {
        self.store.commit(vec![self.suspending(at)]).await.remove(0)
    }

    async fn own_again(&mut self) {
        self.direct.deliver(vec![signal("a", &format!("wake-{}", self.fence))]).await.remove(0).unwrap();
        let id = self.fence.0 + 100;
        let claimed = self.direct.claim(super::scene::claim(self.lease, id, 1)).await.unwrap();
        self.fence = claimed[0].fence;
    }

    async fn end(self) {
        assert!(self.proxy.is_idle(), "a trap was not sprung");
        drop((self.store, self.direct));
        self.schema.end().await;
    }
}

fn unknown(answer: Result<Committed, CommitError>) -> TxnId {
    match answer {
        Err(CommitError::Unknown(txn)) => txn,
        other => panic!("it should not be known: {other:?}"),
    }
}

fn broken(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { trouble: Trouble::Connection, .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_before_anything_was_written_it_is_certainly_not_applied_and_may_be_repeated() {
    let story = Story::begin().await;
    story.proxy.trap("BEGIN\0", Plan::Cut);
    match story.suspend(2).await {
        Err(CommitError::NotApplied(error)) => assert!(broken(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(events(&*story.direct, "a").await, 2);
    story.suspend(2).await.unwrap();
    assert_eq!(events(&*story.store, "a").await, 3, "the store goes on by itself");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_the_server_never_saw_is_unknown_and_resolves_to_not_applied() {
    let story = Story::begin().await;
    story.proxy.trap("COMMIT\0", Plan::Cut);
    let txn = unknown(story.suspend(2).await);
    assert_eq!(story.direct.resolve(txn).await.unwrap(), Resolution::NotApplied);
    assert_eq!(events(&*story.direct, "a").await, 2);
    story.suspend(2).await.unwrap();
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_reply_was_lost_is_unknown_and_resolves_to_applied() {
    let story = Story::begin().await;
    story.proxy.trap("COMMIT\0", Plan::SwallowReply);
    let txn = unknown(story.suspend(2).await);
    assert_eq!(story.store.resolve(txn).await.unwrap(), Resolution::Applied);
    assert_eq!(story.store.resolve(txn).await.unwrap(), Resolution::Applied, "asking twice changes nothing");
    assert_eq!(events(&*story.direct, "a").await, 3);
    story.end().await;
}

/// The commit of one event is one message, and it carries the commit with it.
#[tokio::test(flavor = "multi_thread")]
async fn an_advance_is_resolved_both_ways_too() {
    let story = Story::begin().await;
    story.proxy.trap("needle-1", Plan::Cut);
    let txn = unknown(append(&*story.store, "a", story.fence, 2, "needle-1").await);
    assert_eq!(story.direct.resolve(txn).await.unwrap(), Resolution::NotApplied);
    assert_eq!(events(&*story.direct, "a").await, 2);

    // What executes the statement is the message after the one with the parameters.
    story.proxy.trap("needle-2", Plan::Cut);
    let txn = unknown(append(&*story.store, "a", story.fence, 2, "needle-2").await);
    assert_eq!(story.direct.resolve(txn).await.unwrap(), Resolution::NotApplied);
    append(&*story.store, "a", story.fence, 2, "z").await.unwrap();
    assert_eq!(events(&*story.direct, "a").await, 3);
    story.end().await;
}

async fn in_flight(fate: Fate, expected: Resolution, length: usize) {
    let story = Story::begin().await;
    let (decide, decided) = oneshot::channel();
    story.proxy.trap("COMMIT\0", Plan::Hold(decided));
    let txn = unknown(story.suspend(2).await);
    // Everything but the COMMIT has arrived.
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 \
                   AND state = 'idle in transaction' AND query LIKE 'INSERT INTO txn%'";
    story.schema.until(waiting, 1).await;
    let resolving = tokio::spawn({
        let direct = Arc::clone(&story.direct);
        async move { direct.resolve(txn).await }
    });
    story.schema.blocked(1).await;
    assert!(!resolving.is_finished(), "nobody can know yet");
    decide.send(fate).unwrap();
    let resolved = tokio::time::timeout(PATIENCE, resolving).await.unwrap().unwrap();
    assert_eq!(resolved.unwrap(), expected);
    assert_eq!(events(&*story.direct, "a").await, length);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resolving_waits_for_a_commit_in_flight_that_arrives() {
    in_flight(Fate::Forward, Resolution::Applied, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resolving_waits_for_a_commit_in_flight_that_never_arrives() {
    in_flight(Fate::Drop, Resolution::NotApplied, 2).await;
}

#[tokio::test]
async fn a_transaction_resolved_as_not_applied_cannot_happen_later() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let txn = TxnId(uuid::Uuid::now_v7());
    assert_eq!(store.resolve(txn).await.unwrap(), Resolution::NotApplied);
    let late = schema.raw().await.execute("INSERT INTO txn (id, applied) VALUES ($1, true)", &[&txn.0]).await;
    assert_eq!(late.unwrap_err().code(), Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION));
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_and_a_signal_whose_replies_were_lost_are_repeated_without_harm() {
    let story = Story::begin().await;
    story.proxy.trap("COMMIT\0", Plan::SwallowReply);
    let lost = story.store.create(vec![new_run("b", Some(story.lease))]).await.remove(0);
    assert!(broken(&lost.unwrap_err()));
    let again = story.store.create(vec![new_run("b", Some(story.lease))]).await.remove(0);
    assert!(matches!(again, Ok(Created::Created { fence: Fence(1), .. })), "its owner learns the fence: {again:?}");

    story.proxy.trap("COMMIT\0", Plan::SwallowReply);
    let lost = story.store.deliver(vec![signal("b", "d")]).await.remove(0);
    assert!(broken(&lost.unwrap_err()));
    assert_eq!(story.store.deliver(vec![signal("b", "d")]).await.remove(0), Ok(Delivered::Duplicate));
    story.end().await;
}
