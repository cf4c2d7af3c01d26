//! Conditions: cases 6.x.

use std::time::Duration;

use outlast::{Backoff, Check, Ctx, Error, Jitter, Retry};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Marked, count, counted, on_both};

const SECOND: Duration = Duration::from_secs(1);

fn every(delay: Duration, checks: u32) -> Retry {
    Retry::attempts(checks).initial(delay).backoff(Backoff::Constant).jitter(Jitter::None)
}

/// Counts from one number up to another, one second between two checks.
async fn reach(ctx: &Ctx, name: &str, from: u32, to: u32) -> outlast::Result<u32> {
    ctx.wait_for_condition(name, from, async |_, n| {
        count("checks");
        Ok(if n + 1 < to { Check::Not(n + 1) } else { Check::Met(n + 1) })
    })
    .retry(every(SECOND, 10))
    .await
}

async fn count_up(ctx: Ctx, (from, to): (u32, u32)) -> outlast::Result<u32> {
    reach(&ctx, "reached", from, to).await
}

/// Case 6.1.
#[test]
fn wait_for_condition_6_1_a_condition_is_checked_until_it_is_met() {
    on_both(
        |engine| engine.workflow("count_up", count_up),
        async |case| {
            case.start("count_up", &(0, 3)).await;
            case.succeeds(json!(3)).await;
            case.journal(&[
                "CONDITION_CHECKED reached 1 (1) again",
                "CONDITION_CHECKED reached 2 (2) again",
                "CONDITION_CHECKED reached 3 (3) met",
                "RUN_FINISHED 3",
            ])
            .await;
            assert_eq!(counted("checks"), 3);
        },
    );
}

/// Case 6.4.
#[test]
fn wait_for_condition_6_4_each_check_gets_what_the_one_before_returned() {
    on_both(
        |engine| engine.workflow("count_up", count_up),
        async |case| {
            case.start("count_up", &(5, 8)).await;
            case.succeeds(json!(8)).await;
            case.journal(&[
                "CONDITION_CHECKED reached 6 (1) again",
                "CONDITION_CHECKED reached 7 (2) again",
                "CONDITION_CHECKED reached 8 (3) met",
                "RUN_FINISHED 8",
            ])
            .await;
        },
    );
}

async fn two_seconds(ctx: Ctx, to: u32) -> outlast::Result<u32> {
    ctx.wait_for_condition("reached", 0, async |_, n| {
        Ok(if n + 1 < to { Check::Not(n + 1) } else { Check::Met(n + 1) })
    })
    .retry(every(2 * SECOND, 10))
    .await
}

/// Case 6.5.
#[test]
fn wait_for_condition_6_5_checks_are_two_seconds_apart() {
    on_both(
        |engine| engine.workflow("two_seconds", two_seconds),
        async |case| {
            case.start("two_seconds", &3).await;
            case.until("CONDITION_CHECKED reached 2 (2) again").await;
            case.took(2 * SECOND);
            case.succeeds(json!(3)).await;
            case.journal(&[
                "CONDITION_CHECKED reached 1 (1) again",
                "CONDITION_CHECKED reached 2 (2) again",
                "CONDITION_CHECKED reached 3 (3) met",
                "RUN_FINISHED 3",
            ])
            .await;
            case.took(4 * SECOND);
        },
    );
}

async fn never(ctx: Ctx, _: ()) -> outlast::Result<u32> {
    ctx.wait_for_condition("never", 0, async |_, n| Ok(Check::Not(n + 1))).retry(every(SECOND, 3)).await
}

/// Case 6.6.
#[test]
fn wait_for_condition_6_6_a_condition_that_is_never_met_fails_the_run() {
    on_both(
        |engine| engine.workflow("never", never),
        async |case| {
            case.start("never", &()).await;
            case.fails("condition_not_met").await;
            case.journal(&[
                "CONDITION_CHECKED never 1 (1) again",
                "CONDITION_CHECKED never 2 (2) again",
                "CONDITION_CHECKED never 3 (3)",
                "RUN_ERRORED condition_not_met",
            ])
            .await;
            case.took(2 * SECOND);
        },
    );
}

/// A check that fails. Errors that are not permanent are retried, as those of steps.
async fn broken(ctx: &Ctx) -> outlast::Result<String> {
    ctx.wait_for_condition("broken", String::new(), async |_, _| {
        count("checks");
        Err(Error::new("unreachable", "nobody answers").permanent())
    })
    .await
}

async fn breaks(ctx: Ctx, _: ()) -> outlast::Result<String> {
    broken(&ctx).await
}

/// Case 6.7.
#[test]
fn wait_for_condition_6_7_a_check_that_fails_for_good_fails_the_run() {
    on_both(
        |engine| engine.workflow("breaks", breaks),
        async |case| {
            case.start("breaks", &()).await;
            case.fails("unreachable").await;
            case.journal(&["STEP_FAILED broken unreachable (1)", "RUN_ERRORED unreachable"]).await;
            assert_eq!(counted("checks"), 1);
        },
    );
}

async fn recovers(ctx: Ctx, _: ()) -> outlast::Result<String> {
    Ok(broken(&ctx).await.unwrap_or_else(|_| "recovered".to_owned()))
}

/// Case 6.8.
#[test]
fn wait_for_condition_6_8_the_author_handles_the_error_of_a_check() {
    on_both(
        |engine| engine.workflow("recovers", recovers),
        async |case| {
            case.start("recovers", &()).await;
            case.succeeds(json!("recovered")).await;
            case.journal(&["STEP_FAILED broken unreachable (1)", r#"RUN_FINISHED "recovered""#]).await;
        },
    );
}

#[derive(Serialize, Deserialize)]
struct Job {
    status: String,
    attempts: u32,
}

async fn job(ctx: Ctx, _: ()) -> outlast::Result<Job> {
    let pending = Job { status: "PENDING".to_owned(), attempts: 0 };
    ctx.wait_for_condition("job", pending, async |_, Job { status, attempts }| {
        let attempts = attempts + 1;
        Ok(if attempts < 2 {
            Check::Not(Job { status, attempts })
        } else {
            Check::Met(Job { status: "DONE".to_owned(), attempts })
        })
    })
    .await
}

/// Case 6.9.
#[test]
fn wait_for_condition_6_9_the_state_of_a_condition_may_be_an_object() {
    on_both(
        |engine| engine.workflow("job", job),
        async |case| {
            case.start("job", &()).await;
            case.succeeds(json!({ "status": "DONE", "attempts": 2 })).await;
            case.journal(&[
                r#"CONDITION_CHECKED job {"status":"PENDING","attempts":1} (1) again"#,
                r#"CONDITION_CHECKED job {"status":"DONE","attempts":2} (2) met"#,
                r#"RUN_FINISHED {"status":"DONE","attempts":2}"#,
            ])
            .await;
        },
    );
}

async fn marked(ctx: Ctx, _: ()) -> outlast::Result<String> {
    let marked = ctx
        .wait_for_condition("marked", Marked(String::new()), async |_, Marked(text)| {
            let text = format!("{text}x");
            Ok(if text.len() < 2 { Check::Not(Marked(text)) } else { Check::Met(Marked(text)) })
        })
        .await?;
    Ok(marked.0)
}

/// Case 6.11.
#[test]
fn wait_for_condition_6_11_a_type_decides_how_the_state_is_recorded() {
    on_both(
        |engine| engine.workflow("marked", marked),
        async |case| {
            case.start("marked", &()).await;
            case.succeeds(json!("xx")).await;
            case.journal(&[
                r#"CONDITION_CHECKED marked "wrapped:x" (1) again"#,
                r#"CONDITION_CHECKED marked "wrapped:xx" (2) met"#,
                r#"RUN_FINISHED "xx""#,
            ])
            .await;
        },
    );
}

async fn then_step(ctx: Ctx, to: u32) -> outlast::Result<u32> {
    let n = reach(&ctx, "reached", 0, to).await?;
    ctx.step("times ten", async |_| Ok(n * 10)).await
}

/// Case 6.12.
#[test]
fn wait_for_condition_6_12_a_step_uses_what_a_condition_gave() {
    on_both(
        |engine| engine.workflow("then_step", then_step),
        async |case| {
            case.start("then_step", &2).await;
            case.succeeds(json!(20)).await;
            case.journal(&[
                "CONDITION_CHECKED reached 1 (1) again",
                "CONDITION_CHECKED reached 2 (2) met",
                "STEP_FINISHED times ten 20 (1)",
                "RUN_FINISHED 20",
            ])
            .await;
            assert_eq!(counted("checks"), 2);
        },
    );
}

async fn two_conditions(ctx: Ctx, _: ()) -> outlast::Result<u32> {
    let two = reach(&ctx, "two", 0, 2).await?;
    reach(&ctx, "four", two, 4).await
}

/// Case 6.13.
#[test]
fn wait_for_condition_6_13_two_conditions_one_after_the_other() {
    on_both(
        |engine| engine.workflow("two_conditions", two_conditions),
        async |case| {
            case.start("two_conditions", &()).await;
            case.succeeds(json!(4)).await;
            case.journal(&[
                "CONDITION_CHECKED two 1 (1) again",
                "CONDITION_CHECKED two 2 (2) met",
                "CONDITION_CHECKED four 3 (1) again",
                "CONDITION_CHECKED four 4 (2) met",
                "RUN_FINISHED 4",
            ])
            .await;
            assert_eq!(counted("checks"), 4);
        },
    );
}
