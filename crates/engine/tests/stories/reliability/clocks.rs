//! Clocks that jump do not make an engine spin.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use outlast::{Ctx, Engine};
use outlast_core::limits::Limits;
use outlast_store::faults::FaultStore;
use outlast_store::{Clock, ManualClock, MemoryStore};

use crate::support::{Scene, seconds};

const MINUTE_MS: i64 = 60_000;

async fn naps(ctx: Ctx, (): ()) -> outlast::Result<()> {
    for _ in 0..20 {
        ctx.sleep(seconds(60)).await?;
    }
    Ok(())
}

/// Calls that were made while time passed.
async fn calls_during(scene: &Scene, store: &FaultStore, clock: &ManualClock, minutes: u64) -> u64 {
    let before = store.calls();
    for _ in 0..minutes {
        scene.pass(seconds(60)).await;
        // The store's clock goes on as time does, from wherever it stands.
        clock.advance(MINUTE_MS);
    }
    store.calls() - before
}

async fn start(scene: &Scene, store: &Arc<FaultStore>) -> Engine {
    let engine = scene.world.engine_on(store.clone()).workflow("naps", naps).start().await.unwrap();
    engine.start("naps", &()).id("a").await.unwrap();
    engine
}

/// Row 4: a laptop sleeps, and what wakes up "too early" asks again at once, and again. Here the store's clock jumps by an hour
/// and a half, each way, with a run asleep: the engine makes a few calls a minute, as it does without the jump.
#[test]
fn row_4_a_clock_that_jumps_does_not_make_the_engine_spin() {
    for jump in [-90 * MINUTE_MS, 90 * MINUTE_MS] {
        Scene::play(async |scene| {
            let clock = ManualClock::at(1_000_000 * MINUTE_MS);
            let inner = Arc::new(MemoryStore::new(Clock::Manual(clock.clone()), Limits::default()));
            let store = Arc::new(FaultStore::counting(inner.clone()));
            let engine = start(scene, &store).await;
            let without = calls_during(scene, &store, &clock, 5).await;
            for _ in 0..3 {
                clock.advance(jump);
                let with = calls_during(scene, &store, &clock, 30).await;
                assert!(with <= 60 * 30, "at most one call a second: {with}, and {without} in five minutes before");
            }
            // The sleeps that were begun before a jump back end when the store's clock says so, not never.
            calls_during(scene, &store, &clock, 400).await;
            engine.run("a").unwrap().result::<()>().await.unwrap();
        });
    }
}
