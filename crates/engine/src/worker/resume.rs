//! `builtin.resume_workflow`: the queue item that makes a run go on.
//!
//! It is kept as a column of the run's row, so that it cannot be there twice or be lost; whoever queues one by hand writes that column.

use outlast_core::id::RunId;
use serde_json::Value;

use crate::client::EngineError;

/// Names of tasks that begin so are the engine's own.
const RESERVED: &str = "builtin.";
pub(crate) const NAME: &str = "builtin.resume_workflow";
pub(crate) const QUEUE: &str = "system";
pub(crate) const PRIORITY: i16 = 10;

/// The run that is to go on, from the item's arguments.
pub(crate) fn run_of(args: &[u8]) -> Result<RunId, EngineError> {
    let args: Value = serde_json::from_slice(args).unwrap_or_default();
    let id = args.get(0).and_then(Value::as_str);
    let id = id.ok_or_else(|| EngineError::Invalid("resume_workflow requires workflow_id".to_owned()))?;
    Ok(RunId::new(id)?)
}

/// Whether a name is one of the engine's own.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED)
}

/// What to say to one who wants it.
pub(crate) fn refusal(name: &str) -> String {
    format!("{name:?} is a name of the engine's own; take one that does not begin with {RESERVED:?}")
}
