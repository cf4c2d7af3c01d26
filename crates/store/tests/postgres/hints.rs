//! Hints reach other stores; nothing but speed depends on them.

use outlast_store::{PostgresOptions, PostgresStore, Store};

use super::scene::{PATIENCE, Schema, claim, claim_ids, new_run, register};

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_new_run_is_hinted_at() {
    let schema = Schema::new();
    let options = || PostgresOptions { notify: true, ..schema.options() };
    let here = PostgresStore::connect(&schema.url, options()).await.unwrap();
    let there = PostgresStore::connect(&schema.url, options()).await.unwrap();
    let mut hints = there.hints().unwrap();
    // The first one says that somebody listens now.
    tokio::time::timeout(PATIENCE, hints.changed()).await.unwrap().unwrap();
    here.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    tokio::time::timeout(PATIENCE, hints.changed()).await.unwrap().unwrap();
    let lease = register(&there).await;
    assert_eq!(claim_ids(&there, claim(lease, 1, 10)).await, ["a"]);
    drop((here, there));
    schema.end().await;
}

#[tokio::test]
async fn without_them_there_is_nothing_to_listen_to_and_everything_works() {
    let schema = Schema::new();
    let store = schema.connect().await;
    assert!(store.hints().is_none());
    store.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    let lease = register(&store).await;
    assert_eq!(claim_ids(&store, claim(lease, 1, 10)).await, ["a"]);
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_dropped_closes_its_sessions() {
    let schema = Schema::new();
    let store =
        PostgresStore::connect(&schema.url, PostgresOptions { notify: true, ..schema.options() }).await.unwrap();
    store.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    drop(store);
    schema.until("SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", 0).await;
    schema.end().await;
}
