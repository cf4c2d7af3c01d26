//! Runs on an engine that nothing disturbs, with clients that give every run what it needs.

use std::sync::Arc;
use std::time::Duration;

use outlast::testing::{Programs, World};
use outlast::{Awaited, EngineError, Event, Failure, RunHandle};
use outlast_core::commit::WaitKind;
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::interpret::{Input, Outside, WORKFLOW, employ, register};
use crate::ledger::Ledger;
use crate::model::{Answer, Decision, Ended, Facts, Sent, Told, accepts};
use crate::tree::{Tree, grow, needs};

const RUN: &str = "r";
/// How often clients look at what a run waits for.
const TICK: Duration = Duration::from_millis(250);
const TICKS_MAX: u32 = 20_000;

/// What else happens to the run.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Also {
    Nothing,
    Cancel,
    Terminate,
}

/// Plays a tree to its end.
pub(super) fn play(seed: u64, tree: &Tree, also: Also) -> (Ended, Facts) {
    let programs = match seed % 3 {
        0 => Programs::Kept,
        1 => Programs::Dropped,
        _ => Programs::Evicted { seed },
    };
    let world = World::seeded(seed).programs(programs);
    world.block_on(async {
        let ledger = Ledger::new();
        let outside = Outside::new(Arc::clone(&ledger), world.time(), None);
        let engine = register(employ(world.engine(), outside.clone()), outside).start().await.unwrap();
        let run = engine.start(WORKFLOW, &Input { tree: tree.clone() }).id(RUN).await.unwrap();
        let mut clients = Clients { chance: Chance::new(seed), ledger, told: Told::default(), sent: 0 };
        clients.send_early(&run, tree).await;
        let stop = u32::try_from(clients.chance.below(60)).unwrap();
        for tick in 0.. {
            assert!(tick < TICKS_MAX, "seed {seed} does not end: {:?}", run.explain().await);
            if tick == stop {
                clients.stop(&run, also).await;
            }
            if run.status().await.unwrap().is_terminal() {
                break;
            }
            clients.act(&run).await;
            world.sleep(TICK).await;
        }
        let ended = ended(&run).await;
        let told = [(RUN.to_owned(), clients.told)].into();
        (ended, Facts { run: RUN.to_owned(), told, calm: true, slack: Some(0), ..Facts::default() })
    })
}

async fn ended(run: &RunHandle) -> Ended {
    match run.journal().await.unwrap().pop().unwrap() {
        Event::RunFinished { output } => Ended::Output(serde_json::from_slice(&output).unwrap()),
        Event::RunErrored { error } => Ended::Failed(error),
        Event::RunCancelled { .. } => Ended::Cancelled,
        Event::RunTerminated { .. } => Ended::Terminated,
        other => panic!("a run ended with {}", other.kind()),
    }
}

/// What comes when the run has ended is lost, and its sender is told.
fn arrives_or_is_lost<T>(told: Result<T, EngineError>) {
    if let Err(error) = told {
        assert!(matches!(error, EngineError::Lost { .. }), "{error}");
    }
}

struct Clients {
    chance: Chance,
    ledger: Arc<Ledger>,
    told: Told,
    sent: u64,
}

impl Clients {
    fn payload(&mut self, number: bool) -> Value {
        self.sent += 1;
        match self.chance.below(5) {
            0 if !number => json!(null),
            1 if !number => json!({ "word": self.sent }),
            _ => json!(self.sent),
        }
    }

    /// Signals that nobody waits for yet.
    async fn send_early(&mut self, run: &RunHandle, tree: &Tree) {
        for (name, count) in needs(tree).signals {
            for _ in 0..self.chance.below(count + 1) {
                self.signal(run, &name, None).await;
            }
        }
    }

    async fn signal(&mut self, run: &RunHandle, name: &str, aimed: Option<&str>) {
        let payload = self.payload(false);
        let id = format!("signal-{}", self.sent);
        match aimed {
            Some(key) => arrives_or_is_lost(run.signal_to(key, name, &payload, &id).await),
            None => arrives_or_is_lost(run.signal(name, &payload, &id).await),
        }
        self.told.signals.push(Sent { name: name.to_owned(), payload, id, aimed: aimed.map(str::to_owned) });
    }

    async fn stop(&mut self, run: &RunHandle, also: Also) {
        match also {
            Also::Nothing => {}
            Also::Cancel => {
                self.told.cancels += 1;
                arrives_or_is_lost(run.cancel("enough").await);
            }
            Also::Terminate => {
                self.told.terminated = true;
                arrives_or_is_lost(run.terminate("enough").await);
            }
        }
    }

    /// Looks what the run waits for, and gives it some of it.
    async fn act(&mut self, run: &RunHandle) {
        for awaited in run.awaiting().await.unwrap() {
            let Awaited::Wait { key, kind, name, answered: false, .. } = awaited else { continue };
            if !self.chance.one_in(8) {
                continue;
            }
            let key = key.as_str();
            match kind {
                WaitKind::Signal => {
                    let name = name.unwrap();
                    let aimed = (name == "aimed" || self.chance.one_in(5)).then_some(key);
                    self.signal(run, &name, aimed).await;
                }
                WaitKind::Approval => {
                    let approved = self.chance.one_in(2);
                    arrives_or_is_lost(run.approve(key, approved).await);
                    self.told.decisions.push(Decision { key: key.to_owned(), approved });
                }
                WaitKind::Callback => self.call_back(run, key).await,
            }
        }
    }

    async fn call_back(&mut self, run: &RunHandle, key: &str) {
        let tokens = self.ledger.tokens();
        let Some((.., token)) = tokens.iter().rfind(|(of, callback, _)| of == RUN && callback == key) else { return };
        let what = match self.chance.below(4) {
            0 => Err(Failure::new("refused", "not today")),
            _ => Ok(self.payload(false)),
        };
        match &what {
            Ok(value) => arrives_or_is_lost(run.resolve_callback(key, token, value).await),
            Err(failure) => arrives_or_is_lost(run.fail_callback(key, token, failure.clone()).await),
        }
        self.told.answers.push(Answer { key: key.to_owned(), what });
    }
}

/// The tree of a seed, of any size that the simulator uses.
pub(super) fn tree(seed: u64) -> Tree {
    grow(&mut Chance::new(seed), 2 + u32::try_from(seed % 12).unwrap())
}

fn check(seeds: std::ops::Range<u64>, also: Also) -> [u32; 4] {
    let mut ends = [0; 4];
    for seed in seeds {
        let tree = tree(seed);
        let (ended, facts) = play(seed, &tree, also);
        if let Err(why) = accepts(&tree, &ended, &facts) {
            panic!("seed {seed}: {why}\n{tree:#?}\n{ended:#?}\n{facts:#?}");
        }
        ends[match ended {
            Ended::Output(_) => 0,
            Ended::Failed(_) => 1,
            Ended::Cancelled => 2,
            Ended::Terminated => 3,
        }] += 1;
    }
    ends
}

#[test]
fn what_an_undisturbed_run_comes_to_is_accepted() {
    let [output, failed, ..] = check(0..500, Also::Nothing);
    assert!(output > 150 && failed > 50, "{output} {failed}");
}

#[test]
fn what_a_run_comes_to_that_is_asked_to_stop_is_accepted() {
    let [output, failed, cancelled, _] = check(1_000..1_300, Also::Cancel);
    assert!(output > 30 && failed > 20 && cancelled > 30, "{output} {failed} {cancelled}");
}

#[test]
fn what_a_run_comes_to_that_is_ended_is_accepted() {
    let [.., terminated] = check(2_000..2_120, Also::Terminate);
    assert!(terminated > 20, "{terminated}");
}

#[test]
fn same_run_comes_to_the_same() {
    for seed in 0..20 {
        let tree = tree(seed);
        assert_eq!(play(seed, &tree, Also::Nothing), play(seed, &tree, Also::Nothing));
    }
}
