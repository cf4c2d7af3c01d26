//! Processes that crash, freeze, drift and do not hear, on one store.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;
use std::time::Duration;

use outlast::testing::{Process, World};
use outlast::{Ctx, Engine, Outlast};
use outlast_store::faults::Fault;
use tokio::sync::Notify;

use crate::support::{Tally, kinds, seconds};

const LEASE: Duration = seconds(15);

async fn nap(ctx: Ctx, length: u64) -> outlast::Result<u64> {
    ctx.sleep(seconds(length)).await?;
    Ok(length)
}

/// A step whose first body ends when somebody says so, and whose others end at once. Each answers its number.
#[derive(Clone, Default)]
struct Slow {
    bodies: Tally,
    gate: Arc<Notify>,
}

impl Slow {
    fn register(&self, engine: Outlast) -> Outlast {
        let slow = self.clone();
        engine.workflow("slow", move |ctx: Ctx, (): ()| {
            let slow = slow.clone();
            async move {
                ctx.step("body", async |_| {
                    let number = slow.bodies.add();
                    if number == 1 {
                        slow.gate.notified().await;
                    }
                    Ok(number)
                })
                .await
            }
        })
    }
}

async fn start(process: &Process, register: impl Fn(Outlast) -> Outlast) -> Engine {
    register(process.engine().lease(LEASE).poll(seconds(1))).start().await.unwrap()
}

#[test]
fn what_a_crashed_process_drove_is_taken_over_when_its_lease_is_over() {
    let (world, slow) = (World::new(), Slow::default());
    let store = world.store();
    let (first, second) = (world.process(store.clone()), world.process(store));
    let result: u32 = world.block_on(async {
        let engine = start(&first, |engine| slow.register(engine)).await;
        engine.start("slow", &()).id("a").await.unwrap();
        let other = start(&second, |engine| slow.register(engine)).await;
        world.sleep(seconds(1)).await;
        first.crash();
        assert!(first.has_crashed() && !second.has_crashed());
        assert!(engine.run("a").unwrap().status().await.is_err(), "who is dead reads nothing");
        other.run("a").unwrap().result().await.unwrap()
    });
    assert_eq!((result, slow.bodies.count()), (2, 2));
    assert!(world.elapsed() >= LEASE && world.elapsed() < LEASE + seconds(3), "{:?}", world.elapsed());
}

/// Freezes a process past its lease while a body runs, and lets it go on; the calls it made afterwards.
fn frozen_past_its_lease(seed: u64) -> Vec<&'static str> {
    let (world, slow) = (World::seeded(seed).shuffled(), Slow::default());
    let store = world.store();
    let (first, second) = (world.process(store.clone()), world.process(store));
    world.block_on(async {
        let engine = start(&first, |engine| slow.register(engine)).await;
        engine.start("slow", &()).id("a").await.unwrap();
        let other = start(&second, |engine| slow.register(engine)).await;
        world.sleep(seconds(1)).await;
        first.freeze();
        let before = first.faults().calls();
        let result: u32 = other.run("a").unwrap().result().await.unwrap();
        assert_eq!(result, 2, "the second body's, in the other process");
        slow.gate.notify_one();
        world.sleep(seconds(60)).await;
        assert_eq!(first.faults().calls(), before, "who is frozen asks for nothing");
        first.thaw();
        world.sleep(seconds(60)).await;
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 2);
        assert_eq!(kinds(&other, "a").await.iter().filter(|kind| **kind == "STEP_FINISHED").count(), 1);
        first.faults().log().split_off(usize::try_from(before).unwrap())
    })
}

#[test]
fn a_process_that_was_frozen_past_its_lease_changes_nothing_afterwards() {
    let calls: Vec<_> = (0..20).map(frozen_past_its_lease).collect();
    assert!(calls.iter().all(|calls| calls.contains(&"register")), "it begins again: {calls:?}");
    assert!(calls.iter().any(|calls| calls.contains(&"commit")), "sometimes it tries to go on first: {calls:?}");
}

/// How long a nap of 100 seconds takes in a process.
fn nap_in(prepare: impl Fn(&Process), poll: Duration) -> Duration {
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        let engine = process.engine().lease(seconds(3_600)).poll(poll).workflow("nap", nap).start().await.unwrap();
        let run = engine.start("nap", &100).await.unwrap();
        world.sleep(seconds(10)).await;
        prepare(&process);
        run.result::<u64>().await.unwrap();
    });
    world.elapsed()
}

#[test]
fn a_timer_fires_by_the_stores_clock_however_the_clock_of_a_process_runs() {
    for per_mille in [-900, -500, 0, 500, 9_000] {
        let took = nap_in(|process| process.drift(per_mille), seconds(1));
        // Before it drifted the process planned to wake up in time; a slow one looks again each of its seconds.
        // (The store's clock counts milliseconds that have begun.)
        assert!(took > seconds(100) - Duration::from_millis(1) && took <= seconds(111), "{per_mille}: {took:?}");
    }
    let slow = nap_in(|process| process.drift(-500), seconds(3_000));
    assert!(slow > seconds(150), "who polls rarely wakes up by a clock that is slow: {slow:?}");
}

#[test]
fn who_does_not_hear_finds_what_is_due_when_it_looks() {
    let took = |deaf: bool| {
        let world = World::new();
        let process = world.process(world.store());
        world.block_on(async {
            let engine = process.engine().poll(seconds(60)).workflow("nap", nap).start().await.unwrap();
            world.sleep(seconds(1)).await;
            process.deaf(deaf);
            engine.start("nap", &10).await.unwrap().result::<u64>().await.unwrap();
        });
        world.elapsed()
    };
    assert_eq!(took(false), seconds(11));
    assert_eq!(took(true), seconds(60), "at the next poll");
}

#[test]
fn when_the_stores_clock_jumps_timers_follow_it() {
    let took = |forward: bool, by: Duration| {
        let world = World::new();
        let process = world.process(world.store());
        world.block_on(async {
            let engine = start(&process, |engine| engine.workflow("nap", nap)).await;
            let run = engine.start("nap", &100).await.unwrap();
            world.sleep(seconds(10)).await;
            let before = world.now();
            world.jump(forward, by);
            let (earlier, later) = if forward { (before, world.now()) } else { (world.now(), before) };
            assert_eq!(earlier + by, later);
            run.result::<u64>().await.unwrap();
        });
        world.elapsed()
    };
    let forward = took(true, seconds(86_400));
    assert!(forward >= seconds(10) && forward < seconds(13), "{forward:?}");
    let back = took(false, seconds(3_600));
    assert!(back >= seconds(3_700) && back < seconds(3_703), "{back:?}");
}

#[test]
fn a_call_that_hangs_does_not_keep_the_lease_from_being_renewed() {
    let (world, slow) = (World::new(), Slow::default());
    let store = world.store();
    let (first, second) = (world.process(store.clone()), world.process(store));
    world.block_on(async {
        let engine = start(&first, |engine| slow.register(engine)).await;
        let run = engine.start("slow", &()).id("a").await.unwrap();
        start(&second, |engine| slow.register(engine)).await;
        world.sleep(Duration::from_millis(1_500)).await;
        let calls = first.faults().log().len();
        first.faults().plan_next(0, Fault::Hang { long: seconds(600), applied: true });
        world.sleep(seconds(300)).await;
        assert_eq!(first.faults().log()[calls], "sweep", "the loop hangs in this call");
        assert_eq!(slow.bodies.count(), 1, "nobody took the run over");
        slow.gate.notify_one();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
    });
}

#[test]
fn a_lease_that_cannot_be_renewed_in_time_is_given_up() {
    let (world, slow) = (World::new(), Slow::default());
    let store = world.store();
    let (first, second) = (world.process(store.clone()), world.process(store));
    world.block_on(async {
        let engine = start(&first, |engine| slow.register(engine)).await;
        engine.start("slow", &()).id("a").await.unwrap();
        let other = start(&second, |engine| slow.register(engine)).await;
        world.sleep(seconds(1)).await;
        // Every call hangs for longer than the test takes, the renewal too.
        (0..100).for_each(|n| first.faults().plan_next(n, Fault::Hang { long: seconds(6_000), applied: false }));
        assert_eq!(other.run("a").unwrap().result::<u32>().await.unwrap(), 2);
        world.sleep(seconds(60)).await;
        assert!(first.faults().log().iter().filter(|call| **call == "register").count() > 2, "it asks for another one");
    });
}

#[test]
fn when_a_world_ends_nothing_of_it_is_left() {
    let left = Arc::new(());
    {
        let world = World::new();
        let process = world.process(world.store());
        let (inside, kept) = (world.clone(), Arc::clone(&left));
        world.spawn(async move {
            inside.sleep(seconds(1_000)).await;
            drop(kept);
        });
        let kept = Arc::clone(&left);
        world.block_on(async {
            let engine = process.engine().workflow("keeps", move |ctx: Ctx, (): ()| {
                let kept = Arc::clone(&kept);
                async move {
                    ctx.sleep(seconds(1_000)).await?;
                    drop(kept);
                    Ok::<_, outlast::Error>(())
                }
            });
            engine.start().await.unwrap().start("keeps", &()).await.unwrap();
        });
        assert!(Arc::strong_count(&left) > 1);
    }
    assert_eq!(Arc::strong_count(&left), 1);
}

/// Fifty runs on three processes, of which one crashes, another freezes and a third is slow: the trace, and what is in the
/// journals.
fn turmoil(seed: u64) -> (u64, Vec<String>) {
    async fn busy(ctx: Ctx, n: u64) -> outlast::Result<u64> {
        ctx.sleep(seconds(n % 7)).await?;
        let doubled: u64 = ctx.step("double", async |_| Ok(n * 2)).await?;
        let token = ctx.uuid().await?;
        ctx.step("token", async |_| Ok(token.to_string())).await?;
        ctx.sleep(seconds(n % 11)).await?;
        Ok(doubled)
    }
    let world = World::seeded(seed).shuffled();
    let store = world.store();
    let processes: Vec<Process> = (0..3).map(|_| world.process(store.clone())).collect();
    let client = world.process(store);
    let (nemesis, victims) = (world.clone(), processes.clone());
    world.spawn(async move {
        nemesis.sleep(seconds(3)).await;
        victims[0].crash();
        victims[1].freeze();
        nemesis.sleep(seconds(20)).await;
        victims[1].thaw();
    });
    let left = world.block_on(async {
        let register = |engine: Outlast| engine.workflow("busy", busy);
        let mut engines = Vec::new();
        for process in &processes {
            process.faults().set_latency(Some(outlast_store::faults::Latency { seed, max: Duration::from_millis(50) }));
            engines.push(start(process, register).await);
        }
        let client = start(&client, |engine| register(engine).without_loops()).await;
        for n in 0..50_u64 {
            client.start("busy", &n).id(&format!("run-{n}")).await.unwrap();
        }
        let mut left = Vec::new();
        for n in 0..50_u64 {
            let id = format!("run-{n}");
            assert_eq!(client.run(&id).unwrap().result::<u64>().await.unwrap(), n * 2);
            left.push(format!("{:?}", client.run(&id).unwrap().journal().await.unwrap()));
        }
        left
    });
    (world.trace_hash(), left)
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let (first, again, other) = (turmoil(1), turmoil(1), turmoil(2));
    assert_eq!(first.1, again.1);
    assert_eq!(first.0, again.0);
    assert_ne!(first.0, other.0);
}

/// "In an hour" is in an hour, also if the store's clock has been set back and has shown that hour before.
#[test]
fn a_sleep_until_an_instant_is_slept_by_a_clock_that_was_set_back() {
    async fn sleeps(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.wait_for::<()>("go").await?;
        let begun = ctx.now().await?;
        ctx.sleep_until(begun + seconds(3_600)).await
    }
    let world = World::new();
    world.block_on(async {
        let engine = world.engine_on(world.store()).workflow("w", sleeps).start().await.unwrap();
        let run = engine.start("w", &()).id("a").await.unwrap();
        world.sleep(seconds(600)).await;
        world.jump(false, seconds(5_400));
        // By then the engine has heard of it.
        world.sleep(seconds(600)).await;
        let begun = world.elapsed();
        engine.run("a").unwrap().signal("go", &(), "1").await.unwrap();
        run.result::<()>().await.unwrap();
        assert!(world.elapsed() - begun >= seconds(3_600), "{:?}", world.elapsed() - begun);
    });
}
