//! Workers elsewhere, over long-poll.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::house::House;

const ORDER: &str = "workflow order(n) { return await Task.run(\"double\", n) }";

fn claim(worker: &str, id: u64, wait_ms: u64) -> Value {
    json!({ "worker": worker, "id": id, "names": ["double"], "host": "mill", "lease_ms": 1_000, "wait_ms": wait_ms })
}

async fn claimed(house: &House, worker: &str, id: u64) -> Value {
    house.post("/api/v1/work/claim", claim(worker, id, 20_000)).await.ok()["tasks"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_waits_is_given_a_task_as_soon_as_there_is_one() {
    let house = House::open().await;
    house.script("order.wf", ORDER).await;
    let waiting = async { (house.post("/api/v1/work/claim", claim("w", 1, 20_000)).await.ok(), Instant::now()) };
    let starting = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let started = Instant::now();
        house.start(json!({ "workflow": "order", "id": "a", "input": 21 })).await;
        started
    };
    let ((offers, given), started) = tokio::join!(waiting, starting);
    let late = given.duration_since(started);
    assert!(late < Duration::from_millis(900), "it was woken, and did not poll: {late:?}");
    let offer = &offers["tasks"][0];
    let sum: u64 = serde_json::from_value(offer["args"].clone())
        .or_else(|_| serde_json::from_value(offer["args"][0].clone()))
        .unwrap();
    assert_eq!((sum, offer["attempt"].as_u64(), offer["run"].as_str()), (21, Some(1), Some("a")));
    let workers = house.get("/api/v1/workers").await.ok();
    assert_eq!(workers["workers"][0]["holds"][0]["task"], offer["task"], "{workers}");
    let beat = house
        .post("/api/v1/work/heartbeat", json!({ "token": offer["token"], "progress": { "percent": 50 } }))
        .await
        .ok();
    assert_eq!(beat["cancelled"], false);
    assert!(beat["now"].as_str() < beat["until"].as_str(), "{beat}");
    house.post("/api/v1/work/complete", json!({ "token": offer["token"], "result": 42 })).await.ok();
    assert_eq!(house.result("a").await["output"], 42);
    house.post("/api/v1/work/complete", json!({ "token": offer["token"], "result": 42 })).await.ok();
    let again = house.post("/api/v1/work/complete", json!({ "token": offer["token"], "result": 43 })).await;
    assert_eq!(again.refused(409), "task_lost");
    assert!(!again.body["message"].as_str().unwrap().contains("task_lost"), "the code is not said twice: {again:?}");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_was_lost_is_repeated_and_gives_the_same_task() {
    let house = House::open().await;
    house.script("order.wf", ORDER).await;
    house.start(json!({ "workflow": "order", "id": "a", "input": 1 })).await;
    let first = claimed(&house, "w", 7).await;
    let again = claimed(&house, "w", 7).await;
    assert_eq!((&first["task"], &first["attempt"]), (&again["task"], &again["attempt"]));
    let other = house.post("/api/v1/work/claim", claim("w", 8, 0)).await.ok();
    assert_eq!(other["tasks"], json!([]));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_task_is_given_to_another_worker_and_the_first_one_is_told() {
    let house = House::open().await;
    house.script("order.wf", ORDER).await;
    house.start(json!({ "workflow": "order", "id": "a", "input": 1 })).await;
    let first = claimed(&house, "dead", 1).await;
    let second = claimed(&house, "alive", 1).await;
    assert_eq!((first["task"].clone(), second["attempt"].as_u64()), (second["task"].clone(), Some(2)));
    assert_eq!(first["idempotency_key"], second["idempotency_key"]);
    let late = house.post("/api/v1/work/complete", json!({ "token": first["token"], "result": 1 })).await;
    assert_eq!(late.refused(409), "task_lost");
    house.post("/api/v1/work/complete", json!({ "token": second["token"], "result": 2 })).await.ok();
    assert_eq!(house.result("a").await["output"], 2);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_fails_is_tried_again_and_one_that_failed_for_good_can_be_queued_anew() {
    let house = House::open().await;
    let task = json!({ "name": "double", "id": "t", "args": 1, "retry": { "attempts": 2, "initial_ms": 1 } });
    house.post("/api/v1/tasks", task).await.ok();
    let failure = json!({ "code": "broken", "message": "no", "data": { "n": 1 } });
    let first = claimed(&house, "w", 1).await;
    let failed = house.post("/api/v1/work/fail", json!({ "token": first["token"], "error": failure })).await.ok();
    assert!(failed["again_at"].is_string(), "{failed}");
    let given_back = claimed(&house, "w", 2).await;
    house.post("/api/v1/work/give-back", json!({ "token": given_back["token"] })).await.ok();
    let second = claimed(&house, "w", 3).await;
    assert_eq!(second["attempt"], 2, "what was given back did not count");
    let failed = house.post("/api/v1/work/fail", json!({ "token": second["token"], "error": failure })).await.ok();
    assert!(failed["again_at"].is_null(), "{failed}");
    let dead = house.get("/api/v1/tasks?state=dead").await.ok();
    assert_eq!(dead["tasks"][0]["task"], "t");
    let detail = house.get("/api/v1/tasks/t").await.ok();
    assert_eq!((&detail["args"], &detail["task"]["state"]), (&json!(1), &json!("dead")));
    house.post("/api/v1/tasks/t/retry", json!({})).await.ok();
    assert_eq!(house.post("/api/v1/tasks/t/retry", json!({})).await.refused(409), "task_not_dead");
    let third = claimed(&house, "w", 4).await;
    let permanent = json!({ "code": "broken", "message": "no", "permanent": true });
    house.post("/api/v1/work/fail", json!({ "token": third["token"], "error": permanent })).await.ok();
    house.delete("/api/v1/tasks/t").await.ok();
    assert_eq!(house.get("/api/v1/tasks/t").await.refused(404), "not_found");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_told_that_nobody_wants_its_task_any_more() {
    let house = House::open().await;
    house.script("order.wf", ORDER).await;
    house.start(json!({ "workflow": "order", "id": "a", "input": 1 })).await;
    let offer = claimed(&house, "w", 1).await;
    house.post("/api/v1/runs/a/cancel", json!({})).await.ok();
    house.result("a").await;
    let beat = house.post("/api/v1/work/heartbeat", json!({ "token": offer["token"] })).await;
    match beat.status.as_u16() {
        200 => assert_eq!(beat.body["cancelled"], true),
        _ => assert_eq!(beat.refused(409), "task_lost"),
    }
    house.leave().await;
}
