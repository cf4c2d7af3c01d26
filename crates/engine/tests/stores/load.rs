//! Very much falls due at once, and nobody hints at anything.

use outlast::{Ctx, Status};

use crate::counts::counted;
use crate::jobs::{Jobs, gives};
use crate::place::{Place, node, seconds};

/// How many runs sleep, and how many sleeps each has: a hundred thousand timers.
const RUNS: usize = 1_000;
const EACH: usize = 100;
/// What all of it may need in memory beside the runs that are driven.
const MEMORY_MAX_KIB: u64 = 256 * 1_024;

async fn sleeps(ctx: Ctx, (): ()) -> outlast::Result<()> {
    let naps: Vec<_> = (0..EACH).map(|n| ctx.sleep(seconds(60)).id(&format!("{n}")).start()).collect();
    for nap in naps {
        nap.await?;
    }
    Ok(())
}

/// The most memory this process ever had.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Row 2: all are due while nobody drives; whoever comes back fires each of them once, and has room for it.
#[test]
fn row_2_a_hundred_thousand_due_timers_are_drained_on_postgresql_in_bounded_memory() {
    drained_in_bounded_memory(&Place::postgres("row_2"));
}

#[test]
fn row_2_a_hundred_thousand_due_timers_are_drained_on_sqlite_in_bounded_memory() {
    drained_in_bounded_memory(&Place::sqlite());
}

fn drained_in_bounded_memory(place: &Place) {
    counted(|counts| {
        place.world.block_on(async {
            let engine = node(&place.process()).workflow("sleeps", sleeps).start().await.unwrap();
            for run in 0..RUNS {
                engine.start("sleeps", &()).id(&run.to_string()).await.unwrap();
            }
            place.world.sleep(seconds(1)).await;
            engine.shutdown().await;
            place.world.sleep(seconds(3_600)).await;
            let before = memory_kib();
            let engine = node(&place.process()).workflow("sleeps", sleeps).start().await.unwrap();
            for run in 0..RUNS {
                engine.run(&run.to_string()).unwrap().result::<()>().await.unwrap();
            }
            assert_eq!(counts.timers_fired(), (RUNS * EACH) as u64);
            let grown = memory_kib() - before;
            println!("{} timers: {grown} KiB more than before, {} resumes", RUNS * EACH, counts.resumes());
            assert!(grown <= MEMORY_MAX_KIB, "{grown} KiB");
        });
    });
}

/// Row 46: every `NOTIFY` is lost, and each look that follows finds what there is.
#[test]
fn row_46_what_nobody_hinted_at_is_found_within_two_seconds() {
    async fn work(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.task("job", &gives(7, 0)).await
    }
    let place = Place::postgres("row_46");
    assert!(place.store().hints().is_none(), "nobody hints");
    place.world.block_on(async {
        let jobs = Jobs::new(&place.world);
        let client = node(&place.process()).without_loops().workflow("work", work).start().await.unwrap();
        let _driver = node(&place.process()).workflow("work", work).start().await.unwrap();
        let _worker = node(&place.process()).handler(jobs.handler()).start().await.unwrap();
        for number in 0..10_u64 {
            // Each time at another moment between two looks.
            place.world.sleep(std::time::Duration::from_millis(5_000 + 137 * number)).await;
            let id = number.to_string();
            let begun = place.world.elapsed();
            client.start("work", &()).id(&id).await.unwrap();
            while jobs.attempts().len() as u64 <= number {
                place.world.sleep(std::time::Duration::from_millis(50)).await;
            }
            // The run is found at one look, and its task at another.
            let found = jobs.attempts()[number as usize].begun - begun;
            assert!(found <= 2 * seconds(2), "the task was found after {found:?}");
            let done = place.world.elapsed();
            while client.run(&id).unwrap().status().await.unwrap() != Status::Completed {
                place.world.sleep(std::time::Duration::from_millis(50)).await;
            }
            let resumed = place.world.elapsed() - done;
            assert!(resumed <= seconds(2), "the run was resumed after {resumed:?}");
        }
    });
}
