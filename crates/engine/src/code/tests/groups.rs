//! Several operations together: the journal decides, not the order of polls.

use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use outlast_core::failure::Failure;
use outlast_core::program::Progress;
use serde_json::json;

use super::stage::finished;
use super::{Stage, key};
use crate::code::{Ctx, Race2, Race3};
use crate::error::{Error, Result};

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn a_race_is_won_by_the_first_fact_and_its_losers_are_cancelled() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        let race = ctx.race((ctx.wait_for::<u32>("order"), ctx.sleep(HOUR), ctx.step("slow", async |_| Ok(1))));
        Ok(match race.await? {
            Race3::First(order) => format!("order {order}"),
            Race3::Second(()) => "late".to_owned(),
            Race3::Third(n) => format!("step {n}"),
        })
    }
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start().signal("__wait-order-0", json!(7)).assert_replays();
    assert_eq!(stage.output(), json!("order 7"));
    assert_eq!(
        stage.told(),
        [
            "wait __wait-order-0",
            "await __wait-order-0",
            "sleep __sleep-0",
            "await __sleep-0",
            "step slow",
            "await slow",
            "cancel __sleep-0",
            "cancel slow"
        ]
    );
}

#[test]
fn the_lowest_journal_index_wins_a_race_also_among_those_settled_before_it() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(usize, u32)> {
        let handles: Vec<_> = (0..3).map(|n| ctx.wait_for::<u32>("x").id(&format!("x{n}")).start()).collect();
        ctx.wait_for::<()>("go").await?;
        ctx.race(handles).await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().signal("x2", json!(2)).signal("x0", json!(0)).signal("__wait-go-0", json!(null));
    stage.assert_replays();
    assert_eq!(stage.output(), json!([2, 2]));
    assert_eq!(stage.told().last().unwrap(), "cancel x1", "a handle that loses a race is cancelled too");
}

#[test]
fn a_race_can_be_lost_to_an_error() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        let bad = ctx.step("bad", async |_| Err::<(), _>(Error::new("broken", "no").permanent()));
        ctx.race((ctx.sleep(HOUR), bad)).await?;
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.failure(), &Failure::new("broken", "no").permanent());
    assert_eq!(stage.told().last().unwrap(), "cancel __sleep-0");
}

#[test]
fn what_needs_no_fact_comes_first() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<bool> {
        let settled = ctx.sleep(HOUR).start();
        ctx.wait_for::<()>("go").await?;
        Ok(matches!(ctx.race((settled, ctx.now())).await?, Race2::Second(_)))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().fire("__sleep-0").signal("__wait-go-0", json!(null)).assert_replays();
    assert_eq!(stage.output(), json!(true));
}

#[test]
fn a_race_of_nothing_is_an_error_and_all_of_nothing_is_nothing() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(String, String, usize, usize)> {
        let none = Vec::<crate::Sleep>::new;
        let race = ctx.race(none()).await.unwrap_err();
        let any = ctx.any(none()).await.unwrap_err();
        let all = ctx.all(none()).await?;
        let settled = ctx.all_settled(none()).await;
        Ok((race.code().to_owned(), any.code().to_owned(), all.len(), settled.len()))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.output(), json!(["validation_error", "all_failed", 0, 0]));
}

#[test]
fn all_gives_every_value_in_the_order_of_writing() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(u32, String, Vec<u32>)> {
        let many = (0..3).map(|n| ctx.step("many", async move |_| Ok(n))).collect::<Vec<_>>();
        let (a, (), b) = ctx.all((ctx.wait_for("a"), ctx.sleep(HOUR), ctx.wait_for("b"))).await?;
        Ok((a, b, ctx.all(many).await?))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().signal("__wait-b-0", json!("x")).fire("__sleep-0").signal("__wait-a-0", json!(1)).assert_replays();
    assert_eq!(stage.output(), json!([1, "x", [0, 1, 2]]));
}

#[test]
fn all_fails_with_the_first_failure_of_the_journal_and_cancels_the_rest() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        let fail = async |n: u32| Err::<u32, _>(Error::new(format!("code{n}"), "no").permanent());
        let handles: Vec<_> = (0..2).map(|n| ctx.step("bad", async move |_| fail(n).await).start()).collect();
        ctx.sleep(HOUR).await?;
        let mut operations = handles;
        operations.push(ctx.wait_for::<u32>("never").start());
        Ok(ctx.all(operations).await.unwrap_err().code().to_owned())
    }
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start();
    let failed = |step: &str, code: &str| outlast_core::event::Event::StepFailed {
        key: key(step),
        error: Failure::new(code, "no"),
        attempts: 1,
    };
    stage.happen(failed("bad#2", "second")).happen(failed("bad", "first")).fire("__sleep-0").assert_replays();
    assert_eq!(stage.output(), json!("second"));
    assert_eq!(stage.told().last().unwrap(), "cancel __wait-never-0");
}

#[test]
fn any_skips_failures_and_tells_them_all_if_there_is_nothing_else() {
    async fn workflow(ctx: Ctx, lucky: bool) -> Result<u32> {
        let fail = |code: &'static str| async move |_| Err::<u32, _>(Error::new(code, "no").permanent());
        let good = async move |_| if lucky { Ok(3) } else { Err(Error::new("c", "no").permanent()) };
        let any = ctx.any((ctx.step("a", fail("a")), ctx.step("b", fail("b")), ctx.step("c", good)));
        Ok(match any.await? {
            Race3::First(n) | Race3::Second(n) | Race3::Third(n) => n,
        })
    }
    let mut stage = Stage::new(workflow, true);
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(3));
    let mut stage = Stage::new(workflow, false);
    stage.start().assert_replays();
    let failure = stage.failure();
    assert_eq!(failure.to_string(), "all_failed: all 3 operations failed: a: no; b: no; c: no");
    let data: Vec<Failure> = serde_json::from_slice(failure.data.as_ref().unwrap()).unwrap();
    assert_eq!(data.iter().map(|failure| failure.code.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn all_settled_tells_every_outcome() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(u32, String)> {
        let bad = ctx.step("bad", async |_| Err::<u32, _>(Error::new("broken", "no").permanent()));
        let (good, bad) = ctx.all_settled((ctx.step("good", async |_| Ok(1)), bad)).await;
        Ok((good?, bad.unwrap_err().code().to_owned()))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!([1, "broken"]));
}

#[test]
fn groups_nest_and_cancelling_one_cancels_what_is_inside() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<&'static str> {
        let both = ctx.all((ctx.wait_for::<u32>("a"), ctx.wait_for::<u32>("b")));
        Ok(match ctx.race((both, ctx.sleep(HOUR))).await? {
            Race2::First(_) => "both",
            Race2::Second(()) => "late",
        })
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().signal("__wait-b-0", json!(1)).fire("__sleep-0").assert_replays();
    assert_eq!(stage.output(), json!("late"));
    assert_eq!(stage.told().last().unwrap(), "cancel __wait-a-0");
}

#[test]
fn a_body_that_completes_is_not_ready_before_its_fact_has_an_index() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<&'static str> {
        let race = ctx.race((ctx.step("quick", async |_| Ok(())), ctx.wait_for::<()>("other")));
        Ok(match race.await? {
            Race2::First(()) => "step",
            Race2::Second(()) => "signal",
        })
    }
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start();
    stage.resume(outlast_core::program::Input::Execute { key: &key("quick"), attempt: 1 });
    assert_eq!(stage.progress, Some(Progress::Blocked), "it returned, and that is not recorded");
    // Somebody else's fact comes first in the journal.
    stage.journal.pop();
    stage.signal("__wait-other-0", json!(null));
    assert_eq!(stage.output(), json!("signal"));
    assert_eq!(stage.told().last().unwrap(), "cancel quick");
}

#[test]
fn select_and_join_take_operations_as_they_are_and_replay_to_the_same_winner() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<Vec<String>> {
        let mut won = Vec::new();
        for round in 0..8 {
            won.push(tokio::select! {
                n = ctx.step(&format!("left{round}"), async |_| Ok(1)) => format!("left {}", n?),
                n = ctx.wait_for::<u32>("right").id(&format!("right{round}")) => format!("right {}", n?),
            });
        }
        let (a, b) = tokio::join!(ctx.step("a", async |_| Ok(1)), ctx.step("b", async |_| Ok(2)));
        won.push(format!("{} {}", a?, b?));
        Ok(won)
    }
    let mut stage = Stage::new(workflow, ());
    stage.executes = false;
    stage.start();
    for round in 0..8 {
        if round % 2 == 0 {
            stage.happen(finished(&format!("left{round}"), 1));
        } else {
            stage.signal(&format!("right{round}"), json!(2));
        }
    }
    stage.executes = true;
    stage.run();
    let replay = stage.replay();
    assert_eq!(replay.progress, stage.progress);
    let (mut live, mut again) = (stage.told(), replay.told());
    live.retain(|told| !told.starts_with("finish"));
    live.sort();
    again.sort();
    assert_eq!(again, live, "the same requests, though select! polls in random order");
    let output = stage.output();
    assert_eq!(
        (output[0].clone(), output[1].clone(), output[8].clone()),
        (json!("left 1"), json!("right 2"), json!("1 2"))
    );
}

#[test]
fn futures_unordered_gives_results_in_the_order_of_the_journal() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<Vec<u32>> {
        let mut waits: FuturesUnordered<_> = (0..40).map(|_| ctx.wait_for::<u32>("x")).collect();
        let mut seen = Vec::new();
        while let Some(n) = waits.next().await {
            seen.push(n?);
            if seen.len() == 3 {
                break;
            }
        }
        Ok(seen)
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    for n in [31, 2, 17] {
        stage.signal(&format!("__wait-x-{n}"), json!(n));
    }
    stage.assert_replays();
    assert_eq!(stage.output(), json!([31, 2, 17]));
    assert_eq!(stage.told().iter().filter(|told| told.starts_with("cancel")).count(), 37);
}

#[test]
fn a_fused_operation_says_when_it_is_over() {
    use futures_util::future::FusedFuture;
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        let mut step = ctx.step("once", async |_| Ok(1));
        assert!(!step.is_terminated());
        (&mut step).await?;
        assert!(step.is_terminated());
        assert!((&mut step).now_or_never().is_none());
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!(null));
}
