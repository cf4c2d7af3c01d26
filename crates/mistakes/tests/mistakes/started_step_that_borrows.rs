//! A step that was started may outlive what it borrows.

async fn workflow(ctx: outlast::Ctx, name: String) -> outlast::Result<usize> {
    let handle = ctx.step("length", async |_| Ok(name.len())).start();
    handle.await
}

fn main() {
    outlast::Workflow::new("workflow", workflow);
}
