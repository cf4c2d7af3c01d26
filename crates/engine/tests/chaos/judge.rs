//! Compares what was acknowledged and witnessed with what the store holds in the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast::{Engine, Event, Outlast, Status};

use crate::client::{Acked, Fate, answer, fate, id, patiently};
use crate::member::{Order, PARTS, Part};
use crate::witness::{self, Begun};
use crate::{lingering, ticking};

/// How long everything may take to come to its end once nothing goes wrong any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn judge(url: &str, acked: &Acked, witness: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = patiently(|| Outlast::postgres(url).without_loops().start()).await;
        let begun = Instant::now();
        let mut ended = BTreeMap::new();
        for number in &acked.started {
            ended.insert(*number, come_to_its_end(&engine, &id(*number), begun).await);
        }
        let lingered = lingering::ends(&engine, acked, begun).await;
        let ticked = ticking::ends(&engine, acked, begun).await;
        // Nobody has anything left to do, so that nobody writes any more.
        let witnessed = witness::read(witness);
        let attempts = last_attempts(&witnessed);
        for (number, status) in ended {
            examine(&engine, number, status, acked, &attempts).await;
        }
        lingering::judge(&engine, &lingered, &attempts).await;
        ticking::judge(&engine, &ticked, &witnessed).await;
        let diagnosis = engine.doctor().await.unwrap();
        assert_eq!((diagnosis.runs, diagnosis.findings), (0, vec![]), "a run has not ended, or is not well");
        let left = engine.tasks().await.unwrap().tasks;
        assert!(left.is_empty(), "all runs have ended, and there are tasks: {left:?}");
        engine.shutdown().await;
    });
}

/// A run that was acknowledged is there, and ends.
pub(crate) async fn come_to_its_end(engine: &Engine, id: &str, begun: Instant) -> Status {
    let run = engine.run(id).unwrap();
    loop {
        let status = run.status().await.unwrap_or_else(|error| panic!("{id} was acknowledged: {error}"));
        if status.is_terminal() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            panic!("{id} does not end: {}", run.explain().await.unwrap());
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

async fn examine(engine: &Engine, number: u64, status: Status, acked: &Acked, attempts: &BTreeMap<String, u32>) {
    let run = engine.run(&id(number)).unwrap();
    let journal = run.journal().await.unwrap();
    recorded_once_and_not_stale(number, &journal, attempts);
    match expected(number, acked) {
        Some(expected) => assert_eq!(status, expected, "order {number}: {}", run.explain().await.unwrap()),
        None => assert!(matches!(status, Status::Completed | Status::Cancelled), "order {number} {status:?}"),
    }
    let requests = journal.iter().filter(|event| matches!(event, Event::CancelRequested { .. })).count();
    if status == Status::Cancelled {
        assert_eq!(requests, 1, "order {number}: it stops once");
        assert!(matches!(journal.last(), Some(Event::RunCancelled { .. })), "order {number}: {journal:?}");
        return;
    }
    assert_eq!(requests, 0, "order {number} went on although it knew that it should stop");
    assert!(acked.answered.contains(&number), "order {number} ended before anybody answered");
    let order = run.result::<Order>().await.unwrap();
    let values: Vec<u64> = order.parts.iter().map(|part| part.value).collect();
    let parts: Vec<u64> = (0..u64::from(PARTS)).map(|part| (number + part) * 2).collect();
    assert_eq!(values, parts, "order {number}");
    assert_eq!(order.answer, answer(number), "order {number}");
    assert_eq!(order.sum, values.iter().sum::<u64>() + order.answer, "order {number}");
    let count = |is: fn(&Event) -> bool| journal.iter().filter(|event| is(event)).count();
    let results = count(|event| matches!(event, Event::TaskFinished { .. }));
    let signals = count(|event| matches!(event, Event::SignalResolved { .. }));
    let steps = count(|event| matches!(event, Event::StepFinished { .. }));
    assert_eq!((results, signals, steps), (PARTS as usize, 1, 1), "order {number}: each is recorded once");
}

/// How an order must have ended, where that is certain: one that was cancelled behind its answer may have been about to return.
fn expected(number: u64, acked: &Acked) -> Option<Status> {
    match fate(number) {
        Fate::Answered => Some(Status::Completed),
        Fate::CancelledFirst => {
            assert!(!acked.too_late.contains(&number), "order {number} ended before anybody answered");
            Some(Status::Cancelled)
        }
        Fate::AnsweredFirst if acked.too_late.contains(&number) => Some(Status::Completed),
        Fate::AnsweredFirst => None,
    }
}

/// Each part's result is there once at most, and not that of an attempt whose task somebody else had taken.
fn recorded_once_and_not_stale(number: u64, journal: &[Event], attempts: &BTreeMap<String, u32>) {
    let results = journal.iter().filter_map(|event| match event {
        Event::TaskFinished { result, .. } => Some(serde_json::from_slice::<Part>(result).unwrap()),
        _ => None,
    });
    let mut keys = Vec::new();
    for part in results {
        let last = attempts.get(&part.key).copied();
        assert_eq!(last, Some(part.attempt), "order {number}: the result of a stale attempt at {}", part.key);
        assert!(!keys.contains(&part.key), "order {number}: {} is recorded twice", part.key);
        keys.push(part.key);
    }
}
