//! Why code cannot go on with a recorded journal.

use std::fmt;

use outlast_core::event::Kind;
use outlast_core::id::{Index, Key, Version, WorkflowName};
use outlast_core::operation::{Location, OperationKind};
use thiserror::Error;

use crate::drive::{Mismatch, RequestedInstead, Stop};

/// Why code cannot go on with a recorded journal. A run of that journal would park with this code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The code asks for something else than what is recorded.
    #[error("{0}. Keep the code this run began with as a previous version, or let the code ask for the same")]
    Diverged(Box<Divergence>),
    /// The version the run belongs to is not there.
    #[error(
        "workflow_version_mismatch: the run belongs to {workflow} version {version}, which is not registered; \
         register it as a previous version"
    )]
    NoCode {
        /// Which workflow.
        workflow: WorkflowName,
        /// Which version of it.
        version: Version,
    },
    /// The code does what no workflow may, such as wait for something outside its journal.
    #[error("{0}")]
    Unsound(String),
    /// The journal is damaged, or a newer release wrote it.
    #[error("the journal cannot be read: {0}; use the release that wrote it, or record it again")]
    Unreadable(String),
}

/// The first place where code and journal part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Where in the journal.
    pub index: Index,
    /// The kind of event that is recorded there.
    pub recorded: Kind,
    /// The operation it is about.
    pub key: Option<Key>,
    /// What the code asks for instead: under the same key, or, if the code does not ask for that one, under others.
    /// Empty if the code has come to its end.
    pub requested: Vec<(OperationKind, Key)>,
    /// Where in the source it does.
    pub location: Option<Location>,
    text: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Mismatch> for Divergence {
    fn from(mismatch: Mismatch) -> Self {
        let text = mismatch.difference().to_string();
        let Mismatch { index, recorded, requested } = mismatch;
        let (requested, location) = match requested {
            RequestedInstead::Other { kind, location, .. } => {
                (recorded.key.iter().map(|key| (kind, key.clone())).collect(), location)
            }
            RequestedInstead::Nothing { instead } => {
                let location = instead.first().and_then(|(.., location)| location.clone());
                (instead.into_iter().map(|(kind, key, _)| (kind, key)).collect(), location)
            }
            RequestedInstead::End | RequestedInstead::OtherEnd { .. } => (Vec::new(), None),
        };
        Divergence { index, recorded: recorded.kind, key: recorded.key, requested, location, text }
    }
}

impl From<Stop> for ReplayError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Mismatch(mismatch) => ReplayError::Diverged(Box::new(mismatch.into())),
            Stop::Unsound(message) => ReplayError::Unsound(message),
            Stop::Journal(error) => ReplayError::Unreadable(error.to_string()),
        }
    }
}
