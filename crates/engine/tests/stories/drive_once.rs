//! One call drives a run to its next pause or end. Semantics R11.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join;
use outlast::{Awaited, Ctx, Driven, Engine, Outlast, Status};
use tokio::sync::Notify;

use crate::support::{Scene, Tally, crash_at, kinds, seconds, status};

async fn hear(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    let one = ctx.step("one", async |_| Ok(1)).await?;
    let word: u32 = ctx.wait_for("word").await?;
    ctx.sleep(seconds(60)).await?;
    Ok(one + word)
}

async fn drive(engine: &Engine) -> Driven {
    engine.drive_once("a").await.unwrap()
}

#[test]
fn nothing_happens_until_somebody_calls() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("hear", hear).without_loops()).await;
        engine.start("hear", &()).id("a").await.unwrap();
        scene.pass(seconds(3_600)).await;
        assert_eq!(status(&engine, "a").await, Status::Queued);
        assert_eq!(kinds(&engine, "a").await, [""; 0]);
    });
}

#[test]
fn each_call_drives_to_the_next_pause_and_the_last_to_the_end() {
    for hot_runs in [1_000, 0] {
        Scene::play(async |scene| {
            let register = |engine: Outlast| engine.workflow("hear", hear).without_loops().hot_runs(hot_runs);
            let engine = scene.engine(register).await;
            engine.start("hear", &()).id("a").await.unwrap();
            let waiting = drive(&engine).await;
            assert_eq!(waiting.status, Status::Waiting);
            assert!(matches!(waiting.awaiting.as_slice(), [Awaited::Wait { .. }]), "{waiting:?}");
            assert_eq!(waiting.due(), None);
            assert_eq!(drive(&engine).await, waiting, "nothing came");
            assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "SIGNAL_AWAITED"]);

            engine.run("a").unwrap().signal("word", &41, "s").await.unwrap();
            assert_eq!(status(&engine, "a").await, Status::Waiting, "delivered, and not yet driven");
            let sleeping = drive(&engine).await;
            assert_eq!(sleeping.due(), Some(scene.world.now() + seconds(60)));
            assert_eq!(drive(&engine).await, sleeping, "not due");

            // Longer than the lease: nobody kept it.
            scene.pass(seconds(10_000)).await;
            assert_eq!(status(&engine, "a").await, Status::Waiting, "nobody fires a timer by himself");
            assert_eq!(drive(&engine).await, Driven { status: Status::Completed, awaiting: Vec::new() });
            assert_eq!(drive(&engine).await.status, Status::Completed, "and again");
            assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 42);
        });
    }
}

#[test]
fn only_the_run_that_was_named_is_driven() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.child("one", &()).id("c").await
    }
    async fn one(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.step("one", async |_| Ok(1)).await
    }
    Scene::play(async |scene| {
        let register = |engine: Outlast| engine.workflow("parent", parent).workflow("one", one).without_loops();
        let engine = scene.engine(register).await;
        engine.start("parent", &()).id("a").await.unwrap();
        let waiting = drive(&engine).await;
        assert!(
            matches!(waiting.awaiting.as_slice(), [Awaited::Child { status: Status::Queued, .. }]),
            "its child waits to be driven: {waiting:?}"
        );
        assert_eq!(engine.drive_once("c").await.unwrap().status, Status::Completed);
        assert_eq!(status(&engine, "a").await, Status::Waiting, "its parent was told, and not driven");
        assert_eq!(drive(&engine).await.status, Status::Completed);
    });
}

/// A step that lasts until the gate opens and counts, then a wait for a word; beside them a sleep of ten seconds.
fn gated(engine: Outlast, gate: &Arc<Notify>, ran: &Tally) -> Outlast {
    let (gate, ran) = (Arc::clone(gate), ran.clone());
    engine.workflow("gated", move |ctx: Ctx, (): ()| {
        let (gate, ran) = (Arc::clone(&gate), ran.clone());
        async move {
            let nap = ctx.sleep(seconds(10)).start();
            let slow = async |_| {
                gate.notified().await;
                Ok(ran.add())
            };
            let n = ctx.step("slow", slow).await?;
            nap.await?;
            let word: u32 = ctx.wait_for("word").await?;
            Ok(n + word)
        }
    })
}

/// Opens the gate after so long, and says a word before that.
async fn open(scene: &Scene, engine: &Engine, gate: &Notify, after: Duration) {
    scene.pass(seconds(1)).await;
    engine.run("a").unwrap().signal("word", &41, "s").await.unwrap();
    scene.pass(after).await;
    gate.notify_one();
}

/// The lease is kept while a body executes, its timers fire, and what comes meanwhile is read: all in the one call.
#[test]
fn a_long_step_keeps_the_run_and_what_comes_meanwhile_is_read() {
    Scene::play(async |scene| {
        let (gate, ran) = (Arc::new(Notify::new()), Tally::default());
        let engine = scene.engine(|engine| gated(engine, &gate, &ran).without_loops()).await;
        // It would take the run up if the lease lapsed.
        let rival = scene.engine(|engine| gated(engine, &gate, &ran)).await;
        let other = scene.engine(|engine| engine).await;
        let claimed = async {
            // The rival has loops: let the one without them be first.
            other.start("gated", &()).version("1").id("a").await.unwrap();
            engine.drive_once("a").await
        };
        let (driven, ()) = join(claimed, open(scene, &other, &gate, seconds(20_000))).await;
        match driven {
            Ok(driven) => assert_eq!(driven.status, Status::Completed),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(ran.count(), 1, "nobody else drove it");
        let expected =
            ["TIMER_STARTED", "TIMER_FIRED", "STEP_FINISHED", "SIGNAL_AWAITED", "SIGNAL_RESOLVED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
        assert_eq!(rival.run("a").unwrap().result::<u32>().await.unwrap(), 42);
    });
}

#[test]
fn a_run_that_another_engine_drives_is_left_to_it() {
    Scene::play(async |scene| {
        let (gate, ran) = (Arc::new(Notify::new()), Tally::default());
        let owner = scene.engine(|engine| gated(engine, &gate, &ran)).await;
        let engine = scene.engine(|engine| gated(engine, &gate, &ran).without_loops()).await;
        owner.start("gated", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let error = engine.drive_once("a").await.unwrap_err();
        assert_eq!(error.code(), "run_held");
        let text = error.to_string();
        assert!(text.starts_with("default/a is driven by another engine, under lease "), "{text}");
        open(scene, &engine, &gate, seconds(1)).await;
        assert_eq!(owner.run("a").unwrap().result::<u32>().await.unwrap(), 42);
    });
}

/// Two calls for one run: both end when it pauses.
#[test]
fn two_calls_for_one_run_wait_for_the_same_pause() {
    Scene::play(async |scene| {
        let (gate, ran) = (Arc::new(Notify::new()), Tally::default());
        let engine = scene.engine(|engine| gated(engine, &gate, &ran).without_loops()).await;
        engine.start("gated", &()).id("a").await.unwrap();
        let second = async {
            scene.pass(seconds(1)).await;
            drive(&engine).await
        };
        let calls = join(drive(&engine), second);
        let ((first, second), ()) = join(calls, open(scene, &engine, &gate, seconds(60))).await;
        assert_eq!((first.status, second.status), (Status::Completed, Status::Completed));
        assert_eq!(ran.count(), 1);
    });
}

/// Whoever asked may stop waiting: the run is still looked after, and its lease kept.
#[test]
fn a_run_is_driven_to_its_pause_although_nobody_waits_for_that() {
    Scene::play(async |scene| {
        let (gate, ran) = (Arc::new(Notify::new()), Tally::default());
        let engine = scene.engine(|engine| gated(engine, &gate, &ran).without_loops()).await;
        engine.start("gated", &()).id("a").await.unwrap();
        assert!(engine.drive_once("a").now_or_never().is_none(), "dropped in the middle");
        // It would take the run up if the lease lapsed.
        let rival = scene.engine(|engine| gated(engine, &gate, &ran)).await;
        open(scene, &rival, &gate, seconds(20_000)).await;
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Completed);
        assert_eq!(ran.count(), 1);
    });
}

#[test]
fn an_engine_with_loops_drives_once_too() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("hear", hear)).await;
        engine.start("hear", &()).id("a").await.unwrap();
        assert_eq!(drive(&engine).await.status, Status::Waiting);
    });
}

#[test]
fn a_paused_or_parked_run_stays_so() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("hear", hear).without_loops()).await;
        engine.start("hear", &()).id("a").await.unwrap();
        engine.run("a").unwrap().pause("lunch").await.unwrap();
        assert_eq!(drive(&engine).await.status, Status::Paused, "the request to pause is read");
        assert_eq!(drive(&engine).await.status, Status::Paused);
        engine.run("a").unwrap().resume().await.unwrap();
        assert_eq!(drive(&engine).await.status, Status::Waiting);
        engine.run("a").unwrap().terminate("enough").await.unwrap();
        assert_eq!(drive(&engine).await.status, Status::Cancelled, "terminating needs no loop either");
    });
}

#[test]
fn what_cannot_be_driven_says_why() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("hear", hear).without_loops()).await;
        assert_eq!(engine.drive_once("nobody").await.unwrap_err().code(), "not_found");
        assert_eq!(engine.drive_once("").await.unwrap_err().code(), "validation_error");
        engine.start("other", &()).version("1").id("a").await.unwrap();
        assert_eq!(engine.drive_once("a").await.unwrap_err().code(), "unknown_workflow");
        engine.shutdown().await;
        let stopped = engine.drive_once("a").await.unwrap_err();
        assert_eq!(stopped.to_string(), "the engine is shut down; start another one");
    });
}

/// After a crash in the middle of a call nothing is stranded: another engine goes on.
#[test]
fn a_crash_in_the_middle_of_a_call_strands_nothing() {
    let mut crashes = 0;
    for at in 1..200 {
        let register = |number, engine: Outlast| {
            let engine = engine.workflow("hear", hear);
            if number == 1 { engine.without_loops() } else { engine }
        };
        let client = async |engine: Engine| {
            let run = engine.start("hear", &()).id("a").await.ok()?;
            engine.drive_once("a").await.ok();
            engine.run("a").ok()?.signal("word", &41, "s").await.ok()?;
            let driven = engine.drive_once("a").await;
            match driven {
                // The first engine has no loops: it stops here, where its run sleeps.
                Ok(driven) if driven.due().is_some() => return Some(None),
                Ok(_) | Err(_) => {}
            }
            Some(run.result::<u32>().await.ok())
        };
        let Some(ended) = crash_at(at, register, client) else { break };
        assert!(ended.is_none_or(|sum| sum == 42), "{ended:?}");
        crashes += 1;
    }
    assert!(crashes > 8, "{crashes}");
}
