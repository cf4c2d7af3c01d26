//! Why a run stands where it stands, word for word. Semantics L4, L13 and R5.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use outlast::testing::Programs;
use outlast::{Ctx, Engine, Error, Jitter, Outlast, Retry, Standing, Status, TaskContext, WaitsFor};
use outlast_core::commit::NewRun;
use outlast_core::id::{Version, WorkflowName};
use outlast_core::lifecycle::{Rule, State, SuspendReason};
use outlast_core::operation::OperationKind;
use outlast_core::record::Record;
use tokio::sync::Notify;

use crate::support::{Scene, key, seconds};

/// What is said of the run `a`, line by line. Worlds begin on 2023-11-14 at 22:13:20.
async fn told(engine: &Engine) -> Vec<String> {
    let explanation = engine.run("a").unwrap().explain().await.unwrap();
    explanation.to_string().lines().map(str::to_owned).collect()
}

async fn sleepy(ctx: Ctx, (): ()) -> outlast::Result<()> {
    ctx.sleep(seconds(60)).await
}

#[test]
fn a_queued_run_waits_for_a_node_that_knows_its_workflow() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine).await;
        engine.start("later", &()).version("7").id("a").await.unwrap();
        let expected = "a (later version 7) is queued since 2023-11-14 22:13:20 UTC: a node that has this workflow and version \
             takes it up.";
        assert_eq!(told(&engine).await, [expected]);
    });
}

#[test]
fn a_sleeping_run_says_when_its_timer_wakes_it() {
    for hot_runs in [1_000, 0] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("sleepy", sleepy).hot_runs(hot_runs)).await;
            engine.start("sleepy", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            let expected = [
                "a (sleepy version 1) is waiting: nothing executes, and a sleep ends later (WAIT_SCHEDULED).",
                "- The sleep __sleep-0 sleeps since 2023-11-14 22:13:20 UTC until 2023-11-14 22:14:20 UTC; its timer \
                 wakes the run then.",
            ];
            assert_eq!(told(&engine).await, expected);
            let explanation = engine.run("a").unwrap().explain().await.unwrap();
            let sleep = explanation.operations.first().unwrap();
            let state = (hot_runs > 0).then_some(State::IdleAwaited);
            assert_eq!((sleep.kind, sleep.state), (OperationKind::Timer, state), "only a kept program knows");
            assert_eq!(sleep.location.is_some(), hot_runs > 0);
        });
    }
}

#[test]
fn a_task_that_is_tried_again_says_what_failed_and_when_that_is() {
    async fn charge(_: TaskContext, (): ()) -> outlast::Result<()> {
        Err(Error::new("broke", "no funds"))
    }
    async fn pays(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let retry = Retry::attempts(5).initial(seconds(60)).jitter(Jitter::None);
        ctx.task::<()>("charge", &()).retry(retry).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("pays", pays).task("charge", charge)).await;
        engine.start("pays", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let explanation = engine.run("a").unwrap().explain().await.unwrap();
        let task = explanation.operations.first().unwrap();
        let WaitsFor::Task { failed: 1, error: Some(error), .. } = &task.on else { panic!("{task:?}") };
        assert_eq!(error.code, "broke");
        let expected = "which is tried again later, after attempt 1 failed (broke: no funds) since 2023-11-14 22:13:20 \
                        UTC; its next attempt is at 2023-11-14 22:14:20 UTC.";
        assert!(task.to_string().ends_with(expected), "{task}");
    });
}

/// What a worker said last is how far it is, and no error; nor is it one when the worker fell silent.
#[test]
fn a_task_whose_worker_fell_silent_says_how_often_it_was_tried_in_vain() {
    async fn work(task: TaskContext, (): ()) -> outlast::Result<()> {
        task.progress(&serde_json::json!({ "code": "half", "message": "way" }));
        std::future::pending().await
    }
    async fn asks(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let retry = Retry::attempts(5).initial(seconds(60)).jitter(Jitter::None);
        ctx.task::<()>("work", &()).retry(retry).heartbeat(seconds(5)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("asks", asks).task("work", work)).await;
        engine.start("asks", &()).id("a").await.unwrap();
        scene.pass(seconds(2)).await;
        let on = |explanation: outlast::Explanation| explanation.operations.first().unwrap().on.clone();
        let first = on(engine.run("a").unwrap().explain().await.unwrap());
        assert!(matches!(first, WaitsFor::Task { failed: 0, error: None, .. }), "{first:?}");
        scene.pass(seconds(20)).await;
        let again = on(engine.run("a").unwrap().explain().await.unwrap());
        assert!(matches!(again, WaitsFor::Task { failed: 1, .. }), "{again:?}");
    });
}

/// "RETRY_SCHEDULED > WAIT_SCHEDULED > CALLBACK_PENDING", and each operation says what it waits for.
#[test]
fn the_most_telling_reason_comes_first_and_every_operation_is_named() {
    async fn much(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let _word = ctx.wait_for::<u32>("word").timeout(seconds(100)).start();
        let _other = ctx.wait_for::<u32>("other").start();
        let _back = ctx.callback::<u32>().heartbeat(seconds(30)).create();
        let _child = ctx.child::<()>("sleepy", &()).id("c").start();
        let _ship = ctx.approve("Ship it?").id("ship").assignee("ops").timeout(seconds(50)).start();
        let _nap = ctx.sleep(seconds(60)).start();
        let fail = async |_| Err::<(), _>(outlast::Error::new("no_bank", "the bank is closed"));
        ctx.step("charge", fail).retry(Retry::attempts(2).initial(seconds(20)).jitter(Jitter::None)).await?;
        ctx.sleep(seconds(600)).await
    }
    Scene::play(async |scene| {
        let register = |engine: Outlast| engine.workflow("much", much).workflow("sleepy", sleepy).hot_runs(0);
        let engine = scene.engine(register).await;
        engine.start("much", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let first =
            "a (much version 1) is waiting: nothing executes, and a step is tried again later (RETRY_SCHEDULED).";
        let expected = [
            first,
            "- The wait __wait-word-0 waits for the signal \"word\" since 2023-11-14 22:13:20 UTC, until 2023-11-14 \
             22:15:00 UTC at the latest.",
            "- The wait __wait-other-0 waits for the signal \"other\" since 2023-11-14 22:13:20 UTC.",
            "- The callback __callback-0 waits for whoever holds its token since 2023-11-14 22:13:20 UTC. A sign of life \
             is owed by 2023-11-14 22:13:50 UTC.",
            "- The child __child-0 waits for the end of the run c, which is waiting since 2023-11-14 22:13:20 UTC.",
            "- The approval ship (\"Ship it?\") waits to be decided under the id \"ship\" by ops since 2023-11-14 22:13:20 \
             UTC, until 2023-11-14 22:14:10 UTC at the latest.",
            "- The sleep __sleep-0 sleeps since 2023-11-14 22:13:20 UTC until 2023-11-14 22:14:20 UTC; its timer wakes the \
             run then.",
            "- The step charge failed at attempt 1 (no_bank: the bank is closed) and is tried again at 2023-11-14 22:13:40 \
             UTC.",
        ];
        assert_eq!(told(&engine).await, expected);
    });
}

#[test]
fn what_nobody_awaits_yet_is_told_while_the_program_is_kept() {
    async fn later(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let nap = ctx.sleep(seconds(60)).start();
        ctx.wait_for::<u32>("word").await?;
        nap.await
    }
    Scene::play_with(Programs::Kept, async |scene| {
        let engine = scene.engine(|engine| engine.workflow("later", later)).await;
        engine.start("later", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let told = told(&engine).await;
        assert!(told.get(1).unwrap().ends_with("wakes the run then. The program does not await it yet."), "{told:?}");
        assert!(told.get(2).unwrap().ends_with("since 2023-11-14 22:13:20 UTC."), "{told:?}");
    });
}

/// "Why it did or did not suspend": a body executes, here or elsewhere.
#[test]
fn a_running_run_says_what_keeps_its_turn_from_ending() {
    Scene::play(async |scene| {
        let gate = Arc::new(Notify::new());
        let opened = Arc::clone(&gate);
        let register = |engine: Outlast| {
            engine.workflow("slow", move |ctx: Ctx, (): ()| {
                let gate = Arc::clone(&opened);
                async move {
                    let _nap = ctx.sleep(seconds(60)).start();
                    let wait = async |_| {
                        gate.notified().await;
                        Ok(())
                    };
                    ctx.step("slow", wait).timeout(seconds(30)).await
                }
            })
        };
        let here = scene.engine(register).await;
        let elsewhere = scene.engine(|engine| engine).await;
        let run = here.start("slow", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let expected = [
            "a (slow version 1) is running here, and its turn goes on: a step executes.",
            "- The sleep __sleep-0 sleeps since 2023-11-14 22:13:20 UTC until 2023-11-14 22:14:20 UTC; its timer wakes the \
             run then. The program does not await it yet.",
            "- The step slow executes; its time is up at 2023-11-14 22:13:50 UTC.",
        ];
        assert_eq!(told(&here).await, expected);
        let explanation = here.run("a").unwrap().explain().await.unwrap();
        assert_eq!(explanation.standing, Standing::DrivenHere { because: Some(Rule::NothingExecuting) });
        let told_elsewhere = told(&elsewhere).await;
        let first = told_elsewhere.first().unwrap();
        assert!(first.starts_with("a (slow version 1) is running elsewhere, under lease "), "{first}");
        assert!(first.ends_with(": only there is it known what executes."), "{first}");
        assert_eq!(told_elsewhere.len(), 2, "the sleep is in the journal, the step is not");
        gate.notify_one();
        run.result::<()>().await.unwrap();
    });
}

#[test]
fn a_paused_run_says_since_when_and_why_and_what_has_come() {
    Scene::play(async |scene| {
        async fn wait(ctx: Ctx, (): ()) -> outlast::Result<u32> {
            ctx.wait_for("word").await
        }
        let engine = scene.engine(|engine| engine.workflow("wait", wait)).await;
        engine.start("wait", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.pause("lunch").await.unwrap();
        scene.pass(seconds(10)).await;
        handle.signal("word", &7, "s").await.unwrap();
        let expected = [
            "a (wait version 1) is paused since 2023-11-14 22:13:20 UTC: lunch. Resume it to let it go on, or cancel it.",
            "- The wait __wait-word-0 waits for the signal \"word\" since 2023-11-14 22:13:20 UTC. The answer is there, and \
             is about to be read.",
            "- In its inbox since 2023-11-14 22:13:30 UTC: a signal \"word\".",
        ];
        assert_eq!(told(&engine).await, expected);
    });
}

#[test]
fn a_parked_run_says_why_and_what_to_do() {
    async fn old(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(60)).await
    }
    async fn new(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(61)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", old)).await;
        engine.start("w", &()).id("a").await.unwrap();
        engine.shutdown().await;
        let engine = scene.engine(|engine| engine.workflow("w", new)).await;
        scene.pass(seconds(3_700)).await;
        let explanation = engine.run("a").unwrap().explain().await.unwrap();
        let Standing::Parked { since, note } = &explanation.standing else { panic!("{explanation:?}") };
        assert!(note.contains("60000 ms") && note.contains("61000 ms"), "{note}");
        assert!(since.is_some_and(|since| since < scene.world.now()), "{since:?}");
        let told = told(&engine).await;
        assert_eq!(
            told.first().unwrap(),
            &format!(
                "a (w version 1) is parked since 2023-11-14 22:14:20 UTC: {note}. Nothing is lost: once that is mended unpark it, or else terminate it."
            )
        );
        assert!(told.get(1).unwrap().starts_with("- The sleep __sleep-0 sleeps since"), "{told:?}");
    });
}

#[test]
fn a_journal_that_cannot_be_read_is_said_to_be_so() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("sleepy", sleepy)).await;
        let (workflow, version) = (WorkflowName::new("sleepy").unwrap(), Version::new("1").unwrap());
        let strange = Record { kind: 60_000, version: 1, key: None, at: scene.world.now(), meta: None, payload: None };
        let new = NewRun::new(key("a"), workflow, version, "null".into());
        let created = scene.store.create(vec![NewRun { history: vec![strange], ..new }]).await.pop();
        assert!(created.unwrap().is_ok());
        scene.pass(seconds(700)).await;
        let explanation = engine.run("a").unwrap().explain().await.unwrap();
        assert_eq!(explanation.status, Status::Parked);
        assert!(explanation.unreadable.is_some());
        let told = told(&engine).await;
        assert!(told.get(1).unwrap().starts_with("Its journal cannot be read: event 0: "), "{told:?}");
    });
}

#[test]
fn an_ended_run_says_how() {
    async fn end(_: Ctx, how: u32) -> outlast::Result<u32> {
        if how == 0 { Ok(1) } else { Err(outlast::Error::new("no_bank", "the bank is closed")) }
    }
    let begun = "2023-11-14 22:13:20 UTC";
    for (how, words) in
        [(0, format!("completed at {begun}.")), (1, format!("failed at {begun}: no_bank: the bank is closed."))]
    {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("end", end)).await;
            let _ = engine.start("end", &how).id("a").await.unwrap().result::<u32>().await;
            assert_eq!(told(&engine).await, [format!("a (end version 1) {words}")]);
        });
    }
    for terminate in [false, true] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("sleepy", sleepy)).await;
            let run = engine.start("sleepy", &()).id("a").await.unwrap();
            let handle = engine.run("a").unwrap();
            match terminate {
                true => handle.terminate("enough").await.unwrap(),
                false => assert!(handle.cancel("enough").await.is_ok()),
            }
            assert!(run.result::<()>().await.is_err());
            let verb = if terminate { "was terminated" } else { "was cancelled" };
            let told = told(&engine).await;
            assert!(told.first().unwrap().starts_with(&format!("a (sleepy version 1) {verb} at {begun}")), "{told:?}");
            assert!(told.first().unwrap().contains("enough"), "{told:?}");
            assert_eq!(told.len(), 1, "nothing is open any more");
        });
    }
}

#[test]
fn a_woken_run_that_nobody_took_up_says_so() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("sleepy", sleepy)).await;
        engine.start("sleepy", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.shutdown().await;
        let other = scene.engine(|engine| engine).await;
        other.run("a").unwrap().signal("hello", &1, "s").await.unwrap();
        let told = told(&other).await;
        let first = told.first().unwrap();
        assert!(
            first.ends_with("(WAIT_SCHEDULED). Something came for it: it goes on as soon as a node takes it up."),
            "{first}"
        );
        assert!(told.last().unwrap().ends_with("a signal \"hello\"."), "{told:?}");
    });
}

/// Semantics L13: state, kind, parent and deadline of every operation.
#[test]
fn operations_tell_their_state_kind_parent_and_deadline() {
    Scene::play(async |scene| {
        async fn scoped(ctx: Ctx, (): ()) -> outlast::Result<()> {
            ctx.scope("inside", async |ctx: Ctx| {
                let _nap = ctx.sleep(seconds(60)).start();
                let wait = async |_| std::future::pending().await;
                ctx.step("slow", wait).timeout(seconds(30)).await
            })
            .await
        }
        let engine = scene.engine(|engine| engine.workflow("scoped", scoped)).await;
        engine.start("scoped", &()).id("a").await.unwrap();
        let begun = scene.world.now();
        scene.pass(seconds(1)).await;
        let operations = engine.run("a").unwrap().operations().await.unwrap();
        let told: Vec<_> = operations
            .iter()
            .map(|info| (info.key.as_str(), info.kind, info.state, info.parent.as_deref(), info.deadline))
            .collect();
        let inside = Some("inside");
        let expected = [
            ("inside", OperationKind::Scope, State::IdleAwaited, None, None),
            ("inside/__sleep-0", OperationKind::Timer, State::IdleNotAwaited, inside, Some(begun + seconds(60))),
            ("inside/slow", OperationKind::Step, State::Executing, inside, Some(begun + seconds(30))),
        ];
        assert_eq!(told, expected);
        let explanation = engine.run("a").unwrap().explain().await.unwrap();
        let scope = explanation.operations.first().unwrap();
        assert_eq!((scope.key.as_str(), &scope.on), ("inside", &WaitsFor::Inside));
        let reason = SuspendReason::CallbackPending;
        assert_ne!(explanation.standing, Standing::Suspended { reason: Some(reason) });
    });
}
