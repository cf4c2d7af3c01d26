//! The SDKs' own tests, and a tool that looks for mistakes in the API's document, with the real binary as their server.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panicking, and run in real time")]

mod python;
mod schema;
mod types;

use std::path::Path;
use std::process::Command;

/// Runs a suite in the folder of an SDK; what it printed, if it passed.
fn passes(sdk: &str, program: &str, args: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").join(sdk);
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("OUTLAST_BIN", env!("CARGO_BIN_EXE_outlast"));
    // Where somebody's own server is, and whose token they have, is none of the tests' business.
    command.env_remove("OUTLAST_URL").env_remove("OUTLAST_TOKEN").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap_or_else(|error| panic!("{program} cannot be started: {error}"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("OUTLAST_BIN names no server") && !text.contains("skipped="), "{text}");
    text.into_owned()
}

fn python(modules: &[&str]) {
    let text =
        passes("python", &python::program("python").to_string_lossy(), &[&["-m", "unittest", "-v"], modules].concat());
    assert!(text.contains("\nOK"), "{text}");
}

fn node(files: &[&str]) {
    let text = passes("typescript", "node", &[&["--test", "--test-reporter=tap"], files].concat());
    assert!(text.contains("\n# fail 0\n") && text.contains("\n# skipped 0\n"), "{text}");
}

#[test]
fn the_python_sdk_copes_with_a_server_that_does_not_do_its_part() {
    python(&["tests.test_readme", "tests.test_http", "tests.test_worker"]);
}

#[test]
fn the_python_sdk_works_with_this_server() {
    python(&["tests.test_server"]);
}

#[test]
fn the_typescript_sdk_copes_with_a_server_that_does_not_do_its_part() {
    node(&["tests/http.test.js", "tests/worker.test.js"]);
}

#[test]
fn the_typescript_sdk_works_with_this_server() {
    node(&["tests/server.test.js"]);
}

/// The SDKs' pages say how to run all tests: together, these are all.
#[test]
fn no_file_of_tests_is_left_out() {
    let called = include_str!("main.rs");
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk");
    let mut found = 0;
    for folder in ["python/tests", "typescript/tests"] {
        for entry in std::fs::read_dir(sdk.join(folder)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let module = name.strip_suffix(".py").filter(|name| name.starts_with("test_"));
            let is_tests = module.is_some() || name.ends_with(".test.js");
            let asked = module.map_or(format!("\"tests/{name}\""), |name| format!("\"tests.{name}\""));
            assert!(!is_tests || called.contains(&asked), "{asked} is not called");
            found += usize::from(is_tests);
        }
    }
    assert!(found >= 8, "{found}");
}

#[test]
fn workers_in_python_and_in_typescript_finish_each_others_abandoned_tasks() {
    python(&["tests.test_together"]);
}
