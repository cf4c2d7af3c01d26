//! Runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;

/// Starts a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// Of this workflow.
    pub workflow: String,
    /// With this input; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Json>,
    /// The run's id; a new one if there is none. The same id with the same input is the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Which version; the current one if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Search attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// A larger one is driven sooner; 10 if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -32_768, maximum = 32_767)]
    pub priority: Option<i16>,
    /// Begins so much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Begins when all of these have room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concurrency: Vec<Limit>,
    /// While a run with this key has not ended, it answers for this start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub singleton: Option<String>,
    /// A signal that is delivered with the start, in one transaction, whether the run is new or was there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalWith>,
}

/// At most so many runs with a key at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Who shares it.
    pub key: String,
    /// How many.
    pub max: u32,
}

/// A signal that comes with a start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalWith {
    /// The signal's name.
    pub name: String,
    /// What it says; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Json>,
    /// The same id is applied once for the life of the run.
    pub id: String,
}

/// A run that was started, or was there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Started {
    /// Which run.
    pub run: String,
    /// Whether this start made it.
    pub new: bool,
}

/// A run, in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// Its id.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// The version it began with.
    pub version: String,
    /// `queued`, `running`, `waiting`, `paused`, `parked`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// Why it is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Since when it is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_at: Option<String>,
    /// How often it continued as new.
    pub generation: u64,
    /// How many events its journal has.
    pub events: u64,
    /// The run that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// When it was created.
    pub created_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
}

/// A page of runs, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Where the next page begins; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A run with everything it waits for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// In a line.
    pub summary: RunSummary,
    /// What it began with.
    #[schema(value_type = serde_json::Value)]
    pub input: Json,
    /// Its search attributes.
    pub attributes: BTreeMap<String, String>,
    /// What it waits for.
    pub awaiting: Vec<AwaitedView>,
}

/// Something a run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AwaitedView {
    /// A timer.
    Timer {
        /// The operation.
        key: String,
        /// `delay`, `timeout`, `retry` or `heartbeat`.
        kind: String,
        /// When it fires.
        due: String,
    },
    /// A signal.
    Signal {
        /// The operation.
        key: String,
        /// The signal's name.
        name: String,
        /// Whether one is there, to be read.
        answered: bool,
        /// Since when.
        since: String,
    },
    /// A decision.
    Approval {
        /// The operation, which is the approval's id.
        key: String,
        /// Who should decide.
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee: Option<String>,
        /// Whether it is decided, and that is to be read.
        answered: bool,
        /// Since when.
        since: String,
    },
    /// An answer of whoever holds the token.
    Callback {
        /// The operation, which is the callback's id.
        key: String,
        /// Whether the answer is there, to be read.
        answered: bool,
        /// Since when.
        since: String,
    },
    /// A task.
    Task {
        /// The operation.
        key: String,
        /// Which task.
        task: String,
        /// `ready`, `claimed`, `delayed` or `dead`.
        state: String,
    },
    /// A child.
    Child {
        /// The operation.
        key: String,
        /// Which run.
        run: String,
        /// Where it stands.
        status: String,
    },
}

/// What a run came to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunResult {
    /// Which run.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// Where it stands. If it is not `completed`, `failed` or `cancelled`, there is no end yet.
    pub status: String,
    /// What it returned, if it is `completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<Json>,
    /// Why it ended without an output, or why it is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureView>,
}

/// An error of a workflow or task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureView {
    /// What programs branch on.
    pub code: String,
    /// What people read.
    pub message: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<Json>,
    /// Whether trying again is pointless.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
    /// Where it came from, for people: the calls and the source line, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Makes a new run out of the beginning of another one's history. Exactly one of `at`, `node` and `failed` must be given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkRun {
    /// How many events to keep.
    #[serde(default, deserialize_with = "crate::body::whole", skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Of a flow: the node to begin with again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Of a run that has failed: keep everything before what failed last, and try that again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The new run's id; a new one if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Another input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Json>,
}

/// A run that was forked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Forked {
    /// The new run.
    pub run: String,
    /// Whether this request made it.
    pub new: bool,
    /// What was open at the cut, and is issued again.
    pub reissued: Vec<ReissuedOperation>,
}

/// An operation that was open at the cut of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReissuedOperation {
    /// Which.
    pub key: String,
    /// What it is.
    pub kind: String,
    /// When it fires, times out or is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// The child or task the original run has for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The child the new run starts for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
}
