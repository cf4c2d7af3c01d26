//! What callers hand to a store and get back: plain data.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{InboxItem, Parent, Snapshot, Status, TimerKind, WaitKind};
use outlast_core::id::{
    AttributeName, ClaimId, Fence, Generation, Index, Key, LeaseId, Namespace, NodeId, QueueName, RunId, RunKey,
    ScheduleId, TaskId, TaskName, TaskToken, Version, WorkerId, WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

/// A node's period of ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its id: a node's epoch. A later registration of the same node gets a larger one and ends this one.
    pub id: LeaseId,
    /// Whose.
    pub node: NodeId,
    /// It is over from this instant on, unless renewed before.
    pub until: Timestamp,
    /// The store's time when it answered.
    pub now: Timestamp,
}

/// What became of a run to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is new.
    Created {
        /// The fence under which its owner holds it, if it was created with one.
        fence: Fence,
        /// The store's time when it answered.
        at: Timestamp,
    },
    /// It was there already, with the same workflow and input.
    Existing {
        /// Where it stands.
        status: Status,
    },
}

/// Which runs to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Ready ones by priority and age, then those whose owner's lease lapsed.
    Ready,
    /// This one, if it is ready or its owner's lease lapsed.
    Run(RunKey),
    /// This one, whoever owns it and whether or not it is paused or parked, unless it ended: for terminate and repair.
    Seize(RunKey),
}

/// Which workflows the claimer can drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Any.
    Everything,
    /// These, by name and version.
    Only(Vec<(WorkflowName, Version)>),
}

/// A request for runs to drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The claimer's live lease.
    pub lease: LeaseId,
    /// Names the claim: asking again with the same id under the same lease gives what it took before, and more.
    pub id: ClaimId,
    /// At most so many, and never more than [`outlast_core::limits::CLAIM_BATCH_MAX`].
    pub limit: usize,
    /// Which.
    pub pick: Pick,
    /// Of which workflows.
    pub serves: Serves,
}

/// A run to drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Which.
    pub run: RunKey,
    /// The fence its commits must show.
    pub fence: Fence,
    /// Which journal.
    pub generation: Generation,
    /// Its next index.
    pub next: Index,
    /// Which workflow.
    pub workflow: WorkflowName,
    /// Which version.
    pub version: Version,
    /// Who is told when it ends.
    pub parent: Option<Parent>,
    /// How often it was claimed without being released or appended to. From
    /// [`outlast_core::limits::TRIES_ALONE`] on, drive it alone.
    pub tries: u32,
    /// Where it stood before.
    pub was: Status,
    /// The store's time when it answered.
    pub now: Timestamp,
}

/// From where to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFrom {
    /// From this index on.
    Index(Index),
    /// From the newest snapshot of this definition, if there is one, else from the start.
    Snapshot {
        /// The definition's hash.
        definition: String,
    },
}

/// Which journal to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Whose.
    pub run: RunKey,
    /// From where.
    pub from: LoadFrom,
}

/// A run's journal and inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Whose.
    pub run: RunKey,
    /// Which journal.
    pub generation: Generation,
    /// The generation's input.
    pub input: Bytes,
    /// The snapshot, if one was asked for and there is one.
    pub snapshot: Option<Snapshot>,
    /// The index of the first event.
    pub first: Index,
    /// The events, contiguous up to the journal's end.
    pub events: Vec<Record>,
    /// The inbox, oldest first.
    pub inbox: Vec<InboxItem>,
}

/// A commit that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The journal's next index.
    pub next: Index,
    /// What became of the commit's deliveries, in order.
    pub delivered: Vec<Delivered>,
    /// The store's time when it answered.
    pub now: Timestamp,
}

/// What became of a transaction whose reply was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// It was applied.
    Applied,
    /// It was not, and never will be.
    NotApplied,
}

/// A run's resume to take: the owner takes it before it reads the inbox, so that a wake after that is a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Which run.
    pub run: RunKey,
    /// Under which fence it is held.
    pub fence: Fence,
}

/// A run to give back without appending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Which.
    pub run: RunKey,
    /// Under which fence it is held.
    pub fence: Fence,
    /// Whether it should be claimed again at once.
    pub again: bool,
}

/// What became of a delivery. Only the first two were accepted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivered {
    /// Accepted, and somebody waits for it.
    Delivered,
    /// Accepted and kept until somebody asks for it.
    Buffered,
    /// Accepted before, under the same id.
    Duplicate,
    /// Refused: the run has ended, or another answer came first.
    Lost,
    /// Refused: there is no such run, wait or task.
    NotFound,
    /// Refused: the run was deleted.
    Deleted,
    /// Refused: the run has too many signals nobody consumed. Only for deliveries inside a commit; elsewhere it is an
    /// error that names the limit.
    Full,
}

/// A request for tasks to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTasks {
    /// Who asks.
    pub worker: WorkerId,
    /// Names the claim, as in [`Claim::id`].
    pub id: ClaimId,
    /// From these queues, in any namespace.
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
    /// Progress to show; none keeps the last.
    pub progress: Option<Bytes>,
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
    /// To be claimed, from its `available_at` on.
    Ready,
    /// Held by a worker.
    Claimed,
    /// Failed for good; kept for inspection.
    Dead,
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
    /// Where it stands.
    pub state: TaskState,
    /// Attempts begun.
    pub attempt: u32,
    /// Who holds it.
    pub worker: Option<WorkerId>,
    /// Not claimed before this instant.
    pub available_at: Timestamp,
    /// The last error or progress.
    pub note: Option<Bytes>,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The store's time when it answered.
    pub now: Timestamp,
    /// Timers fired.
    pub fired: usize,
    /// The earliest timer that remains.
    pub next_due: Option<Timestamp>,
    /// Whether more timers are due than the limit allowed.
    pub more: bool,
}

/// When and what to start, again and again. What it means is the engine's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The tenant.
    pub namespace: Namespace,
    /// Which.
    pub id: ScheduleId,
    /// The rule: opaque to the store.
    pub spec: Bytes,
    /// When it is next due; none while paused or at its end.
    pub next_at: Option<Timestamp>,
}

/// One firing of a schedule, in one transaction with the run it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// The tenant.
    pub namespace: Namespace,
    /// Which schedule.
    pub id: ScheduleId,
    /// The instant that fires: it must be the schedule's `next_at`, and due.
    pub at: Timestamp,
    /// When it is due next.
    pub next_at: Option<Timestamp>,
    /// What it starts; none to skip.
    pub run: Option<outlast_core::commit::NewRun>,
}

/// What became of a firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// It fired, now.
    Fired {
        /// What became of the run, where there was one to start.
        run: Option<Created>,
    },
    /// Somebody else fired that instant, or the schedule changed.
    Stale,
    /// It is not due by the store's clock.
    Early,
}

/// A run, for people and tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunView {
    /// Which.
    pub run: RunKey,
    /// Which workflow.
    pub workflow: WorkflowName,
    /// Which version.
    pub version: Version,
    /// Where it stands.
    pub status: Status,
    /// Why it is parked.
    pub note: Option<String>,
    /// Which journal.
    pub generation: Generation,
    /// Its next index.
    pub next: Index,
    /// Who started it.
    pub parent: Option<Parent>,
    /// The lease that owns it.
    pub owner: Option<LeaseId>,
    /// Whether a resume is waiting to be claimed.
    pub ready: bool,
    /// Claims without release or append.
    pub tries: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// Which runs to list. Newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The tenant.
    pub namespace: Namespace,
    /// Any of these; all if empty.
    pub status: Vec<Status>,
    /// Of this workflow.
    pub workflow: Option<WorkflowName>,
    /// Of this version.
    pub version: Option<Version>,
    /// Whose id begins so.
    pub id_prefix: Option<String>,
    /// Created at or after.
    pub created_from: Option<Timestamp>,
    /// Created before.
    pub created_until: Option<Timestamp>,
    /// Children of this run.
    pub parent: Option<RunId>,
    /// With this attribute.
    pub attribute: Option<(AttributeName, String)>,
    /// Where the last page ended.
    pub after: Option<Cursor>,
    /// At most so many, and never more than [`LIST_PAGE_MAX`].
    pub limit: usize,
}

/// The most rows one page of a listing has.
pub const LIST_PAGE_MAX: usize = 1_000;

/// The bytes with which one page of a journal ends: the event that reaches them is its last. So one page has less than this
/// and one more event, and never none because an event is large.
pub const EXCERPT_BYTES_MAX: usize = 4 << 20;

impl Filter {
    /// All runs of a namespace.
    pub fn all(namespace: Namespace) -> Self {
        Filter {
            namespace,
            status: Vec::new(),
            workflow: None,
            version: None,
            id_prefix: None,
            created_from: None,
            created_until: None,
            parent: None,
            attribute: None,
            after: None,
            limit: 100,
        }
    }
}

/// A place in a listing. Opaque, and stable while rows come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(pub u64);

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The runs.
    pub runs: Vec<RunView>,
    /// Where the next page begins; none at the end.
    pub next: Option<Cursor>,
}

/// Something a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A timer.
    Timer {
        /// The operation.
        key: Key,
        /// Why.
        kind: TimerKind,
        /// When it fires.
        due: Timestamp,
    },
    /// A signal, approval or callback.
    Wait {
        /// The operation.
        key: Key,
        /// For what.
        kind: WaitKind,
        /// The signal's name.
        name: Option<String>,
        /// Who should answer.
        assignee: Option<String>,
        /// Whether the answer is there and waits to be fed.
        answered: bool,
        /// Title, schema.
        meta: Option<Bytes>,
        /// Since when.
        since: Timestamp,
    },
    /// A task.
    Task {
        /// The operation.
        key: Key,
        /// Which task.
        id: TaskId,
        /// Where it stands.
        state: TaskState,
    },
    /// A child that has not ended.
    Child {
        /// The operation.
        key: Key,
        /// Which run.
        run: RunId,
        /// Where it stands.
        status: Status,
    },
}

/// Which part of a journal to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Whose.
    pub run: RunKey,
    /// Which journal; the current one if none.
    pub generation: Option<Generation>,
    /// From this index on.
    pub from: Index,
    /// At most so many events, never more than [`LIST_PAGE_MAX`], and none after the one that reaches
    /// [`EXCERPT_BYTES_MAX`].
    pub limit: usize,
}

impl Excerpt {
    /// How many events a page has at most.
    pub(crate) fn events_max(&self) -> usize {
        self.limit.min(LIST_PAGE_MAX)
    }

    /// Whether nothing came after this page when it was read.
    pub fn is_last(&self, page: &[Record]) -> bool {
        page.len() < self.events_max() && page.iter().map(Record::payload_bytes).sum::<usize>() < EXCERPT_BYTES_MAX
    }

    /// What to ask for after this page.
    #[must_use]
    pub fn after(self, page: &[Record]) -> Excerpt {
        Excerpt { from: Index(self.from.0.saturating_add(page.len() as u64)), ..self }
    }
}

/// What retention may delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Trees whose last run ended at least so long ago.
    pub age: Duration,
    /// At most so many rows in one transaction. Call again while [`Retained::more`].
    pub limit: usize,
}

/// What retention did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Runs whose deletion began.
    pub runs: usize,
    /// Rows removed.
    pub rows: usize,
    /// Whether there is more to do.
    pub more: bool,
}
