//! Where accounts of the same thing differ, and what happens here: semantics U1 to U18.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::path::Path;
use std::sync::Arc;

use outlast::testing::WorldTime;
use outlast::{Ctx, Engine, Error, Outlast, Race2, Status};
use outlast_core::event::Event;
use outlast_store::{Awaited, SqliteOptions, SqliteStore};

use crate::support::{Ear, Scene, journal, kinds, seconds, status};

/// Which of two operations was settled first, as the journal has it.
async fn first_settled(engine: &Engine, keys: [&str; 2]) -> String {
    let fired = journal(engine, "a").await.into_iter().find_map(|event| match event {
        Event::TimerFired { key, .. } if keys.contains(&key.as_str()) => Some(key.as_str().to_owned()),
        _ => None,
    });
    fired.expect("one of them was settled")
}

/// Semantics U8: two sleeps end at the same instant, and both ends are recorded before anybody asks who won. The lower
/// index wins, whichever is written first, in a race and in an `any`.
#[test]
fn of_two_that_end_at_the_same_instant_the_lower_index_wins() {
    async fn ties(ctx: Ctx, swapped: bool) -> outlast::Result<[String; 2]> {
        let pair = |name: &str| {
            let nap = |n: &str| ctx.sleep(seconds(60)).id(&format!("{name}{n}")).start();
            let (one, two) = (nap("1"), nap("2"));
            if swapped { (two, one) } else { (one, two) }
        };
        let (raced, either) = (pair("race"), pair("any"));
        ctx.sleep(seconds(120)).await?;
        let number = |first: bool| if first == swapped { "2" } else { "1" };
        let won = number(matches!(ctx.race(raced).await?, Race2::First(())));
        let failed = ctx.step("fails", async |_| Err::<(), _>(Error::new("no", "no").permanent())).start();
        ctx.sleep(seconds(1)).await?;
        let (at, ()) = ctx.any(vec![either.0, either.1]).await?;
        assert!(failed.await.is_err());
        Ok([format!("race{won}"), format!("any{}", number(at == 0))])
    }
    for swapped in [false, true] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("w", ties)).await;
            let won: [String; 2] = engine.start("w", &swapped).id("a").await.unwrap().result().await.unwrap();
            let expected =
                [first_settled(&engine, ["race1", "race2"]).await, first_settled(&engine, ["any1", "any2"]).await];
            assert_eq!(won, expected, "swapped: {swapped}");
        });
    }
}

/// Waits for ten seconds, and then for as long as it takes.
async fn twice(ctx: Ctx, (): ()) -> outlast::Result<(Option<u32>, u32)> {
    let first = ctx.wait_for::<u32>("go").timeout(seconds(10)).await?;
    Ok((first, ctx.wait_for("go").await?))
}

/// Semantics U9: nobody drives while the deadline passes and a signal comes, in whatever order. Neither is recorded when
/// the run is woken: the payload counts.
#[test]
fn a_payload_counts_as_long_as_no_timeout_is_recorded() {
    for fired_first in [true, false] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("w", twice)).await;
            engine.start("w", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            engine.shutdown().await;
            scene.pass(seconds(60)).await;

            let client = scene.world.engine_on(scene.store.clone()).without_loops().start().await.unwrap();
            if fired_first {
                assert_eq!(scene.store.sweep(10).await.unwrap().fired, 1);
            }
            client.run("a").unwrap().signal("go", &1, "1").await.unwrap();
            if !fired_first {
                assert_eq!(scene.store.sweep(10).await.unwrap().fired, 1);
            }
            client.run("a").unwrap().signal("go", &2, "2").await.unwrap();
            client.shutdown().await;

            let engine = scene.engine(|engine| engine.workflow("w", twice)).await;
            let taken = engine.run("a").unwrap().result::<(Option<u32>, u32)>().await.unwrap();
            assert_eq!(taken, (Some(1), 2), "fired first: {fired_first}");
            let expected = ["SIGNAL_AWAITED", "SIGNAL_RESOLVED", "SIGNAL_AWAITED", "SIGNAL_RESOLVED", "RUN_FINISHED"];
            assert_eq!(kinds(&engine, "a").await, expected);
        });
    }
}

/// Semantics U9: a timeout that is recorded stands, and what comes then is for the next wait.
#[test]
fn a_timeout_that_is_recorded_stands_and_the_payload_is_for_the_next_wait() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", twice)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(11)).await;
        assert_eq!(kinds(&engine, "a").await, ["SIGNAL_AWAITED", "SIGNAL_TIMED_OUT", "SIGNAL_AWAITED"]);
        engine.run("a").unwrap().signal("go", &1, "1").await.unwrap();
        assert_eq!(run.result::<(Option<u32>, u32)>().await.unwrap(), (None, 1));
    });
}

async fn nap(ctx: Ctx, (): ()) -> outlast::Result<()> {
    ctx.sleep(seconds(60)).await
}

/// Tells a story to an engine on a file, which is free afterwards.
fn in_a_world_of_its_own(file: &Path, story: impl AsyncFn(&Scene, &Engine)) {
    let scene = Scene::new();
    let options = SqliteOptions { clock: scene.world.clock(), ..SqliteOptions::default() };
    let real = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Arc::new(real.block_on(SqliteStore::open(file, options)).unwrap());
    scene.world.block_on(async {
        let engine = scene.world.engine_on(store).workflow("w", nap).start().await.unwrap();
        story(&scene, &engine).await;
        engine.shutdown().await;
    });
}

/// Semantics U10: somebody deleted a timer's row. The sleep is not over because of that, although its time is, and
/// although the run is woken by something else. The doctor puts it right.
#[test]
fn a_sleep_whose_timer_is_missing_has_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    in_a_world_of_its_own(&file, async |scene, engine| {
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
    });
    let raw = rusqlite::Connection::open(&file).unwrap();
    assert_eq!(raw.execute("DELETE FROM timer", []).unwrap(), 1);
    drop(raw);
    in_a_world_of_its_own(&file, async |scene, engine| {
        scene.pass(seconds(3_600)).await;
        assert_eq!(status(engine, "a").await, Status::Waiting);
        engine.run("a").unwrap().signal("unrelated", &(), "1").await.unwrap();
        scene.pass(seconds(3_600)).await;
        assert_eq!(kinds(engine, "a").await, ["TIMER_STARTED"]);
        assert!(engine.doctor().repair().await.unwrap().is_healthy());
        engine.run("a").unwrap().result::<()>().await.unwrap();
    });
}

/// Semantics O4: a pause of a paused run, and a resume of one that is not paused, change nothing. Nor does a pause
/// of a run that has ended; a resume of it is lost.
#[test]
fn a_pause_of_a_paused_run_and_a_resume_of_a_running_one_change_nothing() {
    async fn naps(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(60)).await?;
        ctx.sleep(seconds(60)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", naps)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        scene.pass(seconds(1)).await;
        handle.resume().await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        handle.pause("once").await.unwrap();
        handle.pause("twice").await.unwrap();
        scene.pass(seconds(1)).await;
        handle.pause("again").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(kinds(&engine, "a").await, ["TIMER_STARTED", "RUN_PAUSED"]);
        assert_eq!(status(&engine, "a").await, Status::Paused);
        let waits = scene.awaiting("a").await;
        assert!(matches!(&waits[..], [Awaited::Timer { .. }]), "it waits all the same: {waits:?}");
        handle.resume().await.unwrap();
        run.result::<()>().await.unwrap();
        let expected = [
            "TIMER_STARTED",
            "RUN_PAUSED",
            "RUN_RESUMED",
            "TIMER_FIRED",
            "TIMER_STARTED",
            "TIMER_FIRED",
            "RUN_FINISHED",
        ];
        assert_eq!(kinds(&engine, "a").await, expected);
        assert_eq!(handle.pause("late").await.unwrap(), outlast::Delivered::Lost);
        assert_eq!(engine.run("nobody").unwrap().pause("x").await.unwrap_err().code(), "not_found");
        assert_eq!(handle.resume().await.unwrap_err().code(), "signal_lost");
    });
}

/// Semantics C13: the same id is the same run, also after its end; with another input or workflow it is refused, and the
/// run is left alone.
#[test]
fn the_same_id_is_the_same_run_and_with_another_input_it_is_refused() {
    async fn doubles(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        ctx.sleep(seconds(60)).await?;
        ctx.step("double", async |_| Ok(n * 2)).await
    }
    Scene::play(async |scene| {
        let register = |engine: Outlast| engine.workflow("w", doubles).workflow("other", doubles);
        let engine = scene.engine(register).await;
        engine.start("w", &3).id("a").await.unwrap();
        for ended in [false, true] {
            let again = engine.start("w", &3).id("a").await.unwrap();
            let input = engine.start("w", &4).id("a").await.err().unwrap();
            let workflow = engine.start("other", &3).id("a").await.err().unwrap();
            assert_eq!((input.code(), workflow.code()), ("run_exists", "run_exists"), "ended: {ended}");
            assert_eq!(again.result::<u32>().await.unwrap(), 6);
        }
        let expected = ["TIMER_STARTED", "TIMER_FIRED", "STEP_FINISHED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

/// Semantics L13: "suspension decisions are logged with the rule that held or failed".
#[test]
fn whether_a_turn_may_end_is_logged_with_the_rule_that_decided() {
    async fn works_and_naps(ctx: Ctx, time: WorldTime) -> outlast::Result<()> {
        let work = async |_| {
            time.sleep(seconds(1)).await;
            Ok(())
        };
        ctx.step("work", work).await?;
        ctx.sleep(seconds(60)).await
    }
    let turns = Ear::for_what(|metadata| metadata.target() == "outlast::turn");
    let heard = turns.during(|| {
        Scene::play(async |scene| {
            let time = scene.world.time();
            let works = move |ctx: Ctx, (): ()| works_and_naps(ctx, time.clone());
            let engine = scene.engine(|engine| engine.workflow("w", works)).await;
            engine.start("w", &()).id("a").await.unwrap().result::<()>().await.unwrap();
        });
    });
    for decision in ["Wait(NothingExecuting)", "Suspend(WaitScheduled)"] {
        let told = |line: &&String| line.contains("run=default/a") && line.contains(&format!("decision={decision}"));
        assert!(heard.iter().any(|line| told(&line)), "{decision}: {heard:?}");
    }
}
