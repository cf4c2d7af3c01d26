//! Wrong programs: every message is one that a newcomer understands. `INSTA_UPDATE=always` writes what is there.

use outlast_script::{Severity, check};

use crate::stage::{failure, run_text};

fn blocks(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("### ").skip(1).filter_map(|block| block.split_once('\n'))
}

#[test]
fn messages_about_programs_that_do_not_run_are_as_reviewed() {
    let mut shown = String::new();
    let mut count = 0;
    for (name, text) in blocks(include_str!("../wrong/programs.txt")) {
        let found = check("wrong.wf", text);
        assert!(!found.list().is_empty(), "nothing is wrong with {name}");
        shown.push_str(&format!("### {name}\n{found}\n\n"));
        count += 1;
    }
    assert!(count >= 80, "{count} programs");
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../wrong" }, {
        insta::assert_snapshot!("programs", shown);
    });
}

#[test]
fn messages_about_programs_that_fail_are_as_reviewed() {
    let mut shown = String::new();
    for (name, text) in blocks(include_str!("../wrong/runs.txt")) {
        let failure = failure(text);
        let trace = failure.trace.map_or(String::new(), |trace| format!("\n{trace}"));
        shown.push_str(&format!("### {name}\n{}: {}{trace}\n\n", failure.code, failure.message));
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../wrong" }, {
        insta::assert_snapshot!("runs", shown);
    });
}

#[test]
fn several_mistakes_are_found_in_one_go() {
    let found = check("wrong.wf", "let a = 1 +\nlet b = )\nlet c = 3\nfunction f( {\nreturn c c");
    let errors = found.list().iter().filter(|found| found.severity == Severity::Error).count();
    assert!(errors >= 3, "{found}");
}

#[test]
fn warnings_do_not_keep_a_program_from_running() {
    let found = check("test.wf", "const unused = 1\nreturn 2");
    assert_eq!(found.list()[0].severity, Severity::Warning);
    assert!(run_text("const unused = 1\nreturn 2").result.is_ok());
}

#[test]
fn names_that_begin_with_an_underscore_may_be_unused() {
    assert_eq!(check("test.wf", "const _unused = 1\nreturn 2").list(), []);
}
