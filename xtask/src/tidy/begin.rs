//! SQLite transactions that write begin as writers.
//!
//! A deferred transaction that turns into a writer half-way gets `SQLITE_BUSY` at once, whatever the busy timeout is.

use super::finding::Finding;
use super::tree::{SourceFile, find_word};

const DIRECTORY: &str = "crates/store/src/sqlite";
const MARKER: &str = "// tidy: not a write transaction";
/// How rusqlite begins a transaction that is not `IMMEDIATE`.
const DEFERRED_CALLS: [&str; 3] = [".transaction()", ".unchecked_transaction()", "TransactionBehavior::Deferred"];

/// Every `BEGIN` says `IMMEDIATE`.
pub(super) fn immediate(file: &SourceFile) -> Vec<Finding> {
    if !file.path.starts_with(DIRECTORY) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.lines().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        let Some(what) = deferred(line) else { continue };
        if !file.is_marked(number, MARKER) {
            let fix = format!("begin with `BEGIN IMMEDIATE`, or mark it with `{MARKER}`");
            findings.push(Finding::new(&file.path, number, what, fix));
        }
    }
    findings
}

fn deferred(line: &str) -> Option<String> {
    if let Some(call) = DEFERRED_CALLS.iter().find(|call| line.contains(**call)) {
        return Some(format!("`{call}` begins a deferred transaction"));
    }
    let rest = &line[find_word(line, "BEGIN")? + "BEGIN".len()..];
    (!rest.trim_start().starts_with("IMMEDIATE")).then(|| "`BEGIN` without `IMMEDIATE`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::examples::file;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: usize) {
        let findings = immediate(&file("crates/store/src/sqlite/writer.rs", text));
        assert_eq!(findings.len(), expected, "{findings:?}");
    }

    #[test]
    fn transactions_that_do_not_begin_as_writers_are_refused() {
        check(r#"db.execute_batch("BEGIN")?;"#, 1);
        check(r#"db.execute_batch("BEGIN DEFERRED")?;"#, 1);
        check(r#"db.execute_batch("BEGIN; DELETE FROM x")?;"#, 1);
        check("let tx = db.transaction()?;", 1);
        check("db.transaction_with_behavior(TransactionBehavior::Deferred)?;", 1);
    }

    #[test]
    fn writers_comments_and_marked_lines_are_fine() {
        check(r#"db.execute_batch("BEGIN IMMEDIATE")?;"#, 0);
        check("db.transaction_with_behavior(TransactionBehavior::Immediate)?;", 0);
        check("// A plain BEGIN would be deferred.", 0);
        check("// tidy: not a write transaction\ndb.execute_batch(\"BEGIN\")?;", 0);
        assert!(immediate(&file("crates/store/src/postgres.rs", "\"BEGIN\"")).is_empty());
    }
}
