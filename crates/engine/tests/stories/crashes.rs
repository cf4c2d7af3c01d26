//! Every story again, with the engine killed at every call.

use std::time::Duration;

use outlast::testing::crash_everywhere;
use outlast::{Ctx, Engine, EngineError, Event, Retry};

async fn everything(ctx: Ctx, n: u32) -> outlast::Result<String> {
    let first = ctx.step("first", async |_| Ok(n)).await?;
    ctx.sleep(Duration::from_secs(3600)).await?;
    let flaky = ctx
        .step("flaky", async |s| if s.attempt() < 2 { Err(outlast::Error::new("x", "y")) } else { Ok(s.attempt()) })
        .retry(Retry::attempts(3))
        .await?;
    let word: Option<String> = ctx.wait_for("word").timeout(Duration::from_secs(60)).await?;
    let none: Option<String> = ctx.wait_for("never").timeout(Duration::from_secs(60)).await?;
    Ok(format!("{first} {flaky} {word:?} {none:?}"))
}

#[test]
fn steps_sleeps_retries_and_waits_survive_a_crash_at_every_call() {
    let crashes = crash_everywhere(
        |engine| engine.workflow("everything", everything),
        async |engine: Engine| {
            let run = engine.start("everything", &7).id("a").await.ok()?;
            engine.run("a").ok()?.signal("word", "hello", "s").await.ok()?;
            run.result::<String>().await.ok()
        },
    );
    assert!(crashes.kills > 40, "{crashes:?}");
}

async fn nap(ctx: Ctx, (): ()) -> outlast::Result<()> {
    ctx.sleep(Duration::from_secs(600)).await
}

/// Lets some time pass, on an engine that may die meanwhile.
async fn a_while(engine: &Engine) -> Option<()> {
    engine.start("nap", &()).await.ok()?.result().await.ok()
}

/// Promise 1: an acknowledged start of a child, and its result, are not lost.
#[test]
fn children_survive_a_crash_at_every_call() {
    async fn double(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        ctx.sleep(Duration::from_secs(10)).await?;
        Ok(n * 2)
    }
    async fn parent(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        let left = ctx.child::<u32>("double", &n).id("left").start();
        let right = ctx.child::<u32>("double", &(n + 1)).start();
        Ok(left.await? + right.await?)
    }
    let crashes = crash_everywhere(
        |engine| engine.workflow("double", double).workflow("parent", parent),
        async |engine: Engine| engine.start("parent", &7).id("a").await.ok()?.result::<u32>().await.ok(),
    );
    assert!(crashes.kills > 40, "{crashes:?}");
}

/// "Mailbox and dedup keys move along": each signal is taken once, whatever happens.
#[test]
fn generations_survive_a_crash_at_every_call() {
    async fn adder(ctx: Ctx, taken: Vec<u32>) -> outlast::Result<Vec<u32>> {
        let n = ctx.wait_for("n").await?;
        let taken = [taken, vec![ctx.step("n", async |_| Ok(n)).await?]].concat();
        if taken.len() < 3 { ctx.continue_as_new(&taken) } else { Ok(taken) }
    }
    let crashes = crash_everywhere(
        |engine| engine.workflow("adder", adder),
        async |engine: Engine| {
            let run = engine.start("adder", &Vec::<u32>::new()).id("a").await.ok()?;
            for n in 1..=3 {
                engine.run("a").ok()?.signal("n", &n, &n.to_string()).await.ok()?;
            }
            run.result::<Vec<u32>>().await.ok()
        },
    );
    assert!(crashes.kills > 40, "{crashes:?}");
}

/// What happened since it was asked to cancel. Whether the sleep had begun by then is for the crash to say.
pub(crate) fn since_cancel(journal: &[Event]) -> Vec<&'static str> {
    let kinds = journal.iter().map(|event| event.kind().name());
    kinds.skip_while(|kind| *kind != "CANCEL_REQUESTED").filter(|kind| *kind != "OPERATION_CANCELLED").collect()
}

/// Promise 1: an acknowledged cancel is not lost, and the cleanup is done to its end.
#[test]
fn a_cancel_and_its_cleanup_survive_a_crash_at_every_call() {
    async fn tidy(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let Err(error) = ctx.sleep(Duration::from_secs(86_400)).await else { return Ok(()) };
        ctx.step("refund", async |_| Ok(())).await?;
        ctx.sleep(Duration::from_secs(5)).await?;
        ctx.step("tell", async |_| Ok(())).await?;
        Err(error)
    }
    let crashes = crash_everywhere(
        |engine| engine.workflow("tidy", tidy).workflow("nap", nap),
        async |engine: Engine| {
            let run = engine.start("tidy", &()).id("a").await.ok()?;
            a_while(&engine).await?;
            // It is lost when the client begins again after the run has ended.
            let _ = engine.run("a").ok()?.cancel("enough").await;
            let EngineError::Cancelled(_) = run.result::<()>().await.err()? else { return None };
            let journal = engine.run("a").ok()?.journal().await.ok()?;
            Some(since_cancel(&journal))
        },
    );
    assert!(crashes.kills > 40, "{crashes:?}");
}

/// Promise 1: an acknowledged decision is not lost; a paused run stays paused and goes on when it is resumed.
#[test]
fn a_decision_and_a_pause_survive_a_crash_at_every_call() {
    async fn ask(ctx: Ctx, (): ()) -> outlast::Result<bool> {
        let decision = ctx.approve("Ship it?").id("ship").await?;
        ctx.sleep(Duration::from_secs(5)).await?;
        ctx.step("send", async |_| Ok(decision.approved)).await
    }
    let crashes = crash_everywhere(
        |engine| engine.workflow("ask", ask).workflow("nap", nap),
        async |engine: Engine| {
            let run = engine.start("ask", &()).id("a").await.ok()?;
            let handle = engine.run("a").ok()?;
            // Until it is asked for. The same id again, when the client begins again, is never lost.
            while let Err(error) = handle.approve("ship", true).id("decision").await {
                match error.code() {
                    "not_found" => a_while(&engine).await?,
                    code => {
                        assert_ne!(code, "approval_lost", "it was ours");
                        return None;
                    }
                }
            }
            // These are lost when the client begins again after the run has ended.
            let _ = handle.pause("lunch").await;
            a_while(&engine).await?;
            let _ = handle.resume().await;
            run.result::<bool>().await.ok()
        },
    );
    assert!(crashes.kills > 40, "{crashes:?}");
}
