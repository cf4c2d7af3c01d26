//! Outlast runs workflows that outlast crashes, deploys and months.
//!
//! A workflow is an `async fn(Ctx, Input) -> outlast::Result<Output>`. What it does through its [`Ctx`] is journaled; after a
//! crash the function runs again from the top, is given what is recorded, and goes on where it stopped. [`Outlast`] builds an
//! engine on one SQLite file, on PostgreSQL, or in memory; [`Engine`] starts runs and talks to them; `testing` (feature
//! `testing`) runs them in virtual time and kills them at every call.

mod board;
mod check;
mod client;
mod code;
mod doctor;
mod drive;
mod driver;
mod engine;
mod error;
mod host;
mod meters;
mod node;
mod registry;
mod schedule;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
mod token;
mod utc;
mod worker;

/// The code in the guides compiles and does what they say. Only here: a package has no guides.
#[cfg(all(doctest, feature = "testing"))]
mod guides {
    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;
}

pub use check::{CheckedRun, Checker, Divergence, Located, Recording, Replay, ReplayError, Replayed, check_replay};
#[cfg(feature = "flow")]
pub use client::Intervene;
#[cfg(feature = "script")]
pub use client::LookBack;
pub use client::{
    ApprovalPage, Attached, ClaimRequest, Decide, Driven, Ended, Ends, EngineError, Enqueue, Explanation, Fork, Forked,
    List, Measured, NewSchedule, Observed, OpenApproval, Pauses, PendingApproval, PendingWait, Reissued, Resume,
    ResumeItem, ResumePage, RunHandle, ScheduleHandle, ScheduleView, Standing, Start, TaskOffer, Tasks, Tell,
    Terminating, Triggered, Unread, Waiting, WaitsFor, Watched, WorkerInfo, WorkflowVersion,
};
pub use code::*;
pub use doctor::{Ailment, Diagnosis, Doctor, Finding};
pub use drive::{Lifecycle, OperationInfo};
pub use engine::{Engine, Outlast};
pub use error::{Error, Result};
pub use meters::describe_metrics;
pub use outlast_core::commit::{Bound, Rate, Status};
pub use outlast_core::event::{ClosePolicy, Event};
pub use outlast_core::failure::Failure;
pub use outlast_core::id::{Namespace, QueueName, TaskId, TaskName};
pub use outlast_core::retry::{Backoff, Jitter, Retry};
pub use outlast_core::time::Timestamp;
#[cfg(feature = "flow")]
pub use outlast_flow::{ContainerFrame, Flow, NodeStatus, Picture, Position, render};
#[cfg(feature = "script")]
pub use outlast_script::{Trace, TracedCall};
pub use outlast_store::{
    Awaited, Cursor, Delivered, Depths, Held, HeldLimit, Page, QueueDepth, RunView, SqlAnswer, SqlQuestion, StoreError,
    TaskDetail, TaskExtended, TaskPage, TaskState, TaskView, Trouble,
};
#[cfg(feature = "postgres")]
pub use outlast_store::{BareCommits, PostgresOptions};
pub use outlast_store::{FromSqlValue, Row, SqlValue, Tx, TxError, params};
pub use schedule::{Firing, FiringOutcome, Overlap, SCHEDULE_ATTRIBUTE};
pub use worker::{Handler, OfferedAttempt, TaskContext};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
