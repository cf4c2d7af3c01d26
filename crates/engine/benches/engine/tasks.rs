//! W7: tasks through a worker.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use outlast::{Ctx, Engine, TaskContext};

use crate::report::percentile;
use crate::{Ceiling, Place};

/// Runs that await a thousand tasks each.
const RUNS: usize = 20;
const TASKS: usize = 1_000;
const AT_ONCE: usize = 64;
const WAKES: usize = 200;
/// Before each wake, and before each commit that it is measured against.
const PAUSE: Duration = Duration::from_millis(2);

async fn many(ctx: Ctx, tasks: usize) -> outlast::Result<usize> {
    let all: Vec<_> = (0..tasks).map(|n| ctx.task::<usize>("noop", &n)).collect();
    Ok(ctx.all(all).await?.len())
}

/// When the last task was done, and when its run went on.
static DONE: Mutex<Option<Instant>> = Mutex::new(None);

async fn one(ctx: Ctx, (): ()) -> outlast::Result<f64> {
    ctx.task::<()>("stamp", &()).await?;
    let done = DONE.lock().unwrap().take().unwrap();
    Ok(done.elapsed().as_secs_f64() * 1_000.0)
}

async fn start(place: &Place) -> Engine {
    let noop = |_: TaskContext, n: usize| async move { Ok(n) };
    let stamp = |_: TaskContext, (): ()| async {
        *DONE.lock().unwrap() = Some(Instant::now());
        Ok(())
    };
    let engine = place.engine().await.workflow("many", many).workflow("one", one);
    engine.task("noop", noop).task("stamp", stamp).tasks_max(AT_ONCE).start().await.unwrap()
}

/// Tasks per second, from their queueing to their runs' going on.
pub(crate) async fn w7(place: &Place) -> f64 {
    let engine = start(place).await;
    let begun = Instant::now();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(engine.start("many", &TASKS).await.unwrap());
    }
    for run in runs {
        assert_eq!(run.result::<usize>().await.unwrap(), TASKS);
    }
    let rate = (RUNS * TASKS) as f64 / begun.elapsed().as_secs_f64();
    engine.shutdown().await;
    rate
}

/// From the end of a task until its run goes on, and bare commits that take turns with that: milliseconds, the medians.
pub(crate) async fn wake(place: &Place, ceiling: &mut Ceiling) -> (f64, f64) {
    let engine = start(place).await;
    let (mut took, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..WAKES {
        took.push(engine.start("one", &()).await.unwrap().result::<f64>().await.unwrap());
        tokio::time::sleep(PAUSE).await;
        // The end of a task follows the commits that queued and claimed it.
        ceiling.commit_once().await;
        bare.push(ceiling.commit_once().await);
        tokio::time::sleep(PAUSE).await;
    }
    engine.shutdown().await;
    (percentile(&took, 50), percentile(&bare, 50))
}
