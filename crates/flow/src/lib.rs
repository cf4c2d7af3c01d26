//! The flow style of Outlast: graphs of nodes with containers, whose state is a fold of the journal.
//!
//! Everything here is a function of its arguments: no clock, no randomness, no I/O.

mod decide;
mod enter;
mod focus;
mod fold;
mod items;
mod left;
mod limits;
mod load;
mod mark;
mod model;
mod position;
mod program;
mod render;
mod schema;
mod scope;
mod snapshot;
mod state;
mod template;
mod tree;
mod walk;

pub use fold::DeriveError;
pub use limits::FlowLimits;
pub use load::Flow;
pub use outlast_script::{Diagnostics, RunInfo};
pub use position::{ContainerFrame, NodeStatus, Position, decide, derive};
pub use program::{FlowProgram, StepCall};
pub use render::{Picture, render};
pub use snapshot::SnapshotError;

/// The JSON Schema of the format, for editors.
pub const SCHEMA: &str = include_str!("../schema/flow.schema.json");

/// The fields of the format, for the test that compares them with [`SCHEMA`].
#[doc(hidden)]
pub mod fields {
    pub use crate::load::FLOW_FIELDS as FLOW;
    pub use crate::load::container::CASE_FIELDS as CASE;
    pub use crate::load::edges::EDGE_FIELDS as EDGE;
    pub use crate::load::node::{NODE_FIELDS as NODE, NODE_TYPES as TYPES};
    pub use crate::load::options::{DEFAULT_FIELDS as DEFAULTS, RETRY_FIELDS as RETRY};
}

/// A file as JSON, as it stands: what [`SCHEMA`] is about.
pub fn to_json(text: &str) -> Result<serde_json::Value, Diagnostics> {
    let source = outlast_script::Source::new("flow", text);
    tree::Tree::parse(text).map(|tree| tree.json()).map_err(|problem| Diagnostics::new(source, vec![problem]))
}
