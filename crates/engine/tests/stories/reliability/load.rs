//! A store that is slow, and an engine that comes back to very much work.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast::testing::World;
use outlast::{Ctx, Error, Retry, TaskContext};
use outlast_core::id::{RunKey, Version, WorkflowName};
use outlast_core::{Bytes, commit::NewRun};
use outlast_store::Created;
use outlast_store::faults::Latency;

use crate::support::{Tally, key, seconds};

/// How many runs are under way while the store is slow.
const RUNS: u64 = 20;
/// A call to the store takes so long as a rule, and then twenty times as long.
const USUAL: Duration = Duration::from_millis(100);

/// What a story cost: bodies and handlers begun, and calls to the store.
#[derive(Debug)]
struct Cost {
    steps: u32,
    tasks: u32,
    calls: u64,
}

async fn work(ctx: Ctx, steps: Tally) -> outlast::Result<u32> {
    let count = |_| {
        let steps = steps.clone();
        async move { Ok(steps.add()) }
    };
    ctx.step("first", count).await?;
    ctx.sleep(seconds(30)).await?;
    ctx.task("flaky", &()).retry(Retry::attempts(3).initial(seconds(5))).await
}

/// Twenty runs with two attempts at a task each.
fn cost(latency: Duration) -> Cost {
    let (world, steps, tasks) = (World::new(), Tally::default(), Tally::default());
    let process = world.process(world.store());
    world.block_on(async {
        let (counted, begun) = (steps.clone(), tasks.clone());
        let flaky = move |task: TaskContext, (): ()| {
            begun.add();
            async move { if task.attempt() == 1 { Err(Error::new("busy", "not now")) } else { Ok(task.attempt()) } }
        };
        let engine = process.engine().lease(seconds(15)).poll(seconds(1));
        let engine = engine.workflow("work", move |ctx: Ctx, (): ()| work(ctx, counted.clone())).task("flaky", flaky);
        let engine = engine.start().await.unwrap();
        let mut runs = Vec::new();
        for run in 0..RUNS {
            runs.push(engine.start("work", &()).id(&run.to_string()).await.unwrap());
        }
        process.faults().set_latency(Some(Latency { seed: 7, max: latency }));
        let before = process.faults().calls();
        for run in runs {
            assert_eq!(run.result::<u32>().await.unwrap(), 2);
        }
        let calls = process.faults().calls() - before;
        process.faults().set_latency(None);
        engine.shutdown().await;
        Cost { steps: steps.count(), tasks: tasks.count(), calls }
    })
}

/// Row 49: a slow store made callers give up and ask again, which made it slower.
#[test]
fn row_49_a_store_that_is_twenty_times_as_slow_is_not_asked_more_and_nothing_is_done_again() {
    let (usual, slow) = (cost(USUAL), cost(20 * USUAL));
    for cost in [&usual, &slow] {
        assert_eq!((u64::from(cost.steps), u64::from(cost.tasks)), (RUNS, 2 * RUNS), "{cost:?}");
    }
    println!("usual: {usual:?}, slow: {slow:?}");
    assert!(slow.calls <= 2 * usual.calls, "usual: {usual:?}, slow: {slow:?}");
}

/// Runs that are ready when an engine comes up, and how many it holds at once.
const READY: usize = 50_000;
const HELD_MAX: usize = 1_000;

fn new_run(run: RunKey) -> NewRun {
    let workflow = WorkflowName::new("brief").unwrap();
    NewRun::new(run, workflow, Version::new("1").unwrap(), Bytes::from_static(b"null"))
}

/// Row 52: one by one, or all at once: both were the end of somebody who came back to tens of thousands.
#[test]
fn row_52_fifty_thousand_ready_runs_are_taken_in_portions_after_a_restart() {
    let (world, now, most) = (World::new(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let store = world.store();
    let process = world.process(Arc::clone(&store));
    world.block_on(async {
        for portion in 0..READY / 500 {
            let runs = (0..500).map(|number| new_run(key(&format!("{portion}-{number}")))).collect();
            let created = store.create(runs).await;
            assert!(created.iter().all(|run| matches!(run, Ok(Created::Created { .. }))));
        }
        let (held, peak, time) = (Arc::clone(&now), Arc::clone(&most), world.time());
        let brief = move |ctx: Ctx, (): ()| {
            let (held, peak, time) = (Arc::clone(&held), Arc::clone(&peak), time.clone());
            async move {
                let body = async |_| {
                    peak.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    time.sleep(seconds(1)).await;
                    held.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                };
                ctx.step("only", body).await
            }
        };
        let engine = process.engine().lease(seconds(15)).poll(seconds(1)).runs_max(HELD_MAX).workflow("brief", brief);
        let engine = engine.start().await.unwrap();
        let begun = world.elapsed();
        while engine.measure().await.unwrap().runs.iter().any(|(status, _)| !status.is_terminal()) {
            world.sleep(seconds(10)).await;
        }
        let (took, calls) = (world.elapsed() - begun, process.faults().calls());
        println!("{READY} runs in {took:?}, {calls} calls, {} at once", most.load(Ordering::SeqCst));
        assert!((HELD_MAX / 2..=HELD_MAX).contains(&most.load(Ordering::SeqCst)), "{most:?}");
        assert!(calls < READY as u64 / 10, "they are taken and written together: {calls} calls");
        assert!(took <= seconds(600), "{took:?}");
        engine.shutdown().await;
    });
}
