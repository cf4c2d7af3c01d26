//! Wrong arguments: the only error after which the help text is shown.

use std::fmt;

/// The command line was wrong; nothing was started.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(complaint: impl Into<String>) -> Self {
        Self(complaint.into())
    }

    /// An argument that the command does not know.
    pub(crate) fn unknown_argument(command: &str, argument: &str) -> Self {
        Self(format!("`{command}` does not take `{argument}`"))
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
