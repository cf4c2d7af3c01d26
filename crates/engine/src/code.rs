//! The code style: a workflow is an `async fn`, which replays its journal from the top.
//!
//! Nothing here knows of stores, commits or time: [`CodeProgram`] is told facts and answers with requests.

mod approve;
mod batch;
mod body;
mod callback;
mod child;
mod codec;
mod condition;
mod ctx;
mod fact;
mod group;
#[cfg_attr(not(feature = "flow"), expect(dead_code, reason = "only flows have steps by name"))]
mod named;
mod operation;
mod panics;
mod program;
mod record;
mod scope;
mod shared;
mod sleep;
mod slot;
mod step;
mod step_context;
mod task;
mod transaction;
mod wait_for;
mod wake;
mod workflow;

pub use approve::{Approve, Decision};
pub use batch::{Batch, BatchItem, BatchReason, BatchStatus, Map, Parallel};
pub use callback::{Callback, CallbackHandle, Token, WaitForCallback};
pub use child::Child;
pub use condition::{Check, WaitForCondition};
pub use ctx::Ctx;
pub use group::{All, AllSettled, Any, Group, Race, Race2, Race3, Race4, Race5, Race6, Race7, Race8};
#[cfg(feature = "flow")]
pub(crate) use named::Bodies;
pub(crate) use named::Steps;
pub use operation::{Handle, Operation};
pub(crate) use panics::guarded;
#[cfg(test)]
pub(crate) use program::CodeProgram;
pub(crate) use program::RunInfo;
pub use record::{NewUuid, Now, Random, Record};
pub use scope::Scope;
pub use sleep::Sleep;
pub use step::Step;
pub use step_context::StepContext;
pub use task::Task;
pub use transaction::Transaction;
pub use wait_for::WaitFor;
pub(crate) use workflow::Registered;
pub use workflow::Workflow;

#[cfg(test)]
mod tests;
