//! One component decides when a turn ends. Semantics L1 to L20.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::{Arc, Mutex};

use futures_util::future::join;
use outlast::{Ctx, Error, Jitter, Lifecycle, Retry, Status};
use outlast_core::event::Event;
use outlast_core::lifecycle::SuspendReason;
use outlast_store::Awaited;
use tokio::sync::oneshot;

use crate::support::{Scene, Tally, journal, kinds, seconds, status};

/// A body that returns when the story says so.
type Gate = Arc<Mutex<Option<oneshot::Receiver<()>>>>;

fn gate() -> (oneshot::Sender<()>, Gate) {
    let (open, gate) = oneshot::channel();
    (open, Arc::new(Mutex::new(Some(gate))))
}

async fn through(gate: &Gate) -> outlast::Result<()> {
    let waiting = gate.lock().unwrap().take();
    if let Some(waiting) = waiting {
        waiting.await?;
    }
    Ok(())
}

fn once(delay: u64) -> Retry {
    Retry::attempts(2).initial(seconds(delay)).jitter(Jitter::None)
}

/// L4: the reason, by priority.
#[test]
fn a_retry_is_the_reason_before_a_sleep_and_a_sleep_before_a_signal() {
    async fn all_three(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let flaky = async |s: outlast::StepContext| match s.attempt() {
            1 => Err(Error::new("flaky", "not yet")),
            _ => Ok(()),
        };
        let (step, sleep) = (ctx.step("flaky", flaky).retry(once(10)).start(), ctx.sleep(seconds(30)).start());
        let signal = ctx.wait_for::<()>("go").start();
        step.await?;
        sleep.await?;
        signal.await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", all_three)).await;
        let mut watched = engine.run("a").unwrap().watch_operations();
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(60)).await;
        engine.run("a").unwrap().signal("go", &(), "s").await.unwrap();
        run.result::<()>().await.unwrap();
        let told = watched.so_far().into_iter();
        let reasons: Vec<_> = told
            .filter_map(|lifecycle| match lifecycle {
                Lifecycle::AllIdle { reason } => Some(reason),
                Lifecycle::StateChanged { .. } => None,
            })
            .collect();
        let expected = [SuspendReason::RetryScheduled, SuspendReason::WaitScheduled, SuspendReason::CallbackPending];
        assert_eq!(reasons, expected);
    });
}

/// L5 and L9: every operation starts at `.start()`, and is awaited later.
#[test]
fn everything_starts_where_it_is_started_and_not_where_it_is_awaited() {
    async fn child(_: Ctx, (): ()) -> outlast::Result<u32> {
        Ok(1)
    }
    async fn eager(ctx: Ctx, bodies: Tally) -> outlast::Result<u32> {
        let sleep = ctx.sleep(seconds(1)).start();
        let signal = ctx.wait_for::<u32>("number").start();
        let step = ctx.step("step", async move |_| Ok(bodies.add())).start();
        let child = ctx.child::<u32>("child", &()).start();
        let callback = ctx.callback::<u32>().id("call").create();
        let approval = ctx.approve("Well?").id("ok").timeout(seconds(1)).start();
        let condition = ctx.wait_for_condition("ready", 5, async |_, n| Ok(outlast::Check::Met(n))).start();
        ctx.wait_for::<()>("go").await?;
        drop(callback);
        sleep.await?;
        approval.await?;
        Ok(signal.await? + step.await? + child.await? + condition.await?)
    }
    Scene::play(async |scene| {
        let bodies = Tally::default();
        let counted = bodies.clone();
        let register = |engine: outlast::Outlast| {
            engine.workflow("eager", move |ctx, ()| eager(ctx, counted.clone())).workflow("child", child)
        };
        let engine = scene.engine(register).await;
        let run = engine.start("eager", &()).id("a").signal("number", &10, "s1").await.unwrap();
        scene.pass(seconds(5)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        let settled = kinds(&engine, "a").await;
        let expected = [
            "TIMER_STARTED",
            "SIGNAL_AWAITED",
            "CHILD_STARTED",
            "CALLBACK_CREATED",
            "APPROVAL_REQUESTED",
            "STEP_FINISHED",
            "CONDITION_CHECKED",
            "SIGNAL_RESOLVED",
            "TIMER_FIRED",
            "APPROVAL_TIMED_OUT",
            "CHILD_FINISHED",
        ];
        for kind in expected {
            assert!(settled.contains(&kind), "{kind} before anything is awaited: {settled:?}");
        }
        assert_eq!(bodies.count(), 1);
        engine.run("a").unwrap().signal("go", &(), "s2").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 10 + 1 + 1 + 5);
    });
}

/// L7: a start is written once, however often the program is replayed.
#[test]
fn a_replay_writes_no_start_again() {
    async fn many(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let signal = ctx.wait_for::<()>("go").start();
        let approval = ctx.approve("Well?").id("ok").start();
        for _ in 0..5 {
            ctx.sleep(seconds(1)).await?;
        }
        signal.await?;
        approval.await.map(drop)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", many).hot_runs(0)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        engine.run("a").unwrap().signal("go", &(), "s").await.unwrap();
        engine.run("a").unwrap().approve("ok", true).await.unwrap();
        run.result::<()>().await.unwrap();
        let kinds = kinds(&engine, "a").await;
        let count = |name: &str| kinds.iter().filter(|kind| **kind == name).count();
        assert_eq!((count("TIMER_STARTED"), count("SIGNAL_AWAITED"), count("APPROVAL_REQUESTED")), (5, 1, 1));
    });
}

/// L2 and L10: while a sibling executes the turn does not end, and what falls due is settled within it.
#[test]
fn a_sleep_that_ends_while_a_body_runs_is_settled_in_the_same_turn() {
    async fn siblings(ctx: Ctx, gate: Gate) -> outlast::Result<()> {
        let nap = async {
            ctx.sleep(seconds(5)).await?;
            ctx.step("after the nap", async |_| Ok(())).await
        };
        let (slow, nap) = join(ctx.step("slow", async |_| through(&gate).await), nap).await;
        slow.and(nap)
    }
    Scene::play(async |scene| {
        let (open, gate) = gate();
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| siblings(ctx, gate.clone()))).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let turn = run.view().await.unwrap().owner;
        scene.pass(seconds(60)).await;
        let view = run.view().await.unwrap();
        assert_eq!((view.status, view.owner), (Status::Running, turn), "the turn goes on");
        assert_eq!(kinds(&engine, "a").await, ["TIMER_STARTED", "TIMER_FIRED", "STEP_FINISHED"]);
        open.send(()).unwrap();
        run.result::<()>().await.unwrap();
    });
}

/// L11: whatever way a run ends, it leaves no timer and no wait.
#[test]
fn nothing_is_left_when_a_run_ends_over_open_operations() {
    async fn ends(ctx: Ctx, how: String) -> outlast::Result<()> {
        let _sleep = ctx.sleep(seconds(1_000)).start();
        let _signal = ctx.wait_for::<()>("never").timeout(seconds(1_000)).start();
        let _approval = ctx.approve("Well?").timeout(seconds(1_000)).start();
        let _callback = ctx.callback::<()>().heartbeat(seconds(100)).create();
        let failing = async |_: outlast::StepContext| Err::<(), _>(Error::new("flaky", "not yet"));
        let _retry = ctx.step("retry", failing).retry(once(1_000)).start();
        ctx.sleep(seconds(1)).await?;
        match how.as_str() {
            "returns" => Ok(()),
            "fails" => Err(Error::new("failed", "on purpose")),
            _ => ctx.wait_for::<()>("go").await,
        }
    }
    for how in ["returns", "fails", "is cancelled"] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("w", ends)).await;
            let run = engine.start("w", how).id("a").await.unwrap();
            scene.pass(seconds(10)).await;
            if how == "is cancelled" {
                engine.run("a").unwrap().cancel("enough").await.unwrap();
            }
            assert_eq!(run.result::<()>().await.is_ok(), how == "returns");
            assert_eq!(scene.awaiting("a").await, [], "the run {how}");
        });
    }
}

/// L12: "a failure nobody awaits does not crash the process; it is recorded and visible".
#[test]
fn a_failure_that_nobody_awaits_is_recorded_and_harms_nobody() {
    async fn careless(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let _bad = ctx.step("bad", async |_| Err::<(), _>(Error::new("bad", "on purpose").permanent())).start();
        let _worse =
            ctx.step("worse", async |_| -> outlast::Result<()> { panic!("on purpose") }).retry(Retry::never()).start();
        ctx.sleep(seconds(1)).await?;
        Ok(7)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", careless)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        let failed = journal(&engine, "a").await.into_iter().filter_map(|event| match event {
            Event::StepFailed { key, error, .. } => Some((key.to_string(), error.code)),
            _ => None,
        });
        let failed: Vec<_> = failed.collect();
        assert_eq!(failed, [("bad".to_owned(), "bad".to_owned()), ("worse".to_owned(), "panic".to_owned())]);
    });
}

/// L13 and L14: one coordinator sees the whole tree, and no turn ends while a descendant executes.
#[test]
fn what_runs_deep_inside_keeps_the_turn_and_is_listed_with_its_parent() {
    async fn nested(ctx: Ctx, gate: Gate) -> outlast::Result<()> {
        ctx.scope("outer", async |outer: Ctx| {
            outer.scope("inner", async |inner: Ctx| inner.step("deep", async |_| through(&gate).await).await).await
        })
        .await
    }
    Scene::play(async |scene| {
        let (open, gate) = gate();
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| nested(ctx, gate.clone()))).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(60)).await;
        assert_eq!(status(&engine, "a").await, Status::Running);
        let operations = run.operations().await.unwrap();
        let listed: Vec<_> = operations
            .iter()
            .map(|info| (info.key.as_str(), info.parent.as_deref(), info.state.to_string(), info.deadline))
            .collect();
        let expected = [
            ("outer", None, "idle, awaited".to_owned(), None),
            ("outer/inner", Some("outer"), "idle, awaited".to_owned(), None),
            ("outer/inner/deep", Some("outer/inner"), "executing".to_owned(), None),
        ];
        assert_eq!(listed, expected);
        assert!(operations.iter().all(|info| info.location.as_ref().unwrap().file.ends_with("coordinator.rs")));
        open.send(()).unwrap();
        run.result::<()>().await.unwrap();
    });
}

/// L15: "plain workflow code that is runnable counts as executing".
#[test]
fn a_wait_that_nobody_awaits_does_not_end_the_turn_under_running_code() {
    // It wakes itself, and waits for nothing meanwhile.
    async fn polite(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let _later = ctx.wait_for::<()>("later").start();
        for _ in 0..3 {
            let mut yielded = false;
            std::future::poll_fn(|context| {
                if std::mem::replace(&mut yielded, true) {
                    return std::task::Poll::Ready(());
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await;
        }
        ctx.step("go on", async |_| Ok(10)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", polite)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 10);
        assert_eq!(kinds(&engine, "a").await, ["SIGNAL_AWAITED", "STEP_FINISHED", "RUN_FINISHED"]);
    });
}

/// L16: "a race returns as soon as it is won; it never waits for its losers".
#[test]
fn a_race_that_is_won_does_not_wait_for_its_losers() {
    async fn races(ctx: Ctx, gate: Gate) -> outlast::Result<&'static str> {
        let slow = ctx.step("slow", async |_| through(&gate).await);
        ctx.race((slow, ctx.sleep(seconds(5)), ctx.wait_for::<()>("never"))).await?;
        Ok("won")
    }
    Scene::play(async |scene| {
        let (open, gate) = gate();
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| races(ctx, gate.clone()))).await;
        let begun = scene.world.now();
        let run = engine.start("w", &()).id("a").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "won");
        assert!(scene.world.now().since(begun) < seconds(6));
        assert!(open.is_closed(), "the loser's body is dropped");
        assert_eq!(scene.awaiting("a").await, []);
    });
}

/// L17: operations whose ancestor scope has completed neither hold the turn nor append.
#[test]
fn what_is_left_inside_a_scope_that_ended_neither_holds_the_turn_nor_appends() {
    async fn leaves(ctx: Ctx, gate: Gate) -> outlast::Result<()> {
        ctx.scope("scope", async |scope: Ctx| {
            let gate = gate.clone();
            let _body = scope.step("left behind", async move |_| through(&gate).await).start();
            let _sleep = scope.sleep(seconds(3)).start();
            scope.step("inside", async |_| Ok(())).await
        })
        .await?;
        ctx.wait_for::<()>("go").await
    }
    Scene::play(async |scene| {
        let (open, gate) = gate();
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| leaves(ctx, gate.clone()))).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let awaiting = scene.awaiting("a").await;
        assert!(matches!(&awaiting[..], [Awaited::Wait { .. }]), "the sleep went with its scope: {awaiting:?}");
        scene.pass(seconds(10)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting, "nothing holds the turn");
        assert!(open.is_closed(), "the body went with its scope");
        engine.run("a").unwrap().signal("go", &(), "s").await.unwrap();
        run.result::<()>().await.unwrap();
        let expected = [
            "SCOPE_STARTED",
            "TIMER_STARTED",
            "STEP_FINISHED",
            "SCOPE_FINISHED",
            "SIGNAL_AWAITED",
            "SIGNAL_RESOLVED",
            "RUN_FINISHED",
        ];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

/// L18: a status that changed while it was being refreshed must be noticed. Here: signals that come at any moment of
/// a turn, also while the last one's inbox is being read.
#[test]
fn signals_that_come_at_any_moment_of_a_turn_are_noticed() {
    async fn counts(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        let mut sum = 0;
        for _ in 0..n {
            sum += ctx.wait_for::<u32>("number").await?;
            ctx.step("work", async |_| Ok(())).await?;
        }
        Ok(sum)
    }
    for hot_runs in [0, 10] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("w", counts).hot_runs(hot_runs)).await;
            let run = engine.start("w", &40).id("a").await.unwrap();
            for n in 0..40 {
                engine.run("a").unwrap().signal("number", &1, &format!("s{n}")).await.unwrap();
                for _ in 0..n % 7 {
                    // Lets the engine come a little further, to another place each time.
                    engine.run("a").unwrap().status().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
            let begun = scene.world.now();
            assert_eq!(run.result::<u32>().await.unwrap(), 40);
            assert!(scene.world.now().since(begun) < seconds(1), "nobody waited for a poll");
        });
    }
}

/// L19: "map of callbacks suspends once all branches are idle".
#[test]
fn a_map_of_callbacks_sleeps_once_all_are_handed_out() {
    async fn asks(ctx: Ctx, tokens: Arc<Mutex<Vec<(String, String)>>>) -> outlast::Result<u32> {
        let answers = ctx.map("ask", vec![1, 2, 3], async |ctx: Ctx, _, _| {
            let callback = ctx.callback::<u32>().create();
            let (id, token, out) = (callback.id().to_owned(), callback.token(), tokens.clone());
            ctx.step("hand out", async move |_| {
                out.lock().unwrap().push((id.clone(), token.clone()));
                Ok(())
            })
            .await?;
            callback.await
        });
        Ok(answers.await?.results()?.into_iter().sum())
    }
    Scene::play(async |scene| {
        let tokens = Arc::<Mutex<Vec<(String, String)>>>::default();
        let out = tokens.clone();
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| asks(ctx, out.clone()))).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let view = run.view().await.unwrap();
        assert_eq!((view.status, view.owner), (Status::Waiting, None), "nobody holds it");
        let tokens = tokens.lock().unwrap().clone();
        assert_eq!(tokens.len(), 3);
        for (n, (id, token)) in (1..).zip(&tokens) {
            engine.run("a").unwrap().resolve_callback(id, token, &n).await.unwrap();
        }
        assert_eq!(run.result::<u32>().await.unwrap(), 6);
    });
}

/// A race cancels what it is given, and leaves alone what it is lent.
#[test]
fn a_loser_that_was_only_lent_goes_on() {
    async fn patient(ctx: Ctx, (): ()) -> outlast::Result<(u32, u32)> {
        let mut number = ctx.wait_for::<u32>("number").start();
        for round in 1.. {
            if let outlast::Race2::First(number) = ctx.race((&mut number, ctx.sleep(seconds(10)))).await? {
                return Ok((round, number));
            }
        }
        unreachable!("there is always another round")
    }
    for hot_runs in [0, 10] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("w", patient).hot_runs(hot_runs)).await;
            let run = engine.start("w", &()).id("a").await.unwrap();
            scene.pass(seconds(25)).await;
            engine.run("a").unwrap().signal("number", &7, "s").await.unwrap();
            assert_eq!(run.result::<(u32, u32)>().await.unwrap(), (3, 7));
            let kinds = kinds(&engine, "a").await;
            assert_eq!(kinds.iter().filter(|kind| **kind == "SIGNAL_AWAITED").count(), 1, "{kinds:?}");
            assert_eq!(scene.awaiting("a").await, []);
        });
    }
}
