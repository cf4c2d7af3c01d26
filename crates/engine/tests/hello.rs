//! The README's first command does what it says.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::Command;

/// The example beside this test's own binary: Cargo builds examples with the tests.
fn hello() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let built = deps.parent().unwrap().parent().unwrap().join("examples").join("hello");
    assert!(built.exists(), "{} is not built: run the whole package's tests, not this file alone", built.display());
    built
}

#[test]
fn hello_is_killed_half_way_and_finishes_without_doing_anything_twice() {
    let output = Command::new(hello()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("was killed with SIGKILL (signal: 9"), "{text}");
    for step in ["boil the water", "grind the coffee", "pour", "say good morning"] {
        assert_eq!(text.matches(&format!("doing: {step}\n")).count(), 1, "{step} was done once:\n{text}");
    }
    assert_eq!(
        text.matches("recorded: boil the water").count(),
        2,
        "the second process finds it in the journal:\n{text}"
    );
    assert!(text.contains("breakfast is ready"), "{text}");
}

#[test]
fn hello_with_a_wrong_argument_says_how_it_is_used() {
    let output = Command::new(hello()).arg("--help-me").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: hello"));
}
