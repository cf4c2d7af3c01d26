//! Those who watch. Semantics L13: "events `operation:state-changed`, `all-operations-idle` for observers and tests";
//! Semantics R5 and R10: attach.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use futures_util::StreamExt;
use outlast::{Ctx, Event};

use crate::support::{Scene, seconds};

async fn steps_and_sleeps(ctx: Ctx, (): ()) -> outlast::Result<()> {
    ctx.step("one", async |_| Ok(())).await?;
    ctx.sleep(seconds(10)).await?;
    ctx.emit("nearly", &true)?;
    ctx.step("two", async |_| Ok(())).await
}

/// A replayed prefix tells nothing: with and without the program kept, the same is told.
#[test]
fn every_change_of_an_operation_is_told_once_also_after_replay() {
    for hot in [0, 100] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.hot_runs(hot).workflow("w", steps_and_sleeps)).await;
            let mut watched = engine.run("a").unwrap().watch_operations();
            let run = engine.start("w", &()).id("a").await.unwrap();
            run.result::<()>().await.unwrap();
            let told: Vec<String> = watched.so_far().iter().map(ToString::to_string).collect();
            assert_eq!(
                told,
                [
                    "operation:state-changed step one: executing",
                    "operation:state-changed step one: executing to completed",
                    "operation:state-changed sleep __sleep-0: executing",
                    "operation:state-changed sleep __sleep-0: executing to idle, not awaited",
                    "operation:state-changed sleep __sleep-0: idle, not awaited to idle, awaited",
                    "all-operations-idle: WAIT_SCHEDULED",
                    "operation:state-changed sleep __sleep-0: idle, awaited to completed",
                    "operation:state-changed step two: executing",
                    "operation:state-changed step two: executing to completed",
                ],
                "{hot} programs kept"
            );
        });
    }
}

async fn told(mut attached: outlast::Attached) -> Vec<&'static str> {
    let mut told = Vec::new();
    while let Some(event) = attached.next().await.unwrap() {
        told.push(event.kind().name());
    }
    told
}

#[test]
fn attaching_to_a_run_that_waits_ends_there_if_asked() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", steps_and_sleeps)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let until_it_waits = told(run.attach().until_it_waits()).await;
        assert_eq!(until_it_waits, ["RUN_STARTED", "STEP_FINISHED", "TIMER_STARTED"]);
        let all: Vec<_> = run.attach().into_stream().map(|event| event.unwrap().kind().name()).collect().await;
        assert_eq!(
            all,
            ["RUN_STARTED", "STEP_FINISHED", "TIMER_STARTED", "TIMER_FIRED", "CUSTOM", "STEP_FINISHED", "RUN_FINISHED"]
        );
    });
}

/// What is emitted with the last commit reaches an observer that finds the run ended.
#[test]
fn what_a_run_emits_last_is_not_missed() {
    async fn last_word(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.wait_for::<()>("go").await?;
        ctx.emit("last word", &"bye")
    }
    for seed in 0..50 {
        let world = outlast::testing::World::seeded(seed);
        world.block_on(async {
            let engine = world.engine().workflow("w", last_word).start().await.unwrap();
            let run = engine.start("w", &()).id("a").await.unwrap();
            let mut attached = run.attach();
            assert!(matches!(attached.next().await.unwrap(), Some(Event::RunStarted { .. })));
            engine.run("a").unwrap().signal("go", &(), "s").await.unwrap();
            let mut told = Vec::new();
            while let Some(event) = attached.next().await.unwrap() {
                told.push(event.kind().name());
            }
            assert_eq!(told, ["SIGNAL_AWAITED", "SIGNAL_RESOLVED", "CUSTOM", "RUN_FINISHED"], "seed {seed}");
        });
    }
}

/// What is emitted before a long step is told while it runs.
#[test]
fn what_is_emitted_before_a_long_step_does_not_wait_for_it() {
    async fn long(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.wait_for::<()>("go").await?;
        ctx.emit("begins", &1)?;
        ctx.step("long", async |_| std::future::pending::<outlast::Result<()>>().await).timeout(seconds(600)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", long)).await;
        let mut attached = engine.start("w", &()).id("a").await.unwrap().attach();
        assert!(matches!(attached.next().await.unwrap(), Some(Event::RunStarted { .. })));
        assert!(matches!(attached.next().await.unwrap(), Some(Event::SignalAwaited { .. })));
        let begun = scene.world.now();
        engine.run("a").unwrap().signal("go", &(), "s").await.unwrap();
        assert!(matches!(attached.next().await.unwrap(), Some(Event::SignalResolved { .. })));
        assert!(matches!(attached.next().await.unwrap(), Some(Event::Custom { .. })));
        assert!(scene.world.now().since(begun) < seconds(1));
    });
}
