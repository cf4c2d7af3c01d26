//! One action for many runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Does one thing to every run that fits. What fits is decided once, when it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// `pause`, `resume`, `unpark`, `retry`, `cancel`, `terminate` or `delete`. `retry` forks runs that have failed, and tries again
    /// what failed.
    pub action: String,
    /// Only those that stand here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// Only those of this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Only those of this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Only those whose id begins so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only those created before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_until: Option<String>,
    /// Without any of the above: every run that the action makes sense for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Only counts them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// How far a bulk action is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkView {
    /// Its id; none if runs were only counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<String>,
    /// `counted`, `running` or `done`.
    pub state: String,
    /// How many runs fit.
    pub matched: u64,
    /// To how many it was done.
    pub done: u64,
    /// How many had come to where it makes no sense any more.
    pub refused: u64,
    /// Some of the refusals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<BulkRefusal>,
}

/// A run that a bulk action did nothing to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkRefusal {
    /// Which.
    pub run: String,
    /// Why, for programs.
    pub code: String,
    /// Why, for people.
    pub message: String,
}
