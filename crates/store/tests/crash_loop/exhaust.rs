//! Tells a story once for every call it makes and every way in which that call can fail.

use std::collections::BTreeSet;
use std::sync::Arc;

use outlast_store::Store;
use outlast_store::faults::{Fault, FaultStore, Plan};
use outlast_store::invariants::World;

use crate::driver::LEASE_MS;
use crate::places::Place;
use crate::random::Random;
use crate::scenarios::{Ended, Scenario};
use crate::stage::Stage;

/// Steps after which a story that has not ended never will.
const STEPS_MAX: u64 = 3_000;
/// A story that is disturbed may take longer, but not as long as four jumps: then a lease lapses.
const JUMPS_SPARE: u32 = 2;
/// Lives of the process after which a story that has not ended never will.
const LIVES_MAX: usize = 4;

/// The faults of each life of the process, and the order in which actors take their turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) lives: Vec<Vec<Plan>>,
    /// One after the other if none.
    pub(crate) order: Option<u64>,
    /// Look at everything after every step.
    pub(crate) closely: bool,
}

/// What a telling showed.
#[derive(Debug)]
pub(crate) struct Told {
    /// The calls of the first life.
    pub(crate) log: Vec<&'static str>,
    pub(crate) landed: usize,
    /// How often time had to jump because nobody knew of anything to come.
    pub(crate) jumps: u32,
    pub(crate) sometimes: BTreeSet<&'static str>,
}

/// What all tellings showed.
#[derive(Debug, Default)]
pub(crate) struct Exhausted {
    pub(crate) calls: u64,
    /// Tellings in which the fault happened.
    pub(crate) landed: u64,
    pub(crate) sometimes: BTreeSet<&'static str>,
}

/// Says where a panic happened.
struct Whereabouts<'a> {
    scenario: &'a Scenario,
    trouble: &'a Trouble,
    store: Arc<FaultStore>,
}

impl Drop for Whereabouts<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (name, trouble, log) = (self.scenario.name, self.trouble, self.store.log());
            eprintln!("story: {name}\ntrouble: {trouble:?}\ncalls of this life: {log:?}");
        }
    }
}

/// Tells the story once, through as many lives as it takes.
pub(crate) async fn tell(scenario: &Scenario, place: &mut Place, trouble: &Trouble) -> Told {
    let stage = Stage::new(place.clock.clone(), place.namespace.clone());
    let mut order = trouble.order.map(Random::new);
    let mut told = Told { log: Vec::new(), landed: 0, jumps: 0, sometimes: BTreeSet::new() };
    for life in 0..LIVES_MAX {
        let plans = trouble.lives.get(life).map_or(&[][..], Vec::as_slice);
        let faults = plans.iter().fold(FaultStore::counting(place.store().clone()), |store, plan| store.and(*plan));
        let faults = Arc::new(faults);
        let whereabouts = Whereabouts { scenario, trouble, store: faults.clone() };
        let ended = live(scenario, &stage, place, &faults, &mut order, life, trouble.closely).await;
        look(&stage, &**place.store()).await;
        told.landed += faults.landed();
        if life == 0 {
            told.log = faults.log();
        }
        if ended {
            verify(scenario, &stage, &**place.store()).await;
            told.jumps = stage.jumps.get();
            told.sometimes = std::mem::take(&mut stage.ledger.borrow_mut().sometimes);
            return told;
        }
        drop((whereabouts, faults));
        place.crash().await;
        stage.clock.advance(LEASE_MS as i64 + 1);
        stage.ledger.borrow_mut().crashed();
        look(&stage, &**place.store()).await;
    }
    panic!("{}: the process died too often", scenario.name);
}

/// One life of the process: whether the story ended in it.
async fn live(
    scenario: &Scenario,
    stage: &std::rc::Rc<Stage>,
    place: &Place,
    faults: &Arc<FaultStore>,
    order: &mut Option<Random>,
    life: usize,
    closely: bool,
) -> bool {
    let store: Arc<dyn Store> = faults.clone();
    let mut actors = scenario.actors(stage, &store, place.store(), life);
    for step in 1..=STEPS_MAX {
        let count = actors.len() as u64;
        let index = order.as_mut().map_or((step - 1) % count, |order| order.below(count)) as usize;
        match stage.step(&mut actors[index]).await {
            Some(Ok(())) if index == 0 => return true,
            Some(Ok(())) => drop(actors.remove(index)),
            Some(Err(_)) | None => {}
        }
        if faults.has_crashed() {
            return false;
        }
        if closely || step % place.look_every() == 0 {
            look(stage, &**place.store()).await;
        }
    }
    let world = World::read(&**place.store(), &stage.namespace).await;
    panic!("{} does not end; the world is {world:#?}", scenario.name);
}

/// Looks at everything, and compares it with what is known outside.
async fn look(stage: &Stage, store: &dyn Store) {
    let checked = match World::read(store, &stage.namespace).await {
        Ok(world) => stage.ledger.borrow_mut().check(&world).map_err(|broken| (broken, Some(world))),
        Err(unreadable) => Err((unreadable, None)),
    };
    if let Err((broken, world)) = checked {
        panic!("{broken}\nthe world: {world:#?}");
    }
}

async fn verify(scenario: &Scenario, stage: &Stage, store: &dyn Store) {
    let world = World::read(store, &stage.namespace).await.unwrap();
    let alive = world.runs.values().find(|run| !run.view.status.is_terminal());
    assert!(alive.is_none(), "{}: this run should have ended: {alive:#?}", scenario.name);
    let verdict = (scenario.verify)(&Ended { stage, world: &world });
    if let Err(wrong) = verdict {
        panic!("{}: {wrong}\nthe world: {world:#?}", scenario.name);
    }
}

/// The ways in which a call can fail.
fn faults(call: &str) -> Vec<Fault> {
    let mut faults = vec![Fault::NotApplied { in_doubt: false }, Fault::AppliedThenError, Fault::AppliedThenCrash];
    if call == "commit" {
        faults.push(Fault::NotApplied { in_doubt: true });
    }
    faults
}

/// Every call (or, thinned, every `stride`-th) and every way.
pub(crate) async fn exhaust(scenario: &Scenario, place: &mut Place, stride: u64) -> Exhausted {
    let mut all = Exhausted::default();
    let undisturbed = Trouble { closely: true, ..Trouble::default() };
    let Told { log, jumps, .. } = tell(scenario, place, &undisturbed).await;
    all.calls = log.len() as u64;
    assert!(all.calls >= scenario.calls_min, "{} makes only {} calls: {log:?}", scenario.name, all.calls);
    for at in (0..).step_by(stride as usize) {
        let mut landed = false;
        for fault in faults(log.get(at as usize).copied().unwrap_or("commit")) {
            place.renew().await;
            let trouble = Trouble { lives: vec![vec![Plan { at, fault }]], ..Trouble::default() };
            let told = tell(scenario, place, &trouble).await;
            assert!(told.landed == 1 || at >= all.calls, "{}: {trouble:?} did not happen", scenario.name);
            // A lost reply may not strand what its sender took until the sender's lease is over.
            let stranded = told.jumps > jumps + JUMPS_SPARE && fault != Fault::AppliedThenCrash;
            assert!(!stranded, "{}: after {trouble:?}, something waited for a lease to lapse", scenario.name);
            landed |= told.landed > 0;
            all.landed += told.landed as u64;
            all.sometimes.extend(told.sometimes);
        }
        if !landed {
            break;
        }
    }
    for event in scenario.sometimes {
        assert!(all.sometimes.contains(event) || stride > 1, "{}: {event:?} never happened", scenario.name);
    }
    all
}

/// Two faults at random, in a random order of turns; the second may hit the life after the first.
pub(crate) fn random_trouble(random: &mut Random, calls: u64) -> Trouble {
    let ways = faults("commit");
    let mut plan = || Plan { at: random.below(calls), fault: ways[random.below(ways.len() as u64) as usize] };
    let (first, second) = (plan(), plan());
    let lives = if first.fault == Fault::AppliedThenCrash {
        vec![vec![first], vec![second]]
    } else {
        vec![vec![first, second]]
    };
    Trouble { lives, order: Some(random.next()), closely: false }
}
