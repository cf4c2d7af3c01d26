//! Callbacks whose tokens are handed out by a step: cases 7.x.

use std::time::Duration;

use outlast::{Ctx, WaitForCallback};
use outlast_core::failure::Failure;
use serde_json::{Value, json};

use crate::support::{Case, hand_out, on_both};

const SECOND: Duration = Duration::from_secs(1);

/// The one operation of these cases.
macro_rules! ask {
    ($ctx:expr, $name:expr) => {{
        let name: String = $name.to_owned();
        $ctx.wait_for_callback::<String, _>($name, async move |_, token| {
            hand_out(&name, &token);
            Ok(())
        })
    }};
}

/// What is in the journal when the run waits for the answer.
fn asked(key: &str, callback: &str) -> Vec<String> {
    vec![
        format!("SCOPE_STARTED {key}"),
        format!("CALLBACK_CREATED {key}/__callback-0{callback}"),
        format!("STEP_FINISHED {key}/submit null (1)"),
    ]
}

/// Compares the journal with lists of lines.
async fn journal(case: &Case<'_>, parts: &[&[String]]) {
    let parts = parts.concat();
    case.journal(&parts.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Waits until the token was handed out, and answers.
async fn answer(case: &Case<'_>, name: &str, key: &str, answer: Result<Option<Value>, Failure>) {
    case.until(&format!("STEP_FINISHED {key}/submit null (1)")).await;
    case.answer(name, &format!("{key}/__callback-0"), answer);
}

fn rejected() -> Result<Option<Value>, Failure> {
    Err(Failure::new("rejected", "not approved"))
}

async fn plain(ctx: Ctx, name: String) -> outlast::Result<String> {
    ask!(ctx, &name).await
}

/// Case 7.2.
#[test]
fn wait_for_callback_7_2_an_operation_with_a_name_waits_for_its_answer() {
    on_both(
        |engine| engine.workflow("plain", plain),
        async |case| {
            case.start("plain", "approval").await;
            answer(case, "approval", "approval", Ok(Some(json!("yes")))).await;
            case.succeeds(json!("yes")).await;
            let rest = lines(&[
                r#"CALLBACK_RESOLVED approval/__callback-0 "yes""#,
                r#"SCOPE_FINISHED approval "yes""#,
                r#"RUN_FINISHED "yes""#,
            ]);
            journal(case, &[&asked("approval", ""), &rest]).await;
        },
    );
}

/// Case 7.4.
#[test]
fn wait_for_callback_7_4_somebody_answers_with_an_error() {
    on_both(
        |engine| engine.workflow("plain", plain),
        async |case| {
            case.start("plain", "ask").await;
            answer(case, "ask", "ask", rejected()).await;
            case.fails("rejected").await;
            let rest = lines(&[
                "CALLBACK_FAILED ask/__callback-0 rejected",
                "SCOPE_FAILED ask rejected",
                "RUN_ERRORED rejected",
            ]);
            journal(case, &[&asked("ask", ""), &rest]).await;
        },
    );
}

async fn three_seconds(ctx: Ctx, recovers: bool) -> outlast::Result<String> {
    match ask!(ctx, "ask").timeout(3 * SECOND).await {
        Err(error) if recovers && error.is_timeout() => Ok("timed-out-handled".to_owned()),
        other => other,
    }
}

/// Case 7.5.
#[test]
fn wait_for_callback_7_5_nobody_answers_in_time() {
    on_both(
        |engine| engine.workflow("three_seconds", three_seconds),
        async |case| {
            case.start("three_seconds", &false).await;
            case.fails("timeout").await;
            let rest =
                lines(&["CALLBACK_TIMED_OUT ask/__callback-0", "SCOPE_FAILED ask timeout", "RUN_ERRORED timeout"]);
            journal(case, &[&asked("ask", " deadline"), &rest]).await;
            case.took(3 * SECOND);
        },
    );
}

/// Case 7.14.
#[test]
fn wait_for_callback_7_14_the_author_handles_a_timeout() {
    on_both(
        |engine| engine.workflow("three_seconds", three_seconds),
        async |case| {
            case.start("three_seconds", &true).await;
            case.succeeds(json!("timed-out-handled")).await;
            let rest = lines(&[
                "CALLBACK_TIMED_OUT ask/__callback-0",
                "SCOPE_FAILED ask timeout",
                r#"RUN_FINISHED "timed-out-handled""#,
            ]);
            journal(case, &[&asked("ask", " deadline"), &rest]).await;
            case.took(3 * SECOND);
        },
    );
}

async fn recovers(ctx: Ctx, _: ()) -> outlast::Result<String> {
    Ok(ask!(ctx, "ask").await.unwrap_or_else(|_| "recovered".to_owned()))
}

/// Case 7.6.
#[test]
fn wait_for_callback_7_6_the_author_handles_an_error() {
    on_both(
        |engine| engine.workflow("recovers", recovers),
        async |case| {
            case.start("recovers", &()).await;
            answer(case, "ask", "ask", rejected()).await;
            case.succeeds(json!("recovered")).await;
            let rest = lines(&[
                "CALLBACK_FAILED ask/__callback-0 rejected",
                "SCOPE_FAILED ask rejected",
                r#"RUN_FINISHED "recovered""#,
            ]);
            journal(case, &[&asked("ask", ""), &rest]).await;
        },
    );
}

async fn nested(ctx: Ctx, _: ()) -> outlast::Result<String> {
    ctx.scope("wrapper", async |ctx| ask!(ctx, "ask").await).await
}

/// Case 7.8.
#[test]
fn wait_for_callback_7_8_it_may_be_inside_a_scope() {
    on_both(
        |engine| engine.workflow("nested", nested),
        async |case| {
            case.start("nested", &()).await;
            answer(case, "ask", "wrapper/ask", Ok(Some(json!("yes")))).await;
            case.succeeds(json!("yes")).await;
            let rest = lines(&[
                r#"CALLBACK_RESOLVED wrapper/ask/__callback-0 "yes""#,
                r#"SCOPE_FINISHED wrapper/ask "yes""#,
                r#"SCOPE_FINISHED wrapper "yes""#,
                r#"RUN_FINISHED "yes""#,
            ]);
            journal(case, &[&lines(&["SCOPE_STARTED wrapper"]), &asked("wrapper/ask", ""), &rest]).await;
        },
    );
}

async fn two(ctx: Ctx, _: ()) -> outlast::Result<String> {
    ask!(ctx, "first").await?;
    ask!(ctx, "second").await
}

/// Case 7.9.
#[test]
fn wait_for_callback_7_9_two_one_after_the_other() {
    on_both(
        |engine| engine.workflow("two", two),
        async |case| {
            case.start("two", &()).await;
            answer(case, "first", "first", Ok(Some(json!("a")))).await;
            answer(case, "second", "second", Ok(Some(json!("b")))).await;
            case.succeeds(json!("b")).await;
            let between = lines(&[r#"CALLBACK_RESOLVED first/__callback-0 "a""#, r#"SCOPE_FINISHED first "a""#]);
            let rest = lines(&[
                r#"CALLBACK_RESOLVED second/__callback-0 "b""#,
                r#"SCOPE_FINISHED second "b""#,
                r#"RUN_FINISHED "b""#,
            ]);
            journal(case, &[&asked("first", ""), &between, &asked("second", ""), &rest]).await;
        },
    );
}

async fn mixed(ctx: Ctx, name: String) -> outlast::Result<String> {
    ctx.sleep(SECOND).await?;
    ctx.step("data", async |_| Ok("fixed".to_owned())).await?;
    ask!(ctx, &name).await
}

/// Case 7.10.
#[test]
fn wait_for_callback_7_10_after_a_sleep_and_a_step() {
    on_both(
        |engine| engine.workflow("mixed", mixed),
        async |case| {
            case.start("mixed", "ask").await;
            answer(case, "ask", "ask", Ok(Some(json!("yes")))).await;
            case.succeeds(json!("yes")).await;
            let before = lines(&[
                "TIMER_STARTED __sleep-0 1000 ms",
                "TIMER_FIRED __sleep-0",
                r#"STEP_FINISHED data "fixed" (1)"#,
            ]);
            let rest = lines(&[
                r#"CALLBACK_RESOLVED ask/__callback-0 "yes""#,
                r#"SCOPE_FINISHED ask "yes""#,
                r#"RUN_FINISHED "yes""#,
            ]);
            journal(case, &[&before, &asked("ask", ""), &rest]).await;
        },
    );
}

async fn heartbeat(ctx: Ctx, _: ()) -> outlast::Result<String> {
    ask!(ctx, "ask").heartbeat(5 * SECOND).await
}

/// Case 7.12.
#[test]
fn wait_for_callback_7_12_nobody_gives_a_sign_of_life() {
    on_both(
        |engine| engine.workflow("heartbeat", heartbeat),
        async |case| {
            case.start("heartbeat", &()).await;
            case.fails("timeout").await;
            let rest =
                lines(&["CALLBACK_TIMED_OUT ask/__callback-0", "SCOPE_FAILED ask timeout", "RUN_ERRORED timeout"]);
            journal(case, &[&asked("ask", " heartbeat 5000 ms"), &rest]).await;
            case.took(5 * SECOND);
        },
    );
}

async fn nothing(ctx: Ctx, _: ()) -> outlast::Result<Option<String>> {
    let ask: WaitForCallback<'_, _, Option<String>> = ctx.wait_for_callback("ask", async |_, token| {
        hand_out("ask", &token);
        Ok(())
    });
    ask.await
}

/// Case 7.15.
#[test]
fn wait_for_callback_7_15_an_answer_may_say_nothing() {
    on_both(
        |engine| engine.workflow("nothing", nothing),
        async |case| {
            case.start("nothing", &()).await;
            answer(case, "ask", "ask", Ok(None)).await;
            case.succeeds(Value::Null).await;
            let rest =
                lines(&["CALLBACK_RESOLVED ask/__callback-0 null", "SCOPE_FINISHED ask null", "RUN_FINISHED null"]);
            journal(case, &[&asked("ask", ""), &rest]).await;
        },
    );
}
