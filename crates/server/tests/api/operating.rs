//! Health, metrics, the doctor, and how a server ends.

use std::time::{Duration, Instant};

use outlast_server::Options;
use reqwest::Method;
use serde_json::json;

use crate::house::House;

const WAITS: &str = "workflow waits(input) { return await Signal.next(\"word\") }";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_how_it_is() {
    let house = House::with(Options::default()).await;
    let health = house.get("/healthz").await.ok();
    assert_eq!((health["status"].clone(), health["version"].clone()), (json!("ok"), json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(house.get("/readyz").await.ok()["status"], "ready");
    house.script("waits.wf", WAITS).await;
    house.start(json!({ "workflow": "waits", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    let metrics = house.get("/metrics").await.ok();
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("outlast_runs{namespace=\"default\",status=\"waiting\"} 1"), "{metrics}");
    assert!(metrics.contains("outlast_commit_seconds_bucket"), "{metrics}");
    let response = house.request(Method::GET, "/").send().await.unwrap();
    assert!(response.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    // The page, or the plain one of a server that was built without it.
    assert!(response.text().await.unwrap().contains("<title>Outlast</title>"));
    let report = house.post("/api/v1/doctor", json!({ "repair": false })).await.ok();
    assert_eq!((report["healthy"].clone(), report["runs"].clone()), (json!(true), json!(1)));
    assert_eq!(house.get("/nothing").await.refused(404), "not_found");
    assert_eq!(house.delete("/healthz").await.refused(405), "method_not_allowed");
    let document: serde_json::Value = house.get("/openapi.json").await.ok();
    assert!(document["paths"]["/api/v1/runs"].is_object());
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_answers_whoever_waits_and_takes_nobody_new() {
    let mut house = House::open().await;
    house.script("waits.wf", WAITS).await;
    house.start(json!({ "workflow": "waits", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    let (client, address) = (house.client.clone(), house.address.clone());
    let polling = tokio::spawn(async move {
        let path = format!("{address}/api/v1/runs/a/result?wait_ms=60000");
        client.get(path).send().await.unwrap().status().as_u16()
    });
    let (client, address) = (house.client.clone(), house.address.clone());
    let streaming = tokio::spawn(async move {
        let response = client.get(format!("{address}/api/v1/runs/a/stream")).send().await.unwrap();
        response.text().await.unwrap()
    });
    let (client, address) = (house.client.clone(), house.address.clone());
    let working = tokio::spawn(async move {
        let claim = json!({ "worker": "w", "id": 1, "names": ["x"], "wait_ms": 60_000 });
        let request = client.post(format!("{address}/api/v1/work/claim")).json(&claim);
        request.send().await.unwrap().status().as_u16()
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let asked = Instant::now();
    house.stop().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(polling.await.unwrap(), 202);
    assert_eq!(working.await.unwrap(), 200);
    assert!(streaming.await.unwrap().contains("SIGNAL_AWAITED"));
    let after = crate::house::client().get(format!("{}/healthz", house.address)).send().await;
    assert!(after.is_err(), "nobody listens any more");
    house.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_engine_is_gone_is_not_ready_and_says_so() {
    let house = House::open().await;
    house.engine.shutdown().await;
    assert_eq!(house.get("/healthz").await.ok()["status"], "ok");
    let ready = house.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.body["status"].as_str()), (503, Some("unavailable")));
    assert_eq!(house.get("/api/v1/runs").await.refused(503), "stopping");
    house.leave_server().await;
}
