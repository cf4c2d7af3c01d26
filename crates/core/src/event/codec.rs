//! Events to records and back.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use super::upcast::{UPCASTS, Upcast, upcast, version_of};
use super::{Event, Kind};
use crate::failure::Failure;
use crate::id::Key;
use crate::record::Record;
use crate::time::Timestamp;

/// Why a record is not an event this build can read. None of them loses anything: the run parks until it can be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A newer build wrote a kind this one does not know.
    #[error("event kind {code} is not known to this build: deploy the build that wrote it, or a newer one")]
    UnknownKind {
        /// The code in the record.
        code: u16,
    },
    /// A newer build wrote a known kind in a newer form.
    #[error(
        "{} has version {version}, this build reads up to {known}: deploy the build that wrote it, or a newer one",
        kind.name()
    )]
    NewerVersion {
        /// Which kind.
        kind: Kind,
        /// The version in the record.
        version: u16,
        /// The newest version this build reads.
        known: u16,
    },
    /// The record is damaged, or somebody else wrote it.
    #[error("{} is malformed: {detail}", kind.name())]
    Malformed {
        /// Which kind.
        kind: Kind,
        /// What is wrong with it.
        detail: String,
    },
    /// The key column is empty, and this kind has one.
    #[error("{} has no key", kind.name())]
    MissingKey {
        /// Which kind.
        kind: Kind,
    },
    /// The payload is empty, and this kind has one.
    #[error("{} has no payload", kind.name())]
    MissingPayload {
        /// Which kind.
        kind: Kind,
    },
}

impl Kind {
    /// The version [`Event::encode`] writes: 1, and one more for each upcast there is.
    pub fn version(self) -> u16 {
        version_of(UPCASTS, self)
    }
}

impl Event {
    /// The event as it is stored. `at` is when it happened.
    pub fn encode(&self, at: Timestamp) -> Record {
        let mut draft = Draft::default();
        self.put(&mut draft);
        let meta = draft.meta.map(|mut json| {
            json.push(b'}');
            Bytes::from(json)
        });
        let kind = self.kind();
        Record { kind: kind.code(), version: kind.version(), key: draft.key, at, meta, payload: draft.payload }
    }

    /// The event a record holds; older versions are brought up to date on the way.
    pub fn decode(record: &Record) -> Result<Event, DecodeError> {
        decode_with(UPCASTS, record)
    }
}

pub(super) fn decode_with(upcasts: &[Upcast], record: &Record) -> Result<Event, DecodeError> {
    let kind = Kind::from_code(record.kind).ok_or(DecodeError::UnknownKind { code: record.kind })?;
    let mut fields = Fields::read(kind, record)?;
    upcast(upcasts, record.version, &mut fields)?;
    let event = Event::take(kind, &mut fields)?;
    fields.finish()?;
    Ok(event)
}

/// The columns of a record while it is written.
#[derive(Default)]
pub(super) struct Draft {
    key: Option<Key>,
    meta: Option<Vec<u8>>,
    payload: Option<Bytes>,
}

impl Draft {
    pub(super) fn key(&mut self, key: &Key) {
        self.key = Some(key.clone());
    }

    pub(super) fn payload(&mut self, payload: &impl Payload) {
        self.payload = payload.to_column();
    }

    pub(super) fn failure(&mut self, failure: &Failure) {
        self.meta("error", &StoredFailure::of(failure));
        self.payload = failure.data.clone();
    }

    pub(super) fn meta(&mut self, name: &str, value: &impl Serialize) {
        let json = self.meta.get_or_insert_with(Vec::new);
        json.push(if json.is_empty() { b'{' } else { b',' });
        json.push(b'"');
        json.extend_from_slice(name.as_bytes());
        json.extend_from_slice(b"\":");
        // Every small field is a number, a text, a flag or a list of numbers, and a Vec takes any number of bytes.
        serde_json::to_writer(json, value).expect("small fields always have a JSON form");
    }
}

/// The columns of a record while it is read. Taking a field removes it, so that what is left does not belong there.
pub(super) struct Fields {
    pub(super) kind: Kind,
    pub(super) key: Option<Key>,
    pub(super) meta: BTreeMap<String, Box<RawValue>>,
    pub(super) payload: Option<Bytes>,
}

impl Fields {
    fn read(kind: Kind, record: &Record) -> Result<Fields, DecodeError> {
        let meta = match &record.meta {
            None => BTreeMap::new(),
            Some(json) => serde_json::from_slice(json).map_err(|error| DecodeError::Malformed {
                kind,
                detail: format!("its meta is not an object: {error}"),
            })?,
        };
        Ok(Fields { kind, key: record.key.clone(), meta, payload: record.payload.clone() })
    }

    pub(super) fn malformed(&self, detail: impl Into<String>) -> DecodeError {
        DecodeError::Malformed { kind: self.kind, detail: detail.into() }
    }

    pub(super) fn key(&mut self) -> Result<Key, DecodeError> {
        self.key.take().ok_or(DecodeError::MissingKey { kind: self.kind })
    }

    pub(super) fn meta<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, DecodeError> {
        self.optional(name)?.ok_or_else(|| self.malformed(format!("its meta has no field {name:?}")))
    }

    pub(super) fn meta_or<T: DeserializeOwned>(&mut self, name: &str, default: T) -> Result<T, DecodeError> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, DecodeError> {
        let Some(json) = self.meta.remove(name) else { return Ok(None) };
        let value = serde_json::from_str(json.get());
        value.map(Some).map_err(|error| self.malformed(format!("field {name:?} of its meta: {error}")))
    }

    pub(super) fn failure(&mut self) -> Result<Failure, DecodeError> {
        let StoredFailure { code, message, permanent, trace } = self.meta("error")?;
        Ok(Failure { code, message, permanent, trace, data: self.payload.take() })
    }

    fn finish(self) -> Result<(), DecodeError> {
        if let Some(name) = self.meta.keys().next() {
            return Err(self.malformed(format!("its meta has an unknown field {name:?}")));
        }
        if let Some(key) = &self.key {
            return Err(self.malformed(format!("it has a key, {key:?}, and should not")));
        }
        if self.payload.is_some() {
            return Err(self.malformed("it has a payload and should not"));
        }
        Ok(())
    }
}

/// A column of author's bytes, optional or not.
pub(super) trait Payload: Sized {
    fn to_column(&self) -> Option<Bytes>;
    fn from_column(fields: &mut Fields) -> Result<Self, DecodeError>;
}

impl Payload for Bytes {
    fn to_column(&self) -> Option<Bytes> {
        Some(self.clone())
    }

    fn from_column(fields: &mut Fields) -> Result<Self, DecodeError> {
        fields.payload.take().ok_or(DecodeError::MissingPayload { kind: fields.kind })
    }
}

impl Payload for Option<Bytes> {
    fn to_column(&self) -> Option<Bytes> {
        self.clone()
    }

    fn from_column(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(fields.payload.take())
    }
}

/// A failure without its data, which is the payload.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFailure {
    code: String,
    message: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    permanent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
}

impl StoredFailure {
    fn of(failure: &Failure) -> Self {
        let Failure { code, message, data: _, permanent, trace } = failure;
        StoredFailure { code: code.clone(), message: message.clone(), permanent: *permanent, trace: trace.clone() }
    }
}
