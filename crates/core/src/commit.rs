//! What a turn hands to the store: one value, applied wholly or not at all.
//!
//! A turn decides, the store writes. Everything a turn changes (events, timers, waits, tasks, children, consumed inbox
//! items, deliveries to other runs, ownership) is in its [`Commit`].

mod admission;
mod delivery;
mod run;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::admission::{
    Admission, Begin, Bound, COUNT_MAX, Debounce, Fair, LIMITS_MAX, Limit, Rate, SPAN_MAX, Single, Unadmittable,
    WEIGHT_MAX, Window,
};
pub use self::delivery::{Control, Delivery, HELD_CANCEL, InboxItem, InboxKind, Receipt, Signal, TaskOutcome};
pub use self::run::{NewRun, Opener, Owner, PRIORITY_DEFAULT, Parent, Status};
use crate::id::{
    AttributeName, Fence, Generation, InboxId, Index, Key, Namespace, QueueName, RunKey, SignalName, TaskId, TaskName,
    Version,
};
use crate::record::Record;
use crate::time::Timestamp;

/// Why a timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// A sleep.
    Delay,
    /// The deadline of a wait or a step.
    Timeout,
    /// The next attempt of a step.
    Retry,
    /// The next heartbeat that is owed.
    Heartbeat,
}

impl TimerKind {
    /// The name under which it stands in an inbox.
    pub fn name(self) -> &'static str {
        match self {
            TimerKind::Delay => "delay",
            TimerKind::Timeout => "timeout",
            TimerKind::Retry => "retry",
            TimerKind::Heartbeat => "heartbeat",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<TimerKind> {
        (0..4).filter_map(TimerKind::from_code).find(|kind| kind.name() == name)
    }

    /// The stable number stores keep.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The kind of a stored number.
    pub fn from_code(code: i64) -> Option<TimerKind> {
        match code {
            0 => Some(TimerKind::Delay),
            1 => Some(TimerKind::Timeout),
            2 => Some(TimerKind::Retry),
            3 => Some(TimerKind::Heartbeat),
            _ => None,
        }
    }
}

/// Names a timer within its run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerRef {
    /// The operation it belongs to.
    pub key: Key,
    /// Why it runs.
    pub kind: TimerKind,
}

/// A timer to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTimer {
    /// Its name.
    pub timer: TimerRef,
    /// When it fires, by the store's clock; never before.
    pub due: Timestamp,
}

/// What kind of answer a wait takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// Signals by name, first in first out; or, aimed at the wait's key, exactly one.
    Signal,
    /// One decision by a person.
    Approval,
    /// One answer by the holder of a token.
    Callback,
}

impl WaitKind {
    /// The stable number stores keep.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The kind of a stored number.
    pub fn from_code(code: i64) -> Option<WaitKind> {
        match code {
            0 => Some(WaitKind::Signal),
            1 => Some(WaitKind::Approval),
            2 => Some(WaitKind::Callback),
            _ => None,
        }
    }
}

/// A wait to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWait {
    /// The operation that waits.
    pub key: Key,
    /// For what.
    pub kind: WaitKind,
    /// The signal's name; only for signals.
    pub name: Option<SignalName>,
    /// The secret an answer must show; only for callbacks.
    pub token: Option<String>,
    /// The longest silence allowed between two heartbeats; only for callbacks.
    pub heartbeat: Option<Duration>,
    /// Who should answer; only for approvals.
    pub assignee: Option<String>,
    /// What people and tools are shown: a title, a schema. Opaque to the store.
    pub meta: Option<Bytes>,
}

/// Why a wait is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseCause {
    /// The commit consumes its answer.
    Resolved,
    /// Its deadline passed. An answer that is already there wins: the commit is rejected.
    TimedOut,
    /// The program no longer wants it. An answer that is already there wins: the commit is rejected.
    Cancelled,
    /// The commit consumes its answer, which does not fit: the wait is open again.
    Misfit,
}

/// A wait to close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedWait {
    /// The operation that waited.
    pub key: Key,
    /// Why it no longer does.
    pub cause: CloseCause,
}

/// A task to enqueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Its id, unique in the namespace.
    pub id: TaskId,
    /// The operation that awaits it; none for fire-and-forget.
    pub key: Option<Key>,
    /// Which handler.
    pub name: TaskName,
    /// Which queue.
    pub queue: QueueName,
    /// Larger is claimed sooner.
    pub priority: i16,
    /// What the handler gets.
    pub args: Bytes,
    /// Not claimed before this instant.
    pub available_at: Option<Timestamp>,
    /// Retry policy, timeouts: opaque to the store.
    pub meta: Option<Bytes>,
}

/// A task without a run, or for a client to enqueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandaloneTask {
    /// The tenant.
    pub namespace: Namespace,
    /// The task.
    pub task: NewTask,
}

/// A program's state at a journal index. A cache: delete every one and nothing changes but time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Every event below this index is in it.
    pub index: Index,
    /// The hash of the definition that wrote it.
    pub definition: String,
    /// The state.
    pub data: Bytes,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// With an output.
    Completed,
    /// With an error.
    Failed,
    /// By cancellation or termination.
    Cancelled,
}

impl Ending {
    /// The status it leaves the run in.
    pub fn status(self) -> Status {
        match self {
            Ending::Completed => Status::Completed,
            Ending::Failed => Status::Failed,
            Ending::Cancelled => Status::Cancelled,
        }
    }
}

/// What becomes of the run after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// The turn goes on; the run stays owned.
    Continue,
    /// Quiescent: ownership ends. A wake that came meanwhile makes it ready at once.
    Suspend,
    /// Paused by an operator: ownership ends, wakes are kept but not claimed.
    Pause,
    /// The engine cannot go on: ownership ends, wakes are kept but not claimed.
    Park {
        /// Why, and what to do about it.
        reason: String,
    },
    /// The run ends: its timers, waits, inbox and ownership go; tasks are detached.
    Finish(Ending),
    /// The journal ends and the next generation's begins, owned by the same lease. The mailbox moves along.
    ContinueAsNew {
        /// The next generation's input.
        input: Bytes,
        /// The next generation's version, if it changes.
        version: Option<Version>,
    },
}

/// The atomic output of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Which run.
    pub run: RunKey,
    /// The fence under which the run is owned.
    pub fence: Fence,
    /// The journal index the first event gets.
    pub expected: Index,
    /// The events.
    pub events: Vec<Record>,
    /// Timers to start.
    pub timers: Vec<NewTimer>,
    /// Timers to cancel; one that is gone already is not an error.
    pub timers_cancelled: Vec<TimerRef>,
    /// Timers this commit fires itself; the store refuses an early one and one that somebody else fired.
    pub timers_fired: Vec<TimerRef>,
    /// Waits to open.
    pub waits: Vec<NewWait>,
    /// Waits to close.
    pub waits_closed: Vec<ClosedWait>,
    /// Tasks to enqueue.
    pub tasks: Vec<NewTask>,
    /// Tasks to cancel, by the operation that scheduled them.
    pub tasks_cancelled: Vec<Key>,
    /// Children to create.
    pub children: Vec<NewRun>,
    /// What to leave for other runs.
    pub deliveries: Vec<Delivery>,
    /// Inbox items whose facts are in `events`.
    pub consumed: Vec<InboxId>,
    /// Search attributes to set, or with none to remove.
    pub attributes: Vec<(AttributeName, Option<String>)>,
    /// A snapshot to keep.
    pub snapshot: Option<Snapshot>,
    /// What becomes of the run.
    pub then: Then,
}

impl Commit {
    /// A commit that changes nothing yet and goes on.
    pub fn new(run: RunKey, fence: Fence, expected: Index) -> Self {
        Commit {
            run,
            fence,
            expected,
            events: Vec::new(),
            timers: Vec::new(),
            timers_cancelled: Vec::new(),
            timers_fired: Vec::new(),
            waits: Vec::new(),
            waits_closed: Vec::new(),
            tasks: Vec::new(),
            tasks_cancelled: Vec::new(),
            children: Vec::new(),
            deliveries: Vec::new(),
            consumed: Vec::new(),
            attributes: Vec::new(),
            snapshot: None,
            then: Then::Continue,
        }
    }

    /// The one event of a commit that does nothing else: by far the most frequent kind, which stores may write faster.
    pub fn plain_event(&self) -> Option<&Record> {
        let [event] = self.events.as_slice() else { return None };
        // Every field is named, so that what a commit may learn to do is not overlooked here.
        let Commit {
            run: _,
            fence: _,
            expected: _,
            events: _,
            timers,
            timers_cancelled,
            timers_fired,
            waits,
            waits_closed,
            tasks,
            tasks_cancelled,
            children,
            deliveries,
            consumed,
            attributes,
            snapshot,
            then,
        } = self;
        let alone = *then == Then::Continue
            && timers.is_empty()
            && timers_cancelled.is_empty()
            && timers_fired.is_empty()
            && waits.is_empty()
            && waits_closed.is_empty()
            && tasks.is_empty()
            && tasks_cancelled.is_empty()
            && children.is_empty()
            && deliveries.is_empty()
            && consumed.is_empty()
            && attributes.is_empty()
            && snapshot.is_none();
        alone.then_some(event)
    }
}

/// Which generation and index a run stands at: enough to know whether a hot program may still be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// Which journal.
    pub generation: Generation,
    /// Its next index.
    pub next: Index,
}
