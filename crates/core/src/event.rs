//! Events: the facts a journal is made of, what each kind is for, and how they are stored.

#[macro_use]
mod define;
mod codec;
mod facets;
mod upcast;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use codec::DecodeError;
use codec::{Draft, Fields, Payload};

use crate::failure::Failure;
use crate::id::{DeliveryId, Index, Key, QueueName, RunId, SignalName, TaskId, TaskName, Version, WorkflowName};
use crate::time::Timestamp;

/// What the journal does with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Kept, and read by replay.
    Checkpoint,
    /// Kept, so that anyone can see what the run does and waits for.
    Coordination,
    /// Shown to observers, never kept.
    EmitOnly,
}

/// What becomes of a child when its parent ends first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosePolicy {
    /// It is asked to stop, and may clean up.
    #[default]
    Cancel,
    /// It ends without being asked.
    Terminate,
    /// It goes on alone.
    Abandon,
}

// Codes are grouped by what they are about, with gaps for what is to come.
events! {
    /// A run began. Observers see it first; the run's row is its durable form.
    RunStarted = 1, "RUN_STARTED", EmitOnly {
        /// Which workflow.
        meta workflow: WorkflowName,
        /// Which version or content hash of it.
        meta version: Version,
        /// What it started with.
        payload input: Bytes,
    }
    /// A run ended with an output.
    RunFinished = 2, "RUN_FINISHED", Checkpoint {
        /// What it returned.
        payload output: Bytes,
    }
    /// A run ended with an error that its author did not catch.
    RunErrored = 3, "RUN_ERRORED", Checkpoint {
        /// The error.
        failure error: Failure,
    }
    /// A run ended because it was asked to.
    RunCancelled = 4, "RUN_CANCELLED", Checkpoint {
        /// Why.
        meta reason: Option<String> = None,
    }
    /// A run was ended without being asked.
    RunTerminated = 5, "RUN_TERMINATED", Checkpoint {
        /// Why.
        meta reason: Option<String> = None,
        /// By whom.
        meta by: Option<String> = None,
    }
    /// This generation ended and the next one began.
    RunContinued = 6, "RUN_CONTINUED", Checkpoint {
        /// The next generation's input.
        payload input: Bytes,
        /// The next generation's version, where it changed.
        meta version: Option<Version> = None,
    }
    /// An operator paused the run; everything that was executing has ended.
    RunPaused = 7, "RUN_PAUSED", Coordination {
        /// Why.
        meta reason: Option<String> = None,
        /// By whom.
        meta by: Option<String> = None,
    }
    /// An operator let the run go on.
    RunResumed = 8, "RUN_RESUMED", Checkpoint {
        /// What the operator told it.
        payload message: Option<Bytes>,
        /// By whom.
        meta by: Option<String> = None,
    }
    /// The run was asked to stop. It may clean up first.
    CancelRequested = 9, "CANCEL_REQUESTED", Checkpoint {
        /// Why.
        meta reason: Option<String> = None,
        /// By whom.
        meta by: Option<String> = None,
    }

    /// A step's attempt began. Kept for at-most-once steps only: after a crash nobody knows whether it ended.
    StepStarted = 20, "STEP_STARTED", Coordination {
        /// Which step.
        key key: Key,
        /// Which attempt, from 1.
        meta attempt: u32 = 1,
        /// Whether the step must not run again when it is in doubt.
        meta at_most_once: bool = false,
    }
    /// A step returned.
    StepFinished = 21, "STEP_FINISHED", Checkpoint {
        /// Which step.
        key key: Key,
        /// What it returned.
        payload result: Bytes,
        /// How many attempts there were, this one included.
        meta attempts: u32 = 1,
    }
    /// A step, or the check of a condition, failed for good.
    StepFailed = 22, "STEP_FAILED", Checkpoint {
        /// Which step.
        key key: Key,
        /// The last error.
        failure error: Failure,
        /// How many attempts there were, this one included.
        meta attempts: u32 = 1,
    }
    /// An attempt at a step, or at the check of a condition, failed, and another will follow.
    StepRetryScheduled = 23, "STEP_RETRY_SCHEDULED", Checkpoint {
        /// Which step.
        key key: Key,
        /// Which attempt failed, from 1.
        meta attempt: u32 = 1,
        /// When the next one begins.
        meta next_at: Timestamp,
        /// Its error.
        failure error: Failure,
    }

    /// A task was queued.
    TaskScheduled = 30, "TASK_SCHEDULED", Coordination {
        /// The operation that awaits it.
        key key: Key,
        /// Its id in the queue.
        meta task: TaskId,
        /// Which handler does it.
        meta name: TaskName,
        /// In which queue.
        meta queue: QueueName,
        /// The run does not wait for it: it is settled by this.
        meta detached: bool = false,
        /// How attempts at it are made, in its driver's words, where that is not as usual.
        meta plan: Option<String> = None,
        /// What the handler gets.
        payload args: Bytes,
    }
    /// A worker finished a task.
    TaskFinished = 31, "TASK_FINISHED", Checkpoint {
        /// The operation that awaits it.
        key key: Key,
        /// Which task.
        meta task: TaskId,
        /// What the handler wrote beside that, for people.
        meta log: Option<String>,
        /// What the handler returned.
        payload result: Bytes,
    }
    /// A task failed for good.
    TaskFailed = 32, "TASK_FAILED", Checkpoint {
        /// The operation that awaits it.
        key key: Key,
        /// Which task.
        meta task: TaskId,
        /// The last error.
        failure error: Failure,
    }

    /// A sleep began.
    TimerStarted = 40, "TIMER_STARTED", Coordination {
        /// Which sleep.
        key key: Key,
        /// When it ends. Recorded once: an early wake never extends it.
        meta deadline: Timestamp,
        /// The duration that was asked for, compared on replay; none for a sleep until an instant.
        meta duration_ms: Option<u64> = None,
    }
    /// A sleep ended.
    TimerFired = 41, "TIMER_FIRED", Checkpoint {
        /// Which sleep.
        key key: Key,
    }

    /// The run began to wait for a signal.
    SignalAwaited = 50, "SIGNAL_AWAITED", Coordination {
        /// Which wait.
        key key: Key,
        /// Which signal.
        meta name: SignalName,
        /// Until when.
        meta deadline: Option<Timestamp> = None,
    }
    /// A wait got its signal.
    SignalResolved = 51, "SIGNAL_RESOLVED", Checkpoint {
        /// Which wait.
        key key: Key,
        /// Which signal.
        meta name: SignalName,
        /// Under which id it was delivered.
        meta signal_id: DeliveryId,
        /// What it says.
        payload payload: Bytes,
    }
    /// A wait's deadline passed without a signal.
    SignalTimedOut = 52, "SIGNAL_TIMED_OUT", Checkpoint {
        /// Which wait.
        key key: Key,
        /// Which signal.
        meta name: SignalName,
    }
    /// A signal did not have the form the wait asked for; the wait goes on.
    SignalRejected = 53, "SIGNAL_REJECTED", Checkpoint {
        /// Which wait.
        key key: Key,
        /// Which signal.
        meta name: SignalName,
        /// Under which id it was delivered.
        meta signal_id: DeliveryId,
        /// What was wrong with it.
        failure error: Failure,
    }

    /// Somebody was asked to decide.
    ApprovalRequested = 60, "APPROVAL_REQUESTED", Coordination {
        /// Which operation.
        key key: Key,
        /// The id the decision must name.
        meta approval: String,
        /// What the person reads.
        meta title: String,
        /// Who should decide.
        meta assignee: Option<String> = None,
        /// Until when.
        meta deadline: Option<Timestamp> = None,
    }
    /// Somebody decided.
    ApprovalResolved = 61, "APPROVAL_RESOLVED", Checkpoint {
        /// Which operation.
        key key: Key,
        /// Which approval.
        meta approval: String,
        /// The decision.
        meta approved: bool = false,
        /// Who decided.
        meta by: Option<String> = None,
        /// What they said about it.
        meta feedback: Option<String> = None,
    }
    /// An approval's deadline passed without a decision.
    ApprovalTimedOut = 62, "APPROVAL_TIMED_OUT", Checkpoint {
        /// Which operation.
        key key: Key,
        /// Which approval.
        meta approval: String,
    }

    /// A callback was created: its token may now be used. The token itself is never in the journal.
    CallbackCreated = 70, "CALLBACK_CREATED", Coordination {
        /// Which operation.
        key key: Key,
        /// The callback's public id.
        meta callback: String,
        /// Until when.
        meta deadline: Option<Timestamp> = None,
        /// The longest silence allowed between two signs of life.
        meta heartbeat_ms: Option<u64> = None,
    }
    /// A callback was answered.
    CallbackResolved = 71, "CALLBACK_RESOLVED", Checkpoint {
        /// Which operation.
        key key: Key,
        /// Which callback.
        meta callback: String,
        /// The answer.
        payload payload: Bytes,
    }
    /// A callback was answered with an error.
    CallbackFailed = 72, "CALLBACK_FAILED", Checkpoint {
        /// Which operation.
        key key: Key,
        /// Which callback.
        meta callback: String,
        /// The error.
        failure error: Failure,
    }
    /// A callback's deadline passed, or its heartbeat stopped.
    CallbackTimedOut = 73, "CALLBACK_TIMED_OUT", Checkpoint {
        /// Which operation.
        key key: Key,
        /// Which callback.
        meta callback: String,
    }

    /// A child run was started.
    ChildStarted = 80, "CHILD_STARTED", Coordination {
        /// The operation that started it.
        key key: Key,
        /// The child.
        meta child: RunId,
        /// Which workflow.
        meta workflow: WorkflowName,
        /// Which version or content hash of it.
        meta version: Version,
        /// Whether nobody here waits for it: starting it was all.
        meta detached: bool = false,
        /// What becomes of it when this run ends first.
        meta on_close: ClosePolicy = ClosePolicy::Cancel,
    }
    /// A child run ended with an output.
    ChildFinished = 81, "CHILD_FINISHED", Checkpoint {
        /// The operation that started it.
        key key: Key,
        /// The child.
        meta child: RunId,
        /// What it returned.
        payload result: Bytes,
    }
    /// A child run failed, or was cancelled.
    ChildFailed = 82, "CHILD_FAILED", Checkpoint {
        /// The operation that started it.
        key key: Key,
        /// The child.
        meta child: RunId,
        /// Its error.
        failure error: Failure,
    }

    /// A condition was checked. It is settled once it is met, or when there is no next check.
    ConditionChecked = 90, "CONDITION_CHECKED", Checkpoint {
        /// Which condition.
        key key: Key,
        /// Which check, from 1.
        meta attempt: u32 = 1,
        /// Whether it holds.
        meta met: bool = false,
        /// What the next check starts from, or the result.
        payload state: Bytes,
        /// When the next check begins.
        meta next_at: Option<Timestamp> = None,
    }

    /// A scope was opened: a map, a parallel, a child context.
    ScopeStarted = 100, "SCOPE_STARTED", Coordination {
        /// Which scope; its operations' keys begin with it.
        key key: Key,
        /// How many branches it has.
        meta total: Option<u32> = None,
    }
    /// A scope returned. Nothing below it happens any more.
    ScopeFinished = 101, "SCOPE_FINISHED", Checkpoint {
        /// Which scope.
        key key: Key,
        /// What it returned; none when its inside is replayed instead.
        payload result: Option<Bytes>,
        /// Whether the result was too large to keep, so that replay makes it again from the inside.
        meta replay_inside: bool = false,
        /// Why it is complete, such as `ALL_COMPLETED`.
        meta reason: Option<String> = None,
    }
    /// A scope failed. Nothing below it happens any more.
    ScopeFailed = 102, "SCOPE_FAILED", Checkpoint {
        /// Which scope.
        key key: Key,
        /// Its error.
        failure error: Failure,
    }

    /// The run asked for the time.
    NowRecorded = 110, "NOW_RECORDED", Checkpoint {
        /// Which question.
        key key: Key,
        /// The answer.
        meta value: Timestamp,
    }
    /// The run asked for a unique id.
    UuidRecorded = 111, "UUID_RECORDED", Checkpoint {
        /// Which question.
        key key: Key,
        /// The answer.
        meta value: Uuid,
    }
    /// The run asked for a random number.
    RandomRecorded = 112, "RANDOM_RECORDED", Checkpoint {
        /// Which question.
        key key: Key,
        /// The answer.
        meta value: u64,
    }

    /// The program no longer wants an operation. Compared by key on replay, never fed.
    OperationCancelled = 120, "OPERATION_CANCELLED", Coordination {
        /// Which operation.
        key key: Key,
    }

    /// An operation was started and cannot be had: there is no failure of its own kind that could say so.
    OperationRefused = 121, "OPERATION_REFUSED", Checkpoint {
        /// Which operation.
        key key: Key,
        /// Why.
        failure error: Failure,
    }

    /// A flow entered a node.
    NodeStarted = 200, "NODE_STARTED", Coordination {
        /// Which node.
        key node: Key,
        /// Its place in the order of nodes.
        meta index: u32,
        /// What it gets.
        payload input: Option<Bytes>,
    }
    /// A flow's node ended with an output.
    NodeCompleted = 201, "NODE_COMPLETED", Coordination {
        /// Which node.
        key node: Key,
        /// Its output.
        payload output: Bytes,
    }
    /// A flow's node failed: one of its own, or a child of a container.
    NodeError = 202, "NODE_ERROR", Coordination {
        /// Which node.
        key node: Key,
        /// Its error.
        failure error: Failure,
    }
    /// A flow passed a node without running it: its condition did not hold, or an operator said so.
    NodeSkipped = 203, "NODE_SKIPPED", Checkpoint {
        /// Which node.
        key node: Key,
        /// The operator; none if it was the flow itself.
        meta by: Option<String> = None,
        /// Why.
        meta reason: Option<String> = None,
    }
    /// An operator had a flow's node begin again: it goes on under the next key, `reserve#2`.
    NodeRetried = 204, "NODE_RETRIED", Checkpoint {
        /// Which node.
        key node: Key,
        /// The operator.
        meta by: Option<String> = None,
        /// Why.
        meta reason: Option<String> = None,
    }
    /// An operator was told that something would be done to a flow's node, and it was not: the flow had gone on meanwhile.
    InterventionRefused = 205, "INTERVENTION_REFUSED", Coordination {
        /// Which node.
        key node: Key,
        /// What was to be done: `skip` or `retry`.
        meta wanted: String,
        /// The operator.
        meta by: Option<String> = None,
        /// Why the operator wanted it.
        meta reason: Option<String> = None,
        /// Why it was not done.
        failure error: Failure,
    }
    /// A container began an iteration.
    ContainerIterationStarted = 210, "CONTAINER_ITERATION_STARTED", Coordination {
        /// Which container.
        key node: Key,
        /// Which iteration, from 0.
        meta index: u32,
        /// The item it is about.
        payload item: Option<Bytes>,
        /// How many iterations there will be, where that is known.
        meta total: Option<u32> = None,
    }
    /// A container ended an iteration.
    ContainerIterationCompleted = 211, "CONTAINER_ITERATION_COMPLETED", Coordination {
        /// Which container.
        key node: Key,
        /// Which iteration, from 0.
        meta index: u32,
        /// Where in this journal its children's outputs are.
        meta outputs: Vec<Index> = Vec::new(),
    }
    /// A container began a child of the current iteration.
    ContainerChildStarted = 212, "CONTAINER_CHILD_STARTED", Coordination {
        /// Which container.
        key node: Key,
        /// Which child.
        meta child: Key,
        /// Its place among the children, from 0.
        meta child_index: u32,
    }
    /// A container ended a child of the current iteration.
    ContainerChildCompleted = 213, "CONTAINER_CHILD_COMPLETED", Coordination {
        /// Which container.
        key node: Key,
        /// Which child.
        meta child: Key,
        /// Where in this journal its output is; none if it is here.
        meta output: Option<Index> = None,
        /// The output, where no other event has it: that of a nested container or of an expression.
        payload value: Option<Bytes>,
    }
    /// A flow took a loop edge.
    LoopIterate = 220, "LOOP_ITERATE", Coordination {
        /// The node the edge leaves.
        key from: Key,
        /// The node it goes back to.
        meta to: Key,
        /// How often it was taken, this time included.
        meta iteration: u32,
    }

    /// The run's visible state changed.
    StateDelta = 300, "STATE_DELTA", EmitOnly {
        /// The change.
        payload delta: Bytes,
    }
    /// The author had something to say.
    Custom = 301, "CUSTOM", EmitOnly {
        /// What it is called.
        meta name: String,
        /// What it says.
        payload payload: Bytes,
    }
}
