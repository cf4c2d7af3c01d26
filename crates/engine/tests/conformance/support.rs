//! What the cases share.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod outside;
mod values;
mod written;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use outlast::testing::{Programs, World};
use outlast::{Engine, EngineError, Outlast, RunHandle, Status};
use outlast_core::commit::{Delivery, WaitKind};
use outlast_core::failure::Failure;
use outlast_core::id::{DeliveryId, Key, Namespace};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;
use outlast_store::{Delivered, MemoryStore, SqliteOptions, SqliteStore, Store};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use outside::{count, counted, hand_out};
pub(crate) use values::{Joined, Marked, Wrapped, projection};

/// The one run of a case.
pub(crate) const RUN: &str = "case";

/// Tells a case on both stores: with programs kept between turns, without, when every turn replays its journal, and with
/// some evicted at random.
pub(crate) fn on_both(register: impl Fn(Outlast) -> Outlast, story: impl AsyncFn(&Case<'_>)) {
    for programs in [Programs::Kept, Programs::Dropped, Programs::Evicted { seed: 1 }] {
        let register = |engine: Outlast| register(engine.grace(Duration::from_secs(1)));
        let world = World::new().programs(programs);
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        tell(Case::new(&world, store, &register, format!("in memory, programs {programs:?}")), &story);
        let world = World::new().programs(programs);
        let dir = tempfile::tempdir().expect("there is a place for temporary files");
        let options = SqliteOptions { clock: world.clock(), ..SqliteOptions::default() };
        let store = world.block_on(SqliteStore::open(dir.path().join("case.db"), options)).unwrap();
        tell(Case::new(&world, Arc::new(store), &register, format!("on SQLite, programs {programs:?}")), &story);
    }
}

fn tell(case: Case<'_>, story: &impl AsyncFn(&Case<'_>)) {
    outside::forget();
    case.world.block_on(async {
        case.begin().await;
        story(&case).await;
    });
}

/// A case that is being told.
pub(crate) struct Case<'w> {
    world: &'w World,
    store: Arc<dyn Store>,
    register: &'w dyn Fn(Outlast) -> Outlast,
    engine: RefCell<Option<Engine>>,
    begun: Timestamp,
    place: String,
}

impl<'w> Case<'w> {
    fn new(
        world: &'w World,
        store: Arc<dyn Store>,
        register: &'w dyn Fn(Outlast) -> Outlast,
        place: String,
    ) -> Case<'w> {
        Case { world, store, register, engine: RefCell::default(), begun: world.now(), place }
    }

    async fn begin(&self) {
        let engine = (self.register)(self.world.engine_on(Arc::clone(&self.store))).start().await.unwrap();
        self.engine.replace(Some(engine));
    }

    pub(crate) fn engine(&self) -> Engine {
        self.engine.borrow().clone().unwrap()
    }

    /// Starts the run.
    pub(crate) async fn start(&self, workflow: &str, input: &(impl Serialize + ?Sized)) -> RunHandle {
        self.engine().start(workflow, input).id(RUN).await.unwrap()
    }

    /// The engine goes while a step body is at work, and its memory with it; another engine takes over.
    pub(crate) async fn interrupt(&self) {
        let engine = self.engine();
        engine.shutdown().await;
        self.begin().await;
    }

    /// The run ends with this output.
    pub(crate) async fn succeeds(&self, output: Value) {
        let result = self.engine().run(RUN).unwrap().result::<Value>().await;
        assert_eq!(result, Ok(output), "{}", self.place);
        assert_eq!(self.status().await, Status::Completed, "{}", self.place);
    }

    /// The run ends with an error of this code.
    pub(crate) async fn fails(&self, code: &str) -> Failure {
        let result = self.engine().run(RUN).unwrap().result::<Value>().await;
        let Err(EngineError::Failed(failure)) = result else { panic!("{}: {result:?}", self.place) };
        assert_eq!(failure.code, code, "{}", self.place);
        assert_eq!(self.status().await, Status::Failed, "{}", self.place);
        failure
    }

    pub(crate) async fn status(&self) -> Status {
        self.engine().run(RUN).unwrap().status().await.unwrap()
    }

    /// The run's journal is this, event by event; see [`written`] for how they are written.
    pub(crate) async fn journal(&self, expected: &[&str]) {
        assert_eq!(self.written().await, expected, "{}", self.place);
    }

    /// The run's journal, written.
    pub(crate) async fn written(&self) -> Vec<String> {
        let journal = self.engine().run(RUN).unwrap().journal().await.unwrap();
        journal.iter().map(written::event).collect()
    }

    /// Waits until the journal has an event that is written like this.
    pub(crate) async fn until(&self, expected: &str) {
        let mut attached = self.engine().run(RUN).unwrap().attach();
        while let Some(event) = attached.next().await.unwrap() {
            if written::event(&event) == expected {
                return;
            }
        }
        panic!("{}: {expected:?} did not happen: {:#?}", self.place, self.written().await);
    }

    /// Somebody outside answers a callback, with the token that was handed out under this name. The engine finds the
    /// answer when it looks for the work of others.
    pub(crate) fn answer(&self, name: &str, key: &str, answer: Result<Option<Value>, Failure>) {
        let (meta, payload) = match answer {
            Ok(payload) => (json!("resolved"), payload.map(|payload| payload.to_string().into())),
            Err(failure) => (json!({ "failed": failure }), None),
        };
        let delivery = Delivery::Answer {
            run: self.engine().run(RUN).unwrap().key().clone(),
            key: Key::new(key).unwrap(),
            kind: WaitKind::Callback,
            id: DeliveryId::new(format!("answer to {name}")).unwrap(),
            token: Some(outside::token(name).unwrap()),
            meta: Some(meta.to_string().into()),
            payload,
        };
        let delivered = outside::wait(self.store.deliver(vec![delivery])).pop().unwrap();
        assert_eq!(delivered, Ok(Delivered::Delivered), "{}", self.place);
    }

    /// A tenant is made.
    pub(crate) fn make_namespace(&self, name: &str) {
        outside::wait(self.store.put_namespace(Namespace::new(name).unwrap())).unwrap();
    }

    /// So much time has gone by, within a tenth of a second.
    pub(crate) fn took(&self, expected: Duration) {
        let took = self.world.now().since(self.begun);
        assert!((expected..expected + Duration::from_millis(100)).contains(&took), "{}: {took:?}", self.place);
    }
}
