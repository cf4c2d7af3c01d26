//! Schedules of a case.

use std::time::Duration;

use outlast::Overlap;
use serde::{Deserialize, Serialize};

use crate::tree::Tree;

/// A schedule, and what its runs do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    /// How often, in milliseconds; whole seconds that divide a minute if it is said as a cron expression.
    pub every: u64,
    /// So much later, in milliseconds. A cron expression has none.
    pub offset: u64,
    /// Whether it is said as a cron expression.
    pub cron: bool,
    /// What becomes of an instant while the run before it has not ended.
    pub overlap: Overlap,
    /// How late an instant may be, in milliseconds.
    pub catch_up: u64,
    /// By how much an instant may be put off, in milliseconds: less than the interval.
    pub jitter: u64,
    /// How many runs it starts at most.
    pub remaining: Option<u64>,
    /// What its runs do.
    pub tree: Tree,
}

impl Timetable {
    /// How often it fires, as it is put first, or as it is put in place of that.
    pub fn interval(&self, other: bool) -> Duration {
        Duration::from_millis(if other { self.every * 2 } else { self.every })
    }

    /// The expression, if it is said as one.
    pub fn expression(&self, other: bool) -> Option<String> {
        self.cron.then(|| format!("*/{} * * * * *", self.interval(other).as_secs()))
    }
}

/// The id of a schedule, by its place in the case.
pub fn schedule_id(schedule: usize) -> String {
    format!("schedule-{schedule}")
}

/// The schedule that started the run with this id.
pub fn schedule_of(run: &str) -> Option<usize> {
    run.strip_prefix("schedule-")?.split('-').next()?.parse().ok()
}
