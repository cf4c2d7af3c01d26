//! A step is one operation: it cannot contain others.

use std::time::Duration;

async fn workflow(ctx: outlast::Ctx, (): ()) -> outlast::Result<u32> {
    ctx.step("outer", async |_| {
        ctx.sleep(Duration::from_secs(1)).await?;
        Ok(1)
    })
    .await
}

fn main() {
    outlast::Workflow::new("workflow", workflow);
}
