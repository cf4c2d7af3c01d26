//! Schedules do the same on every store: in memory, on a SQLite file and on PostgreSQL, with every policy, in virtual time.

use std::sync::Arc;

use outlast::testing::World;
use outlast::{Ctx, Engine, Outlast, Overlap, Status, Triggered};
use outlast_store::Store;

use crate::place::{Place, seconds};

/// The first two need no notice of the end of a run.
const POLICIES: [(&str, Overlap); 6] = [
    ("skip", Overlap::Skip),
    ("allow", Overlap::Allow),
    ("buffer-one", Overlap::BufferOne),
    ("buffer-all", Overlap::BufferAll),
    ("cancel", Overlap::CancelPrevious),
    ("terminate", Overlap::TerminatePrevious),
];

/// Takes a minute and a half, and when it is asked to stop, ten seconds more.
async fn work(ctx: Ctx, (): ()) -> outlast::Result<()> {
    let Err(error) = ctx.sleep(seconds(90)).await else { return Ok(()) };
    ctx.sleep(seconds(10)).await?;
    Err(error)
}

/// A run: its id, when it was created and when it ended, and how.
type Ran = (String, i64, Option<i64>, Status);

/// One schedule per policy, looked after by so many engines; then one is paused, triggered, filled in, resumed and removed.
async fn story(world: &World, store: Arc<dyn Store>, engines: usize, policies: &[(&str, Overlap)]) -> Vec<Ran> {
    let mut all: Vec<Engine> = Vec::new();
    for _ in 0..engines {
        let engine: Outlast = world.engine_on(Arc::clone(&store)).workflow("work", work);
        all.push(engine.start().await.unwrap());
    }
    let engine = &all[0];
    let begin = world.now();
    for (id, overlap) in policies {
        let schedule = engine.schedule(id).every(seconds(60)).start("work", &()).overlap(*overlap);
        schedule.put().await.unwrap();
    }
    world.sleep(seconds(300)).await;
    let allow = engine.schedule_handle("allow").unwrap();
    allow.pause("enough").await.unwrap();
    let Triggered::Started(run) = allow.trigger_now().await.unwrap() else { panic!("it was to start") };
    // Not by its result: whoever does not drive it learns of that only when it looks.
    world.sleep(seconds(95)).await;
    assert_eq!(run.status().await.unwrap(), Status::Completed);
    assert_eq!(allow.backfill(begin, begin + seconds(60)).await.unwrap(), 1);
    assert!(allow.resume().await.unwrap());
    assert!(engine.schedule_handle("skip").unwrap().remove().await.unwrap());
    world.sleep(seconds(120)).await;
    assert_eq!(engine.schedules().await.unwrap().len(), policies.len() - 1);
    let page = engine.list().page_size(500).await.unwrap();
    let ran = |view: outlast::RunView| {
        let end = view.finished_at.map(|at| at.as_millis());
        (view.run.id.to_string(), view.created_at.as_millis(), end, view.status)
    };
    let mut runs: Vec<Ran> = page.runs.into_iter().map(ran).collect();
    runs.sort();
    for engine in all {
        engine.shutdown().await;
    }
    runs
}

fn in_memory(policies: &[(&str, Overlap)]) -> Vec<Ran> {
    let world = World::new();
    let runs = world.block_on(story(&world, world.store(), 1, policies));
    assert!(runs.len() > policies.len() * 3, "{runs:?}");
    runs
}

fn on(place: &Place, engines: usize, policies: &[(&str, Overlap)]) -> Vec<Ran> {
    place.world.block_on(story(&place.world, place.store(), engines, policies))
}

#[test]
fn schedules_do_the_same_on_sqlite_as_in_memory() {
    assert_eq!(on(&Place::sqlite(), 1, &POLICIES), in_memory(&POLICIES));
}

#[test]
fn schedules_do_the_same_on_postgres_as_in_memory() {
    assert_eq!(on(&Place::postgres("schedules"), 1, &POLICIES), in_memory(&POLICIES));
}

/// Row 28 and invariant 11: two engines do what one does.
#[test]
fn schedules_of_two_engines_on_postgres_fire_each_instant_once() {
    assert_eq!(on(&Place::postgres("schedules_two"), 2, &POLICIES[..2]), in_memory(&POLICIES[..2]));
}
