//! `outlast run`, without a terminal.

use serde_json::json;

use crate::place::Place;

const GREET: (&str, &str) =
    ("greet.wf", "workflow greet(name) {\n  await Task.run(\"noop\")\n  return `Hello, ${name}!`\n}\n");

#[test]
fn a_script_runs_to_its_end_and_its_output_is_all_there_is_on_standard_output() {
    let place = Place::new(&[GREET]);
    let said = place.call(&["run", "greet.wf", "--input", "\"Ada\""]).exits(0);
    assert_eq!(said.out, "\"Hello, Ada!\"\n");
    assert!(said.err.contains("greet run greet-"), "{}", said.err);
    assert!(said.err.contains("✓ noop") && said.err.contains("✓ completed"), "{}", said.err);
    assert!(!said.err.contains('\u{1b}'), "no colours and no spinners where there is no terminal: {:?}", said.err);
}

#[test]
fn json_is_one_object_and_nothing_else() {
    let place = Place::new(&[GREET]);
    let said = place.call(&["run", "greet.wf", "-i", "\"Ada\"", "--id", "g-1", "-o", "json"]).exits(0);
    assert_eq!(
        said.json(),
        json!({ "run": "g-1", "workflow": "greet", "status": "completed", "output": "Hello, Ada!" })
    );
    assert_eq!(said.out.lines().count(), 1);
    let yaml = place.call(&["run", "greet.wf", "--id", "g-1", "-o", "yaml"]).exits(0);
    assert!(yaml.out.contains("output: Hello, Ada!") && yaml.out.contains("status: completed"), "{}", yaml.out);
}

#[test]
fn the_database_is_in_a_folder_beside_the_caller_that_version_control_ignores() {
    let place = Place::new(&[("flows/greet.wf", GREET.1)]);
    place.call(&["run", "flows/greet.wf"]).exits(0);
    assert!(place.path(".outlast/outlast.db").exists());
    assert_eq!(place.read(".outlast/.gitignore"), "*\n");
    assert!(!place.path("flows/.outlast").exists());
}

#[test]
fn input_comes_from_a_file_or_from_standard_input() {
    let place = Place::new(&[GREET, ("name.json", "\"Grace\"\n")]);
    assert_eq!(place.call(&["run", "greet.wf", "--input", "@name.json"]).exits(0).out, "\"Hello, Grace!\"\n");
    let stdin = std::fs::File::open(place.path("name.json")).unwrap();
    let output = place.command(&["run", "greet.wf", "--input", "-"]).stdin(stdin).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "\"Hello, Grace!\"\n");
}

#[test]
fn a_failed_run_exits_with_5_and_says_why() {
    let place = Place::new(&[("a.wf", "throw new Error(\"no\", { code: \"odd\", data: [1] })")]);
    let said = place.call(&["run", "a.wf", "--id", "a", "-o", "json"]).exits(5);
    let (told, error) = (said.json(), json!({ "code": "odd", "message": "no", "data": [1] }));
    assert_eq!((&told["status"], &told["error"]["code"]), (&json!("failed"), &error["code"]), "{told}");
    assert_eq!(told["error"]["data"], error["data"]);
    let said = place.call(&["run", "a.wf", "--id", "a"]).exits(5);
    assert_eq!(said.out, "");
    said.complains(&["✗ failed", "odd: no", "outlast show a"]);
}

#[test]
fn the_same_id_is_the_same_run() {
    let place = Place::new(&[("n.wf", "await Task.run(\"count\")\nreturn 1"), COUNT]);
    place.call(&["run", "n.wf", "--id", "n"]).exits(0);
    let again = place.call(&["run", "n.wf", "--id", "n"]).exits(0);
    assert_eq!((again.out.as_str(), place.read("counted").lines().count()), ("1\n", 1));
    place.call(&["run", "n.wf", "--id", "n", "--input", "2"]).exits(1).complains(&["began with another input"]);
    place.write("m.wf", "return 2");
    place.call(&["run", "m.wf", "--id", "n"]).exits(1).complains(&["the run n is one of \"n\", and not of \"m\""]);
}

const COUNT: (&str, &str) = ("outlast.toml", "[tasks.count]\ncommand = [\"sh\", \"-c\", \"echo x >> counted\"]\n");

#[test]
fn a_run_goes_on_with_the_text_it_began_with() {
    let place = Place::new(&[("a.wf", "return await Signal.next(\"go\")")]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(6);
    place.write("a.wf", "return \"another text\"");
    place.call(&["signal", "a", "go", "7"]).exits(0);
    let said =
        place.call(&["run", "a.wf", "--id", "a"]).exits(0).complains(&["the file has changed since the run began"]);
    assert_eq!(said.out, "7\n");
}

#[test]
fn other_files_of_the_folder_are_known_by_name() {
    let place = Place::new(&[
        ("parent.wf", "return await Workflow.run(\"double\", 21)"),
        (
            "child.flow.yaml",
            "flow: double\nnodes: [{ id: twice, type: script, script: '${input * 2}' }]\nresult: '${twice}'\n",
        ),
        ("broken.wf", "return totl"),
    ]);
    let said = place.call(&["run", "parent.wf"]).exits(0).complains(&["broken.wf has mistakes and is left out"]);
    assert_eq!(said.out, "42\n");
}

#[test]
fn whoever_a_child_waits_for_is_named_and_the_parent_goes_on() {
    let place = Place::new(&[
        ("parent.wf", "return await Workflow.run(\"kid\")"),
        ("kid.wf", "return (await Approval.request({ title: \"Kid?\" })).approved"),
    ]);
    place
        .call(&["run", "parent.wf", "--id", "p"])
        .exits(6)
        .complains(&["outlast approve p.__child-0 __approve-0", "# Kid?"]);
    place.call(&["approve", "p.__child-0"]).exits(0).complains(&["outlast run FILE --id p\n"]);
    let said =
        place.call(&["run", "parent.wf", "--id", "p"]).exits(0).complains(&["✓ kid › approval \"Kid?\"  approved"]);
    assert_eq!(said.out, "true\n");
}

#[test]
fn every_child_is_watched_however_many_there_were_before_it() {
    let place = Place::new(&[
        ("parent.wf", "for (let n = 0; n < 70; n++) { await Workflow.run(\"kid\", n) }\nreturn \"all\""),
        ("kid.wf", "await Task.run(\"noop\", Inputs)"),
    ]);
    let said = place.call(&["run", "parent.wf", "--id", "p"]).exits(0);
    assert_eq!(said.err.matches("✓ kid › noop").count(), 70, "{}", said.err);
}

#[test]
fn a_child_for_which_there_was_no_room_is_named_too_when_it_waits_for_somebody() {
    let place = Place::new(&[
        (
            "parent.wf",
            "const kids = []\nfor (let n = 0; n < 70; n++) { kids.push(Workflow.run(\"kid\", n)) }\nreturn await Promise.all(kids)",
        ),
        ("kid.wf", "if (Inputs == 69) { await Approval.request({ title: \"Last?\" }) }\nreturn Inputs"),
    ]);
    place
        .call(&["run", "parent.wf", "--id", "p"])
        .exits(6)
        .complains(&["outlast approve p.__child-69 __approve-0", "# Last?"]);
}

#[test]
fn a_flow_runs_too() {
    let flow = "flow: sum\nnodes:\n  - id: each\n    type: foreach\n    items: '${input}'\n    as: n\n    body: \
                [{ id: work, type: task, task: noop, with: '${n}' }]\nresult: '${each.count}'\n";
    let place = Place::new(&[("sum.flow.yaml", flow)]);
    let said = place.call(&["run", "sum.flow.yaml", "-i", "[1,2,3]"]).exits(0);
    assert_eq!(said.out, "3\n");
    assert!(said.err.contains("✓ each/1/work"), "{}", said.err);
}

#[test]
fn attempts_that_fail_are_told() {
    let toml = "[tasks.flaky]\ncommand = [\"sh\", \"-c\", \"if [ $OUTLAST_ATTEMPT = 1 ]; then echo 'no line' >&2; exit 1; fi\"]\n";
    let place =
        Place::new(&[("a.wf", "await Task.run(\"flaky\", null, { retry: 3 })\nreturn 1"), ("outlast.toml", toml)]);
    place.call(&["run", "a.wf"]).exits(0).complains(&["↻ flaky  attempt 1 failed: ", "no line", "✓ flaky"]);
}

#[test]
fn what_a_script_and_its_tasks_log_is_shown() {
    let place =
        Place::new(&[("a.wf", "log(\"from the script\", 1)\nawait Task.run(\"log\", { message: \"from the task\" })")]);
    place.call(&["run", "a.wf"]).exits(0).complains(&["· from the script 1", "· from the task"]);
    let quiet = place.call(&["run", "a.wf", "--quiet"]).exits(0);
    assert_eq!(quiet.err, "");
}

#[test]
fn a_task_that_nobody_can_do_stops_the_command_and_not_the_run() {
    let place = Place::new(&[("a.wf", "return await Task.run(\"echo\", 5)")]);
    let said = place.call(&["run", "a.wf", "--id", "a", "-o", "json"]).exits(1);
    assert_eq!(said.json()["error"]["code"], "unknown_task");
    said.complains(&["nobody can do the task \"echo\"", "[tasks.echo]", "outlast run a.wf --id a"]);
    place.write("outlast.toml", "[tasks.echo]\ncommand = [\"cat\"]\n");
    assert_eq!(place.call(&["run", "a.wf", "--id", "a"]).exits(0).out, "5\n");
}

#[test]
fn who_waits_for_somebody_says_so_instead_of_hanging() {
    let script = "const said = await Signal.next(\"word\")\nconst ok = await Approval.request({ title: \"Ship it?\" })\n\
                  return [said, ok.approved, ok.feedback]";
    let place = Place::new(&[("a.wf", script)]);
    let said = place.call(&["run", "a.wf", "--id", "a", "-o", "json"]).exits(6);
    assert_eq!(
        (said.json()["status"].clone(), said.json()["error"]["code"].clone()),
        (json!("waiting"), json!("waiting"))
    );
    said.complains(&["outlast signal a word JSON", "outlast run a.wf --id a"]);
    place.call(&["signal", "a", "word", "\"hello\""]).exits(0);
    place.call(&["run", "a.wf", "--id", "a"]).exits(6).complains(&["outlast approve a __approve-0", "# Ship it?"]);
    place.call(&["approve", "a", "--feedback", "gladly"]).exits(0);
    let said = place.call(&["run", "a.wf", "--id", "a", "-o", "json"]).exits(0);
    assert_eq!(said.json()["output"], json!(["hello", true, "gladly"]));
}

#[test]
fn a_deadline_is_waited_for_even_if_nobody_can_be_asked() {
    let place = Place::new(&[(
        "a.wf",
        "try { await Signal.next(\"x\", { timeout: \"1s\" }) } catch (error) { return error.code }",
    )]);
    assert_eq!(place.call(&["run", "a.wf"]).exits(0).out, "\"timeout\"\n");
}

#[test]
fn the_time_that_is_given_is_kept() {
    let place = Place::new(&[("a.wf", "await Timer.delay(\"1h\")")]);
    let said = place.call(&["run", "a.wf", "--id", "a", "--timeout", "300ms", "-o", "json"]).exits(6);
    assert_eq!(said.json()["error"]["code"], "timeout");
    said.complains(&["· sleep: 59 min", "outlast run a.wf --id a"]);
}

#[test]
fn a_paused_run_is_left_alone_until_it_is_resumed() {
    let place = Place::new(&[("a.wf", "return await Signal.next(\"go\")")]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(6);
    place.call(&["pause", "a"]).exits(0).complains(&["it is paused"]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(1).complains(&["the run a is paused", "outlast resume a"]);
    place.call(&["resume", "a"]).exits(0);
    place.call(&["signal", "a", "go", "1"]).exits(0);
    place.call(&["run", "a.wf", "--id", "a"]).exits(0);
}

#[test]
fn a_run_on_postgres_ends_and_is_found_again() {
    let url = std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
    let place = Place::new(&[("pg.wf", "workflow pg(n) {\n  return n + await Task.run(\"noop\", 1)\n}\n")]);
    // Others have runs there, too.
    let id = format!("pg-{}", std::process::id());
    let args = ["run", "pg.wf", "-i", "41", "--id", &id, "--database", &url, "-o", "json"];
    for _ in 0..2 {
        let done = place.call(&args).exits(0).json();
        assert_eq!((&done["status"], &done["output"]), (&serde_json::json!("completed"), &serde_json::json!(42)));
    }
    assert!(!place.path(".outlast").exists(), "nothing is kept here");
    assert!(place.call(&["show", &id, "--database", &url]).exits(0).out.contains("completed"));
}
