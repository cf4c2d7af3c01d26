//! When schedules fire: to the second, whatever clocks do.

use outlast::testing::World;
use outlast::{FiringOutcome, Overlap};
use outlast_core::limits::Limits;
use outlast_store::faults::FaultStore;
use outlast_store::{Clock, ManualClock, MemoryStore};

use super::*;
use crate::support::{Scene, tell};

#[test]
fn a_schedule_starts_a_run_at_every_instant_to_the_millisecond() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).put().await.unwrap();
        world.sleep(seconds(200)).await;
        assert_eq!(starts(&engine).await, [(40, 40), (100, 100), (160, 160)]);
        let view = handle(&engine).describe().await.unwrap();
        assert_eq!(view.next_times, [220, 280, 340, 400, 460].map(after));
        assert_eq!((view.started, view.skipped, view.when.as_str()), (3, 0, "every 60s"));
        assert_eq!(view.last_run.unwrap().as_str(), format!("s-{}", name(160)));
        let run = engine.run(&format!("s-{}", name(160))).unwrap().view().await.unwrap();
        assert_eq!(run.created_at, after(160));
    });
}

#[test]
fn cron_goes_by_the_wall_clock_of_its_zone() {
    tell(register, async |world: &World, engine| {
        let schedule = engine.schedule("s").cron("30 23 * * *").zone("Europe/Berlin").start("work", &5);
        schedule.put().await.unwrap();
        let view = handle(&engine).describe().await.unwrap();
        assert_eq!(view.when, "cron 30 23 * * * in Europe/Berlin");
        world.sleep(seconds(2 * 86_400)).await;
        // 22:30 in UTC.
        assert_eq!(starts(&engine).await, [(1_000, 1_000), (87_400, 87_400)]);
    });
}

#[test]
fn one_shot_fires_once_also_if_it_is_put_late() {
    tell(register, async |world: &World, engine| {
        engine.schedule("s").once_at(after(60)).start("work", &5).put().await.unwrap();
        world.sleep(seconds(300)).await;
        // What it says is another thing now, and its instant is the same.
        engine.schedule("s").once_at(after(60)).start("work", &6).put().await.unwrap();
        world.sleep(seconds(300)).await;
        assert_eq!(starts(&engine).await, [(60, 60)]);
        assert_eq!(handle(&engine).next_times(5).await.unwrap(), []);
        engine.schedule("late").once_at(after(100)).start("work", &7).put().await.unwrap();
        world.sleep(seconds(1)).await;
        let id = format!("late-{}", name(100));
        assert_eq!(engine.run(&id).unwrap().view().await.unwrap().created_at, after(600));
    });
}

#[test]
fn beginning_end_and_number_of_times_are_kept() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).from(after(100)).until(after(220)).put().await.unwrap();
        let other = engine.schedule("twice").every(seconds(60)).start("work", &5);
        other.remaining(2).put().await.unwrap();
        world.sleep(seconds(600)).await;
        assert_eq!(starts(&engine).await, [(100, 100), (160, 160), (220, 220)]);
        let twice = engine.list().attribute(outlast::SCHEDULE_ATTRIBUTE, "twice").await.unwrap();
        assert_eq!(twice.runs.len(), 2);
    });
}

#[test]
fn jitter_delays_each_run_and_its_id_is_still_the_instant() {
    let told = tell(register, async |world: &World, engine| {
        every_minute(&engine, 1).jitter(seconds(30)).put().await.unwrap();
        world.sleep(seconds(605)).await;
        starts(&engine).await
    });
    assert_eq!(told.len(), 9 + usize::from(told.len() == 10), "{told:?}");
    assert!(told.iter().all(|(instant, created)| (*instant..=instant + 30).contains(created)), "{told:?}");
    assert!(told.iter().filter(|(instant, created)| created > instant).count() > 5, "{told:?}");
}

/// Nobody is there for an hour.
#[test]
fn what_was_missed_is_caught_up_within_the_window() {
    for (overlap, expected) in [
        // Up to two minutes before the return.
        (Overlap::Allow, vec![(3_520, 3_600), (3_580, 3_600)]),
        (Overlap::Skip, vec![(3_520, 3_600)]),
        (Overlap::BufferAll, vec![(3_520, 3_600), (3_580, 3_605)]),
    ] {
        Scene::play(async |scene| {
            let engine = scene.engine(register).await;
            every_minute(&engine, 5).overlap(overlap).catch_up(seconds(120)).put().await.unwrap();
            engine.shutdown().await;
            scene.world.sleep(seconds(3_600)).await;
            let engine = scene.engine(register).await;
            scene.world.sleep(seconds(30)).await;
            assert_eq!(starts(&engine).await, expected, "{overlap:?}");
            let view = handle(&engine).describe().await.unwrap();
            assert_eq!(view.recent[0].outcome, FiringOutcome::Missed);
            assert_eq!(view.next_times[0], after(3_640));
        });
    }
}

/// A laptop sleeps: the clock of the store is an hour on, and nothing else is.
#[test]
fn clock_that_jumps_ahead_fires_what_the_window_allows() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).overlap(Overlap::Allow).catch_up(seconds(120)).put().await.unwrap();
        world.sleep(seconds(45)).await;
        world.jump(true, seconds(3_600));
        // Whoever sleeps learns of it at the next poll at the latest.
        world.sleep(seconds(700)).await;
        let starts = starts(&engine).await;
        assert_eq!(starts[0], (40, 40));
        let (caught, created) = starts[1];
        assert!(caught + 120 >= created && caught <= created, "{starts:?}");
        let instants: Vec<u64> = starts[1..].iter().map(|(instant, _)| *instant).collect();
        let expected: Vec<u64> = (0..instants.len() as u64).map(|n| caught + 60 * n).collect();
        assert_eq!(instants, expected, "every minute from then on");
        assert!(starts.last().unwrap().0 >= 4_240, "{starts:?}");
    });
}

/// Invariant 11, row 28.
#[test]
fn clock_that_jumps_back_fires_no_instant_again() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).overlap(Overlap::Allow).put().await.unwrap();
        world.sleep(seconds(170)).await;
        world.jump(false, seconds(120));
        world.sleep(seconds(900)).await;
        let instants: Vec<u64> = starts(&engine).await.into_iter().map(|(instant, _)| instant).collect();
        let expected: Vec<u64> = (0..instants.len() as u64).map(|n| 40 + 60 * n).collect();
        assert_eq!(instants, expected, "each once, and none left out");
        assert!(instants.len() >= 14, "{instants:?}");
    });
}

/// A clock was years ahead, and somebody puts that right: pausing and resuming lets the schedule go on from now.
#[test]
fn schedule_that_followed_a_clock_into_the_future_goes_on_from_now_when_it_is_resumed() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).catch_up(seconds(60)).put().await.unwrap();
        world.sleep(seconds(45)).await;
        world.jump(true, seconds(86_400));
        world.sleep(seconds(700)).await;
        world.jump(false, seconds(86_400));
        let before = starts(&engine).await.len();
        world.sleep(seconds(1_800)).await;
        assert_eq!(starts(&engine).await.len(), before, "it waits for the time it has reached");
        handle(&engine).pause("the clock was wrong").await.unwrap();
        handle(&engine).resume().await.unwrap();
        world.sleep(seconds(180)).await;
        assert_eq!(starts(&engine).await.len(), before + 3);
    });
}

/// Row 4: an engine that wakes "too early" does not ask again and again.
#[test]
fn clock_that_jumps_does_not_make_schedules_spin() {
    for jump in [-90 * 60_000, 90 * 60_000] {
        let scene = Scene::new();
        let clock = ManualClock::at(BEGIN.as_millis());
        let inner = std::sync::Arc::new(MemoryStore::new(Clock::Manual(clock.clone()), Limits::default()));
        let store = std::sync::Arc::new(FaultStore::counting(inner));
        scene.world.block_on(async {
            let engine = register(scene.world.engine_on(store.clone())).start().await.unwrap();
            every_minute(&engine, 5).put().await.unwrap();
            clock.advance(jump);
            let before = store.calls();
            for _ in 0..30 {
                scene.world.sleep(seconds(60)).await;
                clock.advance(60_000);
            }
            let calls = store.calls() - before;
            assert!(calls < 60 * 30, "at most one call a second: {calls}");
        });
    }
}

#[test]
fn engine_on_its_way_down_fires_nothing_more() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 5).put().await.unwrap();
        engine.shutdown().await;
        world.sleep(seconds(120)).await;
        assert_eq!(engine.schedules().await.unwrap_err(), outlast::EngineError::Stopped);
    });
}
