//! Children.

use outlast::{ClosePolicy, Ctx, Error, Result};

use super::{SOON, step};

pub(super) async fn child(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep(SOON).await?;
    step(&ctx, "double", n * 2).await
}

/// Waits until it is told to stop.
pub(super) async fn patient(ctx: Ctx, (): ()) -> Result<()> {
    ctx.wait_for("never").await
}

pub(super) async fn families(ctx: Ctx, n: u32) -> Result<u32> {
    let mut sum = 0;
    for i in 0..n {
        sum += ctx.child::<u32>("child", &i).await?;
    }
    ctx.child::<u32>("child", &n).id("detached").detach().await?;
    match ctx.child::<u32>("failing", &n).id("failed").await {
        Err(error) if error.code() == "on_purpose" => {}
        other => return Err(Error::new("wrong", format!("a child that fails came to {other:?}")).permanent()),
    }
    // One loses a race, one is left when its parent ends: both are told to stop.
    ctx.race((ctx.child::<()>("patient", &()).id("loser"), ctx.sleep(SOON))).await?;
    let _left = ctx.child::<()>("patient", &()).id("left").on_close(ClosePolicy::Terminate).start();
    Ok(sum)
}
