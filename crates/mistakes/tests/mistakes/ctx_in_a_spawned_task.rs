//! A workflow runs on one thread, in the order of its journal: a task beside it could not be replayed.

use std::time::Duration;

async fn workflow(ctx: outlast::Ctx, (): ()) -> outlast::Result<()> {
    tokio::spawn(async move { ctx.sleep(Duration::from_secs(1)).await });
    Ok(())
}

fn main() {
    outlast::Workflow::new("workflow", workflow);
}
