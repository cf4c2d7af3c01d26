//! Forking: a new run out of a part of another one's journal.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use outlast::testing::crash_everywhere;
use outlast::{Awaited, Check, Ctx, Engine, Event, Forked, Jitter, Outlast, Retry, Status};
use outlast_core::commit::WaitKind;
use outlast_core::operation::OperationKind;

use crate::support::{Scene, Tally, journal, kinds, seconds, status};

/// What bodies did, counted outside of the workflows: which, of which run; and the tokens that were handed out.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    ran: BTreeSet<(String, String)>,
    tokens: BTreeMap<String, String>,
}

impl Log {
    fn ran(&self, run: impl ToString, step: &str) -> u32 {
        let new = self.0.lock().unwrap().ran.insert((run.to_string(), step.to_owned()));
        assert!(new, "{step} of {} ran twice", run.to_string());
        1
    }

    fn steps(&self, run: &str) -> BTreeSet<String> {
        let ran = &self.0.lock().unwrap().ran;
        ran.iter().filter(|(of, _)| of == run).map(|(_, step)| step.clone()).collect()
    }

    fn hand_out(&self, run: impl ToString, token: &str) {
        self.0.lock().unwrap().tokens.insert(run.to_string(), token.to_owned());
    }

    fn token(&self, run: &str) -> Option<String> {
        self.0.lock().unwrap().tokens.get(run).cloned()
    }
}

fn every_ten_seconds() -> Retry {
    Retry::attempts(3).initial(seconds(10)).jitter(Jitter::None)
}

async fn double(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    ctx.sleep(seconds(30)).await?;
    Ok(2 * n)
}

/// A bit of everything.
async fn rich(ctx: Ctx, log: Log) -> outlast::Result<u32> {
    ctx.uuid().await?;
    let first = ctx.step("first", async |s| Ok(log.ran(s.run_id(), "first"))).await?;
    let child = ctx.child::<u32>("double", &first).start();
    let flaky = async |s: outlast::StepContext| match s.attempt() {
        1 => Err(outlast::Error::new("flaky", "not at first")),
        _ => Ok(log.ran(s.run_id(), "flaky")),
    };
    let flaky = ctx.step("flaky", flaky).retry(every_ten_seconds()).await?;
    let word = ctx.wait_for::<u32>("word").timeout(seconds(3_600)).await?.unwrap_or(1_000);
    let inside = ctx
        .scope("inside", async |ctx: Ctx| {
            ctx.sleep(seconds(10)).await?;
            ctx.step("step", async |s| Ok(log.ran(s.run_id(), "inside/step"))).await
        })
        .await?;
    ctx.race((ctx.sleep(seconds(5)), ctx.sleep(seconds(500)))).await?;
    let decision = ctx.approve("Ship it?").id("ship").await?;
    let hand_out = async |s: outlast::StepContext, token: outlast::Token| {
        log.hand_out(s.run_id(), token.as_str());
        Ok(())
    };
    let lab = ctx.wait_for_callback::<u32, _>("lab", hand_out).timeout(seconds(3_600)).await?;
    let once = ctx.step("once", async |s| Ok(log.ran(s.run_id(), "once"))).at_most_once().await?;
    let checks = ctx
        .wait_for_condition("ready", 0, async |_, n: u32| Ok(if n < 2 { Check::Not(n + 1) } else { Check::Met(n) }))
        .retry(Retry::attempts(5).initial(seconds(10)).jitter(Jitter::None))
        .await?;
    let last = ctx.step("last", async |s| Ok(log.ran(s.run_id(), "last"))).await?;
    Ok(first + flaky + word + inside + u32::from(decision.approved) + lab + once + checks + last + child.await?)
}

fn register(engine: Outlast, log: &Log) -> Outlast {
    let log = log.clone();
    engine.workflow("double", double).workflow("rich", move |ctx: Ctx, (): ()| rich(ctx, log.clone()))
}

/// Says and decides what the run asks for, until it ends.
async fn help(scene: &Scene, engine: &Engine, run: &str, log: &Log, token: Option<&str>) -> u32 {
    let handle = engine.run(run).unwrap();
    if let Err(error) = handle.signal("word", &7, "word").await {
        assert_eq!(error.code(), "signal_lost", "a fork near the end may be over already");
    }
    for _ in 0..30 {
        for awaited in handle.awaiting().await.unwrap() {
            let Awaited::Wait { key, kind, answered: false, .. } = awaited else { continue };
            match kind {
                WaitKind::Approval => assert!(handle.approve(key.as_str(), true).await.is_ok()),
                WaitKind::Callback => {
                    let token = log.token(run).or(token.map(str::to_owned)).expect("somebody knows the token");
                    handle.resolve_callback(key.as_str(), &token, &5).await.unwrap();
                }
                WaitKind::Signal => {}
            }
        }
        if status(engine, run).await.is_terminal() {
            break;
        }
        scene.pass(seconds(10)).await;
    }
    engine.run(run).unwrap().result::<u32>().await.unwrap()
}

/// The steps whose results a journal has.
fn finished(journal: &[Event]) -> BTreeSet<String> {
    let finished = journal.iter().filter_map(|event| match event {
        Event::StepFinished { key, .. } => Some(key.to_string()),
        _ => None,
    });
    finished.filter(|key| !key.starts_with("lab")).collect()
}

/// A fork at every index reaches the same end, and does not do again what is recorded.
#[test]
fn a_fork_at_every_index_reaches_the_end() {
    let mut at = 0;
    loop {
        let over = Scene::play(async |scene| {
            let log = Log::default();
            let engine = scene.engine(|engine| register(engine, &log)).await;
            engine.start("rich", &()).id("a").await.unwrap();
            let result = help(scene, &engine, "a", &log, None).await;
            let original = journal(&engine, "a").await;
            if at == original.len() {
                return true;
            }
            let handle = engine.run("a").unwrap();
            let Forked { run, reissued } = handle.fork(at as u64).id("b").await.unwrap();
            assert_eq!(run.id().as_str(), "b");
            let token = reissued.iter().find_map(|again| again.token.as_deref());
            assert_eq!(help(scene, &engine, "b", &log, token).await, result, "at {at}");
            let before = finished(original.get(..at).unwrap());
            let all = finished(&original);
            let expected: BTreeSet<String> = all.difference(&before).cloned().collect();
            assert_eq!(log.steps("b"), expected, "at {at}");
            assert_eq!(scene.awaiting("b").await, [], "at {at}");
            assert_eq!(journal(&engine, "a").await, original, "the original is as it was");
            false
        });
        if over {
            break;
        }
        at += 1;
    }
    assert!(at > 25, "{at}");
}

#[test]
fn a_fork_sleeps_until_the_recorded_instant() {
    async fn nap(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(3_600)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("nap", nap)).await;
        engine.start("nap", &()).id("a").await.unwrap();
        let begun = scene.world.now();
        scene.pass(seconds(600)).await;
        let forked = engine.run("a").unwrap().fork(1).await.unwrap();
        let [sleep] = forked.reissued.as_slice() else { panic!("{:?}", forked.reissued) };
        assert_eq!((sleep.kind, sleep.deadline), (OperationKind::Timer, Some(begun + seconds(3_600))));
        forked.run.result::<()>().await.unwrap();
        let took = scene.world.now().since(begun).as_millis();
        assert!((3_600_000..3_600_100).contains(&took), "not from the fork on: {took}");
    });
}

/// Everything that can be open, all at once.
async fn open(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    let back = ctx.callback::<u32>().id("back").create();
    let ship = ctx.approve("Ship it?").id("ship").timeout(seconds(3_600)).start();
    let child = ctx.child::<u32>("double", &4).start();
    let word = ctx.wait_for::<u32>("word").start();
    let sum = back.await? + child.await? + word.await?;
    Ok(sum + u32::from(ship.await?.is_some_and(|decision| decision.approved)))
}

#[test]
fn what_is_open_at_the_cut_is_issued_again_and_listed() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("open", open).workflow("double", double)).await;
        engine.start("open", &()).id("a").await.unwrap();
        let begun = scene.world.now();
        scene.pass(seconds(1)).await;
        let original = engine.run("a").unwrap();
        original.signal("word", &1, "s").await.unwrap();
        let Forked { run, reissued } = original.fork(4).id("b").await.unwrap();
        let told: Vec<_> = reissued
            .iter()
            .map(|again| {
                let child = again.child.as_ref().map(ToString::to_string);
                (again.key.as_str(), again.deadline, again.was.as_deref(), child, again.token.is_some())
            })
            .collect();
        let expected = [
            ("back", None, None, None, true),
            ("ship", Some(begun + seconds(3_600)), None, None, false),
            ("__child-0", None, Some("a.__child-0"), Some("b.__child-0".to_owned()), false),
            ("__wait-word-0", None, None, None, false),
        ];
        assert_eq!(told, expected);
        scene.pass(seconds(1)).await;
        let token = reissued.first().unwrap().token.clone().unwrap();
        let stranger = original.resolve_callback("back", &token, &1).await.unwrap_err();
        assert_eq!(stranger.code(), "not_found", "the new token is not the original's");
        let fork = engine.run("b").unwrap();
        fork.resolve_callback("back", &token, &10).await.unwrap();
        fork.approve("ship", true).await.unwrap();
        scene.pass(seconds(60)).await;
        assert_eq!(status(&engine, "b").await, Status::Waiting, "signals in the mailbox are not copied");
        fork.signal("word", &100, "s").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 10 + 8 + 100 + 1);
        assert_eq!(status(&engine, "b.__child-0").await, Status::Completed);
        assert_eq!(status(&engine, "a").await, Status::Waiting, "the original still waits for its callback");
    });
}

/// A step that began before the cut has not begun in the fork: it is not in doubt there.
#[test]
fn an_at_most_once_step_that_had_begun_runs_in_the_fork() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let counted = ran.clone();
        let once = move |ctx: Ctx, (): ()| {
            let ran = counted.clone();
            async move { ctx.step("once", async |_| Ok(ran.add())).at_most_once().await }
        };
        let engine = scene.engine(|engine| engine.workflow("once", once)).await;
        engine.start("once", &()).id("a").await.unwrap().result::<u32>().await.unwrap();
        assert_eq!(kinds(&engine, "a").await, ["STEP_STARTED", "STEP_FINISHED", "RUN_FINISHED"]);
        let forked = engine.run("a").unwrap().fork(1).id("b").await.unwrap();
        assert_eq!(forked.run.result::<u32>().await.unwrap(), 2);
        assert_eq!(forked.reissued.len(), 1);
        let forked = engine.run("a").unwrap().fork(2).id("c").await.unwrap();
        assert_eq!(forked.run.result::<u32>().await.unwrap(), 1, "its result is in the journal");
    });
}

async fn sum(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let one = ctx.step("one", async |_| Ok(1)).await?;
    ctx.sleep(seconds(10)).await?;
    Ok(one + ctx.step("two", async |_| Ok(n)).await?)
}

#[test]
fn a_fork_may_have_another_input_and_has_the_attributes() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("sum", sum)).await;
        let run = engine.start("sum", &2).id("a").attribute("city", "Bern").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 3);
        let forked = engine.run("a").unwrap().fork(2).id("b").input(&41).await.unwrap();
        assert_eq!(forked.run.result::<u32>().await.unwrap(), 42);
        let found = engine.list().attribute("city", "Bern").await.unwrap();
        assert_eq!(found.runs.len(), 2);
    });
}

#[test]
fn a_fork_of_a_paused_run_is_paused() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("sum", sum)).await;
        engine.start("sum", &2).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().pause("lunch").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "TIMER_STARTED", "RUN_PAUSED"]);
        engine.run("a").unwrap().fork(3).id("b").await.unwrap();
        scene.pass(seconds(60)).await;
        assert_eq!(status(&engine, "b").await, Status::Paused);
        engine.run("b").unwrap().resume().await.unwrap();
        assert_eq!(engine.run("b").unwrap().result::<u32>().await.unwrap(), 3);
        assert_eq!(status(&engine, "a").await, Status::Paused);
    });
}

#[test]
fn forking_twice_to_one_id_gives_one_run_and_another_fork_is_refused() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("sum", sum)).await;
        engine.start("sum", &2).id("a").await.unwrap().result::<u32>().await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.fork(2).id("b").await.unwrap();
        let again = handle.fork(2).id("b").await.unwrap();
        assert_eq!(again.run.result::<u32>().await.unwrap(), 3);
        let again = handle.fork(2).id("b").await.unwrap();
        assert_eq!(again.run.result::<u32>().await.unwrap(), 3, "also when it has ended");
        engine.start("sum", &2).id("c").await.unwrap();
        let taken = handle.fork(2).id("c").await.err().unwrap();
        assert_eq!(taken.code(), "run_exists", "an ordinary run of that id is no fork");
        let other = handle.fork(2).id("b").input(&3).await.err().unwrap();
        assert_eq!(other.code(), "run_exists");
    });
}

#[test]
fn a_cut_must_lie_before_the_end() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("sum", sum)).await;
        engine.start("sum", &2).id("a").await.unwrap().result::<u32>().await.unwrap();
        let handle = engine.run("a").unwrap();
        assert_eq!(journal(&engine, "a").await.len(), 5);
        let over = handle.fork(5).await.err().unwrap();
        assert_eq!(over.code(), "validation_error");
        let text = "default/a cannot be forked at 5: nothing comes after its end; fork it at 4 or before";
        assert_eq!(over.to_string(), text);
        let beyond = handle.fork(6).await.err().unwrap();
        assert_eq!(beyond.to_string(), "default/a cannot be forked at 6: its journal has 5 events");
        assert_eq!(engine.run("nobody").unwrap().fork(0).await.err().unwrap().code(), "not_found");
        assert_eq!(handle.fork(0).id("").await.err().unwrap().code(), "validation_error");
    });
}

#[test]
fn forking_survives_a_crash_at_every_call() {
    let crashes = crash_everywhere(
        |engine| engine.workflow("sum", sum),
        async |engine: Engine| {
            let first = engine.start("sum", &2).id("a").await.ok()?.result::<u32>().await.ok()?;
            // In the middle of its sleep.
            let forked = engine.run("a").ok()?.fork(2).id("b").input(&41).await.ok()?;
            Some((first, forked.run.result::<u32>().await.ok()?))
        },
    );
    assert!(crashes.kills > 20, "{crashes:?}");
}
