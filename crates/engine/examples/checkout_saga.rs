//! A checkout that takes back what it did when a later part fails.
//!
//! `cargo run --example checkout_saga` checks two orders out: one goes through, one cannot be shipped. Each part that
//! succeeds leaves its undoing behind; when a later one fails, they are done in the opposite order. Undoing is made of steps
//! too, so a crash in the middle of it changes nothing.

use outlast::{Ctx, Error, Outlast, Retry};

/// What to do if the order cannot be completed, by name: code cannot be recorded, names can.
#[derive(Clone, Copy)]
enum Undo {
    ReleaseStock,
    Refund,
}

async fn checkout(ctx: Ctx, order: String) -> outlast::Result<String> {
    let mut undos = Vec::new();
    match parts(&ctx, &order, &mut undos).await {
        Ok(label) => Ok(format!("{order}: shipped with {label}")),
        Err(error) => {
            for undo in undos.into_iter().rev() {
                compensate(&ctx, &order, undo).await?;
            }
            Ok(format!("{order}: not shipped, everything taken back ({})", error.message()))
        }
    }
}

async fn parts(ctx: &Ctx, order: &str, undos: &mut Vec<Undo>) -> outlast::Result<String> {
    ctx.step("reserve stock", async |_| say(format!("{order}: stock reserved"))).await?;
    undos.push(Undo::ReleaseStock);
    // The same key for every attempt: whoever charges can tell a second attempt from a second order.
    ctx.step("charge", async |s| say(format!("{order}: charged under {}", s.idempotency_key()))).await?;
    undos.push(Undo::Refund);
    ctx.step("ship", async |s| match (order, s.attempt()) {
        ("order-2", _) => Err(Error::new("no_address", "the address does not exist").permanent()),
        (_, 1) => Err(Error::new("carrier_down", "the carrier does not answer")),
        _ => Ok(format!("label-{order}")),
    })
    .retry(Retry::attempts(3).initial(std::time::Duration::from_millis(50)))
    .await
}

async fn compensate(ctx: &Ctx, order: &str, undo: Undo) -> outlast::Result<()> {
    match undo {
        Undo::Refund => ctx.step("refund", async |_| say(format!("{order}: refunded"))).await,
        Undo::ReleaseStock => ctx.step("release stock", async |_| say(format!("{order}: stock released"))).await,
    }
}

fn say(text: String) -> outlast::Result<()> {
    println!("  {text}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let engine = Outlast::sqlite(dir.path().join("shop.db")).workflow("checkout", checkout).start().await?;
    for order in ["order-1", "order-2"] {
        let outcome: String = engine.start("checkout", order).id(order).await?.result().await?;
        println!("{outcome}");
    }
    engine.shutdown().await;
    Ok(())
}
