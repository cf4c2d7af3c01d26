//! Why a run stands where it stands: as data, and in words.

mod gather;
mod words;

use bytes::Bytes;
use outlast_core::commit::{InboxKind, Status};
use outlast_core::failure::Failure;
use outlast_core::id::{Key, LeaseId, RunId, RunKey, TaskId, Version, WorkflowName};
use outlast_core::lifecycle::{Rule, State, SuspendReason};
use outlast_core::operation::{Location, OperationKind};
use outlast_core::time::Timestamp;
use outlast_store::{Held, TaskState};

use super::{EngineError, RunHandle};

/// Why a run stands where it stands, and what would move it. Its `Display` says so in plain sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Which run.
    pub run: RunKey,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// Its version.
    pub version: Version,
    /// Where it stands, in a word.
    pub status: Status,
    /// Why there.
    pub standing: Standing,
    /// Whether something came for it and nobody has taken it up yet.
    pub woken: bool,
    /// Every operation that is not completed, in the order in which they began; what only the program knows comes last.
    pub operations: Vec<Waiting>,
    /// What was left for it and not yet read, the oldest first.
    pub inbox: Vec<Unread>,
    /// Why its journal cannot be read; then there are no operations here.
    pub unreadable: Option<String>,
}

/// Why a run stands where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has driven it yet.
    Queued {
        /// Since when.
        since: Timestamp,
    },
    /// Flow control holds it back.
    Held {
        /// Since when.
        since: Timestamp,
        /// Why.
        held: Held,
    },
    /// It is driven by this engine.
    DrivenHere {
        /// What keeps its turn from ending; none while it is being read or given up, or if its turn may end any moment.
        because: Option<Rule>,
    },
    /// It is driven by another engine, which alone knows what executes.
    DrivenElsewhere {
        /// Under which lease.
        lease: Option<LeaseId>,
    },
    /// Its turn ended: nothing executes, and something durable will wake it.
    Suspended {
        /// What it waits for, the most telling first; none if its journal cannot say.
        reason: Option<SuspendReason>,
    },
    /// An operator paused it.
    Paused {
        /// Since when.
        since: Option<Timestamp>,
        /// Why.
        reason: Option<String>,
    },
    /// The engine cannot go on with it.
    Parked {
        /// Since when.
        since: Option<Timestamp>,
        /// Why, and what to do.
        note: String,
    },
    /// It is over.
    Ended {
        /// Since when.
        at: Option<Timestamp>,
        /// How; none if its last event cannot be read.
        how: Option<Ended>,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an output.
    Completed {
        /// What it returned.
        output: Bytes,
    },
    /// With an error.
    Failed {
        /// The error.
        error: Failure,
    },
    /// Because it was asked to.
    Cancelled {
        /// Why.
        reason: Option<String>,
    },
    /// Without being asked.
    Terminated {
        /// Why.
        reason: Option<String>,
    },
}

/// An operation that is not completed, and what would complete it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which.
    pub key: Key,
    /// What it is.
    pub kind: OperationKind,
    /// The scope it lies in.
    pub parent: Option<String>,
    /// Where it stands; none if only the program could say whether it is awaited, and it is not in this process.
    pub state: Option<State>,
    /// Since when it is in the journal; none for a step that executes for the first time.
    pub since: Option<Timestamp>,
    /// When it fires, times out or is tried again.
    pub until: Option<Timestamp>,
    /// Where in the workflow's code it was asked for.
    pub location: Option<Location>,
    /// What would wake the run for it.
    pub on: WaitsFor,
}

/// What an operation waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The author's code, which executes.
    Body,
    /// The time of the next attempt at a step, or of the next check of a condition.
    Retry {
        /// Attempts so far.
        attempts: u32,
        /// How the last one failed; none for a condition that does not hold yet.
        error: Option<Failure>,
    },
    /// A timer.
    Timer,
    /// A signal.
    Signal {
        /// Of this name.
        name: String,
        /// Whether one is there, to be read.
        arrived: bool,
    },
    /// A decision.
    Approval {
        /// Under this id.
        approval: String,
        /// What the person reads.
        title: String,
        /// Who should decide.
        assignee: Option<String>,
        /// Whether it is decided, and that is to be read.
        arrived: bool,
    },
    /// An answer of whoever holds the token.
    Callback {
        /// The callback's public id.
        callback: String,
        /// When the next sign of life is owed.
        heartbeat_by: Option<Timestamp>,
        /// Whether the answer is there, to be read.
        arrived: bool,
    },
    /// The end of another run.
    Child {
        /// Which.
        run: RunId,
        /// Where it stands; none once it has ended, or if it is gone.
        status: Option<Status>,
    },
    /// A worker.
    Task {
        /// Which task.
        task: TaskId,
        /// Where it stands; none once it has ended.
        state: Option<TaskState>,
        /// Attempts that failed.
        failed: u32,
        /// How the last of them did, if that is known.
        error: Option<Failure>,
    },
    /// What lies in it: it is a scope.
    Inside,
}

/// Something that was left for a run and not yet read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// What it is.
    pub kind: InboxKind,
    /// The operation it is for.
    pub key: Option<Key>,
    /// A signal's name, a timer's kind, a task's or child's id.
    pub name: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

impl RunHandle {
    /// Says why the run stands where it stands: what it waits for, since when and until when, and what would wake it. Works
    /// wherever the run is: driven here, driven elsewhere, asleep, or ended.
    ///
    /// ```
    /// # use outlast::{Ctx, Outlast};
    /// # async fn nap(ctx: Ctx, _: ()) -> outlast::Result<()> { ctx.sleep(std::time::Duration::from_secs(60)).await }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().workflow("nap", nap).start().await?;
    /// let run = engine.start("nap", &()).id("nap-1").await?;
    /// println!("{}", run.explain().await?);
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn explain(&self) -> Result<Explanation, EngineError> {
        gather::explain(self).await
    }
}
