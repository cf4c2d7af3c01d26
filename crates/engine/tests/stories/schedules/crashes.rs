//! Invariant 11 and row 28: one run per schedule and instant, with two engines, and with a crash at every call.

use outlast::Overlap;
use outlast::testing::{World, crash_everywhere};

use super::*;
use crate::support::Scene;

async fn nap(ctx: Ctx, (): ()) -> outlast::Result<()> {
    ctx.sleep(seconds(3_600)).await
}

/// A schedule with three instants, until nothing of it is to come and its last run has ended. What came of it.
async fn three(engine: &Engine, overlap: Overlap, workflow: &str, length: u64) -> Option<Vec<Ran>> {
    let schedule = engine.schedule("s").every(seconds(60)).until(after(165)).start(workflow, &length);
    let handle = schedule.overlap(overlap).put().await.ok()?;
    loop {
        engine.start("nap", &()).await.ok()?.result::<()>().await.ok()?;
        let view = handle.describe().await.ok()?;
        let last = engine.run(view.last_run.as_ref()?.as_str()).ok()?.status().await.ok()?;
        if view.next_times.is_empty() && view.waiting.is_empty() && last.is_terminal() {
            break;
        }
    }
    try_runs(engine).await
}

fn instants(runs: &[Ran]) -> Vec<Option<u64>> {
    runs.iter().map(|ran| ran.instant).collect()
}

/// At most one run at a time.
fn assert_apart(runs: &[Ran]) {
    for pair in runs.windows(2) {
        assert!(pair[0].ended.is_some_and(|ended| ended <= pair[1].created), "{runs:?}");
    }
}

fn crash(overlap: Overlap, workflow: &'static str, length: u64, judge: impl Fn(&[Ran]) -> Vec<Option<u64>>) {
    let crashes = crash_everywhere(
        |engine| register(engine).workflow("nap", nap),
        async |engine: Engine| {
            let runs = three(&engine, overlap, workflow, length).await?;
            Some(judge(&runs))
        },
    );
    assert!(crashes.kills > 60, "{crashes:?}");
}

#[test]
fn allow_starts_each_instant_once_with_a_crash_at_every_call() {
    crash(Overlap::Allow, "work", 70, instants);
}

#[test]
fn buffer_all_starts_each_instant_once_and_apart_with_a_crash_at_every_call() {
    crash(Overlap::BufferAll, "work", 70, |runs| {
        assert_apart(runs);
        instants(runs)
    });
}

#[test]
fn cancel_previous_ends_with_the_newest_with_a_crash_at_every_call() {
    crash(Overlap::CancelPrevious, "tidy", 1_000, |runs| {
        assert_apart(runs);
        let (last, before) = runs.split_last().unwrap();
        assert_eq!(last.status, Status::Completed);
        assert!(before.iter().all(|ran| ran.status == Status::Cancelled), "{runs:?}");
        vec![last.instant]
    });
}

#[test]
fn terminate_previous_ends_with_the_newest_with_a_crash_at_every_call() {
    crash(Overlap::TerminatePrevious, "tidy", 1_000, |runs| {
        assert_apart(runs);
        let (last, before) = runs.split_last().unwrap();
        assert_eq!(last.status, Status::Completed);
        assert!(before.iter().all(|ran| ran.status == Status::Cancelled), "{runs:?}");
        vec![last.instant]
    });
}

#[test]
fn skip_and_buffer_one_never_overlap_with_a_crash_at_every_call() {
    for overlap in [Overlap::Skip, Overlap::BufferOne] {
        crash(overlap, "work", 70, |runs| {
            assert_apart(runs);
            // How many there are depends on when somebody is there; the first one always is.
            instants(&runs[..1])
        });
    }
}

/// A trigger and a backfill that were acknowledged take place, once.
#[test]
fn hands_survive_a_crash_at_every_call() {
    let crashes = crash_everywhere(
        |engine| register(engine).workflow("nap", nap),
        async |engine: Engine| {
            let schedule = engine.schedule("s").every(seconds(60)).start("work", &5).overlap(Overlap::BufferAll);
            let handle = schedule.paused().put().await.ok()?;
            engine.start("nap", &()).id("wait").await.ok()?.result::<()>().await.ok()?;
            assert_eq!(handle.backfill(after(100), after(220)).await.ok()?, 3);
            for n in 0..3 {
                engine.start("nap", &()).id(&format!("wait-{n}")).await.ok()?.result::<()>().await.ok()?;
            }
            Some(instants(&try_runs(&engine).await?))
        },
    );
    assert!(crashes.kills > 60, "{crashes:?}");
}

/// Two engines on one store look at the same moment; of each instant there is one run.
#[test]
fn two_engines_fire_each_instant_once() {
    for seed in 0..20 {
        let world = World::seeded(seed).shuffled();
        let store = world.store();
        world.block_on(async {
            let mut engines = Vec::new();
            for _ in 0..2 {
                engines.push(register(world.engine_on(store.clone())).start().await.unwrap());
            }
            every_minute(&engines[0], 5).overlap(Overlap::Allow).put().await.unwrap();
            // The second one hears of it at a poll.
            world.sleep(seconds(3_990)).await;
            let starts = starts(&engines[1]).await;
            let expected: Vec<(u64, u64)> = (0..66).map(|n| (40 + 60 * n, 40 + 60 * n)).collect();
            assert_eq!(starts, expected);
            let view = handle(&engines[0]).describe().await.unwrap();
            assert_eq!(view.started, 66);
        });
    }
}

/// An engine that does not have the workflow leaves the schedule to those that do.
#[test]
fn engine_without_the_workflow_leaves_it_to_others() {
    let scene = Scene::new();
    scene.world.block_on(async {
        let engine = scene.engine(register).await;
        every_minute(&engine, 5).put().await.unwrap();
        engine.shutdown().await;
        let other = scene.engine(|engine| engine.workflow("other", nap)).await;
        scene.world.sleep(seconds(1_000)).await;
        let namespace = outlast_core::id::Namespace::default_namespace();
        assert_eq!(scene.store.count(namespace).await.unwrap(), []);
        let engine = scene.engine(register).await;
        scene.world.sleep(seconds(1)).await;
        assert_eq!(starts(&engine).await, [(40, 1_000)], "and skips what overlaps");
        other.shutdown().await;
    });
}
