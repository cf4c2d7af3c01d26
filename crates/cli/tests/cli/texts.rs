//! `check`, `fmt` and `graph`; `completions`, `man` and `--version`.

use serde_json::json;

use crate::place::{Place, root};

#[test]
fn check_finds_mistakes_in_all_files_and_says_where() {
    let place =
        Place::new(&[("a.wf", "return totl\n"), ("b.wf", "return 1\n"), ("c.flow.yaml", "flow: c\nnodes: []\n")]);
    let said = place.call(&["check", "a.wf", "b.wf", "c.flow.yaml"]).exits(1);
    assert_eq!(said.out, "");
    said.complains(&["a.wf:1:8", "✗ 2 mistakes in 3 files"]);
    place.call(&["check", "b.wf"]).exits(0).complains(&["✓ 1 file checked"]);
    let found = place.call(&["check", "a.wf", "-o", "json"]).exits(1).json();
    assert_eq!(
        (&found[0]["file"], &found[0]["line"], &found[0]["severity"]),
        (&json!("a.wf"), &json!(1), &json!("error"))
    );
}

#[test]
fn warnings_are_shown_and_can_be_denied() {
    let place = Place::new(&[("a.wf", "workflow a(x) {\n  result = 1\n  return result\n}\n")]);
    place.call(&["check", "a.wf"]).exits(0).complains(&["warning", "1 warning"]);
    place.call(&["check", "--deny-warnings", "a.wf"]).exits(1);
}

#[test]
fn fmt_lays_out_and_changes_nothing_twice() {
    let place = Place::new(&[("a.wf", "const  a=1;return   a"), ("bad.wf", "return (")]);
    place.call(&["fmt", "--check", "a.wf"]).exits(1).complains(&["a.wf would change"]);
    place.call(&["fmt", "a.wf"]).exits(0);
    assert_eq!(place.read("a.wf"), "const a = 1\nreturn a\n");
    let again = place.call(&["fmt", "--check", "a.wf"]).exits(0);
    assert_eq!(again.err, "");
    place.call(&["fmt", "bad.wf"]).exits(1).complains(&["bad.wf:1"]);
}

#[test]
fn every_example_is_checked_and_laid_out() {
    let place = Place::new(&[]);
    let all = |folder: &str, end: &str| -> Vec<String> {
        let entries = std::fs::read_dir(root().join("examples").join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path().to_string_lossy().into_owned());
        paths.filter(|path| path.ends_with(end)).collect()
    };
    let (scripts, flows) = (all("scripts", ".wf"), all("flows", ".yaml"));
    let call = |head: &[&str], files: &[String]| {
        let args: Vec<&str> = head.iter().copied().chain(files.iter().map(String::as_str)).collect();
        place.call(&args).exits(0);
    };
    call(&["check"], &[scripts.clone(), flows].concat());
    call(&["fmt", "--check"], &scripts);
}

#[test]
fn a_flow_is_drawn_also_with_where_a_run_stands() {
    let flow =
        "flow: ship\nnodes:\n  - { id: ok, type: approve, title: 'Ship?' }\n  - { id: sent, type: task, task: noop }\n";
    let place = Place::new(&[("ship.flow.yaml", flow), ("a.wf", "return 1")]);
    let drawn = place.call(&["graph", "ship.flow.yaml"]).exits(0).out;
    assert!(drawn.starts_with("flowchart TD") && drawn.contains("ok<br/>approve"), "{drawn}");
    assert!(place.call(&["graph", "ship.flow.yaml", "--as", "dot"]).exits(0).out.starts_with("digraph"));
    place.call(&["run", "ship.flow.yaml", "--id", "s"]).exits(6);
    let stands = place.call(&["graph", "ship.flow.yaml", "--run", "s"]).exits(0).out;
    assert!(stands.contains(":::waiting") && stands.contains(":::pending"), "{stands}");
    place.call(&["graph", "a.wf"]).exits(2).complains(&["only flows are graphs"]);
}

#[test]
fn shells_and_manuals_know_the_command() {
    let place = Place::new(&[]);
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.call(&["completions", shell]).exits(0).out.contains("outlast"), "{shell}");
    }
    assert!(place.call(&["man"]).exits(0).out.contains(".TH outlast"));
    place.call(&["man", "pages"]).exits(0);
    assert!(place.path("pages/outlast-run.1").exists());
    let version = place.call(&["--version"]).exits(0).out;
    assert_eq!(version, format!("outlast {}\n", env!("CARGO_PKG_VERSION")));
}
