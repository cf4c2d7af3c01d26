//! Starting runs, finding them, telling them things.

use outlast_server::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{Answer, House, token};

const ADD: &str = "workflow add(input) { return input.a + input.b }";
const WAITS: &str = "workflow waits(input) { let word = await Signal.next(\"word\"); return word }";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_once_and_its_result_is_waited_for() {
    let house = House::open().await;
    house.script("add.wf", ADD).await;
    let request = json!({ "workflow": "add", "input": { "a": 1, "b": 2 }, "id": "sum" });
    let first = house.post("/api/v1/runs", request.clone()).await;
    assert_eq!((first.status.as_u16(), &first.body), (201, &json!({ "run": "sum", "new": true })));
    let again = house.post("/api/v1/runs", request).await;
    assert_eq!((again.status.as_u16(), &again.body), (200, &json!({ "run": "sum", "new": false })));

    let result = house.result("sum").await;
    assert_eq!(result, json!({ "run": "sum", "workflow": "add", "status": "completed", "output": 3 }));
    let other = house.post("/api/v1/runs", json!({ "workflow": "add", "input": 5, "id": "sum" })).await;
    assert_eq!(other.refused(409), "run_exists");
    assert_eq!(house.result("sum").await["output"], 3, "the first run is as it was");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blanks_in_an_input_do_not_make_it_another_one() {
    let house = House::open().await;
    house.script("add.wf", ADD).await;
    for (body, new) in [
        (r#"{"workflow":"add","id":"x","input":{"a":1,"b":2}}"#, true),
        (r#"{ "workflow": "add", "id": "x", "input": { "a" : 1, "b" : 2 } }"#, false),
    ] {
        let request = house.request(Method::POST, "/api/v1/runs").header("content-type", "application/json");
        let answer = Answer::of(request.body(body).send().await.unwrap()).await.ok();
        assert_eq!(answer["new"], new);
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_under_the_same_key_is_the_same_start() {
    let house = House::open().await;
    house.script("add.wf", ADD).await;
    let start = || {
        let request = house.request(Method::POST, "/api/v1/runs").header("idempotency-key", "order 42");
        request.json(&json!({ "workflow": "add", "input": { "a": 1, "b": 2 } })).send()
    };
    let first = Answer::of(start().await.unwrap()).await.ok();
    let again = Answer::of(start().await.unwrap()).await.ok();
    assert_eq!((first["new"].clone(), again["new"].clone()), (json!(true), json!(false)));
    assert_eq!(first["run"], again["run"]);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_not_ended_says_where_it_stands() {
    let house = House::open().await;
    house.script("waits.wf", WAITS).await;
    house.start(json!({ "workflow": "waits", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    let result = house.get("/api/v1/runs/a/result?wait_ms=50").await;
    assert_eq!((result.status.as_u16(), result.body["status"].as_str()), (202, Some("waiting")));

    let view = house.get("/api/v1/runs/a").await.ok();
    assert_eq!(
        (view["awaiting"][0]["type"].as_str(), view["awaiting"][0]["name"].as_str()),
        (Some("signal"), Some("word"))
    );
    let explained = house.get("/api/v1/runs/a/explain").await.ok();
    assert_eq!(explained["standing"], "suspended");
    assert!(explained["text"].as_str().unwrap().contains("word"), "{explained}");
    let operations = house.get("/api/v1/runs/a/operations").await.ok();
    assert!(operations["here"].is_boolean());

    let signal = || house.post("/api/v1/runs/a/signals/word", json!({ "payload": "hello", "id": "s1" }));
    assert_eq!(signal().await.ok()["outcome"], "delivered");
    assert_eq!(house.result("a").await["output"], "hello");
    assert_eq!(signal().await.ok()["outcome"], "duplicate", "also after the end");
    let late = house.post("/api/v1/runs/a/signals/word", json!({ "payload": "late", "id": "s2" })).await;
    assert_eq!(late.refused(409), "signal_lost");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_with_a_start_comes_with_it() {
    let house = House::open().await;
    house.script("waits.wf", WAITS).await;
    let signal = json!({ "name": "word", "payload": "first", "id": "s1" });
    house.start(json!({ "workflow": "waits", "id": "a", "signal": signal })).await;
    assert_eq!(house.result("a").await["output"], "first");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_an_answer_and_not_an_error() {
    let house = House::open().await;
    house.script("fails.wf", "workflow fails(input) { throw new Error(\"no\") }").await;
    house.start(json!({ "workflow": "fails", "id": "a" })).await;
    let result = house.result("a").await;
    assert_eq!(result["status"], "failed");
    assert!(result["error"]["message"].as_str().unwrap().contains("no"), "{result}");
    assert!(result["error"]["trace"].as_str().unwrap().contains("fails.wf:1:"), "{result}");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_page_by_page() {
    let house = House::open().await;
    house.script("add.wf", ADD).await;
    house.script("waits.wf", WAITS).await;
    for n in 0..5 {
        let attributes = json!({ "tenant": format!("t{}", n % 2) });
        let input = json!({ "a": n, "b": 0 });
        let id = format!("sum-{n}");
        house.start(json!({ "workflow": "add", "id": id, "input": input, "attributes": attributes })).await;
    }
    house.start(json!({ "workflow": "waits", "id": "w" })).await;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = house.get(&format!("/api/v1/runs?workflow=add&limit=2{cursor}")).await.ok();
        found.extend(page["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, ["sum-4", "sum-3", "sum-2", "sum-1", "sum-0"]);
    let count = |answer: Value| answer["runs"].as_array().unwrap().len();
    assert_eq!(count(house.get("/api/v1/runs?attribute=tenant=t1").await.ok()), 2);
    assert_eq!(count(house.get("/api/v1/runs?prefix=sum-&status=completed,waiting,queued,running").await.ok()), 5);
    assert_eq!(count(house.get("/api/v1/runs?created_from=2100-01-01T00:00:00Z").await.ok()), 0);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_pauses_resumes_cancels_terminates_and_deletes() {
    let house = House::open().await;
    house.script("waits.wf", WAITS).await;
    for id in ["a", "b"] {
        house.start(json!({ "workflow": "waits", "id": id })).await;
        house.until_status(id, "waiting").await;
    }
    house.post("/api/v1/runs/a/pause", json!({ "reason": "lunch" })).await.ok();
    house.until_status("a", "paused").await;
    assert_eq!(house.get("/api/v1/runs/a/explain").await.ok()["standing"], "paused");
    house.post("/api/v1/runs/a/resume", json!({})).await.ok();
    house.until_status("a", "waiting").await;
    let refused = house.post("/api/v1/runs/a/resume", json!({ "message": "go" })).await;
    assert_eq!(refused.refused(409), "already_running");
    assert_eq!(house.delete("/api/v1/runs/a").await.refused(409), "run_live");
    house.post("/api/v1/runs/a/cancel", json!({ "reason": "enough" })).await.ok();
    assert_eq!(house.result("a").await["status"], "cancelled");
    house.post("/api/v1/runs/b/terminate", json!({ "reason": "now" })).await.ok();
    assert_eq!(house.result("b").await["status"], "cancelled");
    assert_eq!(house.post("/api/v1/runs/b/terminate", json!({})).await.refused(409), "signal_lost");
    assert_eq!(house.post("/api/v1/runs/b/pause", json!({})).await.ok()["outcome"], "lost");
    assert_eq!(house.post("/api/v1/runs/b/unpark", json!({})).await.ok()["was_parked"], false);

    house.delete("/api/v1/runs/a?reason=tidy").await.ok();
    let gone = house.get("/api/v1/runs/a").await;
    assert_eq!(gone.refused(410), "run_lost");
    assert!(gone.body["message"].as_str().unwrap().contains("tidy"), "{gone:?}");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_keeps_what_is_recorded_and_the_same_key_makes_it_once() {
    let house = House::open().await;
    house.script("waits.wf", WAITS).await;
    house.start(json!({ "workflow": "waits", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    house.post("/api/v1/runs/a/signals/word", json!({ "payload": "one" })).await.ok();
    assert_eq!(house.result("a").await["output"], "one");
    let fork = || {
        let request = house.request(Method::POST, "/api/v1/runs/a/fork").header("idempotency-key", "f1");
        request.json(&json!({ "at": 1 })).send()
    };
    let forked = Answer::of(fork().await.unwrap()).await;
    assert_eq!(forked.status.as_u16(), 201, "{forked:?}");
    let run = forked.body["run"].as_str().unwrap().to_owned();
    assert_eq!(forked.body["reissued"][0]["kind"], "wait", "{forked:?}");
    let again = Answer::of(fork().await.unwrap()).await;
    assert_eq!((again.status.as_u16(), again.body["run"].as_str()), (200, Some(&*run)));
    house.post(&format!("/api/v1/runs/{run}/signals/word"), json!({ "payload": "two" })).await.ok();
    assert_eq!(house.result(&run).await["output"], "two");
    assert_eq!(house.post("/api/v1/runs/a/fork", json!({})).await.refused(422), "validation_error");
    let beyond = house.post("/api/v1/runs/a/fork", json!({ "at": u64::MAX })).await;
    assert_eq!(beyond.refused(400), "validation_error", "the document says how large it can be");
    house.leave().await;
}

/// Found by schemathesis: a list was taken for the fields of a request, in their order.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_no_request() {
    let house = House::open().await;
    house.script("waits.wf", "workflow waits(x) { return await Signal.next(\"go\") }").await;
    house.start(json!({ "workflow": "waits", "id": "a" })).await;
    for (path, list) in [("pause", json!(["because"])), ("signals/go", json!([null, null])), ("cancel", json!([]))] {
        let answer = house.post(&format!("/api/v1/runs/a/{path}"), list).await;
        assert_eq!(answer.refused(400), "validation_error", "{path}");
    }
    house.until_status("a", "waiting").await;
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_told_a_run_what_to_do_stands_in_its_journal() {
    let (ann, bob) = (token("ann", "default", &[Scope::Admin]), token("bob", "default", &[Scope::Admin]));
    let (ann_text, bob_text) = (ann.text.clone(), bob.text.clone());
    let house = House::guarded(&[ann, bob]).await.showing(&ann_text);
    house.script("w.wf", "workflow w(x) { return await Signal.next(\"word\") }").await;
    for run in ["a", "b", "c", "d"] {
        house.start(json!({ "workflow": "w", "id": run })).await;
        house.until_status(run, "waiting").await;
    }
    house.post("/api/v1/runs/a/pause", json!({ "reason": "lunch" })).await.ok();
    house.until_status("a", "paused").await;
    let house = house.showing(&bob_text);
    house.post("/api/v1/runs/a/resume", json!({ "message": "go on" })).await.ok();
    house.until_status("a", "waiting").await;
    house.post("/api/v1/runs/a/cancel", json!({})).await.ok();
    house.post("/api/v1/runs/b/terminate", json!({})).await.ok();
    let house = house.showing(&ann_text);
    for (action, run) in [("pause", "c"), ("resume", "c"), ("cancel", "c"), ("terminate", "d")] {
        house.post("/api/v1/bulk", json!({ "action": action, "prefix": run })).await.ok();
        let status = match action {
            "pause" => "paused",
            "resume" => "waiting",
            _ => "cancelled",
        };
        house.until_status(run, status).await;
    }
    for (run, expected) in [
        ("a", &[("RUN_PAUSED", "ann"), ("RUN_RESUMED", "bob"), ("CANCEL_REQUESTED", "bob")][..]),
        ("b", &[("RUN_TERMINATED", "bob")]),
        ("c", &[("RUN_PAUSED", "ann"), ("RUN_RESUMED", "ann"), ("CANCEL_REQUESTED", "ann")]),
        ("d", &[("RUN_TERMINATED", "ann")]),
    ] {
        house.until_status(run, "cancelled").await;
        let page = house.get(&format!("/api/v1/runs/{run}/events")).await.ok();
        let by = page["events"].as_array().unwrap().iter().filter_map(|event| {
            let kind = event["kind"].as_str().unwrap();
            event["data"]["by"].as_str().map(|by| (kind.to_owned(), by.to_owned()))
        });
        let expected: Vec<_> = expected.iter().map(|(kind, by)| (kind.to_string(), by.to_string())).collect();
        assert_eq!(by.collect::<Vec<_>>(), expected, "{run}: {page}");
    }
    house.leave().await;
}
