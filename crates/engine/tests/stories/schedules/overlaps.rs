//! What becomes of a firing while the run before it goes on.

use outlast::testing::World;
use outlast::{FiringOutcome, Overlap};

use super::*;
use crate::support::{Scene, kinds, tell};

/// The runs of a schedule that fires every minute, each of which takes so long, after so many seconds.
fn play(overlap: Overlap, workflow: &str, length: u64, time: u64) -> Vec<Ran> {
    tell(register, async |world: &World, engine| {
        let schedule = engine.schedule("s").every(seconds(60)).start(workflow, &length);
        schedule.overlap(overlap).put().await.unwrap();
        world.sleep(seconds(time)).await;
        runs(&engine).await
    })
}

fn times(runs: &[Ran]) -> Vec<(u64, u64, Option<u64>)> {
    runs.iter().map(|ran| (ran.instant.unwrap(), ran.created, ran.ended)).collect()
}

#[test]
fn skip_leaves_out_what_overlaps() {
    let runs = play(Overlap::Skip, "work", 90, 300);
    assert_eq!(times(&runs), [(40, 40, Some(130)), (160, 160, Some(250)), (280, 280, None)]);
}

#[test]
fn allow_starts_all_the_same() {
    let runs = play(Overlap::Allow, "work", 90, 200);
    assert_eq!(times(&runs), [(40, 40, Some(130)), (100, 100, Some(190)), (160, 160, None)]);
}

#[test]
fn buffer_one_starts_one_more_right_after_the_end() {
    let runs = play(Overlap::BufferOne, "work", 150, 500);
    // That of 100 waits, those of 160 and, while it runs, later ones do not; the next one that may wait is that of 220.
    assert_eq!(times(&runs), [(40, 40, Some(190)), (100, 190, Some(340)), (220, 340, Some(490)), (400, 490, None)]);
}

#[test]
fn buffer_all_starts_every_one_right_after_the_end_of_the_one_before() {
    let runs = play(Overlap::BufferAll, "work", 90, 400);
    assert_eq!(
        times(&runs),
        [(40, 40, Some(130)), (100, 130, Some(220)), (160, 220, Some(310)), (220, 310, None)],
        "at once, although nobody polls so often"
    );
}

#[test]
fn cancel_previous_waits_for_its_cleanup() {
    let runs = play(Overlap::CancelPrevious, "tidy", 1_000, 260);
    assert_eq!(times(&runs), [(40, 40, Some(130)), (100, 130, Some(190)), (160, 190, Some(250)), (220, 250, None)]);
    assert!(runs[..3].iter().all(|ran| ran.status == Status::Cancelled), "{runs:?}");
}

#[test]
fn cancel_previous_keeps_only_the_newest_that_waits() {
    tell(register, async |world: &World, engine| {
        let schedule = engine.schedule("s").every(seconds(20)).start("tidy", &1_000);
        schedule.overlap(Overlap::CancelPrevious).put().await.unwrap();
        world.sleep(seconds(75)).await;
        // The first one is asked to stop at 40 and tidies up until 70; at 60 another takes the place of the one of 40.
        let runs = runs(&engine).await;
        assert_eq!(times(&runs), [(20, 20, Some(70)), (60, 70, None)]);
        let view = handle(&engine).describe().await.unwrap();
        let replaced = view.recent.iter().filter(|firing| firing.outcome == FiringOutcome::Replaced);
        assert_eq!(replaced.map(|firing| firing.at).collect::<Vec<_>>(), [after(40)]);
    });
}

#[test]
fn terminate_previous_starts_at_once() {
    tell(register, async |world: &World, engine| {
        let schedule = engine.schedule("s").every(seconds(60)).start("tidy", &1_000);
        schedule.overlap(Overlap::TerminatePrevious).put().await.unwrap();
        world.sleep(seconds(170)).await;
        let runs = runs(&engine).await;
        assert_eq!(times(&runs), [(40, 40, Some(100)), (100, 100, Some(160)), (160, 160, None)]);
        let first = kinds(&engine, &format!("s-{}", name(40))).await;
        assert_eq!(first.last(), Some(&"RUN_TERMINATED"), "and no cleanup: {first:?}");
    });
}

/// A parked run has not ended; whoever looks sees why nothing starts.
#[test]
fn skip_counts_what_it_left_out() {
    tell(register, async |world: &World, engine| {
        every_minute(&engine, 10_000).put().await.unwrap();
        world.sleep(seconds(300)).await;
        let view = handle(&engine).describe().await.unwrap();
        assert_eq!((view.started, view.skipped), (1, 4));
        assert_eq!(view.recent.last().unwrap().outcome, FiringOutcome::Skipped);
    });
}

/// The run before ends in another process, of which nobody gives notice: what waits starts when it is looked for.
#[test]
fn what_waits_for_a_run_of_another_process_starts_at_a_poll() {
    let scene = Scene::new();
    let (first, second) = (scene.world.process(scene.store.clone()), scene.world.process(scene.store.clone()));
    scene.world.block_on(async {
        // The first drives, and hears of nothing; the second has no part in the runs, and fires.
        let drives = first.engine().poll(seconds(2)).workflow("work", work).start().await.unwrap();
        let fires = second.engine().poll(seconds(2)).workflow("other", work).start().await.unwrap();
        first.deaf(true);
        let schedule = fires.schedule("s").every(seconds(60)).start("work", &90).version("1");
        schedule.overlap(Overlap::BufferAll).put().await.unwrap();
        scene.world.sleep(seconds(260)).await;
        let runs = runs(&drives).await;
        assert!(runs.len() >= 3, "{runs:?}");
        for pair in runs.windows(2) {
            let waited = pair[1].created - pair[0].ended.unwrap();
            assert!(waited <= 12, "{runs:?}");
        }
    });
}

/// The store would not start the run of one instant: somebody has its id for something else.
#[test]
fn run_that_cannot_be_started_does_not_stop_the_schedule() {
    tell(register, async |world: &World, engine| {
        engine.start("work", &77).id(&format!("s-{}", name(100))).await.unwrap();
        every_minute(&engine, 5).overlap(Overlap::Allow).put().await.unwrap();
        world.sleep(seconds(170)).await;
        assert_eq!(starts(&engine).await, [(40, 40), (160, 160)]);
        let view = handle(&engine).describe().await.unwrap();
        let FiringOutcome::Refused(problem) = &view.recent[1].outcome else { panic!("{view:?}") };
        assert!(problem.contains("exists"), "{problem}");
        assert_eq!(view.started, 2);
    });
}
