//! Terminating: ending a run without asking it. promise 4.

use std::sync::Arc;

use futures_util::FutureExt;
use outlast::testing::crash_everywhere;
use outlast::{ClosePolicy, Ctx, Engine, Event, Outlast, Status};
use outlast_core::commit::NewRun;
use outlast_core::id::{Version, WorkflowName};
use outlast_core::record::Record;
use tokio::sync::Notify;

use crate::support::{Scene, Tally, journal, key, kinds, parked, seconds, status};

/// Waits for much at once, and would clean up if it were asked.
async fn busy(ctx: Ctx, (): ()) -> outlast::Result<()> {
    let _nap = ctx.sleep(seconds(86_400)).start();
    let _word = ctx.wait_for::<u32>("word").timeout(seconds(86_400)).start();
    let _callback = ctx.callback::<u32>().create();
    if ctx.approve("Ship it?").id("ship").await.is_err() {
        ctx.step("cleanup", async |_| Ok(())).await?;
    }
    ctx.sleep(seconds(1)).await
}

async fn ended_by_terminate(scene: &Scene, engine: &Engine, run: &str, why: &str) {
    assert_eq!(status(engine, run).await, Status::Cancelled);
    let journal = journal(engine, run).await;
    let reason = Some(why.to_owned());
    assert_eq!(journal.last(), Some(&Event::RunTerminated { reason, by: None }));
    assert_eq!(scene.awaiting(run).await, [], "a terminal run owns nothing");
}

#[test]
fn a_waiting_run_is_terminated_with_everything_it_waits_for() {
    for hot_runs in [1_000, 0] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("busy", busy).hot_runs(hot_runs)).await;
            let run = engine.start("busy", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            assert_eq!(scene.awaiting("a").await.len(), 5, "a sleep, a deadline, a signal, a callback, an approval");
            let begun = scene.world.now();
            engine.run("a").unwrap().terminate("enough").await.unwrap();
            let error = run.result::<()>().await.unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), ("aborted", "the run was cancelled: enough"));
            assert_eq!(scene.world.now(), begun, "whoever waits is told at once");
            ended_by_terminate(scene, &engine, "a", "enough").await;
            assert!(!kinds(&engine, "a").await.contains(&"STEP_FINISHED"), "it was not asked");
        });
    }
}

#[test]
fn a_paused_run_is_terminated_though_an_answer_waits_in_its_inbox() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
        let run = engine.start("busy", &()).id("a").await.unwrap();
        engine.run("a").unwrap().pause("lunch").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        engine.run("a").unwrap().approve("ship", true).await.unwrap();
        engine.run("a").unwrap().terminate("enough").await.unwrap();
        assert_eq!(run.result::<()>().await.unwrap_err().code(), "aborted");
        ended_by_terminate(scene, &engine, "a", "enough").await;
    });
}

#[test]
fn a_run_that_nobody_drove_yet_is_terminated() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine).await;
        engine.start("later", &()).version("1").id("a").await.unwrap();
        assert_eq!(status(&engine, "a").await, Status::Queued);
        engine.run("a").unwrap().terminate("enough").await.unwrap();
        ended_by_terminate(scene, &engine, "a", "enough").await;
    });
}

/// A step that lasts until the gate opens, and then counts.
fn gated(engine: Outlast, gate: &Arc<Notify>, ran: &Tally) -> Outlast {
    let (gate, ran) = (Arc::clone(gate), ran.clone());
    engine.workflow("gated", move |ctx: Ctx, (): ()| {
        let (gate, ran) = (Arc::clone(&gate), ran.clone());
        async move {
            let slow = async |_| {
                gate.notified().await;
                Ok(ran.add())
            };
            let n = ctx.step("slow", slow).await?;
            ctx.step("next", async |_| Ok(n + ran.add())).await
        }
    })
}

/// "`terminate`, `delete` and repair raise the fence": a driver in the middle of a step is a zombie, and loses.
#[test]
fn the_result_of_a_driver_that_was_cut_off_is_refused() {
    Scene::play(async |scene| {
        let (gate, ran) = (Arc::new(Notify::new()), Tally::default());
        let driver = scene.engine(|engine| gated(engine, &gate, &ran)).await;
        let operator = scene.engine(|engine| engine).await;
        driver.start("gated", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        operator.run("a").unwrap().terminate("stuck").await.unwrap();
        ended_by_terminate(scene, &operator, "a", "stuck").await;
        gate.notify_one();
        scene.pass(seconds(1)).await;
        assert_eq!(ran.count(), 1, "its step ended, and nothing came after it");
        assert_eq!(kinds(&driver, "a").await, ["RUN_TERMINATED"], "what it had to say is not recorded");
        let error = driver.run("a").unwrap().result::<u32>().await.unwrap_err();
        assert_eq!(error.code(), "aborted");
    });
}

#[test]
fn a_body_that_executes_here_is_dropped_at_once() {
    Scene::play(async |scene| {
        let (gate, ran) = (Arc::new(Notify::new()), Tally::default());
        let engine = scene.engine(|engine| gated(engine, &gate, &ran)).await;
        let run = engine.start("gated", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().terminate("stuck").await.unwrap();
        gate.notify_one();
        scene.pass(seconds(1)).await;
        assert_eq!(ran.count(), 0);
        assert_eq!(run.result::<u32>().await.unwrap_err().code(), "aborted");
        assert_eq!(engine.run("a").unwrap().operations().await, None, "nothing of it is kept");
    });
}

#[test]
fn a_parked_run_is_terminated_without_its_program() {
    async fn old(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(60)).await
    }
    async fn new(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("other", async |_| Ok(())).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", old)).await;
        engine.start("w", &()).id("a").await.unwrap();
        engine.shutdown().await;
        let engine = scene.engine(|engine| engine.workflow("w", new)).await;
        scene.pass(seconds(3_700)).await;
        assert!(parked(&engine, "a").await.contains("TIMER_STARTED"));
        engine.run("a").unwrap().terminate("cannot be mended").await.unwrap();
        ended_by_terminate(scene, &engine, "a", "cannot be mended").await;
    });
}

#[test]
fn a_run_whose_journal_cannot_be_read_is_terminated() {
    Scene::play(async |scene| {
        let (workflow, version) = (WorkflowName::new("busy").unwrap(), Version::new("1").unwrap());
        let strange = Record { kind: 60_000, version: 1, key: None, at: scene.world.now(), meta: None, payload: None };
        let new = NewRun::new(key("a"), workflow, version, "null".into());
        let created = scene.store.create(vec![NewRun { history: vec![strange], ..new }]).await.pop();
        assert!(created.unwrap().is_ok());
        let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
        scene.pass(seconds(1)).await;
        assert!(parked(&engine, "a").await.starts_with("the journal cannot be read"));
        engine.run("a").unwrap().terminate("beyond repair").await.unwrap();
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
        let error = engine.run("a").unwrap().result::<()>().await.unwrap_err();
        assert_eq!(error.code(), "aborted");
    });
}

/// Sleeps for a day, and cleans up when it is asked to stop.
async fn sleepy(ctx: Ctx, (): ()) -> outlast::Result<()> {
    let Err(error) = ctx.sleep(seconds(86_400)).await else { return Ok(()) };
    ctx.step("cleanup", async |_| Ok(())).await?;
    Err(error)
}

#[test]
fn the_children_of_a_terminated_run_are_closed_as_was_said() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let start = |id: &str, policy| ctx.child::<()>("sleepy", &()).id(id).on_close(policy).start();
        let _asked = start("asked", ClosePolicy::Cancel);
        let _ended = start("ended", ClosePolicy::Terminate);
        let _alone = start("alone", ClosePolicy::Abandon);
        ctx.sleep(seconds(86_400)).await
    }
    Scene::play(async |scene| {
        let register = |engine: Outlast| engine.workflow("parent", parent).workflow("sleepy", sleepy);
        let engine = scene.engine(register).await;
        engine.start("parent", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().terminate("enough").await.unwrap();
        scene.pass(seconds(1)).await;
        let asked = kinds(&engine, "asked").await;
        assert!(asked.contains(&"STEP_FINISHED") && asked.last() == Some(&"RUN_CANCELLED"), "{asked:?}");
        assert_eq!(kinds(&engine, "ended").await, ["TIMER_STARTED", "RUN_TERMINATED"]);
        assert_eq!(status(&engine, "alone").await, Status::Waiting);
    });
}

#[test]
fn the_parent_of_a_terminated_run_is_told() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let ended = ctx.child::<()>("sleepy", &()).id("c").await;
        Ok(ended.map_or_else(|error| error.message().to_owned(), |()| "finished".to_owned()))
    }
    Scene::play(async |scene| {
        let register = |engine: Outlast| engine.workflow("parent", parent).workflow("sleepy", sleepy);
        let engine = scene.engine(register).await;
        let run = engine.start("parent", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("c").unwrap().terminate("enough").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "the child run c was terminated: enough");
    });
}

#[test]
fn a_run_is_terminated_once() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
        engine.start("busy", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.terminate("one").await.unwrap();
        assert_eq!(handle.terminate("two").await.unwrap_err().code(), "signal_lost", "as a late cancel is");
        ended_by_terminate(scene, &engine, "a", "one").await;
        handle.delete("no longer needed").await.unwrap();
        assert_eq!(handle.terminate("three").await.unwrap_err().code(), "run_lost");
        let nobody = engine.run("nobody").unwrap();
        assert_eq!(nobody.terminate("four").await.unwrap_err().code(), "not_found");
    });
}

/// Whoever asked may stop waiting at any moment: a run that was seized must not be left lying.
#[test]
fn a_run_ends_although_nobody_waits_for_that() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
        engine.start("busy", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        assert!(handle.terminate("enough").into_future().now_or_never().is_none(), "dropped in the middle");
        scene.pass(seconds(1)).await;
        ended_by_terminate(scene, &engine, "a", "enough").await;
    });
}

#[test]
fn an_observer_sees_the_end() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("sleepy", sleepy)).await;
        engine.start("sleepy", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let mut attached = engine.run("a").unwrap().attach();
        engine.run("a").unwrap().terminate("enough").await.unwrap();
        let mut told = Vec::new();
        while let Some(event) = attached.next().await.unwrap() {
            told.push(event.kind().name());
        }
        assert_eq!(told, ["RUN_STARTED", "TIMER_STARTED", "RUN_TERMINATED"]);
    });
}

#[test]
fn terminating_survives_a_crash_at_every_call() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.child("sleepy", &()).id("c").on_close(ClosePolicy::Terminate).await
    }
    let crashes = crash_everywhere(
        |engine| engine.workflow("parent", parent).workflow("sleepy", sleepy),
        async |engine: Engine| {
            let run = engine.start("parent", &()).id("a").await.ok()?;
            match engine.run("a").ok()?.terminate("enough").await {
                // It was terminated before the crash.
                Err(error) if error.code() == "signal_lost" => {}
                terminated => terminated.ok()?,
            }
            let error = run.result::<()>().await.err()?;
            (error.code() == "aborted").then(|| error.to_string())
        },
    );
    assert!(crashes.kills > 5, "{crashes:?}");
}
