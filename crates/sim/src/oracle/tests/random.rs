//! Random workflows, two processes, and one of them dies now and then: nothing of that is anybody's fault.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast::testing::World;
use outlast_core::limits::Limits;
use outlast_store::MemoryStore;

use crate::chance::Chance;
use crate::generate::grow;
use crate::interpret::{Input, Outside, WORKFLOW, employ, register};
use crate::ledger::{Asked, Ledger, Told};
use crate::oracle::{Scene, examine};
use crate::violation::Findings;
use crate::watch::Watch;

const RUNS: usize = 3;
const CRASHES: u32 = 4;

fn play(seed: u64) -> Findings {
    let mut chance = Chance::new(seed);
    let world = World::seeded(seed).shuffled();
    let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
    let watch = Watch::new(store.clone(), world.clock());
    let ledger = Ledger::new();
    let register = |engine: Outlast, ledger: Arc<Ledger>| {
        let outside = Outside::new(ledger, world.time(), None);
        register(employ(engine, outside.clone()), outside)
    };
    let checker = register(Outlast::memory(), Ledger::new()).checker();
    world.block_on(async {
        let client = world.process(watch.of("client"));
        let client = register(client.engine(), Ledger::new()).without_loops().start().await.unwrap();
        let launch = async |name: &str| {
            let process = world.process(watch.of(name));
            let engine = process.engine().lease(Duration::from_secs(10)).poll(Duration::from_secs(2));
            let engine = register(engine, ledger.of(name)).start().await.unwrap();
            (process, engine)
        };
        let _steady = launch("steady").await;
        let mut shaky = launch("shaky").await;
        for number in 0..RUNS {
            let (id, input) = (format!("run{number}"), Input::of(grow(&mut chance, 8)));
            let ask = ledger.asked(&id, Asked::Start, world.elapsed());
            client.start(WORKFLOW, &input).id(&id).await.unwrap();
            ledger.told(ask, Told::Done("Started".to_owned()), world.elapsed());
        }
        for life in 0..CRASHES {
            world.sleep(Duration::from_millis(chance.between(1, 5_000))).await;
            shaky.0.crash();
            world.sleep(Duration::from_millis(chance.between(1, 20_000))).await;
            shaky = launch(&format!("shaky{life}")).await;
        }
        world.sleep(Duration::from_secs(120)).await;
        let scene = Scene { checker: Some(&checker), patience: Some(Duration::from_secs(60)), ..Scene::default() };
        examine(&*store, &watch, &ledger, &scene).await
    })
}

#[test]
fn processes_that_die_break_no_promise_and_are_accused_of_none() {
    for seed in 0..60 {
        let findings = play(seed);
        assert_eq!(findings.violations, [], "seed {seed}: {:#?}", findings.violations);
    }
}
