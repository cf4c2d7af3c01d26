//! Runs that would stay for ever: only a cancellation ends them, and they tidy up before they go.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast::{Ctx, Engine, Event, Status, TaskContext};

use crate::client::{Acked, patiently, told};
use crate::judge::come_to_its_end;
use crate::member::patience;
use crate::witness;

/// Runs that stay at the same time.
const STAYING_MAX: usize = 4;
/// The longest that one may stay.
const STAY_MAX_MS: u64 = 3_000;

pub(crate) fn id(number: u64) -> String {
    format!("linger-{number}")
}

/// Waits for a task that never ends.
pub(crate) async fn linger(ctx: Ctx, (): ()) -> outlast::Result<()> {
    let Err(error) = ctx.task::<()>("stay", &()).retry(patience()).await else { return Ok(()) };
    let tidy = ctx.step("tidy", async |step| {
        witness::begun(step.idempotency_key(), step.attempt());
        Ok(())
    });
    tidy.retry(patience()).await?;
    Err(error)
}

/// Takes up one of a worker's places until it is stopped: if nobody stopped them, none would be left for orders.
pub(crate) async fn stay(_: TaskContext, (): ()) -> outlast::Result<()> {
    std::future::pending().await
}

/// Starts such runs and cancels each after a while: also at once, before anybody drives it.
pub(crate) async fn ask(engine: &Engine, stop: &AtomicBool, acked: &Mutex<Acked>) {
    let mut number = 0;
    let mut staying: Vec<(u64, Instant)> = Vec::new();
    while !stop.load(Ordering::SeqCst) || !staying.is_empty() {
        if staying.len() < STAYING_MAX && !stop.load(Ordering::SeqCst) {
            number += 1;
            patiently(|| async { engine.start("linger", &()).id(&id(number)).await }).await;
            staying.push((number, Instant::now() + Duration::from_millis(number * 731 % STAY_MAX_MS)));
        }
        let (due, later): (Vec<_>, Vec<_>) = staying.into_iter().partition(|(_, until)| *until <= Instant::now());
        staying = later;
        for (number, _) in due {
            let run = engine.run(&id(number)).unwrap();
            let in_time = told(|| async { run.cancel("enough").id("the end").await }).await;
            assert!(in_time, "{} ended, and nobody had told it to", id(number));
            acked.lock().unwrap().lingered.push(number);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How each that was told to stop has ended.
pub(crate) async fn ends(engine: &Engine, acked: &Acked, begun: Instant) -> BTreeMap<String, Status> {
    let mut ends = BTreeMap::new();
    for id in acked.lingered.iter().copied().map(id) {
        let status = come_to_its_end(engine, &id, begun).await;
        ends.insert(id, status);
    }
    ends
}

/// Whoever was told to stop has stopped, once, and has tidied up before.
pub(crate) async fn judge(engine: &Engine, ends: &BTreeMap<String, Status>, attempts: &BTreeMap<String, u32>) {
    for (id, status) in ends {
        let run = engine.run(id).unwrap();
        assert_eq!(*status, Status::Cancelled, "{id} was told to stop: {}", run.explain().await.unwrap());
        let journal = run.journal().await.unwrap();
        let count = |is: fn(&Event) -> bool| journal.iter().filter(|event| is(event)).count();
        let requests = count(|event| matches!(event, Event::CancelRequested { .. }));
        let tidied = count(|event| matches!(event, Event::StepFinished { .. }));
        let finished = count(|event| matches!(event, Event::TaskFinished { .. }));
        assert_eq!((requests, tidied, finished), (1, 1, 0), "{id}: {journal:?}");
        assert!(matches!(journal.last(), Some(Event::RunCancelled { .. })), "{id}: {journal:?}");
        assert!(attempts.keys().any(|key| key.contains(&format!("{id}/"))), "{id} has tidied up, and nobody saw it");
    }
}
