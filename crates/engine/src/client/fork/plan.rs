//! What a fork begins with: the events before the cut, and rows for what is open there.
//!
//! Timers and waits are in the journal with all that is needed to make their rows again, so their events stay and the rows
//! are created with the run. What a child or task is to do is not in the journal, and a step that began must not be taken
//! for one whose driver died: their events are left out, and the program asks for them again.

use std::collections::BTreeSet;

use bytes::Bytes;
use outlast_core::commit::{NewTimer, NewWait, TimerKind, TimerRef, WaitKind};
use outlast_core::event::Event;
use outlast_core::id::{Generation, Index, Key, RunKey};
use outlast_core::journal::{Journal, RecordedOperation};
use outlast_core::planted;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Awaited, StoreError};

use super::Reissued;
use crate::client::EngineError;
use crate::drive::{approval_meta, derived_child_id};

pub(super) struct Source<'a> {
    /// The run that is forked.
    pub(super) from: &'a RunKey,
    pub(super) generation: Generation,
    /// How many of its events to keep.
    pub(super) at: u64,
    /// What is asked for as if it had never been.
    pub(super) anew: &'a BTreeSet<Key>,
    /// Its journal.
    pub(super) records: &'a [Record],
    /// What it waits for now: what only its waits know is taken from there.
    pub(super) awaiting: &'a [Awaited],
    /// The new run.
    pub(super) to: &'a RunKey,
    pub(super) now: Timestamp,
    /// The token of a callback of the new run.
    pub(super) token: &'a (dyn Fn(&Key) -> String + Send + Sync),
}

#[derive(Default)]
pub(super) struct Plan {
    pub(super) history: Vec<Record>,
    pub(super) timers: Vec<NewTimer>,
    pub(super) waits: Vec<NewWait>,
    pub(super) reissued: Vec<Reissued>,
}

impl Plan {
    pub(super) fn new(source: &Source<'_>) -> Result<Plan, EngineError> {
        let journal = source.prefix()?;
        let mut plan = Plan::default();
        let mut dropped = BTreeSet::new();
        for open in journal.open() {
            plan.reissue(source, &journal, &open, &mut dropped);
        }
        plan.history = source.keep(&journal, &dropped);
        // It was legal with what is left out, and must be so without.
        load(&plan.history).map_err(|detail| source.corrupt(detail))?;
        Ok(plan)
    }

    /// Sees to it that what is open happens in the new run too.
    fn reissue(
        &mut self,
        source: &Source<'_>,
        journal: &Journal,
        open: &RecordedOperation,
        dropped: &mut BTreeSet<Index>,
    ) {
        let key = &open.key;
        let mut again =
            Reissued { key: key.clone(), kind: open.kind, deadline: None, was: None, child: None, token: None };
        let Some(start) = journal.get(open.since) else { return };
        if source.anew.contains(key) {
            dropped.extend(events_of(journal, key));
        }
        match start {
            // Its deadline and its attempts were those of the original.
            _ if source.anew.contains(key)
                && !matches!(start, Event::ChildStarted { .. } | Event::TaskScheduled { .. }) => {}
            Event::TimerStarted { deadline, .. } => {
                self.start_timer(key, TimerKind::Delay, *deadline);
                again.deadline = Some(*deadline);
            }
            Event::SignalAwaited { name, deadline, .. } => {
                let wait = new_wait(key, WaitKind::Signal);
                let meta = source.meta_of(key);
                self.open_wait(NewWait { name: Some(name.clone()), meta, ..wait }, *deadline);
                again.deadline = *deadline;
            }
            Event::ApprovalRequested { title, assignee, deadline, .. } => {
                let wait = new_wait(key, WaitKind::Approval);
                self.open_wait(NewWait { assignee: assignee.clone(), meta: approval_meta(title), ..wait }, *deadline);
                again.deadline = *deadline;
            }
            Event::CallbackCreated { deadline, heartbeat_ms, .. } => {
                let heartbeat = heartbeat_ms.map(std::time::Duration::from_millis);
                let token = (source.token)(key);
                let wait = new_wait(key, WaitKind::Callback);
                self.open_wait(NewWait { token: Some(token.clone()), heartbeat, ..wait }, *deadline);
                if let Some(silence) = heartbeat {
                    self.start_timer(key, TimerKind::Heartbeat, source.now + silence);
                }
                (again.deadline, again.token) = (*deadline, Some(token));
            }
            Event::ChildStarted { child, .. } => {
                if !planted!("fork-keeps-children") {
                    dropped.extend(events_of(journal, key));
                }
                let derived = derived_child_id(&source.from.id, source.generation, key) == *child;
                again.child = derived.then(|| derived_child_id(&source.to.id, Generation(0), key));
                again.was = Some(child.to_string());
            }
            Event::TaskScheduled { task, .. } => {
                dropped.extend(events_of(journal, key));
                again.was = Some(task.to_string());
            }
            Event::ScopeStarted { .. } => return,
            _ => again.deadline = self.retry(journal, open, dropped),
        }
        self.reissued.push(again);
    }

    /// A step or condition: the next attempt at its recorded time. That one began is left out, for in the new run it did not.
    fn retry(
        &mut self,
        journal: &Journal,
        open: &RecordedOperation,
        dropped: &mut BTreeSet<Index>,
    ) -> Option<Timestamp> {
        let mut next = None;
        for index in events_of(journal, &open.key) {
            match journal.get(index) {
                Some(Event::StepStarted { .. }) => {
                    dropped.insert(index);
                }
                Some(Event::StepRetryScheduled { next_at, .. }) => next = Some(*next_at),
                Some(Event::ConditionChecked { next_at, .. }) => next = *next_at,
                Some(_) | None => {}
            }
        }
        if let Some(next) = next {
            self.start_timer(&open.key, TimerKind::Retry, next);
        }
        next
    }

    fn start_timer(&mut self, key: &Key, kind: TimerKind, due: Timestamp) {
        self.timers.push(NewTimer { timer: TimerRef { key: key.clone(), kind }, due });
    }

    fn open_wait(&mut self, wait: NewWait, deadline: Option<Timestamp>) {
        if let Some(deadline) = deadline {
            self.start_timer(&wait.key, TimerKind::Timeout, deadline);
        }
        self.waits.push(wait);
    }
}

fn new_wait(key: &Key, kind: WaitKind) -> NewWait {
    NewWait { key: key.clone(), kind, name: None, token: None, heartbeat: None, assignee: None, meta: None }
}

/// What was recorded of an operation. That a flow's node of the same name began is not: it stays, in its place among the others.
fn events_of(journal: &Journal, key: &Key) -> Vec<Index> {
    let about = |event: &Event| event.key() == Some(key) && event.kind().operation().is_some();
    let events = journal.events().iter().enumerate();
    events.filter(|(_, event)| about(event)).map(|(index, _)| Index(index as u64)).collect()
}

fn load(records: &[Record]) -> Result<Journal, String> {
    let numbered = records.iter().cloned().enumerate().map(|(index, record)| (Index(index as u64), record));
    Journal::load(numbered).map_err(|error| error.to_string())
}

impl Source<'_> {
    /// The journal up to the cut, which must lie in it and before its end.
    fn prefix(&self) -> Result<Journal, EngineError> {
        let records = usize::try_from(self.at).ok().and_then(|at| self.records.get(..at)).ok_or_else(|| {
            let (run, at, events) = (self.from, self.at, self.records.len());
            EngineError::Invalid(format!("{run} cannot be forked at {at}: its journal has {events} events"))
        })?;
        let journal = load(records).map_err(|detail| self.corrupt(detail))?;
        if journal.is_over() {
            let (run, at, last) = (self.from, self.at, self.at - 1);
            return Err(EngineError::Invalid(format!(
                "{run} cannot be forked at {at}: nothing comes after its end; fork it at {last} or before"
            )));
        }
        Ok(journal)
    }

    fn corrupt(&self, detail: String) -> EngineError {
        StoreError::Corrupt { what: self.from.to_string(), detail }.into()
    }

    /// What a wait asks of its answer is in no event.
    fn meta_of(&self, of: &Key) -> Option<Bytes> {
        self.awaiting.iter().find_map(|awaited| match awaited {
            Awaited::Wait { key, meta, .. } if key == of => meta.clone(),
            _ => None,
        })
    }

    /// The events that stay. What refers to one by its index is told the new one.
    fn keep(&self, journal: &Journal, dropped: &BTreeSet<Index>) -> Vec<Record> {
        let moved = |index: &Index| Index(index.0 - dropped.range(..*index).count() as u64);
        let events = journal.events().iter().zip(self.records).enumerate();
        let kept = events.filter(|(index, _)| !dropped.contains(&Index(*index as u64)));
        kept.map(|(_, (event, record))| match event {
            Event::ContainerIterationCompleted { node, index, outputs } => {
                let (node, index, outputs) = (node.clone(), *index, outputs.iter().map(moved).collect());
                Event::ContainerIterationCompleted { node, index, outputs }.encode(record.at)
            }
            Event::ContainerChildCompleted { node, child, output: Some(output), value } => {
                let (node, child, output, value) = (node.clone(), child.clone(), Some(moved(output)), value.clone());
                Event::ContainerChildCompleted { node, child, output, value }.encode(record.at)
            }
            _ => record.clone(),
        })
        .collect()
    }
}
