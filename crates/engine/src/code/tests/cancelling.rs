//! A run that is asked to stop: what is open fails, and what cleans up works.

use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::event::Event;
use outlast_core::program::{Input, Progress};
use serde_json::json;

use super::{Stage, key};
use crate::code::Ctx;
use crate::error::Result;

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn everything_open_is_cancelled_in_order_of_start_and_cleanup_runs() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        let _beside = ctx.wait_for::<u32>("z").start();
        let charge = ctx.step("charge", async |_| Ok(7)).await?;
        let error = ctx.all((ctx.sleep(HOUR), ctx.approve("ok?"))).await.unwrap_err();
        assert!(ctx.is_cancelled() && error.is_cancelled());
        let refund = ctx.step("refund", async move |_| Ok(charge)).await?;
        ctx.sleep(HOUR).await?;
        Ok(format!("{error}, refunded {refund}"))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().happen(Event::CancelRequested { reason: Some("too late".to_owned()), by: None }).assert_replays();
    assert_eq!(
        stage.told()[8..],
        [
            "cancel __wait-z-0",
            "cancel __sleep-0",
            "cancel __approve-0",
            "step refund",
            "await refund",
            "finish refund 7",
            "sleep __sleep-1",
            "await __sleep-1"
        ]
    );
    stage.fire("__sleep-1").assert_replays();
    assert_eq!(stage.output(), json!("cancelled: the run was cancelled: too late, refunded 7"));
}

#[test]
fn a_handle_that_nobody_awaited_gives_cancelled_later() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<bool> {
        let wait = ctx.wait_for::<u32>("z").start();
        let _ = ctx.sleep(HOUR).await;
        Ok(wait.await.unwrap_err().is_cancelled())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().cancel().assert_replays();
    assert_eq!(stage.output(), json!(true));
}

#[test]
fn running_bodies_are_dropped_and_the_program_no_longer_executes() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<bool> {
        let forever = async |_| std::future::pending::<Result<()>>().await;
        let beside = ctx.step("beside", forever).start();
        let failed = ctx.step("awaited", forever).await.unwrap_err();
        let _ = ctx.sleep(HOUR).await;
        Ok(failed.is_cancelled() && beside.await.unwrap_err().is_cancelled())
    }
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start();
    for step in ["beside", "awaited"] {
        stage.resume(Input::Execute { key: &key(step), attempt: 1 });
    }
    assert_eq!(stage.progress, Some(Progress::Executing));
    stage.journal.push(Event::CancelRequested { reason: None, by: None });
    stage.run();
    assert_eq!(stage.progress, Some(Progress::Blocked));
    // A result that comes too late is nobody's.
    stage.happen(super::stage::finished("awaited", ())).fire("__sleep-0").assert_replays();
    assert_eq!(stage.output(), json!(true));
}

#[test]
fn code_inside_a_scope_cleans_up_before_the_scope_fails() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        ctx.scope("order", async |ctx| {
            let outcome = ctx.sleep(HOUR).await;
            ctx.step("undo", async |_| Ok(())).await?;
            outcome
        })
        .await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().cancel().assert_replays();
    assert_eq!(stage.failure().code, "cancelled");
    assert_eq!(
        stage.told()[4..],
        [
            "cancel order/__sleep-0",
            "step order/undo",
            "await order/undo",
            "finish order/undo null",
            "fail order cancelled"
        ]
    );
}

#[test]
fn dropping_a_future_cancels_it_and_dropping_a_program_says_nothing() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        assert!(ctx.sleep(HOUR).now_or_never().is_none());
        ctx.all((ctx.sleep(HOUR), ctx.wait_for::<u32>("x"))).await?;
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.told()[..3], ["sleep __sleep-0", "await __sleep-0", "cancel __sleep-0"]);
    let requests = stage.end();
    assert!(requests.is_empty(), "{requests:?}");
}

#[test]
fn what_is_open_when_the_workflow_returns_is_not_cancelled_by_the_program() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        drop(ctx.sleep(HOUR).start());
        drop(ctx.step("beside", async |_| std::future::pending::<Result<()>>().await).start());
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.told(), ["sleep __sleep-0", "step beside"]);
    // Told once more, it says the same.
    stage.resume(Input::Poll);
    assert_eq!(stage.output(), json!(null));
}
