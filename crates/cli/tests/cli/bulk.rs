//! A bulk action whose server is killed in the middle.

use std::io::Read;

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, eventually};
use crate::web::Web;

const SCRIPT: &str = "workflow wait() {\n  return await Signal.next(\"go\")\n}\n";
const RUNS: usize = 400;

fn begin(web: &Web) -> serde_json::Value {
    let request = json!({ "action": "cancel", "workflow": "wait", "reason": "enough" });
    let mut answer = String::new();
    let mut stream = web.ask("POST", "/api/v1/bulk", &[("idempotency-key", "once")], Some(&request));
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

fn with_status(web: &Web, status: &str) -> usize {
    let found = web.get(&format!("/api/v1/runs?limit=1000&status={status}")).is(200).json();
    found["runs"].as_array().unwrap().len()
}

#[test]
fn what_a_killed_server_left_undone_goes_on_under_the_same_key() {
    let place = Place::new(&[("wait.wf", SCRIPT)]);
    let web = Web::start(&place, &["serve", "--workflows", "."]);
    for number in 0..RUNS {
        web.post("/api/v1/runs", &json!({ "workflow": "wait", "id": format!("w-{number}") })).is(201);
    }
    let first = begin(&web);
    assert_eq!(first["matched"], RUNS);
    web.signal(Signal::KILL);
    web.end();

    let web = Web::start(&place, &["serve", "--workflows", "."]);
    let left = RUNS - with_status(&web, "cancelled");
    assert!(left > 0, "it was killed in the middle");
    let second = begin(&web);
    assert_eq!(second["bulk"], first["bulk"], "it is the same one");
    eventually("all are cancelled", || with_status(&web, "cancelled") == RUNS);
    let path = format!("/api/v1/bulk/{}", second["bulk"].as_str().unwrap());
    eventually("it says so", || web.get(&path).is(200).json()["state"] == "done");
    for number in [0, RUNS / 2, RUNS - 1] {
        let events = web.get(&format!("/api/v1/runs/w-{number}/events")).is(200).json();
        let asked = |event: &&serde_json::Value| event["kind"] == "CANCEL_REQUESTED";
        let count = events["events"].as_array().unwrap().iter().filter(asked).count();
        assert_eq!(count, 1, "nobody is told twice: {events}");
    }
}
