//! An error as it is recorded. Live code and replayed code receive the same one, so they cannot tell the difference.

use std::fmt;

use bytes::Bytes;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::limits::{MESSAGE_BYTES_MAX, TRACE_BYTES_MAX};

/// The codes the engine itself gives to errors. Authors may use any others.
pub mod code {
    /// A failure without a more telling code.
    pub const ERROR: &str = "error";
    /// The caller's run was cancelled or terminated while it waited.
    pub const ABORTED: &str = "aborted";
    /// The operation was cancelled.
    pub const CANCELLED: &str = "cancelled";
    /// A deadline passed.
    pub const TIMEOUT: &str = "timeout";
    /// Another signal had already resolved the operation this one was aimed at.
    pub const SIGNAL_LOST: &str = "signal_lost";
    /// An attempt at a task is over, and what is said about it comes too late.
    pub const TASK_LOST: &str = "task_lost";
    /// Another decision had already resolved the approval.
    pub const APPROVAL_LOST: &str = "approval_lost";
    /// The run was deleted.
    pub const RUN_LOST: &str = "run_lost";
    /// No registered version of the workflow matches the run's.
    pub const WORKFLOW_VERSION_MISMATCH: &str = "workflow_version_mismatch";
    /// The engine cannot go on with the run: it is parked, and nothing of it is lost.
    pub const PARKED: &str = "parked";
    /// A value does not have the required form.
    pub const VALIDATION_ERROR: &str = "validation_error";
    /// A loop edge was taken more often than it allows.
    pub const LOOP_ITERATION_EXCEEDED: &str = "loop_iteration_exceeded";
    /// An at-most-once step began, and nobody knows whether it ended: it is not run again.
    pub const STEP_IN_DOUBT: &str = "step_in_doubt";
    /// Every attempt at a task was used up by workers that died.
    pub const WORKER_LOST: &str = "worker_lost";
    /// Something is larger than its limit.
    pub const LIMIT_EXCEEDED: &str = "limit_exceeded";
    /// The author's code panicked.
    pub const PANIC: &str = "panic";
    /// The database refused a statement of a transaction.
    pub const SQL_ERROR: &str = "sql_error";
    /// A statement is not allowed inside a transaction: transaction control, session settings, Outlast's own tables.
    pub const SQL_DENIED: &str = "sql_denied";
    /// A value of a row, or a parameter, does not have the type that was asked for.
    pub const SQL_TYPE: &str = "sql_type";
    /// A transaction took longer than its store allows.
    pub const TRANSACTION_TIMEOUT: &str = "transaction_timeout";
    /// A transaction waited for something else than its own statements, or its `Tx` was used after its end.
    pub const TRANSACTION_MISUSED: &str = "transaction_misused";
    /// The store has no SQL, and so no transactions.
    pub const TRANSACTIONS_UNSUPPORTED: &str = "transactions_unsupported";
}

/// An error as it is recorded.
///
/// ```
/// use outlast_core::failure::{Failure, code};
///
/// let declined = Failure::new("card_declined", "the bank said no").permanent();
/// assert_eq!(declined.to_string(), "card_declined: the bank said no");
/// assert!(!Failure::new(code::ERROR, "connection reset").permanent);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What programs branch on: one of [`code`], or the author's own.
    pub code: String,
    /// What people read.
    pub message: String,
    /// More about it, as JSON text.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_json",
        deserialize_with = "read_json"
    )]
    pub data: Option<Bytes>,
    /// Whether trying again is pointless.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
    /// Where it came from, for people: the calls and the source line, where the author's program has such. It is of the run
    /// that failed; whoever passes the failure on as its own says where that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl Failure {
    /// A failure that may be retried, without data. Of a message longer than [`MESSAGE_BYTES_MAX`] the rest is cut off: it is
    /// recorded, and whatever is recorded has a limit.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let message = clipped(message.into(), MESSAGE_BYTES_MAX);
        Failure { code: code.into(), message, data: None, permanent: false, trace: None }
    }

    /// The same, not to be retried.
    #[must_use]
    pub fn permanent(self) -> Self {
        Failure { permanent: true, ..self }
    }

    /// The same, with more about it, as JSON text.
    #[must_use]
    pub fn with_data(self, data: impl Into<Bytes>) -> Self {
        Failure { data: Some(data.into()), ..self }
    }

    /// The same, with where it came from. Of a trace longer than [`TRACE_BYTES_MAX`] the rest is cut off.
    #[must_use]
    pub fn with_trace(self, trace: impl Into<String>) -> Self {
        Failure { trace: Some(clipped(trace.into(), TRACE_BYTES_MAX)), ..self }
    }

    /// What an operation fails with when it is cancelled.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Failure::new(code::CANCELLED, message).permanent()
    }

    /// What an operation fails with when its deadline passes.
    pub fn timeout(message: impl Into<String>) -> Self {
        Failure::new(code::TIMEOUT, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

/// In JSON, data is a value like any other; in a binary format it is bytes.
fn write_json<S: Serializer>(data: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return data.serialize(serializer);
    }
    match data {
        None => serializer.serialize_none(),
        Some(data) => serde_json::from_slice::<&RawValue>(data).map_err(S::Error::custom)?.serialize(serializer),
    }
}

fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    if !deserializer.is_human_readable() {
        return Option::deserialize(deserializer);
    }
    // Not an `Option`: it would read `null`, which is data, as no data. An absent field is no data.
    let value = Box::<RawValue>::deserialize(deserializer).map_err(D::Error::custom)?;
    Ok(Some(Bytes::copy_from_slice(value.get().as_bytes())))
}

fn clipped(mut message: String, most: usize) -> String {
    if message.len() > most {
        let end = format!(" … ({} bytes in all)", message.len());
        message.truncate(message.floor_char_boundary(most - end.len()));
        message.push_str(&end);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_as_plain_json() {
        let failure = Failure::new("card_declined", "no").with_data(r#"{"b":1,"a":[2]}"#).permanent();
        let text = serde_json::to_string(&failure).unwrap();
        assert_eq!(text, r#"{"code":"card_declined","message":"no","data":{"b":1,"a":[2]},"permanent":true}"#);
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), failure);
    }

    #[test]
    fn null_data_is_data() {
        let failure = Failure::new("error", "no").with_data("null");
        let text = serde_json::to_string(&failure).unwrap();
        assert_eq!(text, r#"{"code":"error","message":"no","data":null}"#);
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), failure);
        let without = Failure::new("error", "no");
        let text = serde_json::to_string(&without).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), without);
    }

    #[test]
    fn a_trace_is_a_field_of_its_own_and_has_a_limit() {
        let failure = Failure::new("error", "no").with_trace("at a (shop.wf:1:1)");
        let text = serde_json::to_string(&failure).unwrap();
        assert_eq!(text, r#"{"code":"error","message":"no","trace":"at a (shop.wf:1:1)"}"#);
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), failure);
        let long = Failure::new("error", "no").with_trace("é".repeat(TRACE_BYTES_MAX));
        assert!(long.trace.is_some_and(|trace| trace.len() <= TRACE_BYTES_MAX && trace.ends_with(" bytes in all)")));
    }

    #[test]
    fn data_that_is_not_json_is_an_error_and_not_a_panic() {
        assert!(serde_json::to_string(&Failure::new("error", "no").with_data("{")).is_err());
    }
}
