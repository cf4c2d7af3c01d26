//! Schedules: runs that are started again and again. What a schedule says is its [`Spec`], how far it is its [`State`]; both are
//! opaque to the store. [`Plan`] decides, without a clock and without a store, what to do next; the node and the client do it.

mod plan;
mod rule;
mod runs;
mod spec;
mod state;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_core::id::{RunId, ScheduleId};
use outlast_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use plan::{Plan, Stop, Turn};
pub(crate) use runs::{is_running, new_run};
pub(crate) use spec::{Asked, Draft, Spec};
pub(crate) use state::{Cause, Pause, State, Waiting, Wanted};

/// The search attribute that says which schedule started a run.
pub const SCHEDULE_ATTRIBUTE: &str = "outlast.schedule";

/// Firings that may wait at once, for the run before them to end.
pub(crate) const WAITING_MAX: usize = 100;
/// Firings that are remembered.
pub(crate) const RECENT_MAX: usize = 10;
/// Keys under which somebody wanted a run at once that are remembered.
pub(crate) const KEYS_MAX: usize = 64;
/// The longest id: with the instant behind it, it must still be the id of a run.
pub(crate) const ID_BYTES_MAX: usize = 200;

/// What becomes of a firing while the run before it has not ended. A run that is parked or paused has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It does not take place.
    #[default]
    Skip,
    /// Its run starts all the same.
    Allow,
    /// It waits for the end of that run; one at most waits, and others do not take place.
    BufferOne,
    /// It waits for the end of that run, behind those that wait already; a hundred at most wait, and others do not take
    /// place.
    BufferAll,
    /// That run is asked to stop, and when it has ended, with its cleanup, this one starts. If another is due meanwhile, that
    /// one starts instead.
    CancelPrevious,
    /// That run is terminated, and then this one starts.
    TerminatePrevious,
}

/// A firing of a schedule, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Firing {
    /// The instant it is for, before any jitter; for one that somebody triggered, when they did.
    pub at: Timestamp,
    /// What became of it.
    pub outcome: FiringOutcome,
}

/// What became of a firing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FiringOutcome {
    /// It started this run.
    Started(RunId),
    /// It did not take place: the run before it had not ended.
    Skipped,
    /// It waited, and a later one took its place.
    Replaced,
    /// Nobody was there at that time, and when somebody was, it was too late. Others after it may have been missed too.
    Missed,
    /// Its run could not be started, and why. The schedule goes on with the next.
    Refused(String),
}

/// Why a schedule cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the schedule {id:?} cannot be put: {problem}")]
pub(crate) struct InvalidSchedule {
    pub(crate) id: String,
    pub(crate) problem: String,
}

/// Says in one process that schedules changed, or may have.
#[derive(Debug, Default)]
pub(crate) struct Changes(AtomicBool);

impl Changes {
    pub(crate) fn tell(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether there were any since the last time somebody asked.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// An instant as people read it, in UTC.
pub(crate) struct Utc(pub(crate) Timestamp);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0.as_millis()) {
            Ok(at) => write!(f, "{at}"),
            // A clock that shows no year people would write.
            Err(_) => write!(f, "{}", self.0.as_millis()),
        }
    }
}

/// The run of a firing: the same for the same schedule and instant, so that nobody starts it twice.
fn run_id(schedule: &ScheduleId, waiting: &Waiting) -> RunId {
    let at = Utc(waiting.at);
    let id = match waiting.cause {
        Cause::Instant | Cause::Backfill => format!("{schedule}-{at}"),
        Cause::Trigger => format!("{schedule}-{at}-manual"),
    };
    RunId::new(id).expect("the id of a schedule leaves room for an instant")
}
