//! From the start of a run with one task to its result: over HTTP, and in one process.

use std::time::Instant;

use outlast::Outlast;
use outlast_tasks::{Options, builtins};
use serde_json::{Value, json};

use crate::binary::round;
use crate::house::{House, folder};

const SCRIPT: &str = "workflow one(n) {\n  return await Task.run(\"noop\", n)\n}\n";
const RUNS: usize = 300;
/// Before anything is measured.
const WARM: usize = 30;

/// Medians in milliseconds: over HTTP, embedded.
pub(crate) async fn measure() -> (f64, f64) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // They take turns, so that neither has a better disk.
    let (mut http, mut embedded) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        http.extend(over_http().await);
        embedded.extend(in_process().await);
    }
    (median(http), median(embedded))
}

async fn over_http() -> Vec<f64> {
    let house = House::start("serve", &[("one.wf", SCRIPT)]);
    let client = reqwest::Client::new();
    let base = format!("http://{}/api/v1/runs", house.address);
    let mut took = Vec::new();
    for number in 0..WARM + RUNS {
        let begun = Instant::now();
        let body = json!({ "workflow": "one", "input": number }).to_string();
        let request = client.post(&base).header("content-type", "application/json").body(body);
        let started: Value = serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap()).unwrap();
        let run = started["run"].as_str().unwrap();
        let result = client.get(format!("{base}/{run}/result?wait_ms=10000")).send().await.unwrap();
        let result: Value = serde_json::from_slice(&result.bytes().await.unwrap()).unwrap();
        assert_eq!(result["output"], number);
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    took.split_off(WARM)
}

async fn in_process() -> Vec<f64> {
    let folder = folder();
    let builder = Outlast::sqlite(folder.path().join("one.db")).script("one.wf", SCRIPT);
    let builder = builtins(Options::default()).into_iter().fold(builder, Outlast::handler);
    let engine = builder.start().await.unwrap();
    let mut took = Vec::new();
    for number in 0..WARM + RUNS {
        let begun = Instant::now();
        let result: usize = engine.start("one", &number).await.unwrap().result().await.unwrap();
        assert_eq!(result, number);
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    engine.shutdown().await;
    took.split_off(WARM)
}

fn median(mut took: Vec<f64>) -> f64 {
    took.sort_by(f64::total_cmp);
    round(took[took.len() / 2])
}
