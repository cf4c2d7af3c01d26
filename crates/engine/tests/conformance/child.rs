//! Scopes: cases 3.x.

use std::time::Duration;

use outlast::{Backoff, Ctx, Error, Jitter, Retry};
use serde_json::{Value, json};

use crate::step::Loud;
use crate::support::{count, counted, on_both};

const SECOND: Duration = Duration::from_secs(1);

async fn one_step(ctx: Ctx, word: String) -> outlast::Result<String> {
    ctx.scope("inner", async |ctx| ctx.step("echo", async |_| Ok(word.clone())).await).await
}

/// Case 3.1.
#[test]
fn child_3_1_a_scope_holds_a_step() {
    on_both(
        |engine| engine.workflow("one_step", one_step),
        async |case| {
            case.start("one_step", "word").await;
            case.succeeds(json!("word")).await;
            case.journal(&[
                "SCOPE_STARTED inner",
                r#"STEP_FINISHED inner/echo "word" (1)"#,
                r#"SCOPE_FINISHED inner "word""#,
                r#"RUN_FINISHED "word""#,
            ])
            .await;
        },
    );
}

async fn two_steps(ctx: Ctx, word: String) -> outlast::Result<String> {
    ctx.scope("inner", async |ctx| {
        let first = ctx.step("first", async |_| Ok(word.clone())).await?;
        ctx.step("second", async |_| Ok(first.clone())).await
    })
    .await
}

/// Case 3.3.
#[test]
fn child_3_3_steps_of_a_scope_depend_on_each_other() {
    on_both(
        |engine| engine.workflow("two_steps", two_steps),
        async |case| {
            case.start("two_steps", "word").await;
            case.succeeds(json!("word")).await;
            case.journal(&[
                "SCOPE_STARTED inner",
                r#"STEP_FINISHED inner/first "word" (1)"#,
                r#"STEP_FINISHED inner/second "word" (1)"#,
                r#"SCOPE_FINISHED inner "word""#,
                r#"RUN_FINISHED "word""#,
            ])
            .await;
        },
    );
}

/// A scope with a step that fails at every attempt.
async fn failing(ctx: &Ctx, retry: Retry) -> outlast::Result<String> {
    ctx.scope("inner", async |ctx| ctx.step("broken", async |_| Err(Error::new("broken", "always"))).retry(retry).await)
        .await
}

async fn recovers(ctx: Ctx, word: String) -> outlast::Result<String> {
    match failing(&ctx, Retry::never()).await {
        Err(error) if error.code() == "broken" => ctx.step("recover", async |_| Ok(word.clone())).await,
        other => other,
    }
}

/// Case 3.5.
#[test]
fn child_3_5_the_author_handles_the_error_of_a_scope() {
    on_both(
        |engine| engine.workflow("recovers", recovers),
        async |case| {
            case.start("recovers", "word").await;
            case.succeeds(json!("word")).await;
            case.journal(&[
                "SCOPE_STARTED inner",
                "STEP_FAILED inner/broken broken (1)",
                "SCOPE_FAILED inner broken",
                r#"STEP_FINISHED recover "word" (1)"#,
                r#"RUN_FINISHED "word""#,
            ])
            .await;
        },
    );
}

async fn twice(ctx: Ctx, _: ()) -> outlast::Result<String> {
    failing(&ctx, Retry::attempts(2).initial(SECOND).backoff(Backoff::Constant).jitter(Jitter::None)).await
}

/// Case 3.8.
#[test]
fn child_3_8_a_scope_fails_when_its_step_has_no_attempts_left() {
    on_both(
        |engine| engine.workflow("twice", twice),
        async |case| {
            case.start("twice", &()).await;
            case.fails("broken").await;
            case.journal(&[
                "SCOPE_STARTED inner",
                "STEP_RETRY_SCHEDULED inner/broken broken (1)",
                "STEP_FAILED inner/broken broken (2)",
                "SCOPE_FAILED inner broken",
                "RUN_ERRORED broken",
            ])
            .await;
            case.took(SECOND);
        },
    );
}

async fn sleeps_inside(ctx: Ctx, word: String) -> outlast::Result<String> {
    let word = ctx
        .scope("inner", async |ctx| {
            ctx.sleep(SECOND).await?;
            Ok(word.clone())
        })
        .await?;
    ctx.step("after", async |_| Ok(word.clone())).await
}

/// Case 3.13.
#[test]
fn child_3_13_a_sleep_inside_a_scope_is_replayed() {
    on_both(
        |engine| engine.workflow("sleeps_inside", sleeps_inside),
        async |case| {
            case.start("sleeps_inside", "word").await;
            case.succeeds(json!("word")).await;
            case.journal(&[
                "SCOPE_STARTED inner",
                "TIMER_STARTED inner/__sleep-0 1000 ms",
                "TIMER_FIRED inner/__sleep-0",
                r#"SCOPE_FINISHED inner "word""#,
                r#"STEP_FINISHED after "word" (1)"#,
                r#"RUN_FINISHED "word""#,
            ])
            .await;
        },
    );
}

async fn loud(ctx: Ctx, word: String) -> outlast::Result<String> {
    let loud = ctx.scope("inner", async |ctx| {
        let quiet = ctx.step("echo", async |_| Ok(word.clone())).await?;
        Ok(Loud(quiet))
    });
    Ok(loud.await?.0)
}

/// Case 3.14.
#[test]
fn child_3_14_a_type_decides_how_the_result_of_a_scope_is_recorded() {
    on_both(
        |engine| engine.workflow("loud", loud),
        async |case| {
            case.start("loud", "hello child").await;
            case.succeeds(json!("HELLO CHILD")).await;
            case.journal(&[
                "SCOPE_STARTED inner",
                r#"STEP_FINISHED inner/echo "hello child" (1)"#,
                r#"SCOPE_FINISHED inner "HELLO CHILD""#,
                r#"RUN_FINISHED "HELLO CHILD""#,
            ])
            .await;
        },
    );
}

async fn fails_at_once(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.scope("inner", async |_| Err(Error::new("declined", "no"))).await
}

/// Case 3.15.
#[test]
fn child_3_15_a_scope_fails_without_any_operation() {
    on_both(
        |engine| engine.workflow("fails_at_once", fails_at_once),
        async |case| {
            case.start("fails_at_once", &()).await;
            case.fails("declined").await;
            case.journal(&["SCOPE_STARTED inner", "SCOPE_FAILED inner declined", "RUN_ERRORED declined"]).await;
        },
    );
}

async fn returns_nothing(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.scope("inner", async |_| Ok(())).await
}

/// Case 3.16.
#[test]
fn child_3_16_a_scope_returns_nothing() {
    on_both(
        |engine| engine.workflow("returns_nothing", returns_nothing),
        async |case| {
            case.start("returns_nothing", &()).await;
            case.succeeds(Value::Null).await;
            case.journal(&["SCOPE_STARTED inner", "SCOPE_FINISHED inner null", "RUN_FINISHED null"]).await;
        },
    );
}

async fn logs(ctx: Ctx, word: String) -> outlast::Result<String> {
    let word = ctx.scope("inner", async |_| {
        count("inside");
        Ok(word.clone())
    });
    let word = word.await?;
    ctx.sleep(SECOND).await?;
    Ok(word)
}

/// Case 3.17.
#[test]
fn child_3_17_replay_does_not_run_a_scope_that_returned() {
    on_both(
        |engine| engine.workflow("logs", logs),
        async |case| {
            case.start("logs", "word").await;
            case.succeeds(json!("word")).await;
            case.journal(&[
                "SCOPE_STARTED inner",
                r#"SCOPE_FINISHED inner "word""#,
                "TIMER_STARTED __sleep-0 1000 ms",
                "TIMER_FIRED __sleep-0",
                r#"RUN_FINISHED "word""#,
            ])
            .await;
            assert_eq!(counted("inside"), 1);
        },
    );
}

async fn inside_and_after(ctx: Ctx, word: String) -> outlast::Result<String> {
    let word = ctx
        .scope("inner", async |ctx| {
            let word = ctx.step("echo", async |_| Ok(word.clone())).await?;
            ctx.sleep(SECOND).await?;
            Ok(word)
        })
        .await?;
    let word = ctx.step("echo", async |_| Ok(word.clone())).await?;
    ctx.sleep(SECOND).await?;
    Ok(word)
}

/// Case 3.18.
#[test]
fn child_3_18_steps_and_sleeps_inside_a_scope_and_after_it() {
    on_both(
        |engine| engine.workflow("inside_and_after", inside_and_after),
        async |case| {
            case.start("inside_and_after", "word").await;
            case.succeeds(json!("word")).await;
            case.journal(&[
                "SCOPE_STARTED inner",
                r#"STEP_FINISHED inner/echo "word" (1)"#,
                "TIMER_STARTED inner/__sleep-0 1000 ms",
                "TIMER_FIRED inner/__sleep-0",
                r#"SCOPE_FINISHED inner "word""#,
                r#"STEP_FINISHED echo "word" (1)"#,
                "TIMER_STARTED __sleep-0 1000 ms",
                "TIMER_FIRED __sleep-0",
                r#"RUN_FINISHED "word""#,
            ])
            .await;
            case.took(2 * SECOND);
        },
    );
}
