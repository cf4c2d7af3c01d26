//! PostgreSQL: one database, many processes.
//!
//! Writes go through a few lanes that commit in groups: lock the rows, read the clock, run the shared logic over them,
//! write and commit. Claims skip what others hold. All database work happens in tasks the store owns, so dropping a
//! caller's future never leaves a connection in the middle of anything.

mod admit;
mod authors;
mod bare;
mod claim;
mod decode;
mod definition;
mod failure;
mod fetch;
mod flush;
mod group;
mod hint;
mod lease;
mod list;
mod load;
mod migrate;
mod namespaces;
mod needs;
mod options;
mod outlook;
#[cfg(test)]
mod plans;
mod query;
mod resolve;
mod retention;
mod serve;
mod session;
mod sql;
mod sweep;
mod task;
mod tls;
mod turns;
mod work;
mod worker;
mod working_set;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::Pool;
use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{
    LeaseId, Namespace, NodeId, QueueName, Revision, RunId, RunKey, ScheduleId, TaskId, TxnId, Version, WorkerId,
    WorkflowName,
};
use outlast_core::limits::Limits;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Row;

use crate::logic::turns::Turns;
use crate::{
    Admitted, Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, Clock, CommitError, Committed, Created,
    Defined, Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, Delivered, DeliveredAndClaimed, Depths,
    DueCursor, DueSchedules, Excerpt, Filter, Fire, Fired, Held, KeyedReply, Lease, Load, Loaded, Outlook, Page, Pick,
    Release, Resolution, Resume, Retained, Retention, RunView, Schedule, Sighting, SqlAnswer, SqlQuestion, Store,
    StoreError, Swept, Take, TaskDetail, TaskExtended, TaskFilter, TaskHeartbeat, TaskPage, Transact, Transacted,
    Trouble, WorkerView,
};
use authors::Authors;
pub use bare::BareCommits;
use failure::Failure;
use group::Queue;
use hint::Hints;
use namespaces::Namespaces;
pub use options::{PostgresOptions, Tls};
use session::Session;
use task::lines::Lines;
use work::DeadTask;
use work::{ClaimNamed, Unpark, Wake};

/// How often a transaction that lost a race is begun again.
const ATTEMPTS_MAX: u32 = 10;

/// Runs a transaction, again if it lost a race. The body is a call that is given the session; what it leaves open is
/// rolled back.
macro_rules! transact {
    ($core:expr, |$session:ident| $body:expr) => {{
        let mut attempt = 1;
        loop {
            let mut session = $crate::postgres::session::Session::begin(&$core.pool).await?;
            let ended = {
                let $session = &mut session;
                $body.await
            };
            session.rollback().await;
            match ended {
                Ok(value) => break Ok(value),
                Err($crate::postgres::failure::Failure {
                    remedy: $crate::postgres::failure::Remedy::Again, ..
                }) if attempt < $crate::postgres::ATTEMPTS_MAX => {
                    attempt += 1;
                }
                Err(failure) => break Err(failure.error),
            }
        }
    }};
}
use transact;

/// A store in a PostgreSQL database. Cloning it is cheap and gives the same store.
///
/// ```no_run
/// # async fn example() -> Result<(), outlast_store::StoreError> {
/// use outlast_store::{PostgresOptions, PostgresStore, Store};
///
/// let store = PostgresStore::connect("postgres://localhost/shop", PostgresOptions::default()).await?;
/// assert!(!store.namespaces().await?.is_empty());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    queue: Queue,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(hints) = &self.core.hints {
            hints.close();
        }
    }
}

/// What all parts of the store share.
struct Core {
    pool: Pool,
    authors: Authors,
    /// Where questions in SQL are asked.
    questions: Pool,
    clock: Clock,
    limits: Limits,
    namespaces: Namespaces,
    turns: Mutex<Turns>,
    /// Where ready tasks line up, as far as this store has seen.
    lines: Mutex<Lines>,
    runtime: Handle,
    hints: Option<Arc<Hints>>,
}

impl Core {
    /// Starts a task that belongs to the store.
    #[expect(clippy::disallowed_methods, reason = "the store's own tasks: the one place where they begin")]
    fn own<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.runtime.spawn(task)
    }

    /// The time, from the answer of the statement that reads the server's clock, unless the clock is ours.
    fn now(&self, clock: &[Row]) -> Result<Timestamp, Failure> {
        match clock.first() {
            Some(row) => self.now_from(row, 0),
            None => Err(StoreError::unavailable(Trouble::Other, "the server did not tell the time").into()),
        }
    }

    /// The time, from a column in which a statement read the server's clock, unless the clock is ours.
    fn now_from(&self, row: &Row, column: usize) -> Result<Timestamp, Failure> {
        match &self.clock {
            Clock::Manual(clock) => Ok(clock.now()),
            Clock::System => Ok(Timestamp::from_millis(row.try_get(column)?)),
        }
    }

    /// The time for statements that compare with it; none if the server's clock is to be used.
    fn manual_now(&self) -> Option<i64> {
        match &self.clock {
            Clock::Manual(clock) => Some(clock.now().as_millis()),
            Clock::System => None,
        }
    }

    /// Something became ready.
    fn hint(&self) {
        if let Some(hints) = &self.hints {
            hints.send();
        }
    }
}

impl PostgresStore {
    /// Connects, and creates or upgrades the tables. Must be called inside a Tokio runtime, to which the store's tasks
    /// will belong.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<PostgresStore, StoreError> {
        options.check()?;
        let config = session::config(url, &options)?;
        let pool = session::pool(config.clone(), &options, options.connections)?;
        let authors = Authors::new(config.clone(), &options)?;
        let questions = session::pool(config.clone(), &options, sql::AT_ONCE)?;
        let runtime = Handle::try_current()
            .map_err(|_| StoreError::Settings("connect to PostgreSQL inside a Tokio runtime".to_owned()))?;
        migrate::migrate(&pool, options.schema.as_deref(), migrate::MIGRATIONS).await?;
        let core = Arc::new(Core {
            pool,
            authors,
            questions,
            clock: options.clock.clone(),
            limits: options.limits.clone(),
            namespaces: Namespaces::default(),
            turns: Mutex::default(),
            lines: Mutex::default(),
            runtime,
            hints: options.notify.then(|| Arc::new(Hints::new())),
        });
        if let Some(hints) = &core.hints {
            core.own(hint::notify(Arc::clone(&core), Arc::clone(hints)));
            core.own(hint::listen(Arc::clone(hints), config, options.clone()));
        }
        let queue = Queue::start(&core, options.lanes);
        Ok(PostgresStore { inner: Arc::new(Inner { core, queue }) })
    }

    /// Has work done in a task of the store, so that it ends well even if nobody waits for it any more.
    fn own<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let core = Arc::clone(&self.inner.core);
        let work = work(Arc::clone(&core));
        Box::pin(async move {
            match core.own(work).await {
                Ok(answer) => answer,
                Err(error) => Err(StoreError::unavailable(Trouble::Closed, format!("the store's task ended: {error}"))),
            }
        })
    }
}

impl Store for PostgresStore {
    fn sql(&self, question: SqlQuestion) -> BoxFuture<'_, Result<SqlAnswer, StoreError>> {
        self.own(|core| async move { sql::answer(&core, &question).await })
    }

    fn register(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.own(|core| async move { lease::register(&core, &node, lease).await })
    }

    fn renew(&self, lease: LeaseId, duration: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.own(move |core| async move { lease::renew(&core, lease, duration).await })
    }

    fn retire(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.own(move |core| async move { lease::retire(&core, lease).await })
    }

    fn leases(&self) -> BoxFuture<'_, Result<Vec<Lease>, StoreError>> {
        self.own(|core| async move { lease::all(&core).await })
    }

    fn hints(&self) -> Option<watch::Receiver<u64>> {
        self.inner.core.hints.as_ref().map(|hints| hints.subscribe())
    }

    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        Box::pin(self.inner.queue.submit(runs))
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        match claim.pick.clone() {
            Pick::Ready => self.own(|core| async move { claim::ready(&core, &claim).await }),
            Pick::Run(run) | Pick::Seize(run) => Box::pin(async move {
                let claimed = self.inner.queue.submit_one(ClaimNamed { run, claim }).await?;
                Ok(claimed.into_iter().collect())
            }),
        }
    }

    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.own(move |core| async move { claim::wakes(&core, decode::number(lease.0), limit).await })
    }

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<bool, StoreError>>> {
        Box::pin(self.inner.queue.submit(runs))
    }

    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>> {
        let expected = loads.len();
        let loaded = self.own(|core| async move { load::load(&core, &loads).await });
        Box::pin(
            async move { loaded.await.unwrap_or_else(|error| (0..expected).map(|_| Err(error.clone())).collect()) },
        )
    }

    fn commit(&self, commits: Vec<Commit>) -> BoxFuture<'_, Vec<Result<Committed, CommitError>>> {
        Box::pin(self.inner.queue.submit(commits))
    }

    fn transact(&self, transact: Transact) -> BoxFuture<'_, Result<Transacted, CommitError>> {
        // What became of it is an answer, also where it is not one of the store's errors.
        let ended = self.own(|core| async move { Ok(authors::transact(&core, &transact).await) });
        Box::pin(async move { ended.await? })
    }

    fn resolve(&self, txn: TxnId) -> BoxFuture<'_, Result<Resolution, StoreError>> {
        self.own(move |core| async move { resolve::resolve(&core, txn).await })
    }

    fn release(&self, runs: Vec<Release>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        Box::pin(self.inner.queue.submit(runs))
    }

    fn unpark(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.inner.queue.submit_one(Unpark(run)))
    }

    fn announce(&self, serves: Vec<(WorkflowName, Version)>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.own(|core| async move { serve::announce(&core, serves).await })
    }

    fn park_unserved(&self, grace: Duration, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.own(move |core| async move { serve::park_unserved(&core, grace, limit).await })
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Delivered, StoreError>>> {
        Box::pin(self.inner.queue.submit(deliveries))
    }

    fn deliver_and_claim(&self, deliveries: Vec<Delivery>, _claim: Claim) -> BoxFuture<'_, DeliveredAndClaimed> {
        // Two transactions one after the other: whoever delivers would wait for the claims of the whole node.
        Box::pin(async move { DeliveredAndClaimed { delivered: self.deliver(deliveries).await, claimed: None } })
    }

    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        Box::pin(self.inner.queue.submit(tasks))
    }

    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>> {
        self.own(|core| async move { task::claim(&core, &claim).await })
    }

    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>> {
        Box::pin(self.inner.queue.submit_one(heartbeat))
    }

    fn task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<TaskDetail, StoreError>> {
        self.own(|core| async move { task::list::one(&core, &namespace, &id).await })
    }

    fn tasks(&self, filter: TaskFilter) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        self.own(|core| async move { task::list::page(&core, &filter).await })
    }

    fn retry_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.inner.queue.submit_one(DeadTask::Retry(namespace, id)))
    }

    fn discard_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.inner.queue.submit_one(DeadTask::Discard(namespace, id)))
    }

    fn see_worker(&self, sighting: Sighting) -> BoxFuture<'_, Result<(), StoreError>> {
        self.own(|core| async move { worker::see(&core, &sighting).await })
    }

    fn forget_worker(&self, namespace: Option<Namespace>, worker: WorkerId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.own(|core| async move { worker::forget(&core, namespace.as_ref(), &worker).await })
    }

    fn workers(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<WorkerView>, StoreError>> {
        self.own(|core| async move { worker::list(&core, &namespace).await })
    }

    fn reply(&self, reply: KeyedReply) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        self.own(|core| async move { worker::reply(&core, &reply).await })
    }

    fn define(&self, definitions: Vec<Definition>) -> BoxFuture<'_, Vec<Result<Defined, StoreError>>> {
        let expected = definitions.len();
        let defined = self.own(|core| async move { definition::define(&core, &definitions).await });
        Box::pin(
            async move { defined.await.unwrap_or_else(|error| (0..expected).map(|_| Err(error.clone())).collect()) },
        )
    }

    fn definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Option<Version>,
    ) -> BoxFuture<'_, Result<Option<DefinitionDetail>, StoreError>> {
        self.own(|core| async move { definition::one(&core, &namespace, &workflow, version.as_ref()).await })
    }

    fn definitions(&self, filter: DefinitionFilter) -> BoxFuture<'_, Result<DefinitionPage, StoreError>> {
        self.own(|core| async move { definition::page(&core, &filter).await })
    }

    fn forget_definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Version,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.own(|core| async move { definition::forget(&core, &namespace, &workflow, &version).await })
    }

    fn wake(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.inner.queue.submit_one(Wake(run)))
    }

    fn resumes(
        &self,
        namespace: Namespace,
        after: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Resume>, StoreError>> {
        self.own(move |core| async move { worker::resumes(&core, &namespace, after.as_ref(), limit).await })
    }

    fn outlook(&self, queues: Vec<QueueName>) -> BoxFuture<'_, Result<Outlook, StoreError>> {
        self.own(|core| async move { outlook::outlook(&core, &queues).await })
    }

    fn depths(&self) -> BoxFuture<'_, Result<Depths, StoreError>> {
        self.own(|core| async move { outlook::depths(&core).await })
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        self.own(move |core| async move { sweep::sweep(&core, limit).await })
    }

    fn admit(&self, limit: usize) -> BoxFuture<'_, Result<Admitted, StoreError>> {
        self.own(move |core| async move { admit::admit(&core, limit).await })
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        Box::pin(self.inner.queue.submit_one(schedule))
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.own(|core| async move { query::remove_schedule(&core, &namespace, &id).await })
    }

    fn schedules(
        &self,
        namespace: Namespace,
        only: Option<ScheduleId>,
    ) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.own(|core| async move { query::schedules(&core, &namespace, only.as_ref()).await })
    }

    fn due_schedules(&self, after: Option<DueCursor>, limit: usize) -> BoxFuture<'_, Result<DueSchedules, StoreError>> {
        self.own(move |core| async move { query::due_schedules(&core, after.as_ref(), limit).await })
    }

    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>> {
        Box::pin(self.inner.queue.submit_one(fire))
    }

    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.own(|core| async move {
            let mut session = Session::begin(&core.pool).await?;
            Ok(core.namespaces.put(&mut session, &namespace).await?)
        })
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>> {
        self.own(|core| async move {
            let mut session = Session::begin(&core.pool).await?;
            Ok(core.namespaces.all(&mut session).await?)
        })
    }

    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>> {
        self.own(|core| async move { query::secret(&core).await })
    }

    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>> {
        self.own(|core| async move { query::get(&core, &run).await })
    }

    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.own(|core| async move { list::list(&core, &filter).await })
    }

    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>> {
        self.own(|core| async move { query::count(&core, &namespace).await })
    }

    fn held(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Held>, StoreError>> {
        self.own(|core| async move { admit::held(&core, &run).await })
    }

    fn awaiting(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<Awaited>, StoreError>> {
        self.own(|core| async move { query::awaiting(&core, &run).await })
    }

    fn excerpt(&self, excerpt: Excerpt) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.own(|core| async move { query::excerpt(&core, &excerpt).await })
    }

    fn attributes(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        self.own(|core| async move { query::attributes(&core, &run).await })
    }

    fn delete(&self, run: RunKey, reason: String) -> BoxFuture<'_, Result<(), StoreError>> {
        self.own(|core| async move { retention::delete(&core, &run, &reason).await })
    }

    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>> {
        self.own(move |core| async move { retention::retain(&core, retention).await })
    }
}
