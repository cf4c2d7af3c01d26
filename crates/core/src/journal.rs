//! A run's journal for one generation: events in order, without gaps, each legal after those before it.
//!
//! The same checks are made when an event is appended and again when a stored journal is loaded, so that neither a
//! bug nor a damaged row goes unnoticed.

mod flow;
mod law;
mod role;

use thiserror::Error;

pub use law::Illegal;
use law::Law;

use crate::event::{DecodeError, Event, Kind};
use crate::id::{Index, Key};
use crate::operation::OperationKind;
use crate::record::Record;

/// The events of one generation.
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
    events: Vec<Event>,
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
        let records = records.into_iter();
        let mut journal = Journal::new();
        journal.events.reserve(records.size_hint().0);
        journal.law.reserve(records.size_hint().0);
        for (index, record) in records {
            let event = Event::decode(&record).map_err(|source| JournalError::Undecodable { index, source })?;
            journal.append(index, event)?;
        }
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
        self.law.admit(next, &event, &self.events).map_err(|why| JournalError::Illegal {
            index: next,
            kind: event.kind(),
            why,
        })?;
        self.events.push(event);
        Ok(next)
    }

    /// The index the next event gets.
    pub fn next(&self) -> Index {
        Index(self.events.len() as u64)
    }

    /// The event at an index.
    pub fn get(&self, index: Index) -> Option<&Event> {
        usize::try_from(index.0).ok().and_then(|index| self.events.get(index))
    }

    /// All events, in order.
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
