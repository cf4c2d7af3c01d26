//! What a client is told when something did not work.

use outlast_core::failure::{Failure, code};
use outlast_core::id::{InvalidId, LeaseId, RunKey, TaskId};
use outlast_store::StoreError;
use thiserror::Error;

/// Why a call to the engine did not do what was asked.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The run failed, with this error.
    #[error("the run failed: {0}")]
    Failed(Failure),
    /// The run was cancelled or terminated.
    #[error("the run was cancelled{}", .0.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Cancelled(Option<String>),
    /// Nobody here knows the workflow.
    #[error("no workflow {0:?} is registered here; register it with the engine, or say which version to start")]
    UnknownWorkflow(String),
    /// The workflow is registered here, and this version of it is not.
    #[error(
        "workflow_version_mismatch: the workflow {workflow:?} is registered here without version {version:?}; register it \
         as a previous version, or start another one"
    )]
    VersionMismatch {
        /// Which workflow.
        workflow: String,
        /// Which version.
        version: String,
    },
    /// The engine cannot go on with the run. Nothing of it is lost: when the cause is mended, unpark it.
    #[error("{run} is parked, and nothing of it is lost: {reason}{}", next_step(reason))]
    Parked {
        /// Which.
        run: RunKey,
        /// Why.
        reason: String,
    },
    /// Two workflows were registered under one name.
    #[error("the workflow {0:?} is registered twice; register its versions together, as one `Workflow`")]
    DuplicateWorkflow(String),
    /// A text that workflows are written in has mistakes.
    #[error("{file} has mistakes:\n{report}")]
    Mistakes {
        /// Which file.
        file: String,
        /// The mistakes, each with its line.
        report: String,
    },
    /// Two handlers of tasks were registered under one name.
    #[error("two handlers are registered for the task {0:?}; give one of them another name")]
    DuplicateHandler(String),
    /// The run has ended, or another answer came first.
    #[error("{what} of {run} was lost: the run has ended, or another one came first")]
    Lost {
        /// Whose.
        run: RunKey,
        /// What was lost: a signal, an approval.
        what: &'static str,
    },
    /// The run is not paused.
    #[error("already_running: {0} is not paused, so it cannot be let go on; pause it first")]
    AlreadyRunning(RunKey),
    /// There is nothing of that name.
    #[error("there is no {what} of {run}; check the ids")]
    NotFound {
        /// Whose.
        run: RunKey,
        /// What is not there.
        what: &'static str,
    },
    /// An attempt at a task is over: it took too long, somebody else has the task, it is not wanted any more, or something else was
    /// said about it before.
    #[error("this attempt at the task {0} is over, and nothing was changed; ask for other work")]
    TaskLost(TaskId),
    /// A run is not tried again: it has not failed, or nothing that it did has.
    #[error("{run} is not tried again: {why}")]
    NothingToRetry {
        /// Which run.
        run: RunKey,
        /// Why, and what to do instead.
        why: &'static str,
    },
    /// There is no schedule of that name.
    #[error("there is no schedule {0:?} in this namespace; check the id, or put it first")]
    UnknownSchedule(String),
    /// Another engine drives the run right now.
    #[error("{run} is driven by another engine, under lease {lease}; it goes on there, ask again later")]
    Held {
        /// Which run.
        run: RunKey,
        /// Under which lease.
        lease: LeaseId,
    },
    /// A value cannot be written as JSON, or read as what was expected.
    #[error("{0}")]
    Codec(String),
    /// A name or id cannot be one.
    #[error("{0}")]
    Invalid(String),
    /// The engine needs a Tokio runtime for its loops and for step bodies.
    #[error("there is no Tokio runtime; call `start` from inside one, for instance under #[tokio::main]")]
    NoRuntime,
    /// The engine was shut down.
    #[error("the engine is shut down; start another one")]
    Stopped,
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EngineError {
    /// What programs branch on.
    pub fn code(&self) -> &str {
        match self {
            EngineError::Failed(failure) => &failure.code,
            EngineError::Cancelled(_) => code::ABORTED,
            EngineError::VersionMismatch { .. } => code::WORKFLOW_VERSION_MISMATCH,
            EngineError::Parked { reason, .. } if reason.starts_with(code::WORKFLOW_VERSION_MISMATCH) => {
                code::WORKFLOW_VERSION_MISMATCH
            }
            EngineError::Parked { .. } => code::PARKED,
            EngineError::UnknownWorkflow(_) => "unknown_workflow",
            EngineError::DuplicateWorkflow(_) => "duplicate_workflow",
            EngineError::DuplicateHandler(_) => "duplicate_handler",
            EngineError::Lost { what: "an approval", .. } => code::APPROVAL_LOST,
            EngineError::Lost { .. } => code::SIGNAL_LOST,
            EngineError::Held { .. } => "run_held",
            EngineError::AlreadyRunning(_) => "already_running",
            EngineError::TaskLost(_) => code::TASK_LOST,
            EngineError::NothingToRetry { .. } => "nothing_to_retry",
            EngineError::NotFound { .. }
            | EngineError::UnknownSchedule(_)
            | EngineError::Store(StoreError::NotFound(_) | StoreError::UnknownTask(_)) => "not_found",
            EngineError::Store(StoreError::TaskNotDead { .. }) => "task_not_dead",
            EngineError::Store(StoreError::Deleted { .. }) => code::RUN_LOST,
            EngineError::Store(StoreError::Exists { .. }) => "run_exists",
            EngineError::Store(StoreError::Limit(_)) => code::LIMIT_EXCEEDED,
            EngineError::Codec(_) | EngineError::Invalid(_) | EngineError::Mistakes { .. } => code::VALIDATION_ERROR,
            EngineError::NoRuntime | EngineError::Stopped | EngineError::Store(_) => code::ERROR,
        }
    }
}

/// What to do about a parked run, where the reason does not say so itself.
fn next_step(reason: &str) -> &'static str {
    if reason.contains("unpark") { "" } else { "; mend the cause, then unpark it" }
}

impl From<InvalidId> for EngineError {
    fn from(error: InvalidId) -> Self {
        EngineError::Invalid(error.to_string())
    }
}
