//! A world of its own for a test.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::commit::Status;
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;
use outlast_store::faults::FaultStore;
use outlast_store::{Clock, Filter, MemoryStore, Store};
use tokio::runtime::Handle;

use super::executor::{Core, TaskNo, WorldHost};
use crate::engine::Outlast;
use crate::host::LocalFuture;

/// When a world begins: some day in November 2023.
const BEGIN_MS: i64 = 1_700_000_000_000;
/// How long an engine's lease lasts: after a crash another one takes over so much later.
const LEASE: Duration = Duration::from_secs(3_600);
/// How often an engine looks for what nobody gave notice of.
const POLL: Duration = Duration::from_secs(600);
/// How long nobody may offer a version before its runs park.
const VERSION_GRACE: Duration = Duration::from_secs(5 * 3_600);
/// How often time may be skipped before what the test waits for happens.
const SKIPS_MAX: u32 = 100_000;
/// How long, in real time, to wait for another thread: a store's writer, a body on a runtime.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long, in real time, a body on a runtime may do nothing before virtual time is skipped over it.
const BODY_PATIENCE: Duration = Duration::from_millis(20);

/// What becomes of the programs of suspended runs. Whatever it is, journals and outcomes are the same: a test that wants
/// to see that tells its story in all three ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Programs {
    /// They stay in memory, as an engine does it if nobody says otherwise.
    #[default]
    Kept,
    /// They are dropped: every wake replays the journal from its beginning.
    Dropped,
    /// Some are dropped, at random; the same ones for the same seed.
    Evicted {
        /// The seed.
        seed: u64,
    },
}

/// A world for a test: one thread, a seed for chance, and a clock that moves only when nothing else can happen. So a
/// workflow that sleeps for a month is tested in a moment, and a test runs the same way every time. A workflow that uses
/// one name at two places of its code, which is a warning elsewhere, parks here with the report.
pub struct World {
    core: Arc<Core>,
    tasks: RefCell<BTreeMap<TaskNo, (u64, LocalFuture)>>,
    last_task: Cell<TaskNo>,
    last_group: Cell<u64>,
    stores: RefCell<Vec<Arc<FaultStore>>>,
    programs: Programs,
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

impl World {
    /// A new world.
    pub fn new() -> World {
        World::seeded(1)
    }

    /// A new world with its own chance.
    pub fn seeded(seed: u64) -> World {
        World {
            core: Core::new(BEGIN_MS, seed),
            tasks: RefCell::default(),
            last_task: Cell::new(0),
            last_group: Cell::new(0),
            stores: RefCell::default(),
            programs: Programs::default(),
        }
    }

    /// What the engines of this world do with the programs of suspended runs.
    #[must_use]
    pub fn programs(self, programs: Programs) -> World {
        World { programs, ..self }
    }

    /// Lets step bodies use a Tokio runtime. Time is then skipped only when bodies have been quiet for a moment.
    #[must_use]
    pub fn with_runtime(self, runtime: Handle) -> World {
        self.core.set_runtime(runtime);
        self
    }

    /// The time in this world.
    pub fn now(&self) -> Timestamp {
        self.core.clock().now()
    }

    /// The clock of this world, for a store that should have the same.
    pub fn clock(&self) -> Clock {
        Clock::Manual(self.core.clock().clone())
    }

    /// An engine with a store of its own, in memory.
    pub fn engine(&self) -> Outlast {
        self.engine_on(Arc::new(MemoryStore::new(self.clock(), Limits::default())))
    }

    /// An engine on a store with this world's [`World::clock`]. Several engines may share one.
    pub fn engine_on(&self, store: Arc<dyn Store>) -> Outlast {
        self.engine_behind(Arc::new(FaultStore::counting(store))).0
    }

    /// An engine behind faults, and the group of its tasks.
    pub(crate) fn engine_behind(&self, store: Arc<FaultStore>) -> (Outlast, u64) {
        self.stores.borrow_mut().push(Arc::clone(&store));
        let group = self.last_group.get() + 1;
        self.last_group.set(group);
        let host = Arc::new(WorldHost { core: Arc::clone(&self.core), group });
        // Long ones, so that a month of sleep is not a million renewals.
        let engine = Outlast::store(store).host(host).drivers(1).lease(LEASE).poll(POLL);
        let engine = engine.version_grace(VERSION_GRACE).refuse_shared_names();
        let engine = match self.programs {
            Programs::Kept => engine,
            Programs::Dropped => engine.hot_runs(0),
            Programs::Evicted { seed } => engine.evict_at_random(seed),
        };
        (engine, group)
    }

    /// Ends an engine as a crash would: its memory and everything under way are gone.
    pub(crate) fn kill(&self, group: u64) {
        let killed: Vec<TaskNo> =
            self.tasks.borrow().iter().filter(|(_, (of, _))| *of == group).map(|(task, _)| *task).collect();
        for task in killed {
            let future = self.tasks.borrow_mut().remove(&task);
            drop(future);
        }
    }

    /// Runs a future and everything that belongs to this world, until the future is ready.
    ///
    /// # Panics
    ///
    /// If nothing can happen any more and the future is not ready, or if time goes by and nothing else happens: it waits for
    /// something nobody will do.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut main = pin!(future);
        let mut skips = 0;
        self.core.wake(0);
        loop {
            self.welcome();
            match self.core.next_ready() {
                Some(0) => {
                    let waker = self.core.waker(0);
                    if let Poll::Ready(value) = main.as_mut().poll(&mut Context::from_waker(&waker)) {
                        return value;
                    }
                }
                Some(task) => self.poll(task),
                None => {
                    skips += u32::from(self.idle());
                    assert!(
                        skips < SKIPS_MAX,
                        "time goes by, and what the test waits for does not happen{}",
                        self.parked()
                    );
                }
            }
        }
    }

    /// Takes in tasks that were spawned.
    fn welcome(&self) {
        for (group, birth) in self.core.take_incoming() {
            let task = self.last_task.get() + 1;
            self.last_task.set(task);
            let future = birth.future();
            self.tasks.borrow_mut().insert(task, (group, future));
            self.core.wake(task);
        }
    }

    fn poll(&self, task: TaskNo) {
        // Out of the table while it runs: it may spawn others.
        let Some((group, mut future)) = self.tasks.borrow_mut().remove(&task) else { return };
        let waker = self.core.waker(task);
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.borrow_mut().insert(task, (group, future));
        }
    }

    /// Nothing is ready: somebody outside is still at it, or time moves on. Whether it did.
    fn idle(&self) -> bool {
        if self.stores.borrow().iter().any(|store| store.under_way() > 0) {
            assert!(self.core.wait(PATIENCE), "a call to the store has not been answered for {PATIENCE:?}");
            return false;
        }
        if self.core.has_runtime() && self.core.wait(BODY_PATIENCE) {
            return false;
        }
        assert!(self.core.skip(), "nothing can happen any more, and what the test waits for has not{}", self.parked());
        true
    }

    /// Runs that are parked, and why, for somebody who waits for one of them.
    fn parked(&self) -> String {
        let mut found = BTreeSet::new();
        for store in self.stores.borrow().iter() {
            for namespace in store.namespaces().now_or_never().and_then(Result::ok).unwrap_or_default() {
                let filter = Filter { status: vec![Status::Parked], ..Filter::all(namespace) };
                let page = store.list(filter).now_or_never().and_then(Result::ok);
                let parked = page.into_iter().flat_map(|page| page.runs);
                found.extend(parked.map(|view| format!("\n{} is parked: {}", view.run, view.note.unwrap_or_default())));
            }
        }
        found.into_iter().collect()
    }
}
