//! [`Rows`] over prepared statements, inside the writer's transaction.

mod advance;
mod known;
mod later;
mod stretches;

use std::cell::RefCell;

use bytes::Bytes;
use outlast_core::commit::{InboxItem, InboxKind, Snapshot, TimerRef};
use outlast_core::id::{
    AttributeName, DeliveryId, Generation, InboxId, Index, Key, LeaseId, Namespace, Revision, RunKey, ScheduleId,
    SignalName, TaskId,
};
use outlast_core::planted;
use outlast_core::record::Record;
use outlast_core::time::{Timestamp, millis};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, ToSql, params};

use self::known::KnownRuns;
use self::later::Later;
use self::stretches::stretches;
use super::names::Names;
use super::{decode, statements};
use crate::api::Schedule;
use crate::error::StoreError;
use crate::rows::{
    Clear, Fault, InboxHead, Rows, RunRow, TaskRow, TimerRow, WaitRow, WaitState, lapse_code, task_state_code,
};

/// Inputs up to this size are kept in the run's row; larger ones would be rewritten with it by every commit.
pub(super) const INLINE_INPUT_BYTES: usize = 1_024;

/// Row access within one transaction.
pub(super) struct SqliteRows<'c> {
    pub(super) connection: &'c Connection,
    pub(super) names: &'c mut Names,
    now: Timestamp,
    /// Statements that were used in this transaction, the latest last. The connection's own cache looks them up by their
    /// whole text, which costs as much as many a statement itself.
    used: RefCell<Vec<(&'static str, CachedStatement<'c>)>>,
    /// Runs as this transaction left them: several things that come for one run in a group read its row once.
    runs: KnownRuns,
    /// Changes of runs that are not written yet.
    later: Later,
}

/// Statements that are kept at hand. A group uses some twenty, most of them again and again.
const USED_MAX: usize = 24;

impl<'c> SqliteRows<'c> {
    pub(super) fn new(connection: &'c Connection, names: &'c mut Names, now: Timestamp) -> Self {
        SqliteRows { connection, names, now, used: RefCell::default(), runs: KnownRuns::default(), later: None }
    }

    /// Runs a statement. The same text is the same constant, so that its address tells it apart.
    pub(super) fn with<T>(
        &self,
        sql: &'static str,
        run: impl FnOnce(&mut CachedStatement<'c>) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        let mut used = self.used.borrow_mut();
        let known = used.iter().rposition(|(text, _)| std::ptr::eq(*text, sql));
        let mut statement = match known {
            Some(place) => used.swap_remove(place).1,
            None => self.connection.prepare_cached(sql)?,
        };
        drop(used);
        let done = run(&mut statement)?;
        let mut used = self.used.borrow_mut();
        if used.len() == USED_MAX {
            used.remove(0);
        }
        used.push((sql, statement));
        Ok(done)
    }

    pub(super) fn execute(&self, sql: &'static str, params: impl Params) -> Result<usize, Fault> {
        self.runs.forget_before(sql);
        self.with(sql, |statement| statement.execute(params))
    }

    /// The same, for the one run that is like this then.
    fn change_run(&self, sql: &'static str, params: impl Params, after: &RunRow) -> Result<(), Fault> {
        self.with(sql, |statement| statement.execute(params))?;
        self.runs.remember(after);
        Ok(())
    }

    pub(super) fn one<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Fault> {
        self.with(sql, |statement| statement.query_row(params, read).optional())
    }

    pub(super) fn many<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Fault> {
        self.with(sql, |statement| statement.query_map(params, read)?.collect())
    }

    pub(super) fn ns(&mut self, namespace: &Namespace) -> Result<i64, Fault> {
        let unknown = || Fault::Failed(StoreError::UnknownNamespace(namespace.clone()));
        self.names.number(self.connection, namespace)?.ok_or_else(unknown)
    }

    fn insert_event(&self, ns: i64, row: i64, generation: i64, index: Index, event: &Record) -> Result<(), Fault> {
        let params = params![
            ns,
            row,
            generation,
            signed(index.0),
            event.kind,
            event.version,
            event.key.as_ref().map(|key| key.as_str()),
            event.at.as_millis(),
            blob(event.meta.as_ref()),
            blob(event.payload.as_ref()),
        ];
        self.execute(statements::INSERT_EVENT, params)?;
        Ok(())
    }

    fn write_run(&self, before: &RunRow, after: &RunRow) -> Result<(), Fault> {
        if after.is_advance_of(before) {
            // No indexed column is named, so that no index is touched: the hot path of a turn.
            let sql = "UPDATE run SET next = ?2, tries = ?3 WHERE row = ?1";
            return self.change_run(sql, params![after.row, signed(after.next.0), after.tries], after);
        }
        if after.waits_like(before) {
            let params = params![
                after.row,
                after.version.as_str(),
                signed(after.generation.0),
                signed(after.next.0),
                signed(after.fence.0),
                after.claim.map(|claim| claim.0.cast_signed()),
                after.tries,
                after.note.as_deref(),
                signed(after.inbox_next.0),
                after.signals,
                after.answered,
                after.side,
                time(after.next_place),
            ];
            return self.change_run(statements::UPDATE_RUN_IN_PLACE, params, after);
        }
        let params = params![
            after.row,
            after.version.as_str(),
            after.status.code(),
            signed(after.generation.0),
            signed(after.next.0),
            signed(after.fence.0),
            after.owner.map(|lease| signed(lease.0)),
            after.claim.map(|claim| claim.0.cast_signed()),
            time(after.ready_at),
            after.tries,
            time(after.finished_at),
            after.note.as_deref(),
            time(after.deleted_at),
            signed(after.inbox_next.0),
            after.signals,
            after.answered,
            after.side,
            time(after.next_place),
            time(after.parked_at),
        ];
        self.change_run(statements::UPDATE_RUN, params, after)
    }

    fn task_where(
        &mut self,
        namespace: &Namespace,
        sql: &'static str,
        params: impl Params,
    ) -> Result<Option<TaskRow>, Fault> {
        self.one(sql, params, |row| decode::task(row, namespace.clone()))
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn blob(bytes: Option<&Bytes>) -> Option<&[u8]> {
    bytes.map(AsRef::as_ref)
}

fn time(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_millis)
}

/// Names the run in an error that only its row caused.
fn naming(key: &RunKey, fault: Fault) -> Fault {
    match fault {
        Fault::Failed(StoreError::Corrupt { detail, .. }) => {
            Fault::Failed(StoreError::corrupt(format!("run {key}"), detail))
        }
        other => other,
    }
}

impl Rows for SqliteRows<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn has_namespace(&mut self, namespace: &Namespace) -> Result<bool, Fault> {
        Ok(self.names.number(self.connection, namespace)?.is_some())
    }

    fn lease_until(&mut self, lease: LeaseId) -> Result<Option<Timestamp>, Fault> {
        self.one("SELECT until FROM lease WHERE id = ?1", [signed(lease.0)], |row| {
            row.get(0).map(Timestamp::from_millis)
        })
    }

    fn run(&mut self, key: &RunKey) -> Result<Option<RunRow>, Fault> {
        let Some(ns) = self.names.number(self.connection, &key.namespace)? else { return Ok(None) };
        if let Some(known) = self.unwritten(key).or_else(|| self.runs.get(key)) {
            return Ok(Some(known));
        }
        let params = params![ns, key.id.as_str()];
        let found = self.one(statements::RUN_BY_ID, params, |row| decode::run(row, key.namespace.clone()));
        let found = found.map_err(|fault| naming(key, fault))?;
        found.iter().for_each(|run| self.runs.remember(run));
        Ok(found)
    }

    fn insert_run(&mut self, run: &RunRow, input: &Bytes) -> Result<i64, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let inline = input.len() <= INLINE_INPUT_BYTES;
        let parent = run.parent.as_ref();
        let params = params![
            ns,
            run.key.id.as_str(),
            run.workflow.as_str(),
            run.version.as_str(),
            run.status.code(),
            signed(run.generation.0),
            signed(run.next.0),
            signed(run.fence.0),
            run.owner.map(|lease| signed(lease.0)),
            run.claim.map(|claim| claim.0.cast_signed()),
            time(run.ready_at),
            run.priority,
            run.tries,
            parent.map(|parent| parent.run.as_str()),
            parent.map(|parent| signed(parent.generation.0)),
            parent.map(|parent| parent.key.as_str()),
            parent.is_some_and(|parent| parent.detached),
            run.root.as_ref().map(|root| root.as_str()),
            run.created_at.as_millis(),
            signed(run.inbox_next.0),
            run.signals,
            run.answered,
            run.side,
            run.controlled,
            inline.then_some(input.as_ref()),
        ];
        let row = self.with(statements::INSERT_RUN, |statement| statement.insert(params))?;
        if run.owner.is_some() {
            self.names.remember(&run.key, row, signed(run.generation.0));
        }
        if !inline {
            self.put_input(&RunRow { row, ..run.clone() }, Generation(0), input)?;
        }
        Ok(row)
    }

    fn update_run(&mut self, before: &RunRow, after: &RunRow) -> Result<(), Fault> {
        if self.keep(before, after) { Ok(()) } else { self.write_run(before, after) }
    }

    fn input(&mut self, run: &RunRow, generation: Generation) -> Result<Bytes, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        input(self.connection, ns, run, generation)
    }

    fn put_input(&mut self, run: &RunRow, generation: Generation, input: &Bytes) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "INSERT INTO run_input (ns, run, generation, input) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![ns, run.row, signed(generation.0), input.as_ref()])?;
        Ok(())
    }

    fn append(&mut self, run: &RunRow, first: Index, events: &[Record]) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        for (index, event) in (first.0..).zip(events) {
            self.insert_event(ns, run.row, signed(run.generation.0), Index(index), event)?;
        }
        Ok(())
    }

    fn record(&mut self, run: &RunRow, index: Index) -> Result<Option<Record>, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let params = params![ns, run.row, signed(run.generation.0), signed(index.0)];
        self.one(statements::EVENT_AT, params, |row| decode::record(row, 0)).map_err(|fault| naming(&run.key, fault))
    }

    fn push_inbox(&mut self, run: &RunRow, item: &InboxItem) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        self.execute(
            statements::INSERT_INBOX,
            params![
                ns,
                run.row,
                signed(item.id.0),
                item.kind.code(),
                item.key.as_ref().map(|key| key.as_str()),
                item.name,
                item.delivery.as_ref().map(|id| id.as_str()),
                item.at.as_millis(),
                blob(item.meta.as_ref()),
                blob(item.payload.as_ref()),
            ],
        )?;
        Ok(())
    }

    fn inbox_heads(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<Vec<InboxHead>, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "SELECT id, kind FROM inbox WHERE ns = ?1 AND run = ?2 AND id BETWEEN ?3 AND ?4";
        let mut heads = Vec::with_capacity(ids.len());
        for (first, last) in stretches(ids) {
            let found = self.many(sql, params![ns, run.row, signed(first.0), signed(last.0)], |row| {
                Ok((InboxId(decode::number(row, 0, "inbox.id")?), row.get::<_, i64>(1)?))
            })?;
            for (id, kind) in found {
                let unknown =
                    || StoreError::corrupt(format!("run {}", run.key), format!("inbox item {id} has kind {kind}"));
                heads.push(InboxHead { id, kind: InboxKind::from_code(kind).ok_or_else(unknown)? });
            }
        }
        Ok(heads)
    }

    fn remove_inbox(&mut self, run: &RunRow, ids: &[InboxId]) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        for (first, last) in stretches(ids).into_iter().filter(|_| !planted!("sqlite-inbox-item-kept")) {
            let sql = "DELETE FROM inbox WHERE ns = ?1 AND run = ?2 AND id BETWEEN ?3 AND ?4";
            self.execute(sql, params![ns, run.row, signed(first.0), signed(last.0)])?;
        }
        Ok(())
    }

    fn mailbox(&mut self, run: &RunRow, name: &SignalName) -> Result<Vec<InboxId>, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql =
            "SELECT id FROM inbox WHERE ns = ?1 AND run = ?2 AND kind = 0 AND key IS NULL AND name = ?3 ORDER BY id";
        self.many(sql, params![ns, run.row, name.as_str()], |row| decode::number(row, 0, "inbox.id").map(InboxId))
    }

    fn was_delivered(&mut self, run: &RunRow, id: &DeliveryId) -> Result<bool, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "SELECT 1 FROM delivered WHERE ns = ?1 AND run = ?2 AND id = ?3";
        Ok(self.one(sql, params![ns, run.row, id.as_str()], |_| Ok(()))?.is_some())
    }

    fn remember_delivery(&mut self, run: &RunRow, id: &DeliveryId) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "INSERT INTO delivered (ns, run, id) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![ns, run.row, id.as_str()])?;
        Ok(())
    }

    fn wait(&mut self, run: &RunRow, key: &Key) -> Result<Option<WaitRow>, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        self.one(statements::WAIT_AT, params![ns, run.row, key.as_str()], decode::wait)
    }

    fn put_wait(&mut self, run: &RunRow, wait: &WaitRow) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        self.execute(
            statements::PUT_WAIT,
            params![
                ns,
                run.row,
                wait.key.as_str(),
                wait.kind.code(),
                wait.state.code(),
                wait.name.as_ref().map(|name| name.as_str()),
                wait.token,
                wait.heartbeat.map(millis),
                wait.assignee,
                blob(wait.meta.as_ref()),
                wait.since.as_millis(),
                wait.answer.map(|id| signed(id.0)),
            ],
        )?;
        Ok(())
    }

    fn open_waits(&mut self, run: &RunRow, name: &SignalName) -> Result<usize, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "SELECT count(*) FROM wait WHERE ns = ?1 AND run = ?2 AND state = ?3 AND name = ?4";
        let params = params![ns, run.row, WaitState::Open.code(), name.as_str()];
        let count = self.one(sql, params, |row| row.get::<_, i64>(0))?;
        Ok(usize::try_from(count.unwrap_or(0)).unwrap_or(0))
    }

    fn answered_waits(&mut self, run: &RunRow) -> Result<Vec<WaitRow>, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        self.many(statements::WAITS_IN_STATE, params![ns, run.row, WaitState::Answered.code()], decode::wait)
    }

    fn timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<Option<TimerRow>, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "SELECT key, kind, due FROM timer WHERE ns = ?1 AND run = ?2 AND key = ?3 AND kind = ?4";
        let params = params![ns, run.row, timer.key.as_str(), timer.kind.code()];
        self.one(sql, params, |row| decode::timer(row, 0))
    }

    fn put_timer(&mut self, run: &RunRow, timer: &TimerRow) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "INSERT OR REPLACE INTO timer (ns, run, key, kind, due) VALUES (?1, ?2, ?3, ?4, ?5)";
        let TimerRow { timer, due } = timer;
        let due = due.as_millis() - i64::from(planted!("sqlite-timer-too-early"));
        self.execute(sql, params![ns, run.row, timer.key.as_str(), timer.kind.code(), due])?;
        Ok(())
    }

    fn remove_timer(&mut self, run: &RunRow, timer: &TimerRef) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let sql = "DELETE FROM timer WHERE ns = ?1 AND run = ?2 AND key = ?3 AND kind = ?4";
        self.execute(sql, params![ns, run.row, timer.key.as_str(), timer.kind.code()])?;
        Ok(())
    }

    fn task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<Option<TaskRow>, Fault> {
        let Some(ns) = self.names.number(self.connection, namespace)? else { return Ok(None) };
        self.task_where(namespace, statements::TASK_AT, params![ns, id.as_str()])
    }

    fn task_of(&mut self, run: &RunRow, key: &Key) -> Result<Option<TaskRow>, Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let params = params![ns, run.key.id.as_str(), key.as_str()];
        match self.task_where(&run.key.namespace, statements::TASK_OF, params)? {
            Some(task) => Ok(Some(task)),
            None => self.task_where(&run.key.namespace, statements::TASK_OF_ELSEWHERE, params),
        }
    }

    fn put_task(&mut self, task: &TaskRow) -> Result<(), Fault> {
        let ns = self.ns(&task.namespace)?;
        let params: [&dyn ToSql; 24] = [
            &ns,
            &task.id.as_str(),
            &task.awaited.as_ref().map(|(run, _)| run.as_str()),
            &task.awaited.as_ref().map(|(_, key)| key.as_str()),
            &task.name.as_str(),
            &task.queue.as_str(),
            &task.priority,
            &task.args.as_ref(),
            &task_state_code(task.state),
            &task.attempt,
            &signed(task.token.0),
            &task.worker.as_ref().map(|worker| worker.as_str()),
            &task.claim.map(|claim| claim.0.cast_signed()),
            &task.available_at.as_millis(),
            &time(task.until),
            &task.cancelled,
            &blob(task.meta.as_ref()),
            &blob(task.note.as_ref()),
            &task.origin.as_ref().map(|run| run.as_str()),
            &task.place.as_millis(),
            &time(task.died_at),
            &time(task.began),
            &task.lapse.map(lapse_code),
            &task.lapsed.map(lapse_code),
        ];
        self.execute(statements::PUT_TASK, params)?;
        Ok(())
    }

    fn hand_out(&mut self, task: &TaskRow) -> Result<(), Fault> {
        let ns = self.ns(&task.namespace)?;
        let params: [&dyn ToSql; 11] = [
            &ns,
            &task.id.as_str(),
            &task_state_code(task.state),
            &task.attempt,
            &signed(task.token.0),
            &task.worker.as_ref().map(|worker| worker.as_str()),
            &task.claim.map(|claim| claim.0.cast_signed()),
            &time(task.until),
            &time(task.began),
            &task.lapse.map(lapse_code),
            &task.lapsed.map(lapse_code),
        ];
        self.execute(statements::HAND_OUT, params)?;
        Ok(())
    }

    fn remove_task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<(), Fault> {
        let ns = self.ns(namespace)?;
        self.execute("DELETE FROM task WHERE ns = ?1 AND id = ?2", params![ns, id.as_str()])?;
        Ok(())
    }

    fn put_snapshot(&mut self, run: &RunRow, snapshot: &Snapshot) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let Snapshot { index, definition, data } = snapshot;
        let params = params![ns, run.row, signed(run.generation.0), signed(index.0), definition, data.as_ref()];
        self.execute(statements::PUT_SNAPSHOT, params)?;
        Ok(())
    }

    fn put_attribute(&mut self, run: &RunRow, name: &AttributeName, value: Option<&str>) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        match value {
            Some(value) => {
                let sql = "INSERT OR REPLACE INTO attribute (ns, run, name, value) VALUES (?1, ?2, ?3, ?4)";
                self.execute(sql, params![ns, run.row, name.as_str(), value])?
            }
            None => {
                let sql = "DELETE FROM attribute WHERE ns = ?1 AND run = ?2 AND name = ?3";
                self.execute(sql, params![ns, run.row, name.as_str()])?
            }
        };
        Ok(())
    }

    fn clear(&mut self, run: &RunRow, what: Clear) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let mine = params![ns, run.row];
        self.execute("DELETE FROM timer WHERE ns = ?1 AND run = ?2", mine)?;
        self.execute("DELETE FROM snapshot WHERE ns = ?1 AND run = ?2", mine)?;
        match what {
            Clear::Run => {
                self.execute("DELETE FROM wait WHERE ns = ?1 AND run = ?2", mine)?;
                self.execute("DELETE FROM inbox WHERE ns = ?1 AND run = ?2", mine)?;
            }
            Clear::Generation => {
                let sql = "DELETE FROM wait WHERE ns = ?1 AND run = ?2 AND state <> ?3";
                self.execute(sql, params![ns, run.row, WaitState::Slotted.code()])?;
                for kind in InboxKind::ALL.into_iter().filter(|kind| !kind.outlives_generation()) {
                    let sql = "DELETE FROM inbox WHERE ns = ?1 AND run = ?2 AND kind = ?3";
                    self.execute(sql, params![ns, run.row, kind.code()])?;
                }
            }
        }
        for detach in statements::DETACH_TASKS {
            self.execute(detach, params![ns, run.key.id.as_str()])?;
        }
        Ok(())
    }

    fn schedule(&mut self, namespace: &Namespace, id: &ScheduleId) -> Result<Option<Schedule>, Fault> {
        let Some(ns) = self.names.number(self.connection, namespace)? else { return Ok(None) };
        let sql = "SELECT revision, spec, state, next_at FROM schedule WHERE ns = ?1 AND id = ?2";
        self.one(sql, params![ns, id.as_str()], |row| {
            Ok(Schedule {
                namespace: namespace.clone(),
                id: id.clone(),
                revision: Revision(decode::number(row, 0, "schedule.revision")?),
                spec: decode::bytes(row, 1)?.unwrap_or_default(),
                state: decode::bytes(row, 2)?.unwrap_or_default(),
                next_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
            })
        })
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Fault> {
        let ns = self.ns(&schedule.namespace)?;
        let sql = "INSERT OR REPLACE INTO schedule (ns, id, revision, spec, state, next_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let Schedule { id, revision, spec, state, next_at, .. } = schedule;
        let (spec, state) = (spec.as_ref(), state.as_ref());
        self.execute(sql, params![ns, id.as_str(), signed(revision.0), spec, state, time(*next_at)])?;
        Ok(())
    }
}

/// A generation's input: in the run's row if it is the first one's and small.
pub(super) fn input(connection: &Connection, ns: i64, run: &RunRow, generation: Generation) -> Result<Bytes, Fault> {
    if generation == Generation(0) {
        let mut statement = connection.prepare_cached("SELECT input FROM run WHERE row = ?1")?;
        if let Some(input) = statement.query_row([run.row], |row| decode::bytes(row, 0))? {
            return Ok(input);
        }
    }
    let sql = "SELECT input FROM run_input WHERE ns = ?1 AND run = ?2 AND generation = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let found =
        statement.query_row(params![ns, run.row, signed(generation.0)], |row| decode::bytes(row, 0)).optional()?;
    let missing =
        || StoreError::corrupt(format!("run {}", run.key), format!("the input of generation {generation} is gone"));
    Ok(found.flatten().ok_or_else(missing)?)
}
