//! A thousand subscribers of server-sent events.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Barrier, mpsc};

use crate::binary::round;
use crate::house::House;

const SCRIPT: &str = "workflow listen() {\n  while (true) await Signal.next(\"go\")\n}\n";
/// Fifty subscribers each.
const RUNS: usize = 20;
const SUBSCRIBERS: usize = 1_000;
/// To each run.
const SIGNALS: usize = 20;

/// The median and the 99th percentile, in milliseconds, from an event's own time to its arrival.
pub(crate) async fn measure() -> (f64, f64) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let house = House::start("serve", &[("listen.wf", SCRIPT)]);
    let client = reqwest::Client::new();
    let base = format!("http://{}/api/v1/runs", house.address);
    let send = async |url: String, body: Value| {
        let request = client.post(url).header("content-type", "application/json").body(body.to_string());
        assert!(request.send().await.unwrap().status().is_success());
    };
    for run in 0..RUNS {
        send(base.clone(), json!({ "workflow": "listen", "id": format!("r{run}") })).await;
    }
    let there = Arc::new(Barrier::new(SUBSCRIBERS + 1));
    let (tell, mut told) = mpsc::unbounded_channel();
    for number in 0..SUBSCRIBERS {
        tokio::spawn(subscribe(house.address.clone(), number % RUNS, Arc::clone(&there), tell.clone()));
    }
    drop(tell);
    there.wait().await;
    for signal in 0..SIGNALS {
        for run in 0..RUNS {
            send(format!("{base}/r{run}/signals/go"), json!({ "payload": signal })).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut took: Vec<f64> = Vec::new();
    while took.len() < SUBSCRIBERS * SIGNALS {
        let next = tokio::time::timeout(Duration::from_secs(30), told.recv()).await;
        took.push(next.expect("every subscriber is told everything").expect("somebody listens"));
    }
    took.sort_by(f64::total_cmp);
    (round(took[took.len() / 2]), round(took[took.len() * 99 / 100]))
}

async fn subscribe(address: String, run: usize, there: Arc<Barrier>, tell: mpsc::UnboundedSender<f64>) {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!("GET /api/v1/runs/r{run}/stream HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.contains("200"), "{first}");
    there.wait().await;
    while let Ok(Some(line)) = lines.next_line().await {
        let Some(event) = line.strip_prefix("data:").and_then(|data| serde_json::from_str::<Value>(data).ok()) else {
            continue;
        };
        if event["kind"] == "SIGNAL_RESOLVED" {
            let at: jiff::Timestamp = event["at"].as_str().unwrap().parse().unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1_000.0;
            let _ = tell.send((now - at.as_millisecond() as f64).max(0.0));
        }
    }
}
