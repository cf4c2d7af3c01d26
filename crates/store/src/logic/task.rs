//! Tasks: claimed by workers, guarded by tokens.
//!
//! A task is claimed when it is ready; one that is delayed, or held by a worker, has an `until`, and the first claim of its queue
//! from then on makes it ready. So a claim never looks at tasks it cannot have, however many there are.
//!
//! Ready ones are claimed by priority, then their namespaces take turns (see [`super::turns`]), and within a namespace by their
//! `place`: an instant, mostly that of queueing. A run lines up its tasks [`PLACE_STEP`] apart, so that one that queues a thousand
//! at once does not keep one with a single task waiting for all of them, and its own stay in their order.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{InboxKind, NewTask, Receipt, StandaloneTask, TaskOutcome};
use outlast_core::id::{DeliveryId, Namespace, RunKey, TaskId, TaskToken};
use outlast_core::limits::{CLAIM_BATCH_MAX, Limits};
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::{Halt, deliver, refuse};
use crate::api::{ClaimTasks, ClaimedTask, Delivered, TaskDetail, TaskExtended, TaskHeartbeat, TaskState};
use crate::error::StoreError;
use crate::rows::{Fault, Rows, RunRow, TaskRow};

/// Bytes that count against the payload limit.
pub(crate) fn outcome_bytes(outcome: &TaskOutcome) -> usize {
    match outcome {
        // What was written beside it has a limit of its own, so that a result just at the limit fits.
        TaskOutcome::Finished { result, log } => result.len().max(log.as_ref().map_or(0, Bytes::len)),
        TaskOutcome::Failed { error } | TaskOutcome::Retry { error, .. } => error.len(),
        TaskOutcome::GivenBack => 0,
    }
}

/// How far apart a run's tasks line up.
pub(crate) const PLACE_STEP: Duration = Duration::from_millis(100);
/// Delayed or silent tasks of one queue that one claim makes ready, at most. More than one claim takes, so that those that are due
/// do not pile up.
pub(crate) const PROMOTE_MAX: usize = 4 * CLAIM_BATCH_MAX;

/// A task as it enters its queue.
pub(crate) fn fresh(namespace: &Namespace, new: &NewTask, now: Timestamp) -> TaskRow {
    let delayed = new.available_at.filter(|at| *at > now);
    TaskRow {
        namespace: namespace.clone(),
        id: new.id.clone(),
        awaited: None,
        origin: None,
        name: new.name.clone(),
        queue: new.queue.clone(),
        priority: new.priority,
        args: new.args.clone(),
        state: if delayed.is_some() { TaskState::Delayed } else { TaskState::Ready },
        attempt: 0,
        token: TaskToken(0),
        worker: None,
        claim: None,
        available_at: new.available_at.unwrap_or(now),
        place: delayed.unwrap_or(now),
        until: delayed,
        began: None,
        lapse: None,
        lapsed: None,
        died_at: None,
        cancelled: false,
        meta: new.meta.clone(),
        note: None,
    }
}

/// The tasks a commit queues, as they line up.
pub(crate) fn lined_up(run: &RunRow, tasks: &[NewTask], now: Timestamp) -> Vec<TaskRow> {
    let mut next = run.next_place;
    let mut lag = Duration::ZERO;
    let mut lined_up = Vec::with_capacity(tasks.len());
    for new in tasks {
        let mut task = fresh(&run.key.namespace, new, now);
        task.awaited = new.key.clone().map(|key| (run.key.id.clone(), key));
        task.origin = Some(run.key.id.clone());
        match task.state {
            // One that comes later must not make those that come now wait for it.
            TaskState::Delayed => task.place = task.place + lag,
            TaskState::Ready | TaskState::Claimed | TaskState::Dead => {
                task.place = next.map_or(now, |next| next.max(now));
                next = Some(task.place + PLACE_STEP);
            }
        }
        lag += PLACE_STEP;
        lined_up.push(task);
    }
    lined_up
}

/// Where the run's next task lines up after these.
pub(crate) fn next_place(run: &RunRow, tasks: &[NewTask], now: Timestamp) -> Option<Timestamp> {
    let immediate = tasks.iter().filter(|new| new.available_at.is_none_or(|at| at <= now));
    immediate.fold(run.next_place, |next, _| Some(next.map_or(now, |next| next.max(now)) + PLACE_STEP))
}

/// What a delayed task, or one whose worker fell silent, is once its time has come.
pub(crate) fn promoted(task: &TaskRow) -> TaskRow {
    let place = match task.state {
        // It was its worker's fault once. One whose workers die again and again lines up anew, so that others are not kept waiting
        // by it for ever.
        TaskState::Claimed if task.attempt > 1 => task.until.unwrap_or(task.place),
        TaskState::Claimed | TaskState::Delayed | TaskState::Ready | TaskState::Dead => task.place,
    };
    // Its worker and its token stay: what it says counts as long as nobody else has the task, and it was only silent.
    let lapsed = task.lapsed.or(task.lapse);
    TaskRow { state: TaskState::Ready, place, until: None, claim: None, lapse: None, lapsed, ..task.clone() }
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
        None => Ok(rows.put_task(&fresh(namespace, task, rows.now()))?),
    }
}

/// The order of tasks of one namespace, and of those that a claim holds already.
pub(crate) fn order(task: &TaskRow) -> (i32, Timestamp, TaskId, Namespace) {
    (-i32::from(task.priority), task.place, task.id.clone(), task.namespace.clone())
}

/// A task with everything there is to know about it.
pub(crate) fn detail(rows: &mut dyn Rows, namespace: &Namespace, id: &TaskId) -> Result<TaskDetail, Halt<StoreError>> {
    match rows.task(namespace, id)? {
        Some(task) => Ok(task.detail()),
        None => refuse(StoreError::UnknownTask(id.clone())),
    }
}

/// Queues a dead task anew. Its run, if it had one, has got the failure already: from now on nobody waits for it.
pub(crate) fn retry(rows: &mut dyn Rows, namespace: &Namespace, id: &TaskId) -> Result<(), Halt<StoreError>> {
    let (task, now) = (dead(rows, namespace, id)?, rows.now());
    let fresh = TaskRow { awaited: None, attempt: 0, available_at: now, place: now, died_at: None, ..task };
    Ok(rows.put_task(&TaskRow { state: TaskState::Ready, ..fresh })?)
}

/// Removes a dead task.
pub(crate) fn discard(rows: &mut dyn Rows, namespace: &Namespace, id: &TaskId) -> Result<(), Halt<StoreError>> {
    dead(rows, namespace, id)?;
    Ok(rows.remove_task(namespace, id)?)
}

fn dead(rows: &mut dyn Rows, namespace: &Namespace, id: &TaskId) -> Result<TaskRow, Halt<StoreError>> {
    match rows.task(namespace, id)? {
        Some(task) if task.state == TaskState::Dead => Ok(task),
        Some(task) => refuse(StoreError::TaskNotDead { task: id.clone(), state: task.state }),
        None => refuse(StoreError::UnknownTask(id.clone())),
    }
}

/// Whether a claim asks for a namespace that does not exist: then nothing happens, not even to what is due.
pub(crate) fn asks_nobody(rows: &mut dyn Rows, claim: &ClaimTasks) -> Result<bool, Fault> {
    claim.namespace.as_ref().map_or(Ok(false), |namespace| Ok(!rows.has_namespace(namespace)?))
}

/// Hands a task to a worker. The store picked it: ready, or held by this claim.
pub(crate) fn take(
    rows: &mut dyn Rows,
    task: &TaskRow,
    claim: &ClaimTasks,
) -> Result<Option<ClaimedTask>, Halt<StoreError>> {
    let now = rows.now();
    if is_mine(task, claim, now) {
        return Ok(Some(claimed(task, now)));
    }
    if task.cancelled && !planted!("cancelled-task-handed-out") {
        rows.remove_task(&task.namespace, &task.id)?;
        return Ok(None);
    }
    let mut after = task.clone();
    after.state = TaskState::Claimed;
    after.lapse = None;
    // One that lapsed is handed out as it is, to be judged: no new attempt begins.
    if task.lapsed.is_none() {
        // Count before running: a crash in the middle of an attempt must use one up.
        let counts = task.attempt == 0 || !planted!("task-attempt-not-counted");
        after.attempt = task.attempt.saturating_add(u32::from(counts));
        after.began = Some(now);
    }
    after.token = task.token.next();
    after.worker = Some(claim.worker.clone());
    after.claim = Some(claim.id);
    after.until = Some(now + claim.lease);
    rows.hand_out(&after)?;
    Ok(Some(claimed(&after, now)))
}

/// Whether the claim took the task before, and its answer was lost.
pub(crate) fn is_mine(task: &TaskRow, claim: &ClaimTasks, now: Timestamp) -> bool {
    task.state == TaskState::Claimed
        && task.worker.as_ref() == Some(&claim.worker)
        && task.claim == Some(claim.id)
        && !silent(task, now)
}

/// Whether the task is one that the claim asks for.
pub(crate) fn is_wanted(task: &TaskRow, claim: &ClaimTasks) -> bool {
    claim.queues.contains(&task.queue)
        && claim.namespace.as_ref().is_none_or(|namespace| *namespace == task.namespace)
        && (claim.names.is_empty() || claim.names.contains(&task.name))
}

/// Whether the task's worker has been silent for too long.
fn silent(task: &TaskRow, now: Timestamp) -> bool {
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
        since: task.began.unwrap_or(now),
        lapsed: task.lapsed,
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
    let now = rows.now();
    if !task.is_held_under(beat.token, now) {
        return refuse(StoreError::TaskFenced(beat.task.clone()));
    }
    let until = now + beat.lease;
    let cancelled = task.cancelled;
    let note = beat.progress.clone().or_else(|| task.note.clone());
    rows.put_task(&TaskRow { state: TaskState::Claimed, until: Some(until), lapse: beat.lapse, note, ..task })?;
    Ok(TaskExtended { until, cancelled })
}

/// The end of an attempt.
pub(crate) struct End<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) id: &'a TaskId,
    pub(crate) token: TaskToken,
    pub(crate) outcome: &'a TaskOutcome,
    pub(crate) receipt: Option<&'a Receipt>,
}

/// The end of an attempt: the task's row, the run's inbox item and its wake are one write. A stale token changes
/// nothing. Whether the run waits for it is not asked.
pub(crate) fn finish(rows: &mut dyn Rows, end: &End<'_>) -> Result<Delivered, Halt<StoreError>> {
    let &End { namespace, id, token, outcome, receipt } = end;
    let Some(task) = rows.task(namespace, id)? else {
        return Ok(if is_known(rows, end)? { Delivered::Duplicate } else { Delivered::NotFound });
    };
    let stale = task.state == TaskState::Claimed && planted!("stale-task-token-accepted");
    if !task.is_held_under(token, rows.now()) && !stale {
        let again = (receipt.is_some() && left_so(&task, token, outcome)) || is_known(rows, end)?;
        return Ok(if again { Delivered::Duplicate } else { Delivered::Lost });
    }
    if task.cancelled {
        rows.remove_task(namespace, id)?;
        keep_receipt(rows, end)?;
        return Ok(Delivered::Delivered);
    }
    let idle = || {
        let idle = TaskRow { worker: None, claim: None, until: None, began: None, ..task.clone() };
        TaskRow { lapse: None, lapsed: None, ..idle }
    };
    match outcome {
        TaskOutcome::Finished { result, log } => {
            rows.remove_task(namespace, id)?;
            tell(rows, &task, InboxKind::TaskFinished, result, log)?;
            keep_receipt(rows, end)?;
        }
        TaskOutcome::Failed { error } => {
            let died_at = Some(rows.now());
            rows.put_task(&TaskRow { state: TaskState::Dead, note: Some(error.clone()), died_at, ..idle() })?;
            tell(rows, &task, InboxKind::TaskFailed, error, &None)?;
            keep_receipt(rows, end)?;
        }
        TaskOutcome::Retry { at, error } => {
            let (now, note) = (rows.now(), Some(error.clone()));
            let idle = TaskRow { available_at: *at, note, ..idle() };
            rows.put_task(&match *at > now && !planted!("task-retried-at-once") {
                true => TaskRow { state: TaskState::Delayed, place: *at, until: Some(*at), ..idle },
                false => TaskRow { state: TaskState::Ready, place: now, ..idle },
            })?;
        }
        TaskOutcome::GivenBack => {
            let attempt = task.attempt.saturating_sub(1);
            rows.put_task(&TaskRow { state: TaskState::Ready, attempt, ..idle() })?;
        }
    }
    Ok(Delivered::Delivered)
}

/// Whether the task stands as this end would have left it, and nobody had it since: then it was said before.
fn left_so(task: &TaskRow, token: TaskToken, outcome: &TaskOutcome) -> bool {
    let says = |error: &Bytes| task.token == token && task.worker.is_none() && task.note.as_ref() == Some(error);
    match (task.state, outcome) {
        (TaskState::Dead, TaskOutcome::Failed { error }) => says(error),
        // When it is tried again was decided the first time.
        (TaskState::Delayed | TaskState::Ready, TaskOutcome::Retry { error, .. }) => says(error),
        (TaskState::Ready | TaskState::Claimed | TaskState::Dead | TaskState::Delayed, _) => false,
    }
}

/// Whether the run has the receipt of this end.
fn is_known(rows: &mut dyn Rows, end: &End<'_>) -> Result<bool, Halt<StoreError>> {
    Ok(match keeper(rows, end)? {
        Some((run, id)) => rows.was_delivered(&run, id)?,
        None => false,
    })
}

fn keep_receipt(rows: &mut dyn Rows, end: &End<'_>) -> Result<(), Halt<StoreError>> {
    if let Some((run, id)) = keeper(rows, end)?
        && !rows.was_delivered(&run, id)?
    {
        rows.remember_delivery(&run, id)?;
    }
    Ok(())
}

/// The run that keeps the receipt, if there is one, also after it has ended.
fn keeper<'a>(rows: &mut dyn Rows, end: &End<'a>) -> Result<Option<(RunRow, &'a DeliveryId)>, Halt<StoreError>> {
    let Some(Receipt { run: Some(run), id }) = end.receipt else { return Ok(None) };
    let run = rows.run(&RunKey::new(end.namespace.clone(), run.clone()))?;
    Ok(run.filter(|run| run.deleted_at.is_none()).map(|run| (run, id)))
}

fn tell(
    rows: &mut dyn Rows,
    task: &TaskRow,
    kind: InboxKind,
    payload: &Bytes,
    log: &Option<Bytes>,
) -> Result<(), Halt<StoreError>> {
    let Some((run, key)) = &task.awaited else { return Ok(()) };
    let run = RunKey::new(task.namespace.clone(), run.clone());
    let item = deliver::Item {
        key: Some(key),
        name: Some(task.id.as_str()),
        delivery: None,
        meta: log,
        payload: &Some(payload.clone()),
    };
    deliver::push_task(rows, &run, kind, item)
}
