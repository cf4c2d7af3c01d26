//! Waits for people and other programs.

use outlast::{Ctx, Error, Result, StepContext, Token};

use super::{SILENCE, SOON, step};
use crate::ledger::{Ledger, Note, witness};

pub(super) async fn signals(ctx: Ctx, n: u32) -> Result<u32> {
    let aimed = ctx.wait_for::<u32>("direct").id("aimed").start();
    let mut sum = 0;
    for _ in 0..n {
        let value: u32 = ctx.wait_for("value").await?;
        sum += step(&ctx, "take", value).await?;
    }
    let none: Option<u32> = ctx.wait_for("never").timeout(SOON).await?;
    // A word comes first, which is not a number.
    let number: u32 = ctx.wait_for("number").await?;
    Ok(sum + none.unwrap_or(0) + aimed.await? + number)
}

/// Its signal comes with its start.
pub(super) async fn greeted(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep(SOON).await?;
    let value: u32 = ctx.wait_for("value").await?;
    step(&ctx, "greet", value + n).await
}

/// Hands out the token of a callback: whoever answers finds it in the ledger.
fn hand_out(step: &StepContext, callback: &str, token: &Token) {
    witness(step);
    Ledger::own().note(Note::Token { callback: callback.to_owned(), token: token.as_str().to_owned() });
}

pub(super) async fn answers(ctx: Ctx, n: u32) -> Result<u32> {
    let mut sum = 0;
    for _ in 0..n {
        sum += u32::from(ctx.approve("Go on?").await?.approved);
        step(&ctx, "noted", sum).await?;
    }
    let late = ctx.approve("Too late?").id("late").timeout(SOON).await?;
    let call = async |s: StepContext, token: Token| {
        hand_out(&s, "call", &token);
        Ok(())
    };
    ctx.wait_for_callback::<u32, _>("call", call).await?;
    let refused = async |s: StepContext, token: Token| {
        hand_out(&s, "refused", &token);
        Ok(())
    };
    let refused = ctx.wait_for_callback::<u32, _>("refused", refused).await;
    let alive = async |s: StepContext, token: Token| {
        hand_out(&s, "alive", &token);
        Ok(())
    };
    // Given signs of life for a while, and then no more.
    let alive = ctx.wait_for_callback::<u32, _>("alive", alive).heartbeat(SILENCE).await;
    match (refused, alive) {
        (Err(refused), Err(alive)) if (refused.code(), alive.code()) == ("refused", "timeout") => {
            Ok(sum + u32::from(late.is_some()))
        }
        other => Err(Error::new("wrong", format!("the callbacks came to {other:?}")).permanent()),
    }
}

pub(super) async fn generations(ctx: Ctx, n: u32) -> Result<u32> {
    step(&ctx, "once", n).await?;
    ctx.set_state(&n)?;
    let value: u32 = ctx.wait_for("value").await?;
    ctx.emit("took", &value)?;
    step(&ctx, "took", value).await?;
    if n == 0 { Ok(value) } else { ctx.continue_as_new(&(n - 1)) }
}
