//! A workflow that does some of everything, and ways in which its code may have changed since.

use outlast::testing::{Script, World};
use outlast::{Check, Ctx, Error, Outlast, Recording, Retry, StepContext, Workflow};

use crate::support::{Tally, seconds};

/// How the code was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    RenamedStep,
    OtherOrder,
    NoSleep,
    StepBecameWait,
    LongerSleep,
    OtherSignal,
    MoreBranches,
    StepAtTheEnd,
    ValueAtTheEnd,
    EndsEarly,
    OtherOutput,
    Fails,
}

/// The workflow, with a tally of the bodies that ran.
pub(super) fn rich(change: Change, ran: &Tally) -> Workflow {
    let ran = ran.clone();
    Workflow::new("rich", move |ctx: Ctx, n: u32| story(ctx, n, change, ran.clone()))
}

async fn story(ctx: Ctx, n: u32, change: Change, ran: Tally) -> outlast::Result<String> {
    let body = async |_| Ok(ran.add());
    let (first, second) = if change == Change::OtherOrder { ("two", "one") } else { ("one", "two") };
    let first = if change == Change::RenamedStep { "eins" } else { first };
    ctx.step(first, body).await?;
    match change {
        Change::EndsEarly => return Ok("early".to_owned()),
        Change::StepBecameWait => ctx.wait_for::<u32>("two").id("two").await?,
        _ => ctx.step(second, body).await?,
    };
    let (began, id) = (ctx.now().await?, ctx.uuid().await?);
    if change != Change::NoSleep {
        ctx.sleep(seconds(if change == Change::LongerSleep { 61 } else { 60 })).await?;
    }
    let asked = asks(&ctx, change).await?;
    let done = does(&ctx, n, change, &ran).await?;
    match change {
        Change::StepAtTheEnd => ctx.step("more", body).await.map(drop)?,
        Change::ValueAtTheEnd => ctx.random().await.map(drop)?,
        Change::Fails => return Err(Error::new("changed", "its mind")),
        _ => {}
    }
    let n = if change == Change::OtherOutput { n + 1 } else { n };
    Ok(format!("{n} {began} {id} {asked} {done}"))
}

/// Waits for people and programs outside.
async fn asks(ctx: &Ctx, change: Change) -> outlast::Result<String> {
    let signal = if change == Change::OtherSignal { "phrase" } else { "word" };
    let word: Option<String> = ctx.wait_for(signal).id("a word").timeout(seconds(600)).await?;
    let none: Option<String> = ctx.wait_for("never").timeout(seconds(1)).await?;
    let decision = ctx.approve("Go on?").id("go on").await?;
    let late = ctx.callback::<u32>().id("nobody").timeout(seconds(5)).create().await;
    Ok(format!("{word:?} {none:?} {} {}", decision.approved, late.is_err()))
}

/// Runs code, children, branches and races.
async fn does(ctx: &Ctx, n: u32, change: Change, ran: &Tally) -> outlast::Result<String> {
    let flaky = async |s: StepContext| {
        ran.add();
        if s.attempt() == 1 { Err(Error::new("flaky", "no")) } else { Ok(s.attempt()) }
    };
    let attempt = ctx.step("flaky", flaky).retry(Retry::attempts(3)).await?;
    let condition = async |_, n: u32| {
        ran.add();
        Ok(if n == 1 { Check::Met(n) } else { Check::Not(n + 1) })
    };
    let checked = ctx.wait_for_condition("ready", 0, condition).await?;
    let items = if change == Change::MoreBranches { vec![1, 2, 3] } else { vec![1, 2] };
    let double = async |ctx: Ctx, item: u32, _| {
        let body = async |_| {
            ran.add();
            Ok(item * 2)
        };
        ctx.step("times two", body).await
    };
    let doubled = ctx.map("double", items, double).await?.results()?;
    let scoped = ctx.scope("scope", async |ctx| ctx.sleep(seconds(1)).await.map(|()| 7)).await?;
    let child: u32 = ctx.child("child", &n).await?;
    ctx.race((ctx.sleep(seconds(5)), ctx.sleep(seconds(500)))).await?;
    Ok(format!("{attempt} {checked} {doubled:?} {scoped} {child}"))
}

async fn child(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    ctx.sleep(seconds(30)).await.map(|()| n + 1)
}

/// An engine that knows the workflow.
pub(super) fn register(change: Change, ran: &Tally, engine: Outlast) -> Outlast {
    engine.register(rich(change, ran)).workflow("child", child)
}

/// What is done to it from outside.
pub(super) fn script() -> Script {
    Script::new().signal_at(seconds(70), "word", "hello").approve_at(seconds(90), "go on", true)
}

/// A run of it, from its beginning to its end.
pub(super) fn recorded(ran: &Tally) -> Recording {
    let world = World::new();
    world.block_on(async {
        let engine = register(Change::Nothing, ran, world.engine()).start().await.expect("it starts");
        let run = engine.start("rich", &7).id("a").await.expect("it is started");
        script().play(&run).await.expect("the script is played");
        run.result::<String>().await.expect("it ends");
        engine.run("a").expect("a name").export().await.expect("it is there")
    })
}
