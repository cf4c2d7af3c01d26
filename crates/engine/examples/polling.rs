//! Waiting for a job somewhere else by asking for it again and again.
//!
//! `cargo run --example polling` submits a job and asks for it until it is done. Between two checks the run sleeps in the
//! database, not in memory, and what one check leaves for the next is recorded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outlast::{Check, Ctx, Outlast, Retry};
use serde::{Deserialize, Serialize};

/// What is known about the job.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    id: String,
    percent: u32,
}

async fn report(ctx: Ctx, name: String) -> outlast::Result<String> {
    let id: String = ctx.step("submit", async |s| Ok(format!("{name} ({})", s.run_id()))).await?;
    let every = Retry::attempts(20).initial(Duration::from_millis(20)).cap(Duration::from_millis(100));
    let done = ctx
        .wait_for_condition("done", Job { id, percent: 0 }, async |_, job: Job| {
            let percent = progress();
            println!("  {}: {} to {percent} percent", job.id, job.percent);
            let job = Job { percent, ..job };
            Ok(if percent == 100 { Check::Met(job) } else { Check::Not(job) })
        })
        .retry(every)
        .await?;
    Ok(format!("{} is at {} percent", done.id, done.percent))
}

/// The job, somewhere else.
fn progress() -> u32 {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    (ASKED.fetch_add(25, Ordering::Relaxed) + 25).min(100)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let engine = Outlast::sqlite(dir.path().join("jobs.db")).workflow("report", report).start().await?;
    let outcome: String = engine.start("report", "yearly report").id("report-1").await?.result().await?;
    println!("{outcome}");
    engine.shutdown().await;
    Ok(())
}
