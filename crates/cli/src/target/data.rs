//! What commands are told about runs. The names of the fields are those of the HTTP API: what a script reads from the one it
//! reads from the other.

use outlast::{Awaited, Explanation, RunView};
use outlast_core::commit::WaitKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::words::instant;

/// A run, in a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) run: String,
    pub(crate) workflow: String,
    pub(crate) version: String,
    pub(crate) status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parked_at: Option<String>,
    pub(crate) generation: u64,
    pub(crate) events: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    pub(crate) created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finished_at: Option<String>,
}

impl From<RunView> for Run {
    fn from(view: RunView) -> Run {
        Run {
            run: view.run.id.to_string(),
            workflow: view.workflow.to_string(),
            version: view.version.to_string(),
            status: view.status.name().to_owned(),
            note: view.note,
            parked_at: view.parked_at.map(instant),
            generation: view.generation.0,
            events: view.next.0,
            parent: view.parent.map(|parent| parent.run.to_string()),
            created_at: instant(view.created_at),
            finished_at: view.finished_at.map(instant),
        }
    }
}

/// Something a run waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Awaiting {
    pub(crate) key: String,
    /// `timer`, `signal`, `approval`, `callback`, `task` or `child`.
    pub(crate) r#type: String,
    /// Which signal, task or child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// When it fires, since when it is open, or how it stands.
    pub(crate) state: String,
}

impl From<Awaited> for Awaiting {
    fn from(awaited: Awaited) -> Awaiting {
        match awaited {
            Awaited::Timer { key, due, .. } => Awaiting {
                key: key.to_string(),
                r#type: "timer".to_owned(),
                name: None,
                state: format!("until {}", instant(due)),
            },
            Awaited::Wait { key, kind, name, answered, since, .. } => Awaiting {
                key: key.to_string(),
                r#type: match kind {
                    WaitKind::Signal => "signal",
                    WaitKind::Approval => "approval",
                    WaitKind::Callback => "callback",
                }
                .to_owned(),
                name,
                state: if answered { "answered".to_owned() } else { format!("since {}", instant(since)) },
            },
            Awaited::Task { key, id, state } => Awaiting {
                key: key.to_string(),
                r#type: "task".to_owned(),
                name: Some(id.to_string()),
                state: format!("{state:?}").to_lowercase(),
            },
            Awaited::Child { key, run, status } => Awaiting {
                key: key.to_string(),
                r#type: "child".to_owned(),
                name: Some(run.to_string()),
                state: status.name().to_owned(),
            },
        }
    }
}

/// Something that happened in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Happened {
    pub(crate) generation: u64,
    pub(crate) index: u64,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    pub(crate) at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Value>,
}

/// Why a run stands where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Explained {
    pub(crate) run: String,
    pub(crate) workflow: String,
    pub(crate) version: String,
    pub(crate) status: String,
    pub(crate) woken: bool,
    /// All of it in plain sentences.
    pub(crate) text: String,
    pub(crate) operations: Vec<ExplainedOperation>,
}

/// An operation that is not completed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExplainedOperation {
    pub(crate) key: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    pub(crate) text: String,
}

impl From<Explanation> for Explained {
    fn from(explanation: Explanation) -> Explained {
        Explained {
            text: explanation.to_string(),
            run: explanation.run.id.to_string(),
            workflow: explanation.workflow.to_string(),
            version: explanation.version.to_string(),
            status: explanation.status.name().to_owned(),
            woken: explanation.woken,
            operations: explanation
                .operations
                .iter()
                .map(|operation| ExplainedOperation {
                    key: operation.key.to_string(),
                    kind: operation.kind.to_string(),
                    since: operation.since.map(instant),
                    until: operation.until.map(instant),
                    text: operation.to_string(),
                })
                .collect(),
        }
    }
}

/// Something somebody has to decide.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Approval {
    pub(crate) run: String,
    pub(crate) workflow: String,
    pub(crate) approval: String,
    pub(crate) title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) assignee: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
}

/// What became of something a run was told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) run: String,
    /// `delivered`, `buffered`, `duplicate` or `lost`.
    pub(crate) outcome: String,
    /// Where the run stands now.
    pub(crate) status: String,
    /// The run to go on with: itself, or the one that all its parents lead to.
    #[serde(skip)]
    pub(crate) root: String,
}

/// A run that was forked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Forked {
    pub(crate) run: String,
    pub(crate) new: bool,
    pub(crate) reissued: Vec<Reissued>,
}

/// An operation that was open at the cut of a fork.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reissued {
    pub(crate) key: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<String>,
}
