//! What goes over the wire, in both directions: the server's answers and a client's requests, as plain data.
//!
//! Instants are RFC 3339 in UTC, durations are whole milliseconds (`…_ms`), and what belongs to authors (inputs, results,
//! payloads) is any JSON, passed on as it was written. A request with a field nobody knows is refused: a misspelt option must
//! not be silently ignored.

mod bulk;
mod event;
mod explain;
mod live;
mod operate;
mod run;
mod schedule;
mod task;
mod tell;
mod trace;
mod workflow;

pub use bulk::{BulkRefusal, BulkRequest, BulkView};
pub use event::{EventPage, RunEvent, StreamEnd};
pub use explain::{Explained, ExplainedOperation, InboxEntry, OperationList, OperationView};
pub use live::{RunCounts, RunsChange};
pub use operate::{
    AskSql, Audited, DoctorFinding, DoctorReport, DoctorRequest, Health, HookReceived, Ready, SessionRequest,
    SqlAnswer, WhoAmI,
};
pub use run::{
    AwaitedView, FailureView, ForkRun, Forked, Limit, ReissuedOperation, RunList, RunResult, RunSummary, RunView,
    SignalWith, StartRun, Started,
};
pub use schedule::{Backfill, Backfilled, PutSchedule, ScheduleFiring, ScheduleList, ScheduleView, Triggered};
pub use task::{
    ClaimTasks, CompleteTask, EnqueueTask, Enqueued, FailTask, HeartbeatTask, RetryPolicy, TaskBeat, TaskClaimed,
    TaskDetail, TaskFailed, TaskList, TaskOffer, TaskToken, TaskView, WorkerList, WorkerView,
};
pub use tell::{
    ApprovalList, ApprovalView, Decision, Delivered, FailCallback, NodeRequest, Reason, ResolveCallback, Resume,
    Signal, Unparked,
};
pub use trace::{LocationsView, OperationLocation, TraceView, TracedCallView, TracedVariable};
pub use workflow::{FileMistake, PutWorkflow, WorkflowList, WorkflowPut, WorkflowText, WorkflowVersionView};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Any JSON, as it was written.
pub type Json = Box<RawValue>;

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What programs branch on. Stable.
    pub code: String,
    /// What happened, for people.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

/// An answer without content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {}

/// A value that is certainly JSON because the engine wrote it; anything else is shown as text.
pub(crate) fn json(bytes: &[u8]) -> Json {
    let raw = serde_json::from_slice::<Json>(bytes).ok();
    raw.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(bytes);
        serde_json::value::to_raw_value(&text).unwrap_or_else(|_| null())
    })
}

/// `null`.
pub(crate) fn null() -> Json {
    RawValue::NULL.to_owned()
}
