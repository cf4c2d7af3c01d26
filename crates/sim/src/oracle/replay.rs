//! Replaying every journal with the code.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use outlast::{Checker, Recording, ReplayError};
use outlast_core::event::{Event, Kind};
use outlast_core::id::{RunKey, Version};
use outlast_core::record::Record;
use outlast_store::invariants::RunState;
use serde_json::{Map, Value, json};

use super::Evidence;
use crate::violation::Findings;
use crate::watch::{Chapter, Shadow};

/// Each generation is replayed whole, and as it was when some of it had happened.
pub(super) fn judge(evidence: &Evidence, checkers: &[&Checker], findings: &mut Findings) {
    for (run, state) in evidence.runs() {
        let Some(shadow) = evidence.shadows.get(run) else { continue };
        for (generation, (records, begun)) in state.journals.iter().zip(beginnings(shadow, state)).enumerate() {
            let recording = match recording(run, shadow, generation, &begun, records) {
                Ok(recording) => recording,
                Err(error) => {
                    findings.check(14, Err(format!("{run}/{generation} cannot be written down: {error}")));
                    continue;
                }
            };
            let ended = records.last().and_then(|last| Event::decode(last).ok());
            let ended =
                ended.is_some_and(|last| last.ends_generation() && !matches!(last, Event::RunTerminated { .. }));
            let knows =
                |checker: &&&Checker| !matches!(checker.check(&recording.prefix(0)), Err(ReplayError::NoCode { .. }));
            let Some(checker) = checkers.iter().find(knows).or(checkers.first()) else { return };
            let replayed = checker.check(&recording);
            findings.check(
                14,
                match replayed {
                    Ok(replayed) if replayed.ended || !ended => Ok(()),
                    Ok(_) => Err(format!("{run}/{generation} has ended, and its code does not come to its end")),
                    Err(error) => Err(format!("{run}/{generation}: {error}")),
                },
            );
            snapshots(run, generation, shadow, checker, &recording, findings);
            let cut = cut(run, generation, records.len());
            let part = checker.check(&recording.prefix(cut));
            findings
                .check(14, part.map(drop).map_err(|error| format!("the first {cut} of {run}/{generation}: {error}")));
        }
    }
}

/// Whoever goes on from a snapshot comes to the same as whoever reads the whole journal: behind everything that is recorded, and
/// at the next place after the snapshot.
fn snapshots(
    run: &RunKey,
    generation: usize,
    shadow: &Shadow,
    checker: &Checker,
    recording: &Recording,
    findings: &mut Findings,
) {
    let Some(chapter) = shadow.chapters.get(generation).filter(|_| shadow.sure) else { return };
    for snapshot in &chapter.snapshots {
        let ends = [snapshot.index.0, snapshot.index.0 + 1, chapter.entries.len() as u64];
        for end in ends.map(|end| usize::try_from(end).unwrap_or(usize::MAX).min(chapter.entries.len())) {
            let part = recording.prefix(end);
            let (whole, kept) = (checker.check(&part), checker.check_from(&part, snapshot));
            let same = matches!((&whole, &kept), (Ok(whole), Ok(kept)) if whole == kept) || whole.is_err();
            findings.ensure(14, same, || {
                let from = snapshot.index;
                format!(
                    "{run}/{generation}, up to {end}, comes to {whole:?}, and from its snapshot at {from} to {kept:?}"
                )
            });
        }
    }
}

/// Somewhere in a journal, the same each time: drawn from whose it is and how long.
fn cut(run: &RunKey, generation: usize, events: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (run.to_string(), generation, events).hash(&mut hasher);
    usize::try_from(hasher.finish() % (events as u64 + 1)).unwrap_or(0)
}

/// What a generation began with.
struct Beginning {
    version: Version,
    input: Bytes,
}

/// What the generations of a run began with: as they were committed, or, where not every commit was seen, the first as it
/// was created and the others as their journals say.
fn beginnings(shadow: &Shadow, state: &RunState) -> Vec<Beginning> {
    let mut known = shadow.chapters.iter().map(|chapter| {
        let Chapter { version, input, .. } = chapter;
        Beginning { version: version.clone(), input: input.clone() }
    });
    if shadow.sure {
        return known.collect();
    }
    let mut all: Vec<Beginning> = known.next().into_iter().collect();
    for records in &state.journals {
        let (Some(before), Some(last)) = (all.last(), records.last()) else { break };
        if let Ok(Event::RunContinued { input, version }) = Event::decode(last) {
            let version = version.unwrap_or_else(|| before.version.clone());
            all.push(Beginning { version, input });
        }
    }
    all
}

/// A generation as it is written down. Older ones cannot be had from the store in that form.
fn recording(
    run: &RunKey,
    shadow: &Shadow,
    generation: usize,
    begun: &Beginning,
    records: &[Record],
) -> Result<Recording, serde_json::Error> {
    let mut written = Map::new();
    let mut put = |name: &str, value: Value| written.insert(name.to_owned(), value);
    put("namespace", json!(run.namespace));
    put("run", json!(run.id));
    put("generation", json!(generation));
    put("workflow", json!(shadow.workflow));
    put("version", json!(begun.version));
    put("input_hex", json!(hex(&begun.input)));
    put("events", records.iter().map(event).collect());
    serde_json::from_value(Value::Object(written))
}

fn event(record: &Record) -> Value {
    let kind = Kind::from_code(record.kind).map_or_else(|| record.kind.to_string(), |kind| kind.name().to_owned());
    let mut written = json!({ "kind": kind, "version": record.version, "at": record.at });
    if let Some(key) = &record.key {
        written["key"] = json!(key);
    }
    if let Some(meta) = &record.meta {
        written["meta_hex"] = json!(hex(meta));
    }
    if let Some(payload) = &record.payload {
        written["payload_hex"] = json!(hex(payload));
    }
    written
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]).collect()
}
