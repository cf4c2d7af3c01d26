//! Things that happen at the same moment, or to somebody else.

use std::sync::{Arc, Mutex};

use outlast::{Ctx, Outlast, Race2, Status};
use tokio::sync::{Semaphore, oneshot};

use crate::support::{Scene, kinds, seconds, status};

/// A decision is acknowledged while a step that races with it ends: the decision counts, because somebody was told so.
#[test]
fn an_answer_that_was_acknowledged_wins_against_a_step_that_is_not_recorded() {
    type Gate = Arc<Mutex<Option<oneshot::Receiver<()>>>>;
    async fn races(ctx: Ctx, (gate, goes_on): (Gate, bool)) -> outlast::Result<String> {
        let body = async |_| {
            let waiting = gate.lock().unwrap().take();
            if let Some(waiting) = waiting {
                waiting.await?;
            }
            Ok(())
        };
        let winner = match ctx.race((ctx.approve("Well?").id("ok"), ctx.step("work", body))).await? {
            Race2::First(_) => "the decision",
            Race2::Second(()) => "the step",
        };
        if goes_on {
            ctx.sleep(seconds(1)).await?;
        }
        Ok(winner.to_owned())
    }
    for goes_on in [false, true] {
        Scene::play(async |scene| {
            let (open, waiting) = oneshot::channel();
            let gate: Gate = Arc::new(Mutex::new(Some(waiting)));
            let engine =
                scene.engine(|engine| engine.workflow("w", move |ctx, ()| races(ctx, (gate.clone(), goes_on)))).await;
            let run = engine.start("w", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            // The engine has no time between the two.
            open.send(()).unwrap();
            engine.run("a").unwrap().approve("ok", true).by("ann").await.unwrap();
            assert_eq!(run.result::<String>().await.unwrap(), "the decision");
            assert!(kinds(&engine, "a").await.contains(&"APPROVAL_RESOLVED"));
        });
    }
}

/// A signal for an operation that turns out to be something else, or to wait for another signal, harms nobody.
#[test]
fn a_signal_that_was_aimed_at_the_wrong_thing_does_not_keep_a_run_from_going_on() {
    async fn asks(ctx: Ctx, (): ()) -> outlast::Result<(bool, u32)> {
        ctx.sleep(seconds(10)).await?;
        let approved = ctx.approve("Well?").id("ok").await?.approved;
        Ok((approved, ctx.wait_for::<u32>("number").id("later").await?))
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", asks)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.signal_to("ok", "word", "yes", "1").await.unwrap();
        handle.signal_to("later", "word", "seven", "2").await.unwrap();
        scene.pass(seconds(20)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        handle.approve("ok", true).await.unwrap();
        handle.signal("number", &7, "3").await.unwrap();
        assert_eq!(run.result::<(bool, u32)>().await.unwrap(), (true, 7));
    });
}

/// The first generation that waits takes the signal that was there before it, and ends in the same breath. The next one waits under
/// the same name, for a signal of its own.
#[test]
fn a_signal_that_came_early_is_taken_by_one_generation_only() {
    async fn words(ctx: Ctx, taken: Vec<u32>) -> outlast::Result<Vec<u32>> {
        if ctx.generation().0 == 0 {
            ctx.sleep(seconds(10)).await?;
            return ctx.continue_as_new(&taken);
        }
        let next = ctx.wait_for::<u32>("word").id("next").timeout(seconds(100)).await?;
        let taken: Vec<u32> = taken.into_iter().chain(next).collect();
        if taken.len() < 2 { ctx.continue_as_new(&taken) } else { Ok(taken) }
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", words)).await;
        let run = engine.start("w", &Vec::<u32>::new()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.signal_to("next", "word", &1, "one").await.unwrap();
        scene.pass(seconds(20)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        handle.signal_to("next", "word", &2, "two").await.unwrap();
        assert_eq!(run.result::<Vec<u32>>().await.unwrap(), [1, 2]);
    });
}

/// A child whose id belongs to another run is refused; that run is nobody's child, and is left alone when the parent ends.
#[test]
fn the_end_of_a_run_leaves_alone_a_run_whose_id_its_child_wanted() {
    async fn waits(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.wait_for("number").await
    }
    async fn careless(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let _refused = ctx.child::<u32>("waits", &()).id("stranger").start();
        Ok(())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("waits", waits).workflow("careless", careless)).await;
        let stranger = engine.start("waits", &()).id("stranger").await.unwrap();
        engine.start("careless", &()).id("a").await.unwrap().result::<()>().await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("stranger").unwrap().signal("number", &7, "1").await.unwrap();
        assert_eq!(stranger.result::<u32>().await.unwrap(), 7);
    });
}

/// What the program did not wait for is not in the journal behind its end, so that a replay comes to the same end.
#[test]
fn a_run_that_ends_beside_what_it_started_can_be_replayed() {
    async fn child(_: Ctx, (): ()) -> outlast::Result<()> {
        Ok(())
    }
    async fn hasty(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let first = ctx.step("first", async |_| Ok(1)).start();
        let _second = ctx.step("second", async |_| Ok(2)).start();
        let _child = ctx.child::<()>("child", &()).detach().start();
        first.await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("hasty", hasty).workflow("child", child)).await;
        let run = engine.start("hasty", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
        let last = u64::try_from(kinds(&engine, "a").await.len()).unwrap() - 1;
        let forked = engine.run("a").unwrap().fork(last).id("b").await.unwrap();
        assert_eq!(forked.run.result::<u32>().await.unwrap(), 1);
    });
}

/// An engine with room for few takes the next one as soon as one is done, and does not wait for its next poll.
#[test]
fn an_engine_with_little_room_takes_the_next_run_at_once() {
    async fn short(ctx: Ctx, gate: Arc<Semaphore>) -> outlast::Result<()> {
        let body = async |_| {
            let _ = gate.acquire().await;
            Ok(())
        };
        ctx.step("short", body).await
    }
    Scene::play(async |scene| {
        let gate = Arc::new(Semaphore::new(0));
        let within = gate.clone();
        let short = move |ctx: Ctx, (): ()| short(ctx, within.clone());
        let engine = scene.engine(|engine: Outlast| engine.workflow("short", short).runs_max(2)).await;
        let mut runs = Vec::new();
        for n in 0..40 {
            runs.push(engine.start("short", &()).id(&format!("r{n}")).await.unwrap());
        }
        // Two are driven, and nobody says that the others are there.
        scene.pass(seconds(1)).await;
        let begun = scene.world.now();
        gate.add_permits(1);
        for run in runs {
            run.result::<()>().await.unwrap();
        }
        assert!(scene.world.now().since(begun) < seconds(5), "{:?}", scene.world.now().since(begun));
    });
}

/// A timeout of no time is a mistake, wherever it is given.
#[test]
fn a_timeout_of_no_time_is_refused_everywhere() {
    async fn hasty(ctx: Ctx, what: u32) -> outlast::Result<()> {
        match what {
            0 => ctx.step("step", async |_| Ok(())).timeout(seconds(0)).await,
            1 => ctx.wait_for::<()>("signal").timeout(seconds(0)).await.map(drop),
            2 => ctx.approve("Well?").timeout(seconds(0)).await.map(drop),
            3 => ctx.callback::<()>().timeout(seconds(0)).create().await,
            _ => ctx.wait_for_callback::<(), _>("call", async |_, _| Ok(())).timeout(seconds(0)).await,
        }
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("hasty", hasty)).await;
        for what in 0..5 {
            let run = engine.start("hasty", &what).id(&format!("r{what}")).await.unwrap();
            let refused = run.result::<()>().await.unwrap_err();
            assert_eq!(refused.code(), "validation_error", "{what}: {refused}");
            assert!(refused.to_string().contains("must be more than zero"), "{refused}");
        }
    });
}
