//! Steps, sleeps and transactions.

use outlast::{Ctx, Error, Result, Retry, StepContext, Tx, params};

use super::{NEVER, SOON, TIMEOUTS, quickly, step};
use crate::ledger::witness;

pub(super) async fn steps(ctx: Ctx, n: u32) -> Result<u32> {
    let mut sum = 0;
    for i in 0..n {
        sum += step(&ctx, "add", i).await?;
    }
    let flaky = ctx.step("flaky", async |s| {
        witness(&s);
        if s.attempt() < 3 { Err(Error::new("not_yet", "again")) } else { Ok(s.attempt()) }
    });
    sum += flaky.retry(quickly(5)).await?;
    sum += out_of_time(&ctx).await?;
    // Killed in its middle it is in doubt, and not run again: that is an outcome too.
    let careful = ctx.step("careful", async |s| {
        witness(&s);
        // Long enough to be killed in.
        tokio::time::sleep(SOON).await;
        Ok(1)
    });
    sum += match careful.at_most_once().await {
        Err(error) if error.code() == "step_in_doubt" => 1,
        outcome => outcome?,
    };
    let started = ctx.step("started", async |s: StepContext| {
        witness(&s);
        s.heartbeat();
        Ok(1)
    });
    let started = started.timeout(NEVER).heartbeat(NEVER).start();
    let spawned = ctx.step("spawned", |s: StepContext| async move {
        witness(&s);
        Ok(1)
    });
    Ok(sum + spawned.spawn().await? + started.await?)
}

/// Two bodies that hang: one is out of time once, the other is silent for too long, and fails for good.
async fn out_of_time(ctx: &Ctx) -> Result<u32> {
    let [(slow, timeout), (silent, silence)] = TIMEOUTS;
    let slow = ctx.step(slow, async |s| {
        witness(&s);
        if s.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(s.attempt())
    });
    let attempts = slow.timeout(timeout).retry(quickly(2)).await?;
    let silent = ctx.step(silent, async |s| {
        witness(&s);
        std::future::pending::<Result<u32>>().await
    });
    match silent.heartbeat(silence).retry(Retry::attempts(1)).await {
        Err(error) if error.code() == "timeout" => Ok(attempts),
        other => Err(Error::new("wrong", format!("a silent step came to {other:?}")).permanent()),
    }
}

pub(super) async fn naps(ctx: Ctx, n: u32) -> Result<u32> {
    let begun = ctx.now().await?;
    let (one, other) = (ctx.uuid().await?, ctx.uuid().await?);
    ctx.random().await?;
    for i in 0..n {
        ctx.sleep(SOON).await?;
        step(&ctx, "nap", i).await?;
    }
    ctx.sleep_until(begun + SOON * (n + 1)).await?;
    step(&ctx, "nap", n).await?;
    let ended = ctx.now().await?;
    if ended.since(begun) < SOON * (n + 1) || one == other {
        return Err(Error::new("early", "a sleep ended too soon, or chance repeated itself"));
    }
    Ok(n)
}

/// Nothing keeps its rows apart: if one of them were written twice, the sum would tell.
pub(super) async fn payments(ctx: Ctx, n: u32) -> Result<u32> {
    async fn pay(tx: Tx) -> Result<u32> {
        // A server has one such table for all the databases of this story.
        let story = std::env::var("OUTLAST_KILL_LEDGER").unwrap();
        tx.execute(&format!("INSERT INTO paid (story) VALUES ('{story}')"), params![]).await?;
        let count = format!("SELECT COUNT(*) FROM paid WHERE story = '{story}'");
        let paid: i64 = tx.query_one(&count, params![]).await?.get(0)?;
        Ok(u32::try_from(paid)?)
    }
    let table = "CREATE TABLE IF NOT EXISTS paid (story TEXT NOT NULL)";
    ctx.transaction("table", move |tx: Tx| async move { Ok(tx.execute(table, params![]).await?) }).await?;
    let mut paid = 0;
    for _ in 0..n {
        paid = ctx.transaction("pay", pay).await?;
        step(&ctx, "note", paid).await?;
    }
    Ok(paid)
}
