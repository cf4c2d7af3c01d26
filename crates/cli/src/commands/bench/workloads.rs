//! What the engine is given to do.

use std::time::Instant;

use anyhow::Result;
use futures_util::future::try_join_all;
use outlast::{Ctx, Engine, Outlast};

const W1_STEPS: u64 = 1_000;
const W2_RUNS: usize = 3_000;
/// Runs at once.
pub(super) const IN_FLIGHT: usize = 256;
const W2_STEPS: u64 = 5;
const W3_RUNS: usize = 200;
const SEQUENCE: &str = "bench.sequence";

/// The workflow that is measured.
pub(super) fn register(engine: Outlast) -> Outlast {
    engine.workflow(SEQUENCE, |ctx: Ctx, steps: u64| async move {
        for number in 0..steps {
            ctx.step(&format!("step-{number}"), |_| async { Ok("x".repeat(100)) }).await?;
        }
        Ok(steps)
    })
}

async fn once(engine: &Engine, steps: u64) -> Result<()> {
    engine.start(SEQUENCE, &steps).await?.result::<u64>().await?;
    Ok(())
}

/// Leaves nothing behind in a database that others use.
pub(super) async fn delete_all(engine: &Engine) -> Result<()> {
    loop {
        let page = engine.list().page_size(1_000).await?;
        if page.runs.is_empty() {
            return Ok(());
        }
        for some in page.runs.chunks(IN_FLIGHT) {
            let delete = |id: &str| {
                let run = engine.run(id);
                async move { anyhow::Ok(run?.delete("measured").await?) }
            };
            try_join_all(some.iter().map(|view| delete(view.run.id.as_str()))).await?;
        }
    }
}

/// Steps per second of one run.
pub(super) async fn w1(engine: &Engine) -> Result<f64> {
    // A log that still grows costs twice as much per sync.
    once(engine, W1_STEPS).await?;
    let seconds = time(async { once(engine, W1_STEPS).await }).await?;
    Ok(W1_STEPS as f64 / seconds)
}

/// Runs per second, many at once.
pub(super) async fn w2(engine: &Engine) -> Result<f64> {
    let share = W2_RUNS.div_ceil(IN_FLIGHT);
    let client = || async {
        for _ in 0..share {
            once(engine, W2_STEPS).await?;
        }
        anyhow::Ok(())
    };
    let seconds = time(async { try_join_all((0..IN_FLIGHT).map(|_| client())).await.map(drop) }).await?;
    Ok((share * IN_FLIGHT) as f64 / seconds)
}

/// The median time from a start to its result, in milliseconds.
pub(super) async fn w3(engine: &Engine) -> Result<f64> {
    let mut took = Vec::new();
    for _ in 0..W3_RUNS {
        took.push(time(once(engine, 1)).await? * 1_000.0);
    }
    took.sort_by(f64::total_cmp);
    Ok(took.get(took.len() / 2).copied().unwrap_or(f64::NAN))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
async fn time(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed().as_secs_f64())
}
