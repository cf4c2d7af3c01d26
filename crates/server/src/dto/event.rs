//! What happened in a run.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;

/// Something that happened in a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunEvent {
    /// In which generation's journal.
    pub generation: u64,
    /// Its place there; none for what is only told, and not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// What happened: `STEP_FINISHED`, `RUN_PAUSED` …
    pub kind: String,
    /// The operation it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// More about it: deadlines, errors, attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<Json>,
    /// The author's value: a result, a signal's payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Json>,
}

impl RunEvent {
    /// How the stream names it, to go on behind it: its index, with the generation before it from the second one on. None
    /// for what is only told.
    pub fn id(&self) -> Option<String> {
        let index = self.index?;
        Some(if self.generation == 0 { index.to_string() } else { format!("{}:{index}", self.generation) })
    }
}

/// A part of a journal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// Which generation's.
    pub generation: u64,
    /// The events, in their order.
    pub events: Vec<RunEvent>,
    /// The index to go on with. If nothing comes from there, the journal ends here, for now.
    pub next: u64,
}

/// The last thing a stream says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StreamEnd {
    /// Where the run stands: it has ended, or rests because it is paused or parked.
    pub status: String,
}
