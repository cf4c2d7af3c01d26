//! One attempt at a task: the handler, and whatever may stop it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use outlast_core::commit::TaskOutcome;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Namespace, TaskId, TaskToken};
use outlast_core::limits::Limits;
use outlast_store::ClaimedTask;
use tokio::sync::mpsc;

use super::TaskContext;
use super::handler::Known;
use super::policy::{TaskPolicy, encode_failure};
use crate::code::guarded;
use crate::error::{Error, Result};
use crate::host::Time;

/// One attempt at a task.
pub(super) struct Attempt {
    pub(super) task: ClaimedTask,
    pub(super) policy: TaskPolicy,
    pub(super) context: TaskContext,
    pub(super) time: Arc<Time>,
    pub(super) limits: Limits,
    pub(super) report: mpsc::UnboundedSender<Ended>,
}

/// An attempt that is over.
pub(super) struct Ended {
    pub(super) namespace: Namespace,
    pub(super) task: TaskId,
    pub(super) token: TaskToken,
    pub(super) outcome: TaskOutcome,
}

impl Attempt {
    /// Runs the handler to its end, or until it is stopped, and says what came of it.
    pub(super) async fn run(self, handler: Arc<Known>) {
        let outcome = self.outcome(&handler).await;
        // Whatever the handler left behind is told.
        self.context.cancel();
        let ClaimedTask { namespace, id, token, .. } = self.task;
        // Nobody listens any more if the worker has stopped: then the task is given back.
        let _ = self.report.send(Ended { namespace, task: id, token, outcome });
    }

    async fn outcome(&self, handler: &Known) -> TaskOutcome {
        let work =
            std::pin::pin!(guarded("the handler", || handler.call(self.context.clone(), self.task.args.clone())));
        let stopped = std::pin::pin!(self.context.cancelled());
        let late = std::pin::pin!(self.late());
        match select(work, select(stopped, late)).await {
            Either::Left((result, _)) => self.judge(result),
            // If its run no longer wants it, giving it back removes it.
            Either::Right((Either::Left(_), _)) => TaskOutcome::GivenBack,
            Either::Right((Either::Right((failure, _)), _)) => self.judge(Err(failure.into())),
        }
    }

    /// Completes when the attempt has taken too long, or was silent for too long.
    async fn late(&self) -> Failure {
        let host = self.time.host();
        let timeout = self.policy.timeout().map(|timeout| host.elapsed() + timeout);
        loop {
            let silent = self.policy.heartbeat().map(|silence| self.context.last_beat() + silence);
            let now = host.elapsed();
            if timeout.is_some_and(|timeout| timeout <= now) {
                let allowed = self.policy.timeout().unwrap_or_default();
                return Failure::timeout(format!("attempt {} took longer than {allowed:?}", self.task.attempt));
            }
            if silent.is_some_and(|silent| silent <= now) {
                let allowed = self.policy.heartbeat().unwrap_or_default();
                return Failure::timeout(format!("attempt {} gave no sign of life for {allowed:?}", self.task.attempt));
            }
            let until = [timeout, silent].into_iter().flatten().min().unwrap_or(Duration::MAX);
            host.sleep_until(until).await;
        }
    }

    /// What becomes of the task.
    fn judge(&self, result: Result<Bytes>) -> TaskOutcome {
        let result = result.and_then(|result| {
            let fits = self.limits.check_payload("what the task gives", result.len());
            fits.map_err(|error| Error::new(code::LIMIT_EXCEEDED, error.to_string()).permanent())?;
            Ok(result)
        });
        match result {
            Ok(result) => TaskOutcome::Finished { result },
            Err(error) => self.failed(error.into_failure()),
        }
    }

    fn failed(&self, failure: Failure) -> TaskOutcome {
        let error = self.encode(&failure);
        let delay = self.policy.retry.next_delay(self.task.attempt, seed(&self.task.id));
        match delay.filter(|_| !failure.permanent) {
            Some(delay) => TaskOutcome::Retry { at: self.time.now() + delay, error },
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
