//! Every route, with every scope, in its own namespace and in another one: generated from the server's table.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast_server::{Access, NewToken, Options, Route, Scope, Tokens, routes};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::house::{Answer, House, token};

/// In the name of everything that is in the namespace `own`.
const CANARY: &str = "canary";
const WAITS: &str = "workflow canary_waits(input) {
  await Task.all([Task.run(\"pack\", 1), Approval.request({ title: \"canary?\", assignee: \"canary\" })]);
  return 1
}";

/// What is about every namespace is for the admins of the server's own, which is `own` here.
const OF_THE_HOUSE: [&str; 2] = ["/metrics", "/api/v1/sql"];

/// A house with things in the namespace `own`, and how to ask it.
struct Tenants {
    house: House,
    own: String,
    other: String,
    /// A bulk action of `own`.
    bulk: String,
    count: usize,
}

impl Tenants {
    /// A path of a route with things that are there, and a body that could do something to them.
    async fn fill(&mut self, route: &Route) -> (String, Value) {
        self.count += 1;
        let run = self.run();
        let input = json!({ "workflow": "canary_waits", "id": run, "input": "canary-input" });
        let token = self.own.clone();
        self.ask(&token, "POST", "/api/v1/runs", &input).await.ok();
        let schedule = json!({ "every_ms": 3_600_000, "workflow": "canary_waits", "paused": true });
        self.ask(&token, "PUT", "/api/v1/schedules/canary-hourly", &schedule).await.ok();
        let task = json!({ "name": "canary-never", "id": "canary-task", "queue": "canary-queue" });
        self.ask(&token, "POST", "/api/v1/tasks", &task).await;
        let path = route.path.replace("{run}", &run).replace("{schedule}", "canary-hourly");
        let path = path.replace("{task}", "canary-task").replace("{bulk}", &self.bulk).replace("{version}", "1");
        let path =
            path.replace("{workflow}", "canary_waits").replace("{signal}", "word").replace("{approval}", "__approve-0");
        let path = path.replace("{namespace}", "own").replace("{callback}", "__callback-0");
        let path = path.replace("{token}", &"0".repeat(64)).replace("{hook}", "nobody");
        let body = match (route.method, route.path.as_str()) {
            ("POST", "/api/v1/runs") => json!({ "workflow": "canary_waits", "id": format!("{run}-more") }),
            ("PUT", "/api/v1/workflows") => json!({ "file": "more.wf", "text": "workflow more(x) { return x }" }),
            ("PUT", "/api/v1/schedules/{schedule}") => schedule,
            (_, "/api/v1/runs/{run}/approvals/{approval}") => json!({ "approved": true }),
            (_, "/api/v1/runs/{run}/fork") => json!({ "at": 0, "id": format!("{run}-fork") }),
            (_, "/api/v1/runs/{run}/retry" | "/api/v1/runs/{run}/skip") => json!({ "node": "x" }),
            (_, "/api/v1/schedules/{schedule}/backfill") => {
                json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z" })
            }
            ("POST", "/api/v1/bulk") => json!({ "action": "cancel", "all": true, "dry_run": true }),
            ("POST", "/api/v1/tasks") => json!({ "name": "never", "id": format!("more-{}", self.count) }),
            (_, "/api/v1/work/claim") => json!({ "worker": "w", "id": self.count, "names": ["nothing"] }),
            (_, "/api/v1/work/fail") => json!({ "token": "x", "error": { "code": "x", "message": "x" } }),
            (_, "/api/v1/sql") => json!({ "query": "SELECT id FROM run" }),
            (_, path) if path.starts_with("/api/v1/work/") => json!({ "token": "x" }),
            _ => json!({}),
        };
        (path, body)
    }

    /// The run that was made for the last route.
    fn run(&self) -> String {
        format!("canary-{}", self.count)
    }

    async fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.house.client.request(method.clone(), format!("{}{path}", self.house.address));
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        let request = if matches!(method, Method::GET | Method::DELETE) { request } else { request.json(body) };
        let mut response = request.send().await.unwrap();
        if path.ends_with("/stream") && response.status().is_success() {
            // It does not end: what comes at once, if anything does.
            let status = response.status();
            let first = tokio::time::timeout(Duration::from_secs(1), response.chunk()).await;
            let first = first.ok().and_then(|chunk| chunk.unwrap()).unwrap_or_default();
            return Answer { status, body: String::from_utf8_lossy(&first).into_owned().into() };
        }
        Answer::of(response).await
    }

    /// How everything of `own` stands that the last route could have touched.
    async fn standing(&self) -> Value {
        let mut all = Vec::new();
        let run = self.run();
        let run = format!("/api/v1/runs/{run}");
        let paths = ["/api/v1/schedules/canary-hourly", "/api/v1/tasks/canary-task", "/api/v1/workflows", run.as_str()];
        for path in paths {
            all.push(self.ask(&self.own, "GET", path, &Value::Null).await.ok());
        }
        // It may just have begun.
        let summary = &mut all[3]["summary"];
        assert!(matches!(summary["status"].as_str(), Some("waiting" | "running" | "queued")), "{summary}");
        all[3] = Value::Null;
        all.into()
    }
}

/// Each scope alone, in this namespace.
fn scoped(namespace: &str) -> Vec<(Scope, NewToken)> {
    let one = |scope: Scope| (scope, token(&format!("{}-of-{namespace}", scope.name()), namespace, &[scope]));
    Scope::ALL.into_iter().map(one).collect()
}

fn texts(tokens: &[(Scope, NewToken)]) -> Vec<(Scope, String)> {
    tokens.iter().map(|(scope, new)| (*scope, new.text.clone())).collect()
}

/// The server's own namespace is `own`. It keeps metrics and answers SQL: what is off cannot leak.
async fn tenants(more: Vec<NewToken>) -> Tenants {
    let (own, other) = (token("own", "own", &[Scope::Admin]), token("other", "other", &[Scope::Admin]));
    let (own_text, other_text) = (own.text.clone(), other.text.clone());
    let tokens: Vec<_> = more.into_iter().chain([own, other]).map(|new| new.token).collect();
    let access = Access::Tokens(Arc::new(Tokens::new(&tokens).unwrap()));
    let folder = tempfile::tempdir().unwrap();
    let engine = Outlast::sqlite(folder.path().join("house.db")).start().await.unwrap();
    let engine = engine.in_namespace("own").await.unwrap();
    let house = House::on(engine, Options { access, sql: true, ..Options::default() }, folder).await;
    let mut tenants = Tenants { house, own: own_text.clone(), other: other_text, bulk: String::new(), count: 0 };
    let put = json!({ "file": "waits.wf", "text": WAITS });
    tenants.ask(&own_text, "PUT", "/api/v1/workflows", &put).await.ok();
    let claim = json!({ "worker": "canary-worker", "id": 1, "names": ["nothing"] });
    tenants.ask(&own_text, "POST", "/api/v1/work/claim", &claim).await.ok();
    let begin = json!({ "action": "pause", "prefix": "nobody-" });
    let begun = tenants.ask(&own_text, "POST", "/api/v1/bulk", &begin).await.ok();
    tenants.bulk = begun["bulk"].as_str().unwrap().to_owned();
    tenants
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_lets_in_who_may_and_nobody_else() {
    let (own, other) = (scoped("own"), scoped("other"));
    let (own_texts, other_texts) = (texts(&own), texts(&other));
    let past = outlast::Timestamp::from_millis(1_000);
    let expired = NewToken::draw("old", "own", &[Scope::Admin], past).unwrap();
    let expired_text = expired.text.clone();
    let tokens = own.into_iter().chain(other).map(|(_, new)| new).chain([expired]).collect();
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
        // The other namespace first: what it asks for is still there.
        for (is_own, texts) in [(false, &other_texts), (true, &own_texts)] {
            for (scope, text) in texts {
                let answer = tenants.ask(text, method, &path, &body).await;
                let may = (*scope == needed || *scope == Scope::Admin)
                    && (is_own || !OF_THE_HOUSE.contains(&route.path.as_str()));
                let told = format!("{told} needs {needed}, and has {scope} in its own namespace: {is_own}: {answer:?}");
                assert_eq!(!is_refusal(answer.status), may, "{told}");
                assert!(!answer.status.is_server_error(), "{told}");
                if !may {
                    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{told}");
                }
                if !is_own {
                    says_nothing(&answer, route, &told);
                }
                cells += 1;
            }
        }
    }
    println!("{cells} cells");
    tenants.house.leave().await;
}

/// What somebody of another namespace is told has nothing of `own` in it but the name they asked for.
fn says_nothing(answer: &Answer, route: &Route, told: &str) {
    let names_something = ["{run}", "{schedule}", "{task}", "{workflow}", "{bulk}"].iter();
    if names_something.clone().any(|part| route.path.contains(part)) && !is_refusal(answer.status) {
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{told}");
        assert_eq!(answer.body.as_object().map(serde_json::Map::len), Some(3), "a refusal and nothing else: {told}");
    } else if answer.status.is_success() {
        let text = answer.body.to_string();
        assert!(!text.contains(CANARY) && !text.contains("\"own\""), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_one_namespace_is_seen_or_touched_from_another() {
    let mut tenants = tenants(Vec::new()).await;
    let mut seen = Vec::new();
    for route in routes() {
        if route.scope.is_none() {
            continue;
        }
        let (path, body) = tenants.fill(&route).await;
        let (own, other) = (tenants.own.clone(), tenants.other.clone());
        let told = format!("{} {}", route.method, route.path);
        if route.path == "/api/v1/approvals" {
            let waits = |inbox: &Value| inbox["approvals"][0].is_object();
            while !waits(&tenants.ask(&own, "GET", &path, &body).await.ok()) {
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        }
        let before = tenants.standing().await;
        let answer = tenants.ask(&other, route.method, &path, &body).await;
        says_nothing(&answer, &route, &format!("{told}: {answer:?}"));
        // Numbers have no name: there is nothing to count.
        let number = match route.path.as_str() {
            "/api/v1/counts" => Some((&answer.body["counts"], json!({}))),
            "/api/v1/doctor" => Some((&answer.body["runs"], json!(0))),
            "/api/v1/bulk" => Some((&answer.body["matched"], json!(0))),
            _ => None,
        };
        if let Some((number, none)) = number {
            assert_eq!(*number, none, "{told}: {answer:?}");
        }
        assert_eq!(tenants.standing().await, before, "{told}");
        if route.method == "GET" {
            let answer = tenants.ask(&own, route.method, &path, &body).await;
            if answer.body.to_string().contains(CANARY) {
                seen.push(route.path);
            }
        }
    }
    // All of it is there to be seen by those who may.
    for list in
        ["runs", "workflows", "schedules", "approvals", "tasks", "workers", "changes/stream", "runs/{run}/stream"]
    {
        assert!(seen.contains(&format!("/api/v1/{list}")), "{list} is not in {seen:?}");
    }
    assert!(seen.contains(&"/metrics".to_owned()), "{seen:?}");
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
