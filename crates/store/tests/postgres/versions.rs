//! Versions, where many processes announce and park at once.

use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::id::{Version, WorkflowName};
use outlast_store::{Clock, ManualClock, PostgresOptions, PostgresStore, Store};

use super::scene::{Schema, new_run, run};

const GRACE: Duration = Duration::from_secs(300);

fn pair(workflow: u32) -> (WorkflowName, Version) {
    (WorkflowName::new(format!("w-{workflow}")).unwrap(), Version::new("1").unwrap())
}

async fn at(schema: &Schema, clock: &ManualClock) -> PostgresStore {
    let options = PostgresOptions { clock: Clock::Manual(clock.clone()), ..schema.options() };
    PostgresStore::connect(&schema.url, options).await.unwrap()
}

/// Whoever holds the row is about to claim it, or to end it: nobody waits for that.
#[tokio::test]
async fn a_run_that_somebody_holds_is_left_alone_and_not_waited_for() {
    let (schema, clock) = (Schema::new(), ManualClock::at(0));
    let store = at(&schema, &clock).await;
    for id in ["held", "free"] {
        store.create(vec![new_run(id, None)]).await.remove(0).unwrap();
    }
    clock.set(300_000);
    let holder = schema.raw().await;
    holder.batch_execute("BEGIN; SELECT 1 FROM run WHERE id = 'held' FOR UPDATE").await.unwrap();
    assert_eq!(store.park_unserved(GRACE, 10).await.unwrap(), [run("free")]);
    holder.batch_execute("UPDATE run SET owner = 7 WHERE id = 'held'; COMMIT").await.unwrap();
    assert_eq!(store.park_unserved(GRACE, 10).await.unwrap(), [], "and now it is owned");
    schema.end().await;
}

#[tokio::test]
async fn announcements_at_once_in_any_order_do_not_lock_each_other_out() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let announce = |turn: u32| {
        let mut serves: Vec<_> = (0..20).map(pair).collect();
        if turn.is_multiple_of(2) {
            serves.reverse();
        }
        store.announce(serves)
    };
    for announced in join_all((0..40).map(announce)).await {
        announced.unwrap();
    }
    let count = schema.raw().await.query_one("SELECT count(*) FROM served", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 20);
    schema.end().await;
}

#[tokio::test]
async fn old_announcements_leave_no_rows() {
    let (schema, clock) = (Schema::new(), ManualClock::at(0));
    let store = at(&schema, &clock).await;
    store.announce((0..5).map(pair).collect()).await.unwrap();
    clock.set(31 * 24 * 3_600_000);
    store.announce(vec![pair(9)]).await.unwrap();
    let raw = schema.raw().await;
    for left in [4, 2, 1, 1] {
        store.park_unserved(GRACE, 2).await.unwrap();
        let count: i64 = raw.query_one("SELECT count(*) FROM served", &[]).await.unwrap().get(0);
        assert_eq!(count, left, "at most two at a time, and never one that is in use");
    }
    schema.end().await;
}
