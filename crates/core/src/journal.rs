//! A run's journal for one generation: events in order, without gaps, each legal after those before it.
//!
//! The same checks are made when an event is appended and again when a stored journal is loaded, so that neither a
//! bug nor a damaged row goes unnoticed.

mod flow;
mod law;
mod past;
mod role;

use std::collections::BTreeMap;

use thiserror::Error;

pub use law::Illegal;
use law::Law;
use past::Past;

use crate::event::{DecodeError, Event, Kind};
use crate::id::{Index, Key};
use crate::operation::OperationKind;
use crate::record::Record;

/// The events of one generation: all of them, or those from some index on with what is still open of the rest.
///
/// ```
/// use outlast_core::event::Event;
/// use outlast_core::id::{Index, Key};
/// use outlast_core::journal::{Journal, JournalError};
/// use outlast_core::time::Timestamp;
///
/// let key = Key::new("__sleep-0")?;
/// let started = Event::TimerStarted { key: key.clone(), deadline: Timestamp::from_millis(5_000), duration_ms: None };
/// let mut journal = Journal::new();
/// journal.append(Index(0), started.clone())?;
/// assert_eq!(journal.open()[0].key, key);
///
/// // Whoever expected to write index 0 learns what is there.
/// let conflict = journal.append(Index(0), Event::TimerFired { key: key.clone() });
/// assert_eq!(conflict, Err(JournalError::Conflict { index: Index(0), found: Box::new(started) }));
///
/// journal.append(Index(1), Event::TimerFired { key })?;
/// assert!(journal.open().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// The index of the first of `events`.
    base: Index,
    events: Vec<Event>,
    /// What is known of the events below that: those about operations that were open there.
    kept: BTreeMap<Index, Event>,
    law: Law,
}

/// Why an event cannot be at an index.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JournalError {
    /// Another event is there already.
    #[error("index {index} is taken by {}", found.kind())]
    Conflict {
        /// The index.
        index: Index,
        /// What is there.
        found: Box<Event>,
    },
    /// An index before it is still free.
    #[error("index {index} skips ahead: the next one is {next}")]
    SkipsAhead {
        /// The index.
        index: Index,
        /// The index that would be next.
        next: Index,
    },
    /// The event cannot follow those before it.
    #[error("event {index}, {kind}: {why}")]
    Illegal {
        /// The index.
        index: Index,
        /// What the event is.
        kind: Kind,
        /// What was expected instead.
        why: Illegal,
    },
    /// The stored record is not an event this build can read.
    #[error("event {index}: {source}")]
    Undecodable {
        /// The index.
        index: Index,
        /// What is wrong with it.
        source: DecodeError,
    },
}

/// What is recorded about an operation: for [`Journal::open`], one that is started and not yet settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedOperation {
    /// Which.
    pub key: Key,
    /// What it is.
    pub kind: OperationKind,
    /// Where its first event is.
    pub since: Index,
    /// Where its latest event is.
    pub latest: Index,
}

impl Journal {
    /// An empty journal.
    pub fn new() -> Self {
        Journal::default()
    }

    /// A stored journal, from its first event on.
    pub fn load(records: impl IntoIterator<Item = (Index, Record)>) -> Result<Journal, JournalError> {
        let mut journal = Journal::new();
        let records = records.into_iter();
        journal.law.reserve(records.size_hint().0);
        journal.extend(records)?;
        Ok(journal)
    }

    /// Appends stored events that follow at once.
    pub fn load_more(&mut self, records: Vec<Record>) -> Result<(), JournalError> {
        let next = self.next().0;
        let is_operation =
            |record: &&Record| Kind::from_code(record.kind).is_some_and(|kind| kind.operation().is_some());
        // What a flow says about itself needs no room there, and is most of a long journal.
        self.law.reserve(records.iter().filter(is_operation).count());
        self.extend((next..).map(Index).zip(records))
    }

    fn extend(&mut self, records: impl IntoIterator<Item = (Index, Record)>) -> Result<(), JournalError> {
        let records = records.into_iter();
        let count = records.size_hint().0;
        // Whoever loads a journal goes on with it: its first new event must not copy all the others.
        self.events.reserve(count + count / 8 + 16);
        for (index, record) in records {
            let event = Event::decode(&record).map_err(|source| JournalError::Undecodable { index, source })?;
            self.append(index, event)?;
        }
        Ok(())
    }

    /// A journal of which only the end is known: what [`Journal::open_events`] gave when its next index was `base`, and
    /// nothing else below that. Events from `base` on are appended to it.
    ///
    /// It judges what follows as the whole journal would, except that it cannot know a key that was settled before.
    pub fn resume(base: Index, open: impl IntoIterator<Item = (Index, Event)>) -> Result<Journal, JournalError> {
        let mut journal = Journal { base, ..Journal::new() };
        for (index, event) in open {
            let follows = journal.kept.last_key_value().is_none_or(|(last, _)| *last < index);
            if index >= base || !follows {
                return Err(JournalError::SkipsAhead { index, next: base });
            }
            journal.admit(index, &event)?;
            journal.kept.insert(index, event);
        }
        journal.law.forget_flow();
        Ok(journal)
    }

    /// Appends an event, if `expected` is the next index and the event is legal there. Returns its index.
    pub fn append(&mut self, expected: Index, event: Event) -> Result<Index, JournalError> {
        let next = self.next();
        if let Some(found) = self.get(expected) {
            return Err(JournalError::Conflict { index: expected, found: Box::new(found.clone()) });
        }
        if expected != next {
            return Err(JournalError::SkipsAhead { index: expected, next });
        }
        self.admit(next, &event)?;
        self.events.push(event);
        Ok(next)
    }

    fn admit(&mut self, index: Index, event: &Event) -> Result<(), JournalError> {
        let past = Past { base: self.base, events: &self.events, kept: &self.kept };
        let admitted = self.law.admit(index, event, past);
        admitted.map_err(|why| JournalError::Illegal { index, kind: event.kind(), why })
    }

    /// Forgets every event below an index, except what is still open of them. The journal goes on as before.
    pub fn forget_below(&mut self, index: Index) {
        let count = index.0.saturating_sub(self.base.0).min(self.events.len() as u64);
        let Ok(count) = usize::try_from(count) else { return };
        if count == 0 {
            return;
        }
        let open: Vec<Index> = self.open_indices();
        let base = Index(self.base.0 + count as u64);
        self.kept.retain(|index, _| open.binary_search(index).is_ok());
        for (place, event) in self.events.drain(..count).enumerate() {
            let index = Index(self.base.0 + place as u64);
            if open.binary_search(&index).is_ok() {
                self.kept.insert(index, event);
            }
        }
        self.base = base;
        self.law.forget_below(base);
    }

    /// The events about operations that are open, as far as what follows depends on them: the first and the latest of each,
    /// in order.
    pub fn open_events(&self) -> impl Iterator<Item = (Index, &Event)> {
        self.open_indices().into_iter().filter_map(|index| Some((index, self.get(index)?)))
    }

    fn open_indices(&self) -> Vec<Index> {
        let mut indices: Vec<Index> =
            self.law.open().into_iter().flat_map(|operation| [operation.since, operation.latest]).collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    /// The index the next event gets.
    pub fn next(&self) -> Index {
        Index(self.base.0 + self.events.len() as u64)
    }

    /// The event at an index; none if it was forgotten.
    pub fn get(&self, index: Index) -> Option<&Event> {
        Past { base: self.base, events: &self.events, kept: &self.kept }.get(index)
    }

    /// All events that are known one after the other, in order: the whole journal, or its end.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Operations that are started and not settled, in the order in which they began. None when the journal is over.
    pub fn open(&self) -> Vec<RecordedOperation> {
        self.law.open()
    }

    /// What is recorded about an operation; none if nothing is.
    pub fn operation(&self, key: &Key) -> Option<RecordedOperation> {
        self.law.operation(key)
    }

    /// Whether an operation is started and not settled.
    pub fn is_open(&self, key: &Key) -> bool {
        self.law.is_open(key)
    }

    /// Whether an operator paused the run.
    pub fn is_paused(&self) -> bool {
        self.law.is_paused()
    }

    /// Whether nothing can follow: the run is over, or its next generation began.
    pub fn is_over(&self) -> bool {
        self.law.is_over()
    }
}

#[cfg(test)]
mod tests;
