//! One noisy namespace of a hundred: what the tasks of the quiet ones wait for, alone and beside it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use outlast::{Engine, TaskContext};

use crate::Place;
use crate::report::{Report, percentile};

/// Namespaces that queue a task each.
const QUIET: usize = 99;
/// Tasks of the noisy one, which is more than it can have done meanwhile.
const NOISE: usize = 6_000;
/// Tasks that are queued at the same time.
const AT_ONCE: usize = 250;
/// What the worker does at once, and how long each takes: neither the store nor the machine is what they wait for.
const HANDS: usize = 10;
const WORK: Duration = Duration::from_millis(10);
/// Alone and beside the noise in turn.
const ROUNDS: usize = 5;

/// When each task of the quiet ones was done.
static DONE: Mutex<Vec<(usize, Instant)>> = Mutex::new(Vec::new());
/// Tasks of the noisy one that were done.
static NOISY: AtomicUsize = AtomicUsize::new(0);

async fn work(_: TaskContext, quiet: Option<usize>) -> outlast::Result<()> {
    tokio::time::sleep(WORK).await;
    if let Some(number) = quiet {
        DONE.lock().unwrap().push((number, Instant::now()));
    } else {
        NOISY.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// The 99th percentile from queueing a task until it is done: all quiet ones at once, and one after the other.
pub(crate) async fn measure(place: &Place, report: &Report) {
    let engine = place.engine().await.task("work", work).tasks_max(HANDS).start().await.unwrap();
    let mut quiet = Vec::new();
    for number in 0..QUIET {
        quiet.push(engine.in_namespace(&format!("quiet-{number}")).await.unwrap());
    }
    let mut alone = Waited::default();
    let mut beside = Waited::default();
    for _ in 0..ROUNDS {
        alone.listen(&quiet).await;
        NOISY.store(0, Ordering::SeqCst);
        make_noise(&engine).await;
        beside.listen(&quiet).await;
        assert!(NOISY.load(Ordering::SeqCst) < NOISE, "the noise ended before everybody had listened");
        until(|| NOISY.load(Ordering::SeqCst) == NOISE).await;
    }
    report.against("noisy_burst", percentile(&beside.burst, 99), percentile(&alone.burst, 99), "ms p99");
    report.against("noisy_sparse", percentile(&beside.sparse, 99), percentile(&alone.sparse, 99), "ms p99");
    engine.shutdown().await;
}

/// How long tasks of quiet namespaces took, in milliseconds.
#[derive(Default)]
struct Waited {
    burst: Vec<f64>,
    sparse: Vec<f64>,
}

impl Waited {
    async fn listen(&mut self, quiet: &[Engine]) {
        DONE.lock().unwrap().clear();
        let begun = Instant::now();
        let all = quiet.iter().enumerate().map(|(number, engine)| queue(engine, Some(number)));
        join_all(all).await;
        until(|| DONE.lock().unwrap().len() == QUIET).await;
        self.burst.extend(DONE.lock().unwrap().iter().map(|(_, at)| millis(at.duration_since(begun))));
        for (number, engine) in quiet.iter().enumerate() {
            DONE.lock().unwrap().clear();
            let begun = Instant::now();
            queue(engine, Some(number)).await;
            until(|| !DONE.lock().unwrap().is_empty()).await;
            self.sparse.extend(DONE.lock().unwrap().iter().map(|(_, at)| millis(at.duration_since(begun))));
        }
    }
}

async fn make_noise(engine: &Engine) {
    for _ in 0..NOISE / AT_ONCE {
        join_all((0..AT_ONCE).map(|_| queue(engine, None))).await;
    }
}

async fn queue(engine: &Engine, quiet: Option<usize>) {
    engine.enqueue("work", &quiet).await.unwrap();
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
