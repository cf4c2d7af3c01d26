//! What callers hand to a store and get back: plain data.

mod definition;
mod sql;
mod task;
mod worker;

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Bound, InboxItem, Parent, Snapshot, Status, TimerKind, WaitKind};
use outlast_core::id::{
    AttributeName, ClaimId, Fence, Generation, InboxId, Index, Key, LeaseId, Namespace, NodeId, Revision, RunId,
    RunKey, ScheduleId, TaskId, Version, WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use crate::error::StoreError;

pub use definition::*;
pub use sql::{SqlAnswer, SqlQuestion};
pub use task::*;
pub use worker::*;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use sql::unanswered;

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
    /// Another run answers for this start: it has the same start key.
    Joined {
        /// Which.
        run: RunId,
        /// Where it stands.
        status: Status,
    },
}

/// What [`crate::Store::admit`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// The store's time when it answered.
    pub now: Timestamp,
    /// Runs admitted.
    pub admitted: usize,
    /// When the next delay or rate allows something.
    pub next_at: Option<Timestamp>,
    /// Whether there is more to do at once.
    pub more: bool,
    /// Whether a run waits for the end of another.
    pub waiting: bool,
}

/// Why flow control holds a run back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// It does not begin before this instant.
    pub not_before: Timestamp,
    /// All its limits.
    pub limits: Vec<HeldLimit>,
    /// The one that had no room when it was looked at last.
    pub at: Option<usize>,
    /// How many are before it in the line of that one, and never more than [`LIST_PAGE_MAX`].
    pub ahead: usize,
}

/// A limit of a run that is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLimit {
    /// Who shares it.
    pub key: String,
    /// How much there is to share.
    pub bound: Bound,
    /// Whether it is the place of a singleton, which another run has.
    pub single: bool,
    /// How many runs use it.
    pub used: u32,
    /// When a rate allows the next one.
    pub room_at: Option<Timestamp>,
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
    /// What is in its inbox, if that was read with the claim: whoever still has its program need not load anything.
    pub inbox: Option<Vec<InboxItem>>,
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
    /// The id the next inbox item gets: whatever came below it was read here, or consumed before.
    pub inbox_next: InboxId,
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

/// A run's resume to take, by an owner that has read its inbox. It says how far it read: whatever came since keeps its wake,
/// however late this arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Which run.
    pub run: RunKey,
    /// Under which fence it is held.
    pub fence: Fence,
    /// [`Loaded::inbox_next`] when its inbox was read.
    pub read: InboxId,
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

/// What became of deliveries and of the claim that came with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredAndClaimed {
    /// One answer per delivery.
    pub delivered: Vec<Result<Delivered, StoreError>>,
    /// What was claimed; none if nothing was tried.
    pub claimed: Option<Result<Vec<Claimed>, StoreError>>,
}

/// What there is to do, as far as one question can tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// The store's time when it answered.
    pub now: Timestamp,
    /// Whether a run can be claimed, by somebody who serves it.
    pub runs: bool,
    /// When the next timer is due: [`crate::Store::sweep`].
    pub timer: Option<Timestamp>,
    /// When a run that is held back may begin; now, if one ended that others wait for: [`crate::Store::admit`].
    pub held: Option<Timestamp>,
    /// Whether runs are held back until another one ends.
    pub waiting: bool,
    /// When a task of the queues that were named can be claimed: now, if one is ready or overdue.
    pub task: Option<Timestamp>,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The store's time when it answered.
    pub now: Timestamp,
    /// Timers fired.
    pub fired: usize,
    /// How long the first of them had been due.
    pub late: Duration,
    /// The earliest timer that remains.
    pub next_due: Option<Timestamp>,
    /// Whether more timers are due than the limit allowed: then it is worth sweeping again at once. One that somebody else holds
    /// is not among them.
    pub more: bool,
}

/// When and what to start, again and again. What it means is the engine's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The tenant.
    pub namespace: Namespace,
    /// Which.
    pub id: ScheduleId,
    /// Which change of it this is. In a request: the one it was decided on, 0 for a schedule that is not there yet.
    pub revision: Revision,
    /// The rule: opaque to the store.
    pub spec: Bytes,
    /// How far it is: opaque to the store.
    pub state: Bytes,
    /// When to look at it next; none while paused or at its end.
    pub next_at: Option<Timestamp>,
}

impl Schedule {
    /// Its place among those that are due.
    pub fn cursor(&self) -> Option<DueCursor> {
        let (namespace, id) = (self.namespace.clone(), self.id.clone());
        self.next_at.map(|next_at| DueCursor { next_at, namespace, id })
    }
}

/// A place among the schedules that are due: they are listed by time, then by namespace and id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueCursor {
    /// When it was to be looked at.
    pub next_at: Timestamp,
    /// The tenant.
    pub namespace: Namespace,
    /// Which.
    pub id: ScheduleId,
}

/// Schedules to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueSchedules {
    /// Those that are due, earliest first.
    pub schedules: Vec<Schedule>,
    /// When the first of those is to be looked at that are not due.
    pub next_due: Option<Timestamp>,
    /// The store's time when it looked.
    pub now: Timestamp,
}

/// One firing of a schedule, in one transaction with the run it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// The tenant.
    pub namespace: Namespace,
    /// Which schedule.
    pub id: ScheduleId,
    /// The revision it was decided on.
    pub revision: Revision,
    /// What must have passed by the store's clock; none for what has no instant of its own.
    pub at: Option<Timestamp>,
    /// How far the schedule is then.
    pub state: Bytes,
    /// When to look at it next.
    pub next_at: Option<Timestamp>,
    /// What it starts; none to skip.
    pub run: Option<outlast_core::commit::NewRun>,
}

/// What became of a firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// It fired, now.
    Fired {
        /// The schedule's revision since then.
        revision: Revision,
        /// What became of the run, where there was one to start.
        run: Option<Created>,
    },
    /// Somebody else fired it, or the schedule changed otherwise, or is gone.
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
    /// Since when it is.
    pub parked_at: Option<Timestamp>,
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
    /// Trees whose last run ended at least so long ago, and tasks that failed for good.
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
