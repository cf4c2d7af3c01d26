//! Signals and waits.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::testing::journal;
use outlast::{Ctx, Engine, EngineError, Status, TaskContext};
use outlast_store::Delivered;

use crate::support::{Scene, Tally, kinds, seconds, status};

async fn busy(ctx: Ctx, (): ()) -> outlast::Result<String> {
    ctx.step("one", async |_| Ok(1)).await?;
    ctx.sleep(seconds(1)).await?;
    ctx.now().await?;
    let retry = outlast::Retry::attempts(2);
    ctx.step("two", async |s| if s.attempt() == 1 { Err(outlast::Error::new("x", "y")) } else { Ok(2) })
        .retry(retry)
        .await?;
    let word = ctx.wait_for::<String>("word").await?;
    ctx.sleep(seconds(1)).await?;
    Ok(word)
}

/// Row 11: a signal that comes before the wait is lost.
#[test]
fn row_11_a_signal_at_every_index_is_consumed() {
    // Up to the wait itself: behind it nothing happens before the signal.
    for index in 0..=7 {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
            let run = engine.start("busy", &()).id("a").await.unwrap();
            let mut attached = engine.run("a").unwrap().attach();
            // The start is told first, and is not in the journal.
            for _ in 0..=index {
                attached.next().await.unwrap().unwrap();
            }
            engine.run("a").unwrap().signal("word", "hello", "1").await.unwrap();
            assert_eq!(run.result::<String>().await.unwrap(), "hello", "sent at {index}");
            let all = kinds(&engine, "a").await;
            assert_eq!(all.iter().filter(|kind| **kind == "SIGNAL_RESOLVED").count(), 1, "{all:?}");
            assert_eq!(all[6..8], ["SIGNAL_AWAITED", "SIGNAL_RESOLVED"], "the last index that was tried is the wait's");
        });
    }
}

/// Row 12: a signal to a run that nobody has begun to drive is discarded.
#[test]
fn row_12_a_signal_straight_after_the_start_waits_for_whoever_drives_the_run() {
    Scene::play(async |scene| {
        let unable = scene.engine(|engine| engine).await;
        unable.start("busy", &()).id("a").version("1").await.unwrap();
        let sent = unable.run("a").unwrap().signal("word", "hello", "1").await.unwrap();
        assert_eq!((sent, status(&unable, "a").await), (Delivered::Buffered, Status::Queued));
        unable.shutdown().await;
        let able = scene.engine(|engine| engine.workflow("busy", busy)).await;
        assert_eq!(able.run("a").unwrap().result::<String>().await.unwrap(), "hello");
    });
}

/// Row 30: a signal that has nothing to do with it starts a step again that is under way.
#[test]
fn row_30_signals_do_not_begin_a_step_or_a_task_again_that_is_under_way() {
    Scene::play(async |scene| {
        let (steps, tasks, time) = (Tally::default(), Tally::default(), scene.world.time());
        let (counted, clock) = (steps.clone(), scene.world.time());
        let long = move |ctx: Ctx, (): ()| {
            let (counted, clock) = (counted.clone(), clock.clone());
            async move {
                let body = async |_| {
                    counted.add();
                    clock.sleep(seconds(100)).await;
                    Ok(())
                };
                ctx.step("long", body).await?;
                ctx.task::<()>("long", &()).await
            }
        };
        let begun = tasks.clone();
        let task = move |_: TaskContext, (): ()| {
            begun.add();
            let nap = time.sleep(seconds(100));
            async move {
                nap.await;
                Ok(())
            }
        };
        let engine = scene.engine(|engine| engine.workflow("long", long).task("long", task)).await;
        let run = engine.start("long", &()).id("a").await.unwrap();
        for number in 0..15 {
            scene.pass(seconds(10)).await;
            engine.run("a").unwrap().signal("other", &(), &number.to_string()).await.unwrap();
        }
        run.result::<()>().await.unwrap();
        assert_eq!((steps.count(), tasks.count()), (1, 1));
    });
}

/// Row 17: an answer that is journaled after the wait is over poisons replay.
#[test]
fn row_17_what_comes_too_late_is_refused_and_changes_no_journal() {
    async fn brief(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.approve("Ship it?").id("ship").timeout(seconds(10)).await.map(drop).or_else(timed_out)?;
        ctx.wait_for::<u32>("go").id("go").timeout(seconds(10)).await?;
        ctx.sleep(seconds(600)).await
    }
    fn timed_out(error: outlast::Error) -> outlast::Result<()> {
        if error.code() == "timeout" { Ok(()) } else { Err(error) }
    }
    async fn assert_refused(engine: &Engine) {
        let run = engine.run("a").unwrap();
        let before = kinds(engine, "a").await;
        assert_eq!(run.approve("ship", true).await.unwrap_err().code(), "approval_lost");
        assert_eq!(run.signal_to("go", "go", &1, "late").await.unwrap_err().code(), "signal_lost");
        assert_eq!(kinds(engine, "a").await, before);
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("brief", brief)).await;
        let run = engine.start("brief", &()).id("a").await.unwrap();
        scene.pass(seconds(60)).await;
        assert_refused(&engine).await;
        run.result::<()>().await.unwrap();
        assert_refused(&engine).await;
    });
}

/// Row 18: a timeout is not recorded, or looks like the payload `null`.
#[test]
fn row_18_a_timeout_and_a_null_are_told_apart_however_often_they_are_replayed() {
    async fn two(ctx: Ctx, (): ()) -> outlast::Result<[bool; 2]> {
        let null: Option<Option<u32>> = ctx.wait_for("null").timeout(seconds(60)).await?;
        let late: Option<Option<u32>> = ctx.wait_for("late").timeout(seconds(60)).await?;
        for _ in 0..3 {
            ctx.sleep(seconds(10)).await?;
        }
        Ok([null == Some(None), late.is_none()])
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("two", two)).await;
        let run = engine.start("two", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().signal("null", &(), "1").await.unwrap();
        scene.pass(seconds(62)).await;
        engine.run("a").unwrap().signal("late", &1, "2").await.unwrap();
        assert_eq!(run.result::<[bool; 2]>().await.unwrap(), [true, true]);
        let journal = journal(&engine.run("a").unwrap()).await.unwrap();
        journal.shows_among_others(&["SIGNAL_RESOLVED __wait-null-0 null", "SIGNAL_TIMED_OUT __wait-late-0"]);
    });
}

/// What a client may do to a run right after it started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Cancel,
    Signal,
    Pause,
    Resume,
}

async fn act(engine: &Engine, act: Act) {
    let run = engine.run("a").unwrap();
    let delivered = match act {
        Act::Cancel => run.cancel("enough").await,
        Act::Signal => run.signal("word", "hello", "1").await,
        Act::Pause => run.pause("lunch").await,
        Act::Resume => run.resume().await,
    };
    // The run may have ended meanwhile, and then there is nothing to be told.
    assert!(matches!(delivered, Ok(_) | Err(EngineError::Lost { .. })), "{act:?}: {delivered:?}");
}

/// Every order of four things.
fn orders() -> Vec<[Act; 4]> {
    let all = [Act::Cancel, Act::Signal, Act::Pause, Act::Resume];
    let mut orders = Vec::new();
    for number in 0..256_usize {
        let order = [number / 64, number / 16 % 4, number / 4 % 4, number % 4].map(|n| all[n]);
        if all.iter().all(|act| order.contains(act)) {
            orders.push(order);
        }
    }
    orders
}

/// Row 39: a start and a termination in one batch are both discarded.
#[test]
fn row_39_a_cancel_is_obeyed_in_every_order_with_a_signal_a_pause_and_a_resume() {
    assert_eq!(orders().len(), 24);
    for order in orders() {
        for driven in [true, false] {
            Scene::play(async |scene| {
                // One that can drive the run from its start on, or one that only takes notes for whoever comes later.
                let first = scene.engine(|engine| if driven { engine.workflow("busy", busy) } else { engine }).await;
                first.start("busy", &()).id("a").version("1").await.unwrap();
                for next in order {
                    act(&first, next).await;
                }
                first.shutdown().await;
                let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
                let ended = engine.run("a").unwrap().result::<String>().await;
                assert!(matches!(ended, Err(EngineError::Cancelled(_))), "{order:?} {driven}: {ended:?}");
                let journal = journal(&engine.run("a").unwrap()).await.unwrap();
                journal.shows_among_others(&["CANCEL_REQUESTED", "RUN_CANCELLED"]);
            });
        }
    }
}
