//! A world of its own for a test.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::Rc;
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

use super::executor::{Core, TaskNo, WorldHost, wait_for};
use super::own::Own;
use super::process::Process;
use super::time::WorldTime;
use crate::doctor::examine_all;
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
///
/// A clone is another handle to the same world, for what runs in it; the world ends, with everything in it, when the first
/// handle is dropped.
pub struct World {
    pub(super) inner: Rc<Inner>,
    /// Whether the world ends with this handle: what runs in the world may hold others.
    is_first: bool,
}

/// What all handles of a world share.
pub(super) struct Inner {
    pub(super) core: Arc<Core>,
    tasks: RefCell<BTreeMap<TaskNo, (Arc<Own>, LocalFuture)>>,
    last_task: Cell<TaskNo>,
    last_process: Cell<u64>,
    /// What runs in the world and in no process of it.
    nobody: Arc<Own>,
    stores: RefCell<Vec<(Arc<Own>, Arc<FaultStore>)>>,
    programs: Cell<Programs>,
    skips_max: Cell<u32>,
    /// No doctor comes when a story ends.
    unexamined: Cell<bool>,
    seed: u64,
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

impl Clone for World {
    fn clone(&self) -> Self {
        World { inner: Rc::clone(&self.inner), is_first: false }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.is_first {
            self.inner.end();
        }
    }
}

impl World {
    /// A new world.
    pub fn new() -> World {
        World::seeded(1)
    }

    /// A new world with its own chance.
    pub fn seeded(seed: u64) -> World {
        let inner = Inner {
            core: Core::new(BEGIN_MS, seed),
            tasks: RefCell::default(),
            last_task: Cell::new(0),
            last_process: Cell::new(0),
            nobody: Arc::default(),
            stores: RefCell::default(),
            programs: Cell::default(),
            skips_max: Cell::new(SKIPS_MAX),
            unexamined: Cell::new(false),
            seed,
        };
        World { inner: Rc::new(inner), is_first: true }
    }

    /// Tasks that are ready run in an order drawn from the seed, not in the order they were woken.
    #[must_use]
    pub fn shuffled(self) -> World {
        // Another chance than that of the engines: what they draw does not depend on who goes first.
        self.inner.core.shuffle(!self.inner.seed);
        self
    }

    /// How often [`World::block_on`] skips time before it takes it that what it waits for never happens; 100,000 times if
    /// nobody says otherwise. A long story with short leases needs more.
    #[must_use]
    pub fn skips_max(self, skips: u32) -> World {
        self.inner.skips_max.set(skips);
        self
    }

    /// Lets a story end in disorder: nobody looks whether something will still wake every run that is left. For a story that
    /// damages a store, or looks for itself.
    #[must_use]
    pub fn unexamined(self) -> World {
        self.inner.unexamined.set(true);
        self
    }

    /// What the engines of this world do with the programs of suspended runs.
    #[must_use]
    pub fn programs(self, programs: Programs) -> World {
        self.inner.programs.set(programs);
        self
    }

    /// Lets step bodies use a Tokio runtime. Time is then skipped only when bodies have been quiet for a moment.
    #[must_use]
    pub fn with_runtime(self, runtime: Handle) -> World {
        self.inner.core.set_runtime(runtime);
        self
    }

    /// The time in this world, as its stores tell it.
    pub fn now(&self) -> Timestamp {
        self.inner.core.clock().now()
    }

    /// The clock of this world, for a store that should have the same.
    pub fn clock(&self) -> Clock {
        Clock::Manual(self.inner.core.clock().clone())
    }

    /// How much time has passed since this world began, whatever its clocks show.
    pub fn elapsed(&self) -> Duration {
        self.inner.core.elapsed()
    }

    /// The time of this world, for step bodies.
    pub fn time(&self) -> WorldTime {
        WorldTime { core: Arc::clone(&self.inner.core), nobody: Arc::clone(&self.inner.nobody) }
    }

    /// Completes when so much time has passed in this world.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        let until = self.elapsed().saturating_add(duration);
        self.inner.core.sleep_until(&self.inner.nobody, until)
    }

    /// Runs a future beside that of [`World::block_on`]. It belongs to no process, so that no crash ends it.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.inner.take_in(Arc::clone(&self.inner.nobody), Box::pin(future));
    }

    /// The clock of this world's stores jumps. The clocks of processes do not: they learn of it from the store's answers.
    pub fn jump(&self, forward: bool, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.inner.core.jump(if forward { millis } else { -millis });
    }

    /// A hash of what has happened so far: of which task went on when. The same seed and the same story have the same.
    pub fn trace_hash(&self) -> u64 {
        self.inner.core.trace()
    }

    /// An engine with a store of its own, in memory.
    pub fn engine(&self) -> Outlast {
        self.engine_on(self.store())
    }

    /// A store in memory, with this world's clock, for processes that share it.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(self.clock(), Limits::default()))
    }

    /// An engine on a store with this world's [`World::clock`]. Several engines may share one.
    pub fn engine_on(&self, store: Arc<dyn Store>) -> Outlast {
        self.process(store).engine()
    }

    /// A process of its own on a store with this world's [`World::clock`]: it can crash, freeze and be cut off from the
    /// store. Several processes may share one store.
    pub fn process(&self, store: Arc<dyn Store>) -> Process {
        self.process_behind(FaultStore::counting(store))
    }

    /// A process behind faults.
    pub(crate) fn process_behind(&self, faults: FaultStore) -> Process {
        let number = self.inner.last_process.get() + 1;
        self.inner.last_process.set(number);
        let own = Arc::new(Own::new(number));
        let core = Arc::clone(&self.inner.core);
        // Between a process and its store time passes, and calls are on their way, whatever becomes of the process.
        let between = Arc::new(WorldHost { core, own: Arc::clone(&self.inner.nobody) });
        let faults = Arc::new(faults.with_timer(between));
        self.inner.stores.borrow_mut().push((Arc::clone(&own), Arc::clone(&faults)));
        Process::new(&self.inner, own, faults)
    }

    /// Runs a future and everything that belongs to this world, until the future is ready. Then the doctor looks whether there is
    /// a run in any of its stores that nothing would ever move again.
    ///
    /// # Panics
    ///
    /// If nothing can happen any more and the future is not ready, or if time goes by and nothing else happens: it waits for
    /// something nobody will do. If the doctor finds something.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut main = pin!(future);
        let mut skips = 0;
        let inner = &self.inner;
        inner.core.wake(0);
        loop {
            inner.welcome();
            match inner.core.next_ready() {
                Some(0) => {
                    inner.core.note(0);
                    let waker = inner.core.waker(0);
                    if let Poll::Ready(value) = main.as_mut().poll(&mut Context::from_waker(&waker)) {
                        inner.be_examined();
                        return value;
                    }
                }
                Some(task) => inner.poll(task),
                None => {
                    skips = u32::from(inner.idle()).saturating_add(skips);
                    assert!(
                        skips < inner.skips_max.get(),
                        "time goes by, and what the test waits for does not happen{}",
                        inner.parked()
                    );
                }
            }
        }
    }
}

impl Inner {
    /// An engine of a process, as this world wants it.
    pub(super) fn engine(&self, own: &Arc<Own>, store: Arc<FaultStore>) -> Outlast {
        let host = Arc::new(WorldHost { core: Arc::clone(&self.core), own: Arc::clone(own) });
        // Long ones, so that a month of sleep is not a million renewals.
        let engine = Outlast::store(store).host(host).drivers(1).lease(LEASE).poll(POLL);
        let engine = engine.version_grace(VERSION_GRACE).refuse_shared_names();
        match self.programs.get() {
            Programs::Kept => engine,
            Programs::Dropped => engine.hot_runs(0),
            Programs::Evicted { seed } => engine.evict_at_random(seed),
        }
    }

    /// Ends a process as a crash would: its memory and everything under way are gone.
    pub(super) fn crash(&self, own: &Arc<Own>) {
        own.die();
        self.stores.borrow_mut().retain(|(of, _)| !Arc::ptr_eq(of, own));
        let dead = |(of, _): &(Arc<Own>, LocalFuture)| Arc::ptr_eq(of, own);
        let killed: Vec<TaskNo> =
            self.tasks.borrow().iter().filter(|(_, task)| dead(task)).map(|(task, _)| *task).collect();
        for task in killed {
            // What is dropped may wake or begin others.
            let future = self.tasks.borrow_mut().remove(&task);
            drop(future);
        }
    }

    /// Everything ends: tasks hold handles of their world, which would keep it.
    fn end(&self) {
        loop {
            let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
            let incoming = self.core.take_incoming();
            if tasks.is_empty() && incoming.is_empty() {
                return;
            }
            drop((tasks, incoming));
        }
    }

    /// Takes in tasks that were spawned.
    fn welcome(&self) {
        for (own, birth) in self.core.take_incoming() {
            if !own.is_dead() {
                self.take_in(own, birth.future());
            }
        }
    }

    fn take_in(&self, own: Arc<Own>, future: LocalFuture) {
        let task = self.last_task.get() + 1;
        self.last_task.set(task);
        self.tasks.borrow_mut().insert(task, (own, future));
        self.core.wake(task);
    }

    fn poll(&self, task: TaskNo) {
        // Out of the table while it runs: it may spawn others.
        let Some((own, mut future)) = self.tasks.borrow_mut().remove(&task) else { return };
        let goes_on = own.hold(task) || {
            self.core.note(task);
            let waker = self.core.waker(task);
            future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        };
        // It may have been the one that made its process crash.
        if goes_on && !own.is_dead() {
            self.tasks.borrow_mut().insert(task, (own, future));
        }
    }

    /// Nothing is ready: somebody outside is still at it, or time moves on. Whether it did.
    fn idle(&self) -> bool {
        // Who is frozen does not take an answer, however long it has been there.
        if self.stores.borrow().iter().any(|(own, store)| !own.is_frozen() && store.under_way() > 0) {
            assert!(self.core.wait(PATIENCE), "a call to the store has not been answered for {PATIENCE:?}");
            return false;
        }
        if self.core.has_runtime() && self.core.wait(BODY_PATIENCE) {
            return false;
        }
        assert!(self.core.skip(), "nothing can happen any more, and what the test waits for has not{}", self.parked());
        true
    }

    /// The doctor's visit at the end of a story. Straight to the stores: faults are for those who live here.
    fn be_examined(&self) {
        if self.unexamined.get() {
            return;
        }
        let runtime = self.core.runtime();
        let _context = runtime.as_ref().map(Handle::enter);
        for (_, store) in self.stores.borrow().iter() {
            let found = wait_for(examine_all(&*store.behind()));
            let lines: String = found.iter().map(|(run, ailment)| format!("\n{run}: {ailment}")).collect();
            assert!(found.is_empty(), "the story is over, and the doctor has found:{lines}");
        }
    }

    /// Runs that are parked, and why, for somebody who waits for one of them.
    fn parked(&self) -> String {
        let mut found = BTreeSet::new();
        for (_, store) in self.stores.borrow().iter() {
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
