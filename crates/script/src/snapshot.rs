//! The state of a machine as bytes: magic, version, checksum, and named fields.

mod cells;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_core::id::Key;
use outlast_core::operation::{Keys, OperationKind};
use outlast_core::planted;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::code::Code;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::value::Id;
use crate::world::{OpenOperation, RunInfo, World};
use cells::{SavedCell, SavedValue};

const MAGIC: [u8; 4] = *b"OLWF";
const VERSION: u8 = 1;
/// Magic, version and checksum.
const HEADER_BYTES: usize = 4 + 1 + 8;

/// Why a snapshot cannot be used. Nothing is lost by it: the run is rebuilt from its journal.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// Other code made it, or another version of the language.
    #[error("the snapshot was made by other code: the run is rebuilt from its journal")]
    OtherCode,
    /// A newer build made it.
    #[error("the snapshot has version {found}, this build reads up to {known}: the run is rebuilt from its journal")]
    Future {
        /// The version in the snapshot.
        found: u8,
        /// The newest version this build reads.
        known: u8,
    },
    /// It is damaged, or somebody else wrote it.
    #[error("the snapshot is damaged ({detail}): the run is rebuilt from its journal")]
    Damaged {
        /// What is wrong with it.
        detail: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Saved {
    main: Option<u32>,
    main_task: Option<u32>,
    inputs: SavedValue,
    cells: Vec<SavedCell>,
    open: Vec<SavedOperation>,
    keys: Keys,
    started: u64,
    cancellations: u32,
    continued: bool,
}

#[derive(Serialize, Deserialize)]
struct SavedOperation {
    key: Key,
    promise: u32,
    kind: OperationKind,
    order: u64,
    awaited: bool,
    #[serde(default)]
    stays: bool,
    #[serde(default)]
    lost: bool,
    at: (u32, u32),
}

/// The state of a machine in which everything waits; none if something runs.
pub(crate) fn save(machine: &Machine) -> Option<Vec<u8>> {
    if !machine.frames.is_empty() || !machine.jobs.is_empty() {
        return None;
    }
    let statics = machine.heap.statics();
    let marked = machine.heap.mark(machine.roots());
    // Cells are numbered in the order in which they were found, after the constants of the code.
    let mut places = vec![0; machine.heap.len()];
    for (place, id) in marked.order.iter().enumerate() {
        places[id.0 as usize] = statics + u32::try_from(place).unwrap_or(u32::MAX);
    }
    let map = |id: Id| if id.0 < statics { id.0 } else { places[id.0 as usize] };
    let open = machine.world.open.iter().map(|(key, open)| SavedOperation {
        key: key.clone(),
        promise: map(open.promise),
        kind: open.kind,
        order: open.order,
        awaited: open.is_awaited,
        stays: open.stays,
        lost: open.is_lost,
        at: open.at,
    });
    let saved = Saved {
        main: machine.main.map(map),
        main_task: machine.main_task.map(map),
        inputs: SavedValue::new(machine.inputs, &map),
        cells: marked.order.iter().map(|id| SavedCell::new(machine.heap.cell(*id), &map)).collect(),
        open: open.collect(),
        keys: machine.world.keys.clone(),
        started: machine.world.started,
        cancellations: machine.world.cancellations,
        continued: machine.world.is_continued,
    };
    let body = rmp_serde::to_vec_named(&saved).ok()?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.push(VERSION);
    bytes.extend_from_slice(&checksum(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    Some(bytes)
}

/// A machine in the state that was saved.
pub(crate) fn load(code: Arc<Code>, info: RunInfo, limits: Limits, bytes: &[u8]) -> Result<Machine, SnapshotError> {
    let saved: Saved = rmp_serde::from_slice(body(bytes)?).map_err(|error| damaged(error.to_string()))?;
    let world = World::new(info, code.source.name());
    let mut machine = Machine::new(code, world, limits);
    for cell in saved.cells {
        let cell = cell.into_cell().ok_or_else(|| damaged("a cell of an unknown form"))?;
        machine.heap.alloc(cell);
    }
    machine.main = saved.main.map(Id);
    machine.main_task = saved.main_task.map(Id);
    machine.inputs = saved.inputs.value().ok_or_else(|| damaged("an input of an unknown form"))?;
    let open = saved.open.into_iter().map(|saved| {
        let SavedOperation { key, promise, kind, order, awaited: is_awaited, stays, lost: is_lost, at } = saved;
        (key, OpenOperation { promise: Id(promise), kind, order, is_awaited, stays, is_lost, at })
    });
    machine.world.reopen(open.collect::<BTreeMap<Key, OpenOperation>>());
    machine.world.keys = if planted!("script-keys-forgotten") { Keys::default() } else { saved.keys };
    machine.world.started = saved.started;
    machine.world.cancellations = saved.cancellations;
    machine.world.is_continued = saved.continued;
    verify::verify(&machine).map_err(damaged)?;
    Ok(machine)
}

/// What follows the header, if that is in order.
fn body(bytes: &[u8]) -> Result<&[u8], SnapshotError> {
    let (magic, rest) = bytes.split_at_checked(MAGIC.len()).ok_or_else(|| damaged("it is cut off"))?;
    if magic != MAGIC {
        return Err(damaged("it does not begin as a snapshot does"));
    }
    let (version, rest) = rest.split_first().ok_or_else(|| damaged("it is cut off"))?;
    if *version > VERSION {
        return Err(SnapshotError::Future { found: *version, known: VERSION });
    }
    let (sum, body) = rest.split_first_chunk::<8>().ok_or_else(|| damaged("it is cut off"))?;
    if u64::from_le_bytes(*sum) != checksum(body) {
        return Err(damaged("its checksum is wrong"));
    }
    Ok(body)
}

fn damaged(detail: impl Into<String>) -> SnapshotError {
    SnapshotError::Damaged { detail: detail.into() }
}

/// FNV-1a over words: against accidents, not against anybody. Tests make snapshots with it that are wrong further in.
pub fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = word.iter().rev().fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(PRIME);
        hash ^= hash >> 29;
    }
    for byte in words.remainder() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
    hash ^ bytes.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn a_header_that_is_wrong_is_said_to_be() {
        assert_eq!(body(b"OL"), Err(damaged("it is cut off")));
        assert_eq!(body(b"XXXX\x0112345678"), Err(damaged("it does not begin as a snapshot does")));
        assert_eq!(body(b"OLWF\x0912345678"), Err(SnapshotError::Future { found: 9, known: VERSION }));
        assert_eq!(body(b"OLWF\x0112345678body"), Err(damaged("its checksum is wrong")));
    }

    #[test]
    fn every_changed_bit_changes_the_checksum() {
        let bytes: Vec<u8> = (0..100).collect();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&changed), checksum(&bytes), "{bit}");
        }
    }

    #[test]
    fn values_stay_what_they_are() {
        let values = [
            Value::Hole,
            Value::Null,
            Value::Bool(true),
            Value::Number(1.0),
            Value::Number(-0.0),
            Value::Number(0.1),
            Value::Number(f64::INFINITY),
            Value::Number(-9_007_199_254_740_993.0),
            Value::Text(Id(7)),
            Value::List(Id(8)),
            Value::Promise(Id(1)),
            Value::Function(Id(2)),
            Value::Native(3),
        ];
        for value in values {
            let bytes = rmp_serde::to_vec_named(&SavedValue::new(value, &|id: Id| id.0)).unwrap();
            let read: SavedValue = rmp_serde::from_slice(&bytes).unwrap();
            let read = read.value().unwrap();
            assert_eq!(format!("{read:?}"), format!("{value:?}"));
        }
    }
}
