//! Several operations at once.

use std::time::Duration;

use outlast::{Check, Ctx, Error, Handle, Race2, Result, StepContext};

use super::{NEVER, SOON, quickly, step};
use crate::ledger::witness;
use crate::place::PENDING_MAX;

pub(super) async fn races(ctx: Ctx, n: u32) -> Result<u32> {
    let mut nobody = ctx.wait_for::<u32>("nobody").start();
    let mut won = 0;
    for _ in 0..n {
        match ctx.race((ctx.sleep(SOON), &mut nobody)).await? {
            Race2::First(()) => won += step(&ctx, "won", 1).await?,
            Race2::Second(_) => return Err(Error::new("wrong", "nobody signals")),
        }
    }
    nobody.cancel();
    let body = async |s: StepContext| {
        witness(&s);
        Ok(1_u32)
    };
    let (a, b) = ctx.all((ctx.step("a", body), ctx.step("b", body))).await?;
    let bad = async |s: StepContext| {
        witness(&s);
        Err::<u32, _>(Error::new("bad", "on purpose").permanent())
    };
    ctx.any((ctx.step("bad", bad), ctx.step("good", body), ctx.sleep(NEVER))).await?;
    let (settled, _) = ctx.all_settled((ctx.step("settled", body), ctx.step("failed", bad))).await;
    let count = ctx.wait_for_condition("count", 0_u32, async |s, count| {
        witness(&s);
        Ok(if count < 2 { Check::Not(count + 1) } else { Check::Met(count) })
    });
    Ok(won + a + b + settled? + count.retry(quickly(9)).await?)
}

pub(super) async fn batches(ctx: Ctx, n: u32) -> Result<u32> {
    let batch = ctx
        .map("items", (0..n).collect(), async |ctx: Ctx, item: u32, _| {
            ctx.sleep(Duration::from_millis(5)).await?;
            step(&ctx, "item", item).await
        })
        .max_concurrency(3)
        .await?;
    let both = ctx
        .parallel("both")
        .branch(async |ctx: Ctx| step(&ctx, "left", 1).await)
        .branch(async |_: Ctx| Err(Error::new("bad", "on purpose").permanent()))
        .tolerate_failures(1)
        .await?;
    let inner: u32 = ctx.scope("inner", async |ctx: Ctx| step(&ctx, "inside", 5).await).await?;
    Ok(batch.results()?.into_iter().sum::<u32>() + u32::try_from(both.succeeded())? + inner)
}

/// One sleep more than a run may have pending.
pub(super) async fn crowded(ctx: Ctx, n: u32) -> Result<u32> {
    let sleeps: Vec<Handle<()>> = (0..=PENDING_MAX).map(|_| ctx.sleep(SOON).start()).collect();
    let mut refused = 0;
    for sleep in sleeps {
        match sleep.await {
            Err(error) if error.code() == "limit_exceeded" => refused += 1,
            slept => slept?,
        }
    }
    step(&ctx, "counted", n + refused).await
}
