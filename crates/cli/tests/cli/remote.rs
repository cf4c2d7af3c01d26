//! Every verb over HTTP: the same answers as from a database, and the codes of what can go wrong.

use serde_json::{Value, json};

use crate::place::{Place, Said, eventually};
use crate::web::Web;

/// A server, and somebody who asks it from another folder.
pub(crate) struct Far {
    pub(crate) web: Web,
    pub(crate) here: Place,
    token: Option<String>,
    pub(crate) there: Place,
}

impl Far {
    pub(crate) fn new(files: &[(&str, &str)]) -> Far {
        let there = Place::new(files);
        let web = Web::start(&there, &["serve", "--workflows", "."]);
        Far { web, here: Place::new(files), token: None, there }
    }

    pub(crate) fn call(&self, args: &[&str]) -> Said {
        let mut command = self.here.command(args);
        command.env("OUTLAST_URL", format!("http://{}", self.web.address));
        if let Some(token) = &self.token {
            command.env("OUTLAST_TOKEN", token);
        }
        command.output().unwrap().into()
    }

    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.call(&[args, &["-o", "json"]].concat()).exits(0).json()
    }
}

const SHIP: (&str, &str) = (
    "ship.wf",
    "const ok = await Approval.request({ title: \"Ship it?\", assignee: \"sales\" })\n\
     return ok.approved ? \"shipped\" : \"kept\"\n",
);
const ADD: (&str, &str) = ("add.wf", "workflow add(n) {\n  return n + await Task.run(\"noop\", 1)\n}\n");

#[test]
fn runs_are_started_looked_at_and_told_things() {
    let far = Far::new(&[SHIP, ADD]);
    assert_eq!(far.call(&["start", "add", "-i", "4", "--wait"]).exits(0).out, "5\n");
    assert_eq!(far.json(&["start", "ship", "--id", "s-1"]), json!({ "run": "s-1", "new": true }));
    assert_eq!(far.json(&["start", "ship", "--id", "s-1"])["new"], false);
    eventually("it waits", || far.json(&["show", "s-1"])["status"] == "waiting");
    assert_eq!(far.json(&["list", "--workflow", "ship"])[0]["run"], "s-1");
    assert_eq!(far.json(&["approvals"])[0]["approval"], "__approve-0");
    let shown = far.call(&["show", "s-1"]).exits(0).out;
    assert!(shown.contains("__approve-0") && shown.contains("WAITS FOR"), "{shown}");
    assert!(far.call(&["explain", "s-1"]).exits(0).out.contains("Ship it?"));
    assert_eq!(far.json(&["signal", "s-1", "x", "1", "--id", "one"])["outcome"], "buffered");
    assert_eq!(far.json(&["signal", "s-1", "x", "1", "--id", "one"])["outcome"], "duplicate");
    far.call(&["pause", "s-1"]).exits(0);
    eventually("it is paused", || far.json(&["show", "s-1"])["status"] == "paused");
    far.call(&["resume", "s-1"]).exits(0);
    assert_eq!(far.json(&["fork", "s-1", "--at", "0", "--id", "s-2"])["run"], "s-2");
    far.call(&["cancel", "s-2"]).exits(0);
    far.call(&["replay", "s-1", "ship.wf"]).exits(0);
    far.call(&["check-replay", "ship.wf"]).exits(0);
    far.call(&["trace", "s-1", "ship.wf"]).exits(0);
    far.call(&["approve", "s-1"]).exits(0);
    let events = far.call(&["events", "s-1", "--follow", "-o", "jsonl"]).exits(0).out;
    assert!(events.lines().last().unwrap().contains("RUN_FINISHED"), "{events}");
    assert_eq!(far.json(&["show", "s-1"])["output"], "shipped");
}

#[test]
fn flows_schedules_tasks_workers_and_the_doctor_are_asked_too() {
    let flow =
        "flow: two\nnodes:\n  - { id: ok, type: approve, title: 'Ship?' }\n  - { id: end, type: task, task: noop }\n";
    let far = Far::new(&[ADD, ("two.flow.yaml", flow)]);
    far.call(&["start", "two", "--id", "f"]).exits(0);
    eventually("it waits", || far.json(&["show", "f"])["status"] == "waiting");
    assert!(far.call(&["graph", "two.flow.yaml", "--run", "f"]).exits(0).out.contains("flowchart"));
    far.call(&["skip", "f", "ok", "--reason", "everybody is away"]).exits(0);
    eventually("it is over", || far.json(&["show", "f"])["status"] == "completed");

    let put = far.json(&["schedule", "put", "nightly", "--workflow", "add", "--cron", "0 3 * * *", "-i", "1"]);
    assert_eq!((&put["schedule"], &put["workflow"]), (&json!("nightly"), &json!("add")));
    assert_eq!(far.json(&["schedule", "list"])[0]["schedule"], "nightly");
    far.call(&["schedule", "pause", "nightly"]).exits(0);
    assert!(far.call(&["schedule", "show", "nightly"]).exits(0).out.contains("paused by hand"));
    far.call(&["schedule", "resume", "nightly"]).exits(0);
    assert_eq!(far.json(&["schedule", "trigger", "nightly"])["outcome"], "started");
    far.call(&["schedule", "delete", "nightly"]).exits(0);
    far.call(&["schedule", "show", "nightly"]).exits(3);

    assert!(far.json(&["workers"])[0]["tasks"].to_string().contains("noop"));
    assert_eq!(far.json(&["doctor"])["healthy"], true);
    far.here.write("new.wf", "return 9\n");
    far.call(&["start", "new"]).exits(3);
    far.call(&["put", "new.wf"]).exits(0);
    assert_eq!(far.call(&["start", "new", "--wait"]).exits(0).out, "9\n");
}

#[test]
fn the_same_verbs_work_on_a_database_that_nobody_serves() {
    let place = Place::new(&[ADD]);
    place.call(&["run", "add.wf", "-i", "1"]).exits(0);
    assert_eq!(place.call(&["doctor", "-o", "json"]).exits(0).json()["healthy"], true);
    place.call(&["schedule", "put", "s", "--workflow", "add", "--every", "1h"]).exits(0);
    assert_eq!(place.call(&["schedule", "list", "-o", "json"]).exits(0).json()[0]["schedule"], "s");
    place.call(&["start", "add", "-i", "41", "--id", "later"]).exits(0);
    assert_eq!(place.call(&["show", "later", "-o", "json"]).exits(0).json()["status"], "queued");
    assert_eq!(place.call(&["run", "add.wf", "--id", "later", "-q"]).exits(0).out, "42\n");
}

#[test]
fn what_goes_wrong_has_a_code() {
    let boom = ("boom.wf", "throw \"boom\"\n");
    let slow = ("slow.wf", "await Signal.next(\"never\")\n");
    let mut far = Far::new(&[boom, slow]);
    far.call(&["show", "nobody"]).exits(3).complains(&["hint:"]);
    far.call(&["cancel", "nobody"]).exits(3);
    far.call(&["start", "nobody"]).exits(3);
    far.call(&["start", "boom", "--wait"]).exits(5).complains(&["boom"]);
    far.call(&["start", "slow", "--wait", "--timeout", "300ms"]).exits(6).complains(&["not over"]);
    far.call(&["list", "--url", "ftp://x"]).exits(2);
    far.call(&["list", "--url", "http://ann:secret@127.0.0.1:1"]).exits(2).complains(&["OUTLAST_TOKEN"]);
    far.call(&["list", "--url", "http://127.0.0.1:1"]).exits(7).complains(&["does not answer", "outlast dev"]);
    // What is said counts more than the environment.
    far.call(&["list", "--database", "sqlite:none.db"]).exits(3).complains(&["there is no database"]);

    // Tokens come, and from then on one is needed.
    let add = ["token", "new", "ann", "--scope", "read", "--add", "--quiet"];
    far.token = Some(far.there.call(&add).exits(0).out.trim().to_owned());
    far.web.hear("was read again");
    far.call(&["list"]).exits(0);
    far.call(&["start", "boom"]).exits(4).complains(&["no scope `start`"]);
    far.token = Some("olt_nothing".to_owned());
    far.call(&["list"]).exits(4).complains(&["no valid token"]);
    let listed = far.there.call(&["token", "list", "-o", "json"]).exits(0).json();
    far.there.call(&["token", "revoke", listed[0]["id"].as_str().unwrap()]).exits(0);
    far.web.hear("was read again");
    assert_eq!(far.there.call(&["token", "list", "-o", "json"]).exits(0).json(), json!([]));
}

#[test]
fn a_verb_for_many_runs_shows_the_count_first() {
    let far = Far::new(&[SHIP]);
    for number in 0..5 {
        far.call(&["start", "ship", "--id", &format!("s-{number}")]).exits(0);
    }
    far.call(&["start", "ship", "--id", "other"]).exits(0);
    // There is nobody to ask here, so nothing is done.
    far.call(&["cancel", "--prefix", "s-"]).exits(2).complains(&["5 runs fit", "say --yes"]);
    assert_eq!(far.json(&["list", "--status", "cancelled"]), json!([]));
    far.call(&["cancel"]).exits(2).complains(&["which run?"]);
    far.call(&["cancel", "s-1", "--workflow", "ship"]).exits(2);
    far.call(&["cancel", "--prefix", "nobody"]).exits(3);
    far.call(&["pause", "--prefix", "s-", "--yes"]).exits(0).complains(&["5 runs fit", "5 runs told"]);
    eventually("they are paused", || far.json(&["list", "--status", "paused"]).as_array().unwrap().len() == 5);
    far.call(&["resume", "--status", "paused", "--yes"]).exits(0);
    far.call(&["cancel", "--prefix", "s-", "--yes"]).exits(0);
    eventually("they are cancelled", || far.json(&["list", "--status", "cancelled"]).as_array().unwrap().len() == 5);
    assert_eq!(far.json(&["show", "other"])["status"], "waiting");
}
