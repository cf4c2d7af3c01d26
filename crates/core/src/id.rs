//! Identifiers. A type per concept, so that a run id can never be passed where a key is meant; validated where they
//! are made, so that an empty or unprintable id cannot exist.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a text cannot be an id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidId {
    /// The text is empty.
    #[error("a {what} must not be empty")]
    Empty {
        /// Which kind of id was meant.
        what: &'static str,
    },
    /// The text is longer than the kind of id may be.
    #[error("a {what} may have at most {max} bytes, this one has {bytes}")]
    TooLong {
        /// Which kind of id was meant.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The text contains a control character (a line break, a NUL …), which no store or terminal keeps apart.
    #[error("a {what} must not contain control characters: {text:?}")]
    Control {
        /// Which kind of id was meant.
        what: &'static str,
        /// The text.
        text: String,
    },
}

fn check(what: &'static str, text: &str, max: usize) -> Result<(), InvalidId> {
    if text.is_empty() {
        return Err(InvalidId::Empty { what });
    }
    if text.len() > max {
        return Err(InvalidId::TooLong { what, bytes: text.len(), max });
    }
    // Most are ASCII, and looked at often.
    let control = if text.is_ascii() {
        text.bytes().any(|byte| byte.is_ascii_control())
    } else {
        text.chars().any(char::is_control)
    };
    if control {
        return Err(InvalidId::Control { what, text: text.to_owned() });
    }
    Ok(())
}

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident, $what:literal, $max:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The longest one, in bytes.
            pub const BYTES_MAX: usize = $max;

            /// Checks and wraps a text.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                check($what, text, Self::BYTES_MAX)?;
                Ok(Self(text.into()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidId;
            fn try_from(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }
    )+};
}

text_ids! {
    /// A tenant. Every stored row belongs to one; nothing refers across.
    Namespace, "namespace", 64;
    /// One execution of a workflow, unique within its namespace.
    RunId, "run id", 255;
    /// The name of a workflow definition.
    WorkflowName, "workflow name", 128;
    /// A workflow's declared version (code) or content hash (script, flow).
    Version, "version", 128;
    /// An operation's identity within its run: scope path plus name, `ship/0/label`.
    Key, "operation key", 1024;
    /// Who shares a limit, a fair share, or a place: a tenant, an API.
    LimitKey, "limit key", 255;
    /// The name of a signal.
    SignalName, "signal name", 255;
    /// Who or what a delivery is: the same id is never applied twice to a run.
    DeliveryId, "delivery id", 255;
    /// One item of work in a task queue, unique within its namespace.
    TaskId, "task id", 512;
    /// The name of a task: which handler does the work.
    TaskName, "task name", 128;
    /// The name of a task queue.
    QueueName, "queue name", 128;
    /// A process that drives runs.
    NodeId, "node id", 128;
    /// A process that does tasks.
    WorkerId, "worker id", 128;
    /// A schedule, unique within its namespace.
    ScheduleId, "schedule id", 255;
    /// The name of a search attribute.
    AttributeName, "attribute name", 64;
}

impl Namespace {
    /// The namespace every store begins with.
    pub fn default_namespace() -> Self {
        Namespace("default".into())
    }
}

/// The full name of a run: its namespace and its id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// The tenant.
    pub namespace: Namespace,
    /// The run's id within it.
    pub id: RunId,
}

impl RunKey {
    /// Joins a namespace and an id.
    pub fn new(namespace: Namespace, id: RunId) -> Self {
        RunKey { namespace, id }
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.id)
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The next one. Saturates, so that it never goes backwards.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )+};
}

numbers! {
    /// A position in a run's journal, from 0, without gaps.
    Index;
    /// Raised each time a run changes hands; a write with an older one is refused.
    Fence;
    /// Which journal of a run: `continue_as_new` opens the next one.
    Generation;
    /// A node's period of ownership. A lapsed one is never renewed: the node gets a new one.
    LeaseId;
    /// An item in a run's inbox; a larger one came later.
    InboxId;
    /// Raised each time a task is claimed; a result with an older one is refused.
    TaskToken;
    /// Raised each time a schedule changes; a change that was decided on an older one is refused. Also counts what was defined.
    Revision;
}

/// Names one claim, chosen by the claimer: asking again with the same id gives the same items, so that a claim whose
/// reply was lost strands nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimId(pub u64);

/// Names the transaction a commit was part of, so that a lost reply can be resolved instead of guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TxnId(pub uuid::Uuid);

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_id_cannot_exist() {
        assert_eq!(RunId::new(""), Err(InvalidId::Empty { what: "run id" }));
        assert!(serde_json::from_str::<RunId>("\"\"").is_err());
    }

    #[test]
    fn the_longest_id_is_accepted_and_one_byte_more_is_not() {
        assert!(RunId::new("x".repeat(RunId::BYTES_MAX)).is_ok());
        let error = RunId::new("x".repeat(RunId::BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "a run id may have at most 255 bytes, this one has 256");
    }

    #[test]
    fn a_nul_byte_is_refused_because_postgresql_could_not_store_it() {
        assert!(matches!(Key::new("a\0b"), Err(InvalidId::Control { .. })));
    }

    #[test]
    fn numbers_never_go_backwards() {
        assert_eq!(Fence(u64::MAX).next(), Fence(u64::MAX));
    }
}
