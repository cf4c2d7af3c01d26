//! What lists show as it changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RunSummary;

/// How many runs stand where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunCounts {
    /// By status; without those of which there are none.
    pub counts: BTreeMap<String, u64>,
}

/// What is new about a list of runs. The first one that a stream tells has everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunsChange {
    /// Runs that are new in the list, or have changed.
    pub runs: Vec<RunSummary>,
    /// The ids of the list from now on, the newest first; nothing if it has the same runs as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<String>>,
    /// Where the list ends, if there are more; told with the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many runs of the namespace stand where, whatever the list is of; nothing if that has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<BTreeMap<String, u64>>,
}
