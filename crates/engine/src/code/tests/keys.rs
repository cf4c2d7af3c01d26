//! An operation is recognised by where it is written.

use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::operation::Operation as Request;
use outlast_core::program::Program;
use serde_json::json;

use super::Stage;
use crate::code::Ctx;
use crate::error::Result;

#[test]
fn keys_are_claimed_where_the_call_is_written_not_where_it_is_polled() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(u32, u32)> {
        let first = ctx.step("x", async |_| Ok(1));
        let second = ctx.step("x", async |_| Ok(2));
        let second = second.await?;
        Ok((first.await?, second))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!([1, 2]));
    assert_eq!(stage.told(), ["step x#2", "await x#2", "finish x#2 2", "step x", "await x", "finish x 1"]);
}

#[test]
fn unnamed_operations_are_counted_and_keep_their_number_when_another_gets_a_name() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        drop(ctx.sleep(Duration::from_secs(1)).start());
        drop(ctx.sleep(Duration::from_secs(2)).id("nap").start());
        drop(ctx.sleep(Duration::from_secs(3)).start());
        drop(ctx.wait_for::<u32>("payment").start());
        drop(ctx.wait_for::<u32>("payment").start());
        drop(ctx.approve("ok?").start());
        drop(ctx.child::<u32>("ship", &1).start());
        drop(ctx.child::<u32>("ship", &1).named("again").start());
        drop(ctx.callback::<u32>().create());
        ctx.now().await?;
        ctx.uuid().id("order").await?;
        ctx.random().await?;
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(
        stage.told(),
        [
            "sleep __sleep-0",
            "sleep nap",
            "sleep __sleep-2",
            "wait __wait-payment-0",
            "wait __wait-payment-1",
            "approve __approve-0",
            "child __child-0",
            "child again",
            "callback __callback-0",
            "now __now-0",
            "uuid order",
            "random __random-0"
        ]
    );
}

#[test]
fn every_request_says_where_it_was_written() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        ctx.step("a", async |_| Ok(())).await?;
        ctx.emit("said", &1)?;
        ctx.now().await?;
        ctx.continue_as_new(&())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    let lines: Vec<u32> = stage
        .requests
        .iter()
        .filter(|requested| !matches!(requested.operation, Request::FinishStep { .. } | Request::Await { .. }))
        .map(|requested| {
            let at = requested.location.as_ref().unwrap();
            assert!(at.file.ends_with("code/tests/keys.rs"), "{at}");
            at.line
        })
        .collect();
    assert_eq!(lines, [lines[0], lines[0] + 1, lines[0] + 2, lines[0] + 3]);
}

#[test]
fn one_name_at_two_places_is_reported() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        ctx.step("x", async |_| Ok(())).await?;
        ctx.step("x", async |_| Ok(())).await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    let replay = stage.replay();
    for program in [stage.program(), replay.program()] {
        let [shared] = program.shared_names() else { panic!("{:?}", program.shared_names()) };
        assert_eq!((shared.name.as_str(), shared.first.line + 1), ("x", shared.second.line));
    }
}

#[test]
fn a_name_that_cannot_be_one_fails_the_operation_and_requests_nothing() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<Vec<String>> {
        let outcomes = [
            ctx.step("", async |_| Ok(())).await,
            ctx.step("x", async |_| Ok(())).timeout(Duration::ZERO).await,
            ctx.sleep(Duration::ZERO).id("").await,
            ctx.wait_for("").await,
            ctx.child("", &()).await,
            ctx.child("ship", &()).id("").await,
            ctx.child("ship", &()).version("").start().await,
            ctx.callback().heartbeat(Duration::ZERO).create().await,
            ctx.scope("", async |_| Ok(())).await,
            ctx.now().id("").await.map(|_| ()),
        ];
        Ok(outcomes.map(|outcome| outcome.unwrap_err().code().to_owned()).into())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.output(), json!(vec!["validation_error"; 10]));
    assert!(stage.requests.is_empty(), "{:?}", stage.told());
}

#[test]
fn an_operation_that_is_never_polled_is_never_requested() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        drop(ctx.step("never", async |_| Ok(())));
        drop(ctx.sleep(Duration::from_secs(1)));
        assert!(ctx.wait_for::<u32>("once").now_or_never().is_none());
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.told(), ["wait __wait-once-0", "await __wait-once-0", "cancel __wait-once-0"]);
}
