//! The server dies in the middle and comes back: what was acknowledged is there, and the store goes on by itself.

use std::sync::Arc;

use outlast_core::id::Fence;
use outlast_store::{CommitError, PostgresStore, Resolution, Store, StoreError};
use tokio::sync::watch;

use super::scene::{PATIENCE, Schema, append, create_owned, events, register};
use super::server::Server;

const COMMITTERS: usize = 16;
const KILLS: usize = 3;

/// Commits until told to stop; gives how many commits were acknowledged or resolved as applied.
async fn commit_until(store: Arc<PostgresStore>, id: String, fence: Fence, mut stop: watch::Receiver<bool>) -> u64 {
    let mut next = 0;
    while !*stop.borrow_and_update() {
        match append(&*store, &id, fence, next, "x").await {
            Ok(_) => next += 1,
            Err(CommitError::Unknown(txn)) => {
                next += u64::from(resolve(&store, txn).await == Resolution::Applied);
            }
            Err(CommitError::NotApplied(StoreError::Unavailable { .. })) => tokio::task::yield_now().await,
            Err(other) => panic!("{id}: {other}"),
        }
    }
    next
}

async fn resolve(store: &PostgresStore, txn: outlast_core::id::TxnId) -> Resolution {
    loop {
        match store.resolve(txn).await {
            Ok(resolution) => return resolution,
            Err(StoreError::Unavailable { .. }) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_and_started_again_it_has_every_acknowledged_commit_and_no_other() {
    let server = Arc::new(Server::started(&[], ""));
    let schema = Schema::at(&server.url());
    let store = Arc::new(schema.connect().await);
    let lease = register(&*store).await;
    let (stop, stopped) = watch::channel(false);
    let mut committers = Vec::new();
    for number in 0..COMMITTERS {
        let id = format!("run-{number}");
        let fence = create_owned(&*store, &id, lease).await;
        committers.push(tokio::spawn(commit_until(Arc::clone(&store), id, fence, stopped.clone())));
    }
    for round in 1..=KILLS {
        progress(&store, round * 5).await;
        let server = Arc::clone(&server);
        tokio::task::spawn_blocking(move || {
            server.kill();
            server.start();
        })
        .await
        .unwrap();
    }
    progress(&store, KILLS * 5 + 5).await;
    stop.send(true).unwrap();
    for (number, committer) in committers.into_iter().enumerate() {
        let acknowledged = tokio::time::timeout(PATIENCE, committer).await.unwrap().unwrap();
        let id = format!("run-{number}");
        assert_eq!(events(&*store, &id).await as u64, acknowledged, "{id}");
    }
    drop(store);
    schema.end().await;
}

/// Waits until the first run has so many events. The store is never opened again.
async fn progress(store: &PostgresStore, length: usize) {
    let grown = async {
        loop {
            match super::scene::load(store, "run-0").await {
                Ok(loaded) if loaded.events.len() >= length => return,
                Ok(_) | Err(StoreError::Unavailable { .. }) => tokio::task::yield_now().await,
                Err(other) => panic!("{other}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, grown).await.expect("the store never went on");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_server_is_away_every_call_says_so_and_none_hangs() {
    let server = Server::started(&[], "");
    let schema = Schema::at(&server.url());
    let store = schema.connect().await;
    let lease = register(&store).await;
    let fence = create_owned(&store, "a", lease).await;
    server.kill();
    let away = |error: &StoreError| matches!(error, StoreError::Unavailable { .. });
    for _ in 0..20 {
        match append(&store, "a", fence, 0, "x").await {
            Err(CommitError::NotApplied(error)) => assert!(away(&error), "{error}"),
            Err(CommitError::Unknown(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(away(&store.sweep(1).await.unwrap_err()));
    assert!(away(&store.claim(super::scene::claim(lease, 1, 1)).await.unwrap_err()));
    assert!(away(&super::scene::load(&store, "a").await.unwrap_err()));
    server.start();
    append(&store, "a", fence, 0, "x").await.unwrap();
    assert_eq!(events(&store, "a").await, 1);
    drop(store);
    schema.end().await;
}
