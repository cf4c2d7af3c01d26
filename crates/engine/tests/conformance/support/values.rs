//! Values that cases work with.

use outlast::{Batch, BatchStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Text that is recorded in an envelope.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "Envelope", from = "Envelope")]
pub(crate) struct Wrapped(pub(crate) String);

#[derive(Serialize, Deserialize)]
struct Envelope {
    wrapped: String,
}

impl From<Wrapped> for Envelope {
    fn from(Wrapped(wrapped): Wrapped) -> Envelope {
        Envelope { wrapped }
    }
}

impl From<Envelope> for Wrapped {
    fn from(envelope: Envelope) -> Wrapped {
        Wrapped(envelope.wrapped)
    }
}

/// What a batch says about itself.
pub(crate) fn projection<T>(batch: &Batch<T>) -> Value {
    let status = match batch.status() {
        BatchStatus::Succeeded => "succeeded",
        BatchStatus::Failed => "failed",
    };
    json!({
        "reason": batch.reason.as_str(),
        "status": status,
        "succeeded": batch.succeeded(),
        "failed": batch.failed(),
        "total": batch.total(),
    })
}

/// Text that is recorded with a mark before it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Marked(pub(crate) String);

impl From<Marked> for String {
    fn from(Marked(text): Marked) -> String {
        format!("wrapped:{text}")
    }
}

impl TryFrom<String> for Marked {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Marked, Self::Error> {
        text.strip_prefix("wrapped:").map(|text| Marked(text.to_owned())).ok_or("there is no mark")
    }
}

/// Words that are recorded as one text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Joined(pub(crate) Vec<String>);

impl From<Joined> for String {
    fn from(Joined(words): Joined) -> String {
        format!("all:{}", words.join(","))
    }
}

impl TryFrom<String> for Joined {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Joined, Self::Error> {
        let words = text.strip_prefix("all:").ok_or("there is no beginning")?;
        Ok(Joined(words.split(',').map(ToOwned::to_owned).collect()))
    }
}
