//! What an engine does while there is nothing to do.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::time::Duration;

use outlast::testing::{Process, World, journal};
use outlast::{Ctx, Engine, Status};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn nap(ctx: Ctx, duration: u64) -> outlast::Result<()> {
    ctx.sleep(seconds(duration)).await
}

async fn wait(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    ctx.wait_for::<u32>("go").await
}

/// An engine that looks every second, on a store of its own.
async fn alone(process: &Process) -> Engine {
    let engine = process.engine().sole().poll(seconds(1)).lease(seconds(15)).version_grace(seconds(300));
    engine.workflow("nap", nap).workflow("wait", wait).start().await.unwrap()
}

#[test]
fn the_sole_user_of_a_store_asks_nothing_while_nothing_is_due_and_wakes_on_time() {
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        let engine = alone(&process).await;
        let nap = engine.start("nap", &3_600).id("nap").await.unwrap();
        let wait = engine.start("wait", &()).id("wait").await.unwrap();
        world.sleep(seconds(10)).await;
        let before = process.faults().calls();
        world.sleep(seconds(280)).await;
        assert_eq!(process.faults().calls(), before, "{:?}", process.faults().log().split_off(before as usize));
        world.sleep(seconds(3_000)).await;
        let hour = process.faults().calls() - before;
        // Timers, held runs, schedules, runs, versions said and looked for.
        assert!(hour <= 10 * 7, "a look around every five minutes: {hour}");
        wait.signal("go", &7, "1").await.unwrap();
        assert_eq!(wait.result::<u32>().await.unwrap(), 7);
        nap.result::<()>().await.unwrap();
        assert!(world.elapsed() < seconds(3_601), "{:?}", world.elapsed());
    });
}

/// Row 4: a laptop that slept, or a clock that was set.
#[test]
fn the_sole_user_of_a_store_notices_that_clocks_were_set() {
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        let engine = alone(&process).await;
        let nap = engine.start("nap", &3_600).id("nap").await.unwrap();
        world.sleep(seconds(10)).await;
        world.jump(true, seconds(5_400));
        world.sleep(seconds(2)).await;
        assert_eq!(nap.status().await.unwrap(), Status::Completed);
        let late = engine.start("nap", &60).id("late").await.unwrap();
        world.jump(false, seconds(5_400));
        world.sleep(seconds(30)).await;
        assert_eq!(late.status().await.unwrap(), Status::Waiting, "it is early now");
    });
}

/// Only the store's clock counts. What the clock on the wall shows is a reason to look, and nothing more.
#[test]
fn a_clock_on_the_wall_that_is_wrong_or_jumps_changes_nothing() {
    let day = seconds(86_400);
    let told = |skew: Option<(bool, Duration)>, jump: Option<(bool, Duration)>| {
        let world = World::new();
        let process = world.process(world.store());
        if let Some((forward, by)) = skew {
            process.set_wall(forward, by);
        }
        world.block_on(async {
            let engine = alone(&process).await;
            let nap = engine.start("nap", &3_600).id("nap").await.unwrap();
            world.sleep(seconds(10)).await;
            let before = process.faults().calls();
            if let Some((forward, by)) = jump {
                process.set_wall(forward, by);
                world.sleep(seconds(60)).await;
                let looks = process.faults().calls() - before;
                assert!((1..=20).contains(&looks), "it looks around, once: {looks}");
                assert_eq!(nap.status().await.unwrap(), Status::Waiting, "it is not due");
            }
            nap.result::<()>().await.unwrap();
            let journal = journal(&engine.run("nap").unwrap()).await.unwrap().to_string();
            (world.elapsed(), journal)
        })
    };
    let right = told(None, None);
    for wrong in [(true, seconds(600)), (false, seconds(600))] {
        assert_eq!(told(Some(wrong), None), right);
        for jump in [(true, day), (false, day)] {
            assert_eq!(told(Some(wrong), Some(jump)), right);
        }
    }
}

#[test]
fn the_sole_user_of_a_store_that_was_away_looks_again_soon() {
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        let engine = alone(&process).await;
        let nap = engine.start("nap", &60).id("nap").await.unwrap();
        world.sleep(seconds(10)).await;
        process.faults().set_cut(true);
        world.sleep(seconds(100)).await;
        process.faults().set_cut(false);
        let begun = world.elapsed();
        nap.result::<()>().await.unwrap();
        assert!(world.elapsed() - begun < seconds(5), "{:?}", world.elapsed() - begun);
    });
}

/// A task that nobody here does stands in the queue, and must not hide when the others are due.
#[test]
fn a_task_that_nobody_does_does_not_hide_when_others_are_to_be_tried_again() {
    async fn work(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.task("flaky", &()).retry(outlast::Retry::attempts(4)).await
    }
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        let tries = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let flaky = move |_: outlast::TaskContext, (): ()| {
            let number = tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            async move { if number < 4 { Err(std::io::Error::other("not yet").into()) } else { Ok(number) } }
        };
        let engine = process.engine().sole().poll(seconds(1)).lease(seconds(15)).workflow("work", work);
        let engine = engine.task("flaky", flaky).start().await.unwrap();
        engine.enqueue("nobody", &()).await.unwrap();
        let [one, other] = ["one", "other"].map(|id| engine.start("work", &()).id(id));
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        let _ = (one.result::<u32>().await, other.result::<u32>().await);
        assert!(world.elapsed() < seconds(120), "{:?}", world.elapsed());
    });
}
