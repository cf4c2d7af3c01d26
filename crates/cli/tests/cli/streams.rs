//! Following a run, and being cut off.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::json;

use crate::place::Place;
use crate::web::Web;

const COUNT: &str = "workflow count() {\n  let sum = 0\n  for (let n = 0; n < 6; n++) sum += await Signal.next(\"go\")\n  return sum\n}\n";

/// The ids of the events that come, until there are so many or it ends.
fn ids(stream: TcpStream, most: usize) -> Vec<u64> {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("id:")?.trim().parse().ok()).take(most).collect()
}

#[test]
fn whoever_was_cut_off_misses_nothing_and_is_told_nothing_twice_also_after_the_server_was_killed() {
    let place = Place::new(&[("count.wf", COUNT)]);
    let web = Web::start(&place, &["serve", "--workflows", "."]);
    web.post("/api/v1/runs", &json!({ "workflow": "count", "id": "c" })).is(201);
    let signal = |web: &Web, n: u64| {
        web.post("/api/v1/runs/c/signals/go", &json!({ "payload": n, "id": format!("s-{n}") })).is(200);
    };
    for n in 0..3 {
        signal(&web, n);
    }
    let mut seen = ids(web.ask("GET", "/api/v1/runs/c/stream", &[], None), 3);
    assert_eq!(seen, [0, 1, 2]);
    signal(&web, 3);
    web.signal(Signal::KILL);
    web.end();

    let web = Web::start(&place, &["serve", "--workflows", "."]);
    // What was acknowledged before the kill counts; again it is known.
    for n in 3..6 {
        signal(&web, n);
    }
    let last = seen.last().unwrap().to_string();
    seen.extend(ids(web.ask("GET", "/api/v1/runs/c/stream", &[("last-event-id", &last)], None), 1_000));
    let all: Vec<u64> = (0..u64::try_from(seen.len()).unwrap()).collect();
    assert_eq!(seen, all, "each once, in order");
    assert_eq!(web.result("c")["output"], 15);
    assert_eq!(web.get("/api/v1/runs/c").json()["summary"]["events"], seen.len());
}
