//! What goes with a task besides its arguments: when to try again, and how long an attempt may take.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Generation, Key, Namespace, RunId, TaskId};
use outlast_core::retry::Retry;
use outlast_core::time::{Timestamp, millis};
use outlast_store::{ClaimedTask, Lapse};
use serde::{Deserialize, Serialize};

/// How attempts at a task are made. Stored with the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TaskPolicy {
    pub(crate) retry: Retry,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_ms: Option<u64>,
}

impl TaskPolicy {
    pub(crate) fn new(retry: Retry, timeout: Option<Duration>, heartbeat: Option<Duration>) -> TaskPolicy {
        let whole = |duration: Duration| millis(duration).unsigned_abs();
        TaskPolicy { retry, timeout_ms: timeout.map(whole), heartbeat_ms: heartbeat.map(whole) }
    }

    pub(crate) fn encode(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Of a stored task; the default if there is none, or none that can be read.
    pub(crate) fn decode(meta: Option<&[u8]>) -> TaskPolicy {
        meta.and_then(|meta| serde_json::from_slice(meta).ok()).unwrap_or_default()
    }

    pub(crate) fn attempts_max(&self) -> u32 {
        self.retry.attempts_max()
    }

    /// How long one attempt may take.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }

    /// How long its handler may be silent.
    pub(crate) fn heartbeat(&self) -> Option<Duration> {
        self.heartbeat_ms.map(Duration::from_millis)
    }

    /// The error of an attempt that took too long, or was silent for too long.
    pub(crate) fn late(&self, attempt: u32, lapse: Lapse) -> Failure {
        let message = match lapse {
            Lapse::Timeout => format!("attempt {attempt} took longer than {:?}", self.timeout().unwrap_or_default()),
            Lapse::Silence => {
                format!("attempt {attempt} gave no sign of life for {:?}", self.heartbeat().unwrap_or_default())
            }
        };
        Failure::timeout(message)
    }

    /// The error of a task whose attempts are used up before this one: its workers died.
    pub(crate) fn used_up(&self, task: &ClaimedTask) -> Bytes {
        let attempts = self.attempts_max();
        let message = format!(
            "task {} was begun {attempts} times, which is all its policy allows, and the last worker that had it fell silent; \
             look for crashes of that worker",
            task.id
        );
        encode_failure(&Failure::new(code::WORKER_LOST, message).permanent())
    }
}

/// What is not as usual about a task. Recorded with it, so that a queue that lost the task can be given it once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TaskPlan {
    #[serde(flatten)]
    pub(crate) policy: TaskPolicy,
    pub(crate) priority: i16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available_at: Option<Timestamp>,
}

impl TaskPlan {
    /// Nothing for the plan that most tasks have.
    pub(crate) fn recorded(&self) -> Option<String> {
        if *self == TaskPlan::default() { None } else { serde_json::to_string(self).ok() }
    }

    pub(crate) fn of(recorded: Option<&str>) -> TaskPlan {
        recorded.and_then(|plan| serde_json::from_str(plan).ok()).unwrap_or_default()
    }
}

/// An error as the store keeps it.
pub(crate) fn encode_failure(failure: &Failure) -> Bytes {
    serde_json::to_vec(failure).unwrap_or_default().into()
}

/// The id of a task that a run schedules: `run/generation/key`, where a `/` in the run's id is `%2F`. No id that is given to
/// [`Engine::enqueue`](crate::Engine::enqueue) looks like it.
pub(crate) fn task_id(run: &RunId, generation: Generation, key: &Key) -> TaskId {
    let text = format!("{}/{generation}/{key}", part(run.as_str()));
    TaskId::new(&text).unwrap_or_else(|_| {
        // Too long: a part of it, and a name made from all of it.
        let short: String = text.chars().take(100).filter(|letter| !letter.is_control()).collect();
        let digest = crate::token::digest(&text);
        TaskId::new(format!("{short}/{digest}")).unwrap_or_else(|_| TaskId::new(digest).expect("a digest is short"))
    })
}

/// The same for all attempts at a task, and for no other.
pub(crate) fn idempotency_key(namespace: &Namespace, task: &TaskId) -> String {
    format!("{}/{task}", part(namespace.as_str()))
}

/// A part of a path, which has no `/` of its own.
pub(crate) fn part(text: &str) -> Cow<'_, str> {
    if text.contains(['/', '%']) {
        Cow::Owned(text.replace('%', "%25").replace('/', "%2F"))
    } else {
        Cow::Borrowed(text)
    }
}
