//! Operations: what a program asks for. A request is imperative and says nothing about what came of it; that is an
//! [`Event`].

mod keys;
mod operations;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use keys::{Keys, SharedName, again, ancestors, branch};
pub use operations::{Operations, Provided};

use crate::event::{ClosePolicy, Event, Kind};
use crate::failure::Failure;
use crate::id::{Key, QueueName, RunId, SignalName, TaskName, Version, WorkflowName};
use crate::retry::Retry;
use crate::time::Timestamp;

/// What an operation is. A key belongs to one kind for the life of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// The author's code, run by the driver.
    Step,
    /// Work done by a worker.
    Task,
    /// A sleep.
    Timer,
    /// A wait for a signal.
    Signal,
    /// A wait for a decision.
    Approval,
    /// A wait for the holder of a token.
    Callback,
    /// Another run.
    Child,
    /// A condition, checked again and again.
    Condition,
    /// A map, a parallel, a child context.
    Scope,
    /// A question for the time.
    Now,
    /// A question for a unique id.
    Uuid,
    /// A question for a random number.
    Random,
}

impl OperationKind {
    /// The word in the key of an unnamed one: `__sleep-0`.
    pub const fn name(self) -> &'static str {
        match self {
            OperationKind::Step => "step",
            OperationKind::Task => "task",
            OperationKind::Timer => "sleep",
            OperationKind::Signal => "wait",
            OperationKind::Approval => "approve",
            OperationKind::Callback => "callback",
            OperationKind::Child => "child",
            OperationKind::Condition => "condition",
            OperationKind::Scope => "scope",
            OperationKind::Now => "now",
            OperationKind::Uuid => "uuid",
            OperationKind::Random => "random",
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Kind {
    /// The kind of operation such an event is about; none for events of the run, of flow nodes and of cancellations.
    ///
    /// A failed check of a condition is a failed step with the condition's key: both are the author's code.
    pub const fn operation(self) -> Option<OperationKind> {
        match self {
            Kind::StepStarted | Kind::StepFinished | Kind::StepFailed | Kind::StepRetryScheduled => {
                Some(OperationKind::Step)
            }
            Kind::TaskScheduled | Kind::TaskFinished | Kind::TaskFailed => Some(OperationKind::Task),
            Kind::TimerStarted | Kind::TimerFired => Some(OperationKind::Timer),
            Kind::SignalAwaited | Kind::SignalResolved | Kind::SignalTimedOut | Kind::SignalRejected => {
                Some(OperationKind::Signal)
            }
            Kind::ApprovalRequested | Kind::ApprovalResolved | Kind::ApprovalTimedOut => Some(OperationKind::Approval),
            Kind::CallbackCreated | Kind::CallbackResolved | Kind::CallbackFailed | Kind::CallbackTimedOut => {
                Some(OperationKind::Callback)
            }
            Kind::ChildStarted | Kind::ChildFinished | Kind::ChildFailed => Some(OperationKind::Child),
            Kind::ConditionChecked => Some(OperationKind::Condition),
            Kind::ScopeStarted | Kind::ScopeFinished | Kind::ScopeFailed => Some(OperationKind::Scope),
            Kind::NowRecorded => Some(OperationKind::Now),
            Kind::UuidRecorded => Some(OperationKind::Uuid),
            Kind::RandomRecorded => Some(OperationKind::Random),
            Kind::RunStarted
            | Kind::RunFinished
            | Kind::RunErrored
            | Kind::RunCancelled
            | Kind::RunTerminated
            | Kind::RunContinued
            | Kind::RunPaused
            | Kind::RunResumed
            | Kind::CancelRequested
            | Kind::OperationCancelled
            | Kind::OperationRefused
            | Kind::NodeStarted
            | Kind::NodeCompleted
            | Kind::NodeError
            | Kind::NodeSkipped
            | Kind::NodeRetried
            | Kind::InterventionRefused
            | Kind::ContainerIterationStarted
            | Kind::ContainerIterationCompleted
            | Kind::ContainerChildStarted
            | Kind::ContainerChildCompleted
            | Kind::LoopIterate
            | Kind::StateDelta
            | Kind::Custom => None,
        }
    }
}

/// A place in the author's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The file.
    pub file: Cow<'static, str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<&'static std::panic::Location<'static>> for Location {
    fn from(caller: &'static std::panic::Location<'static>) -> Self {
        Location { file: Cow::Borrowed(caller.file()), line: caller.line(), column: caller.column() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// When something falls due, as the author said it. The driver makes an instant of it once, and records that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Due {
    /// So long after the operation starts.
    After(Duration),
    /// At an instant, which may have passed.
    At(Timestamp),
}

impl Due {
    /// The instant, for an operation that starts at `now`.
    pub fn deadline(self, now: Timestamp) -> Timestamp {
        match self {
            Due::After(delay) => now + delay,
            Due::At(instant) => instant,
        }
    }
}

/// A durable request by a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Begin a step.
    StartStep {
        /// Its identity.
        key: Key,
        /// Whether it must not run again when it is in doubt.
        at_most_once: bool,
        /// When to try again.
        retry: Retry,
        /// How long one attempt may take.
        timeout: Option<Duration>,
        /// The longest silence allowed between two signs of life of one attempt.
        heartbeat: Option<Duration>,
    },
    /// Note that a step's body gave a sign of life. Nothing is recorded.
    Heartbeat {
        /// Which step.
        key: Key,
    },
    /// Begin a step whose body runs inside the store, in one transaction with the record of its outcome.
    StartTransaction {
        /// Its identity.
        key: Key,
        /// When to try again.
        retry: Retry,
    },
    /// Record that a step's body, or the check of a condition, returned.
    FinishStep {
        /// Which step.
        key: Key,
        /// What it returned; for a condition its state.
        result: Bytes,
        /// Whether the condition holds; none for a step.
        met: Option<bool>,
    },
    /// Record that an attempt at a step, or at the check of a condition, failed; the driver decides about a retry.
    FailStep {
        /// Which step.
        key: Key,
        /// Its error.
        error: Failure,
    },
    /// Begin a sleep.
    StartTimer {
        /// Its identity.
        key: Key,
        /// Until when.
        due: Due,
    },
    /// Begin to wait for a signal.
    AwaitSignal {
        /// Its identity.
        key: Key,
        /// Which signal.
        name: SignalName,
        /// Until when.
        deadline: Option<Due>,
        /// The form its payload must have, as a JSON schema.
        schema: Option<Bytes>,
    },
    /// Ask somebody to decide.
    RequestApproval {
        /// Its identity.
        key: Key,
        /// What the person reads.
        title: String,
        /// Who should decide.
        assignee: Option<String>,
        /// Until when.
        deadline: Option<Due>,
    },
    /// Create a token that somebody else answers.
    CreateCallback {
        /// Its identity.
        key: Key,
        /// Until when.
        deadline: Option<Due>,
        /// The longest silence allowed between two signs of life.
        heartbeat: Option<Duration>,
    },
    /// Queue a task.
    ScheduleTask {
        /// Its identity.
        key: Key,
        /// Which handler.
        name: TaskName,
        /// Which queue.
        queue: QueueName,
        /// Larger is claimed sooner.
        priority: i16,
        /// What the handler gets.
        args: Bytes,
        /// When to try again.
        retry: Retry,
        /// How long one attempt may take.
        timeout: Option<Duration>,
        /// The longest silence allowed between two signs of life.
        heartbeat: Option<Duration>,
        /// Not to be done before then.
        begin: Option<Due>,
        /// Whether the run does not wait for it.
        detached: bool,
    },
    /// Start another run.
    StartChild {
        /// Its identity.
        key: Key,
        /// The child's id; none for one made from this run's id and the key.
        child: Option<RunId>,
        /// Which workflow.
        workflow: WorkflowName,
        /// Which version; none for the newest.
        version: Option<Version>,
        /// What it gets.
        input: Bytes,
        /// Whether nobody here waits for it.
        detached: bool,
        /// What becomes of it when this run ends first.
        on_close: ClosePolicy,
    },
    /// Begin to check a condition.
    CheckCondition {
        /// Its identity.
        key: Key,
        /// What the first check starts from.
        state: Bytes,
        /// How long to wait between checks.
        retry: Retry,
    },
    /// Open a scope.
    StartScope {
        /// Its identity; the keys of its operations begin with it.
        key: Key,
        /// How many branches it has.
        total: Option<u32>,
    },
    /// Close a scope with a result. Everything open below it is cancelled.
    FinishScope {
        /// Which scope.
        key: Key,
        /// What it returns.
        result: Bytes,
        /// Why it is complete.
        reason: Option<String>,
    },
    /// Close a scope with an error. Everything open below it is cancelled.
    FailScope {
        /// Which scope.
        key: Key,
        /// Its error.
        error: Failure,
    },
    /// Record the time the program was given.
    RecordNow {
        /// Its identity.
        key: Key,
        /// The answer the program has.
        value: Timestamp,
    },
    /// Record the unique id the program was given.
    RecordUuid {
        /// Its identity.
        key: Key,
        /// The answer the program has.
        value: Uuid,
    },
    /// Record the random number the program was given.
    RecordRandom {
        /// Its identity.
        key: Key,
        /// The answer the program has.
        value: u64,
    },
    /// Note that the program now awaits an operation it started before.
    Await {
        /// Which operation.
        key: Key,
    },
    /// Cancel an operation: its future was dropped.
    Cancel {
        /// Which operation.
        key: Key,
    },
    /// Append a flow's own event: a node, an iteration, a loop.
    Mark {
        /// The event.
        event: Box<Event>,
    },
    /// Tell observers something.
    Emit {
        /// What it is called.
        name: String,
        /// What it says.
        payload: Bytes,
    },
    /// Change the run's visible state.
    SetState {
        /// The change.
        delta: Bytes,
    },
    /// End this generation and begin the next.
    ContinueAsNew {
        /// The next generation's input.
        input: Bytes,
        /// The next generation's version, where it changes.
        version: Option<Version>,
    },
}

impl Operation {
    /// The operation it is about; none for requests about the run itself.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Operation::StartStep { key, .. }
            | Operation::Heartbeat { key }
            | Operation::StartTransaction { key, .. }
            | Operation::FinishStep { key, .. }
            | Operation::FailStep { key, .. }
            | Operation::StartTimer { key, .. }
            | Operation::AwaitSignal { key, .. }
            | Operation::RequestApproval { key, .. }
            | Operation::CreateCallback { key, .. }
            | Operation::ScheduleTask { key, .. }
            | Operation::StartChild { key, .. }
            | Operation::CheckCondition { key, .. }
            | Operation::StartScope { key, .. }
            | Operation::FinishScope { key, .. }
            | Operation::FailScope { key, .. }
            | Operation::RecordNow { key, .. }
            | Operation::RecordUuid { key, .. }
            | Operation::RecordRandom { key, .. }
            | Operation::Await { key }
            | Operation::Cancel { key } => Some(key),
            Operation::Mark { event } => event.key(),
            Operation::Emit { .. } | Operation::SetState { .. } | Operation::ContinueAsNew { .. } => None,
        }
    }

    /// The kind of operation it starts; none for requests that start nothing.
    pub fn starts(&self) -> Option<OperationKind> {
        match self {
            Operation::StartStep { .. } | Operation::StartTransaction { .. } => Some(OperationKind::Step),
            Operation::StartTimer { .. } => Some(OperationKind::Timer),
            Operation::AwaitSignal { .. } => Some(OperationKind::Signal),
            Operation::RequestApproval { .. } => Some(OperationKind::Approval),
            Operation::CreateCallback { .. } => Some(OperationKind::Callback),
            Operation::ScheduleTask { .. } => Some(OperationKind::Task),
            Operation::StartChild { .. } => Some(OperationKind::Child),
            Operation::CheckCondition { .. } => Some(OperationKind::Condition),
            Operation::StartScope { .. } => Some(OperationKind::Scope),
            Operation::RecordNow { .. } => Some(OperationKind::Now),
            Operation::RecordUuid { .. } => Some(OperationKind::Uuid),
            Operation::RecordRandom { .. } => Some(OperationKind::Random),
            Operation::Heartbeat { .. }
            | Operation::FinishStep { .. }
            | Operation::FailStep { .. }
            | Operation::FinishScope { .. }
            | Operation::FailScope { .. }
            | Operation::Await { .. }
            | Operation::Cancel { .. }
            | Operation::Mark { .. }
            | Operation::Emit { .. }
            | Operation::SetState { .. }
            | Operation::ContinueAsNew { .. } => None,
        }
    }
}

/// An operation, and where in the author's source it was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// What is asked for.
    pub operation: Operation,
    /// Where, if that is known.
    pub location: Option<Location>,
}
