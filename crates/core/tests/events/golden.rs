//! Encodings as they were written, one file per kind. Files are only ever added: a journal lives longer than a release.
//!
//! `OUTLAST_BLESS=1` writes the files that are missing. It never changes one that is there.

use std::fs;
use std::path::PathBuf;

use outlast_core::Bytes;
use outlast_core::event::{Event, Kind};
use outlast_core::id::Key;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::parts::{bare, event, typical};

/// When the golden events happened.
const AT: Timestamp = Timestamp::from_millis(1_737_499_200_123);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    kind: u16,
    name: String,
    version: u16,
    examples: Vec<Example>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    key: Option<Key>,
    at: Timestamp,
    meta: Option<String>,
    payload: Option<String>,
}

fn file(kind: Kind) -> PathBuf {
    let name = format!("{}.json", kind.name().to_lowercase());
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(name)
}

fn expected(kind: Kind) -> [Event; 2] {
    [event(kind, typical()), event(kind, bare())]
}

fn text(bytes: Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn bless(kind: Kind) {
    let example = |event: &Event| {
        let Record { key, at, meta, payload, .. } = event.encode(AT);
        Example { key, at, meta: meta.map(text), payload: payload.map(text) }
    };
    let examples = expected(kind).iter().map(example).collect();
    let golden = Golden { kind: kind.code(), name: kind.name().to_owned(), version: kind.version(), examples };
    fs::write(file(kind), serde_json::to_string_pretty(&golden).unwrap() + "\n").unwrap();
}

#[test]
fn every_kind_reads_and_writes_what_was_once_written() {
    for &kind in Kind::ALL {
        let file = file(kind);
        if !file.exists() && std::env::var_os("OUTLAST_BLESS").is_some_and(|bless| bless == "1") {
            bless(kind);
        }
        let json = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let golden: Golden = serde_json::from_str(&json).unwrap();
        assert_eq!((golden.kind, golden.name.as_str()), (kind.code(), kind.name()), "codes and names never change");
        let events = expected(kind);
        assert_eq!(golden.examples.len(), events.len());
        for (example, event) in golden.examples.into_iter().zip(events) {
            let record = Record {
                kind: golden.kind,
                version: golden.version,
                key: example.key,
                at: example.at,
                meta: example.meta.map(Bytes::from),
                payload: example.payload.map(Bytes::from),
            };
            assert_eq!(Event::decode(&record).unwrap(), event, "{kind}");
            if golden.version == kind.version() {
                assert_eq!(event.encode(AT), record, "{kind}");
            }
        }
    }
}

#[test]
fn a_golden_file_belongs_to_a_kind() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(Kind::ALL.iter().any(|&kind| file(kind) == path), "{} is nobody's", path.display());
    }
}

#[test]
fn a_step_that_worked_at_once_has_no_envelope() {
    let key = Key::new("charge").unwrap();
    let record = Event::StepFinished { key: key.clone(), result: Bytes::from("42"), attempts: 1 }.encode(AT);
    assert_eq!((record.key, record.meta, record.payload), (Some(key), None, Some(Bytes::from("42"))));
    let record = Event::RunFinished { output: Bytes::from("42") }.encode(AT);
    assert_eq!((record.key, record.meta, record.payload), (None, None, Some(Bytes::from("42"))));
}

#[test]
fn who_paused_a_run_or_let_it_go_on_stands_beside_what_was_always_written() {
    let by = Some("ann".to_owned());
    let paused = Event::RunPaused { reason: Some("lunch".to_owned()), by: by.clone() };
    let resumed = Event::RunResumed { message: Some(Bytes::from("42")), by };
    for (event, meta, payload) in
        [(paused, r#"{"reason":"lunch","by":"ann"}"#, None), (resumed, r#"{"by":"ann"}"#, Some(Bytes::from("42")))]
    {
        let record = event.encode(AT);
        assert_eq!((record.meta.clone(), record.payload.clone()), (Some(Bytes::from(meta)), payload));
        assert_eq!(Event::decode(&record).unwrap(), event);
    }
}
