//! The workflows that are measured.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use outlast::{Ctx, Outlast};

/// About a hundred bytes, as in every figure of the project.
fn payload() -> String {
    "x".repeat(98)
}

pub(crate) fn register(engine: Outlast) -> Outlast {
    engine
        .workflow("sequence", sequence)
        .workflow("parallel", parallel)
        .workflow("asleep", asleep)
        .workflow("long", long)
}

/// So many steps, one after the other.
async fn sequence(ctx: Ctx, steps: usize) -> outlast::Result<usize> {
    for _ in 0..steps {
        ctx.step("step", async |_| Ok(payload())).await?;
    }
    Ok(steps)
}

/// So many steps at once.
async fn parallel(ctx: Ctx, steps: usize) -> outlast::Result<usize> {
    let all = (0..steps).map(|_| ctx.step("step", async |_| Ok(payload())));
    Ok(try_join_all(all).await?.len())
}

async fn asleep(ctx: Ctx, millis: u64) -> outlast::Result<()> {
    ctx.sleep(Duration::from_millis(millis)).await
}

/// When the first body after the last wake ran.
pub(crate) static RAN: Mutex<Option<Instant>> = Mutex::new(None);

/// Many steps, and then for each signal one more.
async fn long(ctx: Ctx, steps: usize) -> outlast::Result<()> {
    for _ in 0..steps {
        ctx.step("step", async |_| Ok(payload())).await?;
    }
    loop {
        let more: bool = ctx.wait_for("more").await?;
        ctx.step("next", async |_| {
            *RAN.lock().unwrap() = Some(Instant::now());
            Ok(())
        })
        .await?;
        if !more {
            return Ok(());
        }
    }
}
