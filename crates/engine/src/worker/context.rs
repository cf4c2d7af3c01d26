//! What a handler knows about the attempt it is.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use outlast_core::id::{Namespace, RunId, TaskId, TaskName};
use outlast_store::ClaimedTask;
use serde::Serialize;
use tokio::sync::Notify;

use super::policy::part;
use crate::board::Board;
use crate::host::Time;

/// What a handler knows about the attempt it is.
#[derive(Clone)]
pub struct TaskContext(Arc<State>);

struct State {
    namespace: Namespace,
    id: TaskId,
    name: TaskName,
    run: Option<RunId>,
    attempt: u32,
    idempotency_key: String,
    is_cancelled: AtomicBool,
    cancelled: Notify,
    pulse: Mutex<Pulse>,
    time: Arc<Time>,
    board: Arc<Board>,
}

/// Signs of life.
struct Pulse {
    /// When there was the last one, by the host's clock.
    last: Duration,
    /// What is to be shown, once the store has it.
    progress: Option<Bytes>,
}

impl TaskContext {
    pub(super) fn new(task: &ClaimedTask, time: Arc<Time>, board: Arc<Board>) -> Self {
        TaskContext(Arc::new(State {
            namespace: task.namespace.clone(),
            id: task.id.clone(),
            name: task.name.clone(),
            run: task.run.clone(),
            attempt: task.attempt,
            idempotency_key: format!("{}/{}", part(task.namespace.as_str()), task.id),
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            pulse: Mutex::new(Pulse { last: time.host().elapsed(), progress: None }),
            time,
            board,
        }))
    }

    /// The task's id.
    pub fn id(&self) -> &TaskId {
        &self.0.id
    }

    /// The name it was queued under.
    pub fn name(&self) -> &TaskName {
        &self.0.name
    }

    /// The tenant it belongs to.
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// The run that waits for it, if one does.
    pub fn run_id(&self) -> Option<&RunId> {
        self.0.run.as_ref()
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// The same for all attempts at this task, and for no other: whoever does the work can recognise a second attempt by it.
    pub fn idempotency_key(&self) -> &str {
        &self.0.idempotency_key
    }

    /// Gives a sign of life, for a task with a [`Task::heartbeat`](crate::Task::heartbeat). That the process lives is told
    /// without it.
    pub fn heartbeat(&self) {
        self.beat(None);
    }

    /// Gives a sign of life, and something to be shown while the task runs. What cannot be written as JSON is not shown.
    pub fn progress(&self, progress: &(impl Serialize + ?Sized)) {
        self.beat(serde_json::to_vec(progress).ok().map(Bytes::from));
    }

    fn beat(&self, progress: Option<Bytes>) {
        let shows = progress.is_some();
        {
            let mut pulse = self.0.pulse.lock().unwrap_or_else(PoisonError::into_inner);
            pulse.last = self.0.time.host().elapsed();
            pulse.progress = progress.or_else(|| pulse.progress.take());
        }
        if shows {
            self.0.board.somebody_has_tasks();
        }
    }

    pub(super) fn take_progress(&self) -> Option<Bytes> {
        self.0.pulse.lock().unwrap_or_else(PoisonError::into_inner).progress.take()
    }

    /// When there was the last sign of life, by the host's clock.
    pub(super) fn last_beat(&self) -> Duration {
        self.0.pulse.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Whether nobody wants this attempt any more: its run was cancelled or does not wait for it, its time is up, or its lease
    /// is lost. Its future is dropped then; what it handed to other tasks or threads goes on, and can ask here.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Completes when nobody wants this attempt any more.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = Arc::clone(&self.0);
        async move {
            // Listens before it looks: what happens in between is heard.
            let notified = state.cancelled.notified();
            if !state.is_cancelled.load(Ordering::Acquire) {
                notified.await;
            }
        }
    }

    pub(super) fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.cancelled.notify_waiters();
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext").field("task", &self.0.id).field("attempt", &self.0.attempt).finish()
    }
}
