//! Compares what was acknowledged and witnessed with what the store holds in the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast::{Engine, Event, Outlast, Status};

use crate::client::{Acked, answer, id, patiently};
use crate::member::{Order, PARTS};
use crate::witness::{self, Begun};

/// How long everything may take to come to its end once nothing goes wrong any more.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn judge(url: &str, acked: &Acked, witness: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = patiently(|| Outlast::postgres(url).without_loops().start()).await;
        let begun = Instant::now();
        for number in &acked.started {
            come_to_its_end(&engine, *number, begun).await;
        }
        let attempts = last_attempts(&witness::read(witness));
        for number in &acked.started {
            examine(&engine, *number, acked.answered.contains(number), &attempts).await;
        }
        let diagnosis = engine.doctor().await.unwrap();
        assert_eq!(diagnosis.findings, [], "the doctor has found something");
        let left = engine.tasks().await.unwrap().tasks;
        assert!(left.is_empty(), "all runs have ended, and there are tasks: {left:?}");
        engine.shutdown().await;
    });
}

/// A run that was acknowledged is there, and ends.
async fn come_to_its_end(engine: &Engine, number: u64, begun: Instant) {
    let run = engine.run(&id(number)).unwrap();
    loop {
        let status = run.status().await.unwrap_or_else(|error| panic!("order {number} was acknowledged: {error}"));
        if status.is_terminal() {
            assert_eq!(status, Status::Completed, "order {number}: {}", run.explain().await.unwrap());
            return;
        }
        if begun.elapsed() > PATIENCE {
            panic!("order {number} does not end: {}", run.explain().await.unwrap());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The last attempt at each step and task that anybody began.
fn last_attempts(begun: &[Begun]) -> BTreeMap<String, u32> {
    let mut last = BTreeMap::new();
    for Begun { key, attempt } in begun {
        let known = last.entry(key.clone()).or_insert(*attempt);
        *known = (*known).max(*attempt);
    }
    last
}

async fn examine(engine: &Engine, number: u64, answered: bool, attempts: &BTreeMap<String, u32>) {
    let run = engine.run(&id(number)).unwrap();
    let order = engine.run(&id(number)).unwrap().result::<Order>().await.unwrap();
    let values: Vec<u64> = order.parts.iter().map(|part| part.value).collect();
    let expected: Vec<u64> = (0..u64::from(PARTS)).map(|part| (number + part) * 2).collect();
    assert_eq!(values, expected, "order {number}");
    assert!(answered, "order {number} ended before anybody answered");
    assert_eq!(order.answer, answer(number), "order {number}");
    assert_eq!(order.sum, values.iter().sum::<u64>() + order.answer, "order {number}");
    for part in &order.parts {
        // Whoever began later had taken the task away from the one before: its result must not have counted.
        let last = attempts.get(&part.key).copied();
        assert_eq!(last, Some(part.attempt), "order {number}: the result of a stale attempt at {}", part.key);
    }
    let journal = run.journal().await.unwrap();
    let count = |is: fn(&Event) -> bool| journal.iter().filter(|event| is(event)).count();
    let results = count(|event| matches!(event, Event::TaskFinished { .. }));
    let signals = count(|event| matches!(event, Event::SignalResolved { .. }));
    let steps = count(|event| matches!(event, Event::StepFinished { .. }));
    assert_eq!((results, signals, steps), (PARTS as usize, 1, 1), "order {number}: each is recorded once");
}
