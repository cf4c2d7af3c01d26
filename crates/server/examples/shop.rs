//! A program of your own that serves its workflows: the API, and the page if it was built in.
//!
//! `cargo run --package outlast-server --example shop -- 127.0.0.1:7117 shop.db`, then open http://127.0.0.1:7117. An
//! order waits to be approved and paid, and a bank is asked for an answer. Stop it, start it again, and orders go on
//! where they were.

use std::error::Error;

use outlast::{Ctx, Outlast, Retry};
use outlast_server::{Options, Server};
use serde::Deserialize;

async fn order(ctx: Ctx, amount: u32) -> outlast::Result<String> {
    ctx.set_state(&"checking")?;
    let name: String = ctx.step("load", async |_| Ok("Ada".to_owned())).await?;
    let decision = ctx.approve(format!("Sell for {amount} to {name}?")).await?;
    if !decision.approved {
        return Ok("denied".to_owned());
    }
    let paid: u32 = ctx.wait_for("payment").await?;
    let bank = ctx.callback::<String>().create();
    let token = bank.token();
    ctx.step("ask the bank", async |_| Ok(token.clone())).await?;
    let answer = bank.await?;
    // The first attempt fails, so that there is something to see.
    let receipt = ctx.step("book", async |s| match s.attempt() {
        1 => Err(outlast::Error::from(std::io::Error::other("the ledger is locked"))),
        _ => Ok(format!("{paid} booked, the bank says {answer}")),
    });
    receipt.retry(Retry::attempts(3)).await
}

/// An errand: which signal it waits for is its input, so that a fork with another input does not fit its own journal, and parks.
/// The file `way` stands for a deploy of code that goes another way: with the right one in it the fork goes on.
async fn errand(ctx: Ctx, input: Errand) -> outlast::Result<String> {
    let decision = ctx.approve("Go?").await?;
    if !decision.approved {
        return Ok(format!("stayed: {}", decision.feedback.unwrap_or_default()));
    }
    let way = std::fs::read_to_string("way").unwrap_or(input.way);
    let word: String = ctx.wait_for(&way).await?;
    let bank = ctx.callback::<String>().create();
    let token = bank.token();
    ctx.step("ask the bank", async |_| Ok(token.clone())).await?;
    let answer = bank.await?;
    // Fails for good until somebody mends it.
    let bridge = ctx.step("cross the bridge", async |_| Ok(std::fs::read_to_string("mended")?));
    bridge.retry(Retry::attempts(1)).await?;
    Ok(format!("{word}, {answer}"))
}

#[derive(Deserialize)]
struct Errand {
    way: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:7117".to_owned());
    let database = args.next().unwrap_or_else(|| "shop.db".to_owned());
    let engine = Outlast::sqlite(&database).workflow("order", order).workflow("errand", errand).start().await?;
    let server = Server::new(engine.clone(), Options::default()).bind(address.as_str()).await?;
    println!("http://{}", server.address());
    server
        .run(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await;
    engine.shutdown().await;
    Ok(())
}
