//! Rows as they come from the database. A row that makes no sense is an error of its own, never a panic.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{InboxItem, InboxKind, Parent, Status, TimerKind, TimerRef, WaitKind};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Generation, InboxId, Index, InvalidId, Key, LeaseId, QueueName, Revision, RunId,
    RunKey, ScheduleId, SignalName, TaskId, TaskName, TaskToken, Version, WorkerId, WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::namespaces::Namespaces;
use crate::api::{Lapse, Schedule};
use crate::error::StoreError;
use crate::rows::{RunRow, TaskRow, TimerRow, WaitRow, WaitState, lapse_from_code, task_state_from_code};

/// The columns [`run`] reads, of a table called `r`. The namespace comes first, as [`Namespaces::cover`] needs it.
macro_rules! run_columns {
    () => {
        "r.ns, r.seq, r.id, r.workflow, r.version, r.status, r.generation, r.next, r.fence, r.owner, r.claim, \
         r.ready_at, r.priority, r.tries, r.parent, r.parent_generation, r.parent_key, r.parent_detached, r.root, \
         r.created_at, r.finished_at, r.note, r.deleted_at, r.inbox_next, r.signals, r.answered, r.side, \
         r.next_place, r.controlled, r.parked_at"
    };
}
/// How many columns that is: whatever a statement selects besides comes after them.
pub(super) const RUN_COLUMNS: usize = 30;

/// The columns [`wait`] reads, of a table called `w`.
macro_rules! wait_columns {
    () => {
        "w.key, w.kind, w.state, w.name, w.token, w.heartbeat, w.assignee, w.meta, w.since, w.answer"
    };
}

/// The columns [`task`] reads, of a table called `t`.
macro_rules! task_columns {
    () => {
        "t.ns, t.id, t.run, t.key, t.name, t.queue, t.priority, t.args, t.state, t.attempt, t.token, t.worker, \
         t.claim, t.available_at, t.until, t.cancelled, t.meta, t.note, t.origin, t.place, t.died_at, \
         t.began, t.lapse, t.lapsed"
    };
}

pub(super) use {run_columns, task_columns, wait_columns};

/// What is wrong with a row.
pub(super) type Detail = String;

/// Reads a row's columns one after the other.
pub(super) struct Fields<'r> {
    row: &'r Row,
    at: usize,
}

impl<'r> Fields<'r> {
    pub(super) fn from(row: &'r Row, at: usize) -> Self {
        Fields { row, at }
    }

    pub(super) fn next<T: FromSql<'r>>(&mut self) -> Result<T, Detail> {
        let at = self.at;
        self.at += 1;
        self.row.try_get(at).map_err(|error| error.to_string())
    }

    /// A number that is never negative.
    pub(super) fn whole(&mut self) -> Result<u64, Detail> {
        positive(self.next()?)
    }

    fn whole_or_none(&mut self) -> Result<Option<u64>, Detail> {
        self.next::<Option<i64>>()?.map(positive).transpose()
    }

    pub(super) fn count(&mut self) -> Result<u32, Detail> {
        let count: i32 = self.next()?;
        u32::try_from(count).map_err(|_| format!("a count is {count}"))
    }

    fn short(&mut self) -> Result<u16, Detail> {
        let number: i32 = self.next()?;
        u16::try_from(number).map_err(|_| format!("a number is {number}"))
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, Detail> {
        Ok(Timestamp::from_millis(self.next()?))
    }

    pub(super) fn time_or_none(&mut self) -> Result<Option<Timestamp>, Detail> {
        Ok(self.next::<Option<i64>>()?.map(Timestamp::from_millis))
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, Detail> {
        self.next::<&[u8]>().map(Bytes::copy_from_slice)
    }

    pub(super) fn bytes_or_none(&mut self) -> Result<Option<Bytes>, Detail> {
        Ok(self.next::<Option<&[u8]>>()?.map(Bytes::copy_from_slice))
    }

    pub(super) fn id<T: for<'a> TryFrom<&'a str, Error = InvalidId>>(&mut self) -> Result<T, Detail> {
        T::try_from(self.next::<&str>()?).map_err(|error| error.to_string())
    }

    pub(super) fn id_or_none<T: for<'a> TryFrom<&'a str, Error = InvalidId>>(&mut self) -> Result<Option<T>, Detail> {
        self.next::<Option<&str>>()?.map(T::try_from).transpose().map_err(|error| error.to_string())
    }

    pub(super) fn code<T>(&mut self, what: &str, from: fn(i64) -> Option<T>) -> Result<T, Detail> {
        let code: i16 = self.next()?;
        from(i64::from(code)).ok_or_else(|| format!("there is no {what} {code}"))
    }
}

fn positive(number: i64) -> Result<u64, Detail> {
    u64::try_from(number).map_err(|_| format!("a number is {number}"))
}

/// A row that cannot be read, and enough to find it again.
#[derive(Clone, Debug)]
pub(super) struct Damaged {
    pub(super) seq: i64,
    pub(super) error: StoreError,
}

/// A run, from [`run_columns`].
pub(super) fn run(row: &Row, names: &Namespaces) -> Result<RunRow, Damaged> {
    read_run(row, names).map_err(|detail| {
        let (ns, seq) = (row.try_get(0).unwrap_or(0), row.try_get(1).unwrap_or(0));
        let namespace = names.name(ns).map_or_else(|| format!("namespace {ns}"), |name| name.to_string());
        let id: &str = row.try_get(2).unwrap_or("?");
        Damaged { seq, error: StoreError::corrupt(format!("{namespace}/{id}"), detail) }
    })
}

fn read_run(row: &Row, names: &Namespaces) -> Result<RunRow, Detail> {
    let mut fields = Fields::from(row, 0);
    let ns = fields.next()?;
    let namespace = names.name(ns).ok_or_else(|| format!("there is no namespace {ns}"))?;
    Ok(RunRow {
        row: fields.next()?,
        key: RunKey::new(namespace, fields.id::<RunId>()?),
        workflow: fields.id::<WorkflowName>()?,
        version: fields.id::<Version>()?,
        status: fields.code("status", Status::from_code)?,
        generation: Generation(fields.whole()?),
        next: Index(fields.whole()?),
        fence: Fence(fields.whole()?),
        owner: fields.whole_or_none()?.map(LeaseId),
        claim: fields.next::<Option<i64>>()?.map(claim_id),
        ready_at: fields.time_or_none()?,
        priority: fields.next()?,
        tries: fields.count()?,
        parent: read_parent(&mut fields)?,
        root: fields.id_or_none()?,
        created_at: fields.time()?,
        finished_at: fields.time_or_none()?,
        note: fields.next()?,
        deleted_at: fields.time_or_none()?,
        inbox_next: InboxId(fields.whole()?),
        signals: fields.count()?,
        answered: fields.count()?,
        side: fields.next()?,
        next_place: fields.time_or_none()?,
        controlled: fields.next()?,
        parked_at: fields.time_or_none()?,
    })
}

fn read_parent(fields: &mut Fields<'_>) -> Result<Option<Parent>, Detail> {
    let run = fields.id_or_none::<RunId>()?;
    let generation = fields.whole_or_none()?;
    let key = fields.id_or_none::<Key>()?;
    let detached = fields.next::<Option<bool>>()?;
    match (run, generation, key, detached) {
        (None, None, None, None) => Ok(None),
        (Some(run), Some(generation), Some(key), Some(detached)) => {
            Ok(Some(Parent { run, generation: Generation(generation), key, detached }))
        }
        _ => Err("its parent is incomplete".to_owned()),
    }
}

/// Claim ids are any 64 bits; the column is signed.
pub(super) fn claim_id(stored: i64) -> ClaimId {
    ClaimId(u64::from_ne_bytes(stored.to_ne_bytes()))
}

/// The reverse of [`claim_id`].
pub(super) fn claim_number(claim: ClaimId) -> i64 {
    i64::from_ne_bytes(claim.0.to_ne_bytes())
}

/// A count or index as the signed columns keep it. Nothing real reaches the end.
pub(super) fn number(whole: u64) -> i64 {
    i64::try_from(whole).unwrap_or(i64::MAX)
}

/// A count as the smaller columns keep it.
pub(super) fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// An event: kind, version, key, at, meta, payload.
pub(super) fn record(fields: &mut Fields<'_>) -> Result<Record, Detail> {
    Ok(Record {
        kind: fields.short()?,
        version: fields.short()?,
        key: fields.id_or_none()?,
        at: fields.time()?,
        meta: fields.bytes_or_none()?,
        payload: fields.bytes_or_none()?,
    })
}

/// An inbox item: id, kind, key, name, delivery, at, meta, payload.
pub(super) fn inbox_item(fields: &mut Fields<'_>) -> Result<InboxItem, Detail> {
    Ok(InboxItem {
        id: InboxId(fields.whole()?),
        kind: inbox_kind(fields)?,
        key: fields.id_or_none()?,
        name: fields.next()?,
        delivery: fields.id_or_none::<DeliveryId>()?,
        at: fields.time()?,
        meta: fields.bytes_or_none()?,
        payload: fields.bytes_or_none()?,
    })
}

pub(super) fn inbox_kind(fields: &mut Fields<'_>) -> Result<InboxKind, Detail> {
    fields.code("kind of inbox item", InboxKind::from_code)
}

/// A wait, from [`wait_columns`].
pub(super) fn wait(fields: &mut Fields<'_>) -> Result<WaitRow, Detail> {
    Ok(WaitRow {
        key: fields.id()?,
        kind: fields.code("kind of wait", WaitKind::from_code)?,
        state: fields.code("state of a wait", WaitState::from_code)?,
        name: fields.id_or_none::<SignalName>()?,
        token: fields.next()?,
        heartbeat: fields.whole_or_none()?.map(Duration::from_millis),
        assignee: fields.next()?,
        meta: fields.bytes_or_none()?,
        since: fields.time()?,
        answer: fields.whole_or_none()?.map(InboxId),
    })
}

/// A timer: key, kind, due.
pub(super) fn timer(fields: &mut Fields<'_>) -> Result<TimerRow, Detail> {
    let key = fields.id()?;
    let kind = fields.code("kind of timer", TimerKind::from_code)?;
    Ok(TimerRow { timer: TimerRef { key, kind }, due: fields.time()? })
}

fn lapse(fields: &mut Fields<'_>) -> Result<Option<Lapse>, Detail> {
    let Some(code) = fields.next::<Option<i16>>()? else { return Ok(None) };
    lapse_from_code(code.into()).map(Some).ok_or_else(|| format!("there is no lapse {code}"))
}

/// A task, from [`task_columns`].
pub(super) fn task(fields: &mut Fields<'_>, names: &Namespaces) -> Result<TaskRow, Detail> {
    let ns = fields.next()?;
    let namespace = names.name(ns).ok_or_else(|| format!("there is no namespace {ns}"))?;
    let id = fields.id::<TaskId>()?;
    let awaited = fields.id_or_none::<RunId>()?.zip(fields.id_or_none::<Key>()?);
    Ok(TaskRow {
        namespace,
        id,
        awaited,
        name: fields.id::<TaskName>()?,
        queue: fields.id::<QueueName>()?,
        priority: fields.next()?,
        args: fields.bytes()?,
        state: fields.code("state of a task", task_state_from_code)?,
        attempt: fields.count()?,
        token: TaskToken(fields.whole()?),
        worker: fields.id_or_none::<WorkerId>()?,
        claim: fields.next::<Option<i64>>()?.map(claim_id),
        available_at: fields.time()?,
        until: fields.time_or_none()?,
        cancelled: fields.next()?,
        meta: fields.bytes_or_none()?,
        note: fields.bytes_or_none()?,
        origin: fields.id_or_none::<RunId>()?,
        place: fields.time()?,
        died_at: fields.time_or_none()?,
        began: fields.time_or_none()?,
        lapse: lapse(fields)?,
        lapsed: lapse(fields)?,
    })
}

/// A schedule: namespace, id, revision, spec, state, next_at.
pub(super) fn schedule(fields: &mut Fields<'_>, names: &Namespaces) -> Result<Schedule, Detail> {
    let ns = fields.next()?;
    let namespace = names.name(ns).ok_or_else(|| format!("there is no namespace {ns}"))?;
    let id = fields.id::<ScheduleId>()?;
    let revision = Revision(fields.whole()?);
    let (spec, state) = (fields.bytes()?, fields.bytes()?);
    Ok(Schedule { namespace, id, revision, spec, state, next_at: fields.time_or_none()? })
}
