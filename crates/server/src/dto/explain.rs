//! Why a run stands where it stands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a run stands where it stands, and what would move it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explained {
    /// Which run.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
    /// Where it stands, in a word.
    pub status: String,
    /// Why there: `queued`, `held`, `driven_here`, `driven_elsewhere`, `suspended`, `paused`, `parked` or `ended`.
    pub standing: String,
    /// All of it in plain sentences.
    pub text: String,
    /// Whether something came for it and nobody has taken it up yet.
    pub woken: bool,
    /// Every operation that is not completed, as far as that was asked for.
    pub operations: Vec<ExplainedOperation>,
    /// How many more there are.
    #[serde(default)]
    pub left_out: u64,
    /// When the first of all of them fires, times out or is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_wake: Option<String>,
    /// What was left for it and not yet read, the oldest first.
    pub inbox: Vec<InboxEntry>,
    /// Why its journal cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// An operation that is not completed, and what would complete it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedOperation {
    /// Which.
    pub key: String,
    /// What it is.
    pub kind: String,
    /// The scope it lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Where it stands, if that is known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Since when it is in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// When it fires, times out or is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Where in the workflow it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What would wake the run for it: `body`, `retry`, `timer`, `signal`, `approval`, `callback`, `child`, `task`, `inside`.
    pub waits_for: String,
    /// Which signal, approval, callback, child or task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether what it waits for is there, to be read.
    pub arrived: bool,
    /// In a plain sentence.
    pub text: String,
}

/// Something that was left for a run and not yet read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InboxEntry {
    /// What it is.
    pub kind: String,
    /// The operation it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A signal's name, a timer's kind, a task's or child's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Since when.
    pub since: String,
}

/// What a run does right now, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationList {
    /// Whether the run's program is in this process. If not, ask `explain`.
    pub here: bool,
    /// Every operation that is not completed.
    pub operations: Vec<OperationView>,
}

/// An operation that is not completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationView {
    /// Which.
    pub key: String,
    /// What it is.
    pub kind: String,
    /// The scope it lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Where it stands.
    pub state: String,
    /// When it fires, times out or is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Where in the workflow it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}
