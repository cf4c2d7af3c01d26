//! Every route, with every scope, in its own namespace and in another one: generated from the server's table.

use outlast_server::{NewToken, Route, Scope, routes};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::house::{Answer, House, token};

const WAITS: &str = "workflow waits(input) {
  await Task.run(\"pack\", 1);
  return 1
}";

/// A house with things in the namespace `own`, and how to ask it.
struct Tenants {
    house: House,
    own: String,
    other: String,
    count: usize,
}

impl Tenants {
    /// A path of a route with things that are there, and a body that could do something to them.
    async fn fill(&mut self, route: &Route) -> (String, Value) {
        self.count += 1;
        let run = format!("run-{}", self.count);
        let input = json!({ "workflow": "waits", "id": run });
        let token = self.own.clone();
        self.ask(&token, "POST", "/api/v1/runs", &input).await.ok();
        let schedule = json!({ "every_ms": 3_600_000, "workflow": "waits", "paused": true });
        self.ask(&token, "PUT", "/api/v1/schedules/hourly", &schedule).await.ok();
        let task = json!({ "name": "never", "id": "task" });
        self.ask(&token, "POST", "/api/v1/tasks", &task).await;
        let path = route.path.replace("{run}", &run).replace("{schedule}", "hourly").replace("{task}", "task");
        let path = path.replace("{workflow}", "waits").replace("{signal}", "word").replace("{approval}", "__approve-0");
        let path = path.replace("{version}", "1").replace("{namespace}", "own").replace("{callback}", "__callback-0");
        let path = path.replace("{token}", &"0".repeat(64)).replace("{hook}", "nobody");
        let body = match (route.method, route.path.as_str()) {
            ("POST", "/api/v1/runs") => json!({ "workflow": "waits", "id": format!("{run}-more") }),
            ("PUT", "/api/v1/workflows") => json!({ "file": "more.wf", "text": "workflow more(x) { return x }" }),
            ("PUT", "/api/v1/schedules/{schedule}") => schedule,
            (_, "/api/v1/runs/{run}/approvals/{approval}") => json!({ "approved": true }),
            (_, "/api/v1/runs/{run}/fork") => json!({ "at": 0, "id": format!("{run}-fork") }),
            (_, "/api/v1/runs/{run}/retry" | "/api/v1/runs/{run}/skip") => json!({ "node": "x" }),
            (_, "/api/v1/schedules/{schedule}/backfill") => {
                json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z" })
            }
            ("POST", "/api/v1/bulk") => json!({ "action": "pause", "prefix": "nobody-", "dry_run": true }),
            ("POST", "/api/v1/tasks") => json!({ "name": "never", "id": format!("more-{}", self.count) }),
            (_, "/api/v1/work/claim") => json!({ "worker": "w", "id": self.count, "names": ["nothing"] }),
            (_, "/api/v1/work/fail") => json!({ "token": "x", "error": { "code": "x", "message": "x" } }),
            (_, "/api/v1/sql") => json!({ "query": "SELECT id FROM run" }),
            (_, path) if path.starts_with("/api/v1/work/") => json!({ "token": "x" }),
            _ => json!({}),
        };
        (path, body)
    }

    async fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.house.client.request(method.clone(), format!("{}{path}", self.house.address));
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        let request = if matches!(method, Method::GET | Method::DELETE) { request } else { request.json(body) };
        let response = request.send().await.unwrap();
        if path.ends_with("/stream") {
            return Answer { status: response.status(), body: Value::Null };
        }
        Answer::of(response).await
    }
}

async fn tenants(more: Vec<NewToken>) -> Tenants {
    let (own, other) = (token("own", "own", &[Scope::Admin]), token("other", "other", &[Scope::Admin]));
    let (own_text, other_text) = (own.text.clone(), other.text.clone());
    let tokens: Vec<NewToken> = more.into_iter().chain([own, other]).collect();
    let house = House::guarded(&tokens).await;
    let tenants = Tenants { house, own: own_text.clone(), other: other_text, count: 0 };
    let put = json!({ "file": "waits.wf", "text": WAITS });
    tenants.ask(&own_text, "PUT", "/api/v1/workflows", &put).await.ok();
    tenants
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_lets_in_who_may_and_nobody_else() {
    let scoped: Vec<(Scope, NewToken)> =
        Scope::ALL.into_iter().map(|scope| (scope, token(scope.name(), "own", &[scope]))).collect();
    let texts: Vec<(Scope, String)> = scoped.iter().map(|(scope, new)| (*scope, new.text.clone())).collect();
    let past = outlast::Timestamp::from_millis(1_000);
    let expired = NewToken::draw("old", "own", &[Scope::Admin], past).unwrap();
    let expired_text = expired.text.clone();
    let tokens = scoped.into_iter().map(|(_, new)| new).chain([expired]).collect();
    let mut tenants = tenants(tokens).await;
    let (mut cells, all) = (0, routes());
    assert!(all.len() > 50, "{}", all.len());
    for route in &all {
        let (path, body) = tenants.fill(route).await;
        let (method, told) = (route.method, format!("{} {}", route.method, route.path));
        let Some(needed) = route.scope else {
            let answer = tenants.ask("", method, &path, &body).await;
            assert!(!is_refusal(answer.status), "{told} needs nobody: {answer:?}");
            cells += 1;
            continue;
        };
        let stranger = NewToken::draw("stranger", "own", &[Scope::Admin], crate::house::in_an_hour()).unwrap().text;
        for nobody in ["", "nothing", "olt_", &expired_text, &stranger] {
            let answer = tenants.ask(nobody, method, &path, &body).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{told} with {nobody:?}: {answer:?}");
            cells += 1;
        }
        for (scope, text) in &texts {
            let answer = tenants.ask(text, method, &path, &body).await;
            let may = *scope == needed || *scope == Scope::Admin;
            assert_eq!(!is_refusal(answer.status), may, "{told} needs {needed}, and has {scope}: {answer:?}");
            assert!(!answer.status.is_server_error(), "{told}: {answer:?}");
            if !may {
                assert_eq!(answer.status, StatusCode::FORBIDDEN, "{told}");
            }
            cells += 1;
        }
    }
    println!("{cells} cells");
    tenants.house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_one_namespace_is_seen_or_touched_from_another() {
    let mut tenants = tenants(Vec::new()).await;
    for route in routes() {
        if route.scope.is_none() {
            continue;
        }
        let (path, body) = tenants.fill(&route).await;
        let (own, other) = (tenants.own.clone(), tenants.other.clone());
        let told = format!("{} {}", route.method, route.path);
        let names_something =
            ["{run}", "{schedule}", "{task}", "{workflow}"].iter().any(|part| route.path.contains(part));
        let run = format!("/api/v1/runs/run-{}", tenants.count);
        let before = tenants.ask(&own, "GET", "/api/v1/schedules/hourly", &json!({})).await.ok();
        let answer = tenants.ask(&other, route.method, &path, &body).await;
        if names_something {
            // A flow's node and a start of an unknown workflow are looked for, and not found, like all else.
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{told}: {answer:?}");
        } else if answer.status.is_success() {
            let text = answer.body.to_string();
            assert!(!text.contains("run-") && !text.contains("hourly"), "{told}: {text}");
        }
        let view = tenants.ask(&own, "GET", &run, &json!({})).await.ok();
        assert!(matches!(view["summary"]["status"].as_str(), Some("waiting" | "running" | "queued")), "{told}: {view}");
        assert_eq!(tenants.ask(&own, "GET", "/api/v1/schedules/hourly", &json!({})).await.ok(), before, "{told}");
    }
    tenants.house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_an_attempt_is_worth_nothing_in_another_namespace() {
    let mut tenants = tenants(Vec::new()).await;
    let route = Route { method: "GET", path: "/x".to_owned(), scope: None };
    tenants.fill(&route).await;
    let (own, other) = (tenants.own.clone(), tenants.other.clone());
    let claim = json!({ "worker": "w", "id": 1, "names": ["pack"], "wait_ms": 10_000 });
    let claimed = tenants.ask(&own, "POST", "/api/v1/work/claim", &claim).await.ok();
    let offer = claimed["tasks"][0]["token"].clone();
    let failure = json!({ "code": "x", "message": "x" });
    for (path, body) in [
        ("heartbeat", json!({ "token": offer })),
        ("complete", json!({ "token": offer, "result": 1 })),
        ("fail", json!({ "token": offer, "error": failure })),
        ("give-back", json!({ "token": offer })),
    ] {
        let path = format!("/api/v1/work/{path}");
        let answer = tenants.ask(&other, "POST", &path, &body).await;
        assert_eq!(answer.refused(422), "validation_error", "{path}");
    }
    let claim = json!({ "worker": "w", "id": 1, "names": ["pack"] });
    let others = tenants.ask(&other, "POST", "/api/v1/work/claim", &claim).await.ok();
    assert_eq!(others["tasks"], json!([]), "also under the same worker's name and claim");
    let done = json!({ "token": offer, "result": 1 });
    tenants.ask(&own, "POST", "/api/v1/work/complete", &done).await.ok();
    tenants.house.leave().await;
}
