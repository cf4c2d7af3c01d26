//! What becomes of a task after an attempt, by its policy: the same for handlers in this process and for workers elsewhere.

use bytes::Bytes;
use outlast_core::commit::TaskOutcome;
use outlast_core::failure::{Failure, code};
use outlast_core::id::TaskId;
use outlast_core::limits::Limits;
use outlast_core::planted;
use outlast_core::time::Timestamp;
use outlast_store::{ClaimedTask, Lapse};

use super::policy::{TaskPolicy, encode_failure};

/// What is kept of a handler's log, in bytes: its end.
const LOG_BYTES_MAX: usize = 8 * 1024;

/// Decides about one attempt.
pub(crate) struct Judge<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) attempt: u32,
    pub(crate) policy: TaskPolicy,
    pub(crate) limits: &'a Limits,
    pub(crate) now: Timestamp,
}

/// What is to be done with a task that was claimed.
pub(crate) enum Begun {
    /// An attempt begins.
    Attempt(TaskPolicy),
    /// None does: this becomes of the task.
    Over(TaskOutcome),
}

/// Decides about a task that was just claimed.
pub(crate) fn begin(task: &ClaimedTask, limits: &Limits, now: Timestamp) -> Begun {
    let policy = TaskPolicy::decode(task.meta.as_deref());
    if let Some(lapse) = task.lapsed {
        let judge = Judge { task: &task.id, attempt: task.attempt, policy, limits, now };
        return Begun::Over(judge.lapsed(lapse));
    }
    if task.attempt > policy.attempts_max() && !planted!("task-tried-once-too-often") {
        return Begun::Over(TaskOutcome::Failed { error: policy.used_up(task) });
    }
    Begun::Attempt(policy)
}

impl Judge<'_> {
    /// The attempt ended by itself, and wrote this beside its result.
    pub(crate) fn ended(&self, result: Result<Bytes, Failure>, log: Option<&str>) -> TaskOutcome {
        let fits = |result: Bytes| match self.limits.check_payload("what the task gives", result.len()) {
            Ok(()) => Ok(result),
            Err(error) => Err(Failure::new(code::LIMIT_EXCEEDED, error.to_string()).permanent()),
        };
        match result.and_then(fits) {
            Ok(result) => TaskOutcome::Finished { result, log: log.map(|log| self.end_of(log)) },
            Err(failure) => self.failed(&failure),
        }
    }

    /// As much of the end of a text as is kept. In an event each of its bytes may become six.
    fn end_of(&self, log: &str) -> Bytes {
        let most = LOG_BYTES_MAX.min(self.limits.payload_bytes / 8);
        let from = log.ceil_char_boundary(log.len().saturating_sub(most));
        Bytes::copy_from_slice(&log.as_bytes()[from..])
    }

    /// The attempt took too long, or was silent for too long.
    pub(crate) fn lapsed(&self, lapse: Lapse) -> TaskOutcome {
        self.failed(&self.policy.late(self.attempt, lapse))
    }

    fn failed(&self, failure: &Failure) -> TaskOutcome {
        let error = self.encode(failure);
        let delay = self.policy.retry.next_delay(self.attempt, seed(self.task));
        match delay.filter(|_| !failure.permanent) {
            Some(delay) => TaskOutcome::Retry { at: self.now + delay, error },
            None => TaskOutcome::Failed { error },
        }
    }

    /// An error that the store can take.
    fn encode(&self, failure: &Failure) -> Bytes {
        let error = encode_failure(failure);
        if self.limits.check_payload("an error", error.len()).is_ok() {
            return error;
        }
        let short: String = failure.message.chars().take(1_000).collect();
        let message = format!("{short}... (the rest, and its data, are too large to keep)");
        encode_failure(&Failure { permanent: failure.permanent, ..Failure::new(failure.code.clone(), message) })
    }
}

/// What is left to chance in delays is a matter of the task: no two tasks come back together for ever.
fn seed(task: &TaskId) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    task.hash(&mut hasher);
    hasher.finish()
}
