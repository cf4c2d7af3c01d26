//! What workflow code may not do: wait for something outside, panic, never rest.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use outlast_core::program::{Input, Progress};
use serde_json::json;

use super::Stage;
use crate::code::Ctx;
use crate::error::Result;

/// A channel for one value, as somebody outside of any runtime would write it.
#[derive(Clone, Default)]
struct Channel(Arc<Mutex<(bool, Option<Waker>)>>);

impl Channel {
    fn send(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for Channel {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn unsound(stage: &Stage) -> String {
    match &stage.progress {
        Some(Progress::Unsound(message)) => message.clone(),
        other => panic!("not unsound: {other:?}"),
    }
}

#[test]
fn a_wake_from_another_thread_is_told_with_its_name_and_place() {
    let channel = Channel::default();
    let sender = channel.clone();
    let workflow = move |_: Ctx, (): ()| {
        let channel = channel.clone();
        async move {
            channel.await;
            Ok(())
        }
    };
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.progress, Some(Progress::Blocked));
    #[expect(clippy::disallowed_methods, reason = "this is the outside")]
    let thread = std::thread::Builder::new().name("outsider".to_owned()).spawn(move || sender.send()).unwrap();
    thread.join().unwrap();
    assert!(stage.was_called(), "the driver is told, so that there is a next resume");
    stage.resume(Input::Poll);
    let message = unsound(&stage);
    assert!(message.starts_with("the workflow was woken from outside by thread \"outsider\" ("), "{message}");
    assert!(message.contains("code/tests/outside.rs:"), "{message}");
    assert!(message.ends_with("do other waiting inside a step"), "{message}");
}

#[test]
fn a_body_that_wakes_the_workflow_is_outside_too() {
    let channel = Channel::default();
    let workflow = move |ctx: Ctx, (): ()| {
        let channel = channel.clone();
        async move {
            let sender = channel.clone();
            let _step = ctx
                .step("send", async move |_| {
                    sender.send();
                    Ok(())
                })
                .start();
            channel.await;
            Ok(())
        }
    };
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert!(unsound(&stage).contains("from outside"));
}

#[test]
fn a_future_that_wakes_itself_is_polled_until_it_rests() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        ctx.step("then", async |_| Ok(1)).await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(1));
}

#[test]
fn a_loop_that_only_yields_is_ended() {
    async fn workflow(_: Ctx, (): ()) -> Result<()> {
        loop {
            tokio::task::yield_now().await;
        }
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert!(unsound(&stage).contains("a loop that only yields never ends"));
}

#[test]
fn tokio_timers_panic_at_the_line_of_the_author() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    #[expect(clippy::disallowed_methods, reason = "this is the mistake")]
    async fn workflow(_: Ctx, (): ()) -> Result<()> {
        tokio::time::sleep(Duration::from_millis(1)).await; // the mistake
        Ok(())
    }
    let mut stage = Stage::with_runtime(workflow, (), Some(runtime.handle().clone()));
    stage.start();
    let source = include_str!("outside.rs");
    let line = source.lines().position(|line| line.ends_with("// the mistake")).unwrap() + 1;
    let failure = stage.failure();
    assert_eq!(failure.code, "panic");
    assert!(failure.message.contains(&format!("tests/outside.rs:{line}: ")), "{failure}");
    assert!(failure.message.contains("Tokio"), "{failure}");
}

#[test]
fn a_panic_of_the_workflow_fails_the_run_with_its_place() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        ctx.step("fine", async |_| Ok(())).await?;
        panic!("on purpose");
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    let failure = stage.failure();
    assert_eq!(failure.code, "panic");
    assert!(failure.message.starts_with("the workflow panicked at "), "{failure}");
    assert!(failure.message.contains("tests/outside.rs:"), "{failure}");
    assert!(failure.message.ends_with(": on purpose"), "{failure}");
}

#[test]
fn input_and_output_must_be_what_they_should() {
    async fn workflow(_: Ctx, n: u32) -> Result<std::collections::BTreeMap<(u32, u32), u32>> {
        Ok([((n, n), n)].into())
    }
    let mut stage = Stage::new(workflow, 1);
    stage.start();
    assert_eq!(stage.failure().code, "validation_error");
    assert!(stage.failure().message.starts_with("what the workflow returned cannot be written"));
    let mut stage = Stage::new(|_: Ctx, _: u32| async { Ok(()) }, 1).with_input("\"one\"");
    stage.start();
    assert_eq!(stage.failure().code, "validation_error");
    assert!(stage.failure().message.starts_with("the input is not a u32: "), "{}", stage.failure());
}
