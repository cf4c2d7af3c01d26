//! Rows of SQLite as rows of ours. A value that cannot be is an error that names its column.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{InboxItem, InboxKind, Parent, Status, TimerKind, TimerRef, WaitKind};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Generation, InboxId, Index, InvalidId, Key, LeaseId, Namespace, QueueName, RunId,
    RunKey, SignalName, TaskId, TaskName, TaskToken, Version, WorkerId, WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use rusqlite::{Result, Row};

use super::error::bad_value;
use crate::api::Lapse;
use crate::rows::{RunRow, TaskRow, TimerRow, WaitRow, WaitState, lapse_from_code, task_state_from_code};

/// Column lists, in the order the functions below read them; macros, so that statements are constants.
macro_rules! run_columns {
    () => {
        "row, ns, id, workflow, version, status, generation, next, fence, owner, claim, ready_at, priority, tries, \
         parent, parent_generation, parent_key, detached, root, created_at, finished_at, note, deleted_at, inbox_next, \
         signals, answered, side, next_place, controlled, parked_at"
    };
}
macro_rules! task_columns {
    () => {
        "ns, id, run, key, name, queue, priority, args, state, attempt, token, worker, claim, available_at, until, \
         cancelled, meta, note, origin, place, died_at, began, lapse, lapsed"
    };
}
macro_rules! wait_columns {
    () => {
        "key, kind, state, name, token, heartbeat, assignee, meta, since, answer"
    };
}
macro_rules! event_columns {
    () => {
        "kind, version, key, at, meta, payload"
    };
}
macro_rules! inbox_columns {
    () => {
        "id, kind, key, name, delivery, at, meta, payload"
    };
}
pub(super) use {event_columns, inbox_columns, run_columns, task_columns, wait_columns};

pub(super) fn number(row: &Row<'_>, column: usize, what: &str) -> Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|error| bad_value(what, error))
}

fn text<T>(
    row: &Row<'_>,
    column: usize,
    what: &str,
    make: impl Fn(&str) -> std::result::Result<T, InvalidId>,
) -> Result<T> {
    let value = row.get_ref(column)?;
    let text = value.as_str().map_err(|error| bad_value(what, error))?;
    make(text).map_err(|error| bad_value(what, error))
}

fn optional<T>(
    row: &Row<'_>,
    column: usize,
    what: &str,
    make: impl Fn(&str) -> std::result::Result<T, InvalidId>,
) -> Result<Option<T>> {
    let value = row.get_ref(column)?;
    match value.as_str_or_null().map_err(|error| bad_value(what, error))? {
        Some(text) => make(text).map(Some).map_err(|error| bad_value(what, error)),
        None => Ok(None),
    }
}

pub(super) fn bytes(row: &Row<'_>, column: usize) -> Result<Option<Bytes>> {
    let value = row.get_ref(column)?;
    let blob = value.as_blob_or_null().map_err(|error| bad_value("a payload", error))?;
    Ok(blob.map(Bytes::copy_from_slice))
}

fn time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

fn instant(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

fn code<T>(row: &Row<'_>, column: usize, what: &str, make: impl Fn(i64) -> Option<T>) -> Result<T> {
    let value: i64 = row.get(column)?;
    make(value).ok_or_else(|| bad_value(what, format_args!("unknown code {value}")))
}

fn claim(row: &Row<'_>, column: usize) -> Result<Option<ClaimId>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|id| ClaimId(id.cast_unsigned())))
}

/// A run, in `run_columns!` order.
pub(super) fn run(row: &Row<'_>, namespace: Namespace) -> Result<RunRow> {
    Ok(RunRow {
        row: row.get(0)?,
        key: RunKey::new(namespace, text(row, 2, "run.id", |text| RunId::new(text))?),
        workflow: text(row, 3, "run.workflow", |text| WorkflowName::new(text))?,
        version: text(row, 4, "run.version", |text| Version::new(text))?,
        status: code(row, 5, "run.status", Status::from_code)?,
        generation: Generation(number(row, 6, "run.generation")?),
        next: Index(number(row, 7, "run.next")?),
        fence: Fence(number(row, 8, "run.fence")?),
        owner: row.get::<_, Option<i64>>(9)?.map(|lease| LeaseId(lease.cast_unsigned())),
        claim: claim(row, 10)?,
        ready_at: time(row, 11)?,
        priority: row.get(12)?,
        tries: row.get(13)?,
        parent: parent(row)?,
        root: optional(row, 18, "run.root", |text| RunId::new(text))?,
        created_at: instant(row, 19)?,
        finished_at: time(row, 20)?,
        note: row.get(21)?,
        deleted_at: time(row, 22)?,
        inbox_next: InboxId(number(row, 23, "run.inbox_next")?),
        signals: row.get(24)?,
        answered: row.get(25)?,
        side: row.get(26)?,
        next_place: time(row, 27)?,
        controlled: row.get(28)?,
        parked_at: time(row, 29)?,
    })
}

fn parent(row: &Row<'_>) -> Result<Option<Parent>> {
    let Some(run) = optional(row, 14, "run.parent", |text| RunId::new(text))? else { return Ok(None) };
    Ok(Some(Parent {
        run,
        generation: Generation(number(row, 15, "run.parent_generation")?),
        key: text(row, 16, "run.parent_key", |text| Key::new(text))?,
        detached: row.get(17)?,
    }))
}

/// An event, in `event_columns!` order from `first` on.
pub(super) fn record(row: &Row<'_>, first: usize) -> Result<Record> {
    Ok(Record {
        kind: row.get(first)?,
        version: row.get(first + 1)?,
        key: optional(row, first + 2, "event.key", |text| Key::new(text))?,
        at: instant(row, first + 3)?,
        meta: bytes(row, first + 4)?,
        payload: bytes(row, first + 5)?,
    })
}

/// An inbox item, in `inbox_columns!` order.
pub(super) fn inbox_item(row: &Row<'_>) -> Result<InboxItem> {
    Ok(InboxItem {
        id: InboxId(number(row, 0, "inbox.id")?),
        kind: code(row, 1, "inbox.kind", InboxKind::from_code)?,
        key: optional(row, 2, "inbox.key", |text| Key::new(text))?,
        name: row.get(3)?,
        delivery: optional(row, 4, "inbox.delivery", |text| DeliveryId::new(text))?,
        at: instant(row, 5)?,
        meta: bytes(row, 6)?,
        payload: bytes(row, 7)?,
    })
}

/// A wait, in `wait_columns!` order.
pub(super) fn wait(row: &Row<'_>) -> Result<WaitRow> {
    let heartbeat: Option<i64> = row.get(5)?;
    Ok(WaitRow {
        key: text(row, 0, "wait.key", |text| Key::new(text))?,
        kind: code(row, 1, "wait.kind", WaitKind::from_code)?,
        state: code(row, 2, "wait.state", WaitState::from_code)?,
        name: optional(row, 3, "wait.name", |text| SignalName::new(text))?,
        token: row.get(4)?,
        heartbeat: heartbeat.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0))),
        assignee: row.get(6)?,
        meta: bytes(row, 7)?,
        since: instant(row, 8)?,
        answer: row.get::<_, Option<i64>>(9)?.map(|id| InboxId(id.cast_unsigned())),
    })
}

/// A timer: key, kind and due from column `first` on.
pub(super) fn timer(row: &Row<'_>, first: usize) -> Result<TimerRow> {
    Ok(TimerRow {
        timer: TimerRef {
            key: text(row, first, "timer.key", |text| Key::new(text))?,
            kind: code(row, first + 1, "timer.kind", TimerKind::from_code)?,
        },
        due: instant(row, first + 2)?,
    })
}

fn lapse(row: &Row<'_>, column: usize) -> Result<Option<Lapse>> {
    match row.get::<_, Option<i64>>(column)? {
        Some(_) => code(row, column, "task.lapse", lapse_from_code).map(Some),
        None => Ok(None),
    }
}

/// A task, in `task_columns!` order.
pub(super) fn task(row: &Row<'_>, namespace: Namespace) -> Result<TaskRow> {
    let run = optional(row, 2, "task.run", |text| RunId::new(text))?;
    let key = optional(row, 3, "task.key", |text| Key::new(text))?;
    Ok(TaskRow {
        namespace,
        id: text(row, 1, "task.id", |text| TaskId::new(text))?,
        awaited: run.zip(key),
        name: text(row, 4, "task.name", |text| TaskName::new(text))?,
        queue: text(row, 5, "task.queue", |text| QueueName::new(text))?,
        priority: row.get(6)?,
        args: bytes(row, 7)?.unwrap_or_default(),
        state: code(row, 8, "task.state", task_state_from_code)?,
        attempt: row.get(9)?,
        token: TaskToken(number(row, 10, "task.token")?),
        worker: optional(row, 11, "task.worker", |text| WorkerId::new(text))?,
        claim: claim(row, 12)?,
        available_at: instant(row, 13)?,
        until: time(row, 14)?,
        cancelled: row.get(15)?,
        meta: bytes(row, 16)?,
        note: bytes(row, 17)?,
        origin: optional(row, 18, "task.origin", |text| RunId::new(text))?,
        place: instant(row, 19)?,
        died_at: time(row, 20)?,
        began: time(row, 21)?,
        lapse: lapse(row, 22)?,
        lapsed: lapse(row, 23)?,
    })
}
