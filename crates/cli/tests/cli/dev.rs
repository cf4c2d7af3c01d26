//! `outlast dev`, as authors use it.

use serde_json::json;

use crate::place::{Place, eventually};
use crate::web::Web;

#[test]
fn an_empty_folder_is_enough_and_whatever_is_written_there_can_be_started() {
    let place = Place::new(&[]);
    let mut web = Web::start(&place, &["dev"]);
    web.hear("ready in");
    assert!(place.path(".outlast/outlast.db").exists());
    assert_eq!(web.get("/readyz").is(200).json()["status"], "ready");
    web.post("/api/v1/runs", &json!({ "workflow": "hello" })).is(404);

    place.write("hello.wf", "return 1\n");
    web.hear("hello.wf hello");
    web.post("/api/v1/runs", &json!({ "workflow": "hello", "id": "one" })).is(201);
    assert_eq!(web.result("one")["output"], 1);

    // A mistake is named with its line, and what was there before holds.
    place.write("hello.wf", "return totl\n");
    web.hear("undefined_name");
    web.hear("what it said before holds");
    web.post("/api/v1/runs", &json!({ "workflow": "hello", "id": "two" })).is(201);
    assert_eq!(web.result("two")["output"], 1);

    place.write("hello.wf", "return await Task.run(\"new\")\n");
    place.write("outlast.toml", "[tasks.new]\ncommand = [\"echo\", \"42\"]\n");
    web.hear("hello.wf hello");
    web.hear("↻ outlast.toml");
    web.post("/api/v1/runs", &json!({ "workflow": "hello", "id": "three" })).is(201);
    assert_eq!(web.result("three")["output"], 42);
    assert_eq!(web.stop().0.code(), Some(0));
}

#[test]
fn a_task_that_is_added_is_done_for_runs_that_wait_for_it() {
    let place = Place::new(&[("late.wf", "return await Task.run(\"late\")\n")]);
    let mut web = Web::start(&place, &["dev"]);
    web.post("/api/v1/runs", &json!({ "workflow": "late", "id": "a" })).is(201);
    eventually("it waits", || web.get("/api/v1/runs/a").json()["summary"]["status"] == "waiting");
    place.write("outlast.toml", "[tasks.late]\ncommand = [\"echo\", \"7\"]\n");
    web.hear("↻ outlast.toml");
    assert_eq!(web.result("a")["output"], 7);
    // And one that is taken away is done no more.
    place.write("outlast.toml", "# nothing\n");
    web.hear("↻ outlast.toml");
    web.post("/api/v1/runs", &json!({ "workflow": "late", "id": "b" })).is(201);
    let waits = web.get("/api/v1/runs/b/result?wait_ms=1500").is(202).json();
    assert_eq!(waits["status"], "waiting");
}

#[test]
fn files_with_mistakes_are_named_and_the_others_are_served() {
    let place = Place::new(&[
        ("good.wf", "return 1\n"),
        ("bad.wf", "return totl\n"),
        ("good.flow.yaml", "flow: good\nnodes:\n  - { id: a, type: task, task: noop }\n"),
        ("outlast.toml", "[tasks.x]\ncomand = [\"cat\"]\n"),
    ]);
    let mut web = Web::start(&place, &["dev"]);
    web.hear("ready in");
    let said = web.heard.join("\n");
    for part in ["undefined_name", "did you mean `command`", "has a workflow \"good\" too"] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    let names = web.get("/api/v1/workflows").is(200).body;
    assert!(names.contains("\"good\"") && !names.contains("\"bad\""), "{names}");
}

#[test]
fn runs_go_on_when_it_is_started_again() {
    let place = Place::new(&[("wait.wf", "return await Signal.next(\"go\")\n")]);
    let web = Web::start(&place, &["dev"]);
    web.post("/api/v1/runs", &json!({ "workflow": "wait", "id": "w" })).is(201);
    web.signal(rustix::process::Signal::KILL);
    web.end();
    let web = Web::start(&place, &["dev"]);
    web.post("/api/v1/runs/w/signals/go", &json!({ "payload": "on" })).is(200);
    assert_eq!(web.result("w")["output"], "on");
}

#[test]
fn only_this_machine_is_let_in() {
    let place = Place::new(&[]);
    place.call(&["dev", "--listen", "0.0.0.0:0"]).exits(2).complains(&["can be reached from other machines"]);
    place.call(&["dev", "nowhere"]).exits(3).complains(&["nowhere", "mkdir -p nowhere"]);
}

#[test]
fn flows_schedules_and_tokens_are_read_again_too() {
    let place = Place::new(&[]);
    let mut web = Web::start(&place, &["dev"]);
    web.hear("ready in");
    // A flow that is written, and written anew.
    for (word, id) in [("one", "a"), ("two", "b")] {
        let flow =
            format!("flow: say\nnodes:\n  - {{ id: x, type: task, task: noop, with: {word} }}\nresult: \"${{x}}\"\n");
        place.write("say.flow.yaml", &flow);
        web.hear("say.flow.yaml say");
        web.post("/api/v1/runs", &json!({ "workflow": "say", "id": id })).is(201);
        assert_eq!(web.result(id)["output"], word);
    }
    // A schedule that is added, and changed.
    place.write("outlast.toml", "[schedules.often]\nworkflow = \"say\"\nevery = \"1h\"\n");
    web.hear("↻ outlast.toml");
    eventually("there is a schedule", || web.get("/api/v1/schedules/often").status == 200);
    let hourly = web.get("/api/v1/schedules/often").is(200).json()["when"].clone();
    place.write("outlast.toml", "[schedules.often]\nworkflow = \"say\"\nevery = \"1s\"\n");
    web.hear("↻ outlast.toml");
    eventually("it fires", || {
        web.get("/api/v1/runs?workflow=say&status=completed").body.matches("\"run\"").count() > 2
    });
    assert_ne!(web.get("/api/v1/schedules/often").is(200).json()["when"], hourly);
    // A token: from now on one is needed, and this one will do.
    let token = place.call(&["token", "new", "ann", "--scope", "read", "--add", "--quiet"]).exits(0).out;
    web.hear("↻ outlast.toml");
    eventually("nobody is let in without one", || web.get("/api/v1/runs").status == 401);
    web.token = Some(token.trim().to_owned());
    web.get("/api/v1/runs").is(200);
}

#[test]
fn it_is_found_where_it_says() {
    let place = Place::new(&[]);
    for verb in ["dev", "serve"] {
        let help = place.call(&[verb, "--help"]).exits(0).out;
        assert!(help.contains("[default: 127.0.0.1:7117]"), "{verb}: {help}");
    }
}
