//! Callbacks: cases 4.x.

use std::time::Duration;

use outlast::{CallbackHandle, Ctx};
use outlast_core::failure::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::support::{hand_out, on_both};

const SECOND: Duration = Duration::from_secs(1);

/// Creates a callback, and tells the world outside its token.
fn create<T: DeserializeOwned>(ctx: &Ctx, name: &str, timeout: Option<Duration>) -> CallbackHandle<T> {
    let callback = ctx.callback().id(name);
    let callback = match timeout {
        Some(timeout) => callback.timeout(timeout),
        None => callback,
    }
    .create();
    hand_out(name, &callback.token());
    callback
}

fn rejected() -> Failure {
    Failure::new("rejected", "not approved")
}

async fn basic(ctx: Ctx, name: String) -> outlast::Result<String> {
    create(&ctx, &name, None).await
}

/// Case 4.1.
#[test]
fn callback_4_1_a_run_waits_for_a_callback() {
    on_both(
        |engine| engine.workflow("basic", basic),
        async |case| {
            case.start("basic", "lab").await;
            case.until("CALLBACK_CREATED lab").await;
            case.answer("lab", "lab", Ok(Some(json!("healthy"))));
            case.succeeds(json!("healthy")).await;
            case.journal(&["CALLBACK_CREATED lab", r#"CALLBACK_RESOLVED lab "healthy""#, r#"RUN_FINISHED "healthy""#])
                .await;
        },
    );
}

async fn impatient(ctx: Ctx, name: String) -> outlast::Result<String> {
    create(&ctx, &name, Some(5 * SECOND)).await
}

/// Case 4.3.
#[test]
fn callback_4_3_nobody_answers_in_time() {
    on_both(
        |engine| engine.workflow("impatient", impatient),
        async |case| {
            case.start("impatient", "lab").await;
            case.fails("timeout").await;
            case.journal(&["CALLBACK_CREATED lab deadline", "CALLBACK_TIMED_OUT lab", "RUN_ERRORED timeout"]).await;
            case.took(5 * SECOND);
        },
    );
}

/// Case 4.6.
#[test]
fn callback_4_6_somebody_answers_with_an_error() {
    on_both(
        |engine| engine.workflow("basic", basic),
        async |case| {
            case.start("basic", "lab").await;
            case.until("CALLBACK_CREATED lab").await;
            case.answer("lab", "lab", Err(rejected()));
            assert_eq!(case.fails("rejected").await.message, "not approved");
            case.journal(&["CALLBACK_CREATED lab", "CALLBACK_FAILED lab rejected", "RUN_ERRORED rejected"]).await;
        },
    );
}

async fn with_a_step(ctx: Ctx, (name, seconds): (String, Option<u64>)) -> outlast::Result<String> {
    let callback = create(&ctx, &name, seconds.map(Duration::from_secs));
    ctx.step("meanwhile", async |_| Ok(())).await?;
    callback.await
}

/// Case 4.7.
#[test]
fn callback_4_7_a_step_runs_before_the_callback_is_awaited_and_fails() {
    on_both(
        |engine| engine.workflow("with_a_step", with_a_step),
        async |case| {
            case.start("with_a_step", &("lab", Value::Null)).await;
            case.until("STEP_FINISHED meanwhile null (1)").await;
            case.answer("lab", "lab", Err(rejected()));
            case.fails("rejected").await;
            case.journal(&[
                "CALLBACK_CREATED lab",
                "STEP_FINISHED meanwhile null (1)",
                "CALLBACK_FAILED lab rejected",
                "RUN_ERRORED rejected",
            ])
            .await;
        },
    );
}

/// Case 4.8.
#[test]
fn callback_4_8_a_step_runs_before_the_callback_is_awaited_and_times_out() {
    on_both(
        |engine| engine.workflow("with_a_step", with_a_step),
        async |case| {
            case.start("with_a_step", &("lab", 5)).await;
            case.fails("timeout").await;
            case.journal(&[
                "CALLBACK_CREATED lab deadline",
                "STEP_FINISHED meanwhile null (1)",
                "CALLBACK_TIMED_OUT lab",
                "RUN_ERRORED timeout",
            ])
            .await;
            case.took(5 * SECOND);
        },
    );
}

async fn goes_on(ctx: Ctx, name: String) -> outlast::Result<String> {
    let answer = create::<String>(&ctx, &name, Some(3 * SECOND)).await;
    let answer = answer.or_else(|error| if error.is_timeout() { Ok("too late".to_owned()) } else { Err(error) })?;
    ctx.sleep(2 * SECOND).await?;
    Ok(answer)
}

/// Case 4.14.
#[test]
fn callback_4_14_the_author_handles_a_timeout_and_sleeps() {
    on_both(
        |engine| engine.workflow("goes_on", goes_on),
        async |case| {
            case.start("goes_on", "lab").await;
            case.succeeds(json!("too late")).await;
            case.journal(&[
                "CALLBACK_CREATED lab deadline",
                "CALLBACK_TIMED_OUT lab",
                "TIMER_STARTED __sleep-0 2000 ms",
                "TIMER_FIRED __sleep-0",
                r#"RUN_FINISHED "too late""#,
            ])
            .await;
            case.took(5 * SECOND);
        },
    );
}

/// What somebody sends, with a time that is read in a way of its own.
#[derive(Deserialize)]
struct Report {
    id: String,
    #[serde(rename = "timestamp", deserialize_with = "seconds")]
    at: i64,
}

/// `123s` as a number.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.strip_suffix('s').unwrap_or_default().parse();
    number.map_err(|_| serde::de::Error::custom("this is no number of seconds"))
}

async fn report(ctx: Ctx, name: String) -> outlast::Result<(String, i64)> {
    let report: Report = create(&ctx, &name, None).await?;
    Ok((report.id, report.at))
}

/// Case 4.15.
#[test]
fn callback_4_15_a_type_decides_how_an_answer_is_read() {
    on_both(
        |engine| engine.workflow("report", report),
        async |case| {
            case.start("report", "lab").await;
            case.until("CALLBACK_CREATED lab").await;
            case.answer("lab", "lab", Ok(Some(json!({ "id": "r7", "timestamp": "1767225600s" }))));
            case.succeeds(json!(["r7", 1_767_225_600])).await;
            case.journal(&[
                "CALLBACK_CREATED lab",
                r#"CALLBACK_RESOLVED lab {"id":"r7","timestamp":"1767225600s"}"#,
                r#"RUN_FINISHED ["r7",1767225600]"#,
            ])
            .await;
        },
    );
}

async fn number(ctx: Ctx, name: String) -> outlast::Result<Value> {
    let count: u32 = create(&ctx, &name, None).await?;
    Ok(json!({ "count": count, "doubled": 2 * count }))
}

/// Case 4.16.
#[test]
fn callback_4_16_an_answer_is_read_as_a_number() {
    on_both(
        |engine| engine.workflow("number", number),
        async |case| {
            case.start("number", "lab").await;
            case.until("CALLBACK_CREATED lab").await;
            case.answer("lab", "lab", Ok(Some(json!(42))));
            case.succeeds(json!({ "count": 42, "doubled": 84 })).await;
            case.journal(&[
                "CALLBACK_CREATED lab",
                "CALLBACK_RESOLVED lab 42",
                r#"RUN_FINISHED {"count":42,"doubled":84}"#,
            ])
            .await;
        },
    );
}

async fn one_after_the_other(ctx: Ctx, (a, b): (String, String)) -> outlast::Result<(String, String)> {
    let first = create(&ctx, &a, None).await?;
    let second = create(&ctx, &b, None).await?;
    Ok((first, second))
}

/// Case 4.17.
#[test]
fn callback_4_17_a_callback_is_created_after_the_answer_to_another() {
    on_both(
        |engine| engine.workflow("one_after_the_other", one_after_the_other),
        async |case| {
            case.start("one_after_the_other", &("a", "b")).await;
            case.until("CALLBACK_CREATED a").await;
            case.answer("a", "a", Ok(Some(json!("first"))));
            case.until("CALLBACK_CREATED b").await;
            case.answer("b", "b", Ok(Some(json!("second"))));
            case.succeeds(json!(["first", "second"])).await;
            case.journal(&[
                "CALLBACK_CREATED a",
                r#"CALLBACK_RESOLVED a "first""#,
                "CALLBACK_CREATED b",
                r#"CALLBACK_RESOLVED b "second""#,
                r#"RUN_FINISHED ["first","second"]"#,
            ])
            .await;
        },
    );
}

async fn both_at_once(ctx: Ctx, (a, b): (String, String)) -> outlast::Result<(String, String)> {
    let (first, second) = (create(&ctx, &a, None), create(&ctx, &b, None));
    Ok((first.await?, second.await?))
}

/// Case 4.18.
#[test]
fn callback_4_18_two_callbacks_are_open_at_once() {
    on_both(
        |engine| engine.workflow("both_at_once", both_at_once),
        async |case| {
            case.start("both_at_once", &("a", "b")).await;
            case.until("CALLBACK_CREATED b").await;
            case.answer("a", "a", Ok(Some(json!("first"))));
            case.until(r#"CALLBACK_RESOLVED a "first""#).await;
            assert!(!case.status().await.is_terminal());
            case.answer("b", "b", Ok(Some(json!("second"))));
            case.succeeds(json!(["first", "second"])).await;
            case.journal(&[
                "CALLBACK_CREATED a",
                "CALLBACK_CREATED b",
                r#"CALLBACK_RESOLVED a "first""#,
                r#"CALLBACK_RESOLVED b "second""#,
                r#"RUN_FINISHED ["first","second"]"#,
            ])
            .await;
        },
    );
}
