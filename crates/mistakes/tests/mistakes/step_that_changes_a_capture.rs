//! Replay does not run a step's body again: what it changes outside would be lost.

async fn workflow(ctx: outlast::Ctx, (): ()) -> outlast::Result<u32> {
    let mut count = 0;
    ctx.step("count", async |_| {
        count += 1;
        Ok(())
    })
    .await?;
    Ok(count)
}

fn main() {
    outlast::Workflow::new("workflow", workflow);
}
