//! Random flows that are stopped at every commit of theirs: by a crash, by an operator, by both. Whatever happens, the outcome is
//! the same, and nothing that was done is done again.
//!
//! The reply to each commit is held back, so that the stop comes when just so many events are durable. `OUTLAST_SEED` says which
//! flows, `OUTLAST_CASES` how many.

// One generator for both: there the crate's own stage stops these flows at every event.
#[path = "../../../flow/tests/flow/random.rs"]
mod random;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::testing::Process;
use outlast::{Ctx, Engine, EngineError, Error, Event, Outlast, Status, StepContext, TaskContext};
use outlast_core::commit::InboxKind;
use outlast_core::id::{Index, Namespace, RunId, RunKey};
use outlast_store::faults::Hold;
use outlast_store::{Load, LoadFrom, Store as _};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::place::{Place, node};

const TICK: Duration = Duration::from_millis(50);
/// Flows with more events are left out: the work grows with the square.
const EVENTS_MAX: u64 = 70;
/// A flow that waits for nobody has one commit, and nowhere to be stopped.
const COMMITS_MIN: usize = 3;
/// So many flows are looked at for some that are worth it.
const DRAWS_MAX: usize = 400;

/// The bodies that ran, by their idempotency keys.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    fn ran(&self, key: &str) {
        self.0.lock().unwrap().push(key.to_owned());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

async fn kid(_: Ctx, _: Value) -> outlast::Result<Value> {
    Ok(json!("kid"))
}

/// An engine that can do whatever the flows have done.
async fn start(process: &Process, text: &str, ledger: &Ledger, snapshot_after: u64) -> Engine {
    let (echoed, failed, charged) = (ledger.clone(), ledger.clone(), ledger.clone());
    let echo = move |task: TaskContext, args: Value| {
        echoed.ran(task.idempotency_key());
        async move { Ok(args) }
    };
    let fail = move |task: TaskContext, _: Value| {
        failed.ran(task.idempotency_key());
        async move { Err::<Value, _>(Error::new("broken", "it broke").permanent()) }
    };
    let charge = move |step: StepContext, n: Value| {
        charged.ran(step.idempotency_key());
        async move { Ok(n) }
    };
    let engine: Outlast = node(process).task("echo", echo).task("fail", fail).step("charge", charge);
    let engine = engine.workflow("kid", kid).snapshot_after(snapshot_after);
    engine.flow("random.flow.yaml", text).start().await.unwrap()
}

/// What a run gave, without its name, or the code it failed with.
type Outcome = Result<String, String>;
/// The run that nobody stops.
const WHOLE: &str = "whole";

/// A run, and whoever answers what it asks.
struct Told<'p> {
    place: &'p Place,
    /// Who looks into the store.
    eyes: Process,
    run: String,
}

impl<'p> Told<'p> {
    fn new(place: &'p Place, run: String) -> Told<'p> {
        Told { place, eyes: place.process(), run }
    }

    /// Starts it. Its first commit is held back.
    async fn begin(&self, process: &Process, engine: &Engine) -> Hold {
        let held = process.faults().hold_next_reply("commit");
        engine.start("random", &json!({ "times": 2 })).id(&self.run).await.unwrap();
        self.signal(engine).await;
        self.place.world.sleep(TICK).await;
        held
    }

    async fn signal(&self, engine: &Engine) {
        for n in 0..40 {
            engine.run(&self.run).unwrap().signal("go", &"gone", &n.to_string()).await.ok();
        }
    }

    /// Approves what is to be approved, and lets time pass.
    async fn tend(&self, engine: &Engine) -> Status {
        let run = engine.run(&self.run).unwrap();
        for event in run.journal().await.unwrap() {
            if let Event::ApprovalRequested { key, .. } = event {
                run.approve(key.as_str(), true).id(key.as_str()).await.ok();
            }
        }
        self.place.world.sleep(TICK).await;
        run.status().await.unwrap()
    }

    /// Lets commits pass, one after the other, until so many events are durable: the sender of the last has not heard of it. None
    /// if the run is over before.
    async fn until(&self, process: &Process, engine: &Engine, events: u64, last: Option<Hold>) -> Option<Hold> {
        let commits = || process.faults().log().iter().filter(|call| **call == "commit").count();
        let mut last = last;
        loop {
            let before = commits();
            let held = process.faults().hold_next_reply("commit");
            // Only now does the one before go on: none slips through between them.
            drop(last);
            while commits() == before {
                if self.tend(engine).await.is_terminal() {
                    return None;
                }
            }
            // It has arrived by then.
            self.place.world.sleep(TICK).await;
            if self.length().await >= events {
                return Some(held);
            }
            last = Some(held);
        }
    }

    async fn length(&self) -> u64 {
        self.loaded().await.0.len() as u64
    }

    /// What is durable, and the keys of tasks whose results are.
    async fn loaded(&self) -> (Vec<Event>, BTreeSet<String>) {
        let run = RunKey { namespace: Namespace::default_namespace(), id: RunId::new(&*self.run).unwrap() };
        let load = Load { run, from: LoadFrom::Index(Index(0)) };
        let loaded = self.eyes.faults().load(vec![load]).await.remove(0).unwrap();
        let events: Vec<Event> = loaded.events.iter().map(|record| Event::decode(record).unwrap()).collect();
        let is_result = |kind| matches!(kind, InboxKind::TaskFinished | InboxKind::TaskFailed);
        let inbox = loaded.inbox.iter().filter(|item| is_result(item.kind)).filter_map(|item| item.key.as_ref());
        let recorded = events.iter().filter_map(|event| match event {
            Event::TaskFinished { key, .. }
            | Event::TaskFailed { key, .. }
            | Event::StepFinished { key, .. }
            | Event::StepFailed { key, .. } => Some(key),
            _ => None,
        });
        let done = inbox.chain(recorded).map(|key| format!("/{}/0/{key}", self.run)).collect();
        (events, done)
    }

    /// To the end, whoever paused it.
    async fn finish(&self, engine: &Engine) -> Outcome {
        let run = engine.run(&self.run).unwrap();
        loop {
            match self.tend(engine).await {
                Status::Paused => drop(run.resume_with("go on").await),
                Status::Parked => panic!("{:?}", run.view().await.unwrap().note),
                status if status.is_terminal() => break,
                _ => {}
            }
        }
        match run.result::<Value>().await {
            Ok(output) => Ok(output.to_string().replace(&self.run, "run").replace(WHOLE, "run")),
            Err(EngineError::Failed(failure)) => Err(failure.code),
            Err(other) => panic!("{other}"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    Crash,
    Pause,
    /// The pause was asked for, and has not begun.
    CrashBeforePause,
    CrashInPause,
}

const STOPS: [Stop; 4] = [Stop::Crash, Stop::Pause, Stop::CrashBeforePause, Stop::CrashInPause];

/// One run that is stopped when so many events are durable; what became of it.
async fn stopped(place: &Place, text: &str, events: u64, stop: Stop, snapshot_after: u64) -> Outcome {
    let (ledger, told) = (Ledger::default(), Told::new(place, format!("{events} {stop:?}")));
    let first = place.process();
    let engine = start(&first, text, &ledger, snapshot_after).await;
    let mut held = Some(told.begin(&first, &engine).await);
    if told.length().await < events {
        held = told.until(&first, &engine, events, held).await;
    }
    if !matches!(stop, Stop::Crash) {
        engine.run(&told.run).unwrap().pause("x").await.ok();
    }
    if matches!(stop, Stop::Pause | Stop::CrashInPause) {
        drop(held);
        let mut status = told.tend(&engine).await;
        while status != Status::Paused && !status.is_terminal() {
            status = told.tend(&engine).await;
        }
    }
    if matches!(stop, Stop::Pause) {
        let ended = told.finish(&engine).await;
        let ran = ledger.all();
        assert_eq!(ran.iter().collect::<BTreeSet<_>>().len(), ran.len(), "a body ran twice: {ran:?}");
        engine.shutdown().await;
        return ended;
    }
    first.crash();
    let (_, done) = told.loaded().await;
    let before = ledger.all().len();
    let second = place.process();
    let engine = start(&second, text, &ledger, snapshot_after).await;
    let ended = told.finish(&engine).await;
    for key in &ledger.all()[before..] {
        assert!(!done.iter().any(|done| key.ends_with(done.as_str())), "{key} was done and ran again");
    }
    let (journal, _) = told.loaded().await;
    check_once(&journal);
    engine.shutdown().await;
    ended
}

/// No child, iteration or node is completed twice.
fn check_once(journal: &[Event]) {
    let completed = journal.iter().filter_map(|event| match event {
        Event::ContainerChildCompleted { child, .. } => Some(child.to_string()),
        Event::ContainerIterationCompleted { node, index, .. } => Some(format!("{node} {index}")),
        Event::NodeCompleted { node, .. } => Some(node.to_string()),
        _ => None,
    });
    let completed: Vec<String> = completed.collect();
    assert_eq!(completed.iter().collect::<BTreeSet<_>>().len(), completed.len(), "{completed:?}");
}

/// The run that nobody stopped, begun again at every event; how often.
async fn forked(place: &Place, text: &str, expected: &Outcome) -> usize {
    let (ledger, process) = (Ledger::default(), place.process());
    let engine = start(&process, text, &ledger, 64).await;
    let whole = Told::new(place, WHOLE.to_owned());
    let (journal, _) = whole.loaded().await;
    for at in 0..journal.len() as u64 {
        let told = Told::new(place, format!("fork {at}"));
        engine.run(WHOLE).unwrap().fork(at).id(&told.run).await.unwrap();
        let (_, done) = told.loaded().await;
        let before = ledger.all().len();
        told.signal(&engine).await;
        assert_eq!(&told.finish(&engine).await, expected, "a fork at {at}\n{text}");
        for key in &ledger.all()[before..] {
            assert!(!done.iter().any(|done| key.ends_with(done.as_str())), "{key} was done and ran again");
        }
        check_once(&told.loaded().await.0);
    }
    engine.shutdown().await;
    journal.len()
}

/// What becomes of a flow that nobody stops, and how many events were durable after each of its commits.
async fn unstopped(place: &Place, text: &str) -> (Outcome, Vec<u64>) {
    let (ledger, told) = (Ledger::default(), Told::new(place, WHOLE.to_owned()));
    let process = place.process();
    let engine = start(&process, text, &ledger, 64).await;
    let mut lengths = BTreeSet::new();
    let mut held = Some(told.begin(&process, &engine).await);
    while held.is_some() {
        lengths.insert(told.length().await);
        held = told.until(&process, &engine, 0, held).await;
    }
    let ended = told.finish(&engine).await;
    engine.shutdown().await;
    (ended, lengths.into_iter().collect())
}

/// Seen over all flows: the property is worth nothing if they are.
#[derive(Debug, Default)]
struct Seen {
    flows: usize,
    failed: usize,
    stops: usize,
    forks: usize,
    longest: u64,
}

fn everywhere(place: &Place, text: &str, snapshot_after: u64, seen: &mut Seen) {
    place.world.block_on(async {
        let (expected, lengths) = unstopped(place, text).await;
        let events = lengths.last().copied().unwrap_or(0);
        if events > EVENTS_MAX || lengths.len() < COMMITS_MIN {
            return;
        }
        seen.flows += 1;
        seen.failed += usize::from(expected.is_err());
        seen.longest = seen.longest.max(events);
        seen.forks += forked(place, text, &expected).await;
        for &events in &lengths {
            for stop in STOPS {
                let ended = stopped(place, text, events, stop, snapshot_after).await;
                assert_eq!(ended, expected, "{stop:?} at {events} of {lengths:?}\n{text}");
                seen.stops += 1;
            }
        }
    });
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

fn flows(cases: usize, place: impl Fn() -> Place) {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number("OUTLAST_SEED").unwrap_or(4).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let cases = number("OUTLAST_CASES").map_or(cases, |cases| (cases / 100).max(1) as usize);
    let mut seen = Seen::default();
    for _ in 0..DRAWS_MAX {
        if seen.flows >= cases && seen.failed > 0 && seen.longest > 30 {
            break;
        }
        let flow = random::flows().new_tree(&mut runner).unwrap().current();
        // With a snapshot at every commit, and now and then.
        let snapshot_after = if seen.flows.is_multiple_of(2) { 0 } else { 5 };
        everywhere(&place(), &flow.text(), snapshot_after, &mut seen);
    }
    assert!(seen.flows >= cases && seen.failed > 0 && seen.longest > 30, "{seen:?}");
}

#[test]
fn random_flows_survive_a_stop_at_every_commit_and_a_fork_at_every_event_in_memory() {
    flows(8, Place::memory);
}

#[test]
fn random_flows_survive_a_stop_at_every_commit_and_a_fork_at_every_event_on_sqlite() {
    flows(4, Place::sqlite);
}
