//! Tasks: claimed by workers, guarded by tokens.

use bytes::Bytes;
use outlast_core::commit::{InboxKind, NewTask, StandaloneTask, TaskOutcome};
use outlast_core::id::{Key, Namespace, RunId, RunKey, TaskId, TaskToken};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;

use super::{Halt, deliver, refuse};
use crate::api::{ClaimTasks, ClaimedTask, Delivered, TaskExtended, TaskHeartbeat, TaskState};
use crate::error::StoreError;
use crate::rows::{Rows, TaskRow};

/// Bytes that count against the payload limit.
pub(crate) fn outcome_bytes(outcome: &TaskOutcome) -> usize {
    match outcome {
        TaskOutcome::Finished { result } => result.len(),
        TaskOutcome::Failed { error } | TaskOutcome::Retry { error, .. } => error.len(),
        TaskOutcome::GivenBack => 0,
    }
}

/// A task as it enters its queue.
pub(crate) fn fresh(namespace: &Namespace, new: &NewTask, awaited: Option<(RunId, Key)>, now: Timestamp) -> TaskRow {
    TaskRow {
        namespace: namespace.clone(),
        id: new.id.clone(),
        awaited,
        name: new.name.clone(),
        queue: new.queue.clone(),
        priority: new.priority,
        args: new.args.clone(),
        state: TaskState::Ready,
        attempt: 0,
        token: TaskToken(0),
        worker: None,
        claim: None,
        available_at: new.available_at.unwrap_or(now),
        until: None,
        cancelled: false,
        meta: new.meta.clone(),
        note: None,
    }
}

/// Enqueues a task that no run awaits; the same one again is not an error.
pub(crate) fn enqueue(rows: &mut dyn Rows, new: &StandaloneTask, limits: &Limits) -> Result<(), Halt<StoreError>> {
    let StandaloneTask { namespace, task } = new;
    limits.check_payload("a task's arguments", task.args.len()).map_err(|error| Halt::Refused(error.into()))?;
    if !rows.has_namespace(namespace)? {
        return refuse(StoreError::UnknownNamespace(namespace.clone()));
    }
    match rows.task(namespace, &task.id)? {
        Some(found) if found.name == task.name && found.args == task.args => Ok(()),
        Some(_) => refuse(StoreError::TaskExists(task.id.clone())),
        None => Ok(rows.put_task(&fresh(namespace, task, None, rows.now()))?),
    }
}

/// Hands a task to a worker. The store picked it: ready and available, held by a silent worker, or held by this claim.
pub(crate) fn take(
    rows: &mut dyn Rows,
    task: &TaskRow,
    claim: &ClaimTasks,
) -> Result<Option<ClaimedTask>, Halt<StoreError>> {
    let now = rows.now();
    let mine = task.state == TaskState::Claimed
        && task.worker.as_ref() == Some(&claim.worker)
        && task.claim == Some(claim.id)
        && !silent(task, now);
    if mine {
        return Ok(Some(claimed(task, now)));
    }
    if task.cancelled {
        rows.remove_task(&task.namespace, &task.id)?;
        return Ok(None);
    }
    let mut after = task.clone();
    after.state = TaskState::Claimed;
    // Count before running: a crash in the middle of an attempt must use one up.
    after.attempt = task.attempt.saturating_add(1);
    after.token = task.token.next();
    after.worker = Some(claim.worker.clone());
    after.claim = Some(claim.id);
    after.until = Some(now + claim.lease);
    rows.put_task(&after)?;
    Ok(Some(claimed(&after, now)))
}

/// Whether the task's worker has been silent for too long.
pub(crate) fn silent(task: &TaskRow, now: Timestamp) -> bool {
    task.state == TaskState::Claimed && task.until.is_none_or(|until| until <= now)
}

fn claimed(task: &TaskRow, now: Timestamp) -> ClaimedTask {
    ClaimedTask {
        namespace: task.namespace.clone(),
        id: task.id.clone(),
        run: task.awaited.as_ref().map(|(run, _)| run.clone()),
        key: task.awaited.as_ref().map(|(_, key)| key.clone()),
        name: task.name.clone(),
        queue: task.queue.clone(),
        args: task.args.clone(),
        attempt: task.attempt,
        token: task.token,
        until: task.until.unwrap_or(now),
        meta: task.meta.clone(),
        now,
    }
}

/// Keeps a task claimed.
pub(crate) fn heartbeat(
    rows: &mut dyn Rows,
    beat: &TaskHeartbeat,
    limits: &Limits,
) -> Result<TaskExtended, Halt<StoreError>> {
    let bytes = beat.progress.as_ref().map_or(0, Bytes::len);
    limits.check_payload("a heartbeat's progress", bytes).map_err(|error| Halt::Refused(error.into()))?;
    let Some(task) = rows.task(&beat.namespace, &beat.task)? else {
        return refuse(StoreError::UnknownTask(beat.task.clone()));
    };
    if task.state != TaskState::Claimed || task.token != beat.token {
        return refuse(StoreError::TaskFenced(beat.task.clone()));
    }
    let until = rows.now() + beat.lease;
    let cancelled = task.cancelled;
    let note = beat.progress.clone().or_else(|| task.note.clone());
    rows.put_task(&TaskRow { until: Some(until), note, ..task })?;
    Ok(TaskExtended { until, cancelled })
}

/// The end of an attempt: the task's row, the run's inbox item and its wake are one write. A stale token changes
/// nothing. Whether the run waits for it is not asked.
pub(crate) fn finish(
    rows: &mut dyn Rows,
    namespace: &Namespace,
    id: &TaskId,
    token: TaskToken,
    outcome: &TaskOutcome,
) -> Result<Delivered, Halt<StoreError>> {
    let Some(task) = rows.task(namespace, id)? else { return Ok(Delivered::NotFound) };
    if task.state != TaskState::Claimed || task.token != token {
        return Ok(Delivered::Lost);
    }
    if task.cancelled {
        rows.remove_task(namespace, id)?;
        return Ok(Delivered::Delivered);
    }
    let idle = TaskRow { worker: None, claim: None, until: None, ..task.clone() };
    match outcome {
        TaskOutcome::Finished { result } => {
            rows.remove_task(namespace, id)?;
            tell(rows, &task, InboxKind::TaskFinished, result)?;
        }
        TaskOutcome::Failed { error } => {
            rows.put_task(&TaskRow { state: TaskState::Dead, note: Some(error.clone()), ..idle })?;
            tell(rows, &task, InboxKind::TaskFailed, error)?;
        }
        TaskOutcome::Retry { at, error } => {
            let note = Some(error.clone());
            rows.put_task(&TaskRow { state: TaskState::Ready, available_at: *at, note, ..idle })?;
        }
        TaskOutcome::GivenBack => {
            let attempt = task.attempt.saturating_sub(1);
            rows.put_task(&TaskRow { state: TaskState::Ready, attempt, ..idle })?;
        }
    }
    Ok(Delivered::Delivered)
}

fn tell(rows: &mut dyn Rows, task: &TaskRow, kind: InboxKind, payload: &Bytes) -> Result<(), Halt<StoreError>> {
    let Some((run, key)) = &task.awaited else { return Ok(()) };
    let run = RunKey::new(task.namespace.clone(), run.clone());
    deliver::push_task(rows, &run, kind, key, task.id.as_str(), payload.clone())
}
