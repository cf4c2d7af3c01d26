//! The store contract of Outlast and its three stores.
//!
//! A [`Store`] keeps runs, journals, inboxes, timers, waits, tasks, leases, schedules and definitions. It knows nothing of what is
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
mod meters;
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

use bytes::Bytes;
use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{
    LeaseId, Namespace, NodeId, QueueName, Revision, RunId, RunKey, ScheduleId, TaskId, TxnId, Version, WorkerId,
    WorkflowName,
};
use outlast_core::record::Record;
use tokio::sync::watch;

pub use api::*;
pub use clock::{Clock, ManualClock};
pub use error::{CommitError, Rejection, StoreError, Trouble};
pub use memory::MemoryStore;
pub use meters::describe_metrics;
#[cfg(feature = "postgres")]
pub use postgres::{BareCommits, PostgresOptions, PostgresStore, Tls};
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

    /// Leases that were begun and not forgotten since, by id, also those that are over.
    fn leases(&self) -> BoxFuture<'_, Result<Vec<Lease>, StoreError>>;

    // Runs.

    /// Creates runs; idempotent by id.
    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>>;
    /// Takes ownership of runs: by priority, then one of each namespace after the other, in each by age. A run that was claimed too often without progress is parked instead.
    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>>;
    /// Runs owned under the lease that have been woken since they were claimed or their resume was taken.
    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>>;
    /// Takes the resume of owned runs whose inbox was read. False if something came since: then its wake stays.
    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<bool, StoreError>>>;
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
    /// [`Store::load`] in the same way.
    fn load_here(&self, _loads: &[Load]) -> Option<Vec<Result<Loaded, StoreError>>> {
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
    /// [`Store::deliver`] and then [`Store::claim`], for a node that is likely to drive what was woken. A store that can do
    /// both in one write does. No claim if it would rather not: then the runs are ready, and are claimed as ever.
    fn deliver_and_claim(&self, deliveries: Vec<Delivery>, claim: Claim) -> BoxFuture<'_, DeliveredAndClaimed> {
        Box::pin(async move {
            let delivered = self.deliver(deliveries).await;
            DeliveredAndClaimed { delivered, claimed: Some(self.claim(claim).await) }
        })
    }

    /// [`Store::deliver_and_claim`] on the calling thread, in the way of [`Store::create_here`].
    fn deliver_and_claim_here(&self, _deliveries: &[Delivery], _claim: &Claim) -> Option<DeliveredAndClaimed> {
        None
    }

    // Tasks.

    /// Enqueues tasks that no run awaits; idempotent by id.
    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>>;
    /// Hands tasks to a worker: by priority, then one of each namespace after the other, in each by their place in the queue;
    /// also those whose worker fell silent.
    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>>;
    /// Keeps a task claimed, and says whether it is still wanted.
    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>>;
    /// One task, with everything there is to know about it.
    fn task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<TaskDetail, StoreError>>;
    /// Tasks, by id.
    fn tasks(&self, filter: TaskFilter) -> BoxFuture<'_, Result<TaskPage, StoreError>>;
    /// Queues a dead task anew, for nobody: its run has got the failure. Its attempts are counted from the start.
    fn retry_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Removes a dead task.
    fn discard_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>>;

    // Workers.

    /// Takes note of a worker that was seen. Not after every call of its: now and then is enough.
    fn see_worker(&self, sighting: Sighting) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Forgets a worker that has ended. What it holds stays its own until its leases are over.
    fn forget_worker(&self, namespace: Option<Namespace>, worker: WorkerId) -> BoxFuture<'_, Result<(), StoreError>>;
    /// The workers for all namespaces and those for this one, by name, at most [`WORKERS_MAX`], with the tasks of this
    /// namespace that they hold.
    fn workers(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<WorkerView>, StoreError>>;

    // Replies.

    /// What was replied to whoever asked for something under this key. If nothing was and there is a reply, keeps it, for a day at
    /// least. Of two who keep one at once the first does, and the other is told that one.
    fn reply(&self, reply: KeyedReply) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>>;

    // Definitions.

    /// Keeps versions of workflows that are text, in one transaction, and makes each the current one of its workflow; of two of one
    /// workflow the later. The same content again is no change; a version with another text or style is refused.
    fn define(&self, definitions: Vec<Definition>) -> BoxFuture<'_, Vec<Result<Defined, StoreError>>>;
    /// One version of a workflow, or the current one; none if there is none.
    fn definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Option<Version>,
    ) -> BoxFuture<'_, Result<Option<DefinitionDetail>, StoreError>>;
    /// Definitions without their texts, by revision: also those that are new since an earlier look, whoever defined them.
    fn definitions(&self, filter: DefinitionFilter) -> BoxFuture<'_, Result<DefinitionPage, StoreError>>;
    /// Removes a definition; whether it was there. Not while a live run has its version, and the current one only if it is
    /// the last of its workflow. It looks at every live run of the namespace: for those who tidy up. Nobody is told: who has
    /// the text may go on with it. A start that arrives at the same time may come after it, because starts do not look for
    /// definitions: then the run has no text, is parked ([`Store::park_unserved`]), and can go on once its version is
    /// defined again.
    fn forget_definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Version,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    // Resumes.

    /// Leaves a resume for a run, because somebody wants it looked at; whether it is there and has not ended.
    fn wake(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>>;
    /// The runs of a namespace that are driven or ready to be, by id, behind this one; at most `limit`.
    fn resumes(
        &self,
        namespace: Namespace,
        after: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Resume>, StoreError>>;

    /// What there is to do, also in these queues: for one that does nothing else, before anything that would take more.
    fn outlook(&self, queues: Vec<QueueName>) -> BoxFuture<'_, Result<Outlook, StoreError>>;

    // Time.

    /// Fires due timers, at most `limit`: each firing, its inbox item and the wake are one transaction.
    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>>;
    /// Admits runs that were held back and have room now, by priority, fair share and age; at most about `limit`, in one
    /// transaction. Nobody else admits at the same time, so that no limit is ever exceeded.
    fn admit(&self, limit: usize) -> BoxFuture<'_, Result<Admitted, StoreError>>;
    /// Creates or replaces a schedule; its new revision, none if it changed since the one in the request.
    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<Option<Revision>, StoreError>>;
    /// Removes a schedule; whether it was there.
    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>>;
    /// The schedules of a namespace, by id; only the one that is named, if one is.
    fn schedules(
        &self,
        namespace: Namespace,
        only: Option<ScheduleId>,
    ) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>>;
    /// Schedules that are due, of all namespaces, earliest first, from behind a place on.
    fn due_schedules(&self, after: Option<DueCursor>, limit: usize) -> BoxFuture<'_, Result<DueSchedules, StoreError>>;
    /// Fires one instant of a schedule: the run it starts and the next instant are one transaction.
    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>>;

    // Namespaces.

    /// Creates a namespace; whether it is new. `default` is always there.
    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>>;
    /// All namespaces, by name.
    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>>;

    /// A number that changes when somebody made something ready, in any process. Only a hint, to look sooner: some may be missed
    /// and some may be for nothing, so that nobody may rely on them. None if this store has no such thing.
    fn hints(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Random bytes made with the database and never changed: whoever opens it gets the same. Tokens are made with it.
    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>>;

    // Questions.

    /// One run. A deleted one answers [`StoreError::Deleted`].
    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>>;
    /// Runs, newest first.
    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>>;
    /// How many runs of a namespace stand where.
    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>>;
    /// How much there is to do. It looks at every task: for those who watch, now and then.
    fn depths(&self) -> BoxFuture<'_, Result<Depths, StoreError>>;
    /// Why flow control holds a run back; none if it does not.
    fn held(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Held>, StoreError>>;
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
    /// Deletes terminal trees and dead tasks past their age, the rows and dead tasks of deleted runs, workers that were silent
    /// for a day and replies that are as old, in bounded steps a crash cannot spoil.
    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>>;

    /// Answers a question in SQL, for operators; a store without SQL answers none.
    fn sql(&self, _question: SqlQuestion) -> BoxFuture<'_, Result<SqlAnswer, StoreError>> {
        Box::pin(async { Err(StoreError::Unsupported) })
    }
}
