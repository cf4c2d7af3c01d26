//! Where code lives and how long a file may be.

use super::finding::Finding;
use super::tree::{SourceFile, find_word};

/// Lines of a source file, tests not counted.
const SOURCE_LINES_MAX: usize = 600;
const UNFINISHED: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// `foo.rs` beside `foo/`, never `foo/mod.rs`.
pub(super) fn mod_rs(file: &SourceFile) -> Option<Finding> {
    let directory = file.path.strip_suffix("/mod.rs")?;
    let fix = if directory.rsplit('/').nth(1) == Some("tests") {
        // Cargo would take `tests/support.rs` for a test of its own.
        "make the tests one binary, `tests/<name>/main.rs`, and this a file beside it".to_owned()
    } else {
        format!("rename it to {directory}.rs")
    };
    Some(Finding::new(&file.path, 1, "a file called `mod.rs`", fix))
}

/// No source file under `crates/` is too long to read in one sitting.
pub(super) fn length(file: &SourceFile) -> Option<Finding> {
    let is_source = file.is_rust() && file.path.starts_with("crates/") && file.path.contains("/src/");
    if !is_source || file.path.ends_with("/tests.rs") || file.path.contains("/tests/") {
        return None;
    }
    let lines = lines_without_tests(file);
    (lines > SOURCE_LINES_MAX).then(|| {
        let what = format!("{lines} lines, and {SOURCE_LINES_MAX} are the limit");
        Finding::new(&file.path, lines, what, "split it by noun: `foo.rs` and `foo/`")
    })
}

/// Nothing under `crates/` is marked as unfinished.
pub(super) fn unfinished(file: &SourceFile) -> Vec<Finding> {
    if !file.path.starts_with("crates/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        for word in UNFINISHED.iter().filter(|word| find_word(line, word).is_some()) {
            let fix = "finish it, or open an issue and say in the comment what holds today";
            findings.push(Finding::new(&file.path, number, format!("`{word}` in the code"), fix));
        }
    }
    findings
}

/// Unit tests stand at the end of their file.
fn lines_without_tests(file: &SourceFile) -> usize {
    let lines: Vec<&str> = file.text.lines().collect();
    let is_test_module =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    lines.windows(2).position(is_test_module).unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::super::examples::file;
    use super::*;

    #[test]
    fn mod_rs_is_refused() {
        let finding = mod_rs(&file("crates/store/src/sqlite/mod.rs", "")).expect("a finding");
        assert!(finding.to_string().ends_with("rename it to crates/store/src/sqlite.rs"), "{finding}");
        assert_eq!(mod_rs(&file("crates/store/src/sqlite.rs", "")), None);
        assert!(mod_rs(&file("crates/store/tests/support/mod.rs", "")).is_some());
    }

    #[test]
    fn long_files_are_refused_and_their_tests_do_not_count() {
        let at_limit = "x\n".repeat(SOURCE_LINES_MAX);
        let path = "crates/core/src/event.rs";
        assert_eq!(length(&file(path, &at_limit)), None);
        assert_eq!(length(&file(path, &format!("{at_limit}#[cfg(test)]\nmod tests {{\n{at_limit}}}\n"))), None);
        assert!(length(&file(path, &format!("{at_limit}x\n"))).is_some());
        assert_eq!(length(&file("crates/core/tests/event.rs", &format!("{at_limit}x\n"))), None);
    }

    #[test]
    fn unfinished_work_is_refused() {
        let findings = unfinished(&file("crates/core/src/lib.rs", "fine\n// TODO: later\n// XXX\n"));
        assert_eq!(findings.iter().map(Finding::line).collect::<Vec<_>>(), [2, 3]);
        assert!(unfinished(&file("crates/core/src/lib.rs", "const XXXL: u8 = 1;\n")).is_empty());
        assert!(unfinished(&file("xtask/src/tidy.rs", "TODO")).is_empty());
    }
}
