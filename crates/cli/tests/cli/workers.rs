//! `outlast worker`: processes that do tasks for a server elsewhere.

use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::place::{Place, eventually};
use crate::web::Web;

const SCRIPT: &str = "workflow held(n) {\n  return await Task.run(\"hold\", n)\n}\n";
/// Answers with its attempt, once nothing keeps it.
const TOML: &str = r#"
[tasks.hold]
command = ["sh", "-c", "echo $OUTLAST_RUN_ID >> begun; while [ -e hang ]; do sleep 0.02; done; echo $OUTLAST_ATTEMPT"]
"#;

/// A server that does no such tasks itself, and who may work for it.
struct Mill {
    web: Web,
    token: String,
    _place: Place,
}

impl Mill {
    fn open() -> Mill {
        let place = Place::new(&[("held.wf", SCRIPT)]);
        let draw = |name: &str, scope: &str| {
            place.call(&["token", "new", name, "--add", "--quiet", "--scope", scope]).exits(0).out.trim().to_owned()
        };
        let (token, admin) = (draw("mill", "worker"), draw("ann", "admin"));
        let mut web = Web::start(&place, &["serve", "--workflows", "."]);
        web.token = Some(admin);
        Mill { web, token, _place: place }
    }

    fn start(&self, run: &str) {
        self.web.post("/api/v1/runs", &json!({ "workflow": "held", "id": run })).is(201);
    }

    /// Begins a worker, and waits until it says what it does.
    fn worker(&self, place: &Place, args: &[&str]) -> Worker {
        let url = format!("http://{}", self.web.address);
        let mut command = place.command(&["worker", "--url", &url, "--log", "debug"]);
        command.args(if args.contains(&"--lease") { &[][..] } else { &["--lease", "1s"][..] });
        command.args(args).env("OUTLAST_TOKEN", &self.token).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let first = lines.next().unwrap();
        let line: serde_json::Value = serde_json::from_str(&first).unwrap();
        assert_eq!((line["message"].as_str(), line["queues"].as_str()), (Some("working"), Some("default")), "{line}");
        assert!(line["tasks"].as_str().unwrap().contains("hold, http.request, log, noop"), "{line}");
        std::thread::spawn(move || lines.for_each(drop));
        Worker(child)
    }
}

/// A worker that ends with the test.
struct Worker(Child);

impl Worker {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn begun(place: &Place) -> usize {
    place.read("begun").lines().count()
}

#[test]
fn what_a_killed_worker_had_another_one_finishes() {
    let mill = Mill::open();
    let place = Place::new(&[("outlast.toml", TOML), ("hang", "")]);
    let first = mill.worker(&place, &[]);
    mill.start("a");
    eventually("the first one has it", || begun(&place) == 1);
    let second = mill.worker(&place, &[]);
    let known = mill.web.get("/api/v1/workers").is(200).json();
    assert!(known["workers"].as_array().unwrap().iter().any(|worker| worker["holds"] != json!([])), "{known}");
    first.signal(Signal::KILL);
    first.end();
    eventually("the second one has it", || begun(&place) == 2);
    std::fs::remove_file(place.path("hang")).unwrap();
    assert_eq!(mill.web.result("a")["output"], 2, "its second attempt");
    second.signal(Signal::TERM);
    assert_eq!(second.end().code(), Some(0));
}

#[test]
fn a_worker_that_is_asked_to_stop_ends_what_it_has_and_takes_nothing_new() {
    let mill = Mill::open();
    let place = Place::new(&[("outlast.toml", TOML), ("hang", "")]);
    let worker = mill.worker(&place, &["--drain", "50s"]);
    mill.start("a");
    eventually("it has one", || begun(&place) == 1);
    // Its lease is over by now, if it gave no signs of life.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    worker.signal(Signal::TERM);
    std::thread::sleep(std::time::Duration::from_millis(300));
    mill.start("b");
    std::fs::remove_file(place.path("hang")).unwrap();
    assert_eq!(worker.end().code(), Some(0));
    assert_eq!(mill.web.result("a")["output"], 1);
    assert_eq!(place.read("begun"), "a\n", "nothing new was taken");
    let _other = mill.worker(&place, &[]);
    assert_eq!(mill.web.result("b")["output"], 1);
}

#[test]
fn what_does_not_end_in_time_is_given_back_and_does_not_count() {
    let mill = Mill::open();
    let place = Place::new(&[("outlast.toml", TOML), ("hang", "")]);
    let worker = mill.worker(&place, &["--drain", "100ms", "--lease", "1h"]);
    mill.start("a");
    eventually("it has one", || begun(&place) == 1);
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code(), Some(0));
    std::fs::remove_file(place.path("hang")).unwrap();
    let _other = mill.worker(&place, &[]);
    assert_eq!(mill.web.result("a")["output"], 1, "it was not an attempt");
}

#[test]
fn a_worker_without_a_server_or_a_token_says_what_it_needs() {
    let place = Place::new(&[]);
    place.call(&["worker"]).exits(2).complains(&["a worker asks a server", "OUTLAST_URL"]);
    let mill = Mill::open();
    let url = format!("http://{}", mill.web.address);
    place.call(&["worker", "--url", &url]).exits(4).complains(&["no valid token was shown"]);
}
