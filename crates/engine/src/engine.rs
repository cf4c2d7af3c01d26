//! The engine: how it is built, started and stopped.

mod options;

#[cfg(feature = "sqlite")]
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
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
use crate::code::{Ctx, Steps, Workflow};
use crate::drive::Settings;
use crate::driver::{Command, Driver, Setup};
use crate::host::{Host, Threads, Time};
use crate::meters::Gauged;
use crate::node::{Drivers, Node, Stage};
use crate::registry::Registry;
use crate::schedule::Changes;
use crate::text::Text;
use crate::token::Secret;
use crate::worker::{Handler, Handlers, Refused, Seen, TaskContext, Worker, resume};
use options::Options;

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
    /// Workflows that are text.
    texts: Vec<Text>,
    handlers: Handlers,
    /// What the `step` nodes of flows can have run.
    pub(crate) steps: Steps,
    /// What was wrong with a registration; said at the start.
    pub(crate) refused: Option<EngineError>,
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
            texts: Vec::new(),
            handlers: Handlers::default(),
            steps: Steps::default(),
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

    /// Registers the workflows of a text.
    #[cfg_attr(
        not(any(feature = "script", feature = "flow")),
        expect(dead_code, reason = "no style that is text is enabled")
    )]
    pub(crate) fn text(mut self, text: Result<Text, EngineError>) -> Outlast {
        let added = text.and_then(|text| match text.workflows().iter().find(|name| self.registry.has(name)) {
            Some(name) => Err(EngineError::DuplicateWorkflow(name.to_string())),
            None => Ok(text),
        });
        match added {
            Ok(text) => {
                text.register(&self.registry);
                self.texts.push(text);
            }
            Err(error) => {
                self.refused.get_or_insert(error);
            }
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
        if let Err(refused) = add(&mut self.handlers, handler) {
            self.refused.get_or_insert(refused);
        }
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
        let (store, _) = open(place, &options).await?;
        registry.learn(&*store).await?;
        let secret = Secret::new(store.secret().await?);
        let checker = Checker::new(Arc::new(registry), options.limits, Some(secret));
        checker.check_live(&*store, options.namespace).await
    }

    /// Opens the store and starts to drive.
    pub async fn start(self) -> Result<Engine, EngineError> {
        let Outlast { place, mut registry, texts, handlers, steps, refused, options } = self;
        if let Some(error) = refused {
            return Err(error);
        }
        let host = match options.host.clone() {
            Some(host) => host,
            None => Arc::new(Threads::new(Handle::try_current().map_err(|_| EngineError::NoRuntime)?)),
        };
        let (store, sole) = open(place, &options).await?;
        let options = Options { sole: sole || options.sole, ..options };
        if !options.sole {
            registry.leave_to_others(steps.names().map(str::to_owned).collect());
        }
        for text in &texts {
            text.define(&*store, &options.namespace, &registry).await?;
        }
        registry.learn(&*store).await?;
        texts.iter().for_each(|text| text.tell_lacks(&registry));
        launch(store, registry, (handlers, steps), options, host).await
    }
}

fn add(handlers: &mut Handlers, handler: Handler) -> Result<(), EngineError> {
    if resume::is_reserved(handler.name()) {
        return Err(EngineError::Invalid(resume::refusal(handler.name())));
    }
    handlers.add(handler).map_err(|refused| match refused {
        Refused::Name(error) => EngineError::Invalid(error.to_string()),
        Refused::Taken(name) => EngineError::DuplicateHandler(name.to_string()),
    })
}

/// The store, and whether nobody else can have it.
async fn open(place: Place, options: &Options) -> Result<(Arc<dyn Store>, bool), EngineError> {
    let limits = &options.limits;
    let store: Arc<dyn Store> = match place {
        Place::Memory => return Ok((Arc::new(MemoryStore::new(Clock::System, limits.clone())), true)),
        #[cfg(feature = "sqlite")]
        Place::Sqlite(path) => {
            let options = outlast_store::SqliteOptions { limits: limits.clone(), ..Default::default() };
            // A file belongs to one process, and this store to one engine.
            return Ok((Arc::new(outlast_store::SqliteStore::open(path, options).await?), true));
        }
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => {
            let options =
                outlast_store::PostgresOptions { limits: limits.clone(), notify: options.hints, ..Default::default() };
            Arc::new(outlast_store::PostgresStore::connect(&url, options).await?)
        }
        Place::Store(store) => store,
    };
    Ok((store, false))
}

/// How long a node holds its lease that nobody could take over: whoever opens the file next ends it.
const LEASE_OF_SOLE_NODE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long a node rests that nobody else could have left work for.
const REST_OF_SOLE_NODE: Duration = Duration::from_secs(300);

async fn launch(
    store: Arc<dyn Store>,
    registry: Registry,
    (handlers, steps): (Handlers, Steps),
    options: Options,
    host: Arc<dyn Host>,
) -> Result<Engine, EngineError> {
    let time = Arc::new(Time::new(Arc::clone(&host)));
    let (registry, board) = (Arc::new(registry), Arc::new(Board::on(Arc::clone(&host))));
    let secret = Arc::new(Secret::new(store.secret().await?));
    let (known, callbacks) = (Arc::clone(&registry), Arc::clone(&secret));
    let settings = Arc::new(Settings {
        limits: options.limits.clone(),
        newest: Box::new(move |namespace, workflow| known.newest(namespace, workflow)),
        token: Box::new(move |run, generation, key| callbacks.token(run, generation, key)),
        refuse_shared_names: options.refuse_shared_names,
        snapshot_after: options.snapshot_after,
        steps: Arc::new(steps),
    });
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..options.drivers).map(|_| mpsc::unbounded_channel::<Command>()).unzip();
    let drivers = Drivers::new(senders);
    let (stage, stages) = watch::channel(Stage::Running);
    let schedules = Arc::new(Changes::default());
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
        schedules: Arc::clone(&schedules),
        lease: if options.sole { LEASE_OF_SOLE_NODE } else { options.lease },
        poll: options.poll,
        rest: if options.sole { options.poll.max(REST_OF_SOLE_NODE) } else { options.poll },
        sole: options.sole,
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
    let offered = (options.looping && !handlers.is_empty()).then(|| watch::Sender::new(Arc::new(handlers)));
    let worker = offered.as_ref().map(|offered| Worker {
        id: node.worker_id(),
        node: node.clone(),
        store: Arc::clone(&store),
        time: Arc::clone(&time),
        board: Arc::clone(&board),
        handlers: Arc::clone(&offered.borrow()),
        offered: offered.subscribe(),
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
    if let Some(hints) = store.hints().filter(|_| options.looping) {
        host.spawn(Box::pin(listen(hints, Arc::downgrade(&board), node.stage.clone())));
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
        namespace: options.namespace,
        inner: Arc::new(Inner {
            open: RwLock::new(Some(Open { store, node: Arc::new(node) })),
            time,
            board,
            registry,
            settings,
            drivers,
            schedules,
            secret,
            limits: options.limits,
            runs_max: options.runs_max,
            poll: options.poll,
            grace: options.grace,
            stage,
            stopped,
            rested,
            offered,
            next_claim: first_claim,
            gauged: Gauged::default(),
            seen: Seen::default(),
        }),
    })
}

/// Passes on what other processes hint at, until the engine stops.
async fn listen(mut hints: watch::Receiver<u64>, board: Weak<Board>, mut stage: watch::Receiver<Stage>) {
    loop {
        let hinted = std::pin::pin!(hints.changed());
        let stopped = std::pin::pin!(stage.wait_for(|stage| *stage == Stage::Stopped));
        match futures_util::future::select(hinted, stopped).await {
            futures_util::future::Either::Left((Ok(()), _)) => {}
            _ => return,
        }
        let Some(board) = board.upgrade() else { return };
        board.somebody_woken();
        board.somebody_has_tasks();
    }
}

/// A running engine, and the client of its runs. Cheap to clone; when the last clone is dropped the engine stops, and
/// whatever it was driving is taken up again later, here or elsewhere.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    /// Whose runs this client sees.
    pub(crate) namespace: Namespace,
}

pub(crate) struct Inner {
    /// None once the engine is shut down: then the file, or the connections, are free.
    open: RwLock<Option<Open>>,
    pub(crate) time: Arc<Time>,
    pub(crate) board: Arc<Board>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) drivers: Drivers,
    pub(crate) schedules: Arc<Changes>,
    pub(crate) secret: Arc<Secret>,
    pub(crate) limits: Limits,
    pub(crate) runs_max: usize,
    pub(crate) poll: Duration,
    grace: Duration,
    stage: watch::Sender<Stage>,
    stopped: watch::Receiver<bool>,
    /// Whether the worker has ended.
    rested: watch::Receiver<bool>,
    /// What the worker can do; none if there is no worker.
    offered: Option<watch::Sender<Arc<Handlers>>>,
    next_claim: AtomicU64,
    pub(crate) gauged: Gauged,
    /// Workers elsewhere.
    pub(crate) seen: Seen,
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
        let served = self.registry.can_drive(workflow, version) && self.node()?.looping;
        let lease = self.board.lease().filter(|_| served && self.board.enter(self.runs_max));
        Ok(lease.map(|lease| Owner { lease, claim: self.next_claim() }))
    }

    /// A name for the ownership of a run that is created here.
    pub(crate) fn next_claim(&self) -> outlast_core::id::ClaimId {
        outlast_core::id::ClaimId(self.next_claim.fetch_add(1, Ordering::Relaxed))
    }
}

impl Engine {
    /// Puts other handlers in the place of those this process began with, for tasks that begin from now on; what runs ends with
    /// the handler it began with. If one of them cannot be used, all stay as they were. An engine that began without any is no
    /// worker, and does not become one.
    pub fn replace_handlers(&self, handlers: Vec<Handler>) -> Result<(), EngineError> {
        let no_worker = || EngineError::Invalid("an engine that began without handlers does no tasks".to_owned());
        let offered = self.inner.offered.as_ref().ok_or_else(no_worker)?;
        let mut known = Handlers::default();
        handlers.into_iter().try_for_each(|handler| add(&mut known, handler))?;
        offered.send_replace(Arc::new(known));
        self.inner.board.somebody_has_tasks();
        Ok(())
    }

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
