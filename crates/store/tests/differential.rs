//! Random operations against two stores in lockstep: every answer, and at the end the whole observable state, must be
//! what the reference store answers.
//!
//! `OUTLAST_CASES` says how many sequences, `OUTLAST_SEED` which ones, `OUTLAST_QUICK=1` asks for few.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "differential/call.rs"]
mod call;
#[path = "support/harness.rs"]
#[expect(dead_code, reason = "shared with the contract suite")]
mod harness;
#[path = "differential/laws.rs"]
mod laws;
#[path = "differential/names.rs"]
mod names;
#[path = "differential/ops.rs"]
mod ops;
#[path = "differential/resolve.rs"]
mod resolve;
#[path = "differential/sights.rs"]
mod sights;
#[path = "differential/tally.rs"]
mod tally;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use outlast_core::limits::Limits;
use outlast_store::Store;
use outlast_store::contract::{Fixture, Harness};
use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use self::call::{Call, Reply, make};
use self::harness::MemoryHarness;
use self::laws::{Laws, Verdict};
use self::ops::{Op, RunSpec};
use self::resolve::Memo;
use self::tally::Tally;

/// Small enough that sequences run into them.
fn limits() -> Limits {
    Limits { unconsumed_signals: 3, ..Limits::default() }
}

/// Two nodes, one run that is driven and one that waits to be, so that sequences begin with something to do.
fn prologue() -> Vec<Op> {
    let spec = RunSpec {
        run: (0, 0),
        workflow: 0,
        version: 0,
        input: 0,
        priority: 0,
        owner: Some((0, 0)),
        parent: None,
        attribute: Some(0),
        history: 0,
        signals: Vec::new(),
        flow: None,
    };
    vec![
        Op::Register { node: 0, lease: 100_000_000_000 },
        Op::Register { node: 1, lease: 100_000_000_000 },
        Op::PutNamespace { ns: 1 },
        Op::Create(vec![spec.clone(), RunSpec { run: (0, 1), owner: None, ..spec.clone() }]),
        Op::Create(vec![RunSpec { run: (1, 0), owner: Some((1, 1)), ..spec }]),
    ]
}

/// Runs one sequence on the reference store and on another.
async fn lockstep(subject: &dyn Harness, ops: &[Op], tally: &Tally) -> Verdict {
    let model = MemoryHarness.open(limits()).await;
    let fixture = subject.open(limits()).await;
    let walked = AssertUnwindSafe(walk(&model, &fixture, ops, tally)).catch_unwind().await;
    subject.close(fixture).await;
    walked.unwrap_or_else(|panic| resume_unwind(panic))
}

async fn walk(model: &Fixture, subject: &Fixture, ops: &[Op], tally: &Tally) -> Verdict {
    let (store, other): (Arc<dyn Store>, Arc<dyn Store>) = (model.store.clone(), subject.store.clone());
    let (mut memo, mut laws) = (Memo::default(), Laws::default());
    for op in prologue().iter().chain(ops) {
        let call = memo.resolve(&*store, op).await;
        if let Call::Clock(now) = call {
            model.clock.set(now);
            subject.clock.set(now);
        }
        let reply = ask_both(&*store, &*other, &call).await?;
        tally.count(&call, &reply);
        memo.learn(&call, &reply);
        laws.check(&*store, &call, &reply).await?;
    }
    for question in laws::questions(&*store, &memo.leases).await {
        ask_both(&*store, &*other, &question).await.map_err(|broken| format!("at the end: {broken}"))?;
    }
    Ok(())
}

async fn ask_both(model: &dyn Store, subject: &dyn Store, call: &Call) -> Result<Reply, String> {
    let expected = make(model, call.clone()).await;
    let found = make(subject, call.clone()).await;
    if found == expected {
        return Ok(expected);
    }
    Err(format!("{call:#?}\nwas answered\n{found:#?}\ninstead of\n{expected:#?}"))
}

fn quick() -> bool {
    std::env::var("OUTLAST_QUICK").is_ok_and(|quick| quick == "1")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs many sequences; a failure is shrunk and printed with its seed.
fn compare(subject: &dyn Harness, cases: u32, seed: u64) -> Tally {
    let tally = Tally::default();
    let cases = number("OUTLAST_CASES").map_or(if quick() { cases / 10 } else { cases }, |cases| cases as u32);
    let seed = number("OUTLAST_SEED").unwrap_or(seed);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let outcome = runner.run(&vec(ops::op(), 1..60), |ops| {
        runtime.block_on(lockstep(subject, &ops, &tally)).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => tally,
        Err(TestError::Fail(why, ops)) => {
            panic!("{} differs, OUTLAST_SEED={seed} OUTLAST_CASES={cases}\n{why}\nafter {ops:#?}", subject.name())
        }
        Err(TestError::Abort(why)) => panic!("gave up: {why}"),
    }
}

/// The laws on the reference store.
#[test]
fn memory_answers_like_memory() {
    compare(&MemoryHarness, 300, 1);
}

#[test]
fn sequences_reach_every_answer() {
    if number("OUTLAST_CASES").is_none() && !quick() {
        compare(&MemoryHarness, 2_500, 5).check();
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_answers_like_memory() {
    compare(&harness::SqliteHarness, 300, 1);
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_answers_like_memory() {
    compare(&harness::PostgresHarness, 100, 1);
}
