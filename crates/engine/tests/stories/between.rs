//! What comes between two calls to the store: each call is held back until the other thing has happened.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;
use std::task::Poll;

use outlast::{Ctx, Engine, Outlast, StepContext};
use outlast_core::commit::{Delivery, Signal};
use outlast_core::id::{DeliveryId, Key, SignalName};
use outlast_core::limits::Limits;
use outlast_store::faults::FaultStore;
use outlast_store::{Clock, CommitError, ManualClock, Rejection, SqliteOptions, SqliteStore};
use tokio::sync::Semaphore;

use crate::support::{Scene, Tally, key, kinds, parked, seconds};

/// Lets everybody who is ready do what they can, without letting time pass.
async fn rounds() {
    let mut left = 1_000;
    std::future::poll_fn(|context| {
        left -= 1;
        context.waker().wake_by_ref();
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// An engine behind faults.
async fn faulty(scene: &Scene, register: impl FnOnce(Outlast) -> Outlast) -> (Arc<FaultStore>, Engine) {
    let store = Arc::new(FaultStore::counting(scene.store.clone()));
    let engine = register(scene.world.engine_on(store.clone())).start().await.unwrap();
    (store, engine)
}

fn rejected() -> CommitError {
    CommitError::Rejected(Rejection::Answered { key: Key::new("word").unwrap() })
}

/// Doors of two steps.
#[derive(Clone)]
struct Doors([Arc<Semaphore>; 2]);

impl Doors {
    fn new() -> Doors {
        Doors(std::array::from_fn(|_| Arc::new(Semaphore::new(0))))
    }

    async fn pass(&self, door: usize) -> outlast::Result<usize> {
        self.0[door].acquire().await.map_err(outlast::Error::from)?.forget();
        Ok(door)
    }

    /// A body that passes a door.
    fn body(&self, door: usize) -> impl AsyncFn(StepContext) -> outlast::Result<usize> + Send + 'static {
        let doors = self.clone();
        async move |_| doors.pass(door).await
    }

    fn open(&self, door: usize) {
        self.0[door].add_permits(1);
    }
}

/// Two steps beside each other, and a word; the second step keeps the run driven.
async fn hears(ctx: Ctx, doors: Doors) -> outlast::Result<u32> {
    let one = ctx.step("one", doors.body(0)).start();
    let two = ctx.step("two", doors.body(1)).start();
    let first: u32 = ctx.wait_for("word").id("first").await?;
    let second: u32 = ctx.wait_for("word").id("second").await?;
    one.await?;
    two.await?;
    Ok(first + second)
}

/// Its inbox is being read when its commit is turned down; then it is loaded, and only then the inbox's answer comes. What
/// was taken with it must be read once more, or nobody ever does.
#[test]
fn what_was_read_while_a_run_is_loaded_again_is_read_once_more() {
    Scene::play(async |scene| {
        let doors = Doors::new();
        let inside = doors.clone();
        let register = move |engine: Outlast| engine.workflow("hears", move |ctx, (): ()| hears(ctx, inside.clone()));
        let (store, engine) = faulty(scene, register).await;
        engine.start("hears", &()).id("a").await.unwrap();
        rounds().await;
        // A commit is under way, and will be turned down.
        store.refuse_next(1, rejected());
        let commit = store.hold_next("commit");
        doors.open(0);
        rounds().await;
        // Meanwhile a word comes, and its inbox is about to be read.
        let take = store.hold_next("take");
        engine.run("a").unwrap().signal("word", &1, "s1").await.unwrap();
        rounds().await;
        // Turned down: journal and inbox are read for the new program, and on their way.
        let load = store.hold_next_reply("load");
        drop(commit);
        rounds().await;
        // The next word: nobody is told of it, and the older call, which has not read it, must not take the resume that came with it.
        let (name, id) = (SignalName::new("word").unwrap(), DeliveryId::new("s2").unwrap());
        let signal = Signal { name, id, payload: "2".into(), aimed: None };
        scene.store.deliver(vec![Delivery::Signal { run: key("a"), signal }]).await.remove(0).unwrap();
        drop(take);
        rounds().await;
        assert!(scene.store.get(key("a")).await.unwrap().ready, "what nobody read is not taken");
        drop(load);
        rounds().await;
        let kinds = kinds(&engine, "a").await;
        assert_eq!(kinds.iter().filter(|kind| **kind == "SIGNAL_RESOLVED").count(), 2, "{kinds:?}");
        doors.open(1);
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 3);
    });
}

/// A run is woken and ends its turn while the node looks around: it looks for wakes first, and then for runs to claim, so
/// that one of the two finds it.
#[test]
fn a_run_that_is_woken_while_its_turn_ends_is_found_without_waiting_for_the_next_poll() {
    async fn word(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.wait_for("word").await
    }
    Scene::play(async |scene| {
        let (store, engine) = faulty(scene, |engine| engine.workflow("word", word)).await;
        scene.pass(seconds(1)).await;
        let began = scene.world.now();
        // Its turn is about to end.
        let commit = store.hold_next("commit");
        engine.start("word", &()).id("a").await.unwrap();
        rounds().await;
        // The word comes, the node looks around, and is held up where it looks for runs to claim.
        let claim = store.hold_next_reply("claim");
        engine.run("a").unwrap().signal("word", &7, "s").await.unwrap();
        rounds().await;
        drop(commit);
        rounds().await;
        drop(claim);
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 7);
        assert!(scene.world.now() < began + seconds(60), "nobody had to poll");
    });
}

/// A program does what it may not while its commit is under way, and then that is turned down: it parks, as it would have
/// after a commit that went well.
#[test]
fn a_run_that_was_stopped_parks_also_if_the_commit_under_way_is_turned_down() {
    async fn shares(ctx: Ctx, (doors, passes): (Doors, Tally)) -> outlast::Result<()> {
        let one = ctx.step("one", doors.body(0)).start();
        ctx.step("two", doors.body(1)).await?;
        // Only the first program does it, so that nothing would stop the second.
        if passes.add() == 1 {
            let first = ctx.step("same", async |_| Ok(())).start();
            let second = ctx.step("same", async |_| Ok(())).start();
            first.await?;
            second.await?;
        }
        one.await.map(drop)
    }
    Scene::play(async |scene| {
        let doors = Doors::new();
        let inside = (doors.clone(), Tally::default());
        let register = move |engine: Outlast| engine.workflow("shares", move |ctx, (): ()| shares(ctx, inside.clone()));
        let (store, engine) = faulty(scene, register).await;
        engine.start("shares", &()).id("a").await.unwrap();
        rounds().await;
        store.refuse_next(1, rejected());
        let commit = store.hold_next("commit");
        doors.open(0);
        rounds().await;
        // What the first step came to is on its way, and now the program goes wrong.
        doors.open(1);
        rounds().await;
        drop(commit);
        scene.pass(seconds(1)).await;
        let reason = parked(&engine, "a").await;
        assert!(reason.contains("same"), "{reason}");
    });
}

/// Nothing is recorded while a transaction is under way. A step that returned meanwhile, in time, has not timed out
/// because that is written down later.
#[test]
fn a_step_that_returned_beside_a_transaction_has_not_timed_out() {
    async fn beside(ctx: Ctx, doors: Doors) -> outlast::Result<(usize, usize)> {
        let timed = ctx.step("timed", doors.body(0)).timeout(seconds(60)).start();
        let beats = ctx.step("beats", doors.body(1)).heartbeat(seconds(60)).start();
        ctx.transaction("pays", |_| async { Ok(()) }).await?;
        Ok((timed.await?, beats.await?))
    }
    let (scene, folder) = (Scene::new(), tempfile::tempdir().unwrap());
    let clock = ManualClock::at(1_000_000_000);
    let options =
        SqliteOptions { clock: Clock::Manual(clock.clone()), limits: Limits::default(), ..Default::default() };
    scene.world.block_on(async {
        let inner = Arc::new(SqliteStore::open(folder.path().join("a.db"), options).await.unwrap());
        let (store, doors) = (Arc::new(FaultStore::counting(inner)), Doors::new());
        let inside = doors.clone();
        let builder = scene.world.engine_on(store.clone());
        let builder = builder.workflow("beside", move |ctx, (): ()| beside(ctx, inside.clone()));
        let engine = builder.start().await.unwrap();
        let transact = store.hold_next("transact");
        let run = engine.start("beside", &()).id("a").await.unwrap();
        while !store.log().contains(&"transact") {
            rounds().await;
        }
        doors.open(0);
        doors.open(1);
        rounds().await;
        clock.advance(600_000);
        drop(transact);
        assert_eq!(run.result::<(usize, usize)>().await.unwrap(), (0, 1));
        let expected = ["STEP_FINISHED", "STEP_FINISHED", "STEP_FINISHED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected, "each attempt counts once, and none as late");
        engine.shutdown().await;
    });
}
