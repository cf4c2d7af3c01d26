//! An expense that a person approves, or that goes to the next person when the first one does not answer.
//!
//! `cargo run --example human_approval` asks for two expenses. In a real program the question waits for days without
//! costing anything, and the answer comes from a web page; here it comes from the end of `main`.

use std::time::Duration;

use outlast::{Ctx, Engine, Outlast};

async fn expense(ctx: Ctx, (what, amount): (String, u32)) -> outlast::Result<String> {
    let title = format!("{what} for {amount}?");
    let manager = ctx.approve(title.as_str()).id("manager").assignee("ann").timeout(Duration::from_millis(500)).await?;
    let decision = match manager {
        Some(decision) => decision,
        // Nobody answered in time: the question goes on, and the first one can no longer be answered.
        None => ctx.approve(title).id("director").assignee("bob").await?,
    };
    let by = decision.by.as_deref().unwrap_or("somebody");
    if !decision.approved {
        return Ok(format!("{what}: refused by {by} ({})", decision.feedback.as_deref().unwrap_or("no reason given")));
    }
    ctx.step("pay", async |_| {
        println!("  paying {amount} for {what}");
        Ok(())
    })
    .await?;
    Ok(format!("{what}: approved by {by}"))
}

/// Decides as soon as the question is there.
async fn decide(
    engine: &Engine,
    run: &str,
    approval: &str,
    approved: bool,
    by: &str,
) -> Result<(), outlast::EngineError> {
    let run = engine.run(run)?;
    let mut watched = run.attach();
    while let Some(event) = watched.next().await? {
        if event.key().is_some_and(|key| key.as_str() == approval) {
            break;
        }
    }
    run.approve(approval, approved).by(by).feedback("too dear").await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let engine = Outlast::sqlite(dir.path().join("expenses.db")).workflow("expense", expense).start().await?;
    let chair = engine.start("expense", &("a chair", 90)).id("chair").await?;
    let boat = engine.start("expense", &("a boat", 90_000)).id("boat").await?;

    decide(&engine, "chair", "manager", true, "ann").await?;
    println!("{}", chair.result::<String>().await?);
    decide(&engine, "boat", "director", false, "bob").await?;
    println!("{}", boat.result::<String>().await?);
    let late = engine.run("boat")?.approve("manager", true).by("ann").await;
    println!("ann is too late: {}", late.err().map_or("no", |_| "yes"));
    engine.shutdown().await;
    Ok(())
}
