//! Tasks: what a workflow has others do. Seed 002, Engine and Workers.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast::testing::World;
use outlast::{Ctx, Engine, Error, Event, Handler, Outlast, Retry, Status, TaskContext};
use outlast_core::limits::Limits;
use outlast_store::{TaskFilter, TaskState};
use serde_json::{Value, json};

use crate::support::{Scene, Tally, journal, kinds, seconds, status, tell};

/// Adds up two numbers.
async fn add(_: TaskContext, (a, b): (u32, u32)) -> outlast::Result<u32> {
    Ok(a + b)
}

async fn sum(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    ctx.task("add", &(n, 1)).await
}

fn adding(engine: Outlast) -> Outlast {
    engine.workflow("sum", sum).task("add", add)
}

async fn run<T: serde::de::DeserializeOwned>(engine: &Engine, workflow: &str) -> Result<T, outlast::EngineError> {
    engine.start(workflow, &()).id("a").await.unwrap().result().await
}

/// Tasks that are in the store.
async fn tasks(scene: &Scene) -> Vec<(String, TaskState, u32)> {
    let namespace = outlast_core::id::Namespace::default_namespace();
    let views = scene.store.tasks(TaskFilter::all(namespace)).await.unwrap().tasks;
    views.into_iter().map(|view| (view.id.to_string(), view.state, view.attempt)).collect()
}

/// L11: "no timer, wait or task outlives its operation, however that ends".
#[test]
fn no_task_outlives_its_run_however_that_ends() {
    async fn leaves(ctx: Ctx, how: String) -> outlast::Result<()> {
        let _left = ctx.task::<()>("nobody", &()).start();
        let _held = ctx.task::<()>("slow", &()).start();
        ctx.sleep(seconds(10)).await?;
        ctx.task::<()>("nobody", &()).id("kept").detach().await?;
        let _late = ctx.task::<()>("nobody", &()).start();
        match how.as_str() {
            "returns" => Ok(()),
            "fails" => Err(Error::new("failed", "on purpose")),
            "goes on" => ctx.continue_as_new(&"returns"),
            _ => ctx.wait_for::<()>("go").await,
        }
    }
    for how in ["returns", "fails", "goes on", "is cancelled", "is terminated"] {
        Scene::play(async |scene| {
            let stopped = Tally::default();
            let engine = scene.engine(|engine| {
                let stopped = stopped.clone();
                let slow = move |task: TaskContext, (): ()| {
                    let stopped = stopped.clone();
                    async move {
                        let waiting = task.cancelled();
                        let _guard = Guard(stopped);
                        waiting.await;
                        std::future::pending::<outlast::Result<()>>().await
                    }
                };
                engine.workflow("w", leaves).task("slow", slow)
            });
            let engine = engine.await;
            let run = engine.start("w", how).id("a").await.unwrap();
            scene.pass(seconds(15)).await;
            match how {
                "is cancelled" => drop(engine.run("a").unwrap().cancel("enough").await.unwrap()),
                "is terminated" => engine.run("a").unwrap().terminate("enough").await.unwrap(),
                _ => {}
            }
            assert_eq!(run.result::<()>().await.is_ok(), ["returns", "goes on"].contains(&how));
            scene.pass(seconds(60)).await;
            let left: Vec<String> = tasks(scene).await.into_iter().map(|(id, ..)| id).collect();
            let generations = if how == "goes on" { 2 } else { 1 };
            let kept: Vec<String> = (0..generations).map(|number| format!("a/{number}/kept")).collect();
            assert_eq!(left, kept, "the run {how}");
            assert_eq!(stopped.count(), generations, "its handler is stopped when the run {how}");
        });
    }
}

/// Its start and its end are one commit: what was not queued yet need not be taken back, and must not be queued.
#[test]
fn a_task_that_is_cancelled_as_soon_as_it_is_started_is_never_queued() {
    async fn changes_its_mind(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.task::<()>("nobody", &()).start().cancel();
        let _quick = ctx.race((ctx.task::<()>("nobody", &()), ctx.scope("at once", async |_: Ctx| Ok(())))).await?;
        ctx.sleep(seconds(60)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", changes_its_mind)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        assert_eq!(tasks(scene).await, []);
        run.result::<()>().await.unwrap();
        assert_eq!(tasks(scene).await, []);
    });
}

/// Counts when it is dropped.
struct Guard(Tally);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// Seed 002.7: "`Task.run` → value, or a thrown error".
#[test]
fn a_task_is_done_by_a_worker_and_gives_its_result() {
    Scene::play(async |scene| {
        let engine = scene.engine(adding).await;
        let sum: u32 = engine.start("sum", &41).id("a").await.unwrap().result().await.unwrap();
        assert_eq!(sum, 42);
        assert_eq!(kinds(&engine, "a").await, ["TASK_SCHEDULED", "TASK_FINISHED", "RUN_FINISHED"]);
        let Event::TaskScheduled { key, task, name, queue, .. } = &journal(&engine, "a").await[0] else { panic!() };
        assert_eq!((key.as_str(), task.as_str()), ("__task-add-0", "a/0/__task-add-0"));
        assert_eq!((name.as_str(), queue.as_str()), ("add", "default"));
        assert_eq!(tasks(scene).await, []);
    });
}

/// A workflow whose task fails some times first.
async fn patient(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    ctx.task("flaky", &()).retry(Retry::attempts(4).jitter(outlast::Jitter::None)).await
}

/// Seed 002, Workers: "retry with durable back-off".
#[test]
fn a_task_that_fails_is_tried_again_later_and_later() {
    Scene::play(async |scene| {
        let tally = Tally::default();
        let times = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (count, clock, noted) = (tally.clone(), scene.world.time(), Arc::clone(&times));
        let flaky = move |task: TaskContext, (): ()| {
            noted.lock().unwrap().push((clock.elapsed().as_millis(), task.attempt()));
            let number = count.add();
            async move { if number < 4 { Err(Error::new("busy", "not yet")) } else { Ok(number) } }
        };
        let engine = scene.engine(|engine| engine.workflow("patient", patient).task("flaky", flaky)).await;
        assert_eq!(run::<u32>(&engine, "patient").await.unwrap(), 4);
        let times = times.lock().unwrap();
        let delays: Vec<u128> = times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert_eq!(delays, [1_000, 2_000, 4_000], "exactly, although nobody polls so often");
        let attempts: Vec<u32> = times.iter().map(|(_, attempt)| *attempt).collect();
        assert_eq!(attempts, [1, 2, 3, 4]);
    });
}

#[test]
fn a_task_that_fails_for_good_is_an_error_that_can_be_caught_and_stays_for_inspection() {
    async fn careful(ctx: Ctx, (): ()) -> outlast::Result<String> {
        match ctx.task::<u32>("charge", &()).await {
            Ok(_) => Ok("charged".to_owned()),
            Err(error) => Ok(format!("{}: {} {:?}", error.code(), error.message(), error.data::<u32>())),
        }
    }
    Scene::play(async |scene| {
        let tally = Tally::default();
        let count = tally.clone();
        let charge = move |_: TaskContext, (): ()| {
            count.add();
            async { Err::<u32, _>(Error::new("declined", "the bank said no").permanent().with_data(&7)) }
        };
        let engine = scene.engine(|engine| engine.workflow("careful", careful).task("charge", charge)).await;
        assert_eq!(run::<String>(&engine, "careful").await.unwrap(), "declined: the bank said no Some(7)");
        assert_eq!(tally.count(), 1);
        assert_eq!(tasks(scene).await, [("a/0/__task-charge-0".to_owned(), TaskState::Dead, 1)]);
    });
}

#[test]
fn a_handler_that_panics_is_a_failed_attempt() {
    async fn patient(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.task("clumsy", &()).retry(Retry::attempts(2)).await
    }
    Scene::play(async |scene| {
        let tally = Tally::default();
        let count = tally.clone();
        let clumsy = move |_: TaskContext, (): ()| {
            let first = count.add() == 1;
            async move {
                assert!(!first, "it slipped");
                Ok(2)
            }
        };
        let engine = scene.engine(|engine| engine.workflow("patient", patient).task("clumsy", clumsy)).await;
        assert_eq!(run::<u32>(&engine, "patient").await.unwrap(), 2);
    });
}

/// Seed 002, Workers: "per-attempt timeout".
#[test]
fn an_attempt_that_takes_too_long_is_stopped_and_counts_as_failed() {
    async fn hasty(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let late = ctx.task::<()>("hang", &()).timeout(seconds(30)).retry(Retry::attempts(2)).await.unwrap_err();
        let silent = ctx.task::<()>("hang", &()).heartbeat(seconds(5)).retry(Retry::never()).await.unwrap_err();
        Ok(format!("{}: {} / {}", late.code(), late.message(), silent.message()))
    }
    Scene::play(async |scene| {
        let (tally, dropped) = (Tally::default(), Tally::default());
        let (count, gone) = (tally.clone(), dropped.clone());
        let hang = move |_: TaskContext, (): ()| {
            count.add();
            let bell = Bell(gone.clone());
            async move {
                std::future::pending::<()>().await;
                drop(bell);
                Ok(())
            }
        };
        let engine = scene.engine(|engine| engine.workflow("hasty", hasty).task("hang", hang)).await;
        let told = run::<String>(&engine, "hasty").await.unwrap();
        assert_eq!(told, "timeout: attempt 2 took longer than 30s / attempt 1 gave no sign of life for 5s");
        assert_eq!((tally.count(), dropped.count()), (3, 3));
    });
}

/// Counts its own end.
struct Bell(Tally);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// Seed 002, Workers: "cancellation reaches a running handler".
#[test]
fn a_task_that_loses_a_race_is_stopped_and_gone() {
    async fn racer(ctx: Ctx, (): ()) -> outlast::Result<bool> {
        let slow = ctx.task::<()>("hang", &());
        let first = ctx.race((slow, ctx.sleep(seconds(10)))).await;
        Ok(matches!(first, Ok(outlast::Race2::Second(()))))
    }
    Scene::play(async |scene| {
        let dropped = Tally::default();
        let gone = dropped.clone();
        let hang = move |_: TaskContext, (): ()| {
            let bell = Bell(gone.clone());
            async move {
                std::future::pending::<()>().await;
                drop(bell);
                Ok(())
            }
        };
        let engine = scene.engine(|engine| engine.workflow("racer", racer).task("hang", hang)).await;
        assert!(run::<bool>(&engine, "racer").await.unwrap());
        scene.pass(seconds(1)).await;
        assert_eq!(dropped.count(), 1, "its handler was told at once");
        assert_eq!(tasks(scene).await, []);
    });
}

/// "Fire-and-forget tasks": nobody waits, and the run may end first.
#[test]
fn a_detached_task_is_done_although_nobody_waits() {
    async fn forgetful(ctx: Ctx, (): ()) -> outlast::Result<String> {
        Ok(ctx.task::<()>("audit", &()).delay(seconds(60)).detach().await?.to_string())
    }
    Scene::play(async |scene| {
        let tally = Tally::default();
        let count = tally.clone();
        let audit = move |task: TaskContext, (): ()| {
            assert_eq!((task.run_id(), task.idempotency_key()), (None, "default/a/0/__task-audit-0"));
            count.add();
            async { Ok(()) }
        };
        let engine = scene.engine(|engine| engine.workflow("forgetful", forgetful).task("audit", audit)).await;
        assert_eq!(run::<String>(&engine, "forgetful").await.unwrap(), "a/0/__task-audit-0");
        assert_eq!(kinds(&engine, "a").await, ["TASK_SCHEDULED", "RUN_FINISHED"]);
        scene.pass(seconds(59)).await;
        assert_eq!(tally.count(), 0);
        scene.pass(seconds(2)).await;
        assert_eq!((tally.count(), tasks(scene).await.len()), (1, 0));
    });
}

/// Seed 002.8: "3 tasks in `all`", "1,000 in `all` works", and few resumes.
#[test]
fn a_thousand_tasks_are_awaited_together() {
    async fn many(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        let all: Vec<_> = (0..n).map(|i| ctx.task::<u32>("add", &(i, 1))).collect();
        Ok(ctx.all(all).await?.into_iter().sum())
    }
    for n in [3, 1_000] {
        tell(
            |engine| engine.workflow("many", many).task("add", add),
            async |_: &World, engine| {
                let sum: u32 = engine.start("many", &n).id("a").await.unwrap().result().await.unwrap();
                assert_eq!(sum, n * (n + 1) / 2);
            },
        );
    }
}

/// Seed 002, Workers: "concurrency limits".
#[test]
fn a_worker_does_so_many_at_once_and_of_one_task_fewer() {
    async fn many(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let one: Vec<_> = (0..20).map(|_| ctx.task::<()>("one", &()).start()).collect();
        let other: Vec<_> = (0..20).map(|_| ctx.task::<()>("other", &()).start()).collect();
        ctx.all(one.into_iter().chain(other).collect::<Vec<_>>()).await?;
        Ok(())
    }
    Scene::play(async |scene| {
        let busy: [Arc<AtomicUsize>; 4] = Default::default();
        let counted = |now: usize, most: usize| {
            let (world, now, most) = (scene.world.time(), Arc::clone(&busy[now]), Arc::clone(&busy[most]));
            move |_: TaskContext, (): ()| {
                let (nap, now, most) = (world.sleep(seconds(1)), Arc::clone(&now), Arc::clone(&most));
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    nap.await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                }
            }
        };
        let (one, other) = (counted(0, 1), counted(2, 3));
        let engine = scene
            .engine(|engine| {
                let limited = Handler::new("one", one).concurrency(2);
                engine.workflow("many", many).handler(limited).task("other", other).tasks_max(5)
            })
            .await;
        run::<()>(&engine, "many").await.unwrap();
        let most = [busy[1].load(Ordering::SeqCst), busy[3].load(Ordering::SeqCst)];
        assert_eq!(most[0], 2);
        assert!((3..=5).contains(&most[1]), "{most:?}");
    });
}

/// Seed 002, Workers: "graceful drain on shutdown".
#[test]
fn a_worker_that_stops_gives_its_task_back_and_the_attempt_does_not_count() {
    async fn once(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.task("work", &()).retry(Retry::never()).await
    }
    Scene::play(async |scene| {
        let hang = |_: TaskContext, (): ()| std::future::pending::<outlast::Result<u32>>();
        let first = scene.engine(|engine| engine.workflow("once", once).task("work", hang).grace(seconds(5))).await;
        first.start("once", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(tasks(scene).await[0].1, TaskState::Claimed);
        first.shutdown().await;
        assert_eq!(tasks(scene).await, [("a/0/__task-work-0".to_owned(), TaskState::Ready, 0)]);
        let work = |task: TaskContext, (): ()| async move { Ok(task.attempt()) };
        let second = scene.engine(|engine| engine.workflow("once", once).task("work", work)).await;
        assert_eq!(second.run("a").unwrap().result::<u32>().await.unwrap(), 1);
    });
}

#[test]
fn what_is_given_to_a_task_in_another_form_is_an_error_that_says_so() {
    async fn wrong(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let error = ctx.task::<u32>("add", &"x").await.unwrap_err();
        Ok(json!([error.code(), error.message().contains("has the wrong form")]))
    }
    tell(
        |engine| engine.workflow("wrong", wrong).task("add", add),
        async |_: &World, engine| {
            assert_eq!(run::<Value>(&engine, "wrong").await.unwrap(), json!(["validation_error", true]));
            assert_eq!(status(&engine, "a").await, Status::Completed);
        },
    );
}

#[test]
fn two_handlers_of_one_name_are_refused_at_the_start() {
    let scene = Scene::new();
    scene.world.block_on(async {
        let twice = scene.world.engine().task("add", add).task("add", add).start().await;
        assert_eq!(twice.err().unwrap().code(), "duplicate_handler");
    });
}

/// Seed 002.4: "No parent → no resume (fire and forget)".
#[test]
fn a_task_is_queued_without_a_run_once_under_its_id() {
    Scene::play(async |scene| {
        let tally = Tally::default();
        let count = tally.clone();
        let mail = move |task: TaskContext, to: String| {
            assert_eq!((task.idempotency_key(), to.as_str()), ("default/welcome-ann", "ann"));
            count.add();
            async { Ok(()) }
        };
        let engine = scene.engine(|engine| engine.task("mail", mail)).await;
        for _ in 0..2 {
            let id = engine.enqueue("mail", "ann").id("welcome-ann").delay(seconds(60)).await.unwrap();
            assert_eq!(id.as_str(), "welcome-ann");
        }
        let other = engine.enqueue("mail", "bob").id("welcome-ann").await.unwrap_err();
        assert!(other.to_string().contains("exists with other work"), "{other}");
        let slash = engine.enqueue("mail", "bob").id("a/0/b").await.unwrap_err();
        assert_eq!(slash.code(), "validation_error");
        assert_eq!(engine.tasks().await.unwrap().tasks.len(), 1);
        scene.pass(seconds(61)).await;
        assert_eq!((tally.count(), engine.tasks().await.unwrap().tasks.len()), (1, 0));
    });
}

#[test]
fn a_task_shows_how_far_it_is() {
    Scene::play(async |scene| {
        let copy = |task: TaskContext, (): ()| async move {
            task.progress(&json!({ "done": 7 }));
            std::future::pending::<outlast::Result<()>>().await
        };
        let engine = scene.engine(|engine| engine.task("copy", copy)).await;
        engine.enqueue("copy", &()).id("c").await.unwrap();
        scene.pass(seconds(1)).await;
        let view = engine.tasks().await.unwrap().tasks.remove(0);
        assert_eq!(view.note.as_deref(), Some(&br#"{"done":7}"#[..]));
        assert_eq!((view.state, view.attempt), (TaskState::Claimed, 1));
    });
}

/// What a handler writes for people stays with its result; of a long text the end.
#[test]
fn what_a_handler_logs_is_kept_with_its_result() {
    async fn chatty(task: TaskContext, long: bool) -> outlast::Result<()> {
        task.log("the first text");
        task.log(if long { format!("{}ü the end", "x".repeat(1 << 20)) } else { "a word\0".to_owned() });
        Ok(())
    }
    async fn asks(ctx: Ctx, long: bool) -> outlast::Result<()> {
        ctx.task("chatty", &long).await
    }
    let register = |engine: Outlast| engine.workflow("asks", asks).task("chatty", chatty);
    for (long, limit) in [(false, None), (true, None), (true, Some(64))] {
        let logs = tell(
            |engine| {
                let limits =
                    Limits { payload_bytes: limit.unwrap_or(Limits::default().payload_bytes), ..Limits::default() };
                register(engine).limits(limits)
            },
            async |_, engine| {
                engine.start("asks", &long).id("a").await.unwrap().result::<()>().await.unwrap();
                journal(&engine, "a").await.into_iter().find_map(|event| match event {
                    Event::TaskFinished { log, .. } => log,
                    _ => None,
                })
            },
        );
        let log = logs.unwrap();
        match (long, limit) {
            (false, _) => assert_eq!(log, "a word\0"),
            (true, None) => assert!(log.len() == 8 * 1024 && log.ends_with("xü the end"), "{}", log.len()),
            (true, Some(_)) => assert_eq!(log, " the end"),
        }
    }
}
