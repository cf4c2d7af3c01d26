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
mod drive;
mod driver;
mod engine;
mod error;
mod host;
mod node;
mod registry;
#[cfg(feature = "testing")]
pub mod testing;
mod token;
mod worker;

/// The code in the guides compiles and does what they say. Only here: a package has no guides.
#[cfg(all(doctest, feature = "testing"))]
mod guides {
    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;
}

pub use check::{CheckedRun, Checker, Divergence, Recording, ReplayError, Replayed, check_replay};
pub use client::{
    Attached, Decide, Driven, Ended, EngineError, Enqueue, Explanation, Fork, Forked, List, Pauses, PendingApproval,
    PendingWait, Reissued, RunHandle, Standing, Start, Tell, Unread, Waiting, WaitsFor, Watched,
};
pub use code::*;
pub use drive::{Lifecycle, OperationInfo};
pub use engine::{Engine, Outlast};
pub use error::{Error, Result};
pub use outlast_core::commit::Status;
pub use outlast_core::event::{ClosePolicy, Event};
pub use outlast_core::failure::Failure;
pub use outlast_core::id::{QueueName, TaskId, TaskName};
pub use outlast_core::retry::{Backoff, Jitter, Retry};
pub use outlast_core::time::Timestamp;
pub use outlast_store::{Awaited, Cursor, Delivered, Page, RunView, TaskState, TaskView};
pub use outlast_store::{FromSqlValue, Row, SqlValue, Tx, TxError, params};
pub use worker::{Handler, TaskContext};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
