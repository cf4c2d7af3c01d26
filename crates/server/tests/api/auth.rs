//! Tokens, and what is written down.

use std::sync::Arc;

use outlast_server::{Access, Options, Scope, Server, ServerError, Tokens, verify_audit};
use reqwest::{Method, header};
use serde_json::json;

use crate::house::{Answer, House, token};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tokens_does_not_listen_to_other_machines() {
    let engine = outlast::Outlast::memory().start().await.unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let bound = Server::new(engine.clone(), Options::default()).bind(address).await;
        assert!(matches!(bound, Err(ServerError::Unprotected(_))), "{address}");
    }
    let access = Access::Tokens(Arc::new(Tokens::new(&[token("a", "default", &[Scope::Read]).token]).unwrap()));
    let options = Options { access, ..Options::default() };
    assert!(Server::new(engine.clone(), options).bind("0.0.0.0:0").await.is_ok());
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_cannot_have_its_visitor_talk_to_a_server_without_tokens() {
    let house = House::open().await;
    for (name, value) in [(header::HOST, "evil.example"), (header::ORIGIN, "http://evil.example")] {
        let request = house.request(Method::GET, "/api/v1/runs").header(name, value);
        assert_eq!(Answer::of(request.send().await.unwrap()).await.refused(403), "forbidden");
    }
    let form = house.request(Method::POST, "/api/v1/runs").header(header::CONTENT_TYPE, "text/plain");
    let form = form.body(r#"{"workflow":"x"}"#);
    assert_eq!(Answer::of(form.send().await.unwrap()).await.refused(415), "unsupported_media_type");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_says_who_one_is_and_is_worth_nothing_once_it_is_gone() {
    let ann = token("ann", "shop", &[Scope::Read, Scope::Start]);
    let tokens = Arc::new(Tokens::new(std::slice::from_ref(&ann.token)).unwrap());
    let options = Options { access: Access::Tokens(Arc::clone(&tokens)), metrics: false, ..Options::default() };
    let house = House::with(options).await.showing(&ann.text);
    let me = house.get("/api/v1/whoami").await.ok();
    assert_eq!(me, json!({ "name": "ann", "namespace": "shop", "scopes": ["read", "start"] }));
    tokens.replace(&[]).unwrap();
    assert_eq!(house.get("/api/v1/whoami").await.refused(401), "unauthenticated");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_did_what_is_written_down_and_nothing_secret_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let ann = token("ann", "shop", &[Scope::Admin]);
    let access = Access::Tokens(Arc::new(Tokens::new(std::slice::from_ref(&ann.token)).unwrap()));
    let options = Options { access, audit: Some(path.clone()), metrics: false, ..Options::default() };
    let house = House::with(options).await.showing(&ann.text);
    house.script("n.wf", "workflow n(x) { return x }").await;
    house.start(json!({ "workflow": "n", "id": "a", "input": "canary-input" })).await;
    house.result("a").await;
    house.post("/api/v1/runs/nobody/cancel", json!({ "reason": "canary-reason" })).await.refused(404);
    house.leave().await;
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(&str, u64)> =
        lines.iter().map(|line| (line["action"].as_str().unwrap(), line["status"].as_u64().unwrap())).collect();
    assert_eq!(
        told,
        [("PUT /api/v1/workflows", 200), ("POST /api/v1/runs", 201), ("POST /api/v1/runs/{run}/cancel", 404)]
    );
    assert!(lines.iter().all(|line| line["who"] == "ann" && line["namespace"] == "shop"));
    assert!(lines.iter().all(|line| line["token"] == ann.token.id.as_str()), "which of her tokens it was: {log}");
    let made: Vec<&serde_json::Value> = lines.iter().map(|line| &line["made"]).collect();
    assert_eq!(made, [&json!(null), &json!("a"), &json!(null)], "which run it was");
    assert_eq!(lines[2]["target"], "/api/v1/runs/nobody/cancel");
    assert!(!log.contains("canary") && !log.contains(&ann.text));
    assert_eq!(verify_audit(&path).unwrap(), Ok(3));
}

/// The lines of an audit log.
fn lines(path: &std::path::Path) -> Vec<serde_json::Value> {
    let log = std::fs::read_to_string(path).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_under_a_name_nobody_gave_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let house = House::with(Options { audit: Some(path.clone()), metrics: false, ..Options::default() }).await;
    house.script("n.wf", "workflow n(x) { return x }").await;
    let run = house.start(json!({ "workflow": "n" })).await;
    house.result(&run).await;
    let forked = house.post(&format!("/api/v1/runs/{run}/fork"), json!({ "at": 0 })).await.ok()["run"].clone();
    let task = house.post("/api/v1/tasks", json!({ "name": "never" })).await.ok()["task"].clone();
    let schedule = json!({ "every_ms": 3_600_000, "workflow": "n", "paused": true });
    house.put("/api/v1/schedules/s", schedule).await.ok();
    let triggered = house.post("/api/v1/schedules/s/trigger", json!({})).await.ok()["run"].clone();
    let bulk = json!({ "action": "cancel", "prefix": "nobody-" });
    let bulk = house.post("/api/v1/bulk", bulk).await.ok()["bulk"].clone();
    house.leave().await;
    let lines = lines(&path);
    let made: Vec<_> = lines.iter().map(|line| line["made"].clone()).filter(|made| !made.is_null()).collect();
    assert_eq!(made, [json!(run), forked, task, triggered, bulk]);
    assert!(lines.iter().all(|line| line["who"] == "local" && line.get("token").is_none()), "{lines:?}");
    assert_eq!(verify_audit(&path).unwrap(), Ok(7));
}

/// Metrics know no namespaces, and a question in SQL neither.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_of_the_server_s_own_namespace_sees_its_metrics() {
    let (own, other) = (token("own", "default", &[Scope::Admin]), token("other", "shop", &[Scope::Admin]));
    let access = Access::Tokens(Arc::new(Tokens::new(&[own.token.clone(), other.token.clone()]).unwrap()));
    let house = House::with(Options { access, ..Options::default() }).await.showing(&other.text);
    assert_eq!(house.get("/metrics").await.refused(403), "forbidden");
    let house = house.showing(&own.text);
    assert!(house.get("/metrics").await.ok().as_str().unwrap().contains("outlast_runs{namespace=\"default\""));
    house.leave().await;
}
