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

use super::policy::idempotency_key;
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
    /// What is kept with the result.
    log: Mutex<Option<String>>,
    time: Arc<Time>,
    board: Arc<Board>,
}

/// Signs of life.
struct Pulse {
    /// When there was the last one, by the host's clock.
    last: Duration,
    /// What is to be shown, once the store has it.
    progress: Option<Bytes>,
    /// Until when the task is certainly ours, by the host's clock.
    held_until: Duration,
}

impl TaskContext {
    pub(super) fn new(task: &ClaimedTask, time: Arc<Time>, board: Arc<Board>) -> Self {
        TaskContext(Arc::new(State {
            namespace: task.namespace.clone(),
            id: task.id.clone(),
            name: task.name.clone(),
            run: task.run.clone(),
            attempt: task.attempt,
            idempotency_key: idempotency_key(&task.namespace, &task.id),
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            pulse: Mutex::new(Pulse {
                last: time.host().elapsed(),
                progress: None,
                held_until: time.instant(task.until),
            }),
            log: Mutex::new(None),
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

    /// Keeps a text with the attempt, for people: if it succeeds and a run waits for it, in `TASK_FINISHED` in that run's journal. Of a
    /// long one the end is kept, 8 KiB. A later text takes the place of an earlier one. (A failure has data of its own.)
    pub fn log(&self, text: impl Into<String>) {
        *self.0.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.into());
    }

    pub(super) fn take_log(&self) -> Option<String> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner).take()
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

    /// What could not be shown is shown next time, unless there is something newer.
    pub(super) fn put_back(&self, progress: Option<Bytes>) {
        let mut pulse = self.0.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        pulse.progress = pulse.progress.take().or(progress);
    }

    /// Until when the task is certainly ours, by the host's clock.
    pub(super) fn held_until(&self) -> Duration {
        self.0.pulse.lock().unwrap_or_else(PoisonError::into_inner).held_until
    }

    pub(super) fn hold_until(&self, until: Duration) {
        self.0.pulse.lock().unwrap_or_else(PoisonError::into_inner).held_until = until;
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
