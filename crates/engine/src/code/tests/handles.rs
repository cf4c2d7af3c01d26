//! Operations that were started, and go on whether or not anybody awaits them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::event::Event;
use outlast_core::program::Progress;
use serde_json::json;

use super::{Stage, key};
use crate::code::{Check, Ctx, StepContext};
use crate::error::{Error, Result};

const HOUR: Duration = Duration::from_secs(3_600);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

#[test]
fn a_started_step_runs_beside_the_workflow_and_is_awaited_later() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        let step = ctx.step("beside", async |_| Ok(1)).start();
        ctx.sleep(HOUR).await?;
        step.await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.told(), ["step beside", "sleep __sleep-0", "await __sleep-0", "finish beside 1"]);
    stage.fire("__sleep-0").assert_replays();
    assert_eq!(stage.output(), json!(1));
    assert_eq!(stage.told().len(), 4, "it was settled before it was awaited");
}

#[test]
fn a_handle_is_awaited_when_it_is_first_polled() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        let wait = ctx.wait_for("x").start();
        ctx.sleep(HOUR).await?;
        wait.await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().fire("__sleep-0");
    assert_eq!(stage.told()[3..], ["await __wait-x-0"]);
    stage.signal("__wait-x-0", json!(1)).assert_replays();
    assert_eq!(stage.output(), json!(1));
}

#[test]
fn dropping_a_handle_cancels_nothing_and_cancelling_it_does() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        drop(ctx.sleep(HOUR).id("goes-on").start());
        ctx.sleep(HOUR).id("cancelled").start().cancel();
        ctx.callback::<u32>().id("callback").create().cancel();
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(
        stage.told(),
        ["sleep goes-on", "sleep cancelled", "cancel cancelled", "callback callback", "cancel callback"]
    );
}

#[test]
fn a_step_whose_handle_was_dropped_still_runs() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        drop(ctx.step("beside", async |_| Ok(1)).start());
        ctx.sleep(HOUR).await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().fire("__sleep-0").assert_replays();
    assert!(stage.told().contains(&"finish beside 1".to_owned()));
}

#[test]
fn dropping_an_awaited_step_tells_its_body_and_cancels_it() {
    let was_told = Arc::new(AtomicBool::new(false));
    struct Witness(StepContext, Arc<AtomicBool>);
    impl Drop for Witness {
        fn drop(&mut self) {
            self.1.store(self.0.is_cancelled(), Ordering::Relaxed);
        }
    }
    let shared = Arc::clone(&was_told);
    let workflow = move |ctx: Ctx, (): ()| {
        let was_told = Arc::clone(&shared);
        async move {
            let body = async move |step| {
                let _witness = Witness(step, Arc::clone(&was_told));
                std::future::pending::<()>().await;
                Ok(())
            };
            ctx.race((ctx.step("slow", body), ctx.wait_for::<()>("stop"))).await?;
            ctx.sleep(HOUR).await
        }
    };
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start();
    stage.resume(outlast_core::program::Input::Execute { key: &key("slow"), attempt: 1 });
    assert_eq!(stage.progress, Some(Progress::Executing));
    // The fact is fed while the body runs.
    stage.journal.push(Event::SignalResolved {
        key: key("__wait-stop-0"),
        name: "stop".try_into().unwrap(),
        signal_id: "id".try_into().unwrap(),
        payload: "null".into(),
    });
    stage.run();
    assert_eq!(stage.progress, Some(Progress::Blocked), "nothing runs any more");
    assert!(was_told.load(Ordering::Relaxed));
    assert_eq!(stage.told()[4], "cancel slow");
}

#[test]
fn a_spawned_step_runs_on_the_runtime_and_its_panics_are_failures() {
    let runtime = runtime();
    async fn workflow(ctx: Ctx, (): ()) -> Result<(bool, String)> {
        let here = std::thread::current().id();
        let elsewhere = ctx.step("spawned", move |_| async move { Ok(std::thread::current().id() != here) }).spawn();
        let body = |step: StepContext| async move {
            assert!(step.attempt() > 1, "never the first time");
            Err::<(), _>(Error::new("mine", "no").permanent())
        };
        let failed = ctx.step("panics", body).spawn();
        Ok((elsewhere.await?, failed.await.unwrap_err().code().to_owned()))
    }
    let mut stage = Stage::with_runtime(workflow, (), Some(runtime.handle().clone()));
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!([true, "mine"]));
    let panicked = stage.journal.iter().find_map(|event| match event {
        Event::StepRetryScheduled { error, .. } => Some(error.message.clone()),
        _ => None,
    });
    let message = panicked.unwrap();
    assert!(message.contains("handles.rs:") && message.ends_with(": never the first time"), "{message}");
}

#[test]
fn a_spawned_step_is_aborted_when_it_is_cancelled() {
    let runtime = runtime();
    let (dropped, seen) = std::sync::mpsc::channel::<()>();
    let workflow = move |ctx: Ctx, (): ()| {
        let dropped = dropped.clone();
        async move {
            let body = move |_| {
                let dropped = dropped.clone();
                async move {
                    let _kept = dropped;
                    std::future::pending::<()>().await;
                    Ok(())
                }
            };
            let slow = ctx.step("slow", body).spawn();
            ctx.wait_for::<()>("stop").await?;
            slow.cancel();
            ctx.sleep(HOUR).await
        }
    };
    let mut stage = Stage::with_runtime(workflow, (), Some(runtime.handle().clone()));
    stage.executes = false;
    stage.start();
    stage.resume(outlast_core::program::Input::Execute { key: &key("slow"), attempt: 1 });
    assert_eq!(stage.progress, Some(Progress::Executing));
    stage.journal.push(Event::SignalResolved {
        key: key("__wait-stop-0"),
        name: "stop".try_into().unwrap(),
        signal_id: "id".try_into().unwrap(),
        payload: "null".into(),
    });
    stage.run();
    assert_eq!(stage.progress, Some(Progress::Blocked));
    drop(stage);
    assert!(seen.recv_timeout(Duration::from_secs(10)).is_err(), "all senders are gone");
}

#[test]
fn a_spawned_step_without_a_runtime_fails_and_says_so() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        let step = ctx.step("spawned", |_| async { Ok(()) }).spawn();
        Ok(step.await.unwrap_err().code().to_owned())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.output(), json!("no_runtime"));
}

#[test]
fn scopes_batches_and_conditions_can_be_started_too() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(u32, Vec<u32>, u32)> {
        let scope = ctx.scope("scope", async |ctx| ctx.wait_for("a").await).start();
        let map = ctx.map("map", vec![1, 2], async |ctx, n, _| ctx.step("x", async |_| Ok(n * 2)).await).start();
        let condition = ctx.wait_for_condition("met", 1, async |_, n| Ok(Check::Met(n))).start();
        ctx.sleep(HOUR).await?;
        Ok((scope.await?, map.await?.results()?, condition.await?))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert!(stage.told().contains(&"close map ALL_COMPLETED".to_owned()), "{:?}", stage.told());
    stage.signal("scope/__wait-a-0", json!(1)).fire("__sleep-0").assert_replays();
    assert_eq!(stage.output(), json!([1, [2, 4], 1]));
}

#[test]
fn cancelling_a_started_scope_ends_what_is_inside_without_a_word() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        let scope = ctx.scope("scope", async |ctx| {
            let _beside = ctx.step("inside", async |_| Ok(())).start();
            ctx.sleep(HOUR).await
        });
        let scope = scope.start();
        ctx.wait_for::<()>("stop").await?;
        scope.cancel();
        ctx.wait_for::<()>("end").await
    }
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start().signal("__wait-stop-0", json!(null));
    assert_eq!(stage.told()[6..], ["cancel scope", "wait __wait-end-0", "await __wait-end-0"]);
    // What was inside is gone: nothing comes of its facts.
    stage.fire("scope/__sleep-0").signal("__wait-end-0", json!(null)).assert_replays();
    assert_eq!(stage.output(), json!(null));
}
