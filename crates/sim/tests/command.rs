//! The command: what it refuses, and what its exit code says.

use std::process::{Command, Output};

use outlast_sim::case::{Act, Timed};
use outlast_sim::corpus::{self, Kept};
use outlast_sim::draw::draw;

fn sim(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_outlast-sim")).args(args).output();
    let Output { status, stdout, stderr } = output.expect("the simulator is built with its tests");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_pass_over_no_seeds_is_refused() {
    let (code, _, said) = sim(&["--seeds", "0"]);
    assert_eq!((code, said.as_str()), (Some(2), "`--seeds 0` would play nothing and find nothing: say at least 1\n"));
}

#[test]
fn a_case_that_cannot_be_read_is_refused() {
    let (code, _, said) = sim(&["--case", "no-such-case.json"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.starts_with("the case no-such-case.json cannot be read: "), "{said}");
}

#[test]
fn a_kept_case_is_played_by_its_file() {
    let file = corpus::directory().join("answered-while-paused.json");
    let (code, said, _) = sim(&["--case", &file.to_string_lossy()]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with("every promise is kept, twice in the same way\n"), "{said}");
}

#[test]
fn a_case_that_breaks_something_tells_its_story_and_how_to_repeat_it() {
    let mut case = draw(7);
    // There is no such run, so nobody can start it.
    case.acts.push(Timed { at: 0, what: Act::Start(case.runs.len()) });
    let file = std::env::temp_dir().join(format!("outlast-sim-command-{}.json", std::process::id()));
    corpus::write(&file, &Kept { why: "it cannot be played".to_owned(), case }).unwrap();
    let (code, said, _) = sim(&["--case", &file.to_string_lossy()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("BROKEN invariant 0: a panic: "), "{said}");
    assert!(said.contains(&format!("again: cargo xtask sim --case {}\n", file.display())), "{said}");
}
