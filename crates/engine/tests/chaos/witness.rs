//! What bodies and handlers say they did: lines of a file that outlives every process.

use std::io::Write;
use std::path::Path;

/// Environment: where the file is.
pub(crate) const FILE: &str = "OUTLAST_CHAOS_WITNESS";

/// A body or handler began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    /// The step's or task's idempotency key.
    pub(crate) key: String,
    pub(crate) attempt: u32,
}

/// Says that it begins. One write at the end of the file: lines of several processes do not mix.
pub(crate) fn begun(key: &str, attempt: u32) {
    let path = std::env::var_os(FILE).expect("a member knows where to write");
    let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
    file.write_all(format!("{key} {attempt}\n").as_bytes()).unwrap();
}

pub(crate) fn read(path: &Path) -> Vec<Begun> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let (key, attempt) = line.rsplit_once(' ').unwrap();
        Begun { key: key.to_owned(), attempt: attempt.parse().unwrap() }
    };
    text.lines().map(line).collect()
}
