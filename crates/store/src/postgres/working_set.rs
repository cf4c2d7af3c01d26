//! The rows of one transaction in memory: fetched and locked before, changed by the shared logic, flushed after.
//!
//! The logic is synchronous and asks for one row at a time. Asking for one that was not fetched is a miss: it is noted,
//! the pass is thrown away, everything missing is fetched in one round trip, and the pass runs again.

mod changes;
mod held;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use outlast_core::commit::{InboxKind, TimerRef};
use outlast_core::id::{
    DeliveryId, Generation, InboxId, Index, Key, LeaseId, Namespace, RunKey, ScheduleId, SignalName, TaskId,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use super::needs::{Needs, RunNeeds};
use crate::api::Schedule;
use crate::error::StoreError;
use crate::rows::{Fault, HeldRow, RunRow, StartKey, StartKeyRow, TaskRow, TimerRow, WaitRow};

pub(super) use changes::{Changes, RunChanges};

/// A row that was looked for: there, not there, or not to be read.
pub(super) type Found<T> = Result<Option<T>, StoreError>;

/// What the database holds.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) runs: BTreeMap<RunKey, RunFacts>,
    pub(super) tasks: BTreeMap<(Namespace, TaskId), Found<TaskRow>>,
    pub(super) schedules: BTreeMap<(Namespace, ScheduleId), Found<Schedule>>,
    pub(super) start_keys: BTreeMap<StartKey, Found<StartKeyRow>>,
    pub(super) leases: BTreeMap<LeaseId, Option<Timestamp>>,
    /// Numbers for runs to insert, taken from the sequence.
    pub(super) seqs: Vec<i64>,
    /// The namespaces that exist, of those that were asked for.
    pub(super) namespaces: BTreeMap<Namespace, i32>,
}

/// What the database holds of one run.
#[derive(Debug, Default)]
pub(super) struct RunFacts {
    pub(super) row: Option<Found<RunRow>>,
    pub(super) inputs: BTreeMap<Generation, Found<Bytes>>,
    pub(super) records: BTreeMap<(Generation, Index), Found<Record>>,
    pub(super) heads: BTreeMap<InboxId, Found<InboxKind>>,
    pub(super) mailboxes: BTreeMap<SignalName, Vec<InboxId>>,
    pub(super) delivered: BTreeMap<DeliveryId, bool>,
    pub(super) waits: BTreeMap<Key, Found<WaitRow>>,
    /// All waits in state open for these signals are in `waits`.
    pub(super) open_waits: BTreeSet<SignalName>,
    /// All waits in state answered are in `waits`.
    pub(super) answered_waits: bool,
    pub(super) timers: BTreeMap<TimerRef, Found<TimerRow>>,
    /// All tasks these operations await are among the tasks.
    pub(super) tasks_of: BTreeSet<Key>,
    pub(super) held: Option<Found<HeldRow>>,
    /// Among several rows fetched at once was one that cannot be read.
    pub(super) damage: Option<StoreError>,
}

/// The rows of one transaction.
#[derive(Debug, Default)]
pub(super) struct WorkingSet {
    pub(super) now: Timestamp,
    pub(super) facts: Facts,
    pub(super) changes: Changes,
    pub(super) missing: Needs,
}

impl WorkingSet {
    /// Forgets what the last pass changed and gives what it missed.
    pub(super) fn restart(&mut self) -> Needs {
        self.changes = Changes::default();
        std::mem::take(&mut self.missing)
    }

    /// Puts a run in that was fetched and locked outside.
    pub(super) fn hold(&mut self, ns: i32, run: RunRow) {
        self.facts.namespaces.insert(run.key.namespace.clone(), ns);
        let key = run.key.clone();
        self.facts.runs.entry(key).or_default().row = Some(Ok(Some(run)));
    }

    /// Where a run's rows are: its namespace's number and its own.
    pub(super) fn place(&self, run: &RunKey) -> Option<Place> {
        let changed = self.changes.runs.get(run).and_then(|changes| changes.row.as_ref());
        let row = match changed {
            Some(row) => row.row,
            None => self.stored(run)?.row,
        };
        Some(Place { ns: *self.facts.namespaces.get(&run.namespace)?, run: row })
    }

    /// The run as it is in the database.
    pub(super) fn stored(&self, run: &RunKey) -> Option<&RunRow> {
        self.facts.runs.get(run)?.row.as_ref()?.as_ref().ok()?.as_ref()
    }

    fn miss<T, R>(&mut self, run: &RunKey, need: impl FnOnce(&mut RunNeeds) -> R) -> Result<T, Fault> {
        let _: R = need(self.missing.of(run));
        Err(Fault::Miss)
    }

    fn run_facts(&self, run: &RunKey) -> Option<&RunFacts> {
        self.facts.runs.get(run)
    }

    fn run_changes(&self, run: &RunKey) -> Option<&RunChanges> {
        self.changes.runs.get(run)
    }
}

/// Where a run's rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) ns: i32,
    pub(super) run: i64,
}
