//! Generations: nothing is lost or taken twice where one ends and the next begins.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::time::Duration;

use futures_util::future::{Either, select};
use outlast::testing::Script;
use outlast::{Ctx, Engine};
use outlast_store::Delivered;

use crate::support::{Scene, seconds};

/// Which generations were ended by a signal.
async fn ticks(ctx: Ctx, mut signalled: Vec<bool>) -> outlast::Result<Vec<bool>> {
    let ticked = match select(ctx.wait_for::<()>("tick"), ctx.sleep(seconds(60))).await {
        Either::Left((tick, _)) => tick.map(|()| true)?,
        Either::Right((slept, _)) => slept.map(|()| false)?,
    };
    signalled.push(ticked);
    if signalled.len() < 3 { ctx.continue_as_new(&signalled) } else { Ok(signalled) }
}

/// Row 5: a timer of the old generation comes with a completion of the new one, and both are deleted.
#[test]
fn row_5_a_timer_of_the_last_generation_does_not_touch_the_next() {
    // Around the end of the first generation's sleep, and of the second's.
    for after in [0, 1, 59, 60, 61, 119, 120, 121] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("ticks", ticks)).await;
            let (run, begun) = (engine.start("ticks", &Vec::<bool>::new()).id("a").await.unwrap(), scene.world.now());
            Script::new().signal_at(seconds(after), "tick", &()).play(&run).await.unwrap();
            let signalled = run.result::<Vec<bool>>().await.unwrap();
            assert_eq!(signalled.iter().filter(|signalled| **signalled).count(), 1, "{after}: {signalled:?}");
            // The two generations behind and before the one that was signalled slept for a minute each.
            let before = signalled.iter().position(|signalled| *signalled).unwrap() as u64 * 60;
            let took = scene.world.now().since(begun);
            assert_eq!(took, seconds(120 - before + after), "{after}: {signalled:?}");
            assert_eq!(scene.awaiting("a").await, [], "nothing is left");
        });
    }
}

/// Takes numbers, a few in each generation.
async fn adder(ctx: Ctx, (mut taken, all): (Vec<u32>, usize)) -> outlast::Result<Vec<u32>> {
    for _ in 0..7 {
        taken.push(ctx.wait_for::<u32>("n").await?);
        if taken.len() == all {
            return Ok(taken);
        }
    }
    ctx.continue_as_new(&(taken, all))
}

async fn send(engine: &Engine, n: u32) -> Delivered {
    engine.run("a").unwrap().signal("n", &n, &n.to_string()).await.unwrap()
}

/// Row 15: a stream of signals keeps a run from beginning its next generation. Row 16: signals vanish where it does.
#[test]
fn rows_15_and_16_a_hundred_signals_a_second_are_each_taken_once_over_many_generations() {
    const ALL: u32 = 300;
    for pause in [Duration::ZERO, Duration::from_millis(10)] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("adder", adder)).await;
            let run = engine.start("adder", &(Vec::<u32>::new(), ALL)).id("a").await.unwrap();
            for n in 0..ALL {
                send(&engine, n).await;
                if !pause.is_zero() {
                    scene.pass(pause).await;
                }
            }
            assert_eq!(run.result::<Vec<u32>>().await.unwrap(), (0..ALL).collect::<Vec<_>>());
            let generation = engine.run("a").unwrap().view().await.unwrap().generation;
            assert_eq!(generation.0, u64::from((ALL - 1) / 7), "it rolled over on the way");
        });
    }
}

/// Row 13: the id of a signal is forgotten when the run ends, or begins its next generation.
#[test]
fn row_13_a_signal_that_is_sent_again_is_not_taken_again_in_a_later_generation_or_after_the_end() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("adder", adder)).await;
        let run = engine.start("adder", &(Vec::<u32>::new(), 20)).id("a").await.unwrap();
        for n in 0..20 {
            assert!(matches!(send(&engine, n).await, Delivered::Delivered | Delivered::Buffered));
            scene.pass(seconds(1)).await;
            for again in 0..=n {
                assert_eq!(send(&engine, again).await, Delivered::Duplicate, "{again} after {n}");
            }
        }
        assert_eq!(run.result::<Vec<u32>>().await.unwrap(), (0..20).collect::<Vec<_>>());
        assert_eq!(send(&engine, 3).await, Delivered::Duplicate, "after the end");
    });
}
