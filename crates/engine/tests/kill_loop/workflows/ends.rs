//! Runs that fail, are paused, are asked to stop, or are ended without being asked.

use outlast::{Ctx, Error, Result};

use super::{SOON, step};

pub(super) async fn failing(ctx: Ctx, n: u32) -> Result<u32> {
    step(&ctx, "before", n).await?;
    Err(Error::new("on_purpose", "it fails").permanent())
}

/// Goes on in small steps until it is told that it was paused often enough.
pub(super) async fn pausable(ctx: Ctx, n: u32) -> Result<u32> {
    let mut ticks = 0;
    while ctx.wait_for::<u32>("enough").timeout(SOON * 2).await?.is_none() {
        ticks += 1;
        step(&ctx, "tick", ticks).await?;
    }
    Ok(n)
}

/// Asked to stop, it cleans up.
pub(super) async fn cancelled(ctx: Ctx, n: u32) -> Result<u32> {
    for i in 0..n {
        step(&ctx, "before", i).await?;
    }
    let stopped = ctx.wait_for::<()>("never").await;
    step(&ctx, "clean up", 0).await?;
    stopped.map(|()| 0)
}

/// Ended without being asked: it does not clean up, and its child is asked to stop.
pub(super) async fn doomed(ctx: Ctx, n: u32) -> Result<u32> {
    step(&ctx, "before", n).await?;
    let orphan = ctx.child::<()>("patient", &()).id("orphan").await;
    step(&ctx, "clean up", 0).await?;
    orphan.map(|()| n)
}
