//! What is said when something is wrong: what, where, and what to do next.

use crate::place::Place;

#[test]
fn a_mistake_in_a_script_is_shown_with_its_line() {
    let place = Place::new(&[("shop/a.wf", "const total = 1\nreturn totl\n")]);
    place.call(&["run", "shop/a.wf"]).exits(1).complains(&["shop/a.wf:2:8", "return totl", "did you mean `total`?"]);
    assert!(!place.path(".outlast").exists(), "nothing is made for a file that cannot run");
}

#[test]
fn a_mistake_in_a_flow_is_shown_with_its_line() {
    let place = Place::new(&[("a.flow.yaml", "flow: a\nnodes:\n  - { id: x, type: tusk, task: noop }\n")]);
    place.call(&["run", "a.flow.yaml"]).exits(1).complains(&["a.flow.yaml:3", "tusk"]);
}

#[test]
fn a_file_that_is_not_there_names_those_that_are() {
    let place = Place::new(&[("a.wf", "return 1"), ("b.flow.yaml", "")]);
    place.call(&["run", "c.wf"]).exits(3).complains(&["there is no file c.wf", "hint: here are a.wf, b.flow.yaml"]);
    place.call(&["run", "nowhere/c.wf"]).exits(3).complains(&["workflows are files that end in .wf or .flow.yaml"]);
    place.call(&["run", "."]).exits(2).complains(&["is a folder", "a.wf"]);
    place.write("c.txt", "");
    place.call(&["run", "c.txt"]).exits(2).complains(&["neither a script nor a flow", ".flow.yaml"]);
}

#[test]
fn input_that_is_not_json_is_shown() {
    let place = Place::new(&[("a.wf", "return 1")]);
    place.call(&["run", "a.wf", "-i", "{order: 7}"]).exits(2).complains(&[
        "--input is not JSON",
        "{order: 7}",
        "hint: ",
    ]);
    place.call(&["run", "a.wf", "-i", "@none.json"]).exits(3).complains(&["none.json"]);
}

#[test]
fn a_mistake_in_outlast_toml_is_shown_with_its_line() {
    let place =
        Place::new(&[("a.wf", "return 1"), ("outlast.toml", "[tasks.a]\ncommand = [\"cat\"]\ntimout = \"3s\"\n")]);
    place.call(&["run", "a.wf"]).exits(1).complains(&["error: outlast.toml:3", "did you mean `timeout`?"]);
}

#[test]
fn a_workflow_that_is_not_in_the_file_names_those_that_are() {
    let place = Place::new(&[("a.wf", "workflow one(x) { return 1 }\nworkflow two(x) { return 2 }\n")]);
    place
        .call(&["run", "a.wf", "--workflow", "three"])
        .exits(3)
        .complains(&["no workflow \"three\"", "it has one, two"]);
    assert_eq!(place.call(&["run", "a.wf"]).exits(0).out, "1\n");
    assert_eq!(place.call(&["run", "a.wf", "--workflow", "two"]).exits(0).out, "2\n");
}

#[test]
fn a_command_line_that_makes_no_sense_exits_with_2() {
    let place = Place::new(&[]);
    for args in
        [&[][..], &["rum"], &["run"], &["run", "a.wf", "--idd", "x"], &["list", "--status", "happy"], &["fork", "a"]]
    {
        let said = place.call(args).exits(2);
        assert!(!said.err.is_empty() && said.out.is_empty(), "{args:?}");
    }
    place.call(&["rum"]).complains(&["run"]);
    place.call(&["list", "--status", "happy"]).complains(&["completed"]);
    place.write("a.wf", "return 1");
    place
        .call(&["list", "--database", "sqlite:a.wf"])
        .exits(1)
        .complains(&["sqlite:a.wf cannot be read as a database"]);
    place.call(&["list", "--database", "shop.db"]).exits(2).complains(&["did you mean sqlite:shop.db?"]);
}

#[test]
fn what_is_not_there_exits_with_3() {
    let place = Place::new(&[("a.wf", "return 1")]);
    place.call(&["list"]).exits(3).complains(&["there is no database .outlast/outlast.db", "outlast run FILE"]);
    assert!(!place.path(".outlast").exists(), "looking makes nothing");
    place
        .call(&["run", "a.wf", "--database", "sqlite:no/where.db"])
        .exits(3)
        .complains(&["there is no folder no", "mkdir -p no"]);
    place.call(&["run", "a.wf"]).exits(0);
    for verb in ["show", "explain", "events", "pause", "resume", "cancel", "approve", "deny"] {
        place.call(&[verb, "nobody"]).exits(3).complains(&["nobody"]);
    }
    place.call(&["signal", "nobody", "x"]).exits(3);
    place.call(&["fork", "nobody", "--at", "1"]).exits(3);
}

#[test]
fn a_server_that_does_not_answer_exits_with_7_and_keeps_the_password_to_itself() {
    let place = Place::new(&[("a.wf", "return 1")]);
    let url = "postgres://ann:secret@127.0.0.1:1/none";
    let said = place.call(&["run", "a.wf", "--database", url]).exits(7).complains(&["postgres://ann@127.0.0.1:1/none"]);
    assert!(!said.err.contains("secret"), "{}", said.err);
}

/// Whoever does what a hint says gets further.
#[test]
fn an_address_that_cannot_be_used_says_what_to_do_and_that_works() {
    let place = Place::new(&[]);
    place.call(&["serve", "--listen", "foo"]).exits(2).complains(&["hint: write HOST:PORT"]);
    let said = place.call(&["serve", "--listen", "0.0.0.0:0"]).exits(2);
    let hint = said.err.lines().find(|line| line.starts_with("hint: ")).unwrap_or_else(|| panic!("{}", said.err));
    let command = hint.split('`').nth(1).unwrap().replace("NAME", "ann");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    place.call(&words).exits(0);
    assert!(place.read("outlast.toml").contains("ann"));
}
