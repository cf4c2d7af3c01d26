//! Where a run was, what a script's variables held, and where in the source operations were asked for.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A run of a script as it was after some events of its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceView {
    /// After so many events.
    pub at: u64,
    /// How many the journal has.
    pub events: u64,
    /// Whether it had come to its end.
    pub ended: bool,
    /// Whether looking was given up before the event that was asked for: replaying so far takes too many instructions.
    pub gave_up: bool,
    /// How many calls waited.
    pub calls: u64,
    /// The first hundred of them.
    pub waiting: Vec<TracedCallView>,
}

/// A call that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TracedCallView {
    /// The function's name.
    pub function: String,
    /// The line it waits in, from 1.
    pub line: u32,
    /// What is written there.
    pub text: String,
    /// The operations it waits for; none if it waits for another call.
    pub operations: Vec<String>,
    /// The variables it sees, the innermost first.
    pub variables: Vec<TracedVariable>,
}

/// A variable, and what it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TracedVariable {
    /// Its name.
    pub name: String,
    /// A JSON text of at most 4096 bytes: what is longer is cut, and what cannot be written as JSON is described in
    /// parentheses.
    pub value: String,
}

/// Where a run asked for its operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LocationsView {
    /// How many events the journal has.
    pub events: u64,
    /// In the order of their keys.
    pub locations: Vec<OperationLocation>,
    /// Where the code of this server goes another way than the journal, if it does: what would come behind that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<String>,
}

/// Where an operation was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationLocation {
    /// Which operation.
    pub key: String,
    /// File, line and column.
    pub location: String,
}
