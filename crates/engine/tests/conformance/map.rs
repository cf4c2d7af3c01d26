//! The same code for each item: cases 9.x.

use std::time::Duration;

use outlast::{Ctx, Error, Map};
use outlast_core::limits::Limits;
use serde_json::{Value, json};

use crate::support::{Joined, Marked, count, counted, on_both, projection};

/// One item after the other; those that are false fail.
fn items(ctx: &Ctx, succeed: &[bool]) -> Map<'static, String> {
    ctx.map("items", succeed.to_vec(), async |_, succeeds, _| {
        count("items");
        if succeeds { Ok("ok".to_owned()) } else { Err(Error::new("no", "")) }
    })
    .max_concurrency(1)
}

/// Tells what becomes of items under a policy; how many of them are started.
fn policy(
    succeed: &'static [bool],
    set: fn(Map<'static, String>) -> Map<'static, String>,
    expected: Value,
    started: u32,
) {
    on_both(
        |engine| {
            engine.workflow("policy", move |ctx: Ctx, _: ()| async move {
                Ok(projection(&set(items(&ctx, succeed)).await?))
            })
        },
        async |case| {
            case.start("policy", &()).await;
            case.succeeds(expected.clone()).await;
            assert_eq!(counted("items"), started);
            let [begun, ended, _] = &case.written().await[..] else { panic!("{:#?}", case.written().await) };
            assert_eq!(*begun, format!("SCOPE_STARTED items of {}", succeed.len()));
            let reason = expected["reason"].as_str().unwrap_or_default();
            assert!(ended.starts_with("SCOPE_FINISHED items ") && ended.ends_with(reason), "{ended}");
        },
    );
}

/// Case 9.5.
#[test]
fn map_9_5_the_first_failure_stops_it() {
    policy(
        &[true, false, true],
        |items| items.tolerate_failures(0),
        json!({ "reason": "FAILURE_TOLERANCE_EXCEEDED", "status": "failed", "succeeded": 1, "failed": 1, "total": 2 }),
        2,
    );
}

/// Case 9.7.
#[test]
fn map_9_7_enough_successes_complete_it() {
    policy(
        &[true, true, true, true],
        |items| items.min_successful(2),
        json!({ "reason": "MIN_SUCCESSFUL_REACHED", "status": "succeeded", "succeeded": 2, "failed": 0, "total": 2 }),
        2,
    );
}

/// Case 9.9.
#[test]
fn map_9_9_more_failures_than_are_tolerated_stop_it() {
    policy(
        &[false, false, true],
        |items| items.tolerate_failures(1),
        json!({ "reason": "FAILURE_TOLERANCE_EXCEEDED", "status": "failed", "succeeded": 0, "failed": 2, "total": 2 }),
        2,
    );
}

/// Case 9.10.
#[test]
fn map_9_10_a_larger_part_of_failures_than_is_tolerated_stops_it() {
    policy(
        &[false, false, true, true],
        |items| items.tolerate_percent(25),
        json!({ "reason": "FAILURE_TOLERANCE_EXCEEDED", "status": "failed", "succeeded": 0, "failed": 2, "total": 2 }),
        2,
    );
}

async fn throwing(ctx: Ctx, _: ()) -> outlast::Result<usize> {
    let batch = items(&ctx, &[false, true]).tolerate_failures(0).await?;
    Ok(batch.into_result()?.total())
}

/// Case 9.6.
#[test]
fn map_9_6_the_author_makes_a_failure_an_error_of_the_run() {
    on_both(
        |engine| engine.workflow("throwing", throwing),
        async |case| {
            case.start("throwing", &()).await;
            case.fails("batch_failed").await;
            let result = r#"{"items":[{"failed":{"code":"no","message":""}}],"reason":"FAILURE_TOLERANCE_EXCEEDED"}"#;
            case.journal(&[
                "SCOPE_STARTED items of 2",
                &format!("SCOPE_FINISHED items {result} FAILURE_TOLERANCE_EXCEEDED"),
                "RUN_ERRORED batch_failed",
            ])
            .await;
            assert_eq!(counted("items"), 1);
        },
    );
}

async fn marked(ctx: Ctx, words: Vec<String>) -> outlast::Result<Vec<String>> {
    let marked = ctx.map("marked", words, async |_, word, _| Ok(Marked(word.to_uppercase())));
    Ok(marked.max_concurrency(1).await?.results()?.into_iter().map(|marked| marked.0).collect())
}

/// Case 9.14.
#[test]
fn map_9_14_a_type_decides_how_the_results_of_items_are_recorded() {
    on_both(
        |engine| engine.workflow("marked", marked),
        async |case| {
            case.start("marked", &["x", "y"]).await;
            case.succeeds(json!(["X", "Y"])).await;
            let result = r#"{"items":[{"succeeded":"wrapped:X"},{"succeeded":"wrapped:Y"}],"reason":"ALL_COMPLETED"}"#;
            case.journal(&[
                "SCOPE_STARTED marked of 2",
                &format!("SCOPE_FINISHED marked {result} ALL_COMPLETED"),
                r#"RUN_FINISHED ["X","Y"]"#,
            ])
            .await;
        },
    );
}

async fn large(ctx: Ctx, _: ()) -> outlast::Result<(Vec<usize>, usize)> {
    let words = ctx.map("large", vec![1, 2, 3, 4], async |ctx, n, _| {
        ctx.step("letters", async |_| {
            count("letters");
            Ok("x".repeat(70_000 + n))
        })
        .await
    });
    let batch = words.max_concurrency(1).await?;
    ctx.sleep(Duration::from_secs(1)).await?;
    let total = batch.total();
    Ok((batch.results()?.iter().map(String::len).collect(), total))
}

/// Case 9.16.
#[test]
fn map_9_16_a_result_that_is_too_large_is_left_to_the_inside() {
    let limits = Limits { payload_bytes: 256 * 1024, ..Limits::default() };
    on_both(
        |engine| engine.limits(limits.clone()).workflow("large", large),
        async |case| {
            case.start("large", &()).await;
            case.succeeds(json!([[70_001, 70_002, 70_003, 70_004], 4])).await;
            assert_eq!(counted("letters"), 4);
            let journal: Vec<String> = case.written().await.iter().map(|line| line.replace('x', "")).collect();
            assert_eq!(
                journal,
                [
                    "SCOPE_STARTED large of 4",
                    r#"STEP_FINISHED large/0/letters "" (1)"#,
                    r#"STEP_FINISHED large/1/letters "" (1)"#,
                    r#"STEP_FINISHED large/2/letters "" (1)"#,
                    r#"STEP_FINISHED large/3/letters "" (1)"#,
                    "SCOPE_FINISHED large replay_inside ALL_COMPLETED",
                    "TIMER_STARTED __sleep-0 1000 ms",
                    "TIMER_FIRED __sleep-0",
                    "RUN_FINISHED [[70001,70002,70003,70004],4]",
                ]
            );
        },
    );
}

async fn then_sleeps(ctx: Ctx, words: Vec<String>) -> outlast::Result<Vec<String>> {
    let louder = ctx.map("louder", words, async |_, word, _| {
        count("louder");
        Ok(word.to_uppercase())
    });
    let louder = louder.max_concurrency(1).await?.results()?;
    ctx.sleep(Duration::from_secs(1)).await?;
    Ok(louder)
}

/// Case 9.17.
#[test]
fn map_9_17_a_map_that_is_complete_is_not_run_again() {
    on_both(
        |engine| engine.workflow("then_sleeps", then_sleeps),
        async |case| {
            case.start("then_sleeps", &["a", "b"]).await;
            case.succeeds(json!(["A", "B"])).await;
            let result = r#"{"items":[{"succeeded":"A"},{"succeeded":"B"}],"reason":"ALL_COMPLETED"}"#;
            case.journal(&[
                "SCOPE_STARTED louder of 2",
                &format!("SCOPE_FINISHED louder {result} ALL_COMPLETED"),
                "TIMER_STARTED __sleep-0 1000 ms",
                "TIMER_FIRED __sleep-0",
                r#"RUN_FINISHED ["A","B"]"#,
            ])
            .await;
            assert_eq!(counted("louder"), 2);
        },
    );
}

async fn joined(ctx: Ctx, words: Vec<String>) -> outlast::Result<Vec<String>> {
    let joined = ctx.scope("joined", async |ctx| {
        let louder = ctx.map("louder", words, async |_, word, _| Ok(word.to_uppercase()));
        Ok(Joined(louder.max_concurrency(1).await?.results()?))
    });
    Ok(joined.await?.0)
}

/// Case 9.19. A batch is always recorded as a batch; a scope around it has a result of the author's type.
#[test]
fn map_9_19_a_type_decides_how_the_whole_result_is_recorded() {
    on_both(
        |engine| engine.workflow("joined", joined),
        async |case| {
            case.start("joined", &["x", "y"]).await;
            case.succeeds(json!(["X", "Y"])).await;
            let result = r#"{"items":[{"succeeded":"X"},{"succeeded":"Y"}],"reason":"ALL_COMPLETED"}"#;
            case.journal(&[
                "SCOPE_STARTED joined",
                "SCOPE_STARTED joined/louder of 2",
                &format!("SCOPE_FINISHED joined/louder {result} ALL_COMPLETED"),
                r#"SCOPE_FINISHED joined "all:X,Y""#,
                r#"RUN_FINISHED ["X","Y"]"#,
            ])
            .await;
        },
    );
}
