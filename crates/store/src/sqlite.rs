//! The store on one SQLite file: nothing else to run, durable at every acknowledgement.

mod admit;
mod claim;
mod decode;
mod definitions;
mod error;
mod guard;
mod names;
mod outlook;
mod owner;
#[cfg(test)]
mod plans;
mod query;
mod readers;
mod ready;
mod retention;
mod rows;
mod schema;
mod serve;
mod sql;
mod statements;
mod transact;
mod workers;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{
    LeaseId, Namespace, NodeId, QueueName, Revision, RunId, RunKey, ScheduleId, TaskId, TxnId, Version, WorkerId,
    WorkflowName,
};
use outlast_core::limits::Limits;
use outlast_core::record::Record;
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use self::error::{neither, repeat};
use self::guard::Guard;
use self::names::Names;
use self::query::Query;
use self::readers::ReaderQueue;
use self::rows::SqliteRows;
use self::writer::{Lasting, Writer, WriterQueue};
use crate::error::Trouble;
use crate::logic::{self, Halt};
use crate::rows::{Fault, Rows};
use crate::{
    Admitted, Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, Clock, CommitError, Committed, Created,
    Defined, Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, Delivered, DeliveredAndClaimed, Depths,
    DueCursor, DueSchedules, Excerpt, Filter, Fire, Fired, Held, KeyedReply, Lease, Load, Loaded, Outlook, Page,
    Release, Resolution, Resume, Retained, Retention, RunView, Schedule, Sighting, SqlAnswer, SqlQuestion, Store,
    StoreError, Swept, Take, TaskDetail, TaskExtended, TaskFilter, TaskHeartbeat, TaskPage, Transact, Transacted,
    WorkerView,
};

/// How to open a file.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Where time comes from.
    pub clock: Clock,
    /// What is too large.
    pub limits: Limits,
    /// Threads that read.
    pub readers: usize,
    /// The most bytes the file may have; beyond, writes answer as on a full disk until rows are deleted.
    pub bytes_max: Option<u64>,
    /// How long a transaction of an author may hold up the writer, in real time. One that takes longer is rolled back and
    /// fails with the code `transaction_timeout`, which may be retried.
    pub transaction_limit: Duration,
}

/// How long a transaction may take unless the options say otherwise.
const TRANSACTION_LIMIT: Duration = Duration::from_millis(250);

impl Default for SqliteOptions {
    fn default() -> Self {
        SqliteOptions {
            clock: Clock::System,
            limits: Limits::default(),
            readers: 2,
            bytes_max: None,
            transaction_limit: TRANSACTION_LIMIT,
        }
    }
}

/// A store on one SQLite file, owned by one process.
///
/// ```
/// use outlast_store::{SqliteOptions, SqliteStore, Store};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("shop.db");
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = SqliteStore::open(&path, SqliteOptions::default()).await?;
/// assert_eq!(store.namespaces().await?.len(), 1);
/// # Ok::<(), outlast_store::StoreError>(()) }).unwrap();
/// ```
pub struct SqliteStore {
    limits: Arc<Limits>,
    clock: Clock,
    guard: Arc<Guard>,
    /// Both end before the threads are joined: that is what ends the threads.
    queues: Option<(WriterQueue, ReaderQueue)>,
    threads: Vec<JoinHandle<()>>,
    /// For those who read on their own thread.
    here: Mutex<Option<(Connection, Names)>>,
    path: PathBuf,
    /// Questions in SQL come one after the other.
    asking: Arc<Mutex<()>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens or creates the file and takes it for this process. Every lease of an earlier process is over.
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
        Self::open_blocking(path.as_ref(), options)
    }

    fn open_blocking(path: &Path, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
        schema::check_library(rusqlite::version_number())?;
        let lock = owner::lock(path)?;
        let mut connection = schema::open_writer(path)?;
        schema::migrate(&mut connection, path)?;
        if let Some(bytes) = options.bytes_max {
            schema::limit_size(&connection, bytes)?;
        }
        schema::end_old_leases(&connection)?;
        let guard = schema::own_names()
            .and_then(|own| Guard::install(&mut connection, own, options.transaction_limit))
            .map_err(|error| error::store_error(&error))?;
        let here = Mutex::new(Some((schema::open_reader(path)?, Names::default())));
        let (reader_queue, questions) = readers::queue();
        let mut threads = Vec::new();
        for _ in 0..options.readers.max(1) {
            let (connection, questions) = (schema::open_reader(path)?, questions.clone());
            threads.push(thread("outlast-read", move || readers::run(connection, questions))?);
        }
        let (writer, writer_queue) = Writer::new(connection, Names::default(), options.clock.clone());
        threads.push(thread("outlast-write", move || {
            writer.run();
            // The connection is closed by now: only then may another process take the file.
            drop(lock);
        })?);
        let queues = Some((writer_queue, reader_queue));
        let (path, asking, limits) = (path.to_owned(), Arc::default(), Arc::new(options.limits));
        Ok(SqliteStore { limits, clock: options.clock, guard, queues, threads, here, path, asking })
    }

    /// Answers a question in SQL on a thread of its own: however long it takes, no reader is kept from its work.
    async fn ask(&self, question: SqlQuestion) -> Result<SqlAnswer, StoreError> {
        let (path, asking) = (self.path.clone(), Arc::clone(&self.asking));
        let (reply, answer) = oneshot::channel();
        drop(thread("outlast-sql", move || {
            let _turn = asking.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever asked may have left while others were answered.
            if !reply.is_closed() {
                let _ = reply.send(sql::answer(&path, &question));
            }
        })?);
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    fn writer(&self) -> Result<WriterQueue, StoreError> {
        self.queues.as_ref().map(|(writer, _)| writer.clone()).ok_or_else(closed)
    }

    /// Runs one piece of logic in the writer; its refusals are answers, its faults roll back.
    async fn write<T, F>(&self, mut work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteRows<'_>) -> Result<T, Halt<StoreError>> + Send + 'static,
    {
        self.writer()?.run(Lasting::Forever, move |rows| answer(work(rows))).await?
    }

    /// The same for what ends with this process: it need not be on the disk.
    async fn note<T, F>(&self, mut work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteRows<'_>) -> Result<T, Halt<StoreError>> + Send + 'static,
    {
        self.writer()?.run(Lasting::Process, move |rows| answer(work(rows))).await?
    }

    /// Applies a piece of logic to each item of a batch.
    async fn batch<I, T, F>(&self, lasting: Lasting, items: Vec<I>, each: F) -> Vec<Result<T, StoreError>>
    where
        I: Send + 'static,
        T: Send + 'static,
        F: Fn(&mut SqliteRows<'_>, &I, &Limits) -> Result<T, Halt<StoreError>> + Send + 'static,
    {
        let (count, limits) = (items.len(), self.limits.clone());
        let work =
            move |rows: &mut SqliteRows<'_>| items.iter().map(|item| answer(each(rows, item, &limits))).collect();
        let done = match self.writer() {
            Ok(writer) => writer.run(lasting, work).await,
            Err(error) => Err(error),
        };
        done.unwrap_or_else(|error| repeat(&error, count))
    }

    async fn read<T, F>(&self, question: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Query<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let readers = self.queues.as_ref().map(|(_, readers)| readers.clone()).ok_or_else(closed)?;
        readers.ask(move |connection, names| question(&mut Query { connection, names })).await
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // What was accepted is written before the file is given up, and the writer's connection is the last to go.
        self.here = Mutex::new(None);
        self.queues = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn closed() -> StoreError {
    StoreError::unavailable(Trouble::Closed, "the store is closed")
}

#[expect(clippy::disallowed_methods, reason = "the store's own threads: the one place where they begin")]
fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|error| StoreError::unavailable(Trouble::Other, format!("cannot start a thread: {error}")))
}

/// Keeps refusals as answers, and hands faults to the transaction.
fn answer<T, X>(result: Result<T, Halt<X>>) -> Result<Result<T, X>, Fault> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(Halt::Refused(refusal)) => Ok(Err(refusal)),
        Err(Halt::Fault(fault)) => Err(fault),
    }
}

/// A commit of one event takes a shorter way, where everything stands as its sender believes. Where it does not, nothing is
/// written, and the shared logic finds out why and says so.
fn commit_one(rows: &mut SqliteRows<'_>, commit: &Commit, limits: &Limits) -> Result<Committed, Halt<CommitError>> {
    if let Some(event) = commit.plain_event()
        && limits.check_events(1).is_ok()
        && limits.check_event(event).is_ok()
        && rows.advance(&commit.run, commit.fence, commit.expected, event)?
    {
        return Ok(Committed { next: commit.expected.next(), delivered: Vec::new(), now: rows.now() });
    }
    logic::commit::commit(rows, commit, limits)
}

impl Store for SqliteStore {
    fn sql(&self, question: SqlQuestion) -> BoxFuture<'_, Result<SqlAnswer, StoreError>> {
        Box::pin(self.ask(question))
    }

    fn register(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(self.note(move |rows| claim::register(rows, &node, lease)))
    }

    fn renew(&self, lease: LeaseId, duration: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(self.note(move |rows| claim::renew(rows, lease, duration)))
    }

    fn retire(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.note(move |rows| claim::retire(rows, lease)))
    }

    fn leases(&self) -> BoxFuture<'_, Result<Vec<Lease>, StoreError>> {
        let clock = self.clock.clone();
        Box::pin(self.read(move |query| query.leases(clock.now())))
    }

    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        Box::pin(self.batch(Lasting::Forever, runs, |rows, new, limits| logic::create::create(rows, new, limits)))
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        Box::pin(self.note(move |rows| claim::claim(rows, &claim)))
    }

    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        Box::pin(self.read(move |query| query.wakes(lease, limit)))
    }

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<bool, StoreError>>> {
        Box::pin(self.batch(Lasting::Process, runs, |rows, take, _| logic::claim::take(rows, take)))
    }

    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>> {
        Box::pin(async move {
            let count = loads.len();
            let loaded = self.read(move |query| Ok(query.load_all(&loads)));
            loaded.await.unwrap_or_else(|error| repeat(&error, count))
        })
    }

    fn commit(&self, commits: Vec<Commit>) -> BoxFuture<'_, Vec<Result<Committed, CommitError>>> {
        Box::pin(async move {
            let (count, limits) = (commits.len(), self.limits.clone());
            let writer = match self.writer() {
                Ok(writer) => writer,
                Err(error) => return repeat(&CommitError::NotApplied(error), count),
            };
            let work = move |rows: &mut SqliteRows<'_>| {
                commits.iter().map(|commit| answer(commit_one(rows, commit, &limits))).collect()
            };
            writer
                .run(Lasting::Forever, work)
                .await
                .unwrap_or_else(|error| repeat(&CommitError::NotApplied(error), count))
        })
    }

    fn commit_here(&self, commits: &[Commit]) -> Option<Vec<Result<Committed, CommitError>>> {
        let (writer, _) = self.queues.as_ref()?;
        let done = writer
            .here(|rows| commits.iter().map(|commit| answer(commit_one(rows, commit, &self.limits))).collect())?;
        Some(done.unwrap_or_else(|error| repeat(&CommitError::NotApplied(error), commits.len())))
    }

    fn create_here(&self, runs: &[NewRun]) -> Option<Vec<Result<Created, StoreError>>> {
        let (writer, _) = self.queues.as_ref()?;
        let create = |rows: &mut SqliteRows<'_>, new| answer(logic::create::create(rows, new, &self.limits));
        let done = writer.here(|rows| runs.iter().map(|new| create(rows, new)).collect())?;
        Some(done.unwrap_or_else(|error| repeat(&error, runs.len())))
    }

    fn load_here(&self, loads: &[Load]) -> Option<Vec<Result<Loaded, StoreError>>> {
        let mut here = self.here.try_lock().ok()?;
        let (connection, names) = here.as_mut()?;
        let loaded = readers::in_one_state(connection, names, |connection, names| {
            Ok(Query { connection, names }.load_all(loads))
        });
        Some(loaded.unwrap_or_else(|error| repeat(&error, loads.len())))
    }

    fn transact(&self, transact: Transact) -> BoxFuture<'_, Result<Transacted, CommitError>> {
        let job = transact::Job::new(transact, Arc::clone(&self.limits), Arc::clone(&self.guard));
        Box::pin(async move {
            let (writer, running) = (self.writer()?, job.clone());
            job.ended(writer.run_guest(move |rows| running.run(rows)).await)
        })
    }

    fn resolve(&self, _txn: TxnId) -> BoxFuture<'_, Result<Resolution, StoreError>> {
        // No reply is lost between two threads of one process, so nobody holds a transaction of this store's.
        Box::pin(async { Ok(Resolution::NotApplied) })
    }

    fn release(&self, runs: Vec<Release>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        Box::pin(self.batch(Lasting::Process, runs, |rows, release, _| logic::claim::release(rows, release)))
    }

    fn unpark(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.write(move |rows| logic::claim::unpark(rows, &run)))
    }

    fn announce(&self, serves: Vec<(WorkflowName, Version)>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.write(move |rows| serve::announce(rows, &serves)))
    }

    fn park_unserved(&self, grace: Duration, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        Box::pin(self.write(move |rows| serve::park_unserved(rows, grace, limit)))
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Delivered, StoreError>>> {
        Box::pin(self.batch(Lasting::Forever, deliveries, |rows, delivery, limits| {
            logic::deliver::deliver(rows, delivery, limits)
        }))
    }

    fn deliver_and_claim(&self, deliveries: Vec<Delivery>, claim: Claim) -> BoxFuture<'_, DeliveredAndClaimed> {
        Box::pin(async move {
            let (count, limits) = (deliveries.len(), self.limits.clone());
            let work = move |rows: &mut SqliteRows<'_>| claim::deliver_and_claim(rows, &deliveries, &claim, &limits);
            let done = match self.writer() {
                Ok(writer) => writer.run(Lasting::Forever, work).await,
                Err(error) => Err(error),
            };
            done.unwrap_or_else(|error| neither(error, count))
        })
    }

    fn deliver_and_claim_here(&self, deliveries: &[Delivery], claim: &Claim) -> Option<DeliveredAndClaimed> {
        let (writer, _) = self.queues.as_ref()?;
        let done = writer.here(|rows| claim::deliver_and_claim(rows, deliveries, claim, &self.limits))?;
        Some(done.unwrap_or_else(|error| neither(error, deliveries.len())))
    }

    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        Box::pin(self.batch(Lasting::Forever, tasks, |rows, task, limits| logic::task::enqueue(rows, task, limits)))
    }

    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>> {
        Box::pin(self.write(move |rows| claim::claim_tasks(rows, &claim)))
    }

    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>> {
        let limits = self.limits.clone();
        Box::pin(self.note(move |rows| logic::task::heartbeat(rows, &heartbeat, &limits)))
    }

    fn task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<TaskDetail, StoreError>> {
        Box::pin(self.read(move |query| query.task(&namespace, &id)))
    }

    fn tasks(&self, filter: TaskFilter) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        Box::pin(self.read(move |query| query.tasks(&filter)))
    }

    fn retry_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.write(move |rows| logic::task::retry(rows, &namespace, &id)))
    }

    fn discard_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.write(move |rows| logic::task::discard(rows, &namespace, &id)))
    }

    fn see_worker(&self, sighting: Sighting) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.note(move |rows| workers::see(rows, &sighting)))
    }

    fn forget_worker(&self, namespace: Option<Namespace>, worker: WorkerId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.note(move |rows| workers::forget_one(rows, namespace.as_ref(), &worker)))
    }

    fn workers(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<WorkerView>, StoreError>> {
        Box::pin(self.read(move |query| query.workers(&namespace)))
    }

    fn reply(&self, reply: KeyedReply) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        Box::pin(self.write(move |rows| workers::reply(rows, &reply)))
    }

    fn define(&self, definitions: Vec<Definition>) -> BoxFuture<'_, Vec<Result<Defined, StoreError>>> {
        Box::pin(self.batch(Lasting::Forever, definitions, definitions::define))
    }

    fn definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Option<Version>,
    ) -> BoxFuture<'_, Result<Option<DefinitionDetail>, StoreError>> {
        Box::pin(self.read(move |query| query.definition(&namespace, &workflow, version.as_ref())))
    }

    fn definitions(&self, filter: DefinitionFilter) -> BoxFuture<'_, Result<DefinitionPage, StoreError>> {
        Box::pin(self.read(move |query| query.definitions(&filter)))
    }

    fn forget_definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Version,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.write(move |rows| definitions::forget(rows, &namespace, &workflow, &version)))
    }

    fn wake(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.write(move |rows| logic::worker::wake(rows, &run)))
    }

    fn resumes(
        &self,
        namespace: Namespace,
        after: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Resume>, StoreError>> {
        Box::pin(self.read(move |query| query.resumes(&namespace, after.as_ref(), limit)))
    }

    fn outlook(&self, queues: Vec<QueueName>) -> BoxFuture<'_, Result<Outlook, StoreError>> {
        let clock = self.clock.clone();
        Box::pin(self.read(move |query| query.outlook(clock.now(), &queues)))
    }

    fn depths(&self) -> BoxFuture<'_, Result<Depths, StoreError>> {
        let clock = self.clock.clone();
        Box::pin(self.read(move |query| query.depths(clock.now())))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(self.note(move |rows| claim::sweep(rows, limit)))
    }

    fn admit(&self, limit: usize) -> BoxFuture<'_, Result<Admitted, StoreError>> {
        Box::pin(self.write(move |rows| logic::admit::admit(rows, limit)))
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        let limits = self.limits.clone();
        Box::pin(self.write(move |rows| logic::schedule::put(rows, &schedule, &limits)))
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.write(move |rows| {
            let ns = rows.names.number(rows.connection, &namespace).map_err(Fault::from)?.unwrap_or(0);
            Ok(rows.execute("DELETE FROM schedule WHERE ns = ?1 AND id = ?2", params![ns, id.as_str()])? > 0)
        }))
    }

    fn schedules(
        &self,
        namespace: Namespace,
        only: Option<ScheduleId>,
    ) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        Box::pin(self.read(move |query| query.schedules(&namespace, only.as_ref())))
    }

    fn due_schedules(&self, after: Option<DueCursor>, limit: usize) -> BoxFuture<'_, Result<DueSchedules, StoreError>> {
        let clock = self.clock.clone();
        Box::pin(self.read(move |query| query.due_schedules(clock.now(), after.as_ref(), limit)))
    }

    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>> {
        let limits = self.limits.clone();
        Box::pin(self.write(move |rows| logic::schedule::fire(rows, &fire, &limits)))
    }

    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.write(move |rows| {
            Ok(rows.execute("INSERT OR IGNORE INTO namespace (name) VALUES (?1)", [namespace.as_str()])? > 0)
        }))
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>> {
        Box::pin(self.read(|query| query.namespaces()))
    }

    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>> {
        Box::pin(self.read(|query| query.secret()))
    }

    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>> {
        Box::pin(self.read(move |query| query.get(&run)))
    }

    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(self.read(move |query| query.list(&filter)))
    }

    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>> {
        Box::pin(self.read(move |query| query.count(&namespace)))
    }

    fn held(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Held>, StoreError>> {
        Box::pin(self.write(move |rows| logic::admit::held_view(rows, &run)))
    }

    fn awaiting(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<Awaited>, StoreError>> {
        Box::pin(self.read(move |query| query.awaiting(&run)))
    }

    fn excerpt(&self, excerpt: Excerpt) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(self.read(move |query| query.excerpt(&excerpt)))
    }

    fn attributes(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        Box::pin(self.read(move |query| query.attributes(&run)))
    }

    fn delete(&self, run: RunKey, reason: String) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.limits.check_text(logic::DELETION, &reason)?;
            self.write(move |rows| retention::delete(rows, &run, &reason)).await
        })
    }

    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>> {
        Box::pin(self.write(move |rows| Ok(retention::retain(rows, retention)?)))
    }
}

#[cfg(test)]
mod tests;
