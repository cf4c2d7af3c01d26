//! What the simulator found, each as a story of its own.

use std::sync::{Arc, Mutex};

use outlast::testing::{World, WorldTime};
use outlast::{Awaited, Ctx, EngineError, Error, Outlast, Race2, Result, Retry, Status, StepContext};
use outlast_core::commit::TimerKind;
use outlast_core::id::Index;
use outlast_store::faults::{Fault, Wakes};
use outlast_store::{Load, LoadFrom};
use tokio::sync::oneshot;

use crate::support::{Scene, Tally, key, kinds, seconds};

/// Its start and its cancellation are recorded with nothing in between that is fed, so a replay has both at once.
#[test]
fn an_operation_that_is_cancelled_as_soon_as_it_is_started_can_be_replayed() {
    async fn changes_its_mind(ctx: Ctx, (): ()) -> Result<u64> {
        let nap = ctx.sleep(seconds(3_600)).start();
        let number = ctx.random().await?;
        nap.cancel();
        ctx.wait_for::<()>("go").await?;
        Ok(number)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", changes_its_mind)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(5)).await;
        engine.run("a").unwrap().signal("go", &(), "1").await.unwrap();
        run.result::<u64>().await.unwrap();
        let expected = [
            "TIMER_STARTED",
            "RANDOM_RECORDED",
            "OPERATION_CANCELLED",
            "SIGNAL_AWAITED",
            "SIGNAL_RESOLVED",
            "RUN_FINISHED",
        ];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

/// Two scopes come to their ends at the same moment: the one that loses is not recorded behind the run's decision.
#[test]
fn a_scope_that_ends_when_nobody_waits_for_it_any_more_is_not_recorded() {
    async fn races(ctx: Ctx, (): ()) -> Result<bool> {
        let slow = ctx.scope("slow", async |ctx: Ctx| {
            ctx.sleep(seconds(0)).await?;
            Ok(())
        });
        let quick = ctx.scope("quick", async |_: Ctx| Ok(()));
        Ok(matches!(ctx.race((slow, quick)).await?, Race2::Second(())))
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", races)).await;
        assert!(engine.start("w", &()).id("a").await.unwrap().result::<bool>().await.unwrap());
        let ends = kinds(&engine, "a").await.into_iter().filter(|kind| *kind == "SCOPE_FINISHED").count();
        assert_eq!(ends, 1);
    });
}

/// The alarm for a timeout is set by a clock that may be corrected before it goes off.
#[test]
fn a_step_times_out_although_the_clock_was_corrected_after_its_alarm_was_set() {
    async fn hangs(ctx: Ctx, (): ()) -> Result<()> {
        ctx.step("hangs", async |_| std::future::pending().await).timeout(seconds(60)).await
    }
    for drift in [-90, 90] {
        let world = World::new();
        let process = world.process(world.store());
        process.drift(drift);
        world.block_on(async {
            let engine = process.engine().poll(seconds(1)).workflow("w", hangs).start().await.unwrap();
            let error = engine.start("w", &()).await.unwrap().result::<()>().await.unwrap_err();
            assert!(matches!(&error, EngineError::Failed(failure) if failure.code == "timeout"), "{error}");
        });
    }
}

async fn asks(ctx: Ctx, (): ()) -> Result<bool> {
    Ok(ctx.approve("Well?").id("ok").await?.approved)
}

/// Whoever was told that their answer counts finds it in the journal, whatever is asked of the run after it.
#[test]
fn an_answer_is_recorded_before_a_cancellation_that_came_after_it() {
    for paused in [false, true] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("w", asks)).await;
            let run = engine.start("w", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            let handle = engine.run("a").unwrap();
            if paused {
                handle.pause("for a while").await.unwrap();
                scene.pass(seconds(1)).await;
            }
            // The engine has no time between the two.
            handle.approve("ok", true).by("ann").await.unwrap();
            handle.cancel("enough").await.unwrap();
            let ended = run.result::<bool>().await;
            assert!(matches!(ended, Ok(true) | Err(EngineError::Cancelled(_))), "{ended:?}");
            assert!(kinds(&engine, "a").await.contains(&"APPROVAL_RESOLVED"));
        });
    }
}

/// The step that decides was recorded before the pause, the answer was acknowledged during it.
#[test]
fn an_answer_given_during_a_pause_does_not_stop_a_run_that_no_longer_needs_it() {
    type Gate = Arc<Mutex<Option<oneshot::Receiver<()>>>>;
    async fn enough(ctx: Ctx, gate: Gate) -> Result<usize> {
        let work = async |ctx: Ctx| {
            let body = async |_| {
                let waiting = gate.lock().unwrap().take();
                if let Some(waiting) = waiting {
                    waiting.await?;
                }
                Ok(true)
            };
            ctx.step("work", body).await
        };
        let both = ctx.parallel("both").branch(async |ctx: Ctx| asks(ctx, ()).await).branch(work);
        Ok(both.min_successful(1).await?.succeeded())
    }
    Scene::play(async |scene| {
        let (open, waiting) = oneshot::channel();
        let gate: Gate = Arc::new(Mutex::new(Some(waiting)));
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| enough(ctx, gate.clone()))).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let handle = engine.run("a").unwrap();
        handle.pause("for a while").await.unwrap();
        scene.pass(seconds(1)).await;
        open.send(()).unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(handle.status().await.unwrap(), Status::Paused);
        assert!(kinds(&engine, "a").await.contains(&"STEP_FINISHED"));
        handle.approve("both/0/ok", true).await.unwrap();
        handle.resume().await.unwrap();
        assert!(run.result::<usize>().await.unwrap() >= 1);
    });
}

/// An engine that drives nothing may never have heard the store's clock, and still says when a heartbeat is due.
#[test]
fn a_fork_made_by_an_engine_that_drives_nothing_has_the_patience_of_the_original() {
    async fn calls(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.callback::<u32>().id("back").heartbeat(seconds(30)).create().await
    }
    let register = |engine: Outlast| engine.workflow("w", calls);
    Scene::play(async |scene| {
        let engine = scene.engine(register).await;
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(5)).await;
        let idle = register(scene.world.engine_on(scene.store.clone())).without_loops().start().await.unwrap();
        idle.run("a").unwrap().fork(1).id("b").await.unwrap();
        let awaiting = idle.run("b").unwrap().awaiting().await.unwrap();
        let due = awaiting.iter().find_map(|awaited| match awaited {
            Awaited::Timer { kind: TimerKind::Heartbeat, due, .. } => Some(*due),
            _ => None,
        });
        assert_eq!(due, Some(scene.world.now() + seconds(30)), "{awaiting:?}");
        idle.shutdown().await;
    });
}

/// The pause was there before the engine came to the run: it arrives between the record that the step begins, and the step.
#[test]
fn a_step_that_may_run_once_and_was_announced_runs_before_the_pause() {
    async fn pays(ctx: Ctx, paid: Tally) -> Result<u32> {
        let paid = ctx.step("pay", async |_| Ok(paid.add())).at_most_once().await?;
        ctx.sleep(seconds(1)).await?;
        Ok(paid)
    }
    Scene::play(async |scene| {
        let paid = Tally::default();
        let register = |engine: Outlast| {
            engine.workflow("w", {
                let paid = paid.clone();
                move |ctx, ()| pays(ctx, paid.clone())
            })
        };
        let client = register(scene.world.engine_on(scene.store.clone())).without_loops().start().await.unwrap();
        let run = client.start("w", &()).id("a").await.unwrap();
        client.run("a").unwrap().pause("for a while").await.unwrap();
        let engine = scene.engine(register).await;
        scene.pass(seconds(1)).await;
        assert_eq!(engine.run("a").unwrap().status().await.unwrap(), Status::Paused);
        engine.run("a").unwrap().resume().await.unwrap();
        run.result::<u32>().await.unwrap();
        assert_eq!(paid.count(), 1);
        client.shutdown().await;
    });
}

/// A retry was due, the step began again, and the process died: nobody must be left to be told that the retry is due.
#[test]
fn what_woke_a_step_that_is_in_doubt_goes_with_it() {
    async fn pays(ctx: Ctx, (): ()) -> Result<()> {
        let body = async |step: StepContext| match step.attempt() {
            1 => Err(Error::new("busy", "later")),
            _ => std::future::pending::<Result<()>>().await,
        };
        let paid = ctx.step("pay", body).at_most_once().retry(Retry::attempts(3).initial(seconds(1))).await;
        assert_eq!(paid.err().map(|error| error.code().to_owned()).as_deref(), Some("step_in_doubt"));
        ctx.wait_for::<()>("go").await
    }
    let register = |engine: Outlast| engine.workflow("w", pays);
    Scene::play(async |scene| {
        let process = scene.world.process(scene.store.clone());
        let first = register(process.engine()).start().await.unwrap();
        first.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        process.crash();
        let engine = scene.engine(register).await;
        // Longer than the lease of the dead one.
        scene.pass(seconds(4_000)).await;
        assert_eq!(engine.run("a").unwrap().status().await.unwrap(), Status::Waiting);
        let loaded = scene.store.load(vec![Load { run: key("a"), from: LoadFrom::Index(Index(0)) }]).await.remove(0);
        assert_eq!(loaded.unwrap().inbox, []);
        engine.run("a").unwrap().signal("go", &(), "1").await.unwrap();
        engine.run("a").unwrap().result::<()>().await.unwrap();
    });
}

/// The engine has seen the deadline pass, and cannot say so yet: an answer that is acknowledged meanwhile counts.
#[test]
fn an_answer_that_was_acknowledged_counts_although_its_deadline_was_seen_to_pass() {
    async fn asks(ctx: Ctx, time: WorldTime) -> Result<Option<bool>> {
        let question = ctx.approve("Go on?").id("ok").timeout(seconds(3)).start();
        let first = async |_| {
            time.sleep(seconds(2)).await;
            Ok(())
        };
        ctx.step("first", first).await?;
        let second = async |_| {
            time.sleep(seconds(60)).await;
            Ok(())
        };
        ctx.step("second", second).await?;
        Ok(question.await?.map(|decision| decision.approved))
    }
    let world = World::new();
    let (process, time) = (world.process(world.store()), world.time());
    let decided = world.block_on(async {
        let engine = process.engine().workflow("w", move |ctx, ()| asks(ctx, time.clone())).start().await.unwrap();
        let run = engine.start("w", &()).id("a").await.unwrap();
        world.sleep(seconds(1)).await;
        // That of the first step.
        let reply = process.faults().hold_next_reply("commit");
        world.sleep(seconds(3)).await;
        engine.run("a").unwrap().approve("ok", true).await.unwrap();
        world.sleep(seconds(1)).await;
        drop(reply);
        run.result::<Option<bool>>().await.unwrap()
    });
    assert_eq!(decided, Some(true));
}

/// The commit that asks is not answered for long, so that what comes of the question stays in memory meanwhile.
#[test]
fn an_answer_counts_as_long_as_nobody_was_told_that_it_is_too_late() {
    async fn asks_for_long(ctx: Ctx, (): ()) -> Result<Option<bool>> {
        // It begins when the commit is answered: until then the turn does not end.
        let work = ctx.step("work", async |_| Ok(())).start();
        let decided = ctx.approve("Well?").id("ok").timeout(seconds(5)).await?;
        work.await?;
        Ok(decided.map(|decision| decision.approved))
    }
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        process.faults().plan_next_of("commit", 0, Fault::Hang { long: seconds(45), applied: true });
        let engine = process.engine().poll(seconds(1)).workflow("w", asks_for_long).start().await.unwrap();
        let run = engine.start("w", &()).id("a").await.unwrap();
        world.sleep(seconds(20)).await;
        run.approve("ok", true).by("ann").await.unwrap();
        assert_eq!(run.result::<Option<bool>>().await.unwrap(), Some(true));
        assert!(!kinds(&engine, "a").await.contains(&"APPROVAL_TIMED_OUT"));
        engine.shutdown().await;
    });
}

/// Found by the simulator: a claim that was still on its way when its repetition was answered took a run that nobody here
/// knew of, and held it for as long as the process lived.
#[test]
fn a_run_that_a_late_claim_took_is_driven() {
    async fn quick(_: Ctx, (): ()) -> outlast::Result<u32> {
        Ok(1)
    }
    let world = World::new();
    let store = world.store();
    let [driver, client] = [(); 2].map(|()| world.process(store.clone()));
    world.block_on(async {
        let engine =
            driver.engine().lease(seconds(15)).poll(seconds(1)).workflow("quick", quick).start().await.unwrap();
        // Its poll finds nothing, twice: once on its way, and once repeated.
        driver.faults().plan_next_of("claim", 0, Fault::InFlight { before: seconds(5) });
        world.sleep(seconds(4)).await;
        // It is created by somebody who does not drive it, and the next regular claim is not to be the one that takes it.
        let other = client.engine().workflow("quick", quick).without_loops().start().await.unwrap();
        other.start("quick", &()).id("a").await.unwrap();
        driver.faults().fail_next("claim", 1, Fault::NotApplied { in_doubt: false });
        let begun = world.elapsed();
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 1);
        assert!(world.elapsed() - begun <= seconds(10), "{:?}", world.elapsed() - begun);
        assert!(driver.faults().landed() >= 1);
    });
}

/// A call that takes a wake is long on its way, and its sender has read again since. When it arrives, something new is
/// there that nobody has read: that must still wake the run.
#[test]
fn a_wake_is_not_lost_to_the_taking_of_an_earlier_one_that_arrives_late() {
    async fn busy(ctx: Ctx, time: WorldTime) -> Result<(u32, u32)> {
        let long = async |_| {
            time.sleep(seconds(60)).await;
            Ok(())
        };
        ctx.step("long", long).await?;
        Ok((ctx.wait_for("go").await?, ctx.wait_for("go").await?))
    }
    let world = World::new();
    let (store, time) = (world.store(), world.time());
    let (driver, client) = (world.process(store.clone()), world.process(store));
    let given: (u32, u32) = world.block_on(async {
        let busy = move |ctx, ()| busy(ctx, time.clone());
        let _engine = driver.engine().poll(seconds(1)).workflow("w", busy.clone()).start().await.unwrap();
        let client = client.engine().without_loops().workflow("w", busy).start().await.unwrap();
        let run = client.start("w", &()).id("a").await.unwrap();
        world.sleep(seconds(5)).await;
        let planned = driver.faults().follow_next(Some("take"), 0, Fault::InFlight { before: seconds(20) });
        run.signal("go", &1, "1").await.unwrap();
        world.sleep(seconds(15)).await;
        assert!(driver.faults().has_landed(planned), "the wake was being taken");
        // From here on the driver hears of nothing, until the call has arrived.
        driver.faults().set_wakes(Wakes::Lost);
        run.signal("go", &2, "2").await.unwrap();
        world.sleep(seconds(15)).await;
        driver.faults().set_wakes(Wakes::Heard);
        run.result().await.unwrap()
    });
    assert_eq!(given, (1, 2));
}

/// The claim is in doubt: what it took is asked for, and the claim is made again under its name. Only one of them counts.
#[test]
fn what_a_claim_took_whose_reply_was_lost_is_driven_once() {
    async fn slow(ctx: Ctx, bodies: Tally, time: WorldTime) -> Result<u32> {
        let body = async |_| {
            time.sleep(seconds(20)).await;
            Ok(bodies.add())
        };
        ctx.step("slow", body).await
    }
    let (world, bodies) = (World::new(), Tally::default());
    let (store, time) = (world.store(), world.time());
    let (driver, client) = (world.process(store.clone()), world.process(store));
    world.block_on(async {
        let counted = bodies.clone();
        let slow = move |ctx, ()| slow(ctx, counted.clone(), time.clone());
        let _engine = driver.engine().poll(seconds(1)).workflow("w", slow.clone()).start().await.unwrap();
        let client = client.engine().without_loops().workflow("w", slow).start().await.unwrap();
        world.sleep(seconds(5)).await;
        let run = client.start("w", &()).id("a").await.unwrap();
        let planned = driver.faults().follow_next(Some("claim"), 0, Fault::AppliedThenError);
        run.result::<u32>().await.unwrap();
        assert!(driver.faults().has_landed(planned));
        world.sleep(seconds(60)).await;
    });
    assert_eq!(bodies.count(), 1);
}

/// Two renewals are lost one after the other. The next one comes in time, and nothing that is driven is driven again.
#[test]
fn a_lease_outlives_two_renewals_that_are_lost() {
    async fn slow(ctx: Ctx, bodies: Tally, time: WorldTime) -> Result<u32> {
        let body = async |_| {
            let begun = bodies.add();
            time.sleep(seconds(20)).await;
            Ok(begun)
        };
        ctx.step("slow", body).await
    }
    let (world, bodies) = (World::new(), Tally::default());
    let (store, time) = (world.store(), world.time());
    let driver = world.process(store);
    world.block_on(async {
        let counted = bodies.clone();
        let slow = move |ctx, ()| slow(ctx, counted.clone(), time.clone());
        let engine = driver.engine().lease(seconds(5)).poll(seconds(2)).workflow("w", slow).start().await.unwrap();
        let run = engine.start("w", &()).id("a").await.unwrap();
        driver.faults().fail_next("renew", 2, Fault::NotApplied { in_doubt: false });
        run.result::<u32>().await.unwrap();
        assert_eq!(driver.faults().landed(), 2);
    });
    assert_eq!(bodies.count(), 1);
}
