//! Steps: cases 1.x.

use std::time::Duration;

use outlast::{Backoff, Ctx, Error, Jitter, Retry};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::support::{count, counted, on_both};

const SECOND: Duration = Duration::from_secs(1);

/// Up to three attempts, one second apart.
fn every_second() -> Retry {
    Retry::attempts(3).initial(SECOND).backoff(Backoff::Constant).jitter(Jitter::None)
}

async fn greet(ctx: Ctx, name: String) -> outlast::Result<String> {
    ctx.step("greet", async |_| Ok(format!("Hello, {name}!"))).await
}

/// Case 1.1.
#[test]
fn step_1_1_a_step_succeeds_at_its_first_attempt() {
    on_both(
        |engine| engine.workflow("greet", greet),
        async |case| {
            case.start("greet", "World").await;
            case.succeeds(json!("Hello, World!")).await;
            case.journal(&[r#"STEP_FINISHED greet "Hello, World!" (1)"#, r#"RUN_FINISHED "Hello, World!""#]).await;
        },
    );
}

async fn chain(ctx: Ctx, _: ()) -> outlast::Result<String> {
    let first = ctx.step("one", async |_| Ok("first".to_owned())).await?;
    ctx.step("two", async |_| Ok(format!("{first}_second"))).await
}

/// Case 1.3.
#[test]
fn step_1_3_the_second_step_uses_what_the_first_returned() {
    on_both(
        |engine| engine.workflow("chain", chain),
        async |case| {
            case.start("chain", &()).await;
            case.succeeds(json!("first_second")).await;
            case.journal(&[
                r#"STEP_FINISHED one "first" (1)"#,
                r#"STEP_FINISHED two "first_second" (1)"#,
                r#"RUN_FINISHED "first_second""#,
            ])
            .await;
        },
    );
}

async fn nothing(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.step("nothing", async |_| Ok(())).await
}

/// Case 1.5.
#[test]
fn step_1_5_a_step_returns_nothing() {
    on_both(
        |engine| engine.workflow("nothing", nothing),
        async |case| {
            case.start("nothing", &()).await;
            case.succeeds(Value::Null).await;
            case.journal(&["STEP_FINISHED nothing null (1)", "RUN_FINISHED null"]).await;
        },
    );
}

/// Text that is recorded in capitals.
#[derive(Deserialize)]
pub(crate) struct Loud(pub(crate) String);

impl Serialize for Loud {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_uppercase())
    }
}

async fn loud(ctx: Ctx, text: String) -> outlast::Result<String> {
    let loud = ctx.step("loud", async |_| Ok(Loud(text.clone()))).await?;
    // What is returned is the text inside, and no longer written in its own way: it was read from the record.
    Ok(loud.0)
}

/// Case 1.6.
#[test]
fn step_1_6_a_type_decides_how_its_values_are_recorded() {
    on_both(
        |engine| engine.workflow("loud", loud),
        async |case| {
            case.start("loud", "hello world").await;
            case.succeeds(json!("HELLO WORLD")).await;
            case.journal(&[r#"STEP_FINISHED loud "HELLO WORLD" (1)"#, r#"RUN_FINISHED "HELLO WORLD""#]).await;
        },
    );
}

async fn logged(ctx: Ctx, name: String) -> outlast::Result<String> {
    ctx.step("greet", async |_| {
        count(&format!("started for {name}"));
        let greeting = format!("Hello, {name}!");
        count(&format!("completed with {greeting}"));
        Ok(greeting)
    })
    .await
}

/// Case 1.7. A step logs with whatever its author uses; what matters is that it does so once.
#[test]
fn step_1_7_a_step_logs_each_line_once() {
    on_both(
        |engine| engine.workflow("logged", logged),
        async |case| {
            case.start("logged", "Ada").await;
            case.succeeds(json!("Hello, Ada!")).await;
            case.journal(&[r#"STEP_FINISHED greet "Hello, Ada!" (1)"#, r#"RUN_FINISHED "Hello, Ada!""#]).await;
            assert_eq!((counted("started for Ada"), counted("completed with Hello, Ada!")), (1, 1));
        },
    );
}

async fn step_and_sleep(ctx: Ctx, (value, seconds): (String, u64)) -> outlast::Result<String> {
    let value = ctx
        .step("compute", async |_| {
            count("step executed");
            Ok(value.clone())
        })
        .await?;
    ctx.sleep(Duration::from_secs(seconds)).await?;
    Ok(value)
}

/// Case 1.8.
#[test]
fn step_1_8_a_step_and_a_sleep_are_replayed() {
    on_both(
        |engine| engine.workflow("compute", step_and_sleep),
        async |case| {
            case.start("compute", &("computed", 2)).await;
            case.succeeds(json!("computed")).await;
            case.journal(&[
                r#"STEP_FINISHED compute "computed" (1)"#,
                "TIMER_STARTED __sleep-0 2000 ms",
                "TIMER_FIRED __sleep-0",
                r#"RUN_FINISHED "computed""#,
            ])
            .await;
            case.took(2 * SECOND);
        },
    );
}

/// Case 1.9.
#[test]
fn step_1_9_replay_does_not_run_a_step_that_succeeded() {
    on_both(
        |engine| engine.workflow("compute", step_and_sleep),
        async |case| {
            case.start("compute", &("cached_value", 1)).await;
            case.succeeds(json!("cached_value")).await;
            case.journal(&[
                r#"STEP_FINISHED compute "cached_value" (1)"#,
                "TIMER_STARTED __sleep-0 1000 ms",
                "TIMER_FIRED __sleep-0",
                r#"RUN_FINISHED "cached_value""#,
            ])
            .await;
            assert_eq!(counted("step executed"), 1);
        },
    );
}

async fn flaky(ctx: Ctx, permanent: bool) -> outlast::Result<u32> {
    ctx.step("flaky", async |step| {
        let error = Error::new("transient", "try again");
        match step.attempt() {
            1 if permanent => Err(error.permanent()),
            1 => Err(error),
            attempt => Ok(attempt),
        }
    })
    .retry(every_second())
    .await
}

/// Case 1.15. Which errors are retried is said by the error, not by the policy.
#[test]
fn step_1_15_a_transient_error_is_retried() {
    on_both(
        |engine| engine.workflow("flaky", flaky),
        async |case| {
            case.start("flaky", &false).await;
            case.succeeds(json!(2)).await;
            case.journal(&["STEP_RETRY_SCHEDULED flaky transient (1)", "STEP_FINISHED flaky 2 (2)", "RUN_FINISHED 2"])
                .await;
            case.took(SECOND);
        },
    );
}

/// Case 1.16.
#[test]
fn step_1_16_an_error_that_is_permanent_is_not_retried() {
    on_both(
        |engine| engine.workflow("flaky", flaky),
        async |case| {
            case.start("flaky", &true).await;
            case.fails("transient").await;
            case.journal(&["STEP_FAILED flaky transient (1)", "RUN_ERRORED transient"]).await;
            case.took(Duration::ZERO);
        },
    );
}

async fn interrupted(ctx: Ctx, again: bool) -> outlast::Result<String> {
    let risky = || {
        ctx.step("risky", async |_| {
            count("risky");
            if counted("risky") == 1 {
                // The first attempt never ends: its engine does.
                std::future::pending::<()>().await;
            }
            Ok("succeeded on second attempt".to_owned())
        })
        .retry(every_second())
        .at_most_once()
    };
    match risky().await {
        Err(error) if again && error.code() == "step_in_doubt" => risky().await,
        other => other,
    }
}

/// Case 1.17.
#[test]
fn step_1_17_an_interrupted_at_most_once_step_is_not_run_again() {
    on_both(
        |engine| engine.workflow("interrupted", interrupted),
        async |case| {
            case.start("interrupted", &false).await;
            case.until("STEP_STARTED risky (1)").await;
            case.interrupt().await;
            case.fails("step_in_doubt").await;
            case.journal(&[
                "STEP_STARTED risky (1)",
                "STEP_FAILED risky step_in_doubt (1)",
                "RUN_ERRORED step_in_doubt",
            ])
            .await;
            assert_eq!(counted("risky"), 1);
        },
    );
}

/// Case 1.18. No policy runs again what may have been done: the author does, who can look first.
#[test]
fn step_1_18_the_author_may_run_an_interrupted_step_again() {
    on_both(
        |engine| engine.workflow("interrupted", interrupted),
        async |case| {
            case.start("interrupted", &true).await;
            case.until("STEP_STARTED risky (1)").await;
            case.interrupt().await;
            case.succeeds(json!("succeeded on second attempt")).await;
            case.journal(&[
                "STEP_STARTED risky (1)",
                "STEP_FAILED risky step_in_doubt (1)",
                "STEP_STARTED risky#2 (1)",
                r#"STEP_FINISHED risky#2 "succeeded on second attempt" (1)"#,
                r#"RUN_FINISHED "succeeded on second attempt""#,
            ])
            .await;
            assert_eq!(counted("risky"), 2);
        },
    );
}

async fn broken(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.step("broken", async |_| Err(Error::new("broken", "always"))).retry(Retry::never()).await
}

/// Case 1.19.
#[test]
fn step_1_19_a_step_without_retries_fails_for_good() {
    on_both(
        |engine| engine.workflow("broken", broken),
        async |case| {
            case.start("broken", &()).await;
            case.fails("broken").await;
            case.journal(&["STEP_FAILED broken broken (1)", "RUN_ERRORED broken"]).await;
        },
    );
}

async fn fallback(ctx: Ctx, _: ()) -> outlast::Result<String> {
    match broken(ctx.clone(), ()).await {
        Ok(()) => Ok("not so".to_owned()),
        Err(_) => ctx.step("fallback", async |_| Ok("fallback_result".to_owned())).await,
    }
}

/// Case 1.20.
#[test]
fn step_1_20_the_author_handles_an_error_and_goes_on() {
    on_both(
        |engine| engine.workflow("fallback", fallback),
        async |case| {
            case.start("fallback", &()).await;
            case.succeeds(json!("fallback_result")).await;
            case.journal(&[
                "STEP_FAILED broken broken (1)",
                r#"STEP_FINISHED fallback "fallback_result" (1)"#,
                r#"RUN_FINISHED "fallback_result""#,
            ])
            .await;
        },
    );
}
