//! An event as it is stored: a few columns a store can index, and bytes it must not look into.

use bytes::Bytes;

use crate::id::Key;
use crate::time::Timestamp;

/// An encoded event.
///
/// Kind and key are columns and the payload is bare: an envelope around every event was measured to cost an eighth of
/// the throughput of short runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which kind of event; see [`crate::event::Kind`].
    pub kind: u16,
    /// The version of that kind's encoding.
    pub version: u16,
    /// The operation the event belongs to; none for events of the run itself.
    pub key: Option<Key>,
    /// When the event happened.
    pub at: Timestamp,
    /// The event's small fields, as a JSON object; none when all have their defaults.
    pub meta: Option<Bytes>,
    /// The author's bytes: a result, a signal's payload, an error's data.
    pub payload: Option<Bytes>,
}

impl Record {
    /// How much it brings along.
    pub fn payload_bytes(&self) -> usize {
        self.payload.as_ref().map_or(0, Bytes::len) + self.meta.as_ref().map_or(0, Bytes::len)
    }
}
