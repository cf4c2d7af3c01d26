//! The rows of flow control: runs that are held back, the gates they stand at, and start keys.
//!
//! A *gate* is one limit key of one kind and how much of it is used. A held run that was looked at stands in the line of
//! one gate that had no room for it; one that was not, or is not due, stands in none. A *slot* is an admitted run's use of
//! a concurrency gate. Only `admit` writes gates and flows and adds slots; a run's end marks its slots as done.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Admission, Begin, Bound, Fair};
use outlast_core::id::{LimitKey, Namespace, RunId, RunKey};
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::{Fault, RunRow};

/// Which gate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GateId {
    pub(crate) namespace: Namespace,
    pub(crate) name: String,
}

/// What a gate's name begins with.
const CONCURRENCY: &str = "c:";
const RATE: &str = "r:";
const SINGLE: &str = "s:";

/// One gate a run has to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) gate: String,
    pub(crate) bound: Bound,
}

impl Want {
    /// The key it was made from, and whether that is a singleton's.
    pub(crate) fn key(&self) -> (&str, bool) {
        match self.gate.strip_prefix(SINGLE) {
            Some(key) => (key, true),
            None => (self.gate.get(CONCURRENCY.len()..).unwrap_or_default(), false),
        }
    }
}

/// What a held run asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) wants: Vec<Want>,
    pub(crate) fair: Option<Fair>,
}

impl Terms {
    pub(crate) fn of(admission: &Admission) -> Terms {
        let limit = |limit: &outlast_core::commit::Limit| {
            let kind = match limit.bound {
                Bound::Concurrency { .. } => CONCURRENCY,
                Bound::Rate(_) => RATE,
            };
            Want { gate: format!("{kind}{}", limit.key), bound: limit.bound }
        };
        let mut wants: Vec<Want> = admission.limits.iter().map(limit).collect();
        // A singleton has its only place from its admission to its end: whoever takes it waits like everybody who waits for room.
        let holds = |replace: bool| replace || !planted!("plain-singleton-holds-no-place");
        if let Some(single) = admission.single.as_ref().filter(|single| holds(single.replace)) {
            wants.push(Want { gate: format!("{SINGLE}{}", single.key), bound: Bound::Concurrency { max: 1 } });
        }
        Terms { wants, fair: admission.fair.clone() }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn encode(&self) -> String {
        let wants: Vec<(&str, Bound)> = self.wants.iter().map(|want| (want.gate.as_str(), want.bound)).collect();
        serde_json::to_string(&(wants, &self.fair)).unwrap_or_default()
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn decode(text: &str) -> Result<Terms, String> {
        let read = serde_json::from_str(text).map_err(|error| format!("what a held run asks for: {error}"));
        let (wants, fair): (Vec<(String, Bound)>, _) = read?;
        let wants = wants.into_iter().map(|(gate, bound)| Want { gate, bound }).collect();
        Ok(Terms { wants, fair })
    }
}

/// A run that is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldRow {
    /// The run's row, and its name.
    pub(crate) row: i64,
    pub(crate) key: RunKey,
    pub(crate) not_before: Timestamp,
    pub(crate) priority: i16,
    /// Its start tag among those who share its first gate; none until it was looked at.
    pub(crate) place: Option<i64>,
    /// In whose line it stands.
    pub(crate) gate: Option<String>,
    pub(crate) terms: Terms,
}

impl HeldRow {
    pub(crate) fn new(run: &RunRow, admission: &Admission, now: Timestamp) -> HeldRow {
        let not_before = match (admission.begin, &admission.debounce) {
            (_, Some(debounce)) => now + debounce.wait,
            (Begin::Now, None) => now,
            (Begin::After(_) | Begin::At(_), None) if planted!("delay-ignored") => now,
            (Begin::After(delay), None) => now + delay,
            (Begin::At(at), None) => at.max(now),
        };
        HeldRow {
            row: run.row,
            key: run.key.clone(),
            not_before,
            priority: run.priority,
            place: None,
            gate: None,
            terms: Terms::of(admission),
        }
    }

    pub(crate) fn gate_id(&self, name: &str) -> GateId {
        GateId { namespace: self.key.namespace.clone(), name: name.to_owned() }
    }

    /// Whose share it uses.
    pub(crate) fn first(&self) -> Option<&str> {
        self.terms.wants.first().map(|want| want.gate.as_str())
    }

    /// Who comes first: the higher priority, then the smaller start tag, then the older.
    pub(crate) fn order(&self) -> (i32, i64, i64) {
        (-i32::from(self.priority), self.place.unwrap_or(0), self.row)
    }
}

/// One limit key of one kind, and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GateRow {
    pub(crate) id: GateId,
    pub(crate) bound: Bound,
    /// Slots.
    pub(crate) used: u32,
    /// Of a rate: when the next admission is due in theory, in nanoseconds since the Unix epoch.
    pub(crate) tat: Option<i64>,
    /// The largest start tag that was admitted.
    pub(crate) passed: i64,
    /// When to look at its line; none while only the end of a run can make room.
    pub(crate) look_at: Option<Timestamp>,
}

/// What a start key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartKind {
    Window,
    Single,
    Debounce,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl StartKind {
    pub(crate) fn code(self) -> i16 {
        self as i16
    }
}

/// A start key: one key of one kind.
pub(crate) type StartKey = (Namespace, StartKind, LimitKey);

/// The start keys of a run to create.
#[cfg(feature = "postgres")]
pub(crate) fn start_keys_of(new: &outlast_core::commit::NewRun) -> impl Iterator<Item = StartKey> {
    let admission = new.admission.as_deref();
    let window = admission.and_then(|admission| Some((StartKind::Window, &admission.window.as_ref()?.key)));
    let single = admission.and_then(|admission| Some((StartKind::Single, &admission.single.as_ref()?.key)));
    let debounce = admission.and_then(|admission| Some((StartKind::Debounce, &admission.debounce.as_ref()?.key)));
    let keys = [window, single, debounce].into_iter().flatten();
    keys.map(|(kind, key)| (new.run.namespace.clone(), kind, key.clone()))
}

/// Whose a start key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartKeyRow {
    pub(crate) run: RunId,
    /// Until when: the end of a window, the last instant of a debounce.
    pub(crate) until: Timestamp,
}

/// When the debounced run begins at the latest if it is put off now.
pub(crate) fn put_off(now: Timestamp, wait: Duration, until: Timestamp) -> Timestamp {
    (now + wait).min(until).max(now)
}

/// What the shared logic asks of the rows of flow control.
pub(crate) trait HeldRows {
    fn held(&mut self, run: &RunRow) -> Result<Option<HeldRow>, Fault>;
    fn put_held(&mut self, held: &HeldRow) -> Result<(), Fault>;
    fn remove_held(&mut self, run: &RunRow) -> Result<(), Fault>;
    /// Has a held run looked at again.
    fn rehold(&mut self, run: &RunRow) -> Result<(), Fault>;
    /// Gives everything back that the run has of flow control, but for its idempotency window.
    fn leave(&mut self, run: &RunRow) -> Result<(), Fault>;
    /// Replaces the input of a run that has not begun.
    fn replace_input(&mut self, run: &RunRow, input: &Bytes) -> Result<(), Fault>;

    fn start_key(&mut self, key: &StartKey) -> Result<Option<StartKeyRow>, Fault>;
    fn put_start_key(&mut self, key: &StartKey, row: &StartKeyRow) -> Result<(), Fault>;
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl GateRow {
    /// The bound as it is stored.
    pub(crate) fn bound_text(&self) -> String {
        serde_json::to_string(&self.bound).unwrap_or_default()
    }

    pub(crate) fn bound_of(text: &str) -> Result<Bound, String> {
        serde_json::from_str(text).map_err(|error| format!("the limit of a gate: {error}"))
    }
}
