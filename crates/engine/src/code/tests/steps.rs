//! Steps and conditions: the author's code that runs when the driver says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::Index;
use outlast_core::operation::Operation as Request;
use outlast_core::program::{Input, Progress};
use outlast_core::retry::Retry;
use outlast_core::time::Timestamp;
use serde_json::json;

use super::{Stage, key};
use crate::code::{Check, Ctx, StepContext};
use crate::error::{Error, Result};

/// A counter that workflow functions of a test can share with it.
type Counter = Arc<AtomicU32>;

fn bump(counter: &Counter) -> u32 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}

#[test]
fn a_body_borrows_and_its_result_is_recorded() {
    async fn workflow(ctx: Ctx, word: String) -> Result<usize> {
        let length = ctx.step("length", async |_| Ok(word.len())).await?;
        Ok(length + word.len())
    }
    let mut stage = Stage::new(workflow, "abc".to_owned());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(6));
    assert_eq!(stage.told(), ["step length", "await length", "finish length 3"]);
}

#[test]
fn a_body_does_not_begin_before_the_driver_says_so() {
    let runs = Counter::default();
    let counter = Arc::clone(&runs);
    let workflow = move |ctx: Ctx, (): ()| {
        let counter = Arc::clone(&counter);
        async move { ctx.step("once", async |_| Ok(bump(&counter))).await }
    };
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start();
    assert_eq!((stage.progress.clone(), runs.load(Ordering::Relaxed)), (Some(Progress::Blocked), 0));
    stage.executes = true;
    stage.run();
    assert_eq!((stage.output(), runs.load(Ordering::Relaxed)), (json!(1), 1));
    stage.assert_replays();
    assert_eq!(runs.load(Ordering::Relaxed), 1, "replay runs no body");
}

#[test]
fn live_code_receives_what_is_recorded() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Lossy {
        kept: u32,
        #[serde(skip)]
        lost: u32,
    }
    async fn workflow(ctx: Ctx, (): ()) -> Result<(u32, u32)> {
        let value = ctx.step("lossy", async |_| Ok(Lossy { kept: 1, lost: 2 })).await?;
        Ok((value.kept, value.lost))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!([1, 0]));
}

#[test]
fn a_failed_attempt_is_followed_by_another_until_there_are_no_more() {
    let runs = Counter::default();
    let counter = Arc::clone(&runs);
    let workflow = move |ctx: Ctx, (): ()| {
        let counter = Arc::clone(&counter);
        async move {
            ctx.step("flaky", async |step: StepContext| {
                bump(&counter);
                if step.attempt() < 3 { Err(Error::new("flaky", "not yet")) } else { Ok(step.attempt()) }
            })
            .retry(Retry::attempts(4))
            .await
        }
    };
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!((stage.output(), runs.load(Ordering::Relaxed)), (json!(3), 3));
    assert_eq!(stage.told()[2..], ["fail flaky flaky", "fail flaky flaky", "finish flaky 3"]);
}

#[test]
fn a_permanent_error_reaches_the_workflow_with_code_and_data() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(String, u32)> {
        let body = async |_| Err::<(), _>(Error::new("declined", "no").with_data(&7).permanent());
        let error = ctx.step("pay", body).await.unwrap_err();
        Ok((error.code().to_owned(), error.data().unwrap()))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(["declined", 7]));
}

#[test]
fn a_body_knows_its_run_its_attempt_and_its_idempotency_key() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(String, String, u32)> {
        ctx.scope("outer", async |ctx| {
            ctx.step("pay", async |step: StepContext| {
                Ok((step.idempotency_key().to_owned(), step.run_id().to_string(), step.attempt()))
            })
            .await
        })
        .await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.output(), json!(["shop/order-42/3/outer/pay", "order-42", 1]));
}

#[test]
fn options_are_part_of_the_request() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        let step = ctx.step("pay", async |_| Ok(())).retry(Retry::never()).timeout(Duration::from_secs(3));
        step.heartbeat(Duration::from_secs(1)).at_most_once().await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    let start = Request::StartStep {
        key: key("pay"),
        at_most_once: true,
        retry: Retry::never(),
        timeout: Some(Duration::from_secs(3)),
        heartbeat: Some(Duration::from_secs(1)),
    };
    assert_eq!(stage.requests[0].operation, start);
}

#[test]
fn a_panic_in_a_body_is_a_failure_that_is_retried() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.step("risky", async |step: StepContext| {
            assert!(step.attempt() > 1, "the first one never works");
            Ok(step.attempt())
        })
        .await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(2));
    let Event::StepRetryScheduled { error, .. } = &stage.journal[0] else { panic!("{:?}", stage.journal) };
    assert_eq!(error.code, "panic");
    assert!(error.message.starts_with("the body panicked at "), "{error}");
    assert!(error.message.ends_with(": the first one never works"), "{error}");
    assert!(error.message.contains("code/tests/steps.rs:"), "{error}");
}

#[test]
fn a_result_that_is_not_json_is_a_permanent_failure() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        let body = async |_| Ok(std::collections::BTreeMap::from([((1, 2), 3)]));
        Ok(ctx.step("odd", body).await.unwrap_err().code().to_owned())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.output(), json!("validation_error"));
    assert_eq!(stage.told()[2], "fail odd validation_error");
}

/// A body that tells when it is dropped, and how.
struct Witness {
    step: StepContext,
    told: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        let how = if self.step.is_cancelled() { "told" } else { "not told" };
        self.told.lock().unwrap().push(format!("attempt {} dropped, {how}", self.step.attempt()));
    }
}

#[test]
fn a_fact_that_ends_an_attempt_drops_its_body_after_telling_it() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let witness = Arc::clone(&told);
    let workflow = move |ctx: Ctx, start: bool| {
        let told = Arc::clone(&witness);
        async move {
            let step = ctx.step("slow", async move |step: StepContext| {
                let _witness = Witness { step, told: told.clone() };
                std::future::pending::<()>().await;
                Ok(())
            });
            let outcome = if start { step.start().await } else { step.await };
            Ok(outcome.unwrap_err().code().to_owned())
        }
    };
    for start in [false, true] {
        let mut stage = Stage::new(workflow.clone(), start);
        stage.executes = false;
        stage.start();
        let execute = |stage: &mut Stage, attempt| {
            stage.resume(Input::Execute { key: &key("slow"), attempt });
            assert_eq!(stage.progress, Some(Progress::Executing));
        };
        execute(&mut stage, 1);
        let late = Failure::timeout("too slow");
        let retried =
            Event::StepRetryScheduled { key: key("slow"), attempt: 1, next_at: Timestamp::EPOCH, error: late.clone() };
        stage.resume(Input::Fact { index: Index(1), event: &retried });
        assert_eq!(stage.progress, Some(Progress::Blocked));
        execute(&mut stage, 2);
        let failed = Event::StepFailed { key: key("slow"), error: late, attempts: 2 };
        stage.resume(Input::Fact { index: Index(2), event: &failed });
        assert_eq!(stage.output(), json!("timeout"));
        assert_eq!(std::mem::take(&mut *told.lock().unwrap()), ["attempt 1 dropped, told", "attempt 2 dropped, told"]);
    }
}

#[test]
fn a_body_that_waits_is_polled_again_when_it_is_woken() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.step("wait", async |_| {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            #[expect(clippy::disallowed_methods, reason = "bodies may")]
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(1)
        })
        .await
    }
    let mut stage = Stage::with_runtime(workflow, (), Some(runtime.handle().clone()));
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(1));
}

#[test]
fn a_condition_is_checked_with_the_state_of_the_check_before() {
    async fn workflow(ctx: Ctx, threshold: u32) -> Result<u32> {
        ctx.wait_for_condition("ready", 5, async |_, state| {
            let state = state + 1;
            Ok(if state < threshold { Check::Not(state) } else { Check::Met(state) })
        })
        .await
    }
    let mut stage = Stage::new(workflow, 8);
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(8));
    assert_eq!(
        stage.told(),
        ["condition ready", "await ready", "check ready 6 false", "check ready 7 false", "check ready 8 true"]
    );
}

#[test]
fn a_check_that_fails_is_retried_from_the_same_state() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.wait_for_condition("ready", 5, async |step: StepContext, state: u32| match step.attempt() {
            1 => Ok(Check::Not(state + 1)),
            2 => Err(Error::new("network", "down")),
            _ => Ok(Check::Met(state + 1)),
        })
        .await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(7));
}

#[test]
fn a_condition_that_never_holds_fails_with_its_last_state() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(String, u32)> {
        let wait = ctx.wait_for_condition("ready", 0, async |_, state: u32| Ok(Check::Not(state + 1)));
        let error = wait.retry(Retry::attempts(3)).await.unwrap_err();
        Ok((error.code().to_owned(), error.data().unwrap()))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(["condition_not_met", 3]));
}
