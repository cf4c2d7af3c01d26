//! Errors. A variant is a decision its caller makes; every message says what happened and what to do next.

use outlast_core::id::{
    Fence, InboxId, Index, Key, LeaseId, Namespace, RunId, RunKey, TaskId, TxnId, Version, WorkflowName,
};
use outlast_core::limits::LimitExceeded;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use thiserror::Error;

use crate::api::TaskState;

/// Why a store could not do its work although nothing was wrong with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// No space is left. Reads go on; writes go on by themselves once there is space again.
    DiskFull,
    /// The database may not be written.
    ReadOnly,
    /// The disk reported an error.
    Io,
    /// The database server cannot be reached, or went away in the middle.
    Connection,
    /// Others held a lock for too long.
    Busy,
    /// The store is shut down.
    Closed,
    /// Anything else the database said.
    Other,
}

impl Trouble {
    /// What to do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Trouble::DiskFull => "free some space; the store resumes by itself",
            Trouble::ReadOnly => "make the database (the file and its folder, or the server) writable for this process",
            Trouble::Io => "check the disk and the system log; nothing unacknowledged was kept",
            Trouble::Connection => "check that the server is up and reachable; calls may be repeated",
            Trouble::Busy => "repeat the call; if it persists, look for a long transaction on the database",
            Trouble::Closed => "open the store again",
            Trouble::Other => "see the database's own message; calls may be repeated",
        }
    }
}

fn because(reason: Option<&str>) -> String {
    reason.filter(|reason| !reason.is_empty()).map_or_else(String::new, |reason| format!(" ({reason})"))
}

/// What a store says when it does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// There is no such run.
    #[error("there is no run {0}; check the id and the namespace")]
    NotFound(RunKey),
    /// The run was deleted, less than seven days ago (`run_lost`).
    #[error("run {run} was deleted{}; its id is free again seven days after that", because(reason.as_deref()))]
    Deleted {
        /// Which run.
        run: RunKey,
        /// Why, as whoever deleted it said.
        reason: Option<String>,
    },
    /// The id is taken by a run with another workflow or input.
    #[error("run {run} exists with another {what}; use a new id, or the same {what}")]
    Exists {
        /// Which run.
        run: RunKey,
        /// What differs.
        what: &'static str,
    },
    /// The run is not terminal.
    #[error("run {0} is live; cancel or terminate it first")]
    Live(RunKey),
    /// There is no such namespace.
    #[error("there is no namespace {0}; create it first")]
    UnknownNamespace(Namespace),
    /// There is no such task.
    #[error("there is no task {0}; it finished, or was never enqueued")]
    UnknownTask(TaskId),
    /// The task has not failed for good, so that it can be neither queued anew nor discarded.
    #[error("task {task} is {state:?} and not dead; only what has failed for good can be queued anew or discarded")]
    TaskNotDead {
        /// Which.
        task: TaskId,
        /// Where it stands.
        state: TaskState,
    },
    /// A task with that id is already there, with other work.
    #[error("task {0} exists with other work; use a new id")]
    TaskExists(TaskId),
    /// The task was claimed again since; the caller no longer holds it.
    #[error("task {0} has been taken by another worker; drop it, its result would be refused")]
    TaskFenced(TaskId),
    /// That version of the workflow is defined, with another text or style. It is never overwritten.
    #[error(
        "version {version} of {workflow} is defined with another text or style; a version is the hash of its content"
    )]
    DefinitionExists {
        /// Of which workflow.
        workflow: WorkflowName,
        /// Which.
        version: Version,
    },
    /// A run that has not ended began with the definition.
    #[error("version {version} of {workflow} is needed by run {run}; forget it when no live run has it")]
    DefinitionNeeded {
        /// Of which workflow.
        workflow: WorkflowName,
        /// Which.
        version: Version,
        /// The oldest of those runs.
        run: RunKey,
    },
    /// The definition is the current one, and there are others.
    #[error("version {version} is the current one of {workflow}; define another, or forget the others first")]
    DefinitionCurrent {
        /// Of which workflow.
        workflow: WorkflowName,
        /// Which.
        version: Version,
    },
    /// The lease is over. It cannot be renewed: register again and drop every program.
    #[error("lease {lease} ended at {until}; register again and drop every program held under it")]
    LeaseLapsed {
        /// Which lease.
        lease: LeaseId,
        /// When it ended.
        until: Timestamp,
    },
    /// The caller no longer owns the run.
    #[error("run {run} is not held under fence {held}; drop its program")]
    Fenced {
        /// Which run.
        run: RunKey,
        /// The fence the caller showed.
        held: Fence,
    },
    /// Larger than allowed.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A stored row cannot be read. Only its run is affected; it can be parked and repaired.
    #[error("a stored row of {what} cannot be read: {detail}; park the run and repair or delete it")]
    Corrupt {
        /// Which run, or which table.
        what: String,
        /// What is wrong.
        detail: String,
    },
    /// The database was written by a newer release.
    #[error("the database has schema {found}, this program knows {known}; use a newer release of Outlast")]
    NewerDatabase {
        /// The database's schema version.
        found: u32,
        /// The newest this program knows.
        known: u32,
    },
    /// Another process owns the SQLite file.
    #[error("{path} is owned by process {pid}; stop it, or use PostgreSQL to share one database")]
    Locked {
        /// The file.
        path: String,
        /// The owner, as far as it can be told.
        pid: String,
    },
    /// The SQLite library can corrupt a write-ahead log.
    #[error("SQLite {found} can corrupt its write-ahead log; build with 3.51.3 or newer (feature `bundled`)")]
    UnsafeSqlite {
        /// The library's version.
        found: String,
    },
    /// The settings do not make sense.
    #[error("{0}")]
    Settings(String),
    /// The store has no SQL, and so no transactions.
    #[error("this store has no SQL, and so no transactions; open the engine on SQLite or PostgreSQL")]
    Unsupported,
    /// The store could not work. Every call but `commit` is safe to repeat; `commit` says so itself.
    #[error("the store is unavailable: {message}; {}", trouble.hint())]
    Unavailable {
        /// Of which kind.
        trouble: Trouble,
        /// The database's own words.
        message: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing the request.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. })
    }

    /// An [`StoreError::Unavailable`].
    pub fn unavailable(trouble: Trouble, message: impl Into<String>) -> Self {
        StoreError::Unavailable { trouble, message: message.into() }
    }

    /// A [`StoreError::Corrupt`].
    pub fn corrupt(what: impl Into<String>, detail: impl Into<String>) -> Self {
        StoreError::Corrupt { what: what.into(), detail: detail.into() }
    }
}

/// Why a commit was turned down although its sender owns the run. Nothing of it was applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Rejection {
    /// The journal has not got that far.
    #[error("the journal's next index is {next}; a commit may not skip ahead")]
    SkipsAhead {
        /// The next index.
        next: Index,
    },
    /// The wait has an answer that this commit does not consume: feed the answer first.
    #[error("{key} has been answered; read the inbox and feed the answer first")]
    Answered {
        /// Which wait.
        key: Key,
    },
    /// The commit says the wait was resolved, but nobody answered it.
    #[error("{key} has no answer yet")]
    Unanswered {
        /// Which wait.
        key: Key,
    },
    /// Something came that the owner has not read: a resume or a cancellation perhaps, which a pause would keep from it.
    #[error("the run was woken since its resume was taken; take it and read the inbox before pausing")]
    Woken,
    /// There is no such open wait.
    #[error("{key} is not an open wait")]
    WaitGone {
        /// Which wait.
        key: Key,
    },
    /// A wait with that key is there already.
    #[error("{key} is already a wait of this run")]
    WaitExists {
        /// Which wait.
        key: Key,
    },
    /// The timer is not due by the store's clock.
    #[error("the timer of {key} is due at {due}, it is {now}")]
    TimerNotDue {
        /// Which operation.
        key: Key,
        /// When it is due.
        due: Timestamp,
        /// The store's time.
        now: Timestamp,
    },
    /// Somebody else fired the timer: its fact is in the inbox.
    #[error("the timer of {key} is gone; read the inbox")]
    TimerGone {
        /// Which operation.
        key: Key,
    },
    /// The inbox item is not there.
    #[error("inbox item {id} is not there; load the inbox again")]
    InboxGone {
        /// Which item.
        id: InboxId,
    },
    /// The child's id is taken by a run that is not this child.
    #[error("run {child} exists and is not this operation's child; choose another id")]
    ChildExists {
        /// The id.
        child: RunId,
    },
    /// A task with that id is there already.
    #[error("task {task} exists already; choose another id")]
    TaskExists {
        /// The id.
        task: TaskId,
    },
    /// The run belongs to another namespace than something the commit names.
    #[error("the commit reaches into namespace {namespace}, its run is elsewhere")]
    ForeignNamespace {
        /// The other namespace.
        namespace: Namespace,
    },
    /// Larger than allowed.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

/// What became of a commit that was not applied, or of which that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// The index is taken: by a zombie of this owner, or by this very commit sent before. Drop the program.
    #[error("journal index {expected} is taken; drop the program and load the run again")]
    Conflict {
        /// The index the commit wanted.
        expected: Index,
        /// The event that is there.
        found: Box<Record>,
    },
    /// The run changed hands, was released, or ended. Drop the program.
    #[error("the run is not held under fence {held}, it stands at {current}; drop the program")]
    Fenced {
        /// The fence the commit showed.
        held: Fence,
        /// The run's fence.
        current: Fence,
    },
    /// The owner asked for something that cannot be.
    #[error("the commit was rejected: {0}")]
    Rejected(#[from] Rejection),
    /// The reply was lost. Ask [`crate::Store::resolve`] before doing anything else.
    #[error("the outcome of transaction {0} is not known; resolve it before going on")]
    Unknown(TxnId),
    /// Certainly not applied, for the reason given.
    #[error(transparent)]
    NotApplied(#[from] StoreError),
}
