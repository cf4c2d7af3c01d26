//! Which rows a piece of logic will ask for: known beforehand from what it was given, or noticed when they were missing.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::commit::TimerRef;
use outlast_core::id::{
    DeliveryId, Generation, InboxId, Index, Key, LeaseId, Namespace, RunKey, ScheduleId, SignalName, TaskId,
};

use crate::rows::StartKey;

/// Rows to fetch, and where that matters to lock.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) runs: BTreeMap<RunKey, RunNeeds>,
    pub(super) tasks: BTreeSet<(Namespace, TaskId)>,
    pub(super) schedules: BTreeSet<(Namespace, ScheduleId)>,
    pub(super) start_keys: BTreeSet<StartKey>,
    pub(super) leases: BTreeSet<LeaseId>,
    /// Numbers for runs to insert.
    pub(super) seqs: usize,
    /// Namespaces that must be known although no row of them may be needed.
    pub(super) namespaces: BTreeSet<Namespace>,
}

/// Rows that belong to one run.
#[derive(Debug, Default)]
pub(super) struct RunNeeds {
    /// The run itself, locked.
    pub(super) row: bool,
    pub(super) inputs: BTreeSet<Generation>,
    pub(super) records: BTreeSet<(Generation, Index)>,
    pub(super) heads: BTreeSet<InboxId>,
    pub(super) mailboxes: BTreeSet<SignalName>,
    pub(super) delivered: BTreeSet<DeliveryId>,
    pub(super) waits: BTreeSet<Key>,
    pub(super) open_waits: BTreeSet<SignalName>,
    pub(super) answered_waits: bool,
    pub(super) timers: BTreeSet<TimerRef>,
    pub(super) tasks_of: BTreeSet<Key>,
    /// What flow control knows of it.
    pub(super) held: bool,
}

impl Needs {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
            && self.tasks.is_empty()
            && self.schedules.is_empty()
            && self.start_keys.is_empty()
            && self.leases.is_empty()
            && self.seqs == 0
    }

    /// What is needed of a run, besides what is needed already.
    pub(super) fn of(&mut self, run: &RunKey) -> &mut RunNeeds {
        self.runs.entry(run.clone()).or_default()
    }

    /// The run itself.
    pub(super) fn run(&mut self, run: &RunKey) -> &mut RunNeeds {
        let needs = self.of(run);
        needs.row = true;
        needs
    }

    /// Every namespace anything needed is in.
    pub(super) fn all_namespaces(&self) -> impl Iterator<Item = &Namespace> {
        let runs = self.runs.keys().map(|run| &run.namespace);
        let tasks = self.tasks.iter().map(|(namespace, _)| namespace);
        let schedules = self.schedules.iter().map(|(namespace, _)| namespace);
        let start_keys = self.start_keys.iter().map(|(namespace, _, _)| namespace);
        runs.chain(tasks).chain(schedules).chain(start_keys).chain(&self.namespaces)
    }
}
