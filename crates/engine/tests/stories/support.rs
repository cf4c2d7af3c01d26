//! What the stories share.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod ear;
mod left;

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use outlast::testing::{Programs, World};
use outlast::{Checker, Ctx, Engine, Outlast, Status};
use outlast_core::event::Event;
use outlast_core::id::{Namespace, RunId, RunKey};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;
use outlast_store::faults::{Fault, FaultStore, Plan, Snapshots};
use outlast_store::{Awaited, MemoryStore, SqliteOptions, SqliteStore, Store};
use tempfile::TempDir;

pub(crate) use ear::Ear;

/// Tells a story to one engine, in every way; see [`Scene::play`].
pub(crate) fn tell<T>(register: impl Fn(Outlast) -> Outlast, story: impl AsyncFn(&World, Engine) -> T) -> T {
    Scene::play(async |scene| {
        let engine = scene.engine(&register).await;
        story(&scene.world, engine).await
    })
}

/// The kinds of events in a run's journal.
pub(crate) async fn kinds(engine: &Engine, run: &str) -> Vec<&'static str> {
    let journal = engine.run(run).unwrap().journal().await.unwrap();
    journal.iter().map(|event| event.kind().name()).collect()
}

/// The journal of a run.
pub(crate) async fn journal(engine: &Engine, run: &str) -> Vec<Event> {
    engine.run(run).unwrap().journal().await.unwrap()
}

/// Where a run stands.
pub(crate) async fn status(engine: &Engine, run: &str) -> Status {
    engine.run(run).unwrap().status().await.unwrap()
}

/// Why a run is parked.
pub(crate) async fn parked(engine: &Engine, run: &str) -> String {
    let view = engine.run(run).unwrap().view().await.unwrap();
    assert_eq!(view.status, Status::Parked, "{view:?}");
    view.note.expect("a parked run says why")
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A world with one store, which several engines may share, one after the other.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) store: Arc<dyn Store>,
    /// The folder of its file, if it has one.
    _folder: Option<TempDir>,
    /// After how many events the state of a script is saved, and what becomes of it.
    snapshots: (u64, Snapshots),
    /// The code of its engines.
    code: RefCell<Vec<Checker>>,
}

impl Scene {
    /// Plays a story with programs of suspended runs kept, dropped, and evicted at random. What is in the store afterwards
    /// is the same each time, and the code can replay it. What the story returns is what it returned first.
    pub(crate) fn play<T>(story: impl AsyncFn(&Scene) -> T) -> T {
        let (told, kept) = Scene::play_once(Programs::Kept, &story);
        for programs in [Programs::Dropped, Programs::Evicted { seed: 1 }, Programs::Evicted { seed: 2 }] {
            let (_, left) = Scene::play_once(programs, &story);
            assert!(
                left == kept,
                "with programs {programs:?} the story went another way. Kept:\n{}\nThis way:\n{}",
                kept.join(""),
                left.join("")
            );
        }
        told
    }

    /// The same for scripts and flows: their states are saved seldom or with every commit, and are kept, lost, damaged, or from
    /// the future; in memory, and on a SQLite file.
    pub(crate) fn play_scripts<T>(story: impl AsyncFn(&Scene) -> T) -> T {
        let (told, kept) = Scene::play_once(Programs::Kept, &story);
        let ways = [
            (Programs::Dropped, 64, Snapshots::Kept),
            (Programs::Dropped, 0, Snapshots::Kept),
            (Programs::Evicted { seed: 1 }, 0, Snapshots::Kept),
            (Programs::Evicted { seed: 2 }, 3, Snapshots::Kept),
            (Programs::Dropped, 0, Snapshots::Lost),
            (Programs::Dropped, 0, Snapshots::Damaged),
            (Programs::Evicted { seed: 3 }, 0, Snapshots::Damaged),
            (Programs::Dropped, 0, Snapshots::Future),
        ];
        for (programs, after, snapshots) in ways {
            let scene = Scene { snapshots: (after, snapshots), ..Scene::on(World::new().programs(programs)) };
            let (_, left) = scene.tell(&story);
            assert!(
                left == kept,
                "with programs {programs:?} and snapshots {snapshots:?} after {after} events the story went another way. \
                 Kept:\n{}\nThis way:\n{}",
                kept.join(""),
                left.join("")
            );
        }
        for after in [64, 0] {
            let world = World::new().programs(Programs::Dropped);
            // What happens at one instant may have another order there, and callbacks have other tokens: so it is not compared.
            Scene { snapshots: (after, Snapshots::Kept), ..Scene::on_sqlite(world) }.tell(&story);
        }
        told
    }

    /// Plays a story that is about one of these ways, and goes another way otherwise.
    pub(crate) fn play_with<T>(programs: Programs, story: impl AsyncFn(&Scene) -> T) -> T {
        Scene::play_once(programs, story).0
    }

    /// Plays a story, and says what is left in the store.
    fn play_once<T>(programs: Programs, story: impl AsyncFn(&Scene) -> T) -> (T, Vec<String>) {
        Scene::on(World::new().programs(programs)).tell(story)
    }

    fn tell<T>(&self, story: impl AsyncFn(&Scene) -> T) -> (T, Vec<String>) {
        self.world.block_on(async {
            let told = story(self).await;
            let code = self.code.take();
            let left = left::runs(&*self.store, &code).await;
            (told, left)
        })
    }

    pub(crate) fn new() -> Scene {
        Scene::on(World::new())
    }

    fn on(world: World) -> Scene {
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        Scene { world, store, _folder: None, snapshots: (64, Snapshots::Kept), code: RefCell::default() }
    }

    /// On a SQLite file.
    fn on_sqlite(world: World) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { clock: world.clock(), ..SqliteOptions::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = runtime.block_on(SqliteStore::open(folder.path().join("story.db"), options)).unwrap();
        // Through a process of its own, so that the world waits for the disk and does not skip time meanwhile.
        let store = Arc::clone(world.process(Arc::new(store)).faults());
        Scene { store, _folder: Some(folder), ..Scene::on(world) }
    }

    /// An engine on the store.
    pub(crate) async fn engine(&self, register: impl FnOnce(Outlast) -> Outlast) -> Engine {
        let (after, snapshots) = self.snapshots;
        let engine = match snapshots {
            Snapshots::Kept => self.world.engine_on(self.store.clone()),
            _ => {
                let store = FaultStore::counting(self.store.clone());
                store.set_snapshots(snapshots);
                self.world.engine_on(Arc::new(store))
            }
        };
        let engine = register(engine.snapshot_after(after));
        self.code.borrow_mut().push(engine.checker());
        engine.start().await.unwrap()
    }

    /// Lets time pass: an engine of its own sleeps so long.
    pub(crate) async fn pass(&self, time: Duration) {
        let engine = self.world.engine().workflow("nap", nap).start().await.unwrap();
        let nap = engine.start("nap", &u64::try_from(time.as_millis()).unwrap()).await.unwrap();
        nap.result::<()>().await.unwrap();
        engine.shutdown().await;
    }

    /// What a run waits for.
    pub(crate) async fn awaiting(&self, run: &str) -> Vec<Awaited> {
        self.store.awaiting(key(run)).await.unwrap()
    }
}

pub(crate) fn key(run: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(run).unwrap())
}

async fn nap(ctx: Ctx, millis: u64) -> outlast::Result<()> {
    ctx.sleep(Duration::from_millis(millis)).await
}

/// How often something happened, counted outside of the workflow.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<AtomicU32>);

impl Tally {
    pub(crate) fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The views of semantics P3: the part of its pauses that the table of two sleeps has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pauses {
    /// How many pause points were reached.
    pub(crate) reached: u32,
    /// The largest n such that pauses 1 … n are complete.
    pub(crate) completed: u32,
    /// When the first sleep that is pending ends.
    pub(crate) resume_at: Option<Timestamp>,
}

pub(crate) async fn pauses(engine: &Engine, run: &str) -> Pauses {
    let pauses = engine.run(run).unwrap().pauses().await.unwrap();
    Pauses { reached: pauses.reached, completed: pauses.completed_pause_index, resume_at: pauses.pending_resume_at }
}

/// Plays a story whose first engine dies at one call to its store; a second one takes over, and the client begins again.
/// None if the story was over before. `register` is told which engine it is for, from 1; the client gives up with none
/// when its engine is dead.
pub(crate) fn crash_at<T>(
    at: u64,
    register: impl Fn(u32, Outlast) -> Outlast,
    client: impl AsyncFn(Engine) -> Option<T>,
) -> Option<T> {
    let scene = Scene::new();
    let plan = Plan { at, fault: Fault::AppliedThenCrash };
    let faulty = Arc::new(FaultStore::new(scene.store.clone(), plan));
    let first = register(1, scene.world.engine_on(faulty.clone()));
    let ended = scene.world.block_on(async {
        let play = pin!(async { client(first.start().await.ok()?).await });
        match select(pin!(died(&faulty)), play).await {
            Either::Left(_) => None,
            Either::Right((ended, _)) => ended,
        }
    });
    if ended.is_some() {
        return None;
    }
    let second = register(2, scene.world.engine_on(scene.store.clone()));
    let ended = scene.world.block_on(async { client(second.start().await.unwrap()).await });
    Some(ended.expect("the second engine lives"))
}

/// Completes when the store has crashed.
pub(crate) async fn died(store: &FaultStore) {
    std::future::poll_fn(|context| {
        if store.has_crashed() {
            return Poll::Ready(());
        }
        store.notify(context.waker());
        Poll::Pending
    })
    .await;
}
