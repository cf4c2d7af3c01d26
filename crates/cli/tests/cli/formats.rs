//! `-o` of every verb: one JSON value, lines of JSON, YAML that says the same, or something for people.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::place::{Place, Said};

const WAIT: (&str, &str) = ("wait.wf", "workflow wait(x) {\n  return await Signal.next(\"go\")\n}\n");
const DONE: (&str, &str) = ("done.wf", "workflow done(x) {\n  return 1\n}\n");
const SHIP: (&str, &str) =
    ("ship.wf", "workflow ship(x) {\n  return await Approval.request({ title: \"Ship it?\" })\n}\n");
const FLOW: (&str, &str) = (
    "two.flow.yaml",
    "flow: two\nnodes:\n  - { id: ok, type: approve, title: 'Ship?' }\n  - { id: x, type: task, task: noop }\n",
);
const BAD: (&str, &str) = ("bad.wf", "return totl\n");
const UGLY: (&str, &str) = ("ugly.wf", "return   1\n");

/// What each verb is called with; `%` is another word for each format. What is listed later may need what came before.
const CALLS: &[(i32, &[&str])] = &[
    (0, &["run", "done.wf", "--id", "done-%"]),
    (0, &["doctor"]),
    (6, &["run", "wait.wf", "--id", "wait-%"]),
    (6, &["run", "ship.wf", "--id", "yes-%"]),
    (6, &["run", "ship.wf", "--id", "no-%"]),
    (6, &["run", "two.flow.yaml", "--id", "two-%"]),
    (6, &["run", "two.flow.yaml", "--id", "skip-%"]),
    (0, &["start", "done", "--id", "started-%"]),
    (0, &["put", "done.wf", "ship.wf"]),
    (0, &["check", "done.wf"]),
    (1, &["check", "bad.wf"]),
    (0, &["fmt", "done.wf"]),
    (1, &["fmt", "--check", "ugly.wf"]),
    (0, &["graph", "two.flow.yaml"]),
    (0, &["list"]),
    (0, &["list", "--prefix", "nobody"]),
    (0, &["show", "wait-%"]),
    (0, &["explain", "wait-%"]),
    (0, &["events", "wait-%"]),
    (0, &["signal", "wait-%", "other"]),
    (0, &["approvals"]),
    (0, &["approve", "yes-%"]),
    (0, &["deny", "no-%"]),
    (0, &["pause", "wait-%"]),
    (1, &["run", "wait.wf", "--id", "wait-%"]),
    (0, &["resume", "wait-%"]),
    (0, &["pause", "--prefix", "wait-%", "--yes"]),
    (0, &["resume", "--prefix", "wait-%", "--yes"]),
    (0, &["fork", "wait-%", "--at", "0", "--id", "forked-%"]),
    (0, &["replay", "wait-%", "wait.wf"]),
    (0, &["check-replay", "wait.wf"]),
    (0, &["trace", "wait-%", "wait.wf"]),
    (0, &["cancel", "wait-%"]),
    (5, &["run", "wait.wf", "--id", "wait-%"]),
    (0, &["retry", "two-%", "ok"]),
    (0, &["skip", "skip-%", "ok"]),
    (0, &["schedule", "put", "s-%", "--workflow", "done", "--cron", "0 3 * * *"]),
    (0, &["schedule", "list"]),
    (0, &["schedule", "show", "s-%"]),
    (0, &["schedule", "pause", "s-%"]),
    (0, &["schedule", "resume", "s-%"]),
    (0, &["schedule", "trigger", "s-%"]),
    (0, &["schedule", "backfill", "s-%", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z"]),
    (0, &["schedule", "delete", "s-%"]),
    (0, &["workers"]),
    (0, &["sql", "SELECT id, status FROM run ORDER BY id"]),
    (0, &["token", "new", "%", "--scope", "read", "--add"]),
    (0, &["token", "list"]),
    (0, &["bench", "--quick", "-w", "W3"]),
];
/// Those that serve, and those that print a text which is in a format already.
const OTHERS: [&str; 5] = ["completions", "dev", "man", "serve", "worker"];
/// Their answers are lists, whatever is in them.
const LISTS: [&str; 11] =
    ["put", "check", "fmt", "list", "events", "approvals", "check-replay", "workers", "sql", "bench", "schedule list"];

fn call(place: &Place, format: &str, args: &[&str]) -> Said {
    let args: Vec<String> = args.iter().map(|word| word.replace('%', format)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).chain(["-o", format]).collect();
    place.call(&args)
}

fn is_list(args: &[&str]) -> bool {
    LISTS.contains(&args[0])
        || LISTS.contains(&args[..args.len().min(2)].join(" ").as_str())
        || args == ["token", "list"]
}

/// Checks what one call printed, and gives it as values.
#[track_caller]
fn read(format: &str, args: &[&str], said: &Said) {
    let what = format!("{args:?} -o {format}:\n{}\n{}", said.out, said.err);
    let value: Option<Value> = match format {
        "json" if args[0] == "bench" => None,
        "json" => Some(serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {what}"))),
        "jsonl" => {
            let lines = said.out.lines().map(serde_json::from_str::<Value>);
            let lines: Vec<Value> = lines.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {what}"));
            assert!(lines.iter().all(|line| line.is_object()), "{what}");
            assert!(is_list(args) || lines.len() == 1, "{what}");
            None
        }
        "yaml" => Some(serde_saphyr::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {what}"))),
        _ => {
            assert!(args[0] == "fmt" || !said.out.is_empty() || !said.err.is_empty(), "{what}");
            assert!(!said.out.starts_with('{') && !said.out.starts_with("[{"), "{what}");
            None
        }
    };
    if let Some(value) = value {
        assert_eq!((value.is_array(), value.is_object()), (is_list(args), !is_list(args)), "{what}");
    }
}

#[test]
fn every_verb_has_every_format() {
    let files = [WAIT, DONE, SHIP, FLOW, BAD, UGLY];
    for format in ["json", "jsonl", "yaml", "table"] {
        let place = Place::new(&files);
        for (code, args) in CALLS {
            let said = call(&place, format, args);
            assert_eq!(said.code, Some(*code), "{args:?} -o {format}:\n{}\n{}", said.out, said.err);
            read(format, args, &said);
        }
        let tokens = place.call(&["token", "list", "-o", "json"]).exits(0).json();
        let revoke = ["token", "revoke", tokens[0]["id"].as_str().unwrap()];
        read(format, &revoke, &call(&place, format, &revoke).exits(0));
    }
}

/// Whoever adds a verb adds it here.
#[test]
fn no_verb_is_left_out() {
    let help = Place::new(&[]).call(&["--help"]).exits(0).out;
    let verbs = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs: BTreeSet<&str> = verbs.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let called = CALLS.iter().map(|(_, args)| args[0]).chain(OTHERS).collect();
    assert_eq!(verbs.into_iter().filter(|verb| !verb.is_empty()).collect::<BTreeSet<_>>(), called);
}

#[test]
fn what_is_the_same_is_the_same_in_every_format() {
    let place = Place::new(&[WAIT]);
    place.call(&["run", "wait.wf", "--id", "a"]).exits(6);
    for verb in [&["list"][..], &["show", "a"], &["explain", "a"], &["events", "a"], &["sql", "SELECT id FROM run"]] {
        let json = call(&place, "json", verb).exits(0).json();
        let yaml: Value = serde_saphyr::from_str(&call(&place, "yaml", verb).exits(0).out).unwrap();
        assert_eq!(yaml, json, "{verb:?}");
        let lines = call(&place, "jsonl", verb).exits(0).out;
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(Value::Array(lines), if json.is_array() { json } else { Value::Array(vec![json]) }, "{verb:?}");
    }
}
