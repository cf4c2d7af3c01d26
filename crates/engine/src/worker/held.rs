//! The tasks a worker holds, and the signs of life that keep them its own.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::id::{Namespace, TaskId, TaskName, TaskToken};
use outlast_store::{ClaimedTask, Store, StoreError, TaskHeartbeat};

use super::TaskContext;
use super::attempt::Ended;
use crate::host::Time;

/// The tasks a worker holds.
#[derive(Default)]
pub(super) struct Held(BTreeMap<(Namespace, TaskId, TaskToken), Holding>);

struct Holding {
    task: ClaimedTask,
    context: TaskContext,
    /// Until when it is certainly ours, by the host's clock.
    until: Duration,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many of this name.
    pub(super) fn of(&self, name: &TaskName) -> usize {
        self.0.values().filter(|holding| holding.task.name == *name).count()
    }

    pub(super) fn add(&mut self, task: ClaimedTask, context: TaskContext, time: &Time) {
        let until = time.instant(task.until);
        let key = (task.namespace.clone(), task.id.clone(), task.token);
        self.0.insert(key, Holding { task, context, until });
    }

    /// The task whose attempt ended, if it was still held.
    pub(super) fn remove(&mut self, ended: &Ended) -> Option<ClaimedTask> {
        let key = (ended.namespace.clone(), ended.task.clone(), ended.token);
        self.0.remove(&key).map(|holding| holding.task)
    }

    /// Stops every attempt.
    pub(super) fn stop_all(&mut self) -> Vec<ClaimedTask> {
        let stop = |holding: Holding| {
            holding.context.cancel();
            holding.task
        };
        std::mem::take(&mut self.0).into_values().map(stop).collect()
    }

    /// Extends the leases of all, or of those that have progress to show. An attempt whose task is not wanted any more, or is
    /// no longer certainly ours, is stopped.
    pub(super) async fn beat(&mut self, store: &dyn Store, time: &Time, lease: Duration, all: bool) {
        let due = self.0.values_mut().filter_map(|holding| {
            let progress = holding.context.take_progress();
            (all || progress.is_some()).then(|| {
                let beat = TaskHeartbeat {
                    namespace: holding.task.namespace.clone(),
                    task: holding.task.id.clone(),
                    token: holding.task.token,
                    lease,
                    // Whoever runs it stops it in time.
                    lapse: None,
                    progress,
                };
                (holding, beat)
            })
        });
        let beats = due.map(async |(holding, beat)| {
            let (asked, progress) = (time.host().elapsed(), beat.progress.clone());
            match store.heartbeat(beat).await {
                Ok(extended) => {
                    holding.until = asked + lease;
                    if extended.cancelled {
                        holding.context.cancel();
                    }
                }
                Err(StoreError::TaskFenced(_) | StoreError::UnknownTask(_)) => holding.context.cancel(),
                Err(error) => {
                    tracing::warn!(task = %holding.task.id, %error, "a sign of life could not be given; it is given again");
                    holding.context.put_back(progress);
                    if time.host().elapsed() >= holding.until {
                        holding.context.cancel();
                    }
                }
            }
        });
        join_all(beats).await;
    }
}
