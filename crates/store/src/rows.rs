//! The rows a store keeps, and the few things the shared logic asks of them.
//!
//! All three stores run the same logic (see [`crate::logic`]) over [`Rows`]: memory over maps, SQLite over prepared
//! statements inside the writer's transaction, PostgreSQL over a working set that was fetched and locked before and is
//! flushed after. So there is one place that knows the rules, and a store is an adapter.

mod admission;

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{InboxItem, InboxKind, NewWait, Parent, Snapshot, Status, TimerRef, WaitKind};
use outlast_core::id::{
    AttributeName, ClaimId, DeliveryId, Fence, Generation, InboxId, Index, Key, LeaseId, Namespace, QueueName, RunId,
    RunKey, ScheduleId, SignalName, TaskId, TaskName, TaskToken, Version, WorkerId, WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use crate::api::{Lapse, RunView, Schedule, TaskDetail, TaskState, TaskView};
use crate::error::StoreError;

pub(crate) use admission::*;

/// A run. Whoever changes anything that belongs to a run holds its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRow {
    /// The store's own number for it: what its other rows are keyed by.
    pub(crate) row: i64,
    pub(crate) key: RunKey,
    pub(crate) workflow: WorkflowName,
    pub(crate) version: Version,
    pub(crate) status: Status,
    pub(crate) generation: Generation,
    pub(crate) next: Index,
    pub(crate) fence: Fence,
    /// The claimed resume: at most one.
    pub(crate) owner: Option<LeaseId>,
    pub(crate) claim: Option<ClaimId>,
    /// The unclaimed resume: at most one. Set by every wake, also while owned.
    pub(crate) ready_at: Option<Timestamp>,
    pub(crate) priority: i16,
    pub(crate) tries: u32,
    pub(crate) parent: Option<Parent>,
    /// The top of its tree; none for the top itself.
    pub(crate) root: Option<RunId>,
    pub(crate) created_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
    /// Why it is parked.
    pub(crate) note: Option<String>,
    /// Since when it is.
    pub(crate) parked_at: Option<Timestamp>,
    /// Deleted: only its name is left, and rows that retention has yet to remove.
    pub(crate) deleted_at: Option<Timestamp>,
    /// The id the next inbox item gets.
    pub(crate) inbox_next: InboxId,
    /// Signals in the inbox.
    pub(crate) signals: u32,
    /// Opened waits that have an answer nobody consumed.
    pub(crate) answered: u32,
    /// Whether it ever had a timer, wait, task or snapshot: if not, its end has nothing to clear.
    pub(crate) side: bool,
    /// Where its next task lines up, if not now: behind all it has queued already.
    pub(crate) next_place: Option<Timestamp>,
    /// Whether it was started under flow control: then its end has something to give back.
    pub(crate) controlled: bool,
}

impl RunRow {
    /// What is said of it once it was deleted: its note is the reason then.
    pub(crate) fn deleted(&self) -> StoreError {
        StoreError::Deleted { run: self.key.clone(), reason: self.note.clone() }
    }

    pub(crate) fn view(&self) -> RunView {
        RunView {
            run: self.key.clone(),
            workflow: self.workflow.clone(),
            version: self.version.clone(),
            status: self.status,
            note: self.note.clone(),
            parked_at: self.parked_at.filter(|_| self.status == Status::Parked),
            generation: self.generation,
            next: self.next,
            parent: self.parent.clone(),
            owner: self.owner,
            ready: self.ready_at.is_some(),
            tries: self.tries,
            created_at: self.created_at,
            finished_at: self.finished_at,
        }
    }

    /// Sets it aside. It is ready, so that unparking it is enough for it to go on.
    pub(crate) fn park(&mut self, why: String, now: Timestamp) {
        self.status = Status::Parked;
        (self.note, self.parked_at) = (Some(why), Some(now));
        self.wake(now);
    }

    /// Whether flow control holds it back. Nobody else should be queued and not ready; one that is owned as well was seized, to be
    /// ended, and goes back to where it was if that comes to nothing.
    pub(crate) fn is_held(&self) -> bool {
        self.controlled && self.status == Status::Queued && self.ready_at.is_none()
    }

    /// Leaves a resume. Always a change of the row, so that its lock keeps claimers away until the wake is durable. What
    /// comes for a run that is held back waits in its inbox.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        if self.is_held() {
            return;
        }
        self.ready_at = self.ready_at.or(Some(now));
    }

    /// Ends ownership.
    pub(crate) fn disown(&mut self) {
        self.owner = None;
        self.claim = None;
    }

    /// Whether it is where it was among those that are ready, driven, alive or over.
    #[cfg(feature = "sqlite")]
    pub(crate) fn waits_like(&self, before: &RunRow) -> bool {
        let place = |run: &RunRow| (run.status, run.owner, run.ready_at, run.finished_at, run.deleted_at);
        place(self) == place(before)
    }

    /// The row as it is after only its journal grew: what the hot path of a commit changes.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn is_advance_of(&self, before: &RunRow) -> bool {
        let advanced = RunRow { next: self.next, tries: self.tries, ..before.clone() };
        *self == advanced
    }
}

/// Where a wait stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// An aimed signal came before the wait was opened.
    Slotted,
    /// Nobody answered.
    Open,
    /// The answer is in the inbox.
    Answered,
    /// Over. Kept while the run lives, so that a late answer is told it lost.
    Closed,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl WaitState {
    pub(crate) fn code(self) -> i16 {
        self as i16
    }

    pub(crate) fn from_code(code: i64) -> Option<WaitState> {
        match code {
            0 => Some(WaitState::Slotted),
            1 => Some(WaitState::Open),
            2 => Some(WaitState::Answered),
            3 => Some(WaitState::Closed),
            _ => None,
        }
    }
}

/// A wait of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitRow {
    pub(crate) key: Key,
    pub(crate) kind: WaitKind,
    pub(crate) state: WaitState,
    pub(crate) name: Option<SignalName>,
    pub(crate) token: Option<String>,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) assignee: Option<String>,
    pub(crate) meta: Option<Bytes>,
    pub(crate) since: Timestamp,
    /// The inbox item that answers it.
    pub(crate) answer: Option<InboxId>,
}

impl WaitRow {
    /// A wait that nobody has answered.
    pub(crate) fn open(new: &NewWait, since: Timestamp) -> WaitRow {
        WaitRow {
            key: new.key.clone(),
            kind: new.kind,
            state: WaitState::Open,
            name: new.name.clone(),
            token: new.token.clone(),
            heartbeat: new.heartbeat,
            assignee: new.assignee.clone(),
            meta: new.meta.clone(),
            since,
            answer: None,
        }
    }
}

/// A timer of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimerRow {
    pub(crate) timer: TimerRef,
    pub(crate) due: Timestamp,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskRow {
    pub(crate) namespace: Namespace,
    pub(crate) id: TaskId,
    /// The run that awaits it, and its operation; none once it is detached or cancelled.
    pub(crate) awaited: Option<(RunId, Key)>,
    /// The run that queued it. It stays when the run ends.
    pub(crate) origin: Option<RunId>,
    pub(crate) name: TaskName,
    pub(crate) queue: QueueName,
    pub(crate) priority: i16,
    pub(crate) args: Bytes,
    pub(crate) state: TaskState,
    pub(crate) attempt: u32,
    pub(crate) token: TaskToken,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) claim: Option<ClaimId>,
    pub(crate) available_at: Timestamp,
    /// Where it stands among the ready ones of its queue, priority and namespace: see [`crate::logic::task`].
    pub(crate) place: Timestamp,
    /// Until when it stays delayed or claimed. Then the next claim of its queue makes it ready.
    pub(crate) until: Option<Timestamp>,
    /// When its attempt began.
    pub(crate) began: Option<Timestamp>,
    /// What it means if the claim lapses, and how the last attempt lapsed that nobody has judged yet.
    pub(crate) lapse: Option<Lapse>,
    pub(crate) lapsed: Option<Lapse>,
    pub(crate) died_at: Option<Timestamp>,
    pub(crate) cancelled: bool,
    pub(crate) meta: Option<Bytes>,
    /// The last error or progress.
    pub(crate) note: Option<Bytes>,
}

impl TaskRow {
    pub(crate) fn view(&self) -> TaskView {
        TaskView {
            id: self.id.clone(),
            name: self.name.clone(),
            queue: self.queue.clone(),
            run: self.awaited.as_ref().map(|(run, _)| run.clone()),
            origin: self.origin.clone(),
            state: self.state,
            priority: self.priority,
            attempt: self.attempt,
            worker: self.worker.clone(),
            since: self.began,
            until: self.until,
            available_at: self.available_at,
            died_at: self.died_at,
            note: self.note.clone(),
        }
    }

    pub(crate) fn detail(&self) -> TaskDetail {
        TaskDetail { view: self.view(), args: self.args.clone(), meta: self.meta.clone() }
    }

    /// Whether a worker may still say what came of it: nobody else has taken it since.
    pub(crate) fn is_held_under(&self, token: TaskToken, now: Timestamp) -> bool {
        let held = match self.state {
            TaskState::Claimed => self.lapse.is_none() || self.until.is_some_and(|until| until > now),
            // Its worker fell silent, and it is to be claimed again. If that was the end of the attempt, it is too late.
            TaskState::Ready => self.worker.is_some() && self.lapsed.is_none(),
            TaskState::Delayed | TaskState::Dead => false,
        };
        held && self.token == token
    }
}

/// Stable numbers for [`TaskState`].
pub(crate) fn task_state_code(state: TaskState) -> i16 {
    match state {
        TaskState::Ready => 0,
        TaskState::Claimed => 1,
        TaskState::Dead => 2,
        TaskState::Delayed => 3,
    }
}

/// The state of a stored number.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn task_state_from_code(code: i64) -> Option<TaskState> {
    match code {
        0 => Some(TaskState::Ready),
        1 => Some(TaskState::Claimed),
        2 => Some(TaskState::Dead),
        3 => Some(TaskState::Delayed),
        _ => None,
    }
}

/// Stable numbers for [`Lapse`].
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn lapse_code(lapse: Lapse) -> i16 {
    match lapse {
        Lapse::Timeout => 0,
        Lapse::Silence => 1,
    }
}

/// The lapse of a stored number.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn lapse_from_code(code: i64) -> Option<Lapse> {
    match code {
        0 => Some(Lapse::Timeout),
        1 => Some(Lapse::Silence),
        _ => None,
    }
}

/// What the logic needs to know of an inbox item it removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InboxHead {
    pub(crate) id: InboxId,
    pub(crate) kind: InboxKind,
}

/// Which of a run's side rows to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clear {
    /// The run ended: timers, waits, inbox, snapshot; tasks are detached.
    Run,
    /// The generation ended: the same, but signals, controls and slots of aimed signals stay.
    Generation,
}

/// Why rows could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They are not in the working set yet: fetch them and run the logic again (PostgreSQL only).
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only PostgreSQL fetches"))]
    Miss,
    /// The store failed.
    Failed(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Failed(error)
    }
}

/// Row access for the shared logic, inside one transaction. Reads see earlier writes.
pub(crate) trait Rows: HeldRows {
    /// The store's clock, read after the locks were taken.
    fn now(&self) -> Timestamp;

    fn has_namespace(&mut self, namespace: &Namespace) -> Result<bool, Fault>;
    /// When the lease ends; none if there is no such lease.
    fn lease_until(&mut self, lease: LeaseId) -> Result<Option<Timestamp>, Fault>;

    fn run(&mut self, key: &RunKey) -> Result<Option<RunRow>, Fault>;
    /// Inserts a run (its `row` is chosen here and returned) and the input of its first generation.
    fn insert_run(&mut self, run: &RunRow, input: &Bytes) -> Result<i64, Fault>;
    fn update_run(&mut self, before: &RunRow, after: &RunRow) -> Result<(), Fault>;
    fn input(&mut self, run: &RunRow, generation: Generation) -> Result<Bytes, Fault>;
    /// Keeps the input of a later generation.
    fn put_input(&mut self, run: &RunRow, generation: Generation, input: &Bytes) -> Result<(), Fault>;

    fn append(&mut self, run: &RunRow, first: Index, events: &[Record]) -> Result<(), Fault>;
    fn record(&mut self, run: &RunRow, index: Index) -> Result<Option<Record>, Fault>;

    fn push_inbox(&mut self, run: &RunRow, item: &InboxItem) -> Result<(), Fault>;
    /// Those of `ids` that are there.
    fn inbox_heads(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<Vec<InboxHead>, Fault>;
    fn remove_inbox(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<(), Fault>;
    /// Signals of that name in the mailbox (not aimed).
    fn mailbox(&mut self, run: &RunRow, name: &SignalName) -> Result<Vec<InboxId>, Fault>;

    fn was_delivered(&mut self, run: &RunRow, id: &DeliveryId) -> Result<bool, Fault>;
    fn remember_delivery(&mut self, run: &RunRow, id: &DeliveryId) -> Result<(), Fault>;

    fn wait(&mut self, run: &RunRow, key: &Key) -> Result<Option<WaitRow>, Fault>;
    fn put_wait(&mut self, run: &RunRow, wait: &WaitRow) -> Result<(), Fault>;
    /// Waits in state `Open` for that signal.
    fn open_waits(&mut self, run: &RunRow, name: &SignalName) -> Result<usize, Fault>;
    /// Waits in state `Answered`, by key.
    fn answered_waits(&mut self, run: &RunRow) -> Result<Vec<WaitRow>, Fault>;

    fn timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<Option<TimerRow>, Fault>;
    fn put_timer(&mut self, run: &RunRow, timer: &TimerRow) -> Result<(), Fault>;
    fn remove_timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<(), Fault>;

    fn task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<Option<TaskRow>, Fault>;
    fn task_of(&mut self, run: &RunRow, key: &Key) -> Result<Option<TaskRow>, Fault>;
    fn put_task(&mut self, task: &TaskRow) -> Result<(), Fault>;
    /// [`Rows::put_task`] of one that was ready and is handed out to a worker: what it is and where it belongs is as it was.
    fn hand_out(&mut self, task: &TaskRow) -> Result<(), Fault> {
        self.put_task(task)
    }
    fn remove_task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<(), Fault>;

    fn put_snapshot(&mut self, run: &RunRow, snapshot: &Snapshot) -> Result<(), Fault>;
    fn put_attribute(&mut self, run: &RunRow, name: &AttributeName, value: Option<&str>) -> Result<(), Fault>;
    fn clear(&mut self, run: &RunRow, what: Clear) -> Result<(), Fault>;

    fn schedule(&mut self, namespace: &Namespace, id: &ScheduleId) -> Result<Option<Schedule>, Fault>;
    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Fault>;
}
