//! Runs that have failed, and are tried again.

use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{Answer, House};

/// Its child ends as it is told.
const OUTER: &str = "workflow outer(input) {\n  const first = await Signal.next(\"first\")\n  \
                     return [first, await Workflow.run(\"inner\", input)]\n}";
const INNER: &str = "workflow inner(input) {\n  const word = await Signal.next(\"word\")\n  \
                     if (word == \"bad\") throw new Error(\"a bad word\")\n  return word\n}";

async fn house() -> House {
    let house = House::open().await;
    house.script("inner.wf", INNER).await;
    house.script("outer.wf", OUTER).await;
    house
}

/// The child that a run waits for.
async fn child(house: &House, run: &str) -> String {
    let path = format!("/api/v1/runs?parent={run}");
    let page = house.until(&path, |page| !page["runs"].as_array().unwrap().is_empty()).await;
    page["runs"][0]["run"].as_str().unwrap().to_owned()
}

async fn tell(house: &House, run: &str, signal: &str, word: &str) {
    house.post(&format!("/api/v1/runs/{run}/signals/{signal}"), json!({ "payload": word })).await.ok();
}

async fn failed(house: &House, run: &str) {
    house.start(json!({ "workflow": "outer", "id": run })).await;
    tell(house, run, "first", "told once").await;
    let child = child(house, run).await;
    tell(house, &child, "word", "bad").await;
    house.until_status(run, "failed").await;
}

async fn bulk(house: &House, key: &str, more: Value) -> Value {
    let mut body = json!({ "action": "retry", "workflow": "outer" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let request = house.request(Method::POST, "/api/v1/bulk").header("idempotency-key", key).json(&body);
    Answer::of(request.send().await.unwrap()).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_failed_is_tried_again_from_what_failed_on() {
    let house = house().await;
    failed(&house, "a").await;
    let forked = house.post("/api/v1/runs/a/fork", json!({ "failed": true, "id": "b" })).await.ok();
    assert_eq!(forked["reissued"].as_array().unwrap().len(), 1, "{forked}");
    tell(&house, &child(&house, "b").await, "word", "good").await;
    // What was told the first one before it failed is not asked for again.
    assert_eq!(house.result("b").await["output"], json!(["told once", "good"]));
    assert_eq!(house.get("/api/v1/runs/a").await.ok()["summary"]["status"], "failed");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passed_is_set_anew() {
    let house = house().await;
    let text = "workflow late(input) {\n  const one = await Signal.next(\"one\")\n  \
                return await Signal.next(\"two\", { timeout: \"3s\" })\n}";
    house.script("late.wf", text).await;
    house.start(json!({ "workflow": "late", "id": "a" })).await;
    tell(&house, "a", "one", "1").await;
    house.until_status("a", "failed").await;
    house.post("/api/v1/runs/a/fork", json!({ "failed": true, "id": "b" })).await.ok();
    tell(&house, "b", "two", "in time").await;
    assert_eq!(house.result("b").await["output"], "in time");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_failed_or_gave_up_by_itself_is_not_tried_again() {
    let house = house().await;
    house.start(json!({ "workflow": "inner", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    let retry = || house.post("/api/v1/runs/a/fork", json!({ "failed": true }));
    assert_eq!(retry().await.refused(409), "nothing_to_retry");
    tell(&house, "a", "word", "bad").await;
    house.until_status("a", "failed").await;
    assert_eq!(retry().await.refused(409), "nothing_to_retry");
    for wrong in [
        json!({ "failed": true, "at": 1 }),
        json!({ "failed": true, "node": "x" }),
        json!({}),
        json!({ "failed": false }),
    ] {
        assert_eq!(house.post("/api/v1/runs/a/fork", wrong).await.refused(400), "validation_error");
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_failed_are_counted_and_tried_again_once() {
    let house = house().await;
    for run in ["a", "b"] {
        failed(&house, run).await;
    }
    house.start(json!({ "workflow": "outer", "id": "waits" })).await;
    assert_eq!(bulk(&house, "k", json!({ "dry_run": true })).await["matched"], 2);
    let begun = bulk(&house, "k", json!({})).await;
    let path = format!("/api/v1/bulk/{}", begun["bulk"].as_str().unwrap());
    let done = house.until(&path, |view| view["state"] == "done").await;
    assert_eq!((&done["done"], &done["refused"]), (&json!(2), &json!(0)), "{done}");
    // Pressed twice, it was done once.
    bulk(&house, "k", json!({})).await;
    let all = house.get("/api/v1/runs?prefix=fork-&workflow=outer").await.ok();
    assert_eq!(all["runs"].as_array().unwrap().len(), 2, "{all}");
    house.leave().await;
}
