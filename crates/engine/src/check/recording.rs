//! A run's journal outside of any store.

use bytes::Bytes;
use outlast_core::event::{Event, Kind};
use outlast_core::id::{Generation, Key, Namespace, RunId, RunKey, Version, WorkflowName};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::ReplayError;

/// One generation of a run as it was recorded: what it is, what it began with, and its journal.
///
/// [`crate::RunHandle::export`] makes one. It is written and read as JSON, so that it can be kept beside the code and
/// be replayed with every change of it; see [`crate::check_replay`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub(crate) run: RunKey,
    pub(crate) generation: Generation,
    pub(crate) workflow: WorkflowName,
    pub(crate) version: Version,
    pub(crate) input: Bytes,
    pub(crate) events: Vec<Record>,
}

impl Recording {
    /// Whose it is.
    pub fn run(&self) -> &RunKey {
        &self.run
    }

    /// Which workflow.
    pub fn workflow(&self) -> &WorkflowName {
        &self.workflow
    }

    /// Which version of it the run belongs to.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// How many events it has.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The journal.
    pub fn events(&self) -> Result<Vec<Event>, ReplayError> {
        let decode = |(index, record)| {
            Event::decode(record).map_err(|error| ReplayError::Unreadable(format!("event {index}: {error}")))
        };
        self.events.iter().enumerate().map(decode).collect()
    }

    /// The same run when only the first `events` of its journal had happened.
    #[must_use]
    pub fn prefix(&self, events: usize) -> Recording {
        Recording { events: self.events.iter().take(events).cloned().collect(), ..self.clone() }
    }
}

impl Serialize for Recording {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (input, input_hex) = write_bytes(&self.input);
        let written = Written {
            namespace: self.run.namespace.clone(),
            run: self.run.id.clone(),
            generation: self.generation,
            workflow: self.workflow.clone(),
            version: self.version.clone(),
            input,
            input_hex,
            events: self.events.iter().map(WrittenEvent::of).collect(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Recording {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let input = read_bytes(written.input, written.input_hex).map_err(D::Error::custom)?;
        let events: Result<_, String> = written.events.into_iter().map(WrittenEvent::record).collect();
        Ok(Recording {
            run: RunKey::new(written.namespace, written.run),
            generation: written.generation,
            workflow: written.workflow,
            version: written.version,
            input: input.ok_or_else(|| D::Error::missing_field("input"))?,
            events: events.map_err(D::Error::custom)?,
        })
    }
}

/// How a recording is written. Bytes are JSON text nearly always, and then stand there as what they are.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    namespace: Namespace,
    run: RunId,
    generation: Generation,
    workflow: WorkflowName,
    version: Version,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_hex: Option<String>,
    events: Vec<WrittenEvent>,
}

/// How one event is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenEvent {
    kind: String,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    version: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
    at: Timestamp,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    meta: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta_hex: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_hex: Option<String>,
}

impl WrittenEvent {
    pub(crate) fn of(record: &Record) -> WrittenEvent {
        let (meta, meta_hex) = record.meta.as_ref().map_or((None, None), write_bytes);
        let (payload, payload_hex) = record.payload.as_ref().map_or((None, None), write_bytes);
        // A kind this build does not know is written by its number; reading it back says so.
        let kind = Kind::from_code(record.kind).map_or_else(|| record.kind.to_string(), |kind| kind.name().to_owned());
        let (version, key, at) = (record.version, record.key.clone(), record.at);
        WrittenEvent { kind, version, key, at, meta, meta_hex, payload, payload_hex }
    }

    pub(crate) fn record(self) -> Result<Record, String> {
        let kind = Kind::from_name(&self.kind).map(Kind::code).or_else(|| self.kind.parse().ok());
        Ok(Record {
            kind: kind.ok_or_else(|| format!("{:?} is no kind of event this build knows", self.kind))?,
            version: self.version,
            key: self.key,
            at: self.at,
            meta: read_bytes(self.meta, self.meta_hex)?,
            payload: read_bytes(self.payload, self.payload_hex)?,
        })
    }
}

fn first() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_first(version: &u16) -> bool {
    *version == first()
}

/// What is there, even if it is `null`: that is a value like any other.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

fn write_bytes(bytes: &Bytes) -> (Option<Box<RawValue>>, Option<String>) {
    // Spaces around a value would not come back.
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.trim_ascii().len() == text.len());
    let json = text.and_then(|text| RawValue::from_string(text.to_owned()).ok());
    match json {
        Some(json) => (Some(json), None),
        None => (None, Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
    }
}

fn read_bytes(json: Option<Box<RawValue>>, hex: Option<String>) -> Result<Option<Bytes>, String> {
    match (json, hex) {
        (Some(json), None) => Ok(Some(Bytes::from(String::from(Box::<str>::from(json))))),
        (None, Some(hex)) => from_hex(&hex).map(Some).ok_or_else(|| format!("{hex:?} is not hexadecimal")),
        (None, None) => Ok(None),
        (Some(_), Some(hex)) => Err(format!("a value stands here twice, as JSON and as {hex:?}")),
    }
}

fn from_hex(hex: &str) -> Option<Bytes> {
    let digits: Option<Vec<u32>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect();
    bytes.map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(input: &'static [u8], payload: Option<&'static [u8]>) -> Recording {
        let record = Record {
            kind: Kind::StepFinished.code(),
            version: 2,
            key: Some(Key::new("a").unwrap()),
            at: Timestamp::from_millis(5),
            meta: None,
            payload: payload.map(Bytes::from_static),
        };
        Recording {
            run: RunKey::new(Namespace::default_namespace(), RunId::new("r").unwrap()),
            generation: Generation(3),
            workflow: WorkflowName::new("w").unwrap(),
            version: Version::new("1").unwrap(),
            input: Bytes::from_static(input),
            events: vec![record],
        }
    }

    #[test]
    fn bytes_come_back_as_they_were_whether_they_are_json_or_not() {
        let payloads: [Option<&[u8]>; 6] =
            [None, Some(b"null"), Some(b"{\"a\" : 1}"), Some(b""), Some(b" 1"), Some(&[0, 159, 255])];
        for payload in payloads {
            for input in [&b"null"[..], b"[1]", b"not json"] {
                let recording = recording(input, payload);
                let json = serde_json::to_string_pretty(&recording).unwrap();
                assert_eq!(serde_json::from_str::<Recording>(&json).unwrap(), recording, "{json}");
            }
        }
    }

    #[test]
    fn a_recording_without_an_input_or_with_odd_bytes_is_refused() {
        let json = serde_json::to_string(&recording(b"null", Some(b"x"))).unwrap();
        let refused = |json: String| serde_json::from_str::<Recording>(&json).unwrap_err().to_string();
        assert!(refused(json.replace("\"input\":null,", "")).contains("missing field `input`"));
        assert!(refused(json.replace("\"78\"", "\"7\"")).contains("\"7\" is not hexadecimal"));
        assert!(
            refused(json.replace("\"input\":null", "\"input\":null,\"input_hex\":\"00\""))
                .contains("stands here twice")
        );
    }
}
