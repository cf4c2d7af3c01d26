//! W2 and W6 with scripts: against code that has the same tasks done, and at the end of a long loop against its beginning.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outlast::{Ctx, Engine, TaskContext};

use crate::Place;
use crate::report::median;
use crate::workloads::{W2_IN_FLIGHT, W2_STEPS};

const RUNS: usize = 10_000;
/// How many wakes are measured of each run that waits.
const WAKES: usize = 200;
/// The awaits behind those runs.
pub(crate) const SHORT: usize = 10;
pub(crate) const LONG: usize = 10_000;

const SCRIPT: &str = r#"
    workflow script(tasks) {
        for (let i = 0; i < tasks; i++) await Task.run("noop", i)
        return tasks
    }

    workflow waits(tasks) {
        for (let i = 0; i < tasks; i++) await Task.run("noop", i)
        while (true) {
            await Signal.next("more")
            await Task.run("stamp")
        }
    }
"#;

async fn code(ctx: Ctx, tasks: usize) -> outlast::Result<usize> {
    for n in 0..tasks {
        ctx.task::<usize>("noop", &n).await?;
    }
    Ok(tasks)
}

/// When the last task was begun.
static BEGUN: Mutex<Option<Instant>> = Mutex::new(None);

async fn start(place: &Place, hot_runs: usize) -> Engine {
    let noop = |_: TaskContext, n: usize| async move { Ok(n) };
    let stamp = |_: TaskContext, _: serde_json::Value| async {
        *BEGUN.lock().unwrap() = Some(Instant::now());
        Ok(())
    };
    let engine = place.engine().await.workflow("code", code).script("script.wf", SCRIPT).hot_runs(hot_runs);
    engine.task("noop", noop).task("stamp", stamp).start().await.unwrap()
}

/// Runs of five tasks per second, some hundred in flight, of the workflow `code` or `script`.
pub(crate) async fn w2(place: &Place, workflow: &'static str) -> f64 {
    let engine = start(place, 1_000).await;
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..W2_IN_FLIGHT {
        let (engine, next) = (engine.clone(), next.clone());
        clients.push(tokio::spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < RUNS {
                let handle = engine.start(workflow, &W2_STEPS).await.unwrap();
                assert_eq!(handle.result::<usize>().await.unwrap(), W2_STEPS);
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    let rate = RUNS as f64 / begun.elapsed().as_secs_f64();
    engine.shutdown().await;
    rate
}

/// From the wake of a run that is not in memory until its next task begins: milliseconds, the medians after few awaits and after
/// many.
pub(crate) async fn resume(place: &Place) -> (f64, f64) {
    let engine = start(place, 0).await;
    for awaits in [SHORT, LONG] {
        let id = awaits.to_string();
        engine.start("waits", &awaits).id(&id).await.unwrap();
        let run = engine.run(&id).unwrap();
        let next = 2 * awaits as u64 + 1;
        while run.view().await.unwrap().next.0 < next {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let mut took = [Vec::new(), Vec::new()];
    for n in 0..WAKES {
        for (place, awaits) in [SHORT, LONG].into_iter().enumerate() {
            let run = engine.run(&awaits.to_string()).unwrap();
            *BEGUN.lock().unwrap() = None;
            let begun = Instant::now();
            run.signal("more", &true, &n.to_string()).await.unwrap();
            let went_on = loop {
                if let Some(went_on) = *BEGUN.lock().unwrap() {
                    break went_on;
                }
                tokio::time::sleep(Duration::from_micros(200)).await;
            };
            took[place].push(went_on.duration_since(begun).as_secs_f64() * 1_000.0);
            // Until the task's result is recorded, and the run waits for the next signal.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    engine.shutdown().await;
    (median(&took[0]), median(&took[1]))
}
