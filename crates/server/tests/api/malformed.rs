//! Every route with everything that can be wrong with a request, generated from the OpenAPI document: it is always the sender who
//! is told, and never a fault of the server.

use outlast::Outlast;
use outlast_server::{Hooks, Options, Route, ServerConfig, routes};
use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{House, now};
use crate::repeats;

/// A request that is wrong in some way.
#[derive(Clone, Debug)]
struct Wrong {
    path: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl Wrong {
    fn with(path: &str, body: impl Into<Vec<u8>>) -> Wrong {
        let headers = vec![("content-type", b"application/json".to_vec())];
        Wrong { path: path.to_owned(), headers, body: Some(body.into()) }
    }

    fn typed(path: &str, kind: &str, body: &Value) -> Wrong {
        let headers = vec![("content-type", kind.as_bytes().to_vec())];
        Wrong { path: path.to_owned(), headers, body: Some(body.to_string().into_bytes()) }
    }

    fn header(path: &str, name: &'static str, value: impl Into<Vec<u8>>, body: &Value) -> Wrong {
        let mut wrong = Wrong::with(path, body.to_string());
        wrong.headers.push((name, value.into()));
        wrong
    }
}

/// Parts of paths that are no ids, and some that could be.
fn ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "%00",
        "a%00b",
        "%ff",
        "%c3%28",
        "%0a",
        "%7f",
        "%ed%a0%80",
        "%2e%2e%2f%2e%2e%2fetc",
        "%zz",
        "%",
        "-1",
        "null",
        "%20",
        "%F0%9F%92%A9",
        "';%20DROP%20TABLE%20run;--",
        "%7B%22a%22:1%7D",
        "%25s%25n",
        "0",
        "18446744073709551616",
        "%e2%80%ae",
    ]
    .map(str::to_owned)
    .to_vec();
    ids.extend([64, 65, 128, 129, 255, 256, 1_024, 1_025, 10_000].map(|length| "a".repeat(length)));
    ids
}

const QUERIES: [&str; 40] = [
    "limit=0",
    "limit=-1",
    "limit=1001",
    "limit=abc",
    "limit=",
    "limit=99999999999999999999",
    "limit=1&limit=2",
    "limit=1.5",
    "cursor=",
    "cursor=abc",
    "cursor=-1",
    "cursor=18446744073709551615",
    "cursor=9223372036854775808",
    "cursor=%00",
    "status=nobody",
    "status=",
    "status=completed,,failed",
    "state=nobody",
    "wait_ms=-1",
    "wait_ms=abc",
    "wait_ms=1e3",
    "from=-1",
    "from=18446744073709551615",
    "from=9223372036854775807",
    "generation=18446744073709551615",
    "generation=x",
    "created_from=soon",
    "created_from=9999-99-99T00:00:00Z",
    "created_until=-262143-01-01T00:00:00Z",
    "attribute=x",
    "attribute==",
    "attribute=%00=%00",
    "prefix=%00",
    "workflow=",
    "workflow=%00",
    "parent=%ff",
    "nobody=knows",
    "after=x",
    "assignee=%00",
    "reason=%00",
];

/// Bodies that are no objects of any kind.
fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "null",
        "[]",
        "\"x\"",
        "1",
        "true",
        "{",
        "}",
        "{\"a\":}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1,}",
        "{} {}",
        "\u{feff}{}",
        "\"\\ud800\"",
        "{\"\\u0000\":1}",
        "{\"nobody\":1}",
        "NaN",
        "{\"id\":1e999}",
        "// {}",
        "<xml/>",
        "{\"id\":\"a\",\"id\":\"b\"}",
        "{\"name\":\"a\",\"name\":\"a\"}",
        "{\"workflow\":\"a\",\"workflow\":\"a\"}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    bodies.push(b"{\"a\":\"\xff\xfe\"}".to_vec());
    bodies.push(b"\xff".to_vec());
    bodies.push(vec![0; 100]);
    for depth in [128, 129, 100_000] {
        bodies.push(format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes());
        bodies.push(format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).into_bytes());
        bodies.push("[".repeat(depth).into_bytes());
    }
    bodies
}

/// Values that most fields cannot have.
fn values() -> Vec<Value> {
    let deep = (0..127).fold(json!(1), |inside, _| json!([inside]));
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("\u{202e}"),
        json!("x".repeat(256)),
        json!("x".repeat(9_000)),
        json!([]),
        json!([[]]),
        json!(["\u{0}"]),
        json!({}),
        json!({ "\u{0}": "\u{0}" }),
        deep,
    ]
}

/// The properties of a route's body.
fn fields(document: &Value, route: &Route) -> Vec<String> {
    let operation = &document["paths"][&route.path][route.method.to_lowercase()];
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else { return Vec::new() };
    let properties = document["components"]["schemas"][name]["properties"].as_object();
    properties.map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

/// A body that could be right, so that what is wrong with one field is found behind the others.
fn base(route: &Route) -> Value {
    match (route.method, route.path.as_str()) {
        ("POST", "/api/v1/runs") => json!({ "workflow": "waits" }),
        ("PUT", "/api/v1/workflows") => json!({ "file": "x.wf", "text": "return 1" }),
        ("PUT", _) => json!({ "workflow": "waits", "every_ms": 3_600_000, "paused": true }),
        (_, path) if path.ends_with("/{approval}") => json!({ "approved": true }),
        (_, path) if path.ends_with("/fork") => json!({ "at": 0 }),
        (_, path) if path.ends_with("/retry") && path.contains("{run}") => json!({ "node": "x" }),
        (_, path) if path.ends_with("/skip") => json!({ "node": "x" }),
        (_, path) if path.ends_with("/backfill") => {
            json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z" })
        }
        ("POST", "/api/v1/bulk") => json!({ "action": "pause", "prefix": "nobody-" }),
        ("POST", "/api/v1/sql") => json!({ "query": "SELECT 1 AS one" }),
        (_, path) if path.starts_with("/hooks/") => json!({ "order": "r" }),
        (_, path) if path.starts_with("/callbacks/") && path.ends_with("/fail") => {
            json!({ "error": { "code": "x", "message": "x" } })
        }
        ("POST", "/api/v1/tasks") => json!({ "name": "x" }),
        (_, path) if path.ends_with("/claim") => json!({ "worker": "w", "id": 1, "names": ["x"] }),
        (_, path) if path.ends_with("/fail") => json!({ "token": "x", "error": { "code": "x", "message": "x" } }),
        (_, path) if path.starts_with("/api/v1/work/") => json!({ "token": "x" }),
        _ => json!({}),
    }
}

fn wrongs(document: &Value, route: &Route) -> Vec<Wrong> {
    let fill = |id: &str| {
        let mut path = String::new();
        for part in route.path.split('/').skip(1) {
            path.push('/');
            path.push_str(match part {
                "{run}" if route.path.starts_with("/callbacks/") => "RUN",
                "{run}" => "r",
                "{schedule}" => "s",
                "{workflow}" => "waits",
                "{namespace}" => "default",
                "{hook}" => HOOK,
                "{task}" => "t",
                // A callback that waits for its answer when the request is sent.
                "{callback}" if route.path.starts_with("/callbacks/") => "CALLBACK",
                "{token}" => "TOKEN",
                part if part.starts_with('{') => id,
                part => part,
            });
        }
        path
    };
    let (own, body) = (fill("x"), base(route));
    // The first one is right, to see that what is behind the route is reached.
    let mut wrongs = vec![Wrong::with(&own, body.to_string())];
    for id in ids() {
        let path: Vec<&str> =
            route.path.split('/').map(|part| if part.starts_with('{') { &*id } else { part }).collect();
        wrongs.push(Wrong::with(&path.join("/"), body.to_string()));
    }
    wrongs.extend(QUERIES.map(|query| Wrong::with(&format!("{own}?{query}"), body.to_string())));
    wrongs.extend(bodies().into_iter().map(|bytes| Wrong::with(&own, bytes)));
    for kind in [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "é",
        "",
    ] {
        wrongs.push(Wrong::typed(&own, kind, &body));
    }
    wrongs.push(Wrong { path: own.clone(), headers: Vec::new(), body: Some(body.to_string().into_bytes()) });
    for key in ["".as_bytes(), &[b'k'; 256], &[b'k'; 5_000], "\u{e4}".as_bytes(), b"\xff"] {
        wrongs.push(Wrong::header(&own, "idempotency-key", key, &body));
        wrongs.push(Wrong::header(&own, "last-event-id", key, &body));
    }
    for field in fields(document, route) {
        for value in values() {
            // A number there is a time to wait, and this is no test of patience.
            if field == "wait_ms" && value.as_u64().is_some() {
                continue;
            }
            let mut changed = body.clone();
            changed[&field] = value;
            wrongs.push(Wrong::with(&own, changed.to_string()));
        }
        let mut without = body.clone();
        without.as_object_mut().unwrap().remove(&field);
        wrongs.push(Wrong::with(&own, without.to_string()));
        let twice = body.to_string().replacen('{', &format!("{{\"{field}\":null,\"{field}\":null,"), 1);
        wrongs.push(Wrong::with(&own, twice));
    }
    wrongs
}

/// A house in which everything is switched on.
async fn house() -> House {
    let config = format!(
        "[[hooks]]\nid = \"{HOOK}\"\nname = \"x\"\nsecrets = [\"env:X\"]\nsignal = \"word\"\nrun = \"/order\"\n\
         map = \"({{ word: body.order }})\"\n"
    );
    let config = ServerConfig::from_toml(&config, |_: &str| Some(SECRET.to_owned())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let engine = Outlast::sqlite(folder.path().join("house.db"));
    let engine = engine.workflow("calls", repeats::calls).start().await.unwrap();
    let hooks = Hooks::new(config.hooks).unwrap();
    House::on(engine, Options { hooks, metrics: true, sql: true, ..Options::default() }, folder).await
}

const HOOK: &str = "hook-hook-hook-hook-hook";
const SECRET: &str = "whsec_c29tZXRoaW5nIG5ldyB0aGF0IGlzIGxvbmcgZW5vdWdo";

/// The run, key and token of a callback that nobody has answered.
async fn callback(house: &House) -> [String; 3] {
    let id = format!("callback-{}", house.count());
    let path = repeats::called(house, "{run}:{callback}:{token}", &id).await;
    let mut parts = path.split(':').skip(1).map(str::to_owned);
    [id, parts.next().unwrap(), parts.next().unwrap()]
}

fn sign(headers: &mut Vec<(&'static str, Vec<u8>)>, body: &[u8]) {
    let (id, time) = (format!("m-{}", body.len()), now().as_millis() / 1_000);
    // The library signs nothing but text: what is none comes without a signature that is right.
    let signature = standardwebhooks::Webhook::new(SECRET).unwrap().sign(&id, time, body).unwrap_or_default();
    headers.push(("webhook-id", id.into_bytes()));
    headers.push(("webhook-timestamp", time.to_string().into_bytes()));
    headers.push(("webhook-signature", signature.into_bytes()));
}

async fn send(house: &House, route: &Route, wrong: &Wrong) -> u16 {
    let method = Method::from_bytes(route.method.as_bytes()).unwrap();
    let mut wrong = wrong.clone();
    if route.path.starts_with("/hooks/") {
        let body = wrong.body.clone().unwrap_or_default();
        sign(&mut wrong.headers, &body);
    }
    let mut request = house.request(method.clone(), &wrong.path);
    for (name, value) in &wrong.headers {
        if let Ok(value) = reqwest::header::HeaderValue::from_bytes(value) {
            request = request.header(*name, value);
        }
    }
    // Nobody reads the body of the others.
    if let (Some(body), true) = (&wrong.body, matches!(method, Method::POST | Method::PUT)) {
        request = request.body(body.clone());
    }
    let response =
        request.send().await.unwrap_or_else(|error| panic!("{error:?} {} {:.300}", route.method, format!("{wrong:?}")));
    let status = response.status();
    // A head that is too large is refused before anybody knows which route it is for.
    if status.is_client_error() && !matches!(status.as_u16(), 414 | 431) {
        let body: Value = response.json().await.unwrap_or_else(|error| panic!("{status} {wrong:?}: {error}"));
        for part in ["code", "message", "hint"] {
            assert!(body[part].as_str().is_some_and(|text| !text.is_empty()), "{part} of {body} for {wrong:?}");
        }
    }
    status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_request_it_is_never_the_server_that_fails() {
    let house = house().await;
    house.script("waits.wf", "workflow waits(input) { return await Signal.next(\"word\") }").await;
    let mut open = callback(&house).await;
    let document: Value = serde_json::from_str(&outlast_server::openapi()).unwrap();
    let (mut sent, mut refused, mut faults) = (0, 0, Vec::new());
    let before = resident_mib();
    for route in routes() {
        // There again for each, whatever the one before did to it.
        house.post("/api/v1/runs", json!({ "workflow": "waits", "id": "r" })).await;
        let schedule = json!({ "workflow": "waits", "every_ms": 3_600_000, "paused": true });
        house.put("/api/v1/schedules/s", schedule).await;
        house.post("/api/v1/tasks", json!({ "name": "t", "id": "t" })).await;
        let (mut own, mut client_errors) = (0, 0);
        for (number, mut wrong) in wrongs(&document, &route).into_iter().enumerate() {
            let [run, key, token] = &open;
            wrong.path = wrong.path.replace("RUN", run).replace("CALLBACK", key).replace("TOKEN", token);
            let status = send(&house, &route, &wrong).await;
            assert!(number > 0 || !is_missed(&route, status), "{status} {wrong:?}: what is behind it is not reached");
            if wrong.path.starts_with("/callbacks/") && status < 300 {
                open = callback(&house).await;
            }
            own += 1;
            client_errors += usize::from((400..500).contains(&status));
            if status >= 500 {
                faults.push(format!("{status} {} {:.300}", route.method, format!("{wrong:?}")));
            }
        }
        assert!(own >= 24, "{} {}: only {own}", route.method, route.path);
        let operation = &document["paths"][&route.path][route.method.to_lowercase()];
        let can_be_wrong = operation["parameters"].is_array() || operation["requestBody"].is_object();
        assert!(client_errors >= 8 || !can_be_wrong, "{} {}: only {client_errors} refused", route.method, route.path);
        (sent, refused) = (sent + own, refused + client_errors);
    }
    println!("{sent} requests, {refused} refused, {:.0} MiB more", resident_mib() - before);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(house.get("/healthz").await.ok()["status"], "ok");
    let grown = resident_mib() - before;
    assert!(grown < GROWS_MIB_MAX, "{grown} MiB more than before {sent} requests");
    house.leave().await;
}

/// Whether a request that is right did not come to what the route is about.
fn is_missed(route: &Route, status: u16) -> bool {
    // A bulk action, a version and an approval have names that are not known before.
    let unnamed = ["{bulk}", "{version}", "{approval}"].iter().any(|part| route.path.contains(part));
    matches!(status, 401 | 403 | 404 | 405) && !unnamed && route.path != "/api/v1/runs/{run}/trace"
}

/// How much more memory there may be after all of them, on both sides of the connection. A server that kept what it was sent would
/// have several times as much.
const GROWS_MIB_MAX: f64 = 96.0;

/// What this process has in memory; nothing where that cannot be asked.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0.0) / 1_024.0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_one_byte_too_large_is_refused_by_every_route_that_reads_one() {
    let house = House::open().await;
    let body = vec![b' '; 4 * 1024 * 1024 + 1];
    for route in routes() {
        if matches!(route.method, "GET" | "DELETE") || route.path.starts_with("/hooks/") {
            continue;
        }
        let path = route.path.replace(['{', '}'], "");
        assert_eq!(send(&house, &route, &Wrong::with(&path, body.clone())).await, 413, "{}", route.path);
    }
    house.leave().await;
}
