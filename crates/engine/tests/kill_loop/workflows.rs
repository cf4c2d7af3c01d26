//! Eight workflows that between them use every primitive. Every body leaves a line in the ledger, outside the store.

use std::io::Write;
use std::time::Duration;

use outlast::{Ctx, Outlast, Race2, Retry, StepContext};

pub(crate) const NAMES: [&str; 8] =
    ["steps", "naps", "signals", "races", "batches", "families", "approvals", "generations"];

const SOON: Duration = Duration::from_millis(15);

pub(crate) fn register(engine: Outlast) -> Outlast {
    engine
        .workflow("steps", steps)
        .workflow("naps", naps)
        .workflow("signals", signals)
        .workflow("races", races)
        .workflow("batches", batches)
        .workflow("families", families)
        .workflow("approvals", approvals)
        .workflow("generations", generations)
        .workflow("child", child)
}

/// Witnesses that a body ran: one line, written at once, kept by the system even if the process dies.
fn witness(step: &StepContext) {
    let path = std::env::var("OUTLAST_KILL_LEDGER").expect("a worker has a ledger");
    let mut ledger = std::fs::OpenOptions::new().append(true).create(true).open(path).expect("the ledger opens");
    // In one write, so that the lines of two drivers cannot mix.
    ledger.write_all(format!("{}\n", step.idempotency_key()).as_bytes()).expect("the ledger is written");
}

async fn step(ctx: &Ctx, name: &str, value: u32) -> outlast::Result<u32> {
    ctx.step(name, async |s| {
        witness(&s);
        Ok(value)
    })
    .await
}

async fn steps(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let mut sum = 0;
    for i in 0..n {
        sum += step(&ctx, "add", i).await?;
    }
    let flaky = ctx
        .step("flaky", async |s| {
            witness(&s);
            if s.attempt() < 3 { Err(outlast::Error::new("not_yet", "again")) } else { Ok(s.attempt()) }
        })
        .retry(Retry::attempts(5).initial(Duration::from_millis(5)))
        .await?;
    Ok(sum + flaky)
}

async fn naps(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let begun = ctx.now().await?;
    for i in 0..n {
        ctx.sleep(SOON).await?;
        step(&ctx, "nap", i).await?;
    }
    let ended = ctx.now().await?;
    let early = ended.since(begun) < SOON * n;
    if early { Err(outlast::Error::new("early", "a sleep ended too soon")) } else { Ok(n) }
}

async fn signals(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let mut sum = 0;
    for _ in 0..n {
        let value: u32 = ctx.wait_for("value").await?;
        sum += step(&ctx, "take", value).await?;
    }
    let none: Option<u32> = ctx.wait_for("never").timeout(SOON).await?;
    Ok(sum + none.unwrap_or(0))
}

async fn races(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let mut won = 0;
    for _ in 0..n {
        match ctx.race((ctx.sleep(SOON), ctx.wait_for::<u32>("nobody"))).await? {
            Race2::First(()) => won += step(&ctx, "won", 1).await?,
            Race2::Second(_) => return Err(outlast::Error::new("wrong", "nobody signals")),
        }
    }
    let (a, b) = ctx
        .all((
            ctx.step("a", async |s| {
                witness(&s);
                Ok(1_u32)
            }),
            ctx.step("b", async |s| {
                witness(&s);
                Ok(2_u32)
            }),
        ))
        .await?;
    let check = ctx
        .wait_for_condition("count", 0_u32, async |s, count| {
            witness(&s);
            Ok(if count < 2 { outlast::Check::Not(count + 1) } else { outlast::Check::Met(count) })
        })
        .retry(Retry::attempts(9).initial(Duration::from_millis(5)))
        .await?;
    Ok(won + a + b + check)
}

async fn batches(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let batch = ctx
        .map("items", (0..n).collect(), async |ctx: Ctx, item: u32, _| {
            ctx.sleep(Duration::from_millis(5)).await?;
            step(&ctx, "item", item).await
        })
        .max_concurrency(3)
        .await?;
    let inner: u32 = ctx.scope("inner", async |ctx: Ctx| step(&ctx, "inside", 5).await).await?;
    Ok(batch.results()?.into_iter().sum::<u32>() + inner)
}

async fn child(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    ctx.sleep(SOON).await?;
    step(&ctx, "double", n * 2).await
}

async fn families(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let mut sum = 0;
    for i in 0..n {
        sum += ctx.child::<u32>("child", &i).await?;
    }
    Ok(sum)
}

async fn approvals(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let mut approved = 0;
    for _ in 0..n {
        approved += u32::from(ctx.approve("Go on?").await?.approved);
        step(&ctx, "noted", approved).await?;
    }
    Ok(approved)
}

async fn generations(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    step(&ctx, "once", n).await?;
    let value: u32 = ctx.wait_for("value").await?;
    step(&ctx, "took", value).await?;
    if n == 0 { Ok(value) } else { ctx.continue_as_new(&(n - 1)) }
}
