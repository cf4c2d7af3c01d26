//! A lease counts from after the wait for its lock, whoever held it and for however long.

use std::time::Duration;

use outlast_core::id::NodeId;
use outlast_core::time::Timestamp;
use outlast_store::{Lease, ManualClock, PostgresStore, Store, StoreError};
use tokio::task::JoinHandle;

use super::requests::node;
use super::scene::{Raw, Scene, until};

const LEASE: Duration = Duration::from_millis(100);

/// All the ways in which somebody may be in the way.
const HELD: [&str; 8] = [
    "SELECT 1 FROM node FOR UPDATE; SELECT 1 FROM lease FOR UPDATE",
    "SELECT 1 FROM lease FOR UPDATE",
    "LOCK TABLE node IN ACCESS EXCLUSIVE MODE; LOCK TABLE lease IN ACCESS EXCLUSIVE MODE",
    "LOCK TABLE lease IN ACCESS EXCLUSIVE MODE",
    "LOCK TABLE lease IN EXCLUSIVE MODE",
    // As while an index is built: rows can be locked, but not written.
    "LOCK TABLE lease IN SHARE MODE",
    "LOCK TABLE lease IN SHARE ROW EXCLUSIVE MODE",
    "LOCK TABLE node IN SHARE MODE; LOCK TABLE lease IN SHARE MODE",
];

fn registering(store: &PostgresStore) -> JoinHandle<Result<Lease, StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { store.register(node(), LEASE).await })
}

fn renewing(store: &PostgresStore, lease: &Lease) -> JoinHandle<Result<Lease, StoreError>> {
    let (store, lease) = (store.clone(), lease.id);
    tokio::spawn(async move { store.renew(lease, LEASE).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_taken_while_somebody_holds_its_locks_is_not_born_expired() {
    let scene = Scene::new();
    let clock = ManualClock::at(0);
    let store = scene.open_with_clock(&clock).await;
    store.register(node(), LEASE).await.unwrap();
    for held in HELD {
        let raw = scene.raw().await;
        raw.run(&format!("BEGIN; {held}")).await;
        let waiting = registering(&store);
        scene.blocked(1).await;
        clock.advance(1_000);
        let after = clock.now();
        raw.run("COMMIT").await;
        let lease = waiting.await.unwrap().unwrap();
        assert_eq!((lease.now, lease.until), (after, after + LEASE), "{held}");
        store.renew(lease.id, LEASE).await.unwrap();
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_renewed_while_somebody_holds_its_locks_counts_from_after_the_wait() {
    let scene = Scene::new();
    let clock = ManualClock::at(0);
    let store = scene.open_with_clock(&clock).await;
    for held in HELD {
        let lease = store.register(node(), Duration::from_secs(10)).await.unwrap();
        let raw = scene.raw().await;
        raw.run(&format!("BEGIN; {held}")).await;
        let waiting = renewing(&store, &lease);
        scene.blocked(1).await;
        clock.advance(1_000);
        let after = clock.now();
        raw.run("COMMIT").await;
        let renewed = waiting.await.unwrap().unwrap();
        assert_eq!((renewed.now, renewed.until), (after, after + LEASE), "{held}");
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_lapses_while_its_renewal_waits_is_over() {
    let scene = Scene::new();
    let clock = ManualClock::at(0);
    let store = scene.open_with_clock(&clock).await;
    for held in HELD {
        let lease = store.register(node(), LEASE).await.unwrap();
        let raw = scene.raw().await;
        raw.run(&format!("BEGIN; {held}")).await;
        let waiting = renewing(&store, &lease);
        scene.blocked(1).await;
        // To the instant: a lease is over from its end on.
        clock.set(lease.until.as_millis());
        raw.run("COMMIT").await;
        let lapsed = StoreError::LeaseLapsed { lease: lease.id, until: lease.until };
        assert_eq!(waiting.await.unwrap(), Err(lapsed), "{held}");
        let kept: i64 = raw.one(&format!("SELECT until FROM lease WHERE id = {}", lease.id.0)).await;
        assert_eq!(Timestamp::from_millis(kept), lease.until, "{held}");
    }
    scene.close().await;
}

/// The manual clock is read when the answer comes; the server's is read in the middle of the transaction.
#[tokio::test(flavor = "multi_thread")]
async fn by_the_servers_clock_too_a_lease_counts_from_after_the_wait() {
    let scene = Scene::new();
    let store = scene.open().await;
    store.register(node(), LEASE).await.unwrap();
    for held in HELD {
        let other = NodeId::new("other").unwrap();
        let lease = store.register(other, Duration::from_secs(3_600)).await.unwrap();
        let raw = scene.raw().await;
        raw.run(&format!("BEGIN; {held}")).await;
        let waiting = [renewing(&store, &lease), registering(&store)];
        scene.blocked(2).await;
        let blocked = server_time(&raw).await;
        until("the server's clock goes on", async || server_time(&raw).await > blocked + 10).await;
        let after = Timestamp::from_millis(server_time(&raw).await);
        raw.run("COMMIT").await;
        for waiting in waiting {
            let lease = waiting.await.unwrap().unwrap();
            assert!(lease.now >= after && lease.until == lease.now + LEASE, "{held}: {lease:?}");
        }
    }
    scene.close().await;
}

async fn server_time(raw: &Raw) -> i64 {
    raw.one("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint").await
}
