//! Every write, sent twice under one `Idempotency-Key`: generated from the server's table.

use outlast::{Ctx, Outlast};
use outlast_server::{Options, Route, openapi, routes};
use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{Answer, House};

/// What the second answer is.
enum Again {
    /// These parts of it are what they were.
    Same(&'static [&'static str]),
    /// That it was done: nothing is left to do it to.
    Told(u16, &'static str),
}

pub(crate) async fn calls(ctx: Ctx, _: ()) -> outlast::Result<String> {
    ctx.callback::<String>().create().await
}

const WAITS: &str = "workflow waits(x) {\n  return await Signal.next(\"go\")\n}";
const ASKS: &str = "workflow asks(x) {\n  return await Approval.request({ title: \"Ship?\" })\n}";
const ENDS: &str = "workflow ends(x) {\n  return x\n}";
const FLOW: &str = "flow: graph\nnodes:\n  - { id: a, type: task, task: never }\n";

async fn house() -> House {
    let folder = tempfile::tempdir().unwrap();
    let engine = Outlast::sqlite(folder.path().join("house.db")).workflow("calls", calls).start().await.unwrap();
    let house = House::on(engine, Options { metrics: false, sql: true, ..Options::default() }, folder).await;
    for (file, text) in [("waits.wf", WAITS), ("asks.wf", ASKS), ("ends.wf", ENDS), ("graph.flow.yaml", FLOW)] {
        house.script(file, text).await;
    }
    house
}

async fn run(house: &House, workflow: &str, id: &str, status: &str) {
    house.start(json!({ "workflow": workflow, "id": id })).await;
    house.until_status(id, status).await;
}

/// A task that a worker has, and the token it was given.
async fn claimed(house: &House, id: &str) -> Value {
    house.start(json!({ "workflow": "graph", "id": id })).await;
    house.until_status(id, "waiting").await;
    let claim = json!({ "worker": "w", "id": house.count(), "names": ["never"], "wait_ms": 10_000 });
    house.post("/api/v1/work/claim", claim).await.ok()["tasks"][0]["token"].clone()
}

async fn dead_task(house: &House, id: &str) {
    house.post("/api/v1/tasks", json!({ "name": id, "id": id })).await.ok();
    let claim = json!({ "worker": "w", "id": house.count(), "names": [id] });
    let token = house.post("/api/v1/work/claim", claim).await.ok()["tasks"][0]["token"].clone();
    let error = json!({ "code": "x", "message": "x", "permanent": true });
    house.post("/api/v1/work/fail", json!({ "token": token, "error": error })).await.ok();
}

/// Something a route can be asked to do once, how it is asked, and what it answers when it is asked again. A route without an
/// entry has not been thought about.
async fn occasion(house: &House, route: &Route, id: &str) -> (String, Value, Again) {
    let path = route.path.replace("{run}", id).replace("{schedule}", id).replace("{task}", id);
    let error = json!({ "code": "x", "message": "x" });
    let nothing = json!({});
    let (body, again) = match (route.method, route.path.as_str()) {
        ("PUT", "/api/v1/workflows") => {
            (json!({ "file": "more.wf", "text": "workflow more(x) { return x }" }), Again::Same(&["workflows"]))
        }
        ("POST", "/api/v1/runs") => (json!({ "workflow": "waits" }), Again::Same(&["run"])),
        ("DELETE", "/api/v1/runs/{run}") => {
            run(house, "ends", id, "completed").await;
            (nothing, Again::Same(&[]))
        }
        ("POST", "/api/v1/runs/{run}/signals/{signal}") => {
            run(house, "waits", id, "waiting").await;
            (json!({ "payload": 1 }), Again::Same(&[]))
        }
        ("POST", "/api/v1/runs/{run}/pause" | "/api/v1/runs/{run}/cancel" | "/api/v1/runs/{run}/unpark") => {
            run(house, "waits", id, "waiting").await;
            (nothing, Again::Same(&["was_parked"]))
        }
        ("POST", "/api/v1/runs/{run}/resume") => {
            run(house, "waits", id, "waiting").await;
            house.post(&format!("/api/v1/runs/{id}/pause"), json!({})).await.ok();
            house.until_status(id, "paused").await;
            (nothing, Again::Same(&[]))
        }
        ("POST", "/api/v1/runs/{run}/terminate") => {
            run(house, "waits", id, "waiting").await;
            (nothing, Again::Same(&[]))
        }
        ("POST", "/api/v1/runs/{run}/fork") => {
            run(house, "waits", id, "waiting").await;
            (json!({ "at": 0 }), Again::Same(&["run"]))
        }
        ("POST", "/api/v1/runs/{run}/retry" | "/api/v1/runs/{run}/skip") => {
            run(house, "graph", id, "waiting").await;
            (json!({ "node": "a" }), Again::Same(&[]))
        }
        ("POST", "/api/v1/runs/{run}/approvals/{approval}") => {
            run(house, "asks", id, "waiting").await;
            (json!({ "approved": true }), Again::Same(&[]))
        }
        ("POST", "/callbacks/{namespace}/{run}/{callback}/{token}/resolve") => {
            (json!({ "value": "x" }), Again::Same(&[]))
        }
        ("POST", "/callbacks/{namespace}/{run}/{callback}/{token}/fail") => {
            (json!({ "error": error }), Again::Same(&[]))
        }
        ("POST", "/callbacks/{namespace}/{run}/{callback}/{token}/heartbeat") => (nothing, Again::Same(&["outcome"])),
        ("POST", "/api/v1/bulk") => {
            run(house, "waits", id, "waiting").await;
            (json!({ "action": "pause", "prefix": id }), Again::Same(&["bulk", "matched"]))
        }
        ("POST", "/api/v1/sql") => (json!({ "query": "SELECT 1 AS one" }), Again::Same(&["rows", "columns"])),
        ("POST", "/api/v1/doctor") => (nothing, Again::Same(&["healthy"])),
        ("PUT", "/api/v1/schedules/{schedule}") => (hourly(), Again::Same(&["schedule", "started", "when"])),
        ("DELETE", "/api/v1/schedules/{schedule}") => {
            house.put(&path, hourly()).await.ok();
            (nothing, Again::Same(&[]))
        }
        ("POST", "/api/v1/schedules/{schedule}/trigger") => {
            house.put(&format!("/api/v1/schedules/{id}"), hourly()).await.ok();
            (nothing, Again::Same(&["outcome", "run"]))
        }
        ("POST", "/api/v1/schedules/{schedule}/backfill") => {
            house.put(&format!("/api/v1/schedules/{id}"), hourly()).await.ok();
            (json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z" }), Again::Same(&["instants"]))
        }
        ("POST", "/api/v1/schedules/{schedule}/pause" | "/api/v1/schedules/{schedule}/resume") => {
            house.put(&format!("/api/v1/schedules/{id}"), hourly()).await.ok();
            (nothing, Again::Same(&[]))
        }
        ("POST", "/api/v1/tasks") => (json!({ "name": "nobody" }), Again::Same(&["task"])),
        ("POST", "/api/v1/tasks/{task}/retry") => {
            dead_task(house, id).await;
            (nothing, Again::Same(&[]))
        }
        ("DELETE", "/api/v1/tasks/{task}") => {
            dead_task(house, id).await;
            (nothing, Again::Same(&[]))
        }
        ("POST", "/api/v1/work/claim") => {
            house.post("/api/v1/tasks", json!({ "name": "claims", "id": id })).await.ok();
            (json!({ "worker": "w", "id": house.count(), "names": ["claims"] }), Again::Same(&["tasks/0/task"]))
        }
        ("POST", "/api/v1/work/heartbeat") => {
            (json!({ "token": claimed(house, id).await }), Again::Same(&["cancelled"]))
        }
        ("POST", "/api/v1/work/complete") => {
            (json!({ "token": claimed(house, id).await, "result": 1 }), Again::Same(&[]))
        }
        ("POST", "/api/v1/work/fail") => {
            (json!({ "token": claimed(house, id).await, "error": error }), Again::Same(&["again_at"]))
        }
        ("POST", "/api/v1/work/give-back") => {
            (json!({ "token": claimed(house, id).await }), Again::Told(409, "task_lost"))
        }
        (method, path) => panic!("what does {method} {path} answer when it is repeated?"),
    };
    let path = path.replace("{signal}", "go").replace("{approval}", "__approve-0");
    (if route.path.contains("{token}") { called(house, &path, id).await } else { path }, body, again)
}

fn hourly() -> Value {
    json!({ "every_ms": 3_600_000, "workflow": "waits", "overlap": "allow", "paused": true })
}

/// The path of a callback. Whoever creates one is told its token; a fork tells it, too.
pub(crate) async fn called(house: &House, path: &str, id: &str) -> String {
    let first = format!("{id}-first");
    run(house, "calls", &first, "waiting").await;
    let forked = house.engine.run(&first).unwrap().fork(1).id(id).await.unwrap();
    let (key, token) = (forked.reissued[0].key.to_string(), forked.reissued[0].token.clone().unwrap());
    house.until_status(id, "waiting").await;
    path.replace("{namespace}", "default").replace("{run}", id).replace("{callback}", &key).replace("{token}", &token)
}

async fn send(house: &House, route: &Route, path: &str, body: &Value, key: &str) -> Answer {
    let method = Method::from_bytes(route.method.as_bytes()).unwrap();
    let request = house.request(method.clone(), path).header("idempotency-key", key);
    let request = if method == Method::DELETE { request } else { request.json(body) };
    Answer::of(request.send().await.unwrap()).await
}

/// How many runs and tasks there are.
async fn size(house: &House) -> (usize, usize) {
    let many = |answer: Value, what: &str| answer[what].as_array().unwrap().len();
    let runs = many(house.get("/api/v1/runs?limit=1000").await.ok(), "runs");
    (runs, many(house.get("/api/v1/tasks?limit=1000").await.ok(), "tasks"))
}

/// As [`size`], once what was asked for has had its effect.
async fn settled(house: &House) -> (usize, usize) {
    let mut last = size(house).await;
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        let now = size(house).await;
        if now == last {
            return now;
        }
        last = now;
    }
}

/// All but webhooks, whose own id says that they are the same again, and sessions, which change nothing that lasts.
fn writes() -> Vec<Route> {
    let takes_key = |route: &Route| !route.path.starts_with("/hooks/") && route.path != "/api/v1/session";
    routes().into_iter().filter(|route| route.method != "GET" && takes_key(route)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_under_one_key_is_done_once() {
    let house = house().await;
    let all = writes();
    assert!(all.len() > 25, "{}", all.len());
    for (number, route) in all.iter().enumerate() {
        let told = format!("{} {}", route.method, route.path);
        let (path, body, again) = occasion(&house, route, &format!("r-{number:02}")).await;
        let key = format!("key-{number}");
        let first = send(&house, route, &path, &body, &key).await;
        assert!(first.status.is_success(), "{told}: {first:?}");
        let before = settled(&house).await;
        let second = send(&house, route, &path, &body, &key).await;
        match again {
            Again::Same(parts) => {
                assert!(second.status.is_success(), "{told}: {second:?}");
                for part in parts {
                    let part = format!("/{part}");
                    let [first, second] = [&first, &second].map(|answer| answer.body.pointer(&part).cloned());
                    assert_eq!(first, second, "{told}: {part}");
                }
            }
            Again::Told(status, code) => assert_eq!(second.refused(status), code, "{told}"),
        }
        // What a schedule backfills is started by and by.
        if !route.path.ends_with("/backfill") {
            assert_eq!(settled(&house).await, before, "{told} was done twice");
        }
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_says_that_it_takes_a_key_and_refuses_one_that_cannot_be() {
    let house = house().await;
    let document: Value = serde_json::from_str(&openapi()).unwrap();
    for route in writes() {
        let told = format!("{} {}", route.method, route.path);
        let operation = &document["paths"][&route.path][route.method.to_lowercase()];
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let takes = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        assert!(takes, "{told} does not say that it takes a key");
        // The token of a callback is looked at first: nobody learns which runs there are.
        if route.scope.is_some() {
            let long = "k".repeat(256);
            let refused = send(&house, &route, &route.path.replace(['{', '}'], ""), &json!({}), &long).await;
            assert_eq!(refused.refused(400), "validation_error", "{told}");
            assert!(refused.body["message"].as_str().unwrap().contains("Idempotency-Key"), "{told}: {refused:?}");
        }
    }
    house.leave().await;
}

async fn ask(house: &House, method: Method, path: &str, key: &str, body: Value) -> Answer {
    let request = house.request(method, path).header("idempotency-key", key).json(&body);
    Answer::of(request.send().await.unwrap()).await
}

/// Another server on the same database, which has not heard what the first one was asked.
async fn beside(house: &House) -> House {
    House::on(house.engine.clone(), Options { metrics: false, ..Options::default() }, tempfile::tempdir().unwrap())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_again_late_does_not_undo_what_came_between() {
    let house = house().await;
    let other = beside(&house).await;
    let text = |word: &str| json!({ "file": "v.wf", "text": format!("workflow v(x) {{ return \"{word}\" }}") });
    let current = async || house.get("/api/v1/workflows/v").await.ok()["text"].as_str().unwrap().to_owned();
    for (from, key, word) in
        [(&house, "k1", "one"), (&house, "k2", "two"), (&house, "k1", "one"), (&other, "k1", "one")]
    {
        ask(from, Method::PUT, "/api/v1/workflows", key, text(word)).await.ok();
    }
    assert!(current().await.contains("two"), "{}", current().await);

    let path = "/api/v1/schedules/s";
    let every = |ms: u64| json!({ "every_ms": ms, "workflow": "waits", "paused": true });
    for (key, ms) in [("s1", 3_600_000), ("s2", 7_200_000), ("s1", 3_600_000)] {
        ask(&house, Method::PUT, path, key, every(ms)).await.ok();
    }
    assert!(house.get(path).await.ok()["when"].to_string().contains('2'), "{:?}", house.get(path).await);
    for (from, key, verb) in
        [(&house, "r1", "resume"), (&house, "p1", "pause"), (&house, "r1", "resume"), (&other, "r1", "resume")]
    {
        ask(from, Method::POST, &format!("{path}/{verb}"), key, json!({})).await.ok();
    }
    assert!(house.get(path).await.ok()["paused"].is_string(), "it was paused last");
    ask(&house, Method::DELETE, path, "d1", json!({})).await.ok();
    ask(&house, Method::PUT, path, "s3", every(3_600_000)).await.ok();
    ask(&house, Method::DELETE, path, "d1", json!({})).await.ok();
    house.get(path).await.ok();

    dead_task(&house, "t").await;
    ask(&house, Method::POST, "/api/v1/tasks/t/retry", "t1", json!({})).await.ok();
    let claim = json!({ "worker": "w", "id": house.count(), "names": ["t"] });
    let token = house.post("/api/v1/work/claim", claim).await.ok()["tasks"][0]["token"].clone();
    let error = json!({ "code": "x", "message": "x", "permanent": true });
    house.post("/api/v1/work/fail", json!({ "token": token, "error": error })).await.ok();
    ask(&house, Method::POST, "/api/v1/tasks/t/retry", "t1", json!({})).await.ok();
    assert_eq!(house.get("/api/v1/tasks/t").await.ok()["task"]["state"], "dead", "it was queued anew once");
    other.leave_server().await;
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_for_one_request() {
    let house = house().await;
    run(&house, "waits", "a", "waiting").await;
    run(&house, "waits", "b", "waiting").await;
    ask(&house, Method::POST, "/api/v1/runs/a/terminate", "k", json!({ "reason": "x" })).await.ok();
    for (path, body) in [
        ("/api/v1/runs/b/terminate", json!({ "reason": "x" })),
        ("/api/v1/runs/a/terminate", json!({ "reason": "y" })),
        ("/api/v1/runs/a/unpark", json!({ "reason": "x" })),
    ] {
        assert_eq!(ask(&house, Method::POST, path, "k", body).await.refused(409), "key_reused", "{path}");
    }
    house.until_status("b", "waiting").await;
    let bulk = |prefix: &str| json!({ "action": "pause", "prefix": prefix });
    let first = ask(&house, Method::POST, "/api/v1/bulk", "k", bulk("b")).await.ok();
    assert_eq!(first["matched"], 1);
    assert_eq!(ask(&house, Method::POST, "/api/v1/bulk", "k", bulk("c")).await.refused(409), "key_reused");
    house.leave().await;
}

/// Found by review: a server that had forgotten what it was asked did it to runs that had come since.
#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_action_is_not_for_runs_that_came_later() {
    let house = house().await;
    let other = beside(&house).await;
    run(&house, "waits", "w-1", "waiting").await;
    let cancel = json!({ "action": "cancel", "prefix": "w-" });
    assert_eq!(ask(&house, Method::POST, "/api/v1/bulk", "k", cancel.clone()).await.ok()["matched"], 1);
    house.until_status("w-1", "cancelled").await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    run(&house, "waits", "w-2", "waiting").await;
    assert_eq!(ask(&other, Method::POST, "/api/v1/bulk", "k", cancel).await.ok()["matched"], 0);
    house.until_status("w-2", "waiting").await;
    other.leave_server().await;
    house.leave().await;
}
