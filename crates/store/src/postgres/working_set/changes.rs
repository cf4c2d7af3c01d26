//! What the logic changed and the database does not know yet.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use outlast_core::commit::{InboxItem, Snapshot, TimerRef};
use outlast_core::id::{
    AttributeName, DeliveryId, Generation, InboxId, Index, Key, Namespace, RunKey, ScheduleId, TaskId,
};
use outlast_core::record::Record;

use crate::api::Schedule;
use crate::rows::{Clear, HeldRow, RunRow, StartKey, StartKeyRow, TaskRow, TimerRow, WaitRow, WaitState};

/// What changed.
#[derive(Debug, Default)]
pub(in super::super) struct Changes {
    pub(in super::super) runs: BTreeMap<RunKey, RunChanges>,
    /// None: removed.
    pub(in super::super) tasks: BTreeMap<(Namespace, TaskId), Option<TaskRow>>,
    pub(in super::super) schedules: BTreeMap<(Namespace, ScheduleId), Schedule>,
    pub(in super::super) start_keys: BTreeMap<StartKey, StartKeyRow>,
    pub(in super::super) seqs_used: usize,
}

/// What changed of one run. The clearing comes first, everything else after it.
#[derive(Debug, Default)]
pub(in super::super) struct RunChanges {
    pub(in super::super) row: Option<RunRow>,
    /// The run is new, with this input.
    pub(in super::super) created: Option<Bytes>,
    pub(in super::super) cleared: Option<Clear>,
    pub(in super::super) inputs: BTreeMap<Generation, Bytes>,
    pub(in super::super) events: BTreeMap<(Generation, Index), Record>,
    pub(in super::super) pushed: BTreeMap<InboxId, InboxItem>,
    pub(in super::super) removed: BTreeSet<InboxId>,
    pub(in super::super) delivered: BTreeSet<DeliveryId>,
    pub(in super::super) waits: BTreeMap<Key, WaitRow>,
    /// Waits that were changed and then cleared with their generation. As stored they may be slots, which would stay.
    pub(in super::super) unslotted: BTreeSet<Key>,
    /// None: removed.
    pub(in super::super) timers: BTreeMap<TimerRef, Option<TimerRow>>,
    pub(in super::super) snapshot: Option<(Generation, Snapshot)>,
    /// None: removed.
    pub(in super::super) attributes: BTreeMap<AttributeName, Option<String>>,
    /// None: removed.
    pub(in super::super) held: Option<Option<HeldRow>>,
    /// It is to be looked at again.
    pub(in super::super) reheld: bool,
    /// It gave back what it had of flow control.
    pub(in super::super) left: bool,
    /// The input of its first generation, where that is another now.
    pub(in super::super) replaced: Option<Bytes>,
}

impl Changes {
    pub(super) fn of(&mut self, run: &RunKey) -> &mut RunChanges {
        self.runs.entry(run.clone()).or_default()
    }

    /// Detaches the changed tasks the run awaits.
    pub(super) fn detach_tasks(&mut self, run: &RunKey) {
        for task in self.tasks.values_mut().flatten() {
            if awaits(task, run) {
                task.awaited = None;
            }
        }
    }
}

impl RunChanges {
    /// Drops what a clearing takes along.
    pub(super) fn clear(&mut self, what: Clear) {
        let stays = |keeps: bool| what == Clear::Generation && keeps;
        self.timers.clear();
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.waits).into_iter().partition(|(_, wait)| stays(wait.state == WaitState::Slotted));
        self.waits = kept;
        self.unslotted.extend(gone.into_keys());
        self.pushed.retain(|_, item| stays(item.kind.outlives_generation()));
        self.snapshot = None;
        if self.cleared != Some(Clear::Run) {
            self.cleared = Some(what);
        }
    }
}

/// Whether the run awaits the task.
pub(super) fn awaits(task: &TaskRow, run: &RunKey) -> bool {
    task.namespace == run.namespace && task.awaited.as_ref().is_some_and(|(owner, _)| *owner == run.id)
}
