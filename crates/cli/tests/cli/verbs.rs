//! Looking at runs and talking to them, on a database that nobody else has open.

use serde_json::json;

use crate::place::Place;

const SCRIPT: &str =
    "const a = await Task.run(\"noop\", Inputs)\nconst said = await Signal.next(\"word\")\nreturn [a, said]\n";

/// A run that waits for a signal.
fn waiting() -> Place {
    let place = Place::new(&[("a.wf", SCRIPT)]);
    place.call(&["run", "a.wf", "--id", "a", "-i", "1"]).exits(6);
    place
}

#[test]
fn runs_are_listed_for_people_and_for_programs() {
    let place = waiting();
    place.write("b.wf", "return 2");
    place.call(&["run", "b.wf", "--id", "b"]).exits(0);
    let told = place.call(&["list"]).exits(0).out;
    let lines: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["RUN", "WORKFLOW", "STATUS", "CREATED", "ENDED"]);
    assert_eq!((&lines[1][..3], &lines[2][..3]), (&["b", "b", "completed"][..], &["a", "a", "waiting"][..]));
    let json = place.call(&["list", "-o", "json", "--status", "waiting"]).exits(0).json();
    assert_eq!(
        (json.as_array().unwrap().len(), &json[0]["run"], &json[0]["status"]),
        (1, &json!("a"), &json!("waiting"))
    );
    assert_eq!(place.call(&["list", "-o", "jsonl"]).exits(0).out.lines().count(), 2);
    assert!(place.call(&["list", "-o", "yaml", "--workflow", "b"]).exits(0).out.contains("run: b"));
    assert_eq!(place.call(&["list", "--limit", "1", "-o", "jsonl"]).exits(0).out.lines().count(), 1);
    assert_eq!(place.call(&["list", "--prefix", "zzz"]).exits(0).complains(&["there are no such runs"]).out, "");
}

#[test]
fn a_run_is_shown_with_what_it_did_and_waits_for() {
    let place = waiting();
    let told = place.call(&["show", "a"]).exits(0).out;
    for part in ["noop", "task", "done", "__wait-word-0", "signal", "open", "WAITS FOR"] {
        assert!(told.contains(part), "{part} in:\n{told}");
    }
    let json = place.call(&["show", "a", "-o", "json"]).exits(0).json();
    assert_eq!((&json["timeline"][0]["key"], &json["timeline"][0]["state"]), (&json!("__task-noop-0"), &json!("done")));
    assert_eq!((&json["awaiting"][0]["type"], &json["awaiting"][0]["name"]), (&json!("signal"), &json!("word")));
    place.call(&["signal", "a", "word", "\"x\""]).exits(0);
    place.call(&["run", "a.wf", "--id", "a"]).exits(0);
    assert_eq!(place.call(&["show", "a", "-o", "json"]).exits(0).json()["output"], json!([1, "x"]));
}

#[test]
fn it_is_explained_what_a_run_waits_for() {
    let place = waiting();
    let told = place.call(&["explain", "a"]).exits(0).out;
    assert!(told.contains("waits for the signal \"word\""), "{told}");
    let json = place.call(&["explain", "a", "-o", "json"]).exits(0).json();
    assert_eq!((&json["status"], &json["operations"][0]["key"]), (&json!("waiting"), &json!("__wait-word-0")));
}

#[test]
fn a_journal_is_printed_from_any_index_and_followed_to_the_end() {
    let place = waiting();
    let events = place.call(&["events", "a", "-o", "jsonl"]).exits(0).out;
    assert!(events.lines().next().unwrap().contains("\"index\":0"), "{events}");
    let tail = place.call(&["events", "a", "--from", "2", "-o", "json"]).exits(0).json();
    assert_eq!((&tail[0]["index"], &tail[0]["kind"]), (&json!(2), &json!("SIGNAL_AWAITED")));
    place.call(&["signal", "a", "word"]).exits(0);
    place.call(&["run", "a.wf", "--id", "a"]).exits(0);
    let all = place.call(&["events", "a", "--follow"]).exits(0).out;
    assert!(all.contains("RUN_FINISHED"), "{all}");
}

#[test]
fn the_same_signal_id_counts_once() {
    let place = Place::new(&[("a.wf", "return [await Signal.next(\"n\"), await Signal.next(\"n\")]")]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(6);
    for (payload, outcome) in [("1", "delivered"), ("1", "duplicate")] {
        let told = place.call(&["signal", "a", "n", payload, "--id", "s-1", "-o", "json"]).exits(0).json();
        assert_eq!(told["outcome"], outcome);
    }
    place.call(&["run", "a.wf", "--id", "a"]).exits(6);
    place.call(&["signal", "a", "n", "2"]).exits(0).complains(&["outlast run FILE --id a"]);
    assert_eq!(place.call(&["run", "a.wf", "--id", "a", "-o", "json"]).exits(0).json()["output"], json!([1, 2]));
    place.call(&["signal", "a", "n", "oops"]).exits(2).complains(&["'\"oops\"'"]);
    place.call(&["signal", "a", "n"]).exits(1).complains(&["was lost"]);
}

#[test]
fn approvals_are_listed_and_decided_once() {
    let script = "const [x, y] = await Promise.all([Approval.request({ title: \"One?\", id: \"one\" }), \
                  Approval.request({ title: \"Two?\", id: \"two\", assignee: \"kim\" })])\nreturn [x.approved, y.approved, y.by]";
    let place = Place::new(&[("a.wf", script)]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(6);
    let open = place.call(&["approvals", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&open[0]["approval"], &open[1]["title"], &open[1]["assignee"]),
        (&json!("one"), &json!("Two?"), &json!("kim"))
    );
    place.call(&["approve", "a"]).exits(2).complains(&["waits for 2 approvals", "one (One?)", "two (Two?)"]);
    place.call(&["approve", "a", "one"]).exits(0);
    place.call(&["deny", "a", "--by", "kim"]).exits(0);
    place.call(&["approve", "a", "one"]).exits(1).complains(&["was lost"]);
    place.call(&["approve", "a"]).exits(3).complains(&["waits for no approval"]);
    assert_eq!(
        place.call(&["run", "a.wf", "--id", "a", "-o", "json"]).exits(0).json()["output"],
        json!([true, false, "kim"])
    );
}

#[test]
fn a_run_is_forked_and_the_fork_goes_on() {
    let place = waiting();
    let forked = place.call(&["fork", "a", "--at", "2", "--id", "b", "-o", "json"]).exits(0).json();
    assert_eq!(forked["run"], "b");
    for (run, word) in [("a", "1"), ("b", "2")] {
        place.call(&["signal", run, "word", word]).exits(0);
    }
    assert_eq!(place.call(&["run", "a.wf", "--id", "b", "-o", "json"]).exits(0).json()["output"], json!([1, 2]));
    assert_eq!(place.call(&["run", "a.wf", "--id", "a", "-o", "json"]).exits(0).json()["output"], json!([1, 1]));
}

#[test]
fn a_recorded_run_is_replayed_with_another_text() {
    let place = waiting();
    place.call(&["replay", "a", "a.wf"]).exits(0);
    place.write("same.wf", &format!("workflow a(Input) {{\n  {}}}\n", SCRIPT.replace("Inputs", "Input")));
    place.call(&["replay", "a", "same.wf"]).exits(0);
    place.write("other.wf", "workflow a(x) {\n  await Task.run(\"other\")\n}\n");
    let said = place.call(&["replay", "a", "other.wf", "-o", "json"]).exits(5);
    assert_eq!((&said.json()["outcome"], &said.json()["index"]), (&json!("diverged"), &json!(0)));
    assert!(said.json()["problem"].as_str().unwrap().contains("TASK_SCHEDULED"), "{}", said.out);
    place.call(&["check-replay", "other.wf"]).exits(5).complains(&["0 of 1 runs"]);
    place.call(&["check-replay", "a.wf"]).exits(0).complains(&["1 of 1 runs"]);
    place.write("b.wf", "return 1");
    place.call(&["replay", "a", "b.wf"]).exits(3).complains(&["the run a is one of \"a\"", "b.wf has b"]);
}

#[test]
fn a_script_is_looked_at_after_any_event() {
    let place = waiting();
    let seen = place.call(&["trace", "a", "a.wf", "-o", "json"]).exits(0).json();
    let call = &seen["waiting"][0];
    assert_eq!((&call["line"], &call["variables"]["a"]), (&json!(2), &json!(1)), "{seen}");
    let earlier = place.call(&["trace", "a", "a.wf", "--at", "0"]).exits(0).out;
    assert!(earlier.contains("line 1: const a = await Task.run"), "{earlier}");
    place.write("a.wf", "return 1");
    place.call(&["trace", "a", "a.wf"]).exits(1).complains(&["not the text the run a began with"]);
}

#[test]
fn a_run_is_ended_without_being_asked() {
    let place = waiting();
    place.call(&["cancel", "a", "--now", "--reason", "enough"]).exits(0).complains(&["it is cancelled"]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(5).complains(&["enough"]);
}

#[test]
fn a_question_in_sql_is_answered_and_changes_nothing() {
    let place = waiting();
    let asked = ["sql", "SELECT id, workflow FROM run"];
    assert_eq!(place.call(&asked).exits(0).out, "id  workflow\na   a\n");
    let json = place.call(&["sql", "SELECT id, count(*) AS n FROM run GROUP BY id", "-o", "json"]).exits(0).json();
    assert_eq!(json, json!([{ "id": "a", "n": 1 }]));
    let more = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let few = place.call(&["sql", more, "--limit", "2", "-o", "json"]).exits(0).complains(&["there are more rows"]);
    assert_eq!(few.json(), json!([{ "i": 1 }, { "i": 2 }]));
    place.call(&["sql", "DELETE FROM run"]).exits(2).complains(&["the question cannot be answered", "not authorized"]);
    place.call(&["sql", "SELECT value FROM secret"]).exits(2).complains(&["cannot be answered"]);
    place.call(&asked).exits(0);
    // A server says so before it answers any.
    let web = crate::web::Web::start(&place, &["serve"]);
    let url = format!("http://{}", web.address);
    place.call(&["sql", "SELECT 1 AS x", "--url", &url]).exits(3).complains(&["no questions in SQL", "sql = true"]);
    web.stop();
    place.write("outlast.toml", "[server]\nsql = true\n");
    let web = crate::web::Web::start(&place, &["serve"]);
    let url = format!("http://{}", web.address);
    assert_eq!(place.call(&["sql", "SELECT 1 AS x", "--url", &url, "-o", "jsonl"]).exits(0).out, "{\"x\":1}\n");
    web.stop();
    place.write("outlast.toml", "[server]\nsqll = true\n");
    place.call(&["serve"]).exits(1).complains(&["outlast.toml", "sqll"]);
}
