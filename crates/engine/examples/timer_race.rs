//! A payment against a deadline, with a reminder on the way.
//!
//! `cargo run --example timer_race` waits for two payments. One comes; the other does not, and is reminded of, and expires.
//! Whoever wins a race is decided by the journal, so that a replay cannot see it otherwise. The loser is cancelled, and
//! leaves nothing behind.

use std::time::Duration;

use outlast::{Ctx, Outlast, Race2};

const PATIENCE: Duration = Duration::from_millis(200);

async fn invoice(ctx: Ctx, amount: u32) -> outlast::Result<String> {
    // One wait for the whole time, and timers beside it: a payment between two races is not missed.
    let mut paid = ctx.wait_for::<u32>("paid").start();
    for reminder in 1..=2 {
        match ctx.race((&mut paid, ctx.sleep(PATIENCE))).await? {
            Race2::First(sum) if sum >= amount => return Ok(format!("paid after {} reminders", reminder - 1)),
            Race2::First(sum) => return Ok(format!("only {sum} of {amount} paid")),
            Race2::Second(()) => {
                ctx.step("remind", async |_| {
                    println!("  reminder {reminder} for {amount}");
                    Ok(())
                })
                .await?;
            }
        }
    }
    Ok("expired".to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let engine = Outlast::sqlite(dir.path().join("invoices.db")).workflow("invoice", invoice).start().await?;
    let first = engine.start("invoice", &120).id("invoice-1").await?;
    let second = engine.start("invoice", &80).id("invoice-2").await?;
    // The id makes it safe to send again: a payment is applied once.
    engine.run("invoice-1")?.signal("paid", &120, "payment-77").await?;
    engine.run("invoice-1")?.signal("paid", &120, "payment-77").await?;
    println!("invoice-1: {}", first.result::<String>().await?);
    println!("invoice-2: {}", second.result::<String>().await?);
    engine.shutdown().await;
    Ok(())
}
