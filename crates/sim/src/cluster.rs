//! The processes of a case.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use outlast::testing::{Process, World};
use outlast::{Engine, EngineError, Outlast};
use outlast_core::id::{Index, Namespace, NodeId, RunId, RunKey};
use outlast_store::Store;
use outlast_store::faults::{Latency, Wakes};

use crate::case::{Case, DRIFT, DROPPED, FORBIDDEN, HERE, LATENCY, LOST, Programs, REMOVED, ROW, TORN, run_id};
use crate::client::Client;
use crate::generate::SIGNALS;
use crate::ground::Ground;
use crate::interpret::{Input, Outside, WORKFLOW, bounded, employ, register_versions, steps, write};
use crate::ledger::Ledger;
use crate::nemesis::begin;
use crate::tally::count;
use crate::tree::{Tree, Wait, Work};
use crate::watch::Watch;
use crate::written::EDITIONS;

/// How long a process that cannot start waits before it tries again.
const START_AGAIN: Duration = Duration::from_secs(1);
/// How often to look whether somebody still has the store.
const LOOK: Duration = Duration::from_millis(1);
/// How often, at most.
const LOOKS_MAX: u32 = 20_000;

/// A number like those that have every version.
const CLIENT: usize = 0;

/// The namespace beside that of the case.
pub(crate) fn beside() -> Namespace {
    Namespace::new("beside").expect("a name of a namespace")
}

/// A run there that has something to do, driven by the same processes, and that nobody disturbs on purpose.
pub(crate) const NEIGHBOUR: &str = "neighbour";
/// How often to look whether it has ended, at most, once trouble is over.
const NEIGHBOUR_LOOKS_MAX: u32 = 900;

/// What it does.
fn neighbourly() -> Tree {
    let step = |takes| Tree::Step(Work { attempts: 1, takes: Some(takes), ..Work::default() });
    Tree::Seq(vec![step(0), Tree::Sleep(4_000), step(300), Tree::Sleep(9_000), step(0)])
}

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
    /// What became of calls of processes that are gone, by kind and by the call's name.
    gone: RefCell<BTreeMap<&'static str, u64>>,
    gone_by_call: RefCell<BTreeMap<&'static str, u64>>,
    /// How many acts and faults are not over.
    pub(crate) left: Cell<usize>,
    /// Faults of first calls that are over, by their place in the case; all of them are when trouble is.
    pub(crate) early: RefCell<BTreeSet<usize>>,
    /// How many full disks there are at once.
    full: Cell<u32>,
    /// How far back the store's clock was set, in all.
    pub(crate) back: Cell<Duration>,
    lives: Cell<u64>,
}

struct Place {
    process: Process,
    engine: Option<Engine>,
    name: String,
    /// Which of the many that were ever started.
    life: u64,
}

impl Cluster {
    pub(crate) fn new(world: Rc<World>, case: Rc<Case>, watch: Arc<Watch>, ground: Ground) -> Rc<Cluster> {
        watch.sight().snapshots.plan = case.options.snapshots;
        let (ledger, places) = (Ledger::new(), RefCell::default());
        let (landed, gone, gone_by_call) = (RefCell::default(), RefCell::default(), RefCell::default());
        let (back, lives, left, full) = (Cell::default(), Cell::default(), Cell::default(), Cell::default());
        let early = RefCell::default();
        Rc::new(Cluster {
            world,
            case,
            watch,
            ledger,
            ground,
            places,
            landed,
            gone,
            gone_by_call,
            left,
            early,
            full,
            back,
            lives,
        })
    }

    /// Starts every process, and the client's.
    pub(crate) async fn start(self: &Rc<Self>) -> Client {
        for number in 0..self.case.options.processes {
            let place = self.place(number, format!("node-{number}"));
            self.places.borrow_mut().push(place);
            begin(self, number);
            self.launch(number).await;
        }
        let client = self.place(self.case.options.processes, "client".to_owned());
        self.places.borrow_mut().push(client);
        begin(self, self.case.options.processes);
        let engine = self.start_client(Namespace::default_namespace()).await;
        if self.case.options.beside {
            self.put_beside().await;
            self.start_beside(&self.start_client(beside()).await).await;
        }
        let (ledger, world) = (Arc::clone(&self.ledger), Rc::clone(&self.world));
        Client { engine, ledger, world, acts: Rc::default(), seen: Rc::default() }
    }

    /// Starts the client's engine; again, if one of its first calls fails.
    async fn start_client(&self, namespace: Namespace) -> Engine {
        loop {
            let builder = {
                let places = self.places.borrow();
                let client = places.last().expect("the client is the last one");
                self.builder(CLIENT, client).without_loops().namespace(namespace.clone())
            };
            match builder.start().await {
                Ok(engine) => return engine,
                Err(error @ EngineError::Mistakes { .. }) => panic!("{error}"),
                Err(_) => self.world.sleep(START_AGAIN).await,
            }
        }
    }

    /// Puts the other namespace. Whoever starts there keeps its texts there.
    async fn put_beside(&self) {
        let helper = self.world.process(self.watch.inner());
        helper.faults().put_namespace(beside()).await.expect("nothing has gone wrong yet");
        // Nobody must have the store who does not need it.
        helper.crash();
    }

    /// Starts a run in the other namespace for each of the case, under the same id. It waits for what nobody sends there.
    async fn start_beside(&self, engine: &Engine) {
        for place in 0..self.case.runs.len() {
            let name = SIGNALS[place % SIGNALS.len()].to_owned();
            let wait = Wait { name, number: false, aimed: false, timeout: None, or_fail: false };
            let start = engine.start(WORKFLOW, &Input::of(Tree::Wait(wait))).id(&run_id(place));
            start.await.expect("nothing has gone wrong yet");
        }
        let start = engine.start(WORKFLOW, &Input::of(neighbourly())).id(NEIGHBOUR);
        start.await.expect("nothing has gone wrong yet");
    }

    /// Waits until the neighbour has come to its end, if there is one: nobody helps it.
    pub(crate) async fn neighbour_ends(&self, store: &dyn Store) {
        let Ok(id) = RunId::new(NEIGHBOUR) else { return };
        for _ in 0..NEIGHBOUR_LOOKS_MAX {
            let is_over = match store.get(RunKey::new(beside(), id.clone())).await {
                Ok(view) => view.status.is_terminal(),
                Err(_) => true,
            };
            if is_over {
                return;
            }
            self.world.sleep(START_AGAIN).await;
        }
    }

    fn place(&self, number: usize, name: String) -> Place {
        let process = self.world.process(self.watch.of(&name));
        let drift = self.case.options.drift.get(number).copied().unwrap_or(0);
        if drift != 0 {
            process.drift(drift);
            self.landed(DRIFT);
        }
        process.writes_here(self.case.options.here);
        // A disk that is full is so for whoever comes, too.
        process.faults().set_full(self.full.get() > 0);
        let life = self.lives.replace(self.lives.get() + 1);
        let latency = (self.case.options.latency > 0).then(|| Latency {
            seed: self.case.seed.wrapping_add(life),
            max: Duration::from_millis(self.case.options.latency),
        });
        process.faults().set_latency(latency);
        Place { process, engine: None, name, life }
    }

    fn builder(&self, number: usize, place: &Place) -> Outlast {
        let options = &self.case.options;
        let engine = place.process.engine();
        let engine = engine.lease(Duration::from_millis(options.lease)).poll(Duration::from_millis(options.poll));
        let engine = engine.runs_max(options.runs_max).node(NodeId::new(&place.name).expect("a name of a node"));
        let engine = match options.retention {
            Some(age) => engine.retention(Duration::from_millis(age)),
            None => engine,
        };
        let (outside, role) = (self.outside(self.ledger.of(&place.name)), options.role_of(number));
        let engine = engine.snapshot_after(options.snapshots.after);
        let engine = if role.works() { employ(engine, outside.clone()).tasks_max(options.tasks_max) } else { engine };
        // Whoever is there for tasks only learns of texts, too, and drives those that need neither steps nor code.
        let engine = if self.case.written.is_empty() { engine } else { bounded(engine, &outside) };
        if !role.drives() {
            return engine;
        }
        let engine = if self.case.written.is_empty() { engine } else { steps(engine, outside.clone()) };
        let engine = register_versions(engine, outside, options.versions_of(number));
        write(engine, &self.case.written, EDITIONS[0])
    }

    /// What programs find outside.
    pub(crate) fn outside(&self, ledger: Arc<Ledger>) -> Outside {
        let enter = self.ground.books.as_ref().map(|books| books.enter.clone());
        Outside::new(ledger, self.world.time(), enter).at_once(self.case.options.pending_max)
    }

    /// Starts the engine of a process; as long as it takes, unless the process dies meanwhile.
    async fn launch(&self, number: usize) {
        let life = self.places.borrow().get(number).map(|place| place.life);
        let lives = |place: &&mut Place| Some(place.life) == life && !place.process.has_crashed();
        loop {
            let builder = match self.places.borrow_mut().get_mut(number).filter(lives) {
                Some(place) => self.builder(number, place),
                None => return,
            };
            match builder.start().await {
                Ok(engine) => {
                    if let Some(place) = self.places.borrow_mut().get_mut(number).filter(lives) {
                        place.engine = Some(engine);
                    }
                    return;
                }
                Err(error @ EngineError::Mistakes { .. }) => panic!("{error}"),
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
        let before = std::mem::replace(&mut self.places.borrow_mut()[number], place);
        self.remember(&before.process);
        begin(self, number);
        self.launch(number).await;
    }

    /// What became of the calls of a process that is gone still counts.
    fn remember(&self, process: &Process) {
        let mut gone = self.gone.borrow_mut();
        for (kind, times) in process.faults().landed_by_kind() {
            *gone.entry(kind).or_default() += times;
        }
        let mut gone = self.gone_by_call.borrow_mut();
        for (call, times) in process.faults().landed_by_call() {
            *gone.entry(call).or_default() += times;
        }
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

    /// A process that lives.
    pub(crate) fn process(&self, number: usize) -> Option<Process> {
        let places = self.places.borrow();
        places.get(number).filter(|place| !place.process.has_crashed()).map(|place| place.process.clone())
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

    /// Reads something while nobody writes: whoever drives stands still meanwhile, if the store does not answer at once.
    pub(crate) async fn still<T>(&self, read: impl Future<Output = T>) -> T {
        if self.ground.in_memory {
            return read.await;
        }
        self.everybody(Process::freeze);
        let helper = self.world.process(self.watch.inner());
        // Whoever stands still takes no answer, but what it sent is done: a file is written in order, so that this comes last.
        let _ = helper.faults().sweep(0).await;
        helper.crash();
        let read = read.await;
        self.everybody(Process::thaw);
        read
    }

    /// How long the journal of a run of the case is, by the store's own word.
    pub(crate) async fn stands(&self, run: &str) -> Index {
        let Ok(id) = RunId::new(run) else { return Index(0) };
        let helper = self.world.process(self.watch.inner());
        let view = helper.faults().get(RunKey::new(Namespace::default_namespace(), id)).await;
        // Nobody must have the store who does not need it.
        helper.crash();
        view.map_or(Index(0), |view| view.next)
    }

    /// A fault took effect.
    pub(crate) fn landed(&self, kind: &'static str) {
        count(&mut self.landed.borrow_mut(), kind);
    }

    /// How often calls were treated so, of all processes there ever were.
    pub(crate) fn effects(&self, kind: &str) -> u64 {
        let places = self.places.borrow();
        let here = places.iter().map(|place| place.process.faults().landed_by_kind().get(kind).copied().unwrap_or(0));
        here.sum::<u64>() + self.gone.borrow().get(kind).copied().unwrap_or(0)
    }

    /// How often calls of each name were made to fail, of all processes there ever were.
    pub(crate) fn calls_failed(&self) -> BTreeMap<&'static str, u64> {
        let mut failed = self.gone_by_call.borrow().clone();
        for place in self.places.borrow().iter() {
            for (call, times) in place.process.faults().landed_by_call() {
                *failed.entry(call).or_default() += times;
            }
        }
        failed
    }

    /// The disk is full for everybody, or one of the reasons for that is gone.
    pub(crate) fn set_full(&self, full: bool) {
        self.full.set(if full { self.full.get() + 1 } else { self.full.get().saturating_sub(1) });
        let is_full = self.full.get() > 0;
        self.everybody(|process| process.faults().set_full(is_full));
    }

    /// Faults that took effect, and what the options brought about.
    pub(crate) fn faults_landed(&self) -> BTreeMap<&'static str, u64> {
        let mut landed = self.landed.borrow().clone();
        let effects = [(LATENCY, "latency"), (HERE, "here"), (FORBIDDEN, "forbidden")];
        let counted = effects.map(|(name, kind)| (name, self.effects(kind)));
        landed.extend(counted.into_iter().filter(|(_, times)| *times > 0));
        let sight = self.watch.sight();
        let seen = [
            (REMOVED, sight.removed),
            (ROW, sight.rows_met),
            (TORN, sight.snapshots.torn),
            (LOST, sight.snapshots.lost),
        ];
        drop(sight);
        landed.extend(seen.into_iter().filter(|(_, times)| *times > 0));
        if self.case.options.programs != Programs::Kept && self.watch.replays() > 0 {
            landed.insert(DROPPED, self.watch.replays());
        }
        landed
    }

    /// The run's journal can be read again.
    pub(crate) fn repair(&self, run: &RunKey) {
        if let Some(damage) = &self.ground.damage {
            damage(run, None);
        }
        self.watch.repair(run);
    }

    /// Nothing goes wrong any more: what was broken is whole, who was dead is back.
    pub(crate) async fn heal(self: &Rc<Self>) {
        self.world.jump(true, self.back.take());
        self.early.borrow_mut().extend(0..self.case.faults.len());
        self.everybody(|process| {
            process.thaw();
            process.deaf(false);
            let faults = process.faults();
            faults.forget_plans();
            faults.set_cut(false);
            faults.set_wakes(Wakes::Heard);
        });
        self.full.set(1);
        self.set_full(false);
        for run in self.watch.damaged() {
            self.repair(&run);
        }
        self.ledger.end_poison();
        for number in 0..self.case.options.processes {
            self.revive(number, false).await;
        }
    }
}
