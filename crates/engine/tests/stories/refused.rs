//! Commits that the store does not take, and runs that must not be left lying about because of it.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use outlast::{Ctx, Engine, Outlast, Status};
use outlast_core::id::Key;
use outlast_core::limits::{LimitExceeded, Limits, TEXT_BYTES_MAX};
use outlast_store::faults::{Fault, FaultStore};
use outlast_store::{Clock, CommitError, ManualClock, MemoryStore, Rejection, Store, StoreError, Trouble};
use tokio::sync::Semaphore;

use crate::support::{Scene, Tally, key, kinds, parked, seconds, status};

/// An engine behind faults.
async fn faulty(scene: &Scene, register: impl FnOnce(Outlast) -> Outlast) -> (Arc<FaultStore>, Engine) {
    let store = Arc::new(FaultStore::counting(scene.store.clone()));
    let engine = register(scene.world.engine_on(store.clone())).start().await.unwrap();
    (store, engine)
}

async fn counts(ctx: Ctx, ran: Tally) -> outlast::Result<u32> {
    let first = ctx.step("first", async |_| Ok(ran.add())).await?;
    ctx.wait_for::<()>("word").await?;
    Ok(first)
}

fn away() -> CommitError {
    CommitError::NotApplied(StoreError::unavailable(Trouble::Connection, "away"))
}

fn rejected() -> CommitError {
    CommitError::Rejected(Rejection::Answered { key: Key::new("word").unwrap() })
}

/// How often the store was away says nothing about how often it turned a commit down, and the other way round.
#[test]
fn a_store_that_was_away_for_long_does_not_count_against_a_run_whose_commit_is_turned_down() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let body = ran.clone();
        let register = move |engine: Outlast| engine.workflow("counts", move |ctx, (): ()| counts(ctx, body.clone()));
        let (store, engine) = faulty(scene, register).await;
        store.refuse_next(30, away());
        store.refuse_next(15, rejected());
        store.refuse_next(30, away());
        engine.start("counts", &()).id("a").await.unwrap();
        scene.pass(seconds(300)).await;
        assert_eq!(store.landed(), 75, "all of that happened");
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        assert_eq!(ran.count(), 1, "what its body came to was kept");
    });
}

/// Each progress begins anew: only a run that gets nowhere parks.
#[test]
fn a_run_parks_when_its_commit_is_turned_down_again_and_again_and_not_before() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let body = ran.clone();
        let register = move |engine: Outlast| engine.workflow("counts", move |ctx, (): ()| counts(ctx, body.clone()));
        let (store, engine) = faulty(scene, register).await;
        store.refuse_next(20, rejected());
        engine.start("counts", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting, "twenty times are borne");
        store.refuse_next(20, rejected());
        engine.run("a").unwrap().signal("word", &(), "s").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Completed, "and twenty more after a commit");
        store.refuse_next(21, rejected());
        engine.start("counts", &()).id("b").await.unwrap();
        scene.pass(seconds(1)).await;
        let reason = parked(&engine, "b").await;
        assert!(reason.starts_with("its commit was rejected: word has been answered"), "{reason}");
    });
}

/// Nobody else has the run, and trying again would not help: it must not be forgotten.
#[test]
fn a_run_whose_commit_cannot_be_stored_is_parked_and_goes_on_when_it_can() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let body = ran.clone();
        let register = move |engine: Outlast| engine.workflow("counts", move |ctx, (): ()| counts(ctx, body.clone()));
        let (store, engine) = faulty(scene, register).await;
        let limit = LimitExceeded { what: "a record", found: 11, limit: 10, unit: "bytes" };
        store.refuse_next(1, CommitError::NotApplied(StoreError::Limit(limit)));
        engine.start("counts", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let reason = parked(&engine, "a").await;
        assert!(reason.starts_with("its commit cannot be stored: "), "{reason}");
        assert!(engine.run("a").unwrap().unpark().await.unwrap());
        scene.pass(seconds(1)).await;
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "SIGNAL_AWAITED"]);
    });
}

/// Why a run is parked is written into its row: whatever the reason is, it must fit there.
#[test]
fn a_reason_that_is_too_long_or_cannot_be_written_does_not_keep_a_run_from_parking() {
    for letter in ["a", "ü", "𝄞", "\0"] {
        Scene::play(async |scene| {
            let ran = Tally::default();
            let register =
                move |engine: Outlast| engine.workflow("counts", move |ctx, (): ()| counts(ctx, ran.clone()));
            let (store, engine) = faulty(scene, register).await;
            let reason = format!("\0{}", letter.repeat(TEXT_BYTES_MAX + 1));
            store.refuse_next(1, CommitError::NotApplied(StoreError::corrupt("a page", reason)));
            engine.start("counts", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            let reason = parked(&engine, "a").await;
            assert!(reason.starts_with("its commit cannot be stored: "), "{reason}");
            assert!(reason.len() <= TEXT_BYTES_MAX && !reason.contains('\0'), "{} bytes", reason.len());
        });
    }
}

/// It is seized, and then the store is away: whoever asked is told, and the run is not left to nobody.
#[test]
fn a_run_that_could_not_be_terminated_goes_on() {
    // Nothing is known of the seizure, or only of what comes after it; and it cannot be given back at once either.
    let faults: [(&str, Fault); 3] = [
        ("claim", Fault::AppliedThenError),
        ("load", Fault::NotApplied { in_doubt: false }),
        ("commit", Fault::NotApplied { in_doubt: false }),
    ];
    for (call, fault) in faults {
        Scene::play(async |scene| {
            let ran = Tally::default();
            let body = ran.clone();
            let register =
                move |engine: Outlast| engine.workflow("counts", move |ctx, (): ()| counts(ctx, body.clone()));
            let (store, engine) = faulty(scene, register).await;
            engine.start("counts", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            store.fail_next(call, 14, fault);
            store.fail_next("release", 20, Fault::NotApplied { in_doubt: false });
            let error = engine.run("a").unwrap().terminate("enough").await.unwrap_err();
            assert!(error.to_string().contains("was made to fail"), "{call}: {error}");
            assert!(scene.store.get(key("a")).await.unwrap().owner.is_some(), "{call}: it was seized");
            scene.pass(seconds(60)).await;
            assert_eq!(scene.store.get(key("a")).await.unwrap().owner, None, "{call}: it was given back");
            engine.run("a").unwrap().signal("word", &(), "s").await.unwrap();
            scene.pass(seconds(1)).await;
            assert_eq!(status(&engine, "a").await, Status::Completed, "{call}");
        });
    }
}

/// The clock steps forward by a day, so that what this node said of itself looks old; it does not park its own runs.
#[test]
fn a_node_says_which_versions_it_has_before_it_parks_anything() {
    async fn busy(ctx: Ctx, room: Arc<Semaphore>) -> outlast::Result<()> {
        ctx.step("busy", async |_| {
            room.acquire().await.map_err(outlast::Error::from)?.forget();
            Ok(())
        })
        .await
    }
    Scene::play(async |scene| {
        let clock = ManualClock::at(1_000_000_000);
        let inner = Arc::new(MemoryStore::new(Clock::Manual(clock.clone()), Limits::default()));
        let store = Arc::new(FaultStore::counting(inner.clone()));
        let room = Arc::new(Semaphore::new(0));
        let inside = Arc::clone(&room);
        let builder =
            scene.world.engine_on(store.clone()).workflow("busy", move |ctx, (): ()| busy(ctx, inside.clone()));
        let engine = builder.runs_max(1).start().await.unwrap();
        engine.start("busy", &()).id("a").await.unwrap();
        let waits = engine.start("busy", &()).id("b").await.unwrap();
        // Between two announcements, shortly before it looks for the first time for what nobody serves.
        scene.pass(seconds(17_500)).await;
        assert!(!store.log().contains(&"park_unserved"));
        clock.advance(86_400_000);
        scene.pass(seconds(900)).await;
        assert!(store.log().contains(&"park_unserved"), "it looked");
        for run in ["a", "b"] {
            let view = inner.get(key(run)).await.unwrap();
            assert_ne!(view.status, Status::Parked, "and left alone what it serves itself: {:?}", view.note);
        }
        for (at, call) in store.log().iter().enumerate() {
            assert!(*call != "park_unserved" || store.log()[at - 1] == "announce");
        }
        // If it could not be said, nothing is parked either.
        store.fail_next("announce", u32::MAX, Fault::NotApplied { in_doubt: false });
        let looked = store.log().iter().filter(|call| **call == "park_unserved").count();
        scene.pass(seconds(10_000)).await;
        assert_eq!(store.log().iter().filter(|call| **call == "park_unserved").count(), looked);
        room.add_permits(3);
        waits.result::<()>().await.unwrap();
    });
}
