//! The processes of a case.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use outlast::testing::{Process, World};
use outlast::{Engine, Outlast};
use outlast_core::id::NodeId;
use outlast_store::faults::{Latency, Wakes};

use crate::case::Case;
use crate::client::Client;
use crate::ground::Ground;
use crate::interpret::{Outside, register};
use crate::ledger::Ledger;
use crate::tally::count;
use crate::watch::Watch;

/// How long a process that cannot start waits before it tries again.
const START_AGAIN: Duration = Duration::from_secs(1);
/// How often to look whether somebody still has the store.
const LOOK: Duration = Duration::from_millis(1);
/// How often, at most.
const LOOKS_MAX: u32 = 20_000;

/// Engines on one store, in one world.
pub(crate) struct Cluster {
    pub(crate) world: Rc<World>,
    pub(crate) case: Rc<Case>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ground: Ground,
    /// The driving ones, and the client's behind them.
    places: RefCell<Vec<Place>>,
    landed: RefCell<BTreeMap<&'static str, u64>>,
    /// How far back the store's clock was set, in all.
    pub(crate) back: Cell<Duration>,
    lives: Cell<u64>,
}

struct Place {
    process: Process,
    engine: Option<Engine>,
    name: String,
}

impl Cluster {
    pub(crate) fn new(world: Rc<World>, case: Rc<Case>, watch: Arc<Watch>, ground: Ground) -> Rc<Cluster> {
        let (ledger, places) = (Ledger::new(), RefCell::default());
        let (landed, back, lives) = (RefCell::default(), Cell::default(), Cell::default());
        Rc::new(Cluster { world, case, watch, ledger, ground, places, landed, back, lives })
    }

    /// Starts every process, and the client's.
    pub(crate) async fn start(self: &Rc<Self>) -> Client {
        for number in 0..self.case.options.processes {
            let place = self.place(number, format!("node-{number}"));
            self.places.borrow_mut().push(place);
            self.launch(number).await;
        }
        let client = self.place(self.case.options.processes, "client".to_owned());
        let engine = self.builder(&client).without_loops();
        self.places.borrow_mut().push(client);
        // Nothing has gone wrong yet.
        let engine = engine.start().await.expect("the client's engine starts");
        Client { engine, ledger: Arc::clone(&self.ledger), world: Rc::clone(&self.world), seen: Rc::default() }
    }

    fn place(&self, number: usize, name: String) -> Place {
        let process = self.world.process(self.watch.of(&name));
        process.drift(self.case.options.drift.get(number).copied().unwrap_or(0));
        let life = self.lives.replace(self.lives.get() + 1);
        let latency = (self.case.options.latency > 0).then(|| Latency {
            seed: self.case.seed.wrapping_add(life),
            max: Duration::from_millis(self.case.options.latency),
        });
        process.faults().set_latency(latency);
        Place { process, engine: None, name }
    }

    fn builder(&self, place: &Place) -> Outlast {
        let options = &self.case.options;
        let engine = place.process.engine();
        let engine = engine.lease(Duration::from_millis(options.lease)).poll(Duration::from_millis(options.poll));
        let engine = engine.runs_max(options.runs_max).node(NodeId::new(&place.name).expect("a name of a node"));
        register(engine, self.outside(self.ledger.of(&place.name)))
    }

    /// What programs find outside.
    pub(crate) fn outside(&self, ledger: Arc<Ledger>) -> Outside {
        let enter = self.ground.books.as_ref().map(|books| books.enter.clone());
        Outside::new(ledger, self.world.time(), enter)
    }

    /// Starts the engine of a process; as long as it takes, unless the process dies meanwhile.
    async fn launch(&self, number: usize) {
        loop {
            let builder = {
                let places = self.places.borrow();
                let Some(place) = places.get(number).filter(|place| !place.process.has_crashed()) else { return };
                self.builder(place)
            };
            match builder.start().await {
                Ok(engine) => {
                    if let Some(place) = self.places.borrow_mut().get_mut(number) {
                        place.engine = Some(engine);
                    }
                    return;
                }
                Err(_) => self.world.sleep(START_AGAIN).await,
            }
        }
    }

    /// Kills a process and starts another one in its place later.
    pub(crate) async fn crash(self: &Rc<Self>, number: usize, back: Duration, same_name: bool) {
        self.die(number);
        self.world.sleep(back).await;
        self.revive(number, same_name).await;
    }

    fn die(&self, number: usize) {
        let mut places = self.places.borrow_mut();
        if let Some(place) = places.get_mut(number) {
            place.process.crash();
            place.engine = None;
        }
    }

    /// Another process in the place of a dead one; nothing if somebody lives there.
    pub(crate) async fn revive(self: &Rc<Self>, number: usize, same_name: bool) {
        let name = {
            let places = self.places.borrow();
            let Some(place) = places.get(number).filter(|place| place.process.has_crashed()) else { return };
            if same_name { place.name.clone() } else { format!("node-{number}-{}", self.lives.get()) }
        };
        // What still runs of one whose last call was answered with its death.
        self.die(number);
        let place = self.place(number, name);
        self.places.borrow_mut()[number] = place;
        self.launch(number).await;
    }

    /// The power fails: every process dies, and the store is closed. It is opened again, and they come back. What a store in
    /// memory has would be gone: it stays.
    pub(crate) async fn power_cut(self: &Rc<Self>, back: Duration) {
        let engines = 0..self.case.options.processes;
        engines.clone().for_each(|number| self.die(number));
        if !self.ground.in_memory {
            self.everybody(|process| process.faults().set_cut(true));
            let mut looks = 0;
            while !self.watch.reopen(|| (self.ground.open)(&self.world)) {
                looks += 1;
                assert!(looks < LOOKS_MAX, "somebody does not let go of the store");
                self.world.sleep(LOOK).await;
            }
            self.everybody(|process| process.faults().set_cut(false));
        }
        self.world.sleep(back).await;
        for number in engines {
            self.revive(number, true).await;
        }
    }

    /// The place of the process with this name.
    pub(crate) fn number_of(&self, name: &str) -> Option<usize> {
        self.places.borrow().iter().position(|place| place.name == name)
    }

    /// Does something to a process that lives.
    pub(crate) fn with(&self, number: usize, act: impl FnOnce(&Process)) -> bool {
        let places = self.places.borrow();
        let alive = places.get(number).filter(|place| !place.process.has_crashed());
        alive.map(|place| act(&place.process)).is_some()
    }

    pub(crate) fn everybody(&self, act: impl Fn(&Process)) {
        self.places.borrow().iter().for_each(|place| act(&place.process));
    }

    /// A fault took effect.
    pub(crate) fn landed(&self, kind: &'static str) {
        count(&mut self.landed.borrow_mut(), kind);
    }

    pub(crate) fn faults_landed(&self) -> BTreeMap<&'static str, u64> {
        self.landed.borrow().clone()
    }

    /// Nothing goes wrong any more: what was broken is whole, who was dead is back.
    pub(crate) async fn heal(self: &Rc<Self>) {
        self.world.jump(true, self.back.take());
        self.everybody(|process| {
            process.thaw();
            process.deaf(false);
            let faults = process.faults();
            faults.forget_plans();
            faults.set_full(false);
            faults.set_cut(false);
            faults.set_wakes(Wakes::Heard);
        });
        self.watch.repair_all();
        self.ledger.end_poison();
        for number in 0..self.case.options.processes {
            self.revive(number, false).await;
        }
    }
}
