//! [`Rows`] over a working set.

use std::collections::BTreeMap;

use bytes::Bytes;
use outlast_core::commit::{InboxItem, InboxKind, Snapshot, TimerRef};
use outlast_core::id::{
    AttributeName, DeliveryId, Generation, InboxId, Index, Key, LeaseId, Namespace, RunKey, ScheduleId, SignalName,
    TaskId,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use super::changes::awaits;
use super::{RunFacts, WorkingSet};
use crate::api::Schedule;
use crate::error::StoreError;
use crate::rows::{Clear, Fault, InboxHead, Rows, RunRow, TaskRow, TimerRow, WaitRow, WaitState};

impl WorkingSet {
    /// Nothing of the run is in the database: it is new.
    pub(super) fn is_new(&self, run: &RunKey) -> bool {
        self.run_changes(run).is_some_and(|changes| changes.created.is_some())
    }

    fn cleared(&self, run: &RunKey) -> Option<Clear> {
        self.run_changes(run).and_then(|changes| changes.cleared)
    }

    /// The run's facts, if the database may still hold rows of it that a clearing takes along.
    fn clearable_facts(&self, run: &RunKey) -> Result<Option<&RunFacts>, ()> {
        if self.is_new(run) || self.cleared(run) == Some(Clear::Run) { Err(()) } else { Ok(self.run_facts(run)) }
    }

    /// A task as the database has it, less what a clearing in this pass detached.
    fn seen(&self, task: &TaskRow) -> TaskRow {
        let mut task = task.clone();
        if let Some((run, _)) = &task.awaited {
            let run = RunKey::new(task.namespace.clone(), run.clone());
            if self.cleared(&run).is_some() {
                task.awaited = None;
            }
        }
        task
    }

    /// All waits of the run that are known, as they are now.
    fn known_waits(&self, run: &RunKey) -> BTreeMap<Key, WaitRow> {
        let mut known = BTreeMap::new();
        if let Ok(Some(facts)) = self.clearable_facts(run) {
            let stored = facts.waits.values().filter_map(|found| found.as_ref().ok()?.as_ref());
            let kept = stored.filter(|wait| self.cleared(run).is_none() || wait.state == WaitState::Slotted);
            known.extend(kept.map(|wait| (wait.key.clone(), wait.clone())));
        }
        if let Some(changes) = self.run_changes(run) {
            known.extend(changes.waits.iter().map(|(key, wait)| (key.clone(), wait.clone())));
        }
        known
    }

    fn undamaged(&self, run: &RunKey) -> Result<(), Fault> {
        match self.run_facts(run).and_then(|facts| facts.damage.clone()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn head(&mut self, run: &RunKey, id: InboxId) -> Result<Option<InboxHead>, Fault> {
        if let Some(changes) = self.run_changes(run) {
            if let Some(item) = changes.pushed.get(&id) {
                return Ok(Some(InboxHead { id, kind: item.kind }));
            }
            if changes.removed.contains(&id) {
                return Ok(None);
            }
        }
        let generation_over = self.cleared(run) == Some(Clear::Generation);
        let Ok(facts) = self.clearable_facts(run) else { return Ok(None) };
        match facts.and_then(|facts| facts.heads.get(&id)) {
            None => self.miss(run, |needs| needs.heads.insert(id)),
            Some(found) => {
                let kind = found.clone()?.filter(|kind| !generation_over || kind.outlives_generation());
                Ok(kind.map(|kind| InboxHead { id, kind }))
            }
        }
    }
}

impl Rows for WorkingSet {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn has_namespace(&mut self, namespace: &Namespace) -> Result<bool, Fault> {
        Ok(self.facts.namespaces.contains_key(namespace))
    }

    fn lease_until(&mut self, lease: LeaseId) -> Result<Option<Timestamp>, Fault> {
        match self.facts.leases.get(&lease) {
            Some(until) => Ok(*until),
            None => {
                self.missing.leases.insert(lease);
                Err(Fault::Miss)
            }
        }
    }

    fn run(&mut self, key: &RunKey) -> Result<Option<RunRow>, Fault> {
        if let Some(row) = self.run_changes(key).and_then(|changes| changes.row.as_ref()) {
            return Ok(Some(row.clone()));
        }
        match self.run_facts(key).and_then(|facts| facts.row.clone()) {
            Some(found) => Ok(found?),
            None => self.miss(key, |needs| needs.row = true),
        }
    }

    fn insert_run(&mut self, run: &RunRow, input: &Bytes) -> Result<i64, Fault> {
        let used = self.changes.seqs_used;
        self.changes.seqs_used += 1;
        let Some(&row) = self.facts.seqs.get(used) else {
            self.missing.seqs += 1;
            return Err(Fault::Miss);
        };
        let changes = self.changes.of(&run.key);
        changes.row = Some(RunRow { row, ..run.clone() });
        changes.created = Some(input.clone());
        Ok(row)
    }

    fn update_run(&mut self, _before: &RunRow, after: &RunRow) -> Result<(), Fault> {
        self.changes.of(&after.key).row = Some(after.clone());
        Ok(())
    }

    fn input(&mut self, run: &RunRow, generation: Generation) -> Result<Bytes, Fault> {
        if let Some(changes) = self.run_changes(&run.key) {
            let first = changes.replaced.as_ref().or(changes.created.as_ref());
            let changed = first.filter(|_| generation == Generation(0));
            if let Some(input) = changed.or_else(|| changes.inputs.get(&generation)) {
                return Ok(input.clone());
            }
        }
        match self.run_facts(&run.key).and_then(|facts| facts.inputs.get(&generation)) {
            None => self.miss(&run.key, |needs| needs.inputs.insert(generation)),
            Some(found) => match found.clone()? {
                Some(input) => Ok(input),
                None => {
                    let detail = format!("the input of generation {generation} is gone");
                    Err(StoreError::corrupt(run.key.to_string(), detail).into())
                }
            },
        }
    }

    fn put_input(&mut self, run: &RunRow, generation: Generation, input: &Bytes) -> Result<(), Fault> {
        self.changes.of(&run.key).inputs.insert(generation, input.clone());
        Ok(())
    }

    fn append(&mut self, run: &RunRow, first: Index, events: &[Record]) -> Result<(), Fault> {
        let changes = self.changes.of(&run.key);
        for (index, event) in (first.0..).zip(events) {
            changes.events.insert((run.generation, Index(index)), event.clone());
        }
        Ok(())
    }

    fn record(&mut self, run: &RunRow, index: Index) -> Result<Option<Record>, Fault> {
        let at = (run.generation, index);
        if let Some(record) = self.run_changes(&run.key).and_then(|changes| changes.events.get(&at)) {
            return Ok(Some(record.clone()));
        }
        if self.is_new(&run.key) {
            return Ok(None);
        }
        match self.run_facts(&run.key).and_then(|facts| facts.records.get(&at)) {
            Some(found) => Ok(found.clone()?),
            None => self.miss(&run.key, |needs| needs.records.insert(at)),
        }
    }

    fn push_inbox(&mut self, run: &RunRow, item: &InboxItem) -> Result<(), Fault> {
        self.changes.of(&run.key).pushed.insert(item.id, item.clone());
        Ok(())
    }

    fn inbox_heads(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<Vec<InboxHead>, Fault> {
        let mut heads = Vec::with_capacity(ids.len());
        let mut missed = false;
        for id in ids {
            match self.head(&run.key, *id) {
                Ok(head) => heads.extend(head),
                Err(Fault::Miss) => missed = true,
                Err(fault) => return Err(fault),
            }
        }
        if missed { Err(Fault::Miss) } else { Ok(heads) }
    }

    fn remove_inbox(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<(), Fault> {
        let changes = self.changes.of(&run.key);
        for id in ids {
            changes.pushed.remove(id);
            changes.removed.insert(*id);
        }
        Ok(())
    }

    fn mailbox(&mut self, run: &RunRow, name: &SignalName) -> Result<Vec<InboxId>, Fault> {
        // Signals outlive a generation; only the run's end clears them.
        let mut ids = match self.clearable_facts(&run.key) {
            Err(()) => Vec::new(),
            Ok(facts) => match facts.and_then(|facts| facts.mailboxes.get(name)) {
                Some(ids) => ids.clone(),
                None => return self.miss(&run.key, |needs| needs.mailboxes.insert(name.clone())),
            },
        };
        if let Some(changes) = self.run_changes(&run.key) {
            ids.retain(|id| !changes.removed.contains(id));
            let fits = |item: &&InboxItem| {
                item.kind == InboxKind::Signal && item.key.is_none() && item.name.as_deref() == Some(name.as_str())
            };
            ids.extend(changes.pushed.values().filter(fits).map(|item| item.id));
        }
        Ok(ids)
    }

    fn was_delivered(&mut self, run: &RunRow, id: &DeliveryId) -> Result<bool, Fault> {
        if self.run_changes(&run.key).is_some_and(|changes| changes.delivered.contains(id)) {
            return Ok(true);
        }
        if self.is_new(&run.key) {
            return Ok(false);
        }
        match self.run_facts(&run.key).and_then(|facts| facts.delivered.get(id)) {
            Some(delivered) => Ok(*delivered),
            None => self.miss(&run.key, |needs| needs.delivered.insert(id.clone())),
        }
    }

    fn remember_delivery(&mut self, run: &RunRow, id: &DeliveryId) -> Result<(), Fault> {
        self.changes.of(&run.key).delivered.insert(id.clone());
        Ok(())
    }

    fn wait(&mut self, run: &RunRow, key: &Key) -> Result<Option<WaitRow>, Fault> {
        if let Some(wait) = self.run_changes(&run.key).and_then(|changes| changes.waits.get(key)) {
            return Ok(Some(wait.clone()));
        }
        if self.run_changes(&run.key).is_some_and(|changes| changes.unslotted.contains(key)) {
            return Ok(None);
        }
        let generation_over = self.cleared(&run.key) == Some(Clear::Generation);
        let Ok(facts) = self.clearable_facts(&run.key) else { return Ok(None) };
        match facts.and_then(|facts| facts.waits.get(key)) {
            Some(found) => Ok(found.clone()?.filter(|wait| !generation_over || wait.state == WaitState::Slotted)),
            None => self.miss(&run.key, |needs| needs.waits.insert(key.clone())),
        }
    }

    fn put_wait(&mut self, run: &RunRow, wait: &WaitRow) -> Result<(), Fault> {
        self.changes.of(&run.key).waits.insert(wait.key.clone(), wait.clone());
        Ok(())
    }

    fn open_waits(&mut self, run: &RunRow, name: &SignalName) -> Result<usize, Fault> {
        if let Ok(facts) = self.clearable_facts(&run.key)
            && !facts.is_some_and(|facts| facts.open_waits.contains(name))
        {
            return self.miss(&run.key, |needs| needs.open_waits.insert(name.clone()));
        }
        self.undamaged(&run.key)?;
        let open = |wait: &&WaitRow| wait.state == WaitState::Open && wait.name.as_ref() == Some(name);
        Ok(self.known_waits(&run.key).values().filter(open).count())
    }

    fn answered_waits(&mut self, run: &RunRow) -> Result<Vec<WaitRow>, Fault> {
        if let Ok(facts) = self.clearable_facts(&run.key)
            && !facts.is_some_and(|facts| facts.answered_waits)
        {
            return self.miss(&run.key, |needs| needs.answered_waits = true);
        }
        self.undamaged(&run.key)?;
        let waits = self.known_waits(&run.key).into_values();
        Ok(waits.filter(|wait| wait.state == WaitState::Answered).collect())
    }

    fn timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<Option<TimerRow>, Fault> {
        if let Some(changed) = self.run_changes(&run.key).and_then(|changes| changes.timers.get(timer)) {
            return Ok(changed.clone());
        }
        if self.cleared(&run.key).is_some() || self.is_new(&run.key) {
            return Ok(None);
        }
        match self.run_facts(&run.key).and_then(|facts| facts.timers.get(timer)) {
            Some(found) => Ok(found.clone()?),
            None => self.miss(&run.key, |needs| needs.timers.insert(timer.clone())),
        }
    }

    fn put_timer(&mut self, run: &RunRow, timer: &TimerRow) -> Result<(), Fault> {
        self.changes.of(&run.key).timers.insert(timer.timer.clone(), Some(timer.clone()));
        Ok(())
    }

    fn remove_timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<(), Fault> {
        self.changes.of(&run.key).timers.insert(timer.clone(), None);
        Ok(())
    }

    fn task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<Option<TaskRow>, Fault> {
        let name = (namespace.clone(), id.clone());
        if let Some(changed) = self.changes.tasks.get(&name) {
            return Ok(changed.clone());
        }
        match self.facts.tasks.get(&name) {
            Some(found) => Ok(found.clone()?.map(|task| self.seen(&task))),
            None => {
                self.missing.tasks.insert(name);
                Err(Fault::Miss)
            }
        }
    }

    fn task_of(&mut self, run: &RunRow, key: &Key) -> Result<Option<TaskRow>, Fault> {
        let detached = self.is_new(&run.key) || self.cleared(&run.key).is_some();
        if !detached {
            self.undamaged(&run.key)?;
            if !self.run_facts(&run.key).is_some_and(|facts| facts.tasks_of.contains(key)) {
                return self.miss(&run.key, |needs| needs.tasks_of.insert(key.clone()));
            }
        }
        let mine = |task: &&TaskRow| {
            awaits(task, &run.key) && task.awaited.as_ref().is_some_and(|(_, operation)| operation == key)
        };
        let stored = self.facts.tasks.iter().filter(|(name, _)| !detached && !self.changes.tasks.contains_key(*name));
        let stored = stored.filter_map(|(_, found)| found.as_ref().ok()?.as_ref()).filter(mine);
        let changed = self.changes.tasks.values().flatten().filter(mine);
        Ok(stored.chain(changed).min_by(|a, b| a.id.cmp(&b.id)).cloned())
    }

    fn put_task(&mut self, task: &TaskRow) -> Result<(), Fault> {
        self.changes.tasks.insert((task.namespace.clone(), task.id.clone()), Some(task.clone()));
        Ok(())
    }

    fn remove_task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<(), Fault> {
        self.changes.tasks.insert((namespace.clone(), id.clone()), None);
        Ok(())
    }

    fn put_snapshot(&mut self, run: &RunRow, snapshot: &Snapshot) -> Result<(), Fault> {
        self.changes.of(&run.key).snapshot = Some((run.generation, snapshot.clone()));
        Ok(())
    }

    fn put_attribute(&mut self, run: &RunRow, name: &AttributeName, value: Option<&str>) -> Result<(), Fault> {
        self.changes.of(&run.key).attributes.insert(name.clone(), value.map(str::to_owned));
        Ok(())
    }

    fn clear(&mut self, run: &RunRow, what: Clear) -> Result<(), Fault> {
        self.changes.detach_tasks(&run.key);
        self.changes.of(&run.key).clear(what);
        Ok(())
    }

    fn schedule(&mut self, namespace: &Namespace, id: &ScheduleId) -> Result<Option<Schedule>, Fault> {
        let name = (namespace.clone(), id.clone());
        if let Some(changed) = self.changes.schedules.get(&name) {
            return Ok(Some(changed.clone()));
        }
        match self.facts.schedules.get(&name) {
            Some(found) => Ok(found.clone()?),
            None => {
                self.missing.schedules.insert(name);
                Err(Fault::Miss)
            }
        }
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Fault> {
        self.changes.schedules.insert((schedule.namespace.clone(), schedule.id.clone()), schedule.clone());
        Ok(())
    }
}
