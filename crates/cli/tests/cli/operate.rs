//! What operators do to runs, nodes, tasks and schedules that stand still.

use serde_json::json;

use crate::place::{Place, eventually, tamper};
use crate::remote::Far;
use crate::web::Web;

const FLOW: (&str, &str) = (
    "ship.flow.yaml",
    "flow: ship\nnodes:\n  - { id: pack, type: task, task: noop, with: 7 }\n  \
     - { id: ok, type: approve, title: 'Ship?' }\nedges:\n  - { from: pack, to: ok }\n\
     result: { ok: \"${ok.approved}\", said: \"${messages}\" }\n",
);
/// Fails as long as there is a file `bad`.
const FLAKY: (&str, &str) = (
    "outlast.toml",
    "[tasks.flaky]\ncommand = [\"sh\", \"-c\", \"echo x >> tried; if [ -e bad ]; then echo no >&2; exit 1; fi; echo 7\"]\n",
);
const FRAGILE: (&str, &str) = (
    "fragile.wf",
    "workflow fragile(x) {\n  const a = await Task.run(\"noop\", 1)\n  \
     const b = await Task.run(\"flaky\", null, { retry: false })\n  return a + b\n}\n",
);

fn waits(far: &Far, run: &str) {
    eventually("it waits", || far.json(&["show", run])["status"] == "waiting");
}

fn requests(far: &Far, run: &str) -> usize {
    far.call(&["events", run]).exits(0).out.matches("APPROVAL_REQUESTED").count()
}

#[test]
fn a_flows_node_is_tried_again_and_a_flow_is_forked_at_one() {
    let far = Far::new(&[FLOW]);
    far.call(&["start", "ship", "--id", "f"]).exits(0);
    waits(&far, "f");
    far.call(&["retry", "f", "ok", "--reason", "asked the wrong one"]).exits(0).complains(&["f: ok is tried again"]);
    eventually("it is asked again", || requests(&far, "f") == 2);
    far.call(&["retry", "f"]).exits(2).complains(&["name a node", "outlast fork f --failed"]);
    far.call(&["retry"]).exits(2).complains(&["which run?"]);
    let forked = far.json(&["fork", "f", "--node", "ok", "--id", "g"]);
    assert_eq!(forked["run"], "g");
    waits(&far, "g");
    for run in ["f", "g"] {
        far.call(&["approve", run]).exits(0);
        assert_eq!(far.web.result(run)["output"]["ok"], true);
    }
}

#[test]
fn whoever_resumes_a_flow_can_tell_it_something() {
    let far = Far::new(&[FLOW]);
    far.call(&["start", "ship", "--id", "f"]).exits(0);
    waits(&far, "f");
    far.call(&["pause", "f"]).exits(0);
    eventually("it is paused", || far.json(&["show", "f"])["status"] == "paused");
    far.call(&["resume", "f", "--message", "hurry"]).exits(2).complains(&["a text has quotes", "'\"hurry\"'"]);
    far.call(&["resume", "f", "--message", "\"hurry\""]).exits(0);
    far.call(&["approve", "f"]).exits(0);
    assert_eq!(far.web.result("f")["output"], json!({ "ok": true, "said": ["hurry"] }));
}

#[test]
fn a_task_that_has_failed_for_good_is_tried_again() {
    let far = Far::new(&[FLAKY]);
    far.there.write("bad", "");
    let queue = json!({ "name": "flaky", "id": "t-1", "retry": { "attempts": 1 } });
    assert!(matches!(far.web.post("/api/v1/tasks", &queue).status, 200 | 201));
    eventually("it is dead", || far.web.get("/api/v1/tasks/t-1").json()["task"]["state"] == "dead");
    std::fs::remove_file(far.there.path("bad")).unwrap();
    far.call(&["retry", "--task", "t-1"]).exits(0).complains(&["t-1: it is tried again"]);
    eventually("it was tried twice", || far.there.read("tried").lines().count() == 2);
    far.call(&["retry", "--task", "t-1", "f", "ok"]).exits(2);
    far.call(&["retry", "--task", "nobody"]).exits(3);
}

#[test]
fn runs_that_failed_are_tried_again_one_or_all() {
    let far = Far::new(&[FLAKY, FRAGILE]);
    far.there.write("bad", "");
    for number in 0..3 {
        far.call(&["start", "fragile", "--id", &format!("f-{number}"), "--wait"]).exits(5);
    }
    std::fs::remove_file(far.there.path("bad")).unwrap();
    let forked = far.json(&["fork", "f-0", "--failed", "--id", "again"]);
    assert_eq!((&forked["run"], &forked["new"]), (&json!("again"), &json!(true)));
    assert_eq!(far.web.result("again")["output"], 8);
    far.call(&["fork", "again", "--failed"]).exits(1).complains(&["it has not failed", "hint: fork it"]);
    far.call(&["fork", "f-0", "--failed", "--at", "1"]).exits(2);
    // And all of them.
    far.call(&["retry", "--prefix", "f-"]).exits(2).complains(&["3 runs fit", "say --yes"]);
    let done = far.json(&["retry", "--status", "failed", "--yes"]);
    assert_eq!((&done["matched"], &done["done"]), (&json!(3), &json!(3)));
    eventually("they are done", || far.json(&["list", "--status", "completed"]).as_array().unwrap().len() == 4);
    // Without a server, too: it goes on where it is run.
    let place = Place::new(&[FLAKY, FRAGILE, ("bad", "")]);
    place.call(&["run", "fragile.wf", "--id", "f"]).exits(5);
    std::fs::remove_file(place.path("bad")).unwrap();
    place.call(&["fork", "f", "--failed", "--id", "g"]).exits(0);
    assert_eq!(place.call(&["run", "fragile.wf", "--id", "g", "-q"]).exits(0).out, "8\n");
    place.call(&["pause", "g"]).exits(0).complains(&["it had ended, and nothing was done; it is completed"]);
}

#[test]
fn parked_runs_are_resumed_one_or_all() {
    let place = Place::new(&[("w.wf", "workflow w(x) {\n  return await Signal.next(\"go\")\n}\n")]);
    for run in ["a", "b", "c"] {
        place.call(&["run", "w.wf", "--id", run]).exits(6);
    }
    place.call(&["pause", "c"]).exits(0);
    let park = "UPDATE run SET status = 4, note = 'nobody has its version', ready_at = NULL WHERE id IN ('a', 'b')";
    tamper(&place.path(".outlast/outlast.db"), park);
    let said = place.call(&["run", "w.wf", "--id", "a", "-o", "json"]).exits(1);
    let (status, code) = (said.json()["status"].clone(), said.json()["error"]["code"].clone());
    assert_eq!((status, code), (json!("parked"), json!("parked")));
    said.complains(&["parked, and nothing of it is lost: nobody has its version", "outlast resume a"]);
    let paused = place.call(&["run", "w.wf", "--id", "c", "-o", "json"]).exits(1);
    assert_eq!((&paused.json()["status"], &paused.json()["run"]), (&json!("paused"), &json!("c")));
    place.call(&["resume", "--status", "parked", "--yes"]).exits(0).complains(&["2 runs fit", "2 runs told"]);
    place.call(&["resume", "--status", "parked", "--yes"]).exits(3);
    tamper(&place.path(".outlast/outlast.db"), "UPDATE run SET status = 4, ready_at = NULL WHERE id = 'a'");
    // Both kinds at once.
    let both = place.call(&["resume", "--workflow", "w", "--yes", "-o", "json"]).exits(0).json();
    assert_eq!((&both["matched"], &both["done"], &both["state"]), (&json!(2), &json!(2), &json!("done")));
    for run in ["a", "b", "c"] {
        place.call(&["signal", run, "go", "1"]).exits(0);
        assert_eq!(place.call(&["run", "w.wf", "--id", run, "-q"]).exits(0).out, "1\n");
    }
}

#[test]
fn a_schedules_past_is_made_up_for() {
    let far = Far::new(&[("tick.wf", "workflow tick(n) {\n  return n\n}\n")]);
    far.call(&["schedule", "put", "hourly", "--workflow", "tick", "--cron", "0 * * * *", "--paused"]).exits(0);
    let range = ["--from", "2026-01-01T00:30:00Z", "--to", "2026-01-01T03:30:00Z"];
    let made = far.json(&[&["schedule", "backfill", "hourly"], &range[..]].concat());
    assert_eq!(made["instants"], 3, "{made}");
    eventually("they are done", || far.json(&["list", "--workflow", "tick"]).as_array().unwrap().len() == 3);
    far.call(&["schedule", "backfill", "nobody", "--from", range[1], "--to", range[3]]).exits(3);
    far.call(&["schedule", "backfill", "hourly", "--from", "yesterday", "--to", range[3]]).exits(2);
}

#[test]
fn the_doctor_finds_what_nothing_would_wake_and_repairs_it() {
    let place = Place::new(&[("nap.wf", "await Timer.delay(\"2s\")\nreturn \"awake\"\n")]);
    place.call(&["run", "nap.wf", "--id", "n", "--timeout", "300ms"]).exits(6);
    tamper(&place.path(".outlast/outlast.db"), "DELETE FROM timer");
    let found = place.call(&["doctor"]).exits(1);
    assert!(found.out.contains("✗ n") && found.out.contains("--repair"), "{}", found.out);
    let report = place.call(&["doctor", "--repair", "-o", "json"]).exits(0).json();
    assert_eq!((&report["healthy"], &report["findings"][0]["repaired"]), (&json!(true), &json!(true)), "{report}");
    assert_eq!(place.call(&["run", "nap.wf", "--id", "n", "-q"]).exits(0).out, "\"awake\"\n");
    assert!(place.call(&["doctor"]).exits(0).out.contains("nothing is wrong"));
}

#[test]
fn a_start_has_attributes_and_may_be_later() {
    let far = Far::new(&[("one.wf", "workflow one(x) {\n  return 1\n}\n")]);
    let started = ["start", "one", "--id", "a", "--attribute", "tenant=blue", "--attribute", "kind=x=y", "--wait"];
    far.call(&started).exits(0);
    far.call(&["start", "one", "--id", "b", "--attribute", "tenant=red", "--delay", "1h"]).exits(0);
    let of = |attribute: &str| {
        let found = far.web.get(&format!("/api/v1/runs?attribute={attribute}")).is(200).json();
        found["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of("tenant=blue"), of("tenant=red"), of("kind=x=y")),
        (vec!["a".into()], vec!["b".into()], vec!["a".into()])
    );
    assert_eq!(far.json(&["show", "b"])["status"], "queued");
    far.call(&["start", "one", "--attribute", "tenant"]).exits(2).complains(&["NAME=VALUE"]);
    let web: &Web = &far.web;
    far.call(&["start", "one", "--id", "c", "--delay", "500ms"]).exits(0);
    assert_eq!(web.result("c")["output"], 1);
}
