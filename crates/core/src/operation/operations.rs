//! What passes between a driver and a program while the program runs.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use uuid::Uuid;

use super::{Location, Operation, Requested};
use crate::event::Event;
use crate::id::Key;
use crate::retry::hash;
use crate::time::Timestamp;

/// Values from the world, which a program cannot make itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provided {
    /// The time.
    pub now: Timestamp,
    /// Chance, fresh for each [`Operations`]: unique ids and random numbers are made from it. Not for secrets.
    pub seed: u128,
}

/// The world as a program sees it: values to ask for, and a place for its requests.
///
/// A request is collected, never acted upon: the driver takes all of them when the program is blocked.
///
/// ```
/// use std::time::Duration;
/// use outlast_core::id::Key;
/// use outlast_core::operation::{Due, Operation, Operations, Provided};
/// use outlast_core::time::Timestamp;
///
/// let mut ops = Operations::new(Provided { now: Timestamp::from_millis(7), seed: 1 });
/// assert_eq!(ops.record_now(Key::new("__now-0")?, None), Timestamp::from_millis(7));
/// ops.request(Operation::StartTimer { key: Key::new("__sleep-0")?, due: Due::After(Duration::from_secs(5)) }, None);
/// assert_eq!(ops.take().len(), 2);
/// assert!(ops.take().is_empty());
/// # Ok::<(), outlast_core::id::InvalidId>(())
/// ```
#[derive(Debug)]
pub struct Operations {
    provided: Provided,
    drawn: u64,
    recorded: BTreeMap<Key, Recorded>,
    closed: BTreeSet<Key>,
    waker: Option<Waker>,
    is_replay: bool,
    requested: Vec<Requested>,
}

#[derive(Clone, Copy, Debug)]
enum Recorded {
    Now(Timestamp),
    Uuid(Uuid),
    Random(u64),
}

impl Operations {
    /// With values from the world, an empty memory, and nothing requested.
    pub fn new(provided: Provided) -> Self {
        Operations {
            provided,
            drawn: 0,
            recorded: BTreeMap::new(),
            closed: BTreeSet::new(),
            waker: None,
            is_replay: false,
            requested: Vec::new(),
        }
    }

    /// The same with newer values, for the next pass of a program that stays in memory.
    pub fn provide(&mut self, provided: Provided) {
        // The same seed again must not give the same ids again.
        if provided.seed != self.provided.seed {
            self.drawn = 0;
        }
        self.provided = provided;
    }

    /// Sets who is called when a code body that returned [`crate::program::Progress::Executing`] can go on. Such a
    /// program makes its own `Context` from it; pure programs have no use for it.
    pub fn set_waker(&mut self, waker: Waker) {
        self.waker = Some(waker);
    }

    /// Who is called when a code body can go on.
    pub fn waker(&self) -> Option<&Waker> {
        self.waker.as_ref()
    }

    /// Sets whether more of what is recorded follows. Afterwards the program is polled, at least.
    pub fn set_replay(&mut self, is_replay: bool) {
        self.is_replay = is_replay;
    }

    /// Whether more of what is recorded follows: a program whose next request would be that need not make it yet.
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Remembers a recorded answer, so that it is given again when the program asks, and a scope whose end is
    /// recorded; other events say nothing here. To be called for every event of the journal before the program is
    /// replayed.
    pub fn remember(&mut self, event: &Event) {
        if let Event::ScopeFinished { key, replay_inside: false, .. } | Event::ScopeFailed { key, .. } = event {
            self.closed.insert(key.clone());
            return;
        }
        let (key, value) = if let Event::NowRecorded { key, value } = event {
            (key, Recorded::Now(*value))
        } else if let Event::UuidRecorded { key, value } = event {
            (key, Recorded::Uuid(*value))
        } else if let Event::RandomRecorded { key, value } = event {
            (key, Recorded::Random(*value))
        } else {
            return;
        };
        let forgotten = match value {
            Recorded::Now(_) => crate::planted!("now-not-remembered"),
            Recorded::Uuid(_) => crate::planted!("uuid-not-remembered"),
            Recorded::Random(_) => false,
        };
        if !forgotten {
            self.recorded.insert(key.clone(), value);
        }
    }

    /// Whether a scope's end, with its result, is in the journal: its inside is not run again, only its end is fed.
    pub fn is_closed<Q: Ord + ?Sized>(&self, scope: &Q) -> bool
    where
        Key: Borrow<Q>,
    {
        self.closed.contains(scope)
    }

    /// Whether there is any such scope.
    pub fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Requests an operation.
    pub fn request(&mut self, operation: Operation, location: Option<Location>) {
        self.requested.push(Requested { operation, location });
    }

    /// The time: as recorded under this key, or else as provided, to be recorded.
    pub fn record_now(&mut self, key: Key, location: Option<Location>) -> Timestamp {
        let value = match self.recorded.get(&key) {
            Some(Recorded::Now(value)) => *value,
            // Another kind under this key is a mismatch, which the driver finds when it compares the request.
            Some(Recorded::Uuid(_) | Recorded::Random(_)) | None => self.provided.now,
        };
        self.request(Operation::RecordNow { key, value }, location);
        value
    }

    /// A unique id: as recorded under this key, or else a new one, to be recorded.
    pub fn record_uuid(&mut self, key: Key, location: Option<Location>) -> Uuid {
        let value = match self.recorded.get(&key) {
            Some(Recorded::Uuid(value)) => *value,
            Some(Recorded::Now(_) | Recorded::Random(_)) | None => {
                let (high, low) = self.draw();
                uuid::Builder::from_random_bytes(((u128::from(high) << 64) | u128::from(low)).to_be_bytes()).into_uuid()
            }
        };
        self.request(Operation::RecordUuid { key, value }, location);
        value
    }

    /// A random number: as recorded under this key, or else a new one, to be recorded.
    pub fn record_random(&mut self, key: Key, location: Option<Location>) -> u64 {
        let value = match self.recorded.get(&key) {
            Some(Recorded::Random(value)) => *value,
            Some(Recorded::Now(_) | Recorded::Uuid(_)) | None => self.draw().0,
        };
        self.request(Operation::RecordRandom { key, value }, location);
        value
    }

    /// What was requested since it was taken last, in order.
    pub fn requested(&self) -> &[Requested] {
        &self.requested
    }

    /// Takes what was requested since the last time, in order. What `into` held before is dropped; its room is kept.
    pub fn take_into(&mut self, into: &mut Vec<Requested>) {
        into.clear();
        std::mem::swap(into, &mut self.requested);
    }

    /// Takes what was requested since the last time, in order.
    pub fn take(&mut self) -> Vec<Requested> {
        std::mem::take(&mut self.requested)
    }

    /// Two numbers from the two halves of the seed, so that ids have all of its chance in them.
    fn draw(&mut self) -> (u64, u64) {
        let bytes = self.provided.seed.to_be_bytes();
        let half = |from: usize| bytes[from..from + 8].iter().fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte));
        let drawn = self.drawn;
        self.drawn += 1;
        (hash(half(0), drawn), hash(half(8), drawn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn operations(now: i64, seed: u128) -> Operations {
        Operations::new(Provided { now: Timestamp::from_millis(now), seed })
    }

    #[test]
    fn a_recorded_answer_is_given_again_and_still_requested() {
        let mut live = operations(5, 1);
        let uuid = live.record_uuid(key("id"), None);
        let random = live.record_random(key("dice"), None);
        let mut replay = operations(99, 2);
        replay.remember(&Event::NowRecorded { key: key("at"), value: Timestamp::from_millis(5) });
        replay.remember(&Event::UuidRecorded { key: key("id"), value: uuid });
        replay.remember(&Event::RandomRecorded { key: key("dice"), value: random });
        assert_eq!(replay.record_now(key("at"), None), Timestamp::from_millis(5));
        assert_eq!(replay.record_uuid(key("id"), None), uuid);
        assert_eq!(replay.record_random(key("dice"), None), random);
        assert_eq!(replay.take().len(), 3);
    }

    #[test]
    fn unique_ids_differ_within_a_pass_and_between_passes() {
        let mut ops = operations(0, 1);
        let mut ids: Vec<Uuid> = (0..100).map(|n| ops.record_uuid(key(&format!("id{n}")), None)).collect();
        // The halves of the next seed differ in one bit of one half only.
        ops.provide(Provided { now: Timestamp::EPOCH, seed: 1 << 100 });
        ids.extend((0..100).map(|n| ops.record_uuid(key(&format!("jd{n}")), None)));
        // The seed of the third pass is that of the second.
        ops.provide(Provided { now: Timestamp::EPOCH, seed: 1 << 100 });
        ids.extend((0..100).map(|n| ops.record_uuid(key(&format!("kd{n}")), None)));
        assert!(ids.iter().all(|id| id.get_version_num() == 4));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 300);
    }

    #[test]
    fn a_scope_is_closed_by_its_recorded_end_unless_its_inside_is_replayed() {
        let mut ops = operations(0, 1);
        let finished = |name, replay_inside: bool| {
            let result = (!replay_inside).then(|| bytes::Bytes::from("1"));
            Event::ScopeFinished { key: key(name), result, replay_inside, reason: None }
        };
        ops.remember(&finished("kept", false));
        ops.remember(&finished("large", true));
        ops.remember(&Event::ScopeFailed { key: key("failed"), error: crate::failure::Failure::new("error", "no") });
        let closed: Vec<&str> =
            ["kept", "large", "failed", "open"].into_iter().filter(|name| ops.is_closed(&key(name))).collect();
        assert_eq!(closed, ["kept", "failed"]);
    }

    #[test]
    fn an_answer_of_another_kind_is_not_given() {
        let mut ops = operations(5, 1);
        ops.remember(&Event::RandomRecorded { key: key("x"), value: 3 });
        assert_eq!(ops.record_now(key("x"), None), Timestamp::from_millis(5));
    }
}
