//! What programs outside of workflows do with runs: start them, wait for them, tell them things.

mod approvals;
mod attach;
mod definitions;
mod drive_once;
mod ends;
mod enqueue;
mod error;
mod explain;
mod fork;
mod list;
mod measure;
mod namespace;
#[cfg(feature = "flow")]
mod nodes;
mod pauses;
mod protocol;
mod reply;
mod resumes;
mod run;
mod schedule;
mod sql;
mod start;
mod tasks;
mod tell;
mod terminate;
#[cfg(feature = "script")]
mod trace;
mod watch;
mod workers;

pub use approvals::{ApprovalPage, OpenApproval};
pub use attach::{Attached, Observed};
pub use definitions::WorkflowVersion;
pub use drive_once::Driven;
pub use ends::Ends;
pub use enqueue::Enqueue;
pub use error::EngineError;
pub use explain::{Ended, Explanation, Standing, Unread, Waiting, WaitsFor};
pub use fork::{Fork, Forked, Reissued};
pub use list::List;
pub use measure::Measured;
#[cfg(feature = "flow")]
pub use nodes::Intervene;
pub use pauses::{Pauses, PendingApproval, PendingWait};
pub use protocol::{ClaimRequest, TaskOffer};
pub use resumes::{ResumeItem, ResumePage};
pub use run::RunHandle;
pub use schedule::{NewSchedule, ScheduleHandle, ScheduleView, Triggered};
pub use start::Start;
pub use tasks::Tasks;
pub use tell::{Decide, Resume, Tell};
pub use terminate::Terminating;
#[cfg(feature = "script")]
pub use trace::LookBack;
pub use watch::Watched;
pub use workers::WorkerInfo;

use bytes::Bytes;
use outlast_core::commit::Status;
use outlast_core::id::{InvalidId, RunId, RunKey};
use serde::Serialize;

use crate::engine::Engine;

impl Engine {
    /// Starts a run of a workflow. Say which id it has with [`Start::id`]: starting the same id twice with the same input
    /// gives the same run, so that a start can be repeated until it is acknowledged.
    pub fn start<I: Serialize + ?Sized>(&self, workflow: &str, input: &I) -> Start<'_> {
        Start::new(self, workflow, encode(input))
    }

    /// A run that was started before, here or elsewhere. Nothing is looked up yet.
    pub fn run(&self, id: &str) -> Result<RunHandle, EngineError> {
        Ok(RunHandle::new(self, self.key(id)?))
    }

    /// How many runs stand where.
    pub async fn count(&self) -> Result<Vec<(Status, u64)>, EngineError> {
        Ok(self.inner.store()?.count(self.namespace.clone()).await?)
    }

    fn key(&self, id: &str) -> Result<RunKey, InvalidId> {
        Ok(RunKey::new(self.namespace.clone(), RunId::new(id)?))
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Bytes, EngineError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| EngineError::Codec(error.to_string()))
}
