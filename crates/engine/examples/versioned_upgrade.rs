//! New code for new runs, old code for those that began with it.
//!
//! `cargo run --example versioned_upgrade` starts a run with version 1, stops, and comes back as a new deployment that has
//! version 2 and still knows version 1. The old run ends as it began; a new run gets the new code.

use std::path::Path;
use std::time::Duration;

use outlast::{Ctx, Engine, EngineError, Outlast, Workflow};

async fn greet_v1(ctx: Ctx, name: String) -> outlast::Result<String> {
    ctx.wait_for::<()>("go").await?;
    ctx.step("greet", async |_| Ok(format!("Hello {name}"))).await
}

/// Asks for the time of day first: another order of operations, so another version.
async fn greet_v2(ctx: Ctx, name: String) -> outlast::Result<String> {
    let part: String = ctx.step("time of day", async |_| Ok("morning".to_owned())).await?;
    ctx.wait_for::<()>("go").await?;
    ctx.step("greet", async |_| Ok(format!("Good {part}, {name}!"))).await
}

async fn deploy(file: &Path, workflow: Workflow) -> Result<Engine, EngineError> {
    Outlast::sqlite(file).register(workflow).poll(Duration::from_millis(100)).start().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("greetings.db");

    let engine = deploy(&file, Workflow::new("greet", greet_v1)).await?;
    engine.start("greet", "Ada").id("ada").await?;
    println!("version 1 is deployed, and Ada's run waits");
    engine.shutdown().await;

    let upgraded = Workflow::new("greet", greet_v2).version("2").previous_version("1", greet_v1);
    let engine = deploy(&file, upgraded).await?;
    println!("version 2 is deployed, and knows version 1");
    engine.start("greet", "Bob").id("bob").await?;
    for run in ["ada", "bob"] {
        engine.run(run)?.signal("go", &(), "go").await?;
        println!("  {run}: {}", engine.run(run)?.result::<String>().await?);
    }
    engine.shutdown().await;
    Ok(())
}
