//! Workflows that are text.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Puts the text of a script or flow: new runs begin with it, others go on with what they began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutWorkflow {
    /// The file's name, for messages and because it says what is in it: `….wf` is a script, `….flow.yaml` a flow.
    pub file: String,
    /// What is written in it.
    pub text: String,
}

/// A text was put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowPut {
    /// The workflows it has.
    pub workflows: Vec<String>,
}

/// One version of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowVersionView {
    /// Of which workflow.
    pub workflow: String,
    /// Declared, if it is code; otherwise the hash of its text.
    pub version: String,
    /// `code`, `script` or `flow`.
    pub style: String,
    /// The file its text came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// When its text was new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_at: Option<String>,
    /// Whether new runs begin with it.
    pub current: bool,
}

/// Workflows, or versions of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowList {
    /// What new runs can begin with, by name; or all versions of a workflow, the oldest text first.
    pub workflows: Vec<WorkflowVersionView>,
    /// What is wrong with files that the server follows: what they said before holds. Told to callers of the server's own
    /// namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<FileMistake>,
}

/// A file that cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileMistake {
    /// Which file.
    pub file: String,
    /// What is wrong with it, with lines and columns where that is known.
    pub text: String,
}

/// A workflow with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowText {
    /// Which version.
    pub version: WorkflowVersionView,
    /// What is written; none if it is code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
