//! `map` and `parallel`: the table of completion policies, row by row, and what is around it.

use std::time::Duration;

use outlast_core::operation::Operation as Request;
use outlast_core::program::Progress;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Stage;
use crate::code::{Batch, BatchItem, BatchStatus, Ctx};
use crate::error::{Error, Result};

const HOUR: Duration = Duration::from_secs(3_600);

/// Which policy a row has.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Policy {
    min: Option<usize>,
    tolerate: Option<usize>,
    percent: Option<u32>,
    concurrency: Option<usize>,
}

async fn branch(ctx: Ctx, fails: bool) -> Result<u32> {
    ctx.step("work", async move |_| if fails { Err(Error::new("broken", "no").permanent()) } else { Ok(1) }).await
}

/// What the batch says of itself.
fn tell<T>(batch: &Batch<T>) -> String {
    let status = match batch.status() {
        BatchStatus::Succeeded => "succeeded",
        BatchStatus::Failed => "failed",
    };
    format!("{}, {status}, {}/{}/{}", batch.reason.as_str(), batch.succeeded(), batch.failed(), batch.total())
}

macro_rules! with_policy {
    ($builder:expr, $policy:expr) => {{
        let (mut builder, policy) = ($builder, $policy);
        if let Some(min) = policy.min {
            builder = builder.min_successful(min);
        }
        if let Some(max) = policy.tolerate {
            builder = builder.tolerate_failures(max);
        }
        if let Some(percent) = policy.percent {
            builder = builder.tolerate_percent(percent);
        }
        builder.max_concurrency(policy.concurrency.unwrap_or(1))
    }};
}

/// Runs a row as a map and as a parallel; `f` is a branch that fails, `o` one that does not.
fn row(branches: &str, policy: Policy) -> String {
    async fn map(ctx: Ctx, (fails, policy): (Vec<bool>, Policy)) -> Result<String> {
        let map = ctx.map("batch", fails, async |ctx, fails, _| branch(ctx, fails).await);
        Ok(tell(&with_policy!(map, policy).await?))
    }
    async fn parallel(ctx: Ctx, (fails, policy): (Vec<bool>, Policy)) -> Result<String> {
        let parallel = fails
            .into_iter()
            .fold(ctx.parallel("batch"), |parallel, fails| parallel.branch(async move |ctx| branch(ctx, fails).await));
        Ok(tell(&with_policy!(parallel, policy).await?))
    }
    let fails: Vec<bool> = branches.chars().map(|branch| branch == 'f').collect();
    let mut as_map = Stage::new(map, (fails.clone(), policy));
    as_map.start().assert_replays();
    let mut as_parallel = Stage::new(parallel, (fails, policy));
    as_parallel.start().assert_replays();
    assert_eq!(as_parallel.progress, as_map.progress);
    assert_eq!(as_parallel.told(), as_map.told());
    match as_map.progress.as_ref().unwrap() {
        Progress::Finished(_) => as_map.output().as_str().unwrap().to_owned(),
        Progress::Failed(failure) => format!("run failed, {}", failure.code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn three_failures_are_within_a_tolerance_of_three() {
    let policy = Policy { tolerate: Some(3), ..Policy::default() };
    assert_eq!(row("fff", policy), "ALL_COMPLETED, failed, 0/3/3");
}

#[test]
fn two_failures_exceed_a_tolerance_of_one_and_the_third_branch_does_not_start() {
    let policy = Policy { tolerate: Some(1), ..Policy::default() };
    assert_eq!(row("ffo", policy), "FAILURE_TOLERANCE_EXCEEDED, failed, 0/2/2");
}

#[test]
fn a_percentage_is_of_all_items_and_exceeded_by_more_than_it() {
    let policy = Policy { percent: Some(25), ..Policy::default() };
    assert_eq!(row("ffoo", policy), "FAILURE_TOLERANCE_EXCEEDED, failed, 0/2/2");
    assert_eq!(row("fooo", policy), "ALL_COMPLETED, failed, 3/1/4");
}

#[test]
fn a_minimum_that_is_not_reached_is_all_completed() {
    let policy = Policy { min: Some(3), ..Policy::default() };
    assert_eq!(row("ofo", policy), "ALL_COMPLETED, failed, 2/1/3");
}

#[test]
fn no_branches_are_all_completed() {
    assert_eq!(row("", Policy::default()), "ALL_COMPLETED, succeeded, 0/0/0");
}

#[test]
fn a_concurrency_of_zero_fails_the_run() {
    assert_eq!(row("oo", Policy { concurrency: Some(0), ..Policy::default() }), "run failed, validation_error");
}

#[test]
fn without_a_policy_the_first_failure_ends_it() {
    assert_eq!(row("ofo", Policy::default()), "FAILURE_TOLERANCE_EXCEEDED, failed, 1/1/2");
}

#[test]
fn a_minimum_that_is_reached_ends_it() {
    let policy = Policy { min: Some(2), ..Policy::default() };
    assert_eq!(row("ofooo", policy), "MIN_SUCCESSFUL_REACHED, failed, 2/1/3");
    assert_eq!(row("oo", policy), "ALL_COMPLETED, succeeded, 2/0/2");
}

#[test]
fn branches_have_scopes_of_their_own_and_results_keep_their_order() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<Vec<u32>> {
        let map = ctx.map("ship", vec![10, 20, 30], async |ctx, item, place| {
            let n: u32 = ctx.wait_for("label").await?;
            Ok(item + n + u32::try_from(place)?)
        });
        map.await?.results()
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    for branch in [2, 0, 1] {
        stage.signal(&format!("ship/{branch}/__wait-label-0"), json!(branch)).assert_replays();
    }
    assert_eq!(stage.output(), json!([10, 22, 34]));
    let Request::StartScope { total, .. } = &stage.requests[0].operation else { panic!() };
    assert_eq!(*total, Some(3));
}

#[test]
fn only_so_many_branches_run_at_once() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<usize> {
        let map = ctx.map("ship", vec![(); 5], async |ctx, (), _| ctx.wait_for::<()>("go").await);
        Ok(map.max_concurrency(2).await?.succeeded())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    let started = |stage: &Stage| stage.told().iter().filter(|told| told.starts_with("wait")).count();
    assert_eq!(started(&stage), 2);
    for branch in [1, 2, 0, 3, 4] {
        stage.signal(&format!("ship/{branch}/__wait-go-0"), json!(null)).assert_replays();
    }
    assert_eq!((stage.output(), started(&stage)), (json!(5), 5));
}

#[test]
fn branches_that_are_open_when_it_is_complete_are_cancelled_by_its_end() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<Batch<u32>> {
        let map = ctx.map("ship", vec![0, 1, 2], async |ctx, n, _| {
            ctx.wait_for::<()>("go").await?;
            Ok(n)
        });
        let batch = map.min_successful(1).await?;
        ctx.sleep(HOUR).await?;
        Ok(batch)
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().signal("ship/1/__wait-go-0", json!(null));
    assert_eq!(stage.told()[8..], ["close ship MIN_SUCCESSFUL_REACHED", "sleep __sleep-0", "await __sleep-0"]);
    stage.cancel();
    assert_eq!(stage.told()[11..], ["cancel __sleep-0"], "what was inside is over");
    stage.assert_replays();
}

#[test]
fn a_batch_reads_back_as_it_was() {
    let batch = Batch {
        items: vec![
            BatchItem::Succeeded(1),
            BatchItem::Failed(Error::new("x", "y").with_data(&2)),
            BatchItem::Cancelled,
        ],
        reason: crate::BatchReason::MinSuccessfulReached,
    };
    let text = serde_json::to_string(&batch).unwrap();
    assert_eq!(
        text,
        r#"{"items":[{"succeeded":1},{"failed":{"code":"x","message":"y","data":2}},"cancelled"],"reason":"MIN_SUCCESSFUL_REACHED"}"#
    );
    assert_eq!(serde_json::from_str::<Batch<u32>>(&text).unwrap(), batch);
}

#[test]
fn a_failed_batch_becomes_an_error_when_asked() {
    let batch = Batch {
        items: vec![BatchItem::Succeeded(1), BatchItem::Failed(Error::new("x", "y"))],
        reason: crate::BatchReason::AllCompleted,
    };
    let error = batch.results().unwrap_err();
    assert_eq!(error.to_string(), "batch_failed: 1 of 2 branches failed, the first with x: y");
}

#[test]
fn a_batch_that_is_cancelled_lets_its_branches_clean_up_and_starts_no_others() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        let map = ctx.map("ship", vec![0, 1, 2], async |ctx, n, _| {
            if ctx.wait_for::<()>("go").await.is_err() {
                ctx.step("undo", async |_| Ok(())).await?;
            }
            Ok(n)
        });
        let error = map.max_concurrency(2).tolerate_failures(9).await.unwrap_err();
        // Cleaning up may take a batch too.
        let undone = ctx.map("undo", vec![1], async |ctx, n, _| ctx.step("x", async |_| Ok(n)).await).await?;
        Ok(format!("{} {}", error.code(), undone.succeeded()))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().cancel().assert_replays();
    assert_eq!(stage.output(), json!("cancelled 1"));
    assert!(!stage.told().iter().any(|told| told.contains("ship/2")), "{:?}", stage.told());
    assert!(stage.told().contains(&"finish ship/1/undo null".to_owned()), "{:?}", stage.told());
    assert!(stage.told().contains(&"fail ship cancelled".to_owned()), "{:?}", stage.told());
}
