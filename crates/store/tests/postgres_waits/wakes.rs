//! Wakes and claims that meet: a claim never waits, and no wake is lost.
//!
//! Somebody who locks the table of runs in share mode lets a transaction lock its rows but not write them: so the
//! store's own transactions are held in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_store::{Delivered, PostgresStore, Store, StoreError};
use tokio::task::JoinHandle;

use super::requests::{
    claim, claim_all, create_owned, create_ready, create_suspended, load, register, run, signal, suspend,
};
use super::scene::Scene;

const HOLD_WRITERS: &str = "BEGIN; LOCK TABLE run IN SHARE MODE";

fn deliver(store: &PostgresStore, id: &'static str) -> JoinHandle<Result<Delivered, StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { store.deliver(vec![signal(id, "d-1")]).await.remove(0) })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_left_while_another_transaction_holds_the_run_waits_for_it_and_is_not_lost() {
    let scene = Scene::new();
    let store = scene.open().await;
    let lease = register(&store).await;
    create_suspended(&store, "suspended", lease).await;
    create_ready(&store, "ready").await;
    create_ready(&store, "free").await;
    let raw = scene.raw().await;
    raw.run("BEGIN; SELECT 1 FROM run WHERE id IN ('suspended', 'ready') FOR UPDATE").await;

    assert_eq!(claim_all(&store, lease, 2).await, vec![run("free")], "a locked run is skipped, not waited for");
    let delivered = [deliver(&store, "suspended"), deliver(&store, "ready")];
    scene.blocked(1).await;
    assert_eq!(claim_all(&store, lease, 3).await, vec![]);

    raw.run("COMMIT").await;
    for delivered in delivered {
        assert_eq!(delivered.await.unwrap(), Ok(Delivered::Buffered));
    }
    let mut claimed = claim_all(&store, lease, 4).await;
    claimed.sort();
    assert_eq!(claimed, vec![run("ready"), run("suspended")]);
    for id in ["ready", "suspended"] {
        assert_eq!(load(&store, id).await.unwrap().inbox.len(), 1, "{id}");
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_that_comes_while_its_run_is_being_claimed_is_seen_by_the_new_owner() {
    let scene = Scene::new();
    let store = scene.open().await;
    let lease = register(&store).await;
    create_ready(&store, "a").await;
    let raw = scene.raw().await;
    raw.run(HOLD_WRITERS).await;
    let claiming = tokio::spawn({
        let store = store.clone();
        async move { claim_all(&store, lease, 2).await }
    });
    scene.blocked(1).await;
    let delivered = deliver(&store, "a");
    scene.blocked(2).await;

    raw.run("COMMIT").await;
    assert_eq!(claiming.await.unwrap(), vec![run("a")]);
    assert_eq!(delivered.await.unwrap(), Ok(Delivered::Buffered));
    assert_eq!(store.wakes(lease, 10).await.unwrap(), vec![run("a")]);
    assert_eq!(load(&store, "a").await.unwrap().inbox.len(), 1);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_that_comes_while_its_run_is_being_suspended_makes_it_ready_again() {
    let scene = Scene::new();
    let store = scene.open().await;
    let lease = register(&store).await;
    let fence = create_owned(&store, "a", lease).await;
    let raw = scene.raw().await;
    raw.run(HOLD_WRITERS).await;
    let suspending = tokio::spawn({
        let store = store.clone();
        async move { suspend(&store, "a", fence, 0).await }
    });
    scene.blocked(1).await;
    let delivered = deliver(&store, "a");
    scene.blocked(2).await;

    raw.run("COMMIT").await;
    suspending.await.unwrap().unwrap();
    assert_eq!(delivered.await.unwrap(), Ok(Delivered::Buffered));
    assert_eq!(claim_all(&store, lease, 2).await, vec![run("a")]);
    assert_eq!(load(&store, "a").await.unwrap().inbox.len(), 1);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_comes_while_a_wake_is_being_left_skips_the_run_and_takes_it_next_time() {
    for ready in [true, false] {
        let scene = Scene::new();
        let store = scene.open().await;
        let lease = register(&store).await;
        match ready {
            true => create_ready(&store, "a").await,
            false => create_suspended(&store, "a", lease).await,
        }
        let raw = scene.raw().await;
        raw.run(HOLD_WRITERS).await;
        let delivered = deliver(&store, "a");
        scene.blocked(1).await;
        assert_eq!(claim_all(&store, lease, 2).await, vec![], "ready: {ready}");

        raw.run("COMMIT").await;
        assert_eq!(delivered.await.unwrap(), Ok(Delivered::Buffered));
        assert_eq!(claim_all(&store, lease, 2).await, vec![run("a")], "ready: {ready}");
        assert_eq!(load(&store, "a").await.unwrap().inbox.len(), 1);
        scene.close().await;
    }
}

/// The same without holding anybody: two processes, one wakes and one drives, and whatever was left is seen in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_races_with_wakes_sees_the_last_of_them() {
    let scene = Scene::new();
    let (near, far) = (scene.open().await, scene.open().await);
    let lease = register(&near).await;
    create_suspended(&near, "a", lease).await;
    let total = 200;
    let done = Arc::new(AtomicBool::new(false));
    let waking = tokio::spawn({
        let done = done.clone();
        async move {
            for delivery in 0..total {
                far.deliver(vec![signal("a", &format!("d-{delivery}"))]).await.remove(0).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        }
    });
    let (mut seen, mut turns) = (0, 0);
    for id in 2.. {
        // Asked before claiming: what was left before this is claimable now, if it is not lost.
        let last = done.load(Ordering::SeqCst);
        let claimed = near.claim(claim(lease, id, 1)).await.unwrap().pop();
        match claimed {
            Some(claimed) => {
                seen = load(&near, "a").await.unwrap().inbox.len();
                suspend(&near, "a", claimed.fence, claimed.next.0).await.unwrap();
                turns += 1;
            }
            None if last => break,
            None => {}
        }
    }
    waking.await.unwrap();
    assert_eq!(seen, total, "after {turns} turns the run is not woken, but it has not seen everything");
    assert!(turns > 1, "there was no race");
    scene.close().await;
}
