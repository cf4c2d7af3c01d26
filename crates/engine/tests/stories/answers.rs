//! Answers through the client: callbacks and signals for one operation.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::{Ctx, Failure, Outlast};

use crate::support::{Scene, tell};

type Token = Arc<Mutex<String>>;

/// Hands the token of a callback out and waits for its answer.
async fn asks(ctx: Ctx, token: Token) -> outlast::Result<String> {
    let callback = ctx.callback::<String>().id("report").heartbeat(Duration::from_secs(60)).create();
    let (secret, out) = (callback.token(), token.clone());
    ctx.step("hand out", async move |_| {
        out.lock().unwrap().clone_from(&secret);
        Ok(())
    })
    .await?;
    callback.await
}

async fn handed_out(token: &Token, engine: &outlast::Engine) -> String {
    while token.lock().unwrap().is_empty() {
        engine.run("a").unwrap().status().await.unwrap();
        tokio::task::yield_now().await;
    }
    token.lock().unwrap().clone()
}

#[test]
fn a_callback_is_resolved_with_its_token_and_only_once() {
    Scene::play(async |scene| {
        let token = Token::default();
        let shared = token.clone();
        let register = |engine: Outlast| engine.workflow("asks", move |ctx: Ctx, ()| asks(ctx, shared.clone()));
        let engine = scene.engine(register).await;
        let run = engine.start("asks", &()).id("a").await.unwrap();
        let secret = handed_out(&token, &engine).await;
        let other = engine.run("a").unwrap();
        let refused = other.resolve_callback("report", "guess", "no").await.unwrap_err();
        assert_eq!(refused.code(), "not_found", "{refused}");
        other.heartbeat_callback("report", &secret).await.unwrap();
        other.resolve_callback("report", &secret, "yes").await.unwrap();
        assert!(other.fail_callback("report", &secret, Failure::new("late", "no")).await.is_err());
        assert_eq!(run.result::<String>().await.unwrap(), "yes");
    });
}

#[test]
fn a_callback_can_fail_and_the_workflow_gets_that_error() {
    Scene::play(async |scene| {
        let token = Token::default();
        let shared = token.clone();
        let register = |engine: Outlast| engine.workflow("asks", move |ctx: Ctx, ()| asks(ctx, shared.clone()));
        let engine = scene.engine(register).await;
        let run = engine.start("asks", &()).id("a").await.unwrap();
        let secret = handed_out(&token, &engine).await;
        let other = engine.run("a").unwrap();
        other.fail_callback("report", &secret, Failure::new("paper_jam", "no")).await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap_err().code(), "paper_jam");
    });
}

async fn two_waits(ctx: Ctx, _: ()) -> outlast::Result<(String, String)> {
    let first = ctx.wait_for::<String>("word").id("first").start();
    let second = ctx.wait_for::<String>("word").id("second").start();
    Ok((first.await?, second.await?))
}

#[test]
fn a_signal_for_one_operation_reaches_that_one_and_a_second_is_lost() {
    tell(
        |engine| engine.workflow("two", two_waits),
        async |_, engine| {
            let run = engine.start("two", &()).id("a").await.unwrap();
            let other = engine.run("a").unwrap();
            other.signal_to("second", "word", "two", "s1").await.unwrap();
            other.signal_to("second", "word", "two", "s1").await.unwrap();
            assert_eq!(other.signal_to("second", "word", "three", "s2").await.unwrap_err().code(), "signal_lost");
            other.signal("word", "one", "s3").await.unwrap();
            let words: (String, String) = run.result().await.unwrap();
            assert_eq!(words, ("one".to_owned(), "two".to_owned()));
        },
    );
}
