//! What runs are told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;
use super::run::FailureView;

/// Sends a signal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// What it says; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Json>,
    /// The same id is applied once for the life of the run; the header `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// For this operation and no other, by its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// What became of something a run was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivered {
    /// `delivered`, `buffered` (kept until the run asks for it), `duplicate` (accepted before, under the same id) or `lost` (a
    /// run that has ended is not paused any more).
    pub outcome: String,
}

/// Asks for something, and says why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// Lets a paused run go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Something to tell it: a flow's expressions find it in `messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub message: Option<Json>,
}

/// Whether a run was parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unparked {
    /// If not, nothing was done.
    pub was_parked: bool,
}

/// What an operator does to a flow's node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeRequest {
    /// By its key: `ok`, `lines/47/label`.
    pub node: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Decides an approval. Who decides is taken from the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Yes or no.
    pub approved: bool,
    /// What to say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// An approval that nobody has decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalView {
    /// The run that waits for it.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// The id the decision must name.
    pub approval: String,
    /// What the person reads.
    pub title: String,
    /// Who should decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Since when it waits.
    pub since: String,
    /// Until when it can be decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Approvals that nobody has decided, those of the newest runs first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalList {
    /// The approvals.
    pub approvals: Vec<ApprovalView>,
    /// Where the next page begins; none at the end. A page may be empty and have a next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Answers a callback.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveCallback {
    /// The answer; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub value: Option<Json>,
}

/// Answers a callback with an error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailCallback {
    /// What the workflow's await fails with.
    pub error: FailureView,
}
