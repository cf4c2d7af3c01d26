//! Limits under crashes, several engines, lost notices, jumping clocks and crowds.

use outlast::testing::crash_everywhere;
use outlast_core::limits::Limits;
use outlast_store::MemoryStore;

use super::*;

/// What goes on at once, seen across crashes: those who are between their first and their last step.
#[test]
fn a_limit_holds_with_a_crash_at_every_call() {
    let seen: Arc<Mutex<(Vec<String>, usize)>> = Arc::default();
    let witness = Arc::clone(&seen);
    let crashes = crash_everywhere(
        move |engine| {
            let seen = Arc::clone(&witness);
            engine.workflow("work", move |ctx: Ctx, (): ()| between(ctx, Arc::clone(&seen)))
        },
        async |engine: Engine| {
            *seen.lock().unwrap() = (Vec::new(), 0);
            for id in ["a", "b", "c"] {
                engine.start("work", &()).id(id).concurrency("k", 1).await.ok()?;
            }
            let mut ended = 0;
            for id in ["a", "b", "c"] {
                ended += engine.run(id).ok()?.result::<u32>().await.ok()?;
            }
            assert!(seen.lock().unwrap().1 <= 1, "{} at once", seen.lock().unwrap().1);
            Some(ended)
        },
    );
    assert!(crashes.kills > 60, "{crashes:?}");
}

async fn between(ctx: Ctx, seen: Arc<Mutex<(Vec<String>, usize)>>) -> outlast::Result<u32> {
    let run = ctx.run_id().to_string();
    ctx.step("enter", async |_| {
        let mut seen = seen.lock().unwrap();
        seen.0.retain(|other| *other != run);
        seen.0.push(run.clone());
        seen.1 = seen.1.max(seen.0.len());
        Ok(())
    })
    .await?;
    ctx.sleep(seconds(10)).await?;
    ctx.step("leave", async |_| {
        seen.lock().unwrap().0.retain(|other| *other != run);
        Ok(1)
    })
    .await
}

#[test]
fn every_start_key_survives_a_crash_at_every_call() {
    let register = |engine: Outlast| {
        engine.workflow("echo", async |ctx: Ctx, n: u32| {
            ctx.sleep(seconds(5)).await?;
            Ok::<_, outlast::Error>(n)
        })
    };
    let crashes = crash_everywhere(register, async |engine: Engine| {
        let single = engine.start("echo", &1).id("s").singleton("k").await.ok()?.result::<u32>().await.ok()?;
        let delayed = engine.start("echo", &2).id("d").delay(seconds(60)).await.ok()?.result::<u32>().await.ok()?;
        let start = engine.start("echo", &3).id("b").debounce("k", seconds(60));
        let debounced = start.await.ok()?.result::<u32>().await.ok()?;
        let start = engine.start("echo", &4).id("i").idempotency("k", seconds(600));
        let once = start.await.ok()?.result::<u32>().await.ok()?;
        Some((single, delayed, debounced, once))
    });
    assert!(crashes.kills > 60, "{crashes:?}");
}

#[test]
fn two_engines_on_one_store_never_exceed_a_limit_together() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
    world.block_on(async {
        let witness = Witness::of(&world);
        let mut engines = Vec::new();
        for _ in 0..2 {
            engines.push(witness.register(world.engine_on(store.clone())).start().await.unwrap());
        }
        let mut runs = crowd(&engines[0], "a", 20, "k", 3).await;
        runs.extend(crowd(&engines[1], "b", 20, "k", 3).await);
        results(runs).await;
        assert_eq!(witness.most("k"), 3);
        assert_eq!(witness.order().len(), 40);
    });
}

#[test]
fn a_limit_drains_though_every_notice_is_lost() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
    world.block_on(async {
        let witness = Witness::of(&world);
        let process = world.process(store.clone());
        let engine = witness.register(process.engine()).start().await.unwrap();
        process.deaf(true);
        let runs = crowd(&engine, "r", 6, "k", 2).await;
        let delayed = engine.start("work", &job(&[], 0)).id("d").delay(seconds(5)).await.unwrap();
        results(runs).await;
        results(vec![delayed]).await;
        assert!(process.notices_lost() > 0);
        assert_eq!(witness.most("k"), 2);
        assert_eq!(witness.order().len(), 7);
    });
}

#[test]
fn a_run_that_was_admitted_before_its_engine_died_is_driven_by_the_next_one() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
    world.block_on(async {
        let witness = Witness::of(&world);
        let first = world.process(store.clone());
        let engine = witness.register(first.engine()).start().await.unwrap();
        crowd(&engine, "r", 4, "k", 2).await;
        world.sleep(seconds(1)).await;
        first.crash();
        let engine = witness.register(world.engine_on(store.clone())).start().await.unwrap();
        for n in 0..4 {
            engine.run(&format!("r{n}")).unwrap().result::<String>().await.unwrap();
        }
        assert_eq!(witness.most("k"), 2);
    });
}

#[test]
fn clocks_that_jump_admit_nobody_too_many_and_lose_nobody() {
    for forward in [true, false] {
        let world = World::new();
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        world.block_on(async {
            let witness = Witness::of(&world);
            let engine = witness.register(world.engine_on(store.clone())).start().await.unwrap();
            let mut runs = crowd(&engine, "r", 6, "k", 2).await;
            runs.push(engine.start("work", &job(&[], 0)).id("d").delay(seconds(60)).await.unwrap());
            for n in 0..3 {
                let start = engine.start("work", &job(&[], 0)).id(&format!("p{n}"));
                runs.push(start.rate("api", Rate::per_minute(2)).await.unwrap());
            }
            world.sleep(seconds(5)).await;
            world.jump(forward, seconds(3_000));
            results(runs).await;
            assert!(witness.most("k") <= 2);
            assert_eq!(witness.order().len(), 10);
        });
    }
}

#[test]
fn a_thousand_held_runs_under_ten_keys_drain_and_no_limit_is_exceeded() {
    let world = World::new();
    let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
    world.block_on(async {
        let witness = Witness::of(&world);
        let engine = witness.register(world.engine_on(store.clone())).start().await.unwrap();
        let mut runs = Vec::new();
        for n in 0..1_000_u32 {
            let (one, two) = (format!("k{}", n % 10), format!("k{}", (n / 10) % 10));
            let mut keys = vec![one.as_str(), two.as_str()];
            keys.dedup();
            let start = engine.start("work", &job(&keys, 10)).id(&format!("r{n}"));
            let start = keys.iter().fold(start, |start, key| start.concurrency(key, 20));
            runs.push(start.await.unwrap());
        }
        results(runs).await;
        assert_eq!(witness.order().len(), 1_000);
        for n in 0..10 {
            let most = witness.most(&format!("k{n}"));
            assert!(most <= 20, "{most} at once under k{n}");
            assert!(most >= 15, "only {most} at once under k{n}: room was left unused");
        }
    });
}
