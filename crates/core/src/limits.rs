//! Everything has a limit, named with its unit.

use bytes::Bytes;
use thiserror::Error;

use crate::id::Index;
use crate::record::Record;

/// The most a stored payload can ever have, whatever [`Limits`] say; the databases check it too.
pub const PAYLOAD_BYTES_CEILING: usize = 16 * 1024 * 1024;
/// What the meta of an event may have beyond the limit of payloads: names, ids, counts and an error's message, which are
/// written beside what somebody gave. Without it, what was accepted at the limit could not be recorded.
pub const EVENT_META_BYTES_SPARE: usize = 128 * 1024;
/// The most that observers are told at once: it is not recorded, so that this is no setting, and a replay comes to the same.
pub const TOLD_BYTES_MAX: usize = 1024 * 1024;
/// The most the message of a failure can have; the rest is cut off.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// The most the trace of a failure can have; the rest is cut off.
pub const TRACE_BYTES_MAX: usize = 8 * 1024;
/// The most a search attribute's value can have: it is meant to be looked up, not to carry data.
pub const ATTRIBUTE_BYTES_MAX: usize = 1024;
/// The most a short text can have: a token, an assignee, the reason for parking.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;
/// The most items one claim takes.
pub const CLAIM_BATCH_MAX: usize = 256;
/// Claims without an append in between, after which a run parks.
pub const TRIES_MAX: u32 = 10;
/// From this many tries on, a run is driven alone.
pub const TRIES_ALONE: u32 = 3;
/// How long a deleted run is remembered, in days.
pub const TOMBSTONE_DAYS: u64 = 7;

/// The limits of one store. All can be changed; payloads not beyond [`PAYLOAD_BYTES_CEILING`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in one payload: an input, a result, a signal.
    pub payload_bytes: usize,
    /// Events in one commit.
    pub commit_events: usize,
    /// Operations a run may have pending: timers, waits, tasks. The engine refuses the next one where it is asked for.
    pub pending_operations: usize,
    /// Signals a run may have that nobody consumed yet.
    pub unconsumed_signals: usize,
    /// Events in a journal, after which the engine warns.
    pub journal_events_warn: u64,
    /// How deep scopes and values may nest.
    pub nesting_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            payload_bytes: 2 * 1024 * 1024,
            commit_events: 20_000,
            pending_operations: 10_000,
            unconsumed_signals: 10_000,
            journal_events_warn: 50_000,
            nesting_depth: 128,
        }
    }
}

/// A request that is larger than allowed. The message says which limit, and what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} is {found} {unit}, the limit is {limit}")]
pub struct LimitExceeded {
    /// What was measured.
    pub what: &'static str,
    /// What it measured.
    pub found: usize,
    /// What is allowed.
    pub limit: usize,
    /// Of which unit.
    pub unit: &'static str,
}

impl Limits {
    /// Checks the size of a payload.
    pub fn check_payload(&self, what: &'static str, bytes: usize) -> Result<(), LimitExceeded> {
        let limit = self.payload_bytes.min(PAYLOAD_BYTES_CEILING);
        within(what, bytes, limit, "bytes")
    }

    /// Checks the size of an event.
    pub fn check_event(&self, event: &Record) -> Result<(), LimitExceeded> {
        let bytes = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        self.check_payload("an event", bytes(&event.payload))?;
        let limit = self.payload_bytes.saturating_add(EVENT_META_BYTES_SPARE).min(PAYLOAD_BYTES_CEILING);
        within("an event's meta", bytes(&event.meta), limit, "bytes")
    }

    /// Checks a short text: its size, and that it has no NUL, which PostgreSQL cannot keep.
    pub fn check_text(&self, what: &'static str, text: &str) -> Result<(), LimitExceeded> {
        within(what, text.len(), TEXT_BYTES_MAX, "bytes")?;
        check_nul(what, text)
    }

    /// Checks a search attribute's value, like a short text.
    pub fn check_attribute(&self, value: &str) -> Result<(), LimitExceeded> {
        within("an attribute's value", value.len(), ATTRIBUTE_BYTES_MAX, "bytes")?;
        check_nul("an attribute's value", value)
    }

    /// Checks the number of operations a run has pending.
    pub fn check_pending(&self, operations: usize) -> Result<(), LimitExceeded> {
        within("the list of pending operations", operations, self.pending_operations, "operations")
    }

    /// Whether a journal that grew so became one to warn about.
    pub fn warns_of_journal(&self, before: Index, after: Index) -> bool {
        before.0 < self.journal_events_warn && after.0 >= self.journal_events_warn
    }

    /// Checks the number of events in one commit.
    pub fn check_events(&self, events: usize) -> Result<(), LimitExceeded> {
        within("a commit's list of events", events, self.commit_events, "events")
    }
}

fn check_nul(what: &'static str, text: &str) -> Result<(), LimitExceeded> {
    within(what, text.matches('\0').count(), 0, "NUL characters")
}

/// `found` if it is at most `limit`.
pub fn within(what: &'static str, found: usize, limit: usize, unit: &'static str) -> Result<(), LimitExceeded> {
    if found > limit { Err(LimitExceeded { what, found, limit, unit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_at_the_limit_passes_and_one_byte_more_does_not() {
        let limits = Limits { payload_bytes: 4, ..Limits::default() };
        assert!(limits.check_payload("an input", 4).is_ok());
        let error = limits.check_payload("an input", 5).unwrap_err();
        assert_eq!(error.to_string(), "an input is 5 bytes, the limit is 4");
    }

    #[test]
    fn a_journal_is_warned_of_once_when_it_reaches_the_limit() {
        let limits = Limits { journal_events_warn: 10, ..Limits::default() };
        let warns = |before, after| limits.warns_of_journal(Index(before), Index(after));
        assert!(!warns(0, 9) && warns(9, 10) && warns(3, 30) && !warns(10, 11));
    }

    #[test]
    fn the_ceiling_holds_even_when_the_limit_is_raised() {
        let limits = Limits { payload_bytes: usize::MAX, ..Limits::default() };
        assert!(limits.check_payload("an input", PAYLOAD_BYTES_CEILING + 1).is_err());
    }
}
