//! The tasks a worker holds, and the signs of life that keep them its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::id::{Namespace, TaskId, TaskName, TaskToken};
use outlast_store::{ClaimedTask, Store, StoreError, TaskHeartbeat};

use super::TaskContext;
use super::attempt::Ended;
use crate::host::Time;

/// The tasks a worker holds.
#[derive(Default)]
pub(super) struct Held(Mutex<BTreeMap<Holds, Holding>>);

/// Names an attempt.
type Holds = (Namespace, TaskId, TaskToken);

struct Holding {
    task: ClaimedTask,
    context: TaskContext,
}

impl Held {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Holds, Holding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    /// How many of this name.
    pub(super) fn of(&self, name: &TaskName) -> usize {
        self.all().values().filter(|holding| holding.task.name == *name).count()
    }

    pub(super) fn add(&self, task: ClaimedTask, context: TaskContext) {
        let key = (task.namespace.clone(), task.id.clone(), task.token);
        self.all().insert(key, Holding { task, context });
    }

    /// The task whose attempt ended, if it was still held.
    pub(super) fn remove(&self, ended: &Ended) -> Option<ClaimedTask> {
        let key = (ended.namespace.clone(), ended.task.clone(), ended.token);
        self.all().remove(&key).map(|holding| holding.task)
    }

    /// Stops every attempt.
    pub(super) fn stop_all(&self) -> Vec<ClaimedTask> {
        let stop = |holding: Holding| {
            holding.context.cancel();
            holding.task
        };
        std::mem::take(&mut *self.all()).into_values().map(stop).collect()
    }

    /// Extends the leases of all, or of those that have progress to show. An attempt whose task is not wanted any more is stopped;
    /// one whose lease ends stops by itself.
    pub(super) async fn beat(&self, store: &dyn Store, time: &Time, lease: Duration, all: bool) {
        let beats = self.due(lease, all).into_iter().map(async |(context, beat)| {
            let (asked, progress) = (time.host().elapsed(), beat.progress.clone());
            let task = beat.task.clone();
            match store.heartbeat(beat).await {
                Ok(extended) => {
                    context.hold_until(asked + lease);
                    if extended.cancelled {
                        context.cancel();
                    }
                }
                Err(StoreError::TaskFenced(_) | StoreError::UnknownTask(_)) => context.cancel(),
                Err(error) => {
                    tracing::warn!(%task, %error, "a sign of life could not be given; it is given again");
                    context.put_back(progress);
                }
            }
        });
        join_all(beats).await;
    }

    /// Whose signs of life are due.
    fn due(&self, lease: Duration, all: bool) -> Vec<(TaskContext, TaskHeartbeat)> {
        let due = |holding: &Holding| {
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
                (holding.context.clone(), beat)
            })
        };
        self.all().values().filter_map(due).collect()
    }
}
