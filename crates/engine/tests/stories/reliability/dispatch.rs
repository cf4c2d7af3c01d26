//! Many runs at once, and who gets what.

use std::sync::Arc;

use outlast::testing::{Programs, World, WorldTime};
use outlast::{Ctx, Engine, Outlast, StepContext};
use outlast_core::event::Event;
use outlast_core::limits::Limits;
use outlast_store::MemoryStore;

use crate::support::{Scene, journal, seconds};

/// Row 8: a pooled actor is used for another run in the middle of its work, and the wrong run is acknowledged. Here few
/// programs are kept for many runs that wake together; each comes to its own end.
#[test]
fn row_8_programs_that_are_kept_are_not_taken_for_one_another() {
    async fn counts(ctx: Ctx, n: u32) -> outlast::Result<Vec<u32>> {
        let mut counted = Vec::new();
        for k in 0..3 {
            ctx.sleep(seconds(10)).await?;
            counted.push(ctx.step("count", async |_| Ok(n * 10 + k)).await?);
        }
        Ok(counted)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("counts", counts).hot_runs(3)).await;
        let mut runs = Vec::new();
        for n in 0..20 {
            runs.push((n, engine.start("counts", &n).id(&format!("run {n}")).await.unwrap()));
        }
        for (n, run) in runs {
            assert_eq!(run.result::<Vec<u32>>().await.unwrap(), [n * 10, n * 10 + 1, n * 10 + 2]);
        }
    });
}

/// How many orders of things are tried. As many as the environment says, or enough for a test that is run often.
fn orders() -> u64 {
    let asked = std::env::var("OUTLAST_ORDERS").ok().map(|orders| orders.parse());
    asked.map_or(300, |orders| orders.expect("OUTLAST_ORDERS is a number"))
}

const RUNS: u32 = 12;

/// Everything it is given says whose it is: bodies that end at the same instant as those of others, signals, sleeps.
async fn mine(ctx: Ctx, n: u32, time: WorldTime) -> outlast::Result<Vec<u32>> {
    let body = move |_: StepContext| {
        let time = time.clone();
        async move {
            time.sleep(seconds(1)).await;
            Ok(n)
        }
    };
    let beside = ctx.step("beside", body.clone()).start();
    let first = ctx.step("first", body.clone()).await?;
    let word: u32 = ctx.wait_for("word").await?;
    ctx.sleep(seconds(1)).await?;
    let last = ctx.step("last", body).await?;
    Ok(vec![first, beside.await?, word, last])
}

/// Row 8: two engines share a store; bodies, commits, timers and signals of all runs come to their ends in an order that is
/// drawn anew for each seed, while programs are evicted at random. Each run gets what is its own, in journal and result.
#[test]
fn row_8_whatever_ends_in_whatever_order_each_run_gets_its_own() {
    for seed in 0..orders() {
        let programs = Programs::Evicted { seed };
        let world = World::seeded(seed).shuffled().programs(programs);
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        let register = |engine: Outlast| {
            let time = world.time();
            engine.workflow("mine", move |ctx: Ctx, n: u32| mine(ctx, n, time.clone())).hot_runs(2).runs_max(5)
        };
        world.block_on(async {
            let one = register(world.engine_on(store.clone())).start().await.unwrap();
            let other = register(world.engine_on(store.clone())).start().await.unwrap();
            let mut runs = Vec::new();
            for n in 0..RUNS {
                let engine = if n % 2 == 0 { &one } else { &other };
                runs.push(engine.start("mine", &n).id(&n.to_string()).await.unwrap());
            }
            for n in 0..RUNS {
                other.run(&n.to_string()).unwrap().signal("word", &n, "1").await.unwrap();
            }
            for (n, run) in (0..).zip(runs) {
                assert_eq!(run.result::<Vec<u32>>().await.unwrap(), [n; 4], "seed {seed}, run {n}");
                everything_is_of(&one, n, seed).await;
            }
            one.shutdown().await;
            other.shutdown().await;
        });
    }
}

async fn everything_is_of(engine: &Engine, n: u32, seed: u64) {
    for event in journal(engine, &n.to_string()).await {
        if let Event::StepFinished { result: recorded, .. } | Event::SignalResolved { payload: recorded, .. } = event {
            assert_eq!(recorded, n.to_string().as_bytes(), "seed {seed}, run {n}");
        }
    }
}
