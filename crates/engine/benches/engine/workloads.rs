//! W1 to W4 and W6.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outlast::Engine;

use crate::Place;
use crate::report::percentile;
use crate::workflows::{RAN, register};

const W1_STEPS: usize = 1_000;
const W2_RUNS: usize = 10_000;
pub(crate) const W2_IN_FLIGHT: usize = 256;
pub(crate) const W2_STEPS: usize = 5;
const W3_RUNS: usize = 300;
const W4_STEPS: usize = 1_000;
pub(crate) const W6_STEPS: usize = 10_000;

async fn start(place: &Place) -> Engine {
    register(place.engine().await).start().await.unwrap()
}

/// One run, many steps: steps per second.
pub(crate) async fn w1(place: &Place) -> f64 {
    let engine = start(place).await;
    // A write-ahead log that still grows costs twice as much per sync; the ceiling's has long been full.
    let _: usize = engine.start("sequence", &W1_STEPS).await.unwrap().result().await.unwrap();
    let begun = Instant::now();
    let _: usize = engine.start("sequence", &W1_STEPS).await.unwrap().result().await.unwrap();
    let rate = W1_STEPS as f64 / begun.elapsed().as_secs_f64();
    engine.shutdown().await;
    rate
}

/// Many runs of five steps, some hundred in flight: runs per second.
pub(crate) async fn w2(place: &Place) -> f64 {
    let engine = start(place).await;
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..W2_IN_FLIGHT {
        let (engine, next) = (engine.clone(), next.clone());
        clients.push(tokio::spawn(async move {
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= W2_RUNS {
                    return;
                }
                let handle = engine.start("sequence", &W2_STEPS).await.unwrap();
                let _: usize = handle.result().await.unwrap();
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    let rate = W2_RUNS as f64 / begun.elapsed().as_secs_f64();
    engine.shutdown().await;
    rate
}

/// Milliseconds.
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Start to result of a run with one step, one at a time.
pub(crate) async fn w3(place: &Place) -> Latency {
    let engine = start(place).await;
    let mut took = Vec::new();
    for _ in 0..W3_RUNS {
        let begun = Instant::now();
        let handle = engine.start("sequence", &1).await.unwrap();
        let _: usize = handle.result().await.unwrap();
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    engine.shutdown().await;
    Latency { p50: percentile(&took, 50), p99: percentile(&took, 99) }
}

/// One run with a thousand steps at once: milliseconds.
pub(crate) async fn w4(place: &Place) -> f64 {
    let engine = start(place).await;
    // The ceiling's log is full after its first round.
    let _: usize = engine.start("parallel", &W4_STEPS).await.unwrap().result().await.unwrap();
    let begun = Instant::now();
    let _: usize = engine.start("parallel", &W4_STEPS).await.unwrap().result().await.unwrap();
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    engine.shutdown().await;
    took
}

/// A run with a long journal that waits.
pub(crate) async fn prepare_w6(place: &Place) {
    let engine = start(place).await;
    engine.start("long", &W6_STEPS).id("long").await.unwrap();
    let run = engine.run("long").unwrap();
    while run.status().await.unwrap() != outlast::Status::Waiting {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.shutdown().await;
}

/// A fresh engine: from the wake until the next body runs, in milliseconds.
pub(crate) async fn w6(place: &Place) -> f64 {
    let engine = start(place).await;
    *RAN.lock().unwrap() = None;
    let run = engine.run("long").unwrap();
    let id = format!("{:?}", Instant::now());
    let begun = Instant::now();
    run.signal("more", &true, &id).await.unwrap();
    let ran = loop {
        if let Some(ran) = *RAN.lock().unwrap() {
            break ran;
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    };
    while run.status().await.unwrap() != outlast::Status::Waiting {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    engine.shutdown().await;
    ran.duration_since(begun).as_secs_f64() * 1_000.0
}
