//! What becomes of runs while they are held back.

use super::*;
use crate::support::kinds;

#[test]
fn a_run_that_is_cancelled_while_it_is_held_ends_at_once_and_never_begins() {
    witnessed(async |scene, engine, witness| {
        let runs = crowd(&engine, "r", 3, "k", 1).await;
        scene.world.sleep(seconds(1)).await;
        engine.run("r1").unwrap().cancel("not wanted").await.unwrap();
        let error = engine.run("r1").unwrap().result::<String>().await.unwrap_err();
        assert_eq!(error.to_string(), "the run was cancelled: not wanted");
        assert_eq!(scene.world.elapsed(), seconds(1), "it did not wait for room");
        assert_eq!(kinds(&engine, "r1").await, ["RUN_CANCELLED"]);
        for run in runs.into_iter().filter(|run| run.id().as_str() != "r1") {
            run.result::<String>().await.unwrap();
        }
        assert_eq!(witness.order(), ["r0", "r2"]);
        assert_eq!(witness.most("k"), 1);
    });
}

#[test]
fn a_run_that_is_terminated_while_it_is_held_ends_at_once_and_frees_no_room() {
    witnessed(async |scene, engine, witness| {
        let runs = crowd(&engine, "r", 3, "k", 1).await;
        scene.world.sleep(seconds(1)).await;
        engine.run("r1").unwrap().terminate("not wanted").await.unwrap();
        assert_eq!(engine.run("r1").unwrap().status().await.unwrap(), Status::Cancelled);
        for run in runs.into_iter().filter(|run| run.id().as_str() != "r1") {
            run.result::<String>().await.unwrap();
        }
        assert_eq!(witness.instants(), [0, 10]);
    });
}

#[test]
fn a_signal_for_a_held_run_is_there_when_it_begins() {
    Scene::play(async |scene| {
        let witness = Witness::of(&scene.world);
        let hears = async |ctx: Ctx, (): ()| ctx.wait_for::<u32>("go").await;
        let engine = scene.engine(|engine| witness.register(engine).workflow("hears", hears)).await;
        let first = crowd(&engine, "r", 1, "k", 1).await;
        let run = engine.start("hears", &()).id("h").concurrency("k", 1).await.unwrap();
        run.signal("go", &7, "1").await.unwrap();
        assert_eq!(run.status().await.unwrap(), Status::Queued);
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        assert_eq!(scene.world.elapsed(), seconds(10));
        results(first).await;
    });
}

#[test]
fn a_paused_held_run_pauses_when_it_is_admitted() {
    witnessed(async |scene, engine, witness| {
        let runs = crowd(&engine, "r", 2, "k", 1).await;
        engine.run("r1").unwrap().pause("lunch").await.unwrap();
        scene.world.sleep(seconds(5)).await;
        assert_eq!(engine.run("r1").unwrap().status().await.unwrap(), Status::Queued);
        scene.world.sleep(seconds(15)).await;
        assert_eq!(engine.run("r1").unwrap().status().await.unwrap(), Status::Paused);
        assert_eq!(witness.order(), ["r0"], "nothing of it began");
        engine.run("r1").unwrap().resume().await.unwrap();
        results(runs).await;
        assert_eq!(witness.most("k"), 1);
    });
}

#[test]
fn explain_says_what_a_held_run_waits_for() {
    witnessed(async |scene, engine, _| {
        let mut runs = crowd(&engine, "r", 4, "tenant-7", 2).await;
        scene.world.sleep(seconds(1)).await;
        let why = engine.run("r3").unwrap().explain().await.unwrap().to_string();
        assert!(
            why.contains(
                "is held back since 2023-11-14 22:13:20 UTC: 2 of 2 runs under \"tenant-7\"; 1 is before it in the line."
            ),
            "{why}"
        );
        let delayed = engine.start("work", &job(&[], 0)).id("d").delay(seconds(59)).await.unwrap();
        let why = delayed.explain().await.unwrap().to_string();
        assert!(why.contains("it begins at 2023-11-14 22:14:20 UTC at the earliest."), "{why}");
        for id in ["a", "b"] {
            let start = engine.start("work", &job(&[], 0)).id(id).rate("api", Rate::per_hour(60));
            runs.push(start.await.unwrap());
        }
        scene.world.sleep(seconds(1)).await;
        let why = engine.run("b").unwrap().explain().await.unwrap().to_string();
        let expected = "the rate under \"api\" is 60 in 3600s, and the next may begin at 2023-11-14 22:14:21 UTC; nobody \
                        is before it in the line.";
        assert!(why.contains(expected), "{why}");
        runs.push(delayed);
        results(runs).await;
    });
}

#[test]
fn an_engine_without_loops_admits_what_it_is_asked_for() {
    Scene::play(async |scene| {
        let witness = Witness::of(&scene.world);
        let engine = scene.engine(|engine| witness.register(engine).without_loops()).await;
        let run = engine.start("work", &job(&["k"], 0)).id("a").concurrency("k", 1).await.unwrap();
        assert_eq!(run.status().await.unwrap(), Status::Queued);
        engine.drive_once("a").await.unwrap();
        assert_eq!(witness.order(), ["a"]);
    });
}
