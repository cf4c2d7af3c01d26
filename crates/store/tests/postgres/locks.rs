//! Other sessions hold locks: nothing is lost, nothing is waited for that need not be, time is read after the wait.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::commit::{NewRun, Status};
use outlast_core::id::{LeaseId, NodeId};
use outlast_core::time::Timestamp;
use outlast_store::{Clock, Delivered, ManualClock, PostgresOptions, PostgresStore, Store, StoreError};

use super::scene::{Schema, append, claim, claim_ids, create_owned, new_run, register, run, signal};

async fn with_clock(schema: &Schema, clock: &ManualClock) -> Arc<PostgresStore> {
    let options = PostgresOptions { clock: Clock::Manual(clock.clone()), ..schema.options() };
    Arc::new(PostgresStore::connect(&schema.url, options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_left_while_another_transaction_claims_outlives_the_claim() {
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let lease = register(&*store).await;
    store.create(vec![new_run("a", None)]).await.remove(0).unwrap();

    // A claim in flight: it has taken the resume and not committed yet.
    let other = schema.raw().await;
    let number = i64::try_from(lease.0).unwrap();
    let claiming = "UPDATE run SET owner = $1, claim = 7, fence = 1, status = 1, ready_at = NULL WHERE id = 'a'";
    other.batch_execute("BEGIN").await.unwrap();
    other.execute(claiming, &[&number]).await.unwrap();

    let delivering = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.deliver(vec![signal("a", "d")]).await.remove(0) }
    });
    schema.blocked(1).await;
    other.batch_execute("COMMIT").await.unwrap();

    assert_eq!(delivering.await.unwrap(), Ok(Delivered::Buffered));
    assert_eq!(store.wakes(lease, 10).await.unwrap(), [run("a")], "the owner is told");
    let view = store.get(run("a")).await.unwrap();
    assert!(view.ready, "the resume left meanwhile is a new one");
    assert_eq!((view.owner, view.status), (Some(lease), Status::Running));
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_goes_around_rows_that_others_hold() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = register(&store).await;
    store.create(vec![NewRun { priority: 99, ..new_run("a", None) }, new_run("b", None)]).await;
    let other = schema.raw().await;
    other.batch_execute("BEGIN; SELECT 1 FROM run WHERE id = 'a' FOR UPDATE").await.unwrap();
    assert_eq!(claim_ids(&store, claim(lease, 1, 10)).await, ["b"]);
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(claim_ids(&store, claim(lease, 2, 10)).await, ["a"]);
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_claimers_at_once_never_take_the_same_run() {
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let runs = (0..200).map(|number| new_run(&format!("run-{number}"), None)).collect();
    store.create(runs).await;
    let mut claimers = Vec::new();
    for number in 0..8_u64 {
        let store = Arc::clone(&store);
        claimers.push(tokio::spawn(async move {
            let node = NodeId::new(format!("node-{number}")).unwrap();
            let lease = store.register(node, Duration::from_secs(3_600)).await.unwrap().id;
            let mut taken = Vec::new();
            for id in 0..20 {
                taken.extend(claim_ids(&*store, claim(lease, id, 7)).await);
            }
            taken
        }));
    }
    let mut taken = Vec::new();
    for claimer in claimers {
        taken.extend(claimer.await.unwrap());
    }
    let all = taken.len();
    taken.sort();
    taken.dedup();
    assert_eq!((taken.len(), all), (200, 200));
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_waited_for_a_lock_begins_after_the_wait() {
    let schema = Schema::new();
    let clock = ManualClock::at(1_000);
    let store = with_clock(&schema, &clock).await;
    let node = NodeId::new("n").unwrap();
    store.register(node.clone(), Duration::from_millis(100)).await.unwrap();

    let other = schema.raw().await;
    other.batch_execute("BEGIN; SELECT 1 FROM lease FOR UPDATE").await.unwrap();
    let registering = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.register(node, Duration::from_millis(100)).await }
    });
    schema.blocked(1).await;
    clock.set(50_000);
    other.batch_execute("COMMIT").await.unwrap();

    let lease = registering.await.unwrap().unwrap();
    assert_eq!((lease.now, lease.until), (Timestamp::from_millis(50_000), Timestamp::from_millis(50_100)));
    assert_eq!(lease.id, LeaseId(2));
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_servers_own_clock_too_a_lease_is_not_born_expired() {
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let node = NodeId::new("n").unwrap();
    store.register(node.clone(), Duration::from_millis(20)).await.unwrap();
    let other = schema.raw().await;
    other.batch_execute("BEGIN; SELECT 1 FROM lease FOR UPDATE").await.unwrap();
    let registering = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.register(node, Duration::from_millis(20)).await }
    });
    schema.blocked(1).await;
    // The server's clock cannot be moved; it has to pass.
    other.batch_execute("SELECT pg_sleep(0.05); COMMIT").await.unwrap();
    let lease = registering.await.unwrap().unwrap();
    assert_eq!(lease.until, lease.now + Duration::from_millis(20));
    let last = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let now: i64 = other.query_one(last, &[]).await.unwrap().get(0);
    assert!(now - lease.now.as_millis() < 10_000, "read at the end of the wait, not at its beginning");
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_lapsed_while_its_renewal_waited_is_not_renewed() {
    let schema = Schema::new();
    let clock = ManualClock::at(0);
    let store = with_clock(&schema, &clock).await;
    let lease = store.register(NodeId::new("n").unwrap(), Duration::from_millis(100)).await.unwrap().id;
    let other = schema.raw().await;
    other.batch_execute("BEGIN; SELECT 1 FROM lease FOR UPDATE").await.unwrap();
    let renewing = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.renew(lease, Duration::from_millis(100)).await }
    });
    schema.blocked(1).await;
    clock.set(100);
    other.batch_execute("COMMIT").await.unwrap();
    let until = Timestamp::from_millis(100);
    assert_eq!(renewing.await.unwrap(), Err(StoreError::LeaseLapsed { lease, until }));
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_registrations_of_one_node_at_once_leave_one_live_lease() {
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let registering = (0..8).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(
            async move { store.register(NodeId::new("n").unwrap(), Duration::from_secs(60)).await.unwrap().id },
        )
    });
    let mut leases = Vec::new();
    for lease in registering.collect::<Vec<_>>() {
        leases.push(lease.await.unwrap());
    }
    let newest = leases.iter().max().copied();
    for lease in leases {
        assert_eq!(store.renew(lease, Duration::from_secs(60)).await.is_ok(), Some(lease) == newest, "{lease}");
    }
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_lock_each_other_out_are_repeated_until_both_are_done() {
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let lease = register(&*store).await;
    let fence = create_owned(&*store, "b", lease).await;
    create_owned(&*store, "a", lease).await;
    // The other session locks b, then wants a; ours locks a, then wants b.
    let other = schema.raw().await;
    other
        .batch_execute("BEGIN; SET LOCAL deadlock_timeout = '1h'; SELECT 1 FROM run WHERE id = 'b' FOR UPDATE")
        .await
        .unwrap();
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let delivered = store.deliver(vec![signal("a", "d"), signal("b", "d")]).await;
            (delivered, append(&*store, "b", fence, 0, "x").await)
        }
    });
    schema.blocked(1).await;
    other.batch_execute("SELECT 1 FROM run WHERE id = 'a' FOR UPDATE").await.unwrap();
    other.batch_execute("COMMIT").await.unwrap();
    let (delivered, appended) = writing.await.unwrap();
    assert_eq!(delivered, [Ok(Delivered::Buffered), Ok(Delivered::Buffered)]);
    appended.unwrap();
    schema.end().await;
}
