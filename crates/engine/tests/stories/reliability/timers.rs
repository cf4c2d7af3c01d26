//! Timers and clocks.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use outlast::testing::journal;
use outlast::{Ctx, Engine};
use outlast_core::id::Index;
use outlast_core::limits::Limits;
use outlast_store::{Clock, Load, LoadFrom, ManualClock, MemoryStore, SqliteOptions, SqliteStore, Store};
use tokio::runtime::Runtime;

use crate::support::{Scene, key, seconds};

const MINUTE_MS: i64 = 60_000;

async fn three_naps(ctx: Ctx, (): ()) -> outlast::Result<()> {
    for _ in 0..3 {
        ctx.sleep(seconds(60)).await?;
    }
    Ok(())
}

/// Row 3: the wall clock steps back after a timer was dispatched, and the timer is dropped. Here the store's clock goes
/// forward, timers fall due, and before anybody looks at them it goes back, not quite as far or farther; each sleep ends
/// once.
#[test]
fn row_3_a_clock_that_steps_back_drops_no_timer() {
    for back in [MINUTE_MS, 15 * MINUTE_MS, 30 * MINUTE_MS, 60 * MINUTE_MS] {
        Scene::play(async |scene| {
            let clock = ManualClock::at(6_000 * MINUTE_MS);
            let store = Arc::new(MemoryStore::new(Clock::Manual(clock.clone()), Limits::default()));
            let engine = scene.world.engine_on(store.clone()).workflow("naps", three_naps).start().await.unwrap();
            engine.start("naps", &()).id("a").await.unwrap();
            for _ in 0..3 {
                scene.pass(seconds(3_600)).await;
                clock.advance(30 * MINUTE_MS);
                assert_eq!(store.sweep(10).await.unwrap().fired, 1, "one sleep is due");
                clock.advance(-back);
            }
            scene.pass(seconds(3_600)).await;
            three_naps_were_slept(&engine).await;
        });
    }
}

async fn three_naps_were_slept(engine: &Engine) {
    journal(&engine.run("a").unwrap()).await.unwrap().shows(&[
        "TIMER_STARTED __sleep-0",
        "TIMER_FIRED __sleep-0",
        "TIMER_STARTED __sleep-1",
        "TIMER_FIRED __sleep-1",
        "TIMER_STARTED __sleep-2",
        "TIMER_FIRED __sleep-2",
        "RUN_FINISHED",
    ]);
}

/// How many runs sleep, and how many sleeps each has: a hundred thousand timers.
const RUNS: usize = 1_000;
const EACH: usize = 100;

async fn sleeps(ctx: Ctx, (): ()) -> outlast::Result<()> {
    let naps: Vec<_> = (0..EACH).map(|n| ctx.sleep(seconds(60)).id(&format!("{n}")).start()).collect();
    for nap in naps {
        nap.await?;
    }
    Ok(())
}

/// Many runs sleep and nobody drives them. All timers are due, and the store is swept again and again.
fn a_hundred_thousand_fire_once_each(scene: &Scene, store: Arc<dyn Store>, real: &Runtime) {
    scene.world.block_on(async {
        let engine = scene.world.engine_on(store.clone()).workflow("sleeps", sleeps).start().await.unwrap();
        for n in 0..RUNS {
            engine.start("sleeps", &()).id(&n.to_string()).await.unwrap();
        }
        scene.pass(seconds(1)).await;
        // Everybody goes home; the timers fall due.
        engine.shutdown().await;
        scene.pass(seconds(3_600)).await;
    });
    real.block_on(async {
        let mut fired = 0;
        for _ in 0..2 * RUNS * EACH / 1_000 {
            fired += store.sweep(1_000).await.unwrap().fired;
        }
        assert_eq!(fired, RUNS * EACH);
        for n in 0..RUNS {
            let load = Load { run: key(&n.to_string()), from: LoadFrom::Index(Index(0)) };
            assert_eq!(store.load(vec![load]).await.remove(0).unwrap().inbox.len(), EACH);
        }
    });
}

fn real() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// Row 2: each scan appends due timers again while nobody takes them. Here nobody drives.
#[test]
fn row_2_a_hundred_thousand_due_timers_fire_once_each_while_nobody_drives_in_memory() {
    let scene = Scene::new();
    a_hundred_thousand_fire_once_each(&scene, scene.store.clone(), &real());
}

#[test]
fn row_2_a_hundred_thousand_due_timers_fire_once_each_while_nobody_drives_on_sqlite() {
    let (scene, real, folder) = (Scene::new(), real(), tempfile::tempdir().unwrap());
    let options = SqliteOptions { clock: scene.world.clock(), ..SqliteOptions::default() };
    let store = real.block_on(SqliteStore::open(folder.path().join("a.db"), options)).unwrap();
    a_hundred_thousand_fire_once_each(&scene, Arc::new(store), &real);
}
