//! What a rule reports: where, what, and what to do.

use std::fmt;

/// A broken rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    what: String,
    fix: String,
}

impl Finding {
    pub(super) fn new(path: &str, line: usize, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), fix: fix.into() }
    }

    /// The line, for tests.
    #[cfg(test)]
    pub(super) fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_where_what_and_what_to_do() {
        let finding = Finding::new("crates/core/src/lib.rs", 7, "this is wrong", "do that");
        assert_eq!(finding.to_string(), "crates/core/src/lib.rs:7: this is wrong; do that");
    }
}
