//! Batches: many branches of one kind, with a policy that says when they are complete.

mod builder;
mod policy;
mod run;

use serde::{Deserialize, Serialize};

pub use builder::{Map, Parallel};

use outlast_core::failure::Failure;

use crate::error::{Error, Result};

/// The code of an error that says that branches of a batch failed. Its data is the list of their failures.
const BATCH_FAILED: &str = "batch_failed";

/// What became of a [`Ctx::map`](crate::Ctx::map) or [`Ctx::parallel`](crate::Ctx::parallel). Failed branches are part
/// of it, not an error: use `?` on [`Batch::into_result`] to make them one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch<T> {
    /// The branches that were started, in the order in which they were written.
    pub items: Vec<BatchItem<T>>,
    /// Why it is complete.
    pub reason: BatchReason,
}

/// What became of one branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchItem<T> {
    /// It returned this.
    Succeeded(T),
    /// It failed.
    Failed(Error),
    /// The batch was complete before it ended.
    Cancelled,
}

/// Why a batch is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BatchReason {
    /// All branches ended.
    AllCompleted,
    /// As many succeeded as were asked for.
    MinSuccessfulReached,
    /// More failed than are tolerated.
    FailureToleranceExceeded,
}

impl BatchReason {
    /// As it is recorded: `ALL_COMPLETED`.
    pub const fn as_str(self) -> &'static str {
        match self {
            BatchReason::AllCompleted => "ALL_COMPLETED",
            BatchReason::MinSuccessfulReached => "MIN_SUCCESSFUL_REACHED",
            BatchReason::FailureToleranceExceeded => "FAILURE_TOLERANCE_EXCEEDED",
        }
    }
}

/// Whether a batch succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchStatus {
    /// No branch failed.
    Succeeded,
    /// A branch failed.
    Failed,
}

impl<T> Batch<T> {
    /// How many branches succeeded.
    pub fn succeeded(&self) -> usize {
        self.items.iter().filter(|item| matches!(item, BatchItem::Succeeded(_))).count()
    }

    /// How many branches failed.
    pub fn failed(&self) -> usize {
        self.errors().count()
    }

    /// How many branches were started.
    pub fn total(&self) -> usize {
        self.items.len()
    }

    /// Whether it succeeded: no branch failed.
    pub fn status(&self) -> BatchStatus {
        if self.failed() == 0 { BatchStatus::Succeeded } else { BatchStatus::Failed }
    }

    /// How branches failed, in their order.
    pub fn errors(&self) -> impl Iterator<Item = &Error> {
        self.items.iter().filter_map(|item| match item {
            BatchItem::Failed(error) => Some(error),
            BatchItem::Succeeded(_) | BatchItem::Cancelled => None,
        })
    }

    /// The same if no branch failed, or else an error with the code `batch_failed` and the failures as its data.
    pub fn into_result(self) -> Result<Batch<T>> {
        let failures: Vec<&Failure> = self.errors().map(Error::failure).collect();
        let Some(first) = failures.first() else { return Ok(self) };
        let message = format!("{} of {} branches failed, the first with {first}", failures.len(), self.total());
        Err(Error::new(BATCH_FAILED, message).with_data(&failures))
    }

    /// What the branches that succeeded returned, in their order; an error if a branch failed.
    pub fn results(self) -> Result<Vec<T>> {
        let items = self.into_result()?.items.into_iter();
        Ok(items.filter_map(BatchItem::value).collect())
    }
}

impl<T> BatchItem<T> {
    /// What it returned, if it did.
    pub fn value(self) -> Option<T> {
        match self {
            BatchItem::Succeeded(value) => Some(value),
            BatchItem::Failed(_) | BatchItem::Cancelled => None,
        }
    }
}
