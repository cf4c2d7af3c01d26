//! One attempt at a task: the handler, and whatever may stop it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use outlast_core::commit::TaskOutcome;
use outlast_core::failure::Failure;
use outlast_core::id::{Namespace, TaskId, TaskToken};
use outlast_core::limits::Limits;
use outlast_store::{ClaimedTask, Lapse};
use tokio::sync::mpsc;

use super::TaskContext;
use super::handler::Known;
use super::judge::Judge;
use super::policy::TaskPolicy;
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
        let (cancelled, lost) = (std::pin::pin!(self.context.cancelled()), std::pin::pin!(self.lost()));
        let stopped = select(cancelled, lost);
        let late = std::pin::pin!(self.late());
        match select(work, select(stopped, late)).await {
            Either::Left((result, _)) => self.judge(result),
            // If its run no longer wants it, giving it back removes it.
            Either::Right((Either::Left(_), _)) => TaskOutcome::GivenBack,
            Either::Right((Either::Right((failure, _)), _)) => self.judge(Err(failure.into())),
        }
    }

    /// Completes when the task is no longer certainly ours: somebody else may begin it then.
    async fn lost(&self) {
        let host = self.time.host();
        loop {
            let until = self.context.held_until();
            if until <= host.elapsed() {
                tracing::warn!(task = %self.task.id, "an attempt is stopped: no sign of life of it reached the store in time");
                return;
            }
            host.sleep_until(until).await;
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
                return self.policy.late(self.task.attempt, Lapse::Timeout);
            }
            if silent.is_some_and(|silent| silent <= now) {
                return self.policy.late(self.task.attempt, Lapse::Silence);
            }
            let until = [timeout, silent].into_iter().flatten().min().unwrap_or(Duration::MAX);
            host.sleep_until(until).await;
        }
    }

    /// What becomes of the task.
    fn judge(&self, result: Result<Bytes>) -> TaskOutcome {
        let Attempt { task, policy, limits, .. } = self;
        let judge = Judge { task: &task.id, attempt: task.attempt, policy: *policy, limits, now: self.time.now() };
        judge.ended(result.map_err(Error::into_failure), self.context.take_log().as_deref())
    }
}
