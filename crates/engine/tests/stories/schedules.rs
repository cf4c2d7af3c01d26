//! Schedules. Row 28 and invariant 11: one run per schedule and instant.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod crashes;
mod hands;
mod overlaps;
mod times;

use std::time::Duration;

use outlast::{Ctx, Engine, NewSchedule, Outlast, ScheduleHandle, Status, Timestamp};

use crate::support::seconds;

/// When every world begins: at 22:13:20, so that the first full minute is after 40 seconds.
pub(crate) const BEGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// So many seconds after the beginning.
pub(crate) fn after(seconds: u64) -> Timestamp {
    BEGIN + Duration::from_secs(seconds)
}

/// The instant so many seconds after the beginning, as it is in the ids of runs.
pub(crate) fn name(seconds: u64) -> String {
    jiff::Timestamp::from_millisecond(after(seconds).as_millis()).unwrap().to_string()
}

/// Takes so many seconds.
pub(crate) async fn work(ctx: Ctx, length: u64) -> outlast::Result<()> {
    ctx.sleep(seconds(length)).await
}

/// Takes so many seconds, and when it is asked to stop, thirty more to tidy up.
pub(crate) async fn tidy(ctx: Ctx, length: u64) -> outlast::Result<()> {
    let Err(error) = ctx.sleep(seconds(length)).await else { return Ok(()) };
    ctx.sleep(seconds(30)).await?;
    Err(error)
}

pub(crate) fn register(engine: Outlast) -> Outlast {
    engine.workflow("work", work).workflow("tidy", tidy)
}

/// Every minute, a run that takes so long.
pub(crate) fn every_minute(engine: &Engine, length: u64) -> NewSchedule<'_> {
    engine.schedule("s").every(seconds(60)).start("work", &length)
}

/// A run of the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Which instant it is for, in seconds after the beginning, where that is in its id.
    pub(crate) instant: Option<u64>,
    /// When it was created, in seconds after the beginning.
    pub(crate) created: u64,
    pub(crate) ended: Option<u64>,
    pub(crate) status: Status,
}

/// All runs of the schedule, the oldest first.
pub(crate) async fn runs(engine: &Engine) -> Vec<Ran> {
    try_runs(engine).await.unwrap()
}

/// All runs of the schedule, the oldest first, from an engine that may die meanwhile.
pub(crate) async fn try_runs(engine: &Engine) -> Option<Vec<Ran>> {
    let page = engine.list().attribute(outlast::SCHEDULE_ATTRIBUTE, "s").page_size(200).await.ok()?;
    let since = |at: Timestamp| at.since(BEGIN).as_secs();
    let ran = |view: outlast::RunView| Ran {
        instant: (0..200_000).step_by(20).find(|at| view.run.id.as_str() == format!("s-{}", name(*at))),
        created: since(view.created_at),
        ended: view.finished_at.map(since),
        status: view.status,
    };
    Some(page.runs.into_iter().rev().map(ran).collect())
}

/// The instants of all runs, and when they were created.
pub(crate) async fn starts(engine: &Engine) -> Vec<(u64, u64)> {
    runs(engine).await.into_iter().map(|ran| (ran.instant.expect("an instant"), ran.created)).collect()
}

pub(crate) fn handle(engine: &Engine) -> ScheduleHandle {
    engine.schedule_handle("s").unwrap()
}

/// What is awaited in a spawned task must be able to move there.
#[test]
fn what_clients_await_can_be_spawned() {
    fn moves<T: Send>(_: T) {}
    fn all(engine: &Engine, handle: &ScheduleHandle) {
        moves(engine.schedule("s").every(seconds(60)).start("work", &1).put());
        moves(engine.schedules());
        moves(handle.describe());
        moves(handle.pause("lunch"));
        moves(handle.resume());
        moves(handle.trigger_now());
        moves(handle.trigger_once("key"));
        moves(handle.backfill(BEGIN, BEGIN));
        moves(handle.remove());
        moves(handle.next_times(5));
    }
    let _ = all;
}
