//! Work that grows with the journal must grow no faster than it.

use std::time::Duration;

use outlast_core::event::Event;
use outlast_core::id::Index;
use outlast_core::program::{Input, Progress};
use rustix::time::{ClockId, clock_gettime};

use super::Stage;
use super::stage::finished;
use crate::code::Ctx;
use crate::error::Result;

/// How long this thread had a core for it: what others do meanwhile does not count.
fn timed(run: impl FnOnce()) -> Duration {
    let began = on_core();
    run();
    on_core() - began
}

fn on_core() -> Duration {
    let told = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(told.tv_sec as u64, told.tv_nsec as u32)
}

async fn sequence(ctx: Ctx, steps: u32) -> Result<u32> {
    let mut sum = 0;
    for n in 0..steps {
        sum += ctx.step("add", async |_| Ok(n)).await?;
    }
    Ok(sum)
}

async fn together(ctx: Ctx, steps: u32) -> Result<usize> {
    let steps = (0..steps).map(|n| ctx.step("add", async move |_| Ok(n))).collect::<Vec<_>>();
    Ok(ctx.all(steps).await?.len())
}

fn name(place: u32) -> String {
    if place == 0 { "add".to_owned() } else { format!("add#{}", place + 1) }
}

/// Replays a journal of so many steps.
fn replay(stage: &mut Stage, facts: &[Event]) -> Duration {
    timed(|| {
        stage.resume_quietly(Input::Start);
        for (index, event) in facts.iter().enumerate() {
            stage.resume_quietly(Input::Fact { index: Index(index as u64), event });
        }
        assert!(matches!(stage.progress, Some(Progress::Finished(_))), "{:?}", stage.progress);
    })
}

fn facts(steps: u32) -> Vec<Event> {
    (0..steps).map(|n| finished(&name(n), n)).collect()
}

/// The best of three, so that a busy machine does not fail the test.
fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..3).map(|_| run()).min().unwrap()
}

#[test]
fn a_replay_of_ten_times_the_steps_costs_about_ten_times_as_much() {
    let cost = |steps| best(|| replay(&mut Stage::new(sequence, steps), &facts(steps)));
    let (short, long) = (cost(1_000), cost(10_000));
    println!("sequence: {short:?} for 1,000, {long:?} for 10,000");
    assert!(long < short * 25, "{short:?} for 1,000, {long:?} for 10,000");
}

#[test]
fn ten_times_as_many_steps_at_once_cost_about_ten_times_as_much() {
    let cost = |steps| best(|| replay(&mut Stage::new(together, steps), &facts(steps)));
    let (few, many) = (cost(1_000), cost(10_000));
    println!("together: {few:?} for 1,000, {many:?} for 10,000");
    assert!(many < few * 30, "{few:?} for 1,000, {many:?} for 10,000");
}

#[test]
fn ten_times_as_many_live_branches_cost_about_ten_times_as_much() {
    async fn branches(ctx: Ctx, count: u32) -> Result<usize> {
        let map = ctx.map("map", (0..count).collect(), async |ctx, n, _| ctx.step("add", async |_| Ok(n)).await);
        Ok(map.await?.succeeded())
    }
    let cost = |count| {
        best(|| {
            let mut stage = Stage::new(branches, count);
            timed(|| drop(stage.start().output()))
        })
    };
    let (few, many) = (cost(500), cost(5_000));
    println!("live: {few:?} for 500, {many:?} for 5,000");
    assert!(many < few * 30, "{few:?} for 500, {many:?} for 5,000");
}
