//! Tasks and workers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;
use super::run::FailureView;

/// Queues a task that no run waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnqueueTask {
    /// For which handler.
    pub name: String,
    /// What the handler gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub args: Option<Json>,
    /// Its id; a new one if there is none. The same task under the same id is queued once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The queue it goes to; `default` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Larger is claimed sooner; 0 otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -32_768, maximum = 32_767)]
    pub priority: Option<i16>,
    /// When to try again after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long its handler may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// Lets it begin so much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub attempts: u32,
    /// How long to wait after the first failure.
    #[serde(default, deserialize_with = "crate::body::whole", skip_serializing_if = "Option::is_none")]
    pub initial_ms: Option<u64>,
    /// How long to wait at most.
    #[serde(default, deserialize_with = "crate::body::whole", skip_serializing_if = "Option::is_none")]
    pub cap_ms: Option<u64>,
}

/// A task was queued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Enqueued {
    /// Its id.
    pub task: String,
}

/// A task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Which.
    pub task: String,
    /// For which handler.
    pub name: String,
    /// In which queue.
    pub queue: String,
    /// `ready`, `claimed`, `delayed` or `dead`.
    pub state: String,
    /// The run that queued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Larger is claimed sooner.
    pub priority: i16,
    /// Attempts begun.
    pub attempt: u32,
    /// Who holds it, or held it last and fell silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When its attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Until when it stays claimed without a sign of life, or delayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// When it failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_at: Option<String>,
    /// The last error or progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub note: Option<Json>,
}

/// A page of tasks, by id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// Where the next page begins; none at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A task with what its handler gets.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail {
    /// What a listing shows of it.
    pub task: TaskView,
    /// What its handler gets.
    #[schema(value_type = serde_json::Value)]
    pub args: Json,
}

/// A worker asks for tasks to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimTasks {
    /// Who asks: a name that no other worker of the namespace has.
    pub worker: String,
    /// Names the claim: another number for each that this worker makes, and the same one again, with all else as it was, if the
    /// answer was lost. From 0 to 2⁶³ − 1; a worker that begins anew under its old name begins at random, so that it is not taken
    /// for who it was.
    #[schema(maximum = 9_223_372_036_854_775_807_u64)]
    pub id: u64,
    /// From these queues; from `default` if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// The tasks this worker can do.
    pub names: Vec<String>,
    /// Where it runs, for people who ask who works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// At most so many; 1 if there is none, and never more than 256, nor more than have 8 MiB of arguments together.
    #[schema(minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// How long the worker may be silent before its tasks are given to others; half a minute if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// How long to wait if there is nothing to do; at most 60 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// Tasks to do; none if nothing came.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskClaimed {
    /// The tasks.
    pub tasks: Vec<TaskOffer>,
}

/// A task to do, in one attempt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskOffer {
    /// To be shown with everything that is said about this attempt.
    pub token: String,
    /// The namespace it belongs to.
    pub namespace: String,
    /// Which task.
    pub task: String,
    /// For which handler.
    pub name: String,
    /// From which queue.
    pub queue: String,
    /// The run that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What the handler gets.
    #[schema(value_type = serde_json::Value)]
    pub args: Json,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The same for all attempts at this task, and for no other.
    pub idempotency_key: String,
    /// The task is somebody else's from this instant on, unless a sign of life comes before.
    pub until: String,
    /// The attempt is over at this instant, whatever comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// How long the handler may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_ms: Option<u64>,
    /// The server's time when it answered.
    pub now: String,
}

/// A sign of life.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatTask {
    /// The offer's token.
    pub token: String,
    /// Something to show while the task runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub progress: Option<Json>,
}

/// The answer to a sign of life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskBeat {
    /// The task stays the worker's until then.
    pub until: String,
    /// The server's time when it answered: `until` is so much later.
    pub now: String,
    /// Nobody wants it any more: stop, and give it back.
    pub cancelled: bool,
}

/// An attempt succeeded.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// The offer's token.
    pub token: String,
    /// What came of it; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Json>,
}

/// An attempt failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailTask {
    /// The offer's token.
    pub token: String,
    /// How.
    pub error: FailureView,
}

/// What becomes of a task whose attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskFailed {
    /// When it is tried again; none if it has failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_at: Option<String>,
}

/// An attempt, by its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskToken {
    /// The offer's token.
    pub token: String,
}

/// A worker, and what it does.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    /// Which.
    pub worker: String,
    /// Where it runs, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The queues it takes tasks from.
    pub queues: Vec<String>,
    /// The tasks it can do.
    pub tasks: Vec<String>,
    /// How many it does at once.
    pub tasks_max: u64,
    /// Since when it works.
    pub started: String,
    /// When it was seen last.
    pub seen: String,
    /// The tasks it holds now.
    pub holds: Vec<TaskView>,
}

/// Who works, by id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerList {
    /// The workers.
    pub workers: Vec<WorkerView>,
}
