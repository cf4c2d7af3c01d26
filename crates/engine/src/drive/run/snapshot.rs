//! The state of a run as bytes: that of its program, and what its driver must know to go on with it. A cache: whatever is
//! wrong with one, the journal has everything.

#[cfg(test)]
mod distance;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::event::Event;
use outlast_core::id::{Index, Key, Version};
use outlast_core::journal::Journal;
use outlast_core::lifecycle::State;
use outlast_core::operation::{Location, OperationKind};
use outlast_core::planted;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Run;
use crate::check::WrittenEvent;
use crate::drive::table::{Detail, Entry};

const MAGIC: [u8; 4] = *b"OLRS";
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 8;

/// What a driver knew of a run when its snapshot was made.
pub(crate) struct Kept {
    /// What is open, and nothing else of what is below the snapshot's index.
    pub(super) journal: Journal,
    /// The same as operations, in the order in which they were started.
    pub(super) operations: Vec<(Key, Entry)>,
    pub(super) cancel_requested: bool,
    pub(super) next_generation: Option<(Bytes, Option<Version>)>,
    /// How large the snapshot was.
    pub(super) bytes: u64,
}

/// When the next snapshot is due.
///
/// A snapshot costs what it writes, and the events behind the last one are read and fed again to go on. So the next one waits until
/// these are a quarter of that one: however large a state grows, what is written for it in all is a few times its journal,
/// and what is read to go on little more than the state.
pub(crate) struct Snapshots {
    /// Where the last one was made.
    at: Index,
    bytes: u64,
    /// What was recorded since.
    tail_bytes: u64,
    /// How many events come between two at least.
    after: u64,
}

/// What became of a snapshot that was due.
enum Made {
    Snapshot(Snapshot),
    /// Something is under way that no snapshot can hold.
    NotNow,
    TooLarge,
}

/// The part of a snapshot that the events behind it come to before the next one.
const TAIL_SHARE: u64 = 4;
/// What a row costs beside what is in it.
const ROW_BYTES: u64 = 32;

impl Snapshots {
    pub(super) fn new(at: Index, bytes: u64, after: u64) -> Snapshots {
        Snapshots { at, bytes, tail_bytes: 0, after }
    }

    pub(in crate::drive) fn recorded(&mut self, record: &Record) {
        let key = record.key.as_ref().map_or(0, |key| key.as_str().len());
        self.tail_bytes += (key + record.payload_bytes()) as u64 + ROW_BYTES;
    }

    pub(super) fn is_none(&self) -> bool {
        self.at == Index(0)
    }
}

/// How that is written.
#[derive(Serialize, Deserialize)]
struct Saved {
    events: Vec<(Index, WrittenEvent)>,
    operations: Vec<SavedOperation>,
    cancel_requested: bool,
    next_input: Option<String>,
    next_version: Option<Version>,
}

#[derive(Serialize, Deserialize)]
struct SavedOperation {
    key: Key,
    awaited: bool,
    location: Option<Location>,
}

impl Run {
    /// A snapshot for the commit that is being made, if it is time for one. Everything recorded was fed, and everything asked
    /// for was done: nothing is on its way between program and journal.
    pub(super) fn snapshot_if_due(&mut self) -> Option<Snapshot> {
        let next = self.journal.next();
        let Snapshots { at, bytes, tail_bytes, after } = self.snapshots;
        let tail = next.0 - at.0;
        // What is open is written each time: a run with much of it waits longer.
        let (open, bytes) =
            if self.settings.snapshot_after == 0 { (0, 0) } else { (self.table.pending() as u64, bytes) };
        if tail <= after.max(open) || tail_bytes < bytes / TAIL_SHARE || !self.is_at_rest() {
            return None;
        }
        match self.snapshot() {
            Made::Snapshot(made) => {
                self.snapshots = Snapshots::new(next, made.data.len() as u64, self.settings.snapshot_after);
                Some(made)
            }
            // There will be a better moment. It is looked for as often as one is due, and not at every commit: with much that is
            // open, looking is work, too.
            Made::NotNow => {
                self.snapshots.after = tail.saturating_add(self.settings.snapshot_after.max(open));
                None
            }
            // Not at every event again: it costs what it weighs, and what is too large now will be too large then.
            Made::TooLarge => {
                self.snapshots.after = tail.saturating_mul(2);
                None
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        let fed = self.fed == self.journal.next();
        let nothing_on_its_way = fed && self.held.is_empty() && self.ends.is_empty();
        let goes_on = self.outcome.is_none() && !self.pausing && !self.journal.is_paused() && !self.is_transacting();
        nothing_on_its_way && goes_on
    }

    fn snapshot(&self) -> Made {
        // First what costs little.
        if !self.only_waits() {
            return Made::NotNow;
        }
        let Some(Snapshot { definition, data, .. }) = self.program.snapshot() else { return Made::NotNow };
        let Some(data) = self.saved().and_then(|saved| seal(&saved, &data)) else { return Made::NotNow };
        let limit = self.settings.limits.payload_bytes;
        if data.len() > limit {
            let (run, bytes) = (&self.identity.run, data.len());
            tracing::warn!(%run, bytes, limit, "the state of the run is too large to be kept: it is rebuilt from its journal");
            return Made::TooLarge;
        }
        let next = self.journal.next();
        let index = if planted!("snapshot-one-event-late") { next.next() } else { next };
        Made::Snapshot(Snapshot { index, definition, data })
    }

    /// Whether every operation waits, or is a step of which nothing is known because it has not ended once: its program asks
    /// for that again.
    fn only_waits(&self) -> bool {
        let is_new = |key: &Key, entry: &Entry| {
            entry.kind == OperationKind::Step && entry.state == State::Executing && !self.journal.is_open(key)
        };
        self.table.live().all(|(key, entry)| !entry.refused && (waits(entry) || is_new(key, entry)))
    }

    /// What the driver must know.
    fn saved(&self) -> Option<Saved> {
        let operations = self.table.live().filter(|(_, entry)| waits(entry)).map(|(key, entry)| SavedOperation {
            key: key.clone(),
            awaited: entry.is_awaited(),
            location: entry.location.clone(),
        });
        let events = self.journal.open_events().map(|(index, event)| {
            let record = without_payload(event).encode(Timestamp::EPOCH);
            (index, WrittenEvent::of(&record))
        });
        let (next_input, next_version) = match &self.next_generation {
            Some((input, version)) => (Some(String::from_utf8(input.to_vec()).ok()?), version.clone()),
            None => (None, None),
        };
        Some(Saved {
            events: events.collect(),
            operations: operations.collect(),
            cancel_requested: self.cancel_requested && !planted!("snapshot-forgets-cancel"),
            next_input,
            next_version,
        })
    }
}

fn waits(entry: &Entry) -> bool {
    matches!(entry.state, State::IdleNotAwaited | State::IdleAwaited)
}

/// What a task is given may be large, and nobody asks for it again.
fn without_payload(event: &Event) -> Event {
    match event {
        Event::TaskScheduled { key, task, name, queue, detached, plan, args: _ } => Event::TaskScheduled {
            key: key.clone(),
            task: task.clone(),
            name: name.clone(),
            queue: queue.clone(),
            detached: *detached,
            plan: plan.clone(),
            args: Bytes::from_static(b"null"),
        },
        other => other.clone(),
    }
}

/// Magic, version, checksum; the length of the driver's part, it, and the program's.
fn seal(saved: &Saved, program: &[u8]) -> Option<Bytes> {
    let ours = serde_json::to_vec(saved).ok()?;
    let length = u32::try_from(ours.len()).ok()?.to_le_bytes();
    let body = [&length[..], &ours, program].concat();
    let sum = checksum(&body);
    Some([&MAGIC[..], &[VERSION], &sum, &body].concat().into())
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest = Sha256::digest(body);
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&digest[..CHECKSUM_BYTES]);
    sum
}

/// The two parts of a snapshot: what the driver knew, and the program's own state; or what is wrong with it.
pub(crate) fn unseal(snapshot: &Snapshot) -> Result<(Kept, Snapshot), String> {
    let cut = || "it is cut off".to_owned();
    let data = &snapshot.data;
    let rest = data.strip_prefix(&MAGIC).ok_or("it does not begin as a snapshot does")?;
    let (version, rest) = rest.split_first().ok_or_else(cut)?;
    if *version != VERSION {
        return Err(format!("it has version {version}, and this build reads version {VERSION}"));
    }
    let (sum, body) = rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(cut)?;
    if *sum != checksum(body) && !planted!("snapshot-checksum-ignored") {
        return Err("its checksum is wrong".to_owned());
    }
    let (length, body) = body.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|error| error.to_string())?;
    let (ours, program) = body.split_at_checked(length).ok_or_else(cut)?;
    let saved: Saved = serde_json::from_slice(ours).map_err(|error| error.to_string())?;
    let kept = saved.kept(snapshot.index, data.len() as u64)?;
    let data = data.slice_ref(program);
    Ok((kept, Snapshot { index: snapshot.index, definition: snapshot.definition.clone(), data }))
}

impl Saved {
    fn kept(self, base: Index, bytes: u64) -> Result<Kept, String> {
        let decode = |(index, written): (Index, WrittenEvent)| {
            let event = Event::decode(&written.record()?).map_err(|error| error.to_string())?;
            Ok((index, event))
        };
        let events: Vec<(Index, Event)> = self.events.into_iter().map(decode).collect::<Result<_, String>>()?;
        let journal = Journal::resume(base, events).map_err(|error| error.to_string())?;
        let known = self.operations.into_iter().map(|operation| (operation.key.clone(), operation));
        let mut known: BTreeMap<Key, SavedOperation> = known.collect();
        let mut operations = Vec::with_capacity(known.len());
        for open in journal.open() {
            let unknown = || format!("nothing is said about {}", open.key);
            let saved = known.remove(&open.key).ok_or_else(unknown)?;
            let entry = journal.get(open.since).and_then(|event| entry(open.kind, event, saved)).ok_or_else(unknown)?;
            operations.push((open.key, entry));
        }
        if let Some(key) = known.keys().next() {
            return Err(format!("the start of {key} is missing"));
        }
        let next_generation = self.next_input.map(|input| (Bytes::from(input), self.next_version));
        Ok(Kept { journal, operations, cancel_requested: self.cancel_requested, next_generation, bytes })
    }
}

/// An operation that waits, from the event that started it.
fn entry(kind: OperationKind, event: &Event, saved: SavedOperation) -> Option<Entry> {
    let (detail, deadline) = match event {
        Event::SignalAwaited { name, deadline, .. } => (Detail::Signal { name: name.clone() }, *deadline),
        Event::ChildStarted { child, on_close, detached, .. } => {
            (Detail::Child { child: child.clone(), on_close: *on_close, detached: *detached }, None)
        }
        Event::TimerStarted { deadline, .. } => (Detail::Plain, Some(*deadline)),
        Event::ApprovalRequested { deadline, .. } | Event::CallbackCreated { deadline, .. } => {
            (Detail::Plain, *deadline)
        }
        Event::TaskScheduled { .. } | Event::ScopeStarted { .. } => (Detail::Plain, None),
        // Nothing else waits.
        _ => return None,
    };
    let state = if saved.awaited { State::IdleAwaited } else { State::IdleNotAwaited };
    Some(Entry { kind, state, location: saved.location, deadline, awaited: saved.awaited, refused: false, detail })
}
