//! One telling of a story: processes that are kept alive, a client, and what happens to them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};
use outlast_core::commit::Status;
use outlast_core::time::Timestamp;
use outlast_store::faults::{Latency, Wakes};
use outlast_store::{Excerpt, Filter, Store, StoreError};

use super::mishap::{Mishap, What};
use super::pace::Pace;
use crate::engine::{Engine, Outlast};
use crate::testing::{Process, Programs, World};

/// How long a call to the store takes at most, when nothing is wrong: long enough for something to happen meanwhile.
const CALL: Duration = Duration::from_millis(20);
/// How long nobody may offer a version before its runs park, in leases: longer than any fault takes.
const VERSION_GRACE_LEASES: u32 = 50;
/// Events read at once.
const EXCERPT: usize = 1_000;

/// How a story ended, and what was seen on the way.
pub(super) struct Told<T> {
    pub(super) ended: Option<T>,
    /// When something was recorded.
    pub(super) moments: Vec<Duration>,
    faults: BTreeMap<&'static str, u64>,
    /// Why it did not end, as far as it can be told.
    left: String,
}

impl<T> Told<T> {
    /// The kinds of faults that happened, each as often as it did.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.faults.iter().map(|(kind, times)| (*kind, *times))
    }

    pub(super) fn left(&self) -> &str {
        if self.ended.is_some() { "" } else { &self.left }
    }
}

/// Tells a story once.
pub(super) fn tell<T>(
    seed: u64,
    processes: usize,
    mishaps: &[Mishap],
    pace: &Pace,
    register: &impl Fn(Outlast) -> Outlast,
    client: &impl AsyncFn(Engine) -> Option<T>,
) -> Told<T> {
    // It ends when its patience does.
    let world = World::seeded(seed).shuffled().programs(programs(seed)).skips_max(u32::MAX);
    let store = world.store();
    let (begin, front) = (world.now(), world.process(Arc::clone(&store)));
    let slots: Vec<Slot> = (0..processes).map(|_| Slot::new(&world, &store, seed)).collect();
    let stage = Stage { world: &world, store: &store, slots, pace, register, seed, faults: RefCell::default() };
    world.block_on(async {
        let play = pin!(async {
            let engine = register(front.engine().poll(pace.poll)).without_loops().start().await.ok()?;
            client(engine).await
        });
        let others = pin!(join(
            join_all(stage.slots.iter().map(|slot| stage.keep(slot))),
            join_all(mishaps.iter().map(|mishap| stage.happen(mishap))),
        ));
        let patience = world.sleep(pace.patience());
        let (ended, mut left) = match select(play, select(others, patience)).await {
            Either::Left((ended, _)) => (ended, "; the client gave up".to_owned()),
            Either::Right(_) => (None, format!("; it has not ended after {:?}", pace.patience())),
        };
        let seen = Seen::look(&*store, begin).await.unwrap_or_default();
        left.push_str(&seen.parked);
        Told { ended, moments: seen.moments, faults: stage.happened(), left }
    })
}

/// What becomes of programs with a seed.
fn programs(seed: u64) -> Programs {
    match seed % 3 {
        0 => Programs::Kept,
        1 => Programs::Dropped,
        _ => Programs::Evicted { seed },
    }
}

/// The same, in words.
pub(super) fn fate(seed: u64) -> &'static str {
    match programs(seed) {
        Programs::Kept => "programs are kept in memory while they wait",
        Programs::Dropped => "programs are dropped whenever they wait",
        Programs::Evicted { .. } => "programs are dropped at random while they wait",
    }
}

/// Where a process is, or will be when it comes back.
struct Slot {
    process: RefCell<Process>,
    engine: RefCell<Option<Engine>>,
    /// How long it stays away when it crashes.
    back: Cell<Duration>,
    /// What became of the calls of those that were here before.
    landed: RefCell<Vec<BTreeMap<&'static str, u64>>>,
}

impl Slot {
    fn new(world: &World, store: &Arc<dyn Store>, seed: u64) -> Slot {
        let process = RefCell::new(process(world, store, seed));
        Slot { process, engine: RefCell::default(), back: Cell::default(), landed: RefCell::default() }
    }

    fn process(&self) -> Process {
        self.process.borrow().clone()
    }
}

fn process(world: &World, store: &Arc<dyn Store>, seed: u64) -> Process {
    let process = world.process(Arc::clone(store));
    process.faults().set_latency(Some(Latency { seed, max: CALL }));
    process
}

struct Stage<'s, R> {
    world: &'s World,
    store: &'s Arc<dyn Store>,
    slots: Vec<Slot>,
    pace: &'s Pace,
    register: &'s R,
    seed: u64,
    faults: RefCell<BTreeMap<&'static str, u64>>,
}

impl<R: Fn(Outlast) -> Outlast> Stage<'_, R> {
    /// Keeps a process going: when it crashes, another one comes after a while.
    async fn keep(&self, slot: &Slot) {
        loop {
            let process = slot.process();
            self.start(slot, &process).await;
            while !process.has_crashed() {
                self.world.sleep(self.pace.poll).await;
            }
            process.crash();
            slot.landed.borrow_mut().push(process.faults().landed_by_kind());
            drop(slot.engine.take());
            self.world.sleep(slot.back.replace(self.pace.poll)).await;
            slot.process.replace(self::process(self.world, self.store, self.seed));
        }
    }

    async fn start(&self, slot: &Slot, process: &Process) {
        while !process.has_crashed() {
            let engine = process.engine().lease(self.pace.lease).poll(self.pace.poll);
            let engine = engine.version_grace(self.pace.lease * VERSION_GRACE_LEASES);
            match (self.register)(engine).start().await {
                Ok(engine) => {
                    slot.engine.replace(Some(engine));
                    return;
                }
                // It cannot reach the store now.
                Err(_) => self.world.sleep(self.pace.poll).await,
            }
        }
    }

    /// Lets something happen, when it is time, and makes it good again.
    async fn happen(&self, mishap: &Mishap) {
        self.world.sleep(mishap.at).await;
        let Some(slot) = self.slots.get(mishap.process) else { return };
        let process = slot.process();
        if process.has_crashed() {
            return;
        }
        let faults = process.faults();
        if !matches!(mishap.what, What::Call { .. }) {
            *self.faults.borrow_mut().entry(mishap.what.kind()).or_default() += 1;
        }
        match mishap.what {
            What::Crash { back } => {
                slot.back.set(back);
                process.crash();
            }
            What::Freeze { long } => {
                process.freeze();
                self.world.sleep(long).await;
                process.thaw();
            }
            What::Call { n, commits: true, fault } => faults.plan_next_of("commit", n, fault),
            What::Call { n, commits: false, fault } => faults.plan_next(n, fault),
            What::Deaf { long } => {
                process.deaf(true);
                faults.set_wakes(Wakes::Lost);
                self.world.sleep(long).await;
                process.deaf(false);
                faults.set_wakes(Wakes::Heard);
            }
            What::Slow { long, max, seed } => {
                faults.set_latency(Some(Latency { seed, max }));
                self.world.sleep(long).await;
                faults.set_latency(Some(Latency { seed: self.seed, max: CALL }));
            }
            What::Cut { long } => {
                faults.set_cut(true);
                self.world.sleep(long).await;
                faults.set_cut(false);
            }
            What::Full { long } => {
                faults.set_full(true);
                self.world.sleep(long).await;
                faults.set_full(false);
            }
            What::Drift { long, per_mille } => {
                process.drift(per_mille);
                self.world.sleep(long).await;
                process.drift(0);
            }
            What::Jump { forward, by } => self.world.jump(forward, by),
        }
    }

    /// The faults that happened: those that were planned for a call only if it was made.
    fn happened(&self) -> BTreeMap<&'static str, u64> {
        let mut happened = self.faults.borrow().clone();
        let planned =
            ["not_applied", "in_doubt", "applied_then_error", "applied_then_crash", "not_applied_then_crash", "hang"];
        for slot in &self.slots {
            let mut landed = slot.landed.borrow().clone();
            landed.push(slot.process().faults().landed_by_kind());
            let calls = landed.into_iter().flatten().filter(|(kind, _)| planned.contains(kind));
            calls.for_each(|(kind, times)| *happened.entry(kind).or_default() += times);
        }
        happened
    }
}

/// What is in the store when the story is over.
#[derive(Default)]
struct Seen {
    moments: Vec<Duration>,
    parked: String,
}

impl Seen {
    async fn look(store: &dyn Store, begin: Timestamp) -> Result<Seen, StoreError> {
        let mut seen = Seen::default();
        for namespace in store.namespaces().await? {
            let page = store.list(Filter::all(namespace)).await?;
            for view in page.runs {
                if view.status == Status::Parked {
                    let note = view.note.unwrap_or_default();
                    let _ = write!(seen.parked, "\n{} is parked: {note}", view.run);
                }
                let excerpt = Excerpt { run: view.run, generation: None, from: Default::default(), limit: EXCERPT };
                let records = store.excerpt(excerpt).await?;
                let since = |at: Timestamp| u64::try_from(at.as_millis() - begin.as_millis()).unwrap_or(0);
                let moments = records.iter().map(|record| Duration::from_millis(since(record.at)));
                seen.moments.extend(moments.chain([Duration::from_millis(since(view.created_at))]));
            }
        }
        Ok(seen)
    }
}
