//! Tasks, as workers, clients and operators see them.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::id::{ClaimId, Key, Namespace, QueueName, RunId, TaskId, TaskName, TaskToken, WorkerId};
use outlast_core::time::Timestamp;

use super::LIST_PAGE_MAX;

/// A request for tasks to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTasks {
    /// Who asks.
    pub worker: WorkerId,
    /// Names the claim, as in [`Claim::id`](super::Claim::id).
    pub id: ClaimId,
    /// Only tasks of this namespace; of all if none.
    pub namespace: Option<Namespace>,
    /// From these queues.
    pub queues: Vec<QueueName>,
    /// Only these tasks; all if empty.
    pub names: Vec<TaskName>,
    /// How long the worker may be silent.
    pub lease: Duration,
    /// At most so many, and never more than [`outlast_core::limits::CLAIM_BATCH_MAX`].
    pub limit: usize,
}

/// A task to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedTask {
    /// The tenant.
    pub namespace: Namespace,
    /// Which.
    pub id: TaskId,
    /// The run that awaits it.
    pub run: Option<RunId>,
    /// That run's operation.
    pub key: Option<Key>,
    /// Which handler.
    pub name: TaskName,
    /// From which queue.
    pub queue: QueueName,
    /// What the handler gets.
    pub args: Bytes,
    /// Which attempt, from 1; counted before it runs, so that a crash uses one up.
    pub attempt: u32,
    /// When it began.
    pub since: Timestamp,
    /// The attempt is over, and this is how it ended: nothing is to be done but to say what becomes of the task.
    pub lapsed: Option<Lapse>,
    /// The token its heartbeats and its result must show.
    pub token: TaskToken,
    /// When the claim lapses unless a heartbeat comes.
    pub until: Timestamp,
    /// Retry policy, timeouts.
    pub meta: Option<Bytes>,
    /// The store's time when it answered.
    pub now: Timestamp,
}

/// A sign of life of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskHeartbeat {
    /// The tenant.
    pub namespace: Namespace,
    /// Which task.
    pub task: TaskId,
    /// The token of the claim.
    pub token: TaskToken,
    /// How long the worker may be silent from now on.
    pub lease: Duration,
    /// What it means if the claim lapses: the end of the attempt. If none, only that the worker fell silent, and what it says
    /// later counts as long as nobody else has the task.
    pub lapse: Option<Lapse>,
    /// Progress to show; none keeps the last.
    pub progress: Option<Bytes>,
}

/// How an attempt ended that nobody was there to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lapse {
    /// It took too long.
    Timeout,
    /// Its handler was silent for too long.
    Silence,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskExtended {
    /// When the claim lapses unless another comes.
    pub until: Timestamp,
    /// The run no longer wants the task: stop.
    pub cancelled: bool,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// To be claimed.
    Ready,
    /// Held by a worker.
    Claimed,
    /// Failed for good; kept for inspection.
    Dead,
    /// Not to be claimed before its `available_at`.
    Delayed,
}

impl TaskState {
    /// All of them.
    pub const ALL: [TaskState; 4] = [TaskState::Ready, TaskState::Claimed, TaskState::Dead, TaskState::Delayed];

    /// The word for it in metrics, and wherever people read.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Ready => "ready",
            TaskState::Claimed => "claimed",
            TaskState::Dead => "dead",
            TaskState::Delayed => "delayed",
        }
    }
}

/// A task, for people and tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Which.
    pub id: TaskId,
    /// Which handler.
    pub name: TaskName,
    /// In which queue.
    pub queue: QueueName,
    /// The run that awaits it.
    pub run: Option<RunId>,
    /// The run that queued it, also if it never awaited it or has ended.
    pub origin: Option<RunId>,
    /// Where it stands.
    pub state: TaskState,
    /// Larger is claimed sooner.
    pub priority: i16,
    /// Attempts begun.
    pub attempt: u32,
    /// Who holds it, or held it last and fell silent.
    pub worker: Option<WorkerId>,
    /// When its attempt began, while there is one.
    pub since: Option<Timestamp>,
    /// Until when it stays claimed without a sign of life, or delayed.
    pub until: Option<Timestamp>,
    /// Not claimed before this instant.
    pub available_at: Timestamp,
    /// When it failed for good.
    pub died_at: Option<Timestamp>,
    /// The last error or progress.
    pub note: Option<Bytes>,
}

/// A task with everything there is to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDetail {
    /// What a listing shows of it.
    pub view: TaskView,
    /// What its handler gets.
    pub args: Bytes,
    /// Retry policy, timeouts.
    pub meta: Option<Bytes>,
}

/// How much there is to do, in all namespaces together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    /// The store's time when it answered.
    pub now: Timestamp,
    /// Runs that could go on, and that nobody drives.
    pub ready: u64,
    /// Since when the first of them could.
    pub oldest: Option<Timestamp>,
    /// Queues that have tasks, by name.
    pub queues: Vec<QueueDepth>,
}

/// How much there is to do in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    /// Which.
    pub queue: QueueName,
    /// How many tasks stand where, without those of which there are none. One whose time has come, or whose worker fell silent, is
    /// ready.
    pub tasks: Vec<(TaskState, u64)>,
    /// Since when the first of those that are ready could be claimed.
    pub oldest: Option<Timestamp>,
}

impl Depths {
    /// Counts tasks of a queue; queue by queue.
    pub(crate) fn add(&mut self, queue: QueueName, state: TaskState, count: u64, oldest: Option<Timestamp>) {
        if self.queues.last().is_none_or(|last| last.queue != queue) {
            self.queues.push(QueueDepth { queue, tasks: Vec::new(), oldest: None });
        }
        let Some(depth) = self.queues.last_mut() else { return };
        depth.tasks.push((state, count));
        if state == TaskState::Ready {
            depth.oldest = oldest;
        }
    }
}

/// Which tasks to list. By id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFilter {
    /// The tenant.
    pub namespace: Namespace,
    /// In any of these states; in all if empty.
    pub state: Vec<TaskState>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// For this handler.
    pub name: Option<TaskName>,
    /// Queued by this run.
    pub origin: Option<RunId>,
    /// Behind this one: where the last page ended.
    pub after: Option<TaskId>,
    /// At most so many, and never more than [`LIST_PAGE_MAX`].
    pub limit: usize,
}

impl TaskFilter {
    /// All tasks of a namespace.
    pub fn all(namespace: Namespace) -> Self {
        TaskFilter { namespace, state: Vec::new(), queue: None, name: None, origin: None, after: None, limit: 100 }
    }

    /// How many tasks a page has at most.
    pub(crate) fn tasks_max(&self) -> usize {
        self.limit.clamp(1, LIST_PAGE_MAX)
    }
}

/// One page of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// Behind which one the next page begins; none at the end.
    pub next: Option<TaskId>,
}

impl TaskPage {
    /// A page of at most `limit`, from one more than that if there are more.
    pub(crate) fn of(mut tasks: Vec<TaskView>, limit: usize) -> Self {
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        let next = tasks.last().filter(|_| more).map(|task| task.id.clone());
        TaskPage { tasks, next }
    }
}
