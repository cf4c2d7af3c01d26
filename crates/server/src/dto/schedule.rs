//! Schedules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;

/// Puts a schedule. Exactly one of `cron`, `every_ms` and `once_at` must be given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutSchedule {
    /// Fires when the wall clock shows what this says: `0 3 * * *`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Fires at regular intervals, counted from the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// Fires once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_at: Option<String>,
    /// Whose wall clock: `Europe/Berlin`. UTC if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// So much later than `every_ms` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ms: Option<u64>,
    /// Which workflow to start.
    pub workflow: String,
    /// With which input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Json>,
    /// Which version; the current one if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// While the run before has not ended: `skip`, `allow`, `buffer_one`, `buffer_all`, `cancel_previous` or
    /// `terminate_previous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// How late a firing may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up_ms: Option<u64>,
    /// Fires later by some time up to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<u64>,
    /// No instant before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// No instant after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// How many runs its instants start at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    /// For people who look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// If it is new, it is paused from the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// A schedule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    /// Its id.
    pub schedule: String,
    /// When it fires, in words.
    pub when: String,
    /// Which workflow it starts.
    pub workflow: String,
    /// Which version of it; the current one if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// With which input.
    #[schema(value_type = serde_json::Value)]
    pub input: Json,
    /// What becomes of a firing while the run before it has not ended.
    pub overlap: String,
    /// How late a firing may be.
    pub catch_up_ms: u64,
    /// Fires later by some time up to this.
    pub jitter_ms: u64,
    /// No instant before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// No instant after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// How many runs its instants may still start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    /// For people who look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<String>,
    /// Its next five instants.
    pub next_times: Vec<String>,
    /// The instants that wait for the run before them to end.
    pub waiting: Vec<String>,
    /// The run it started last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// How many runs it has started.
    pub started: u64,
    /// How many firings did not take place because the run before them had not ended.
    pub skipped: u64,
    /// What became of its last firings, the newest last.
    pub recent: Vec<ScheduleFiring>,
}

/// What became of a firing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleFiring {
    /// Of which instant.
    pub at: String,
    /// `started`, `skipped`, `replaced`, `missed` or `refused`.
    pub outcome: String,
    /// The run it started, or why that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// All schedules of the namespace, by id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// The schedules.
    pub schedules: Vec<ScheduleView>,
}

/// What became of a run that somebody wanted at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Triggered {
    /// `started`, `waits` or `skipped`.
    pub outcome: String,
    /// The run, if it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// Starts the runs of instants that passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Backfill {
    /// From this instant on.
    pub from: String,
    /// Up to this one, which is not in the future.
    pub to: String,
}

/// How many instants are backfilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backfilled {
    /// So many.
    pub instants: u64,
}
