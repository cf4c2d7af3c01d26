//! The engine: how it is built, started and stopped.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join;
use outlast_core::commit::Owner;
use outlast_core::id::{Namespace, NodeId, Version, WorkflowName};
use outlast_core::limits::Limits;
use outlast_store::{Clock, MemoryStore, Store};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use crate::board::Board;
use crate::check::{CheckedRun, Checker};
use crate::client::EngineError;
use crate::code::{Ctx, Workflow};
use crate::drive::Settings;
use crate::driver::{Command, Driver, Setup};
use crate::host::{Host, Threads, Time};
use crate::node::{Drivers, Node, Stage};
use crate::registry::Registry;
use crate::token::Secret;
use crate::worker::{Handler, Handlers, Refused, TaskContext, Worker};

/// Builds an [`Engine`].
///
/// ```
/// use outlast::{Ctx, Outlast};
///
/// async fn greet(ctx: Ctx, name: String) -> outlast::Result<String> {
///     ctx.step("greet", async |_| Ok(format!("Hello, {name}!"))).await
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), outlast::EngineError> {
/// let engine = Outlast::memory().workflow("greet", greet).start().await?;
/// let greeting: String = engine.start("greet", "Ada").id("greet-1").await?.result().await?;
/// assert_eq!(greeting, "Hello, Ada!");
/// engine.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing runs until `start` is awaited"]
pub struct Outlast {
    place: Place,
    registry: Registry,
    handlers: Handlers,
    /// What was wrong with a registration; said at the start.
    refused: Option<EngineError>,
    options: Options,
}

/// How long runs that have ended are kept in memory.
const MEMORY_RETENTION: Duration = Duration::from_secs(60 * 60);

/// Where runs are kept.
enum Place {
    Memory,
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(String),
    Store(Arc<dyn Store>),
}

struct Options {
    namespace: Namespace,
    node: Option<NodeId>,
    drivers: usize,
    hot_runs: usize,
    runs_max: usize,
    tasks_max: usize,
    lease: Duration,
    poll: Duration,
    grace: Duration,
    version_grace: Duration,
    retention: Option<Duration>,
    limits: Limits,
    looping: bool,
    host: Option<Arc<dyn Host>>,
    eviction: Option<u64>,
    refuse_shared_names: bool,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Options {
            namespace: Namespace::default_namespace(),
            node: None,
            drivers: cores,
            hot_runs: 1_000,
            runs_max: 10_000,
            tasks_max: 64,
            lease: Duration::from_secs(15),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(10),
            version_grace: Duration::from_secs(5 * 60),
            retention: None,
            limits: Limits::default(),
            looping: true,
            host: None,
            eviction: None,
            refuse_shared_names: false,
        }
    }
}

impl Outlast {
    /// Keeps runs in this process's memory: for tests and experiments. Nothing survives the process.
    pub fn memory() -> Outlast {
        Outlast::at(Place::Memory).retention(MEMORY_RETENTION)
    }

    /// Keeps runs in one SQLite file, which is created if it is missing and belongs to this process alone.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: impl Into<PathBuf>) -> Outlast {
        Outlast::at(Place::Sqlite(path.into()))
    }

    /// Keeps runs in PostgreSQL, which any number of processes may share.
    #[cfg(feature = "postgres")]
    pub fn postgres(url: impl Into<String>) -> Outlast {
        Outlast::at(Place::Postgres(url.into()))
    }

    /// Keeps runs in a store that is already open.
    pub fn store(store: Arc<dyn Store>) -> Outlast {
        Outlast::at(Place::Store(store))
    }

    fn at(place: Place) -> Outlast {
        Outlast {
            place,
            registry: Registry::default(),
            handlers: Handlers::default(),
            refused: None,
            options: Options::default(),
        }
    }

    /// Registers an `async fn(Ctx, Input) -> outlast::Result<Output>` under a name, as version 1.
    pub fn workflow<I, O, F, Fut>(self, name: &str, workflow: F) -> Outlast
    where
        I: serde::de::DeserializeOwned + 'static,
        O: serde::Serialize + 'static,
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = crate::Result<O>> + 'static,
    {
        self.register(Workflow::new(name, workflow))
    }

    /// Registers a workflow with its versions.
    pub fn register(mut self, workflow: Workflow) -> Outlast {
        let added = match workflow.register() {
            Ok(workflow) => {
                self.registry.add(workflow).map_err(|name| EngineError::DuplicateWorkflow(name.to_string()))
            }
            Err(error) => Err(EngineError::Invalid(error.to_string())),
        };
        if let Err(error) = added {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// Registers an `async fn(TaskContext, Args) -> outlast::Result<Output>` for the tasks of a name, from the queue `default`:
    /// this process is a worker for them.
    pub fn task<A, T, F, Fut>(self, name: &str, handler: F) -> Outlast
    where
        A: serde::de::DeserializeOwned,
        T: serde::Serialize,
        F: Fn(TaskContext, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = crate::Result<T>> + Send + 'static,
    {
        self.handler(Handler::new(name, handler))
    }

    /// Registers a handler of tasks with its options.
    pub fn handler(mut self, handler: Handler) -> Outlast {
        if let Err(refused) = self.handlers.add(handler) {
            self.refused.get_or_insert(match refused {
                Refused::Name(error) => EngineError::Invalid(error.to_string()),
                Refused::Taken(name) => EngineError::DuplicateHandler(name.to_string()),
            });
        }
        self
    }

    /// How many tasks this process does at once, at most; 64 if nobody says otherwise.
    pub fn tasks_max(mut self, tasks: usize) -> Outlast {
        self.options.tasks_max = tasks.max(1);
        self
    }

    /// The namespace this engine's clients act in.
    pub fn namespace(mut self, namespace: Namespace) -> Outlast {
        self.options.namespace = namespace;
        self
    }

    /// This node's name. Starting a node under a name ends what an earlier one of that name held: give each process of a
    /// cluster its own, and after a restart the same again.
    pub fn node(mut self, node: NodeId) -> Outlast {
        self.options.node = Some(node);
        self
    }

    /// How many threads drive runs; as many as there are cores if nobody says otherwise.
    pub fn drivers(mut self, drivers: usize) -> Outlast {
        self.options.drivers = drivers.max(1);
        self
    }

    /// How many programs of suspended runs each driver keeps in memory, so that waking them needs no replay.
    pub fn hot_runs(mut self, runs: usize) -> Outlast {
        self.options.hot_runs = runs;
        self
    }

    /// How many runs this node drives at once, at most. Others stay queued.
    pub fn runs_max(mut self, runs: usize) -> Outlast {
        self.options.runs_max = runs.max(1);
        self
    }

    /// How long this node's runs stay its own when it falls silent.
    pub fn lease(mut self, lease: Duration) -> Outlast {
        self.options.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// How often to look for what nobody gave notice of: the work of other processes, mostly.
    pub fn poll(mut self, poll: Duration) -> Outlast {
        self.options.poll = poll.max(Duration::from_millis(1));
        self
    }

    /// How long [`Engine::shutdown`] waits for step bodies that are running.
    pub fn grace(mut self, grace: Duration) -> Outlast {
        self.options.grace = grace;
        self
    }

    /// How long nobody may offer a version before runs of it that are ready are parked: as long as a deploy may take in
    /// which the last node that has it stops before the next one starts. Five minutes if nobody says otherwise.
    pub fn version_grace(mut self, grace: Duration) -> Outlast {
        self.options.version_grace = grace.max(Duration::from_secs(1));
        self
    }

    /// How long runs are kept after they ended; a run with children as long as the last of them. Then they are deleted as
    /// by [`RunHandle::delete`](crate::RunHandle::delete). A run that has not ended is never touched. For ever if nobody says
    /// otherwise; in memory, an hour.
    pub fn retention(mut self, age: Duration) -> Outlast {
        self.options.retention = Some(age);
        self
    }

    /// What is too large.
    pub fn limits(mut self, limits: Limits) -> Outlast {
        self.options.limits = limits;
        self
    }

    /// Does nothing in the background: no run is claimed, no timer fires, no lease is kept, until somebody calls
    /// [`Engine::drive_once`]. For webhooks, and for hosts that live only as long as a request.
    pub fn without_loops(mut self) -> Outlast {
        self.options.looping = false;
        self
    }

    /// Where time, chance and threads come from.
    #[cfg(feature = "testing")]
    pub(crate) fn host(mut self, host: Arc<dyn Host>) -> Outlast {
        self.options.host = Some(host);
        self
    }

    /// Evicts programs of suspended runs at random: the same ones for the same seed.
    #[cfg(feature = "testing")]
    pub(crate) fn evict_at_random(mut self, seed: u64) -> Outlast {
        self.options.eviction = Some(seed);
        self
    }

    /// Stops runs whose code uses one name at two places, instead of warning about it.
    #[cfg(feature = "testing")]
    pub(crate) fn refuse_shared_names(mut self) -> Outlast {
        self.options.refuse_shared_names = true;
        self
    }

    /// The workflows that are registered, to replay recorded journals with.
    pub fn checker(&self) -> Checker {
        Checker::new(Arc::new(self.registry.clone()), self.options.limits.clone(), None)
    }

    /// Opens the store and, instead of driving anything, replays the journal of every run of the namespace that has not
    /// ended with the workflows that are registered here: before a deploy, whether the new code goes on with the runs
    /// the old code began. The runs are only read, and other processes may drive them meanwhile. (A SQLite file belongs to
    /// one process: check a copy of it, or while nobody has it open.)
    pub async fn check_replay(self) -> Result<Vec<CheckedRun>, EngineError> {
        let Outlast { place, registry, refused, options, .. } = self;
        if let Some(error) = refused {
            return Err(error);
        }
        let store = open(place, &options.limits).await?;
        let secret = Secret::new(store.secret().await?);
        let checker = Checker::new(Arc::new(registry), options.limits, Some(secret));
        checker.check_live(&*store, options.namespace).await
    }

    /// Opens the store and starts to drive.
    pub async fn start(self) -> Result<Engine, EngineError> {
        let Outlast { place, registry, handlers, refused, options } = self;
        if let Some(error) = refused {
            return Err(error);
        }
        let host = match options.host.clone() {
            Some(host) => host,
            None => Arc::new(Threads::new(Handle::try_current().map_err(|_| EngineError::NoRuntime)?)),
        };
        let store = open(place, &options.limits).await?;
        launch(store, registry, handlers, options, host).await
    }
}

async fn open(place: Place, limits: &Limits) -> Result<Arc<dyn Store>, EngineError> {
    Ok(match place {
        Place::Memory => Arc::new(MemoryStore::new(Clock::System, limits.clone())),
        #[cfg(feature = "sqlite")]
        Place::Sqlite(path) => {
            let options = outlast_store::SqliteOptions { limits: limits.clone(), ..Default::default() };
            Arc::new(outlast_store::SqliteStore::open(path, options).await?)
        }
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => {
            let options = outlast_store::PostgresOptions { limits: limits.clone(), ..Default::default() };
            Arc::new(outlast_store::PostgresStore::connect(&url, options).await?)
        }
        Place::Store(store) => store,
    })
}

async fn launch(
    store: Arc<dyn Store>,
    registry: Registry,
    handlers: Handlers,
    options: Options,
    host: Arc<dyn Host>,
) -> Result<Engine, EngineError> {
    let time = Arc::new(Time::new(Arc::clone(&host)));
    let (registry, board) = (Arc::new(registry), Arc::new(Board::on(Arc::clone(&host))));
    let secret = Secret::new(store.secret().await?);
    let known = Arc::clone(&registry);
    let settings = Arc::new(Settings {
        limits: options.limits.clone(),
        newest: Box::new(move |workflow| known.newest(workflow)),
        token: Box::new(move |run, generation, key| secret.token(run, generation, key)),
        refuse_shared_names: options.refuse_shared_names,
    });
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..options.drivers).map(|_| mpsc::unbounded_channel::<Command>()).unzip();
    let drivers = Drivers::new(senders);
    let (stage, stages) = watch::channel(Stage::Running);
    let id = match options.node {
        Some(node) => node,
        None => NodeId::new(format!("node-{:032x}", host.random()))
            .map_err(|error| EngineError::Invalid(error.to_string()))?,
    };
    let node = Node {
        id,
        store: Arc::clone(&store),
        time: Arc::clone(&time),
        board: Arc::clone(&board),
        registry: Arc::clone(&registry),
        drivers: drivers.clone(),
        lease: options.lease,
        poll: options.poll,
        version_grace: options.version_grace,
        retention: options.retention,
        runs_max: options.runs_max,
        stage: stages,
        looping: options.looping,
        held_until: Arc::default(),
        alone: Arc::default(),
    };
    let lease = if options.looping { Some(node.register().await?) } else { None };
    for (number, commands) in receivers.into_iter().enumerate() {
        let setup = Setup {
            store: Arc::clone(&store),
            time: Arc::clone(&time),
            registry: Arc::clone(&registry),
            settings: Arc::clone(&settings),
            board: Arc::clone(&board),
            commands,
            hot_runs: options.hot_runs,
            eviction: options.eviction,
        };
        host.spawn_driver(format!("outlast-driver-{number}"), Box::new(move || Box::pin(Driver::new(setup).run())));
    }
    let worker = (options.looping && !handlers.is_empty()).then(|| Worker {
        id: node.worker_id(),
        store: Arc::clone(&store),
        time: Arc::clone(&time),
        board: Arc::clone(&board),
        handlers: Arc::new(handlers),
        limits: options.limits.clone(),
        tasks_max: options.tasks_max,
        lease: options.lease,
        poll: options.poll,
        stage: node.stage.clone(),
    });
    let (idle, rested) = watch::channel(worker.is_none());
    if let Some(worker) = worker {
        host.spawn(Box::pin(async move {
            worker.run().await;
            let _ = idle.send(true);
        }));
    }
    let (ended, stopped) = watch::channel(!options.looping);
    if let Some(lease) = lease {
        let node = node.clone();
        host.spawn(Box::pin(async move {
            node.run(lease).await;
            let _ = ended.send(true);
        }));
    }
    let first_claim = AtomicU64::new(u64::try_from(host.random() >> 66).unwrap_or(0) | (1 << 62));
    Ok(Engine {
        inner: Arc::new(Inner {
            open: RwLock::new(Some(Open { store, node: Arc::new(node) })),
            time,
            board,
            registry,
            settings,
            drivers,
            namespace: options.namespace,
            limits: options.limits,
            runs_max: options.runs_max,
            poll: options.poll,
            grace: options.grace,
            stage,
            stopped,
            rested,
            next_claim: first_claim,
        }),
    })
}

/// A running engine, and the client of its runs. Cheap to clone; when the last clone is dropped the engine stops, and
/// whatever it was driving is taken up again later, here or elsewhere.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// None once the engine is shut down: then the file, or the connections, are free.
    open: RwLock<Option<Open>>,
    pub(crate) time: Arc<Time>,
    pub(crate) board: Arc<Board>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) drivers: Drivers,
    pub(crate) namespace: Namespace,
    pub(crate) limits: Limits,
    pub(crate) runs_max: usize,
    pub(crate) poll: Duration,
    grace: Duration,
    stage: watch::Sender<Stage>,
    stopped: watch::Receiver<bool>,
    /// Whether the worker has ended.
    rested: watch::Receiver<bool>,
    next_claim: AtomicU64,
}

/// What holds the database open.
#[derive(Clone)]
struct Open {
    store: Arc<dyn Store>,
    node: Arc<Node>,
}

impl Inner {
    fn open(&self) -> Result<Open, EngineError> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(EngineError::Stopped)
    }

    /// The store, as long as the engine is not shut down.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, EngineError> {
        Ok(self.open()?.store)
    }

    /// The node, as long as the engine is not shut down.
    pub(crate) fn node(&self) -> Result<Arc<Node>, EngineError> {
        Ok(self.open()?.node)
    }

    /// The owner of a run that is about to be created, if it is driven here from the start. It is counted from now on.
    pub(crate) fn new_owner(&self, workflow: &WorkflowName, version: &Version) -> Result<Option<Owner>, EngineError> {
        let served = self.registry.knows(workflow, version) && self.node()?.looping;
        let lease = self.board.lease().filter(|_| served && self.board.enter(self.runs_max));
        Ok(lease.map(|lease| Owner { lease, claim: self.next_claim() }))
    }

    /// A name for the ownership of a run that is created here.
    pub(crate) fn next_claim(&self) -> outlast_core::id::ClaimId {
        outlast_core::id::ClaimId(self.next_claim.fetch_add(1, Ordering::Relaxed))
    }
}

impl Engine {
    /// Stops politely: claims nothing more, lets running step bodies end for a while, gives every run back, and ends the
    /// lease, so that another process can go on at once. Afterwards the database is closed, and every call says that the
    /// engine is shut down.
    pub async fn shutdown(&self) {
        let inner = &self.inner;
        let _ = inner.stage.send(Stage::Draining);
        let mut rested = inner.rested.clone();
        let mut working = rested.clone();
        let drivers = inner.drivers.ask_all(|reply| Command::Drain { reply });
        let drained = std::pin::pin!(join(drivers, working.wait_for(|rested| *rested).map(drop)));
        let host = inner.time.host();
        let patience = host.sleep_until(host.elapsed() + inner.grace);
        futures_util::future::select(drained, patience).await;
        inner.drivers.ask_all(|reply| Command::Stop { reply }).await;
        let _ = inner.stage.send(Stage::Stopped);
        let _ = rested.wait_for(|rested| *rested).await;
        let mut stopped = inner.stopped.clone();
        let _ = stopped.wait_for(|stopped| *stopped).await;
        if let Ok(node) = inner.node() {
            node.let_go().await;
        }
        inner.open.write().unwrap_or_else(PoisonError::into_inner).take();
    }
}
