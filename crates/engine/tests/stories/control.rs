//! Operators: cancel, pause, resume, approve.

use std::sync::Arc;

use outlast::{Ctx, Decision, Event, Outlast, Status};
use outlast_store::Delivered;
use tokio::sync::Notify;

use crate::support::{Scene, Tally, journal, kinds, seconds, status};

/// Sleeps for a day; when it is cancelled, cleans up in two steps with a sleep between them.
async fn tidy(ctx: Ctx, (): ()) -> outlast::Result<()> {
    let Err(error) = ctx.sleep(seconds(86_400)).await else { return Ok(()) };
    assert!(error.is_cancelled() && ctx.is_cancelled());
    ctx.step("refund", async |_| Ok(())).await?;
    ctx.sleep(seconds(5)).await?;
    ctx.step("tell", async |_| Ok(())).await?;
    Err(error)
}

/// "`CANCEL_REQUESTED` is journaled, open operations fail with `Cancelled`, cleanup code runs and may start new
/// operations."
#[test]
fn a_cancelled_run_cleans_up_and_ends_as_cancelled() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("tidy", tidy)).await;
        let run = engine.start("tidy", &()).id("a").await.unwrap();
        scene.pass(seconds(60)).await;
        let begun = scene.world.now();
        engine.run("a").unwrap().cancel("not needed").await.unwrap();
        let error = run.result::<()>().await.unwrap_err();
        assert_eq!(error.code(), "aborted");
        let took = scene.world.now().since(begun).as_millis();
        assert!((5_000..5_100).contains(&took), "the cleanup's sleep is slept: {took}");
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
        let told: Vec<_> =
            kinds(&engine, "a").await.into_iter().filter(|kind| *kind != "OPERATION_CANCELLED").collect();
        let expected = [
            "TIMER_STARTED",
            "CANCEL_REQUESTED",
            "STEP_FINISHED",
            "TIMER_STARTED",
            "TIMER_FIRED",
            "STEP_FINISHED",
            "RUN_CANCELLED",
        ];
        assert_eq!(told, expected);
        assert_eq!(scene.awaiting("a").await, [], "nothing is left of the first sleep");
    });
}

#[test]
fn a_run_is_cancelled_once() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("tidy", tidy)).await;
        let run = engine.start("tidy", &()).id("a").await.unwrap();
        engine.run("a").unwrap().cancel("one").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().cancel("two").await.unwrap();
        assert!(run.result::<()>().await.is_err());
        let requests = kinds(&engine, "a").await.iter().filter(|kind| **kind == "CANCEL_REQUESTED").count();
        assert_eq!(requests, 1, "a second request does not disturb the cleanup");
        let late = engine.run("a").unwrap().cancel("three").await.unwrap_err();
        assert_eq!(late.code(), "signal_lost");
    });
}

/// A body that executes when the run is cancelled is dropped, and its step fails with `cancelled`.
#[test]
fn a_cancelled_run_drops_the_body_that_executes() {
    async fn busy(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("busy", async |_| std::future::pending().await).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
        let run = engine.start("busy", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Running);
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        assert_eq!(run.result::<()>().await.unwrap_err().code(), "aborted");
    });
}

/// A run that catches the cancellation and returns has finished.
#[test]
fn a_run_that_finishes_although_it_was_cancelled_has_finished() {
    async fn stubborn(ctx: Ctx, (): ()) -> outlast::Result<&'static str> {
        Ok(if ctx.sleep(seconds(60)).await.is_err() { "early" } else { "slept" })
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", stubborn)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "early");
    });
}

async fn sleep_then_step(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    ctx.sleep(seconds(60)).await?;
    let n = ctx.step("n", async |_| Ok(1)).await?;
    Ok(n + ctx.wait_for::<u32>("more").await?)
}

/// "After it facts stay in the inbox, acknowledged and visible, until resume; deadlines go on."
/// Paused and waiting are two things.
#[test]
fn a_paused_run_keeps_what_comes_until_it_is_resumed() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", sleep_then_step)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let begun = scene.world.now();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().pause("lunch").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        engine.run("a").unwrap().signal("more", &41, "1").await.unwrap();
        scene.pass(seconds(120)).await;
        assert_eq!(kinds(&engine, "a").await, ["TIMER_STARTED", "RUN_PAUSED"], "nothing starts");
        assert_eq!(status(&engine, "a").await, Status::Paused);
        engine.run("a").unwrap().resume().await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 42);
        let took = scene.world.now().since(begun).as_millis();
        assert!((122_000..122_100).contains(&took), "the sleep was over long ago: {took}");
        let expected = [
            "TIMER_STARTED",
            "RUN_PAUSED",
            "RUN_RESUMED",
            "TIMER_FIRED",
            "STEP_FINISHED",
            "SIGNAL_AWAITED",
            "SIGNAL_RESOLVED",
            "RUN_FINISHED",
        ];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

/// "Nothing new starts; executing bodies finish and are fed; then `RUN_PAUSED`."
#[test]
fn a_pause_waits_for_the_body_that_executes() {
    Scene::play(async |scene| {
        let (ran, gate) = (Tally::default(), Arc::new(Notify::new()));
        let (counted, opened) = (ran.clone(), Arc::clone(&gate));
        let register = |engine: Outlast| {
            engine.workflow("w", move |ctx: Ctx, (): ()| {
                let (ran, gate) = (counted.clone(), Arc::clone(&opened));
                async move {
                    let slow = async |_| {
                        gate.notified().await;
                        Ok(1)
                    };
                    ctx.step("slow", slow).await?;
                    ctx.step("next", async |_| Ok(ran.add())).await
                }
            })
        };
        let engine = scene.engine(register).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().pause("lunch").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Running, "a body executes");
        gate.notify_one();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "RUN_PAUSED"]);
        assert_eq!(ran.count(), 0, "nothing new starts");
        engine.run("a").unwrap().resume().await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
    });
}

#[test]
fn a_paused_run_can_be_cancelled() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("tidy", tidy)).await;
        let run = engine.start("tidy", &()).id("a").await.unwrap();
        engine.run("a").unwrap().pause("lunch").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        assert_eq!(run.result::<()>().await.unwrap_err().code(), "aborted");
    });
}

/// Whoever asks may say who they are, and the journal says it too.
#[test]
fn who_asked_is_recorded_with_what_they_asked_for() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("tidy", tidy)).await;
        for run in ["a", "b"] {
            engine.start("tidy", &()).id(run).await.unwrap();
        }
        scene.pass(seconds(1)).await;
        let a = engine.run("a").unwrap();
        a.pause("lunch").by("ann").await.unwrap();
        scene.pass(seconds(1)).await;
        a.resume().by("bob").await.unwrap();
        scene.pass(seconds(1)).await;
        a.pause("tea").by("cleo").await.unwrap();
        scene.pass(seconds(1)).await;
        a.resume_with(&"go on").by("dan").await.unwrap();
        scene.pass(seconds(1)).await;
        a.cancel("enough").by("eve").await.unwrap();
        scene.pass(seconds(10)).await;
        engine.run("b").unwrap().terminate("stuck").by("fay").await.unwrap();
        let mut said = journal(&engine, "a").await;
        said.extend(journal(&engine, "b").await);
        let who = said.into_iter().filter_map(|event| match event {
            Event::RunPaused { by, .. }
            | Event::RunResumed { by, .. }
            | Event::CancelRequested { by, .. }
            | Event::RunTerminated { by, .. } => by,
            _ => None,
        });
        assert_eq!(who.collect::<Vec<_>>(), ["ann", "bob", "cleo", "dan", "eve", "fay"]);
    });
}

/// An observer's stream ends with the pause.
#[test]
fn an_observer_is_told_of_the_pause_and_then_nothing() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", sleep_then_step)).await;
        engine.start("w", &()).id("a").await.unwrap();
        engine.run("a").unwrap().pause("lunch").await.unwrap();
        let mut attached = engine.run("a").unwrap().attach();
        let mut told = Vec::new();
        while let Some(event) = attached.next().await.unwrap() {
            told.push(event.kind().name());
        }
        assert_eq!(told, ["RUN_STARTED", "TIMER_STARTED", "RUN_PAUSED"]);
    });
}

async fn ask(ctx: Ctx, (): ()) -> outlast::Result<Decision> {
    let decision = ctx.approve("Ship it?").id("ship").await?;
    ctx.sleep(seconds(60)).await?;
    Ok(decision)
}

/// Semantics R6, R7 and R13: one decision; whoever comes second gets `approval_lost`.
#[test]
fn an_approval_is_decided_once() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("ask", ask)).await;
        let run = engine.start("ask", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let handle = engine.run("a").unwrap();
        let unknown = handle.approve("other", true).await.unwrap_err();
        assert_eq!(unknown.code(), "not_found");
        let first = handle.approve("ship", true).by("ann").feedback("gladly").await.unwrap();
        assert_eq!(first, Delivered::Delivered);
        let second = handle.approve("ship", false).by("bob").await.unwrap_err();
        assert_eq!(second.code(), "approval_lost", "decided, though not yet fed");
        scene.pass(seconds(1)).await;
        let third = handle.approve("ship", false).by("bob").await.unwrap_err();
        assert_eq!(third.code(), "approval_lost");
        let decision = run.result::<Decision>().await.unwrap();
        let (by, feedback) = (Some("ann".to_owned()), Some("gladly".to_owned()));
        assert_eq!(decision, Decision { approved: true, by, feedback, approval: "ship".to_owned() });
        let fourth = handle.approve("ship", false).by("bob").await.unwrap_err();
        assert_eq!(fourth.code(), "approval_lost", "the run has ended");
        assert_eq!(journal(&engine, "a").await.len(), 5);
    });
}

/// An approval whose deadline passed is over: a decision that comes later is lost.
#[test]
fn a_decision_after_the_deadline_is_lost() {
    async fn hurry(ctx: Ctx, (): ()) -> outlast::Result<bool> {
        let decision = ctx.approve("Ship it?").id("ship").timeout(seconds(10)).await?;
        ctx.sleep(seconds(60)).await?;
        Ok(decision.is_some())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("ask", hurry)).await;
        let run = engine.start("ask", &()).id("a").await.unwrap();
        scene.pass(seconds(11)).await;
        let late = engine.run("a").unwrap().approve("ship", true).await.unwrap_err();
        assert_eq!(late.code(), "approval_lost");
        assert!(!run.result::<bool>().await.unwrap());
        let expected = ["APPROVAL_REQUESTED", "APPROVAL_TIMED_OUT", "TIMER_STARTED", "TIMER_FIRED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}
