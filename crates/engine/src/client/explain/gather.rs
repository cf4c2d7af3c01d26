//! Puts together what the run's row, its journal, its side rows and, if it is here, its program say.

use std::collections::BTreeMap;

use outlast_core::commit::{InboxItem, InboxKind, Status, TimerKind};
use outlast_core::event::Event;
use outlast_core::id::{Index, Key, SignalName, TaskId};
use outlast_core::journal::{Journal, RecordedOperation};
use outlast_core::lifecycle::{Decision, OperationView, Situation, State, SuspendReason, decide};
use outlast_core::operation::{OperationKind, ancestors};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Awaited, Held, LIST_PAGE_MAX, RunView, StoreError, TaskState, TaskView};

use super::{Ended, Explanation, Standing, Unread, Waiting, WaitsFor};
use crate::client::{EngineError, RunHandle};
use crate::drive::OperationInfo;
use crate::driver::Inspected;

pub(super) async fn explain(handle: &RunHandle) -> Result<Explanation, EngineError> {
    // The run first: what it says must not be newer than what is read after it.
    let view = handle.view().await?;
    let inspected = handle.inspect().await;
    let (records, damaged) = match handle.records(Some(view.generation)).await {
        Err(EngineError::Store(error @ StoreError::Corrupt { .. })) => (Vec::new(), Some(error.to_string())),
        records => (records?, None),
    };
    let (awaiting, inbox) = match view.status.is_terminal() {
        true => (Vec::new(), Vec::new()),
        false => (handle.awaiting().await?, handle.inbox(view.next).await?),
    };
    let numbered = records.iter().cloned().enumerate().map(|(index, record)| (Index(index as u64), record));
    let (journal, unreadable) = match Journal::load(numbered) {
        Ok(journal) => (journal, damaged),
        Err(error) => (Journal::new(), Some(error.to_string())),
    };
    let held = match view.status {
        Status::Queued => handle.engine.inner.store()?.held(handle.run.clone()).await?,
        _ => None,
    };
    let tasks = match awaiting.iter().any(|awaited| matches!(awaited, Awaited::Task { .. })) {
        true => handle.engine.tasks().run(handle.run.id.as_str()).page_size(LIST_PAGE_MAX).await?.tasks,
        false => Vec::new(),
    };
    let facts = Facts { tasks, view, inspected, records, journal, awaiting, inbox, held };
    let operations = facts.operations();
    Ok(Explanation {
        standing: facts.standing(&operations),
        woken: facts.view.ready && facts.view.status.is_claimable() && facts.view.status != Status::Queued,
        operations,
        inbox: facts.inbox.iter().map(unread).collect(),
        unreadable,
        run: facts.view.run,
        workflow: facts.view.workflow,
        version: facts.view.version,
        status: facts.view.status,
    })
}

fn unread(item: &InboxItem) -> Unread {
    Unread { kind: item.kind, key: item.key.clone(), name: item.name.clone(), since: item.at }
}

struct Facts {
    view: RunView,
    inspected: Inspected,
    records: Vec<Record>,
    journal: Journal,
    awaiting: Vec<Awaited>,
    /// What the queue says of the tasks it waits for; of thousands, only of the first.
    tasks: Vec<TaskView>,
    inbox: Vec<InboxItem>,
    held: Option<Held>,
}

impl Facts {
    // The run.

    fn standing(&self, operations: &[Waiting]) -> Standing {
        match self.view.status {
            Status::Queued => match &self.held {
                Some(held) => Standing::Held { since: self.view.created_at, held: held.clone() },
                None => Standing::Queued { since: self.view.created_at },
            },
            Status::Running => self.running(),
            Status::Waiting => Standing::Suspended { reason: reason(operations) },
            Status::Paused => self.paused(),
            Status::Parked => {
                Standing::Parked { since: self.view.parked_at, note: self.view.note.clone().unwrap_or_default() }
            }
            Status::Completed | Status::Failed | Status::Cancelled => {
                Standing::Ended { at: self.view.finished_at, how: self.ended() }
            }
        }
    }

    fn running(&self) -> Standing {
        let because = match &self.inspected {
            Inspected::Driven { decision: Decision::Wait(rule), .. } => Some(*rule),
            Inspected::Driven { decision: Decision::Suspend(_) | Decision::Finish, .. } | Inspected::Passing => None,
            Inspected::Kept(_) | Inspected::Nothing => {
                return Standing::DrivenElsewhere { lease: self.view.owner };
            }
        };
        Standing::DrivenHere { because }
    }

    fn paused(&self) -> Standing {
        let pause = self.journal.events().iter().zip(&self.records).rev().find_map(|(event, record)| match event {
            Event::RunPaused { reason, .. } => Some((record.at, reason.clone())),
            _ => None,
        });
        let (since, reason) = pause.unzip();
        Standing::Paused { since, reason: reason.flatten() }
    }

    fn ended(&self) -> Option<Ended> {
        match self.records.last().map(Event::decode)?.ok()? {
            Event::RunFinished { output } => Some(Ended::Completed { output }),
            Event::RunErrored { error } => Some(Ended::Failed { error }),
            Event::RunCancelled { reason } => Some(Ended::Cancelled { reason }),
            Event::RunTerminated { reason, .. } => Some(Ended::Terminated { reason }),
            _ => None,
        }
    }

    // Its operations.

    fn operations(&self) -> Vec<Waiting> {
        let known: &[OperationInfo] = match &self.inspected {
            Inspected::Driven { operations, .. } | Inspected::Kept(operations) => operations,
            Inspected::Passing | Inspected::Nothing => &[],
        };
        let mut known: BTreeMap<&Key, &OperationInfo> = known.iter().map(|info| (&info.key, info)).collect();
        let open = self.journal.open();
        let recorded = open.iter().filter_map(|open| self.recorded(open, known.remove(&open.key)));
        let mut operations: Vec<Waiting> = recorded.collect();
        // A step that executes for the first time is not in the journal yet.
        let unrecorded = known.into_values().filter(|info| self.journal.operation(&info.key).is_none());
        operations.extend(unrecorded.map(|info| waiting(info, None, WaitsFor::Body)));
        operations
    }

    fn recorded(&self, open: &RecordedOperation, known: Option<&OperationInfo>) -> Option<Waiting> {
        let since = self.at(open.since);
        let (on, until) = self.waits_for(open)?;
        let executes = known.is_some_and(|info| info.state == State::Executing);
        match known {
            Some(info) if executes => Some(waiting(info, since, WaitsFor::Body)),
            Some(info) => Some(Waiting { until: info.deadline.or(until), ..waiting(info, since, on) }),
            None => Some(Waiting {
                key: open.key.clone(),
                kind: open.kind,
                parent: ancestors(&open.key).last().map(str::to_owned),
                // Idle operations are awaited or not: that is not recorded.
                state: matches!(on, WaitsFor::Retry { .. }).then_some(State::RetryWaiting),
                since,
                until,
                location: None,
                on,
            }),
        }
    }

    fn at(&self, index: Index) -> Option<Timestamp> {
        usize::try_from(index.0).ok().and_then(|index| self.records.get(index)).map(|record| record.at)
    }

    /// What an operation that is open in the journal waits for, and until when.
    fn waits_for(&self, open: &RecordedOperation) -> Option<(WaitsFor, Option<Timestamp>)> {
        let key = &open.key;
        let latest = match open.kind {
            // A step has no start: its latest attempt counts.
            OperationKind::Step | OperationKind::Condition => open.latest,
            _ => open.since,
        };
        Some(match self.journal.get(latest)? {
            Event::StepRetryScheduled { attempt, next_at, error, .. } => {
                (WaitsFor::Retry { attempts: *attempt, error: Some(error.clone()) }, Some(*next_at))
            }
            Event::ConditionChecked { attempt, next_at, .. } => {
                (WaitsFor::Retry { attempts: *attempt, error: None }, *next_at)
            }
            Event::StepStarted { .. } => (WaitsFor::Body, None),
            Event::TimerStarted { deadline, .. } => (WaitsFor::Timer, Some(*deadline)),
            Event::SignalAwaited { name, deadline, .. } => {
                (WaitsFor::Signal { name: name.to_string(), arrived: self.signal_arrived(key, name) }, *deadline)
            }
            Event::ApprovalRequested { approval, title, assignee, deadline, .. } => {
                let (approval, title, assignee) = (approval.clone(), title.clone(), assignee.clone());
                (WaitsFor::Approval { approval, title, assignee, arrived: self.arrived(key) }, *deadline)
            }
            Event::CallbackCreated { callback, deadline, .. } => {
                let (callback, heartbeat_by) = (callback.clone(), self.heartbeat_by(key));
                (WaitsFor::Callback { callback, heartbeat_by, arrived: self.arrived(key) }, *deadline)
            }
            Event::ChildStarted { child, .. } => {
                let status = self.awaiting.iter().find_map(|awaited| match awaited {
                    Awaited::Child { run, status, .. } if run == child => Some(*status),
                    _ => None,
                });
                (WaitsFor::Child { run: child.clone(), status }, None)
            }
            Event::TaskScheduled { task, .. } => {
                let state = self.awaiting.iter().find_map(|awaited| match awaited {
                    Awaited::Task { id, state, .. } if id == task => Some(*state),
                    _ => None,
                });
                self.waits_for_task(task, state)
            }
            Event::ScopeStarted { .. } => (WaitsFor::Inside, None),
            _ => return None,
        })
    }

    /// What failed before is told by the queue alone, and when it is tried again.
    fn waits_for_task(&self, task: &TaskId, state: Option<TaskState>) -> (WaitsFor, Option<Timestamp>) {
        let queued = self.tasks.iter().find(|queued| queued.id == *task && Some(queued.state) == state);
        let begun = queued.map_or(0, |queued| queued.attempt);
        let failed = match state {
            // The one that runs has not failed yet.
            Some(TaskState::Claimed) => begun.saturating_sub(1),
            _ => begun,
        };
        // Of one that a worker has, or had and fell silent, the note is how far it was.
        let ended = queued.filter(|queued| queued.state != TaskState::Claimed && queued.worker.is_none());
        let error = ended.and_then(|queued| serde_json::from_slice(queued.note.as_deref()?).ok());
        let until = queued.filter(|queued| queued.state == TaskState::Delayed).map(|queued| queued.available_at);
        (WaitsFor::Task { task: task.clone(), state, failed, error }, until)
    }

    /// Whether the answer to a wait is there.
    fn arrived(&self, of: &Key) -> bool {
        self.awaiting.iter().any(|awaited| matches!(awaited, Awaited::Wait { key, answered: true, .. } if key == of))
    }

    /// Of the signals in a mailbox the oldest wait gets the first, the next one the second.
    fn signal_arrived(&self, of: &Key, name: &SignalName) -> bool {
        let open = self.journal.open();
        let waits = open.iter().filter(
            |open| matches!(self.journal.get(open.since), Some(Event::SignalAwaited { name: other, .. }) if other == name),
        );
        let before = waits.take_while(|open| open.key != *of).count();
        let mailbox = self.inbox.iter().filter(|item| item.kind == InboxKind::Signal && item.key.is_none());
        let there = mailbox.filter(|item| item.name.as_deref() == Some(name.as_str())).count();
        self.arrived(of) || there > before
    }

    fn heartbeat_by(&self, of: &Key) -> Option<Timestamp> {
        self.awaiting.iter().find_map(|awaited| match awaited {
            Awaited::Timer { key, kind: TimerKind::Heartbeat, due } if key == of => Some(*due),
            _ => None,
        })
    }
}

fn waiting(info: &OperationInfo, since: Option<Timestamp>, on: WaitsFor) -> Waiting {
    Waiting {
        key: info.key.clone(),
        kind: info.kind,
        parent: info.parent.clone(),
        state: Some(info.state),
        since,
        until: info.deadline,
        location: info.location.clone(),
        on,
    }
}

/// Why a turn could end with these operations: asked of the one function that decides it.
fn reason(operations: &[Waiting]) -> Option<SuspendReason> {
    let counting = operations.iter().filter(|operation| operation.kind != OperationKind::Scope);
    let views: Vec<OperationView> = counting
        .map(|operation| OperationView {
            kind: operation.kind,
            // Whether it is awaited makes no difference.
            state: operation.state.unwrap_or(State::IdleAwaited),
            ancestor_completed: false,
        })
        .collect();
    let situation = Situation {
        queue_empty: true,
        commit_in_flight: false,
        flush_waiting: false,
        body_executing: false,
        runnable: false,
        operations: &views,
    };
    match decide(&situation) {
        Decision::Suspend(reason) => Some(reason),
        Decision::Finish | Decision::Wait(_) => None,
    }
}
