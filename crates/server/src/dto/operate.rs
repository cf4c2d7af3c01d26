//! Running the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The process lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// The server's version.
    pub version: String,
}

/// Whether the server can work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ready {
    /// `ready`, `draining` or `unavailable`.
    pub status: String,
}

/// Whose token this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoAmI {
    /// The token's name, which stands beside approvals and in the audit log.
    pub name: String,
    /// The namespace it acts in.
    pub namespace: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// Whether a cookie said so, and not the header `Authorization`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub session: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Begins a session.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// The token, as it would stand behind `Bearer`.
    pub token: String,
}

impl std::fmt::Debug for SessionRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionRequest(…)")
    }
}

/// Asks the doctor to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorRequest {
    /// Repairs what the journals prove.
    #[serde(default)]
    pub repair: bool,
}

/// What the doctor found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoctorReport {
    /// Runs that were looked at.
    pub runs: u64,
    /// Whether nothing is wrong, or everything that was wrong has been repaired.
    pub healthy: bool,
    /// What is wrong, run by run.
    pub findings: Vec<DoctorFinding>,
}

/// Something the doctor found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoctorFinding {
    /// Which run.
    pub run: String,
    /// What is wrong with it.
    pub ailment: String,
    /// Whether it was repaired just now.
    pub repaired: bool,
    /// Why it was not, where that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A line of the audit log: who did what, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Audited {
    /// Counts up from 0.
    pub index: u64,
    /// When.
    pub at: String,
    /// Whose token; `callback` for whoever held the token of one, and `hook …` for a webhook.
    pub who: String,
    /// The id of that token, by which two of the same name are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// In which namespace.
    pub namespace: String,
    /// The route: `POST /api/v1/runs/{run}/cancel`.
    pub action: String,
    /// On what: the path as it was asked for, without secrets.
    pub target: String,
    /// The run, task or bulk action that the answer names and the path does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// The hash of the line before: whoever changes or removes a line breaks the chain.
    pub previous: String,
}

/// What became of what a webhook said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookReceived {
    /// The run that was started or told.
    pub run: String,
    /// Whether it is new.
    pub new: bool,
    /// `delivered`, `buffered` or `duplicate`.
    pub outcome: String,
    /// Where the run stands at its next pause or end, if the webhook waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// A question in SQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskSql {
    /// One statement that only reads.
    pub query: String,
    /// At most so many rows: from 1 to 1000, 1000 otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

/// What a question in SQL is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SqlAnswer {
    /// What the columns are called.
    pub columns: Vec<String>,
    /// The rows, each with a value for every column. Bytes are text if they are one, and `\\x…` otherwise.
    pub rows: Vec<Vec<serde_json::Value>>,
    /// Whether there were more, of which there was no room.
    pub more: bool,
}
