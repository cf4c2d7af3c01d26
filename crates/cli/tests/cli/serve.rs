//! `outlast serve`, as operators use it.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, eventually};
use crate::web::Web;

const HELLO: (&str, &str) = ("hello.wf", "workflow hello(name) {\n  return await Task.run(\"greet\", name)\n}\n");
const TOML: (&str, &str) =
    ("outlast.toml", "[tasks.greet]\ncommand = [\"sh\", \"-c\", \"read -r name; echo \\\"\\\\\\\"hi\\\\\\\"\\\"\"]\n");

fn new_token(place: &Place, name: &str, scopes: &[&str]) -> String {
    let mut args = vec!["token", "new", name, "--add", "--quiet"];
    scopes.iter().for_each(|scope| args.extend(["--scope", scope]));
    place.call(&args).exits(0).out.trim().to_owned()
}

#[test]
fn it_serves_the_workflows_and_tasks_of_files_and_drains_when_it_is_stopped() {
    let place = Place::new(&[HELLO, TOML]);
    let web = Web::start(&place, &["serve", "--workflows", ".", "--database", "sqlite:shop.db"]);
    assert_eq!(web.get("/healthz").is(200).json()["status"], "ok");
    assert_eq!(web.get("/readyz").is(200).json()["status"], "ready");
    assert!(web.get("/metrics").is(200).body.contains("outlast_runs"));
    // The web page if it is built in, and a plain one if it is not: both say whose they are.
    assert!(web.get("/").is(200).body.contains("<title>Outlast</title>"));
    let started = web.post("/api/v1/runs", &json!({ "workflow": "hello", "input": "Ada", "id": "h-1" }));
    assert_eq!(started.is(201).json()["run"], "h-1");
    assert_eq!(web.result("h-1")["output"], "hi");

    let (status, said) = web.stop();
    assert_eq!(status.code(), Some(0), "{said}");
    for line in said.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["at"].is_string() && line["level"].is_string() && line["target"].is_string(), "{line}");
    }
    // The file is free again, and has what was acknowledged.
    let shown = place.call(&["show", "h-1", "--database", "sqlite:shop.db", "-o", "json"]).exits(0).json();
    assert_eq!(shown["status"], "completed");
}

#[test]
fn whoever_waits_for_a_result_when_it_stops_is_answered() {
    let place = Place::new(&[("wait.wf", "await Signal.next(\"go\")\n")]);
    let web = Web::start(&place, &["serve", "--workflows", "."]);
    web.post("/api/v1/runs", &json!({ "workflow": "wait", "id": "w" })).is(201);
    let mut waits = web.ask("GET", "/api/v1/runs/w/result?wait_ms=60000", &[], None);
    let mut stream = web.ask("GET", "/api/v1/runs/w/stream", &[], None);
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    std::thread::sleep(Duration::from_millis(200));
    web.signal(Signal::TERM);
    let mut answer = String::new();
    waits.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202") || answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert_eq!(web.end().0.code(), Some(0));
}

#[test]
fn an_address_that_others_reach_is_refused_without_tokens() {
    let place = Place::new(&[]);
    // A server that is not refused would never end.
    let mut asked = place.begin(&["serve", "--listen", "0.0.0.0:0"]);
    let since = std::time::Instant::now();
    while asked.try_wait().unwrap().is_none() && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = asked.kill();
    crate::place::Said::from(asked.wait_with_output().unwrap())
        .exits(2)
        .complains(&["can be reached from other machines", "outlast token new"]);
    // A section that is misspelt is no server without tokens.
    place.write("outlast.toml", "[[token]]\nid = \"a\"\n");
    place.call(&["serve"]).exits(1).complains(&["outlast.toml", "token"]);
}

#[test]
fn tokens_decide_and_a_changed_file_is_read_again() {
    let place = Place::new(&[HELLO, TOML]);
    let reader = new_token(&place, "ann", &["read"]);
    let mut web = Web::start(&place, &["serve", "--workflows", ".", "--listen", "0.0.0.0:0"]);
    assert_eq!(web.get("/api/v1/runs").is(401).json()["code"], "unauthenticated");
    web.token = Some(reader);
    web.get("/api/v1/runs").is(200);
    assert_eq!(web.post("/api/v1/runs", &json!({ "workflow": "hello" })).is(403).json()["code"], "forbidden");

    let starter = new_token(&place, "bob", &["start", "read"]);
    web.hear("was read again");
    web.token = Some(starter);
    web.post("/api/v1/runs", &json!({ "workflow": "hello", "input": "x" })).is(201);

    // A file that cannot be read changes nothing; one without tokens lets nobody in.
    place.write("outlast.toml", "[[tokens]\n");
    web.hear("what was read before holds");
    web.get("/api/v1/runs").is(200);
    place.write("outlast.toml", "");
    web.hear("was read again");
    web.get("/api/v1/runs").is(401);
    web.token = None;
    web.get("/api/v1/runs").is(401);
    let (_, said) = web.stop();
    assert!(!said.contains("olt_"), "{said}");
}

#[test]
fn a_server_that_had_tokens_stays_closed_when_they_are_taken_away() {
    let place = Place::new(&[]);
    let mut web = Web::start(&place, &["serve"]);
    web.get("/api/v1/runs").is(200);
    new_token(&place, "ann", &["read"]);
    web.hear("was read again");
    web.get("/api/v1/runs").is(401);
    std::fs::remove_file(place.path("outlast.toml")).unwrap();
    web.hear("was read again");
    web.get("/api/v1/runs").is(401);
}

#[test]
fn schedules_of_the_file_fire() {
    let toml = "[schedules.often]\nworkflow = \"tick\"\nevery = \"1s\"\ninput = { n = 7 }\n";
    let place = Place::new(&[("tick.wf", "workflow tick(input) {\n  return input.n\n}\n"), ("outlast.toml", toml)]);
    let web = Web::start(&place, &["serve", "--workflows", "."]);
    eventually("a run of the schedule", || {
        let runs = web.get("/api/v1/runs?status=completed").is(200).json();
        runs["runs"].as_array().is_some_and(|runs| !runs.is_empty())
    });
    let (_, said) = web.stop();
    assert!(!said.contains("\"level\":\"error\""), "{said}");
    place.write("outlast.toml", "[schedules.often]\nworkflow = \"tick\"\ncron = \"* * * * *\"\nevery = \"1s\"\n");
    place.call(&["serve"]).exits(1).complains(&["schedules.often", "either"]);
}

#[test]
fn it_is_asked_over_tls_if_it_has_a_certificate() {
    let place = Place::new(&[]);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    place.write("cert.pem", &made.cert.pem());
    place.write("key.pem", &made.signing_key.serialize_pem());
    place.call(&["serve", "--tls-cert", "cert.pem"]).exits(2).complains(&["--tls-key"]);
    place.call(&["serve", "--tls-cert", "none.pem", "--tls-key", "key.pem"]).exits(1).complains(&["none.pem"]);
    let mut command = place.command(&["serve", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("\"listening\"")).unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = line["address"].as_str().unwrap().replace("127.0.0.1", "localhost");
    assert!(address.starts_with("https://"), "{address}");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers = runtime.block_on(async {
        let trusting = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
        let ask = |client: reqwest::Client, url: String| async move { client.get(url).send().await.ok() };
        let plain = address.replace("https://", "http://");
        [
            ask(trusting.clone(), format!("{address}/healthz")).await.map(|answer| answer.status().as_u16()),
            ask(reqwest::Client::new(), format!("{address}/healthz")).await.map(|answer| answer.status().as_u16()),
            ask(trusting, format!("{plain}/healthz")).await.map(|answer| answer.status().as_u16()),
        ]
    });
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(answers, [Some(200), None, None], "only over TLS, and only by who trusts its certificate");
}
