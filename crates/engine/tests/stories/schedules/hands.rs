//! What people do with schedules: pause them, trigger them, fill in what was missed, put them again, and make mistakes.

use outlast::testing::World;
use outlast::{EngineError, Overlap, Triggered};
use outlast_core::id::Namespace;

use super::*;
use crate::support::{Scene, tell};

#[test]
fn paused_schedule_fires_nothing_and_goes_on_from_when_it_is_resumed() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).overlap(Overlap::Allow).put().await.unwrap();
        world.sleep(seconds(45)).await;
        handle(&engine).pause("lunch").await.unwrap();
        world.sleep(seconds(200)).await;
        let view = handle(&engine).describe().await.unwrap();
        assert_eq!((view.paused, view.next_times), (Some(("lunch".to_owned(), after(45))), vec![]));
        assert!(handle(&engine).resume().await.unwrap());
        assert!(!handle(&engine).resume().await.unwrap());
        world.sleep(seconds(60)).await;
        assert_eq!(starts(&engine).await, [(40, 40), (280, 280)]);
    });
}

/// A program puts its schedules whenever it starts.
#[test]
fn putting_a_schedule_again_changes_nothing() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).put().await.unwrap();
        world.sleep(seconds(45)).await;
        handle(&engine).pause("lunch").await.unwrap();
        let before = handle(&engine).describe().await.unwrap();
        every_minute(&engine, 5).put().await.unwrap();
        assert_eq!(handle(&engine).describe().await.unwrap(), before, "not even that it is paused");
        handle(&engine).resume().await.unwrap();
        every_minute(&engine, 5).paused().put().await.unwrap();
        assert_eq!(handle(&engine).describe().await.unwrap().paused, None);
        every_minute(&engine, 6).note("longer").put().await.unwrap();
        let view = handle(&engine).describe().await.unwrap();
        assert_eq!((view.input.as_str(), view.note.as_deref(), view.started), ("6", Some("longer"), 1));
        world.sleep(seconds(60)).await;
        assert_eq!(starts(&engine).await, [(40, 40), (100, 100)]);
    });
}

/// An engine was down while an instant passed, and comes back with another input: the instant is not lost.
#[test]
fn schedule_that_is_put_with_another_input_still_catches_up() {
    Scene::play(async |scene| {
        let engine = scene.engine(register).await;
        every_minute(&engine, 5).put().await.unwrap();
        engine.shutdown().await;
        scene.world.sleep(seconds(50)).await;
        let engine = scene.engine(|engine| register(engine).without_loops()).await;
        every_minute(&engine, 6).put().await.unwrap();
        engine.shutdown().await;
        let engine = scene.engine(register).await;
        scene.world.sleep(seconds(10)).await;
        assert_eq!(starts(&engine).await, [(40, 50)]);
    });
}

#[test]
fn schedule_that_is_put_paused_waits_to_be_resumed() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).paused().put().await.unwrap();
        world.sleep(seconds(100)).await;
        assert_eq!(starts(&engine).await, []);
        handle(&engine).resume().await.unwrap();
        world.sleep(seconds(65)).await;
        assert_eq!(starts(&engine).await, [(160, 160)]);
    });
}

#[test]
fn trigger_starts_a_run_at_once_as_the_policy_allows() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 90).overlap(Overlap::Skip).put().await.unwrap();
        world.sleep(seconds(7)).await;
        let Triggered::Started(run) = handle(&engine).trigger_now().await.unwrap() else { panic!() };
        assert_eq!(run.id().as_str(), format!("s-{}-manual", name(7)));
        world.sleep(seconds(1)).await;
        assert!(matches!(handle(&engine).trigger_now().await.unwrap(), Triggered::Skipped));
        run.result::<()>().await.unwrap();
        assert_eq!(runs(&engine).await.len(), 1, "the instant at 40 was skipped");
        every_minute(&engine, 90).overlap(Overlap::BufferOne).put().await.unwrap();
        // That of 97 ended; the one of 100 runs.
        world.sleep(seconds(10)).await;
        assert!(matches!(handle(&engine).trigger_now().await.unwrap(), Triggered::Waits));
        assert_eq!(handle(&engine).describe().await.unwrap().waiting, [after(107)]);
        world.sleep(seconds(90)).await;
        let created: Vec<u64> = runs(&engine).await.iter().map(|ran| ran.created).collect();
        assert_eq!(created, [7, 100, 190]);
    });
}

/// Whoever did not hear the answer asks again under the same key.
#[test]
fn trigger_under_a_key_happens_once_and_is_answered_as_before() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 90).overlap(Overlap::Skip).put().await.unwrap();
        world.sleep(seconds(7)).await;
        let Triggered::Started(run) = handle(&engine).trigger_once("k").await.unwrap() else { panic!() };
        world.sleep(seconds(1)).await;
        assert!(matches!(handle(&engine).trigger_once("l").await.unwrap(), Triggered::Skipped));
        let first = run.id().clone();
        run.result::<()>().await.unwrap();
        // There would be room for another one now, and later.
        for _ in 0..3 {
            let Triggered::Started(again) = handle(&engine).trigger_once("k").await.unwrap() else { panic!() };
            assert_eq!(*again.id(), first);
            assert!(matches!(handle(&engine).trigger_once("l").await.unwrap(), Triggered::Skipped), "as it was told");
            every_minute(&engine, 90).overlap(Overlap::Skip).paused().put().await.unwrap();
        }
        let view = handle(&engine).describe().await.unwrap();
        assert_eq!((view.started, runs(&engine).await.len()), (1, 1));
        assert!(matches!(handle(&engine).trigger_once("m").await.unwrap(), Triggered::Started(_)));
    });
}

#[test]
fn trigger_works_while_the_schedule_is_paused() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).paused().put().await.unwrap();
        world.sleep(seconds(50)).await;
        let Triggered::Started(run) = handle(&engine).trigger_now().await.unwrap() else { panic!() };
        run.result::<()>().await.unwrap();
        assert_eq!(runs(&engine).await.len(), 1);
    });
}

#[test]
fn backfill_starts_what_was_missed_one_after_the_other() {
    tell(register, async |world: &World, engine| {
        world.sleep(seconds(600)).await;
        every_minute(&engine, 5).overlap(Overlap::Skip).put().await.unwrap();
        assert_eq!(handle(&engine).backfill(after(100), after(220)).await.unwrap(), 3);
        world.sleep(seconds(20)).await;
        assert_eq!(starts(&engine).await, [(100, 600), (160, 605), (220, 610)]);
        // The same again: their runs are there.
        assert_eq!(handle(&engine).backfill(after(100), after(220)).await.unwrap(), 3);
        world.sleep(seconds(10)).await;
        assert_eq!(runs(&engine).await.len(), 3);
        assert_eq!(handle(&engine).describe().await.unwrap().waiting, []);
        let error = handle(&engine).backfill(after(0), after(10_000)).await.unwrap_err();
        let future = format!("the schedule \"s\" cannot be backfilled: {} is not in the past", name(10_000));
        assert!(error.to_string().starts_with(&future), "{error}");
    });
}

#[test]
fn backfill_with_allow_starts_them_together() {
    tell(register, async |world: &World, engine| {
        world.sleep(seconds(600)).await;
        every_minute(&engine, 5).overlap(Overlap::Allow).put().await.unwrap();
        handle(&engine).backfill(after(100), after(220)).await.unwrap();
        world.sleep(seconds(1)).await;
        assert_eq!(starts(&engine).await, [(100, 600), (160, 600), (220, 600)]);
    });
}

#[test]
fn removed_schedule_fires_no_more_and_its_runs_go_on() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 90).put().await.unwrap();
        world.sleep(seconds(45)).await;
        assert!(handle(&engine).remove().await.unwrap());
        assert!(!handle(&engine).remove().await.unwrap());
        world.sleep(seconds(300)).await;
        assert_eq!(runs(&engine).await.len(), 1);
        assert_eq!(runs(&engine).await[0].status, Status::Completed);
        assert_eq!(engine.schedules().await.unwrap(), []);
        let unknown = EngineError::UnknownSchedule("s".to_owned());
        assert_eq!(handle(&engine).describe().await.unwrap_err(), unknown);
        assert_eq!(handle(&engine).pause("x").await.unwrap_err().code(), "not_found");
    });
}

#[test]
fn schedules_are_listed_with_what_they_say() {
    tell(register, async |_: &World, engine| {
        engine.schedule("b").cron("0 3 * * *").start("work", &1).put().await.unwrap();
        engine.schedule("a").every(seconds(90)).offset(seconds(5)).start("work", &2).put().await.unwrap();
        engine.schedule("c").once_at(after(60)).start("tidy", &3).overlap(Overlap::Allow).put().await.unwrap();
        let views = engine.schedules().await.unwrap();
        let said: Vec<_> = views.iter().map(|view| (view.id.as_str(), view.when.as_str())).collect();
        let once = format!("once at {}", name(60));
        assert_eq!(said, [("a", "every 90s, 5s later"), ("b", "cron 0 3 * * * in UTC"), ("c", &once)]);
        let counts: Vec<usize> = views.iter().map(|view| view.next_times.len()).collect();
        assert_eq!(counts, [5, 5, 1]);
        assert_eq!(engine.schedule_handle("b").unwrap().next_times(9).await.unwrap().len(), 9);
    });
}

#[test]
fn what_cannot_be_a_schedule_is_refused_with_the_reason() {
    tell(register, async |_: &World, engine| {
        let new = || engine.schedule("s").start("work", &1);
        let refused = async |schedule: NewSchedule<'_>| schedule.put().await.err().expect("refused").to_string();
        for (schedule, why) in [
            (new(), "say once when it fires"),
            (new().every(seconds(60)).cron("* * * * *"), "say once when it fires"),
            (new().every(seconds(0)), "an interval of 0 ms is too short"),
            (new().every(seconds(60)).offset(seconds(60)), "an offset of 60000 ms is not less"),
            (new().every(seconds(60)).zone("UTC"), "only `cron` has a zone"),
            (new().cron("* * * * *").offset(seconds(1)), "only `every` has an offset"),
            (new().cron("61 * * * *"), "the cron expression \"61 * * * *\" cannot be read"),
            (new().cron("* * * * *").zone("Nowhere"), "there is no time zone \"Nowhere\""),
            (new().cron("0 0 30 2 *"), "no instant of it is to come"),
            (new().every(seconds(60)).until(after(10)), "no instant of it is to come"),
            (new().every(seconds(60)).from(after(9)).until(after(8)), "after its end"),
            (new().every(seconds(60)).jitter(seconds(86_401)), "is too long"),
            (new().every(seconds(60)).remaining(0), "no time at all"),
            (new().every(seconds(60)).note(&"x".repeat(9_000)), "its note has 9000 bytes"),
            (engine.schedule("s").every(seconds(60)), "say what it starts"),
            (engine.schedule(&"x".repeat(201)).every(seconds(60)).start("work", &1), "its id has 201 bytes"),
            (engine.schedule("s").every(seconds(60)).start("play", &1), "no workflow \"play\" is registered"),
        ] {
            let error = refused(schedule).await;
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(engine.schedules().await.unwrap(), []);
    });
}

#[test]
fn schedule_belongs_to_the_namespace_of_its_engine() {
    let scene = Scene::new();
    scene.world.block_on(async {
        let other = Namespace::new("other").unwrap();
        scene.store.put_namespace(other.clone()).await.unwrap();
        let here = scene.engine(register).await;
        let there = scene.engine(|engine| register(engine).namespace(other)).await;
        every_minute(&here, 5).put().await.unwrap();
        every_minute(&there, 6).remaining(1).put().await.unwrap();
        scene.world.sleep(seconds(110)).await;
        assert_eq!(starts(&here).await, [(40, 40), (100, 100)]);
        assert_eq!(starts(&there).await, [(40, 40)]);
        assert!(handle(&there).remove().await.unwrap());
        assert_eq!(here.schedules().await.unwrap().len(), 1);
    });
}
