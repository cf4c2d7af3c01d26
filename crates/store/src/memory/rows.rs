//! [`Rows`] over maps.

use bytes::Bytes;
use outlast_core::commit::{InboxItem, InboxKind, Snapshot, TimerRef};
use outlast_core::id::{
    AttributeName, DeliveryId, Generation, InboxId, Index, Key, LeaseId, Namespace, RunKey, ScheduleId, SignalName,
    TaskId,
};
use outlast_core::planted;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use super::State;
use crate::api::Schedule;
use crate::error::StoreError;
use crate::rows::{Clear, Fault, InboxHead, Rows, RunRow, TaskRow, TimerRow, WaitRow, WaitState};

impl State {
    fn index(&mut self, run: &RunRow) {
        if let Some(ready_at) = run.ready_at.filter(|_| is_ready(run)) {
            let number = self.number(&run.key.namespace);
            self.ready.insert((-i32::from(run.priority), number, ready_at, run.row));
        }
        if let Some(owner) = run.owner {
            self.owned.insert((owner, run.row));
        }
    }

    fn unindex(&mut self, run: &RunRow) {
        if let Some(ready_at) = run.ready_at {
            let number = self.number(&run.key.namespace);
            self.ready.remove(&(-i32::from(run.priority), number, ready_at, run.row));
        }
        if let Some(owner) = run.owner {
            self.owned.remove(&(owner, run.row));
        }
    }

    fn detach_tasks(&mut self, run: &RunRow) {
        for task in self.tasks.values_mut().filter(|task| task.namespace == run.key.namespace) {
            if task.awaited.as_ref().is_some_and(|(owner, _)| *owner == run.key.id) {
                task.awaited = None;
            }
        }
    }
}

fn is_ready(run: &RunRow) -> bool {
    (run.owner.is_none() || planted!("claim-takes-owned")) && run.status.is_claimable() && run.deleted_at.is_none()
}

impl Rows for State {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn has_namespace(&mut self, namespace: &Namespace) -> Result<bool, Fault> {
        Ok(self.namespaces.contains_key(namespace))
    }

    fn lease_until(&mut self, lease: LeaseId) -> Result<Option<Timestamp>, Fault> {
        Ok(self.leases.get(&lease).map(|(_, until)| *until))
    }

    fn run(&mut self, key: &RunKey) -> Result<Option<RunRow>, Fault> {
        Ok(self.runs.get(key).cloned())
    }

    fn insert_run(&mut self, run: &RunRow, input: &Bytes) -> Result<i64, Fault> {
        let row = self.names.keys().next_back().map_or(1, |last| last + 1);
        let run = RunRow { row, ..run.clone() };
        self.index(&run);
        self.names.insert(row, run.key.clone());
        self.inputs.insert((row, Generation(0)), input.clone());
        self.runs.insert(run.key.clone(), run);
        Ok(row)
    }

    fn update_run(&mut self, before: &RunRow, after: &RunRow) -> Result<(), Fault> {
        self.unindex(before);
        self.index(after);
        self.runs.insert(after.key.clone(), after.clone());
        Ok(())
    }

    fn input(&mut self, run: &RunRow, generation: Generation) -> Result<Bytes, Fault> {
        let missing =
            || StoreError::corrupt(run.key.to_string(), format!("the input of generation {generation} is gone"));
        Ok(self.inputs.get(&(run.row, generation)).cloned().ok_or_else(missing)?)
    }

    fn put_input(&mut self, run: &RunRow, generation: Generation, input: &Bytes) -> Result<(), Fault> {
        self.inputs.insert((run.row, generation), input.clone());
        Ok(())
    }

    fn append(&mut self, run: &RunRow, first: Index, events: &[Record]) -> Result<(), Fault> {
        for (index, event) in (first.0..).zip(events) {
            let replaced = self.events.insert((run.row, run.generation, Index(index)), event.clone());
            assert!(replaced.is_none(), "{} has event {index} already", run.key);
        }
        Ok(())
    }

    fn record(&mut self, run: &RunRow, index: Index) -> Result<Option<Record>, Fault> {
        Ok(self.events.get(&(run.row, run.generation, index)).cloned())
    }

    fn push_inbox(&mut self, run: &RunRow, item: &InboxItem) -> Result<(), Fault> {
        self.inbox.insert((run.row, item.id), item.clone());
        Ok(())
    }

    fn inbox_heads(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<Vec<InboxHead>, Fault> {
        let found = ids.iter().filter_map(|id| self.inbox.get(&(run.row, *id)));
        Ok(found.map(|item| InboxHead { id: item.id, kind: item.kind }).collect())
    }

    fn remove_inbox(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<(), Fault> {
        for id in ids {
            self.inbox.remove(&(run.row, *id));
        }
        Ok(())
    }

    fn mailbox(&mut self, run: &RunRow, name: &SignalName) -> Result<Vec<InboxId>, Fault> {
        let items = self.inbox.range((run.row, InboxId(0))..=(run.row, InboxId(u64::MAX))).map(|(_, item)| item);
        let fits = |item: &&InboxItem| {
            item.kind == InboxKind::Signal && item.key.is_none() && item.name.as_deref() == Some(name.as_str())
        };
        Ok(items.filter(fits).map(|item| item.id).collect())
    }

    fn was_delivered(&mut self, run: &RunRow, id: &DeliveryId) -> Result<bool, Fault> {
        Ok(self.delivered.contains(&(run.row, id.clone())))
    }

    fn remember_delivery(&mut self, run: &RunRow, id: &DeliveryId) -> Result<(), Fault> {
        self.delivered.insert((run.row, id.clone()));
        Ok(())
    }

    fn wait(&mut self, run: &RunRow, key: &Key) -> Result<Option<WaitRow>, Fault> {
        Ok(self.waits.get(&(run.row, key.clone())).cloned())
    }

    fn put_wait(&mut self, run: &RunRow, wait: &WaitRow) -> Result<(), Fault> {
        self.waits.insert((run.row, wait.key.clone()), wait.clone());
        Ok(())
    }

    fn open_waits(&mut self, run: &RunRow, name: &SignalName) -> Result<usize, Fault> {
        let open = |wait: &&WaitRow| wait.state == WaitState::Open && wait.name.as_ref() == Some(name);
        Ok(self.waits_of(run.row).filter(open).count())
    }

    fn answered_waits(&mut self, run: &RunRow) -> Result<Vec<WaitRow>, Fault> {
        Ok(self.waits_of(run.row).filter(|wait| wait.state == WaitState::Answered).cloned().collect())
    }

    fn timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<Option<TimerRow>, Fault> {
        Ok(self.timers.get(&(run.row, timer.clone())).cloned())
    }

    fn put_timer(&mut self, run: &RunRow, timer: &TimerRow) -> Result<(), Fault> {
        self.remove_timer(run, &timer.timer)?;
        self.due.insert((timer.due, run.row, timer.timer.clone()));
        self.timers.insert((run.row, timer.timer.clone()), timer.clone());
        Ok(())
    }

    fn remove_timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<(), Fault> {
        if let Some(found) = self.timers.remove(&(run.row, timer.clone())) {
            self.due.remove(&(found.due, run.row, timer.clone()));
        }
        Ok(())
    }

    fn task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<Option<TaskRow>, Fault> {
        Ok(self.tasks.get(&(namespace.clone(), id.clone())).cloned())
    }

    fn task_of(&mut self, run: &RunRow, key: &Key) -> Result<Option<TaskRow>, Fault> {
        let awaited = Some((run.key.id.clone(), key.clone()));
        let mine = |task: &&TaskRow| task.namespace == run.key.namespace && task.awaited == awaited;
        Ok(self.tasks.values().find(mine).cloned())
    }

    fn put_task(&mut self, task: &TaskRow) -> Result<(), Fault> {
        self.remove_task(&task.namespace, &task.id)?;
        self.index_task(task);
        self.tasks.insert((task.namespace.clone(), task.id.clone()), task.clone());
        Ok(())
    }

    fn remove_task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<(), Fault> {
        if let Some(task) = self.tasks.remove(&(namespace.clone(), id.clone())) {
            self.unindex_task(&task);
        }
        Ok(())
    }

    fn put_snapshot(&mut self, run: &RunRow, snapshot: &Snapshot) -> Result<(), Fault> {
        self.snapshots.insert(run.row, (run.generation, snapshot.clone()));
        Ok(())
    }

    fn put_attribute(&mut self, run: &RunRow, name: &AttributeName, value: Option<&str>) -> Result<(), Fault> {
        match value {
            Some(value) => self.attributes.insert((run.row, name.clone()), value.to_owned()),
            None => self.attributes.remove(&(run.row, name.clone())),
        };
        Ok(())
    }

    fn clear(&mut self, run: &RunRow, what: Clear) -> Result<(), Fault> {
        let row = run.row;
        self.due.retain(|(_, owner, _)| *owner != row);
        self.timers.retain(|(owner, _), _| *owner != row);
        self.waits.retain(|(owner, _), wait| {
            *owner != row || (what == Clear::Generation && wait.state == WaitState::Slotted)
        });
        self.inbox
            .retain(|(owner, _), item| *owner != row || (what == Clear::Generation && item.kind.outlives_generation()));
        self.snapshots.remove(&row);
        self.detach_tasks(run);
        Ok(())
    }

    fn schedule(&mut self, namespace: &Namespace, id: &ScheduleId) -> Result<Option<Schedule>, Fault> {
        Ok(self.schedules.get(&(namespace.clone(), id.clone())).cloned())
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Fault> {
        self.schedules.insert((schedule.namespace.clone(), schedule.id.clone()), schedule.clone());
        Ok(())
    }
}
