//! A process of a world: an engine and what happens to it.

use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use outlast_store::faults::FaultStore;

use super::own::Own;
use super::world::Inner;
use crate::engine::Outlast;

/// A process in a [`super::World`]: its memory, its clock, and its connection to the store. Cheap to clone.
///
/// ```
/// use outlast::testing::World;
/// use outlast::Ctx;
///
/// async fn double(ctx: Ctx, n: u32) -> outlast::Result<u32> {
///     ctx.sleep(std::time::Duration::from_secs(60)).await?;
///     ctx.step("double", async |_| Ok(n * 2)).await
/// }
///
/// let world = World::new();
/// let store = world.store();
/// let (first, second) = (world.process(store.clone()), world.process(store));
/// let doubled: u32 = world.block_on(async {
///     let engine = first.engine().workflow("double", double).start().await.unwrap();
///     engine.start("double", &21).id("a").await.unwrap();
///     first.crash();
///     let engine = second.engine().workflow("double", double).start().await.unwrap();
///     engine.run("a").unwrap().result().await.unwrap()
/// });
/// assert_eq!(doubled, 42);
/// ```
#[derive(Clone)]
pub struct Process {
    world: Weak<Inner>,
    own: Arc<Own>,
    faults: Arc<FaultStore>,
}

impl Process {
    pub(super) fn new(world: &Rc<Inner>, own: Arc<Own>, faults: Arc<FaultStore>) -> Process {
        Process { world: Rc::downgrade(world), own, faults }
    }

    /// An engine in this process, behind its [`Process::faults`].
    ///
    /// # Panics
    ///
    /// If the world has ended, or this process has crashed: a process that comes back is another one.
    pub fn engine(&self) -> Outlast {
        assert!(!self.has_crashed(), "this process has crashed; one that comes back is another `World::process`");
        self.world().engine(&self.own, Arc::clone(&self.faults))
    }

    /// What stands between this process and the store, and fails as it is told.
    pub fn faults(&self) -> &Arc<FaultStore> {
        &self.faults
    }

    /// Ends it as a power cut would: its memory and everything under way are gone, and its lease goes on until it lapses.
    /// What was already sent to the store stays sent.
    pub fn crash(&self) {
        self.faults.crash();
        if let Some(world) = self.world.upgrade() {
            world.crash(&self.own);
        }
    }

    /// Whether it has crashed, here or at a call that was made to be its last
    /// ([`outlast_store::faults::Fault::AppliedThenCrash`]).
    pub fn has_crashed(&self) -> bool {
        self.own.is_dead() || self.faults.has_crashed()
    }

    /// From now on none of its tasks goes on, as if the machine were suspended. Its clock goes on, and so does its lease,
    /// towards its end. What was already sent to the store stays sent.
    pub fn freeze(&self) {
        self.own.freeze();
    }

    /// It goes on where it stood.
    pub fn thaw(&self) {
        let world = self.world();
        self.own.thaw().into_iter().for_each(|task| world.core.wake(task));
    }

    /// Whether it is frozen.
    pub fn is_frozen(&self) -> bool {
        self.own.is_frozen()
    }

    /// From now on its clock runs faster than the world's by so many parts of a thousand, or slower; 0 to run as fast. At
    /// most ten times as fast, and at least a tenth.
    pub fn drift(&self, per_mille: i32) {
        self.world().core.drift(&self.own, per_mille);
    }

    /// The clock on the wall of this process is set, forward or back: it was right before, or as wrong as it was set. The store's
    /// clock, by which everything happens, stays as it is.
    pub fn set_wall(&self, forward: bool, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.own.set_wall(if forward { millis } else { -millis });
    }

    /// Whether notices inside this process are lost: that a run is ready, that a timer was started. What they tell of is then
    /// found when the engine looks for what nobody gave notice of ([`Outlast::poll`]).
    pub fn deaf(&self, deaf: bool) {
        self.own.set_deaf(deaf);
    }

    /// How many notices were lost because it is or was [`Process::deaf`].
    pub fn notices_lost(&self) -> u64 {
        self.own.unheard()
    }

    /// How often one of its tasks would have gone on and did not, because it is or was frozen ([`Process::freeze`]).
    pub fn tasks_held(&self) -> u64 {
        self.own.held()
    }

    /// Whether its drivers write on their own thread when they have nothing else to do, as they do outside of a world. In
    /// one they do not, if nobody says otherwise: then every call to the store can be late.
    pub fn writes_here(&self, here: bool) {
        self.own.set_may_block(here);
    }

    fn world(&self) -> Rc<Inner> {
        self.world.upgrade().expect("the world of this process has ended")
    }
}
