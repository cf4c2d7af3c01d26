//! Scopes: keys and a result of their own, and an inside that need not be replayed.

use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::event::Event;
use serde_json::json;

use super::Stage;
use crate::code::Ctx;
use crate::error::{Error, Result};

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn a_scope_has_keys_of_its_own_and_a_recorded_result() {
    async fn workflow(ctx: Ctx, factor: u32) -> Result<u32> {
        let first = ctx.scope("ship", async |ctx| Ok(factor * ctx.step("label", async |_| Ok(2)).await?)).await?;
        let second = ctx.scope("ship", async |ctx| ctx.scope("inner", async |_| Ok(first)).await).await?;
        Ok(second)
    }
    let mut stage = Stage::new(workflow, 3);
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(6));
    assert_eq!(
        stage.told(),
        [
            "scope ship",
            "await ship",
            "step ship/label",
            "await ship/label",
            "finish ship/label 2",
            "close ship 6",
            "scope ship#2",
            "await ship#2",
            "scope ship#2/inner",
            "await ship#2/inner",
            "close ship#2/inner 6",
            "close ship#2 6"
        ]
    );
}

#[test]
fn the_inside_of_a_closed_scope_is_not_run_again() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.scope("ship", async |ctx| ctx.step("label", async |_| Ok(2)).await).await?;
        ctx.wait_for("more").await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    let replay = stage.replay();
    assert_eq!(replay.told(), ["scope ship", "await ship", "wait __wait-more-0", "await __wait-more-0"]);
    stage.assert_replays();
}

#[test]
fn a_result_that_is_too_large_is_made_again_from_the_inside() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        ctx.scope("large", async |ctx| ctx.step("text", async |_| Ok("x".repeat(100))).await).await
    }
    let mut stage = Stage::new(workflow, ());
    stage.result_bytes_max = 10;
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!("x".repeat(100)));
    let Some(Event::ScopeFinished { result: None, replay_inside: true, .. }) = stage.journal.last() else { panic!() };
    assert!(stage.replay().told().contains(&"step large/text".to_owned()));
}

#[test]
fn a_scope_fails_with_the_error_of_its_body() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        let scope = ctx.scope("bad", async |_| Err::<(), _>(Error::new("mine", "no").with_data(&1)));
        let error = scope.await.unwrap_err();
        Ok(format!("{error} {:?}", error.data::<u32>()))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!("mine: no Some(1)"));
}

#[test]
fn what_is_open_when_a_scope_ends_is_over_and_its_body_dropped() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.scope("short", async |ctx| {
            drop(ctx.sleep(HOUR).start());
            drop(ctx.step("body", async |_| std::future::pending::<Result<()>>().await).start());
            ctx.wait_for::<u32>("end").await
        })
        .await?;
        ctx.wait_for("more").await
    }
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start();
    stage.resume(outlast_core::program::Input::Execute { key: &super::key("short/body"), attempt: 1 });
    assert_eq!(stage.progress, Some(outlast_core::program::Progress::Executing));
    stage.journal.push(Event::SignalResolved {
        key: super::key("short/__wait-end-0"),
        name: "end".try_into().unwrap(),
        signal_id: "id".try_into().unwrap(),
        payload: "1".into(),
    });
    stage.run();
    assert_eq!(stage.progress, Some(outlast_core::program::Progress::Blocked), "the body is gone");
    // What is open now is the wait alone: a cancellation finds nothing else.
    stage.cancel();
    assert_eq!(stage.told().last().unwrap(), "cancel __wait-more-0");
    assert_eq!(stage.told().iter().filter(|told| told.starts_with("cancel")).count(), 1);
    stage.assert_replays();
}

#[test]
fn a_scope_that_is_dropped_is_cancelled_as_a_whole() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        let scope = ctx.scope("dropped", async |ctx| ctx.sleep(HOUR).await);
        assert!(scope.now_or_never().is_none());
        ctx.sleep(HOUR).await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().fire("__sleep-0").assert_replays();
    assert_eq!(
        stage.told(),
        [
            "scope dropped",
            "await dropped",
            "sleep dropped/__sleep-0",
            "await dropped/__sleep-0",
            "cancel dropped",
            "sleep __sleep-0",
            "await __sleep-0"
        ]
    );
}
