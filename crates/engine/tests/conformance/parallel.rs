//! Branches with code of their own: cases 8.x.

use std::time::Duration;

use outlast::{Batch, BatchStatus, Ctx, Error, Parallel};
use serde_json::{Value, json};

use crate::support::{Wrapped, count, counted, on_both, projection};

const SECOND: Duration = Duration::from_secs(1);

async fn two_steps(ctx: Ctx, name: String) -> outlast::Result<Vec<String>> {
    let both = ctx
        .parallel(&name)
        .branch(async |ctx| ctx.step("task", async |_| Ok("task-1".to_owned())).await)
        .branch(async |ctx| ctx.step("task", async |_| Ok("task-2".to_owned())).await);
    both.max_concurrency(1).await?.results()
}

fn tells_two_steps(name: &str) {
    on_both(
        |engine| engine.workflow("two_steps", two_steps),
        async |case| {
            case.start("two_steps", name).await;
            case.succeeds(json!(["task-1", "task-2"])).await;
            let result = r#"{"items":[{"succeeded":"task-1"},{"succeeded":"task-2"}],"reason":"ALL_COMPLETED"}"#;
            case.journal(&[
                &format!("SCOPE_STARTED {name} of 2"),
                &format!(r#"STEP_FINISHED {name}/0/task "task-1" (1)"#),
                &format!(r#"STEP_FINISHED {name}/1/task "task-2" (1)"#),
                &format!("SCOPE_FINISHED {name} {result} ALL_COMPLETED"),
                r#"RUN_FINISHED ["task-1","task-2"]"#,
            ])
            .await;
        },
    );
}

/// Case 8.1.
#[test]
fn parallel_8_1_two_branches_with_a_step_each() {
    tells_two_steps("parallel");
}

/// Case 8.12. Branches never leave events of their own: only what they do is recorded, below the batch.
#[test]
fn parallel_8_12_branches_are_flat() {
    tells_two_steps("flat");
}

async fn named(ctx: Ctx, _: ()) -> outlast::Result<Vec<String>> {
    let both = ctx
        .parallel("named")
        .branch(async |ctx| ctx.scope("first", async |_| Ok("one".to_owned())).await)
        .branch(async |ctx| ctx.scope("second", async |_| Ok("two".to_owned())).await);
    both.max_concurrency(1).await?.results()
}

/// Case 8.3. A branch that is to have a name has a scope.
#[test]
fn parallel_8_3_branches_with_names() {
    on_both(
        |engine| engine.workflow("named", named),
        async |case| {
            case.start("named", &()).await;
            case.succeeds(json!(["one", "two"])).await;
            case.journal(&[
                "SCOPE_STARTED named of 2",
                "SCOPE_STARTED named/0/first",
                r#"SCOPE_FINISHED named/0/first "one""#,
                "SCOPE_STARTED named/1/second",
                r#"SCOPE_FINISHED named/1/second "two""#,
                r#"SCOPE_FINISHED named {"items":[{"succeeded":"one"},{"succeeded":"two"}],"reason":"ALL_COMPLETED"} ALL_COMPLETED"#,
                r#"RUN_FINISHED ["one","two"]"#,
            ])
            .await;
        },
    );
}

async fn various(ctx: Ctx, _: ()) -> outlast::Result<Vec<Value>> {
    let various = ctx
        .parallel("various")
        .branch(async |_| Ok(json!("hello")))
        .branch(async |_| Ok(json!(42)))
        .branch(async |_| Ok(json!({ "k": "v" })));
    various.max_concurrency(1).await?.results()
}

/// Case 8.4.
#[test]
fn parallel_8_4_branches_return_values_of_different_types() {
    on_both(
        |engine| engine.workflow("various", various),
        async |case| {
            case.start("various", &()).await;
            case.succeeds(json!(["hello", 42, { "k": "v" }])).await;
            let result = r#"{"items":[{"succeeded":"hello"},{"succeeded":42},{"succeeded":{"k":"v"}}],"reason":"ALL_COMPLETED"}"#;
            case.journal(&[
                "SCOPE_STARTED various of 3",
                &format!("SCOPE_FINISHED various {result} ALL_COMPLETED"),
                r#"RUN_FINISHED ["hello",42,{"k":"v"}]"#,
            ])
            .await;
        },
    );
}

async fn empty(ctx: Ctx, _: ()) -> outlast::Result<Vec<String>> {
    ctx.parallel("empty").await?.results()
}

/// Case 8.5.
#[test]
fn parallel_8_5_no_branches_are_complete_at_once() {
    on_both(
        |engine| engine.workflow("empty", empty),
        async |case| {
            case.start("empty", &()).await;
            case.succeeds(json!([])).await;
            case.journal(&[
                "SCOPE_STARTED empty of 0",
                r#"SCOPE_FINISHED empty {"items":[],"reason":"ALL_COMPLETED"} ALL_COMPLETED"#,
                "RUN_FINISHED []",
            ])
            .await;
        },
    );
}

async fn unordered(ctx: Ctx, _: ()) -> outlast::Result<Vec<String>> {
    let branches = (0..3_u32).fold(ctx.parallel("unordered"), |branches, place| {
        branches.branch(async move |ctx: Ctx| {
            // The first takes longest.
            ctx.sleep((3 - place) * SECOND).await?;
            Ok(format!("r{place}"))
        })
    });
    branches.max_concurrency(2).await?.results()
}

/// Case 8.11.
#[test]
fn parallel_8_11_results_are_in_the_order_of_the_branches() {
    on_both(
        |engine| engine.workflow("unordered", unordered),
        async |case| {
            case.start("unordered", &()).await;
            case.succeeds(json!(["r0", "r1", "r2"])).await;
            let result =
                r#"{"items":[{"succeeded":"r0"},{"succeeded":"r1"},{"succeeded":"r2"}],"reason":"ALL_COMPLETED"}"#;
            let mut journal = case.written().await;
            let mut fired = journal.split_off(5);
            assert_eq!(
                journal,
                [
                    "SCOPE_STARTED unordered of 3",
                    "TIMER_STARTED unordered/0/__sleep-0 3000 ms",
                    "TIMER_STARTED unordered/1/__sleep-0 2000 ms",
                    "TIMER_FIRED unordered/1/__sleep-0",
                    "TIMER_STARTED unordered/2/__sleep-0 1000 ms",
                ]
            );
            // Both are due at the same instant.
            fired[..2].sort();
            assert_eq!(
                fired,
                [
                    "TIMER_FIRED unordered/0/__sleep-0".to_owned(),
                    "TIMER_FIRED unordered/2/__sleep-0".to_owned(),
                    format!("SCOPE_FINISHED unordered {result} ALL_COMPLETED"),
                    r#"RUN_FINISHED ["r0","r1","r2"]"#.to_owned(),
                ]
            );
            case.took(3 * SECOND);
        },
    );
}

async fn suspends(ctx: Ctx, _: ()) -> outlast::Result<Vec<String>> {
    let both = ctx
        .parallel("replay")
        .branch(async |ctx| {
            ctx.step("b0", async |_| {
                count("b0");
                Ok("b0".to_owned())
            })
            .await
        })
        .branch(async |ctx| {
            ctx.sleep(2 * SECOND).await?;
            Ok("b1".to_owned())
        });
    both.max_concurrency(1).await?.results()
}

/// Case 8.14.
#[test]
fn parallel_8_14_a_branch_that_succeeded_is_not_run_again_when_another_sleeps() {
    on_both(
        |engine| engine.workflow("suspends", suspends),
        async |case| {
            case.start("suspends", &()).await;
            case.succeeds(json!(["b0", "b1"])).await;
            case.journal(&[
                "SCOPE_STARTED replay of 2",
                r#"STEP_FINISHED replay/0/b0 "b0" (1)"#,
                "TIMER_STARTED replay/1/__sleep-0 2000 ms",
                "TIMER_FIRED replay/1/__sleep-0",
                r#"SCOPE_FINISHED replay {"items":[{"succeeded":"b0"},{"succeeded":"b1"}],"reason":"ALL_COMPLETED"} ALL_COMPLETED"#,
                r#"RUN_FINISHED ["b0","b1"]"#,
            ])
            .await;
            assert_eq!(counted("b0"), 1);
        },
    );
}

async fn wrapped(ctx: Ctx, _: ()) -> outlast::Result<Vec<String>> {
    let both =
        ctx.parallel("own").branch(async |_| Ok(Wrapped("x".to_owned()))).branch(async |_| Ok(Wrapped("y".to_owned())));
    Ok(both.max_concurrency(1).await?.results()?.into_iter().map(|wrapped| wrapped.0).collect())
}

/// Case 8.15.
#[test]
fn parallel_8_15_a_type_decides_how_the_results_of_branches_are_recorded() {
    on_both(
        |engine| engine.workflow("wrapped", wrapped),
        async |case| {
            case.start("wrapped", &()).await;
            case.succeeds(json!(["x", "y"])).await;
            let result =
                r#"{"items":[{"succeeded":{"wrapped":"x"}},{"succeeded":{"wrapped":"y"}}],"reason":"ALL_COMPLETED"}"#;
            case.journal(&[
                "SCOPE_STARTED own of 2",
                &format!("SCOPE_FINISHED own {result} ALL_COMPLETED"),
                r#"RUN_FINISHED ["x","y"]"#,
            ])
            .await;
        },
    );
}

/// One branch after the other; those that are false fail.
fn branches(ctx: &Ctx, succeed: &[bool]) -> Parallel<'static, String> {
    let parallel = succeed.iter().fold(ctx.parallel("branches"), |parallel, succeeds| {
        let succeeds = *succeeds;
        parallel.branch(async move |_| {
            count("branches");
            if succeeds { Ok("ok".to_owned()) } else { Err(Error::new("no", "")) }
        })
    });
    parallel.max_concurrency(1)
}

/// Tells what becomes of branches under a policy; how many of them are started.
fn policy(
    succeed: &'static [bool],
    set: fn(Parallel<'static, String>) -> Parallel<'static, String>,
    expected: Value,
    started: u32,
) {
    on_both(
        |engine| {
            engine.workflow("policy", move |ctx: Ctx, _: ()| async move {
                let batch: Batch<String> = set(branches(&ctx, succeed)).await?;
                Ok(projection(&batch))
            })
        },
        async |case| {
            case.start("policy", &()).await;
            case.succeeds(expected.clone()).await;
            assert_eq!(counted("branches"), started);
            let [begun, ended, _] = &case.written().await[..] else { panic!("{:#?}", case.written().await) };
            assert_eq!(*begun, format!("SCOPE_STARTED branches of {}", succeed.len()));
            let reason = expected["reason"].as_str().unwrap_or_default();
            assert!(ended.starts_with("SCOPE_FINISHED branches ") && ended.ends_with(reason), "{ended}");
        },
    );
}

/// Case 8.10.
#[test]
fn parallel_8_10_more_failures_than_are_tolerated_stop_it() {
    policy(
        &[false, false, true],
        |branches| branches.tolerate_failures(1),
        json!({ "reason": "FAILURE_TOLERANCE_EXCEEDED", "status": "failed", "succeeded": 0, "failed": 2, "total": 2 }),
        2,
    );
}

/// Case 8.13.
#[test]
fn parallel_8_13_a_larger_part_of_failures_than_is_tolerated_stops_it() {
    policy(
        &[false, false, true, true],
        |branches| branches.tolerate_percent(25),
        json!({ "reason": "FAILURE_TOLERANCE_EXCEEDED", "status": "failed", "succeeded": 0, "failed": 2, "total": 2 }),
        2,
    );
}

/// Case 8.16.
#[test]
fn parallel_8_16_all_fail_and_all_are_tolerated() {
    policy(
        &[false, false, false],
        |branches| branches.tolerate_failures(3),
        json!({ "reason": "ALL_COMPLETED", "status": "failed", "succeeded": 0, "failed": 3, "total": 3 }),
        3,
    );
}

/// Case 8.17.
#[test]
fn parallel_8_17_too_few_succeed_and_all_are_run() {
    policy(
        &[true, false, true],
        |branches| branches.min_successful(3),
        json!({ "reason": "ALL_COMPLETED", "status": "failed", "succeeded": 2, "failed": 1, "total": 3 }),
        3,
    );
}

/// Case 8.22.
#[test]
fn parallel_8_22_exactly_the_tolerated_part_fails_and_all_are_run() {
    policy(
        &[false, true, true, true],
        |branches| branches.tolerate_percent(25),
        json!({ "reason": "ALL_COMPLETED", "status": "failed", "succeeded": 3, "failed": 1, "total": 4 }),
        4,
    );
}

async fn accessors(ctx: Ctx, _: ()) -> outlast::Result<(bool, usize, usize, usize)> {
    let batch = branches(&ctx, &[true, false, true]).tolerate_failures(1).await?;
    Ok((batch.status() == BatchStatus::Failed, batch.succeeded(), batch.failed(), batch.errors().count()))
}

/// Case 8.20.
#[test]
fn parallel_8_20_a_batch_says_what_succeeded_and_what_failed() {
    on_both(
        |engine| engine.workflow("accessors", accessors),
        async |case| {
            case.start("accessors", &()).await;
            case.succeeds(json!([true, 2, 1, 1])).await;
            let result = r#"{"items":[{"succeeded":"ok"},{"failed":{"code":"no","message":""}},{"succeeded":"ok"}],"reason":"ALL_COMPLETED"}"#;
            case.journal(&[
                "SCOPE_STARTED branches of 3",
                &format!("SCOPE_FINISHED branches {result} ALL_COMPLETED"),
                "RUN_FINISHED [true,2,1,1]",
            ])
            .await;
        },
    );
}

async fn no_concurrency(ctx: Ctx, _: ()) -> outlast::Result<Vec<String>> {
    branches(&ctx, &[true, true]).max_concurrency(0).await?.results()
}

/// Case 8.19.
#[test]
fn parallel_8_19_a_concurrency_of_zero_is_refused() {
    on_both(
        |engine| engine.workflow("no_concurrency", no_concurrency),
        async |case| {
            case.start("no_concurrency", &()).await;
            case.fails("validation_error").await;
            case.journal(&["RUN_ERRORED validation_error"]).await;
            assert_eq!(counted("branches"), 0);
        },
    );
}
