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
                return await Signal.next(\"two\", { timeout: input })\n}";
    house.script("late.wf", text).await;
    house.start(json!({ "workflow": "late", "id": "a", "input": "1s" })).await;
    tell(&house, "a", "one", "1").await;
    house.until_status("a", "failed").await;
    // A deadline that was kept would have passed already, however much time there is now.
    house.post("/api/v1/runs/a/fork", json!({ "failed": true, "id": "b", "input": "1h" })).await.ok();
    house.until_status("b", "waiting").await;
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
        assert_eq!(house.post("/api/v1/runs/a/fork", wrong).await.refused(422), "validation_error");
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
    assert_eq!(forks(&house).await.len(), 2);
    house.leave().await;
}

/// The runs of `outer` that came of a retry.
async fn forks(house: &House) -> Vec<String> {
    let all = house.get("/api/v1/runs?prefix=fork-&workflow=outer").await.ok();
    all["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

async fn retried(house: &House, key: &str, more: Value) -> Value {
    let begun = bulk(house, key, more).await;
    let path = format!("/api/v1/bulk/{}", begun["bulk"].as_str().unwrap());
    house.until(&path, |view| view["state"] == "done").await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_tried_again_and_succeeded_is_not_tried_again_under_another_key() {
    let house = house().await;
    failed(&house, "a").await;
    retried(&house, "monday", json!({})).await;
    let first = forks(&house).await;
    tell(&house, &child(&house, &first[0]).await, "word", "good").await;
    house.until_status(&first[0], "completed").await;
    let done = retried(&house, "tuesday", json!({})).await;
    assert_eq!((&done["done"], &done["refused"]), (&json!(1), &json!(0)), "{done}");
    let one = house.post("/api/v1/runs/a/fork", json!({ "failed": true })).await.ok();
    assert_eq!((&one["run"], &one["new"]), (&json!(first[0]), &json!(false)));
    assert_eq!(forks(&house).await, first, "whoever asks, and under whatever key");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_failed_is_what_is_tried_again() {
    let house = house().await;
    failed(&house, "a").await;
    retried(&house, "monday", json!({})).await;
    let first = forks(&house).await;
    tell(&house, &child(&house, &first[0]).await, "word", "bad").await;
    house.until_status(&first[0], "failed").await;
    // Both of them have failed now, and one run comes of that.
    assert_eq!(retried(&house, "tuesday", json!({})).await["done"], 2);
    let second = forks(&house).await;
    assert_eq!(second.len(), 2, "{second:?}");
    let last = second.iter().find(|run| **run != first[0]).unwrap();
    tell(&house, &child(&house, last).await, "word", "good").await;
    assert_eq!(house.result(last).await["output"], json!(["told once", "good"]));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_whose_parent_is_tried_again_is_not_tried_again_beside_it() {
    let house = house().await;
    house.script("inner.wf", "workflow inner(input) {\n  return await Task.run(\"never\", input)\n}").await;
    house.start(json!({ "workflow": "outer", "id": "a" })).await;
    tell(&house, "a", "first", "told once").await;
    let inner = child(&house, "a").await;
    house.until_status(&inner, "waiting").await;
    let claim = json!({ "worker": "w", "id": 1, "names": ["never"], "wait_ms": 10_000 });
    let token = house.post("/api/v1/work/claim", claim).await.ok()["tasks"][0]["token"].clone();
    let error = json!({ "code": "x", "message": "x", "permanent": true });
    house.post("/api/v1/work/fail", json!({ "token": token, "error": error })).await.ok();
    house.until_status("a", "failed").await;
    house.until_status(&inner, "failed").await;
    let all = json!({ "action": "retry", "status": ["failed"], "dry_run": true });
    assert_eq!(house.post("/api/v1/bulk", all).await.ok()["matched"], 1, "of the two that failed");
    let child = json!({ "action": "retry", "workflow": "inner", "dry_run": true });
    assert_eq!(house.post("/api/v1/bulk", child).await.ok()["matched"], 1, "it alone, if somebody means it alone");
    house.leave().await;
}
