//! The store contract of Outlast and its three stores.
//!
//! A [`Store`] keeps runs, journals, inboxes, timers, waits, tasks, leases and schedules. It knows nothing of what is
//! inside an event. Three come with this crate and behave alike, to the letter: [`MemoryStore`], `SqliteStore`
//! (feature `sqlite`) and `PostgresStore` (feature `postgres`). What they must do is written down as tests: the
//! `contract` module (feature `contract`) runs against any store, also yours.

mod api;
mod clock;
#[cfg(feature = "contract")]
pub mod contract;
mod error;
#[cfg(feature = "contract")]
pub mod faults;
#[cfg(feature = "contract")]
pub mod invariants;
mod logic;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;
// Without a store that has SQL nobody runs statements.
#[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code, unused_imports))]
mod transact;

use std::pin::Pin;
use std::time::Duration;

use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{LeaseId, Namespace, NodeId, RunKey, ScheduleId, TxnId, Version, WorkflowName};
use outlast_core::record::Record;

pub use api::*;
pub use clock::{Clock, ManualClock};
pub use error::{CommitError, Rejection, StoreError, Trouble};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, Tls};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use transact::{Column, FromSqlValue, Row, SqlValue, Transact, Transacted, Tx, TxBody, TxError};

/// A boxed future, so that the engine can hold an `Arc<dyn Store>`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The one seam between the engine and a database.
///
/// Calls are batches; each item has its own answer, and one refusal does not touch its neighbours. Dropping any future
/// at any await leaves the store healthy: the work either happens wholly or not at all. Every call may be repeated
/// after [`StoreError::Unavailable`]; a commit whose reply was lost says [`CommitError::Unknown`] and is resolved with
/// [`Store::resolve`].
pub trait Store: Send + Sync + 'static {
    // Ownership.

    /// Begins a node's lease. An earlier one of the same node ends at once.
    fn register(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Lease, StoreError>>;
    /// Prolongs a live lease; a lapsed one cannot be renewed.
    fn renew(&self, lease: LeaseId, duration: Duration) -> BoxFuture<'_, Result<Lease, StoreError>>;
    /// Ends a lease at once: its runs may be claimed by others.
    fn retire(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>>;

    // Runs.

    /// Creates runs; idempotent by id.
    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>>;
    /// Takes ownership of runs. A run that was claimed too often without progress is parked instead.
    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>>;
    /// Runs owned under the lease that have been woken since they were claimed or their resume was taken.
    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>>;
    /// Takes the resume of owned runs, before their inbox is read.
    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<(), StoreError>>>;
    /// Reads journals and inboxes: one range scan each.
    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>>;
    /// Applies the output of turns. When it answers `Committed`, it is durable.
    fn commit(&self, commits: Vec<Commit>) -> BoxFuture<'_, Vec<Result<Committed, CommitError>>>;
    /// [`Store::create`] on the calling thread, which blocks until it is durable: for one that has nothing else to do, and
    /// no runtime around it. None, and nothing done, if somebody else writes or this store cannot.
    fn create_here(&self, _runs: &[NewRun]) -> Option<Vec<Result<Created, StoreError>>> {
        None
    }
    /// [`Store::commit`] in the same way.
    fn commit_here(&self, _commits: &[Commit]) -> Option<Vec<Result<Committed, CommitError>>> {
        None
    }
    /// Runs an author's SQL and appends what it gives, in one transaction of the store's own database. Once it has begun
    /// it ends by itself, whether or not somebody waits for it.
    fn transact(&self, transact: Transact) -> BoxFuture<'_, Result<Transacted, CommitError>> {
        let _ = transact;
        Box::pin(async { Err(CommitError::NotApplied(StoreError::Unsupported)) })
    }
    /// Says what became of a transaction whose reply was lost, and forbids it to happen later.
    fn resolve(&self, txn: TxnId) -> BoxFuture<'_, Result<Resolution, StoreError>>;
    /// Gives runs back without appending.
    fn release(&self, runs: Vec<Release>) -> BoxFuture<'_, Vec<Result<(), StoreError>>>;
    /// Lets a parked run go on; whether it was parked.
    fn unpark(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>>;

    // Versions.

    /// Says that somebody alive offers to drive these, in every namespace. To be said again well within the grace of
    /// [`Store::park_unserved`].
    fn announce(&self, serves: Vec<(WorkflowName, Version)>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Parks runs that nobody can drive: their workflow and version was not announced for `grace`, and for as long they
    /// have been ready, or the lease of their owner is over. At most `limit`, in one transaction; which ones.
    fn park_unserved(&self, grace: Duration, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>>;

    // What others leave for a run.

    /// Leaves items in inboxes and wakes their runs, each in one transaction.
    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Delivered, StoreError>>>;

    // Tasks.

    /// Enqueues tasks that no run awaits; idempotent by id.
    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>>;
    /// Hands tasks to a worker, by priority and age; also those whose worker fell silent.
    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>>;
    /// Keeps a task claimed, and says whether it is still wanted.
    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>>;
    /// Tasks of a namespace, oldest id first, at most `limit`.
    fn tasks(&self, namespace: Namespace, limit: usize) -> BoxFuture<'_, Result<Vec<TaskView>, StoreError>>;

    // Time.

    /// Fires due timers, at most `limit`: each firing, its inbox item and the wake are one transaction.
    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>>;
    /// Creates or replaces a schedule.
    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Removes a schedule; whether it was there.
    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>>;
    /// The schedules of a namespace, by id.
    fn schedules(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>>;
    /// Schedules that are due, of all namespaces, earliest first.
    fn due_schedules(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>>;
    /// Fires one instant of a schedule: the run it starts and the next instant are one transaction.
    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>>;

    // Namespaces.

    /// Creates a namespace; whether it is new. `default` is always there.
    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>>;
    /// All namespaces, by name.
    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>>;

    /// Random bytes made with the database and never changed: whoever opens it gets the same. Tokens are made with it.
    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>>;

    // Questions.

    /// One run. A deleted one answers [`StoreError::Deleted`].
    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>>;
    /// Runs, newest first.
    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>>;
    /// How many runs of a namespace stand where.
    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>>;
    /// What a run waits for.
    fn awaiting(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<Awaited>, StoreError>>;
    /// A part of a journal, also of an earlier generation.
    fn excerpt(&self, excerpt: Excerpt) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;
    /// A run's search attributes, by name.
    fn attributes(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>>;

    // The end.

    /// Deletes a terminal run, and if it has no parent its whole terminal tree. Its id answers `Deleted`, with the reason,
    /// for seven days. The rows go with [`Store::retain`].
    fn delete(&self, run: RunKey, reason: String) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Deletes terminal trees past their age, and the rows of deleted runs, in bounded steps a crash cannot spoil.
    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>>;
}
