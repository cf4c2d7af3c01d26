//! How a command ends: what it says, and the code it exits with.

use std::fmt;

use outlast::{EngineError, StoreError, Trouble};

/// What the process exits with. Scripts branch on it, so the numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for was done.
    Done = 0,
    /// Anything that has no code of its own.
    Error = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// There is no such run, file or database.
    NotFound = 3,
    /// The server wants another token, or one with more scopes.
    NotAllowed = 4,
    /// The run failed, or was cancelled.
    RunFailed = 5,
    /// The run is not over: the time is up, or it waits for somebody who cannot be asked here.
    Timeout = 6,
    /// The server, or the database's, does not answer.
    Unreachable = 7,
    /// Ctrl-C, as shells have it.
    Interrupted = 130,
}

impl Exit {
    /// What an error exits with.
    pub(crate) fn of(error: &anyhow::Error) -> Exit {
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return stop.exit;
        }
        error.downcast_ref::<EngineError>().map_or(Exit::Error, Exit::of_engine)
    }

    fn of_engine(error: &EngineError) -> Exit {
        match error {
            EngineError::Failed(_) | EngineError::Cancelled(_) => Exit::RunFailed,
            EngineError::NotFound { .. }
            | EngineError::UnknownWorkflow(_)
            | EngineError::Store(StoreError::NotFound(_) | StoreError::Deleted { .. }) => Exit::NotFound,
            EngineError::Store(StoreError::Unavailable { trouble: Trouble::Connection, .. }) => Exit::Unreachable,
            EngineError::Invalid(_) => Exit::Usage,
            _ => Exit::Error,
        }
    }
}

/// Why a command ends without having done what was asked, and what to do next.
#[derive(Debug)]
pub(crate) struct Stop {
    exit: Exit,
    message: String,
    hint: Option<String>,
    /// It says itself how bad it is.
    is_report: bool,
}

impl Stop {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Stop {
        Stop { exit, message: message.into(), hint: None, is_report: false }
    }

    /// A report that is shown as it is: what is wrong with a text, with its lines.
    pub(crate) fn report(exit: Exit, report: String) -> Stop {
        Stop { is_report: true, ..Stop::new(exit, report) }
    }

    /// The same with what to do next.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Stop {
        Stop { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn is_report(&self) -> bool {
        self.is_report
    }

    pub(crate) fn next(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stop {}
