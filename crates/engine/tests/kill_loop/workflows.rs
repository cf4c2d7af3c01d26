//! Workflows that between them use every primitive. Every body leaves a line in the ledger, outside the store.

use std::io::Write;
use std::time::Duration;

use outlast::{Check, ClosePolicy, Ctx, Error, Outlast, Race2, Result, Retry, StepContext, Token, Tx, params};

/// The runs, by the names of their workflows.
pub(crate) const NAMES: [&str; 9] =
    ["steps", "naps", "signals", "races", "batches", "families", "answers", "generations", "payments"];
/// Asked to stop, and comes to no result.
pub(crate) const CANCELLED: &str = "cancelled";

/// How a line of the ledger begins that tells a callback's token.
pub(crate) const CALLED: &str = "callback ";

const SOON: Duration = Duration::from_millis(15);
const NEVER: Duration = Duration::from_secs(3_600);

pub(crate) fn register(engine: Outlast) -> Outlast {
    engine
        .workflow("steps", steps)
        .workflow("naps", naps)
        .workflow("signals", signals)
        .workflow("races", races)
        .workflow("batches", batches)
        .workflow("families", families)
        .workflow("answers", answers)
        .workflow("generations", generations)
        .workflow("payments", payments)
        .workflow(CANCELLED, cancelled)
        .workflow("child", child)
        .workflow("patient", patient)
}

fn ledger() -> String {
    std::env::var("OUTLAST_KILL_LEDGER").expect("a worker has a ledger")
}

/// One line, written at once, kept by the system even if the process dies.
fn note(line: &str) {
    let mut ledger = std::fs::OpenOptions::new().append(true).create(true).open(ledger()).expect("the ledger opens");
    // In one write, so that the lines of two drivers cannot mix.
    ledger.write_all(format!("{line}\n").as_bytes()).expect("the ledger is written");
}

/// Witnesses that a body ran.
fn witness(step: &StepContext) {
    note(step.idempotency_key());
}

async fn step(ctx: &Ctx, name: &str, value: u32) -> Result<u32> {
    ctx.step(name, async |s| {
        witness(&s);
        Ok(value)
    })
    .await
}

fn quickly(attempts: u32) -> Retry {
    Retry::attempts(attempts).initial(Duration::from_millis(5))
}

async fn steps(ctx: Ctx, n: u32) -> Result<u32> {
    let mut sum = 0;
    for i in 0..n {
        sum += step(&ctx, "add", i).await?;
    }
    let flaky = ctx.step("flaky", async |s| {
        witness(&s);
        if s.attempt() < 3 { Err(Error::new("not_yet", "again")) } else { Ok(s.attempt()) }
    });
    sum += flaky.retry(quickly(5)).await?;
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

async fn naps(ctx: Ctx, n: u32) -> Result<u32> {
    let begun = ctx.now().await?;
    let (one, other) = (ctx.uuid().await?, ctx.uuid().await?);
    ctx.random().await?;
    for i in 0..n {
        ctx.sleep(SOON).await?;
        step(&ctx, "nap", i).await?;
    }
    ctx.sleep_until(begun + SOON * (n + 1)).await?;
    let ended = ctx.now().await?;
    if ended.since(begun) < SOON * (n + 1) || one == other {
        return Err(Error::new("early", "a sleep ended too soon, or chance repeated itself"));
    }
    Ok(n)
}

async fn signals(ctx: Ctx, n: u32) -> Result<u32> {
    let aimed = ctx.wait_for::<u32>("direct").id("aimed").start();
    let mut sum = 0;
    for _ in 0..n {
        let value: u32 = ctx.wait_for("value").await?;
        sum += step(&ctx, "take", value).await?;
    }
    let none: Option<u32> = ctx.wait_for("never").timeout(SOON).await?;
    Ok(sum + none.unwrap_or(0) + aimed.await?)
}

async fn races(ctx: Ctx, n: u32) -> Result<u32> {
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

async fn batches(ctx: Ctx, n: u32) -> Result<u32> {
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

async fn child(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep(SOON).await?;
    step(&ctx, "double", n * 2).await
}

/// Waits until it is told to stop.
async fn patient(ctx: Ctx, (): ()) -> Result<()> {
    ctx.wait_for("never").await
}

async fn families(ctx: Ctx, n: u32) -> Result<u32> {
    let mut sum = 0;
    for i in 0..n {
        sum += ctx.child::<u32>("child", &i).await?;
    }
    ctx.child::<u32>("child", &n).detach().await?;
    // One loses a race, one is left when its parent ends: both are told to stop.
    ctx.race((ctx.child::<()>("patient", &()).id("loser"), ctx.sleep(SOON))).await?;
    let _left = ctx.child::<()>("patient", &()).id("left").on_close(ClosePolicy::Terminate).start();
    Ok(sum)
}

async fn answers(ctx: Ctx, n: u32) -> Result<u32> {
    let mut sum = 0;
    for _ in 0..n {
        sum += u32::from(ctx.approve("Go on?").await?.approved);
        step(&ctx, "noted", sum).await?;
    }
    let late = ctx.approve("Too late?").id("late").timeout(SOON).await?;
    // Whoever answers finds the token in the ledger.
    let called = ctx.wait_for_callback("call", async |s: StepContext, token: Token| {
        witness(&s);
        note(&format!("{CALLED}{}", token.as_str()));
        Ok(())
    });
    let called: u32 = called.await?;
    Ok(sum + called + u32::from(late.is_some()))
}

async fn generations(ctx: Ctx, n: u32) -> Result<u32> {
    step(&ctx, "once", n).await?;
    ctx.set_state(&n)?;
    let value: u32 = ctx.wait_for("value").await?;
    ctx.emit("took", &value)?;
    step(&ctx, "took", value).await?;
    if n == 0 { Ok(value) } else { ctx.continue_as_new(&(n - 1)) }
}

/// Nothing keeps its rows apart: if one of them were written twice, the sum would tell.
async fn payments(ctx: Ctx, n: u32) -> Result<u32> {
    async fn pay(tx: Tx) -> Result<u32> {
        // A server has one such table for all the databases of this story.
        let story = ledger();
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

/// Paused, resumed, and asked to stop: it cleans up.
async fn cancelled(ctx: Ctx, n: u32) -> Result<u32> {
    for i in 0..n {
        step(&ctx, "before", i).await?;
    }
    let stopped = ctx.wait_for::<()>("never").await;
    step(&ctx, "clean up", 0).await?;
    stopped.map(|()| 0)
}
