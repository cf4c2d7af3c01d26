//! Questions, on the connections that only read.

use outlast_core::commit::{Snapshot, Status};
use outlast_core::id::{Generation, Index, LeaseId, Namespace, NodeId, Revision, RunId, RunKey, ScheduleId, TaskId};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use super::decode::{self, run_columns, task_columns};
use super::error::bad_value;
use super::names::Names;
use super::rows;
use super::statements;
use crate::api::{
    Awaited, Cursor, DueCursor, DueSchedules, EXCERPT_BYTES_MAX, Excerpt, Filter, LIST_PAGE_MAX, Lease, Load, LoadFrom,
    Loaded, Page, Schedule, TaskDetail, TaskFilter, TaskPage,
};
use crate::error::StoreError;
use crate::logic;
use crate::rows::{Fault, RunRow, TaskRow, WaitState, task_state_code};

/// One state of the database to ask.
pub(super) struct Query<'c> {
    pub(super) connection: &'c Connection,
    pub(super) names: &'c mut Names,
}

impl Query<'_> {
    fn run(&mut self, key: &RunKey) -> Result<(i64, RunRow), Fault> {
        let not_found = || Fault::Failed(StoreError::NotFound(key.clone()));
        let ns = self.names.number(self.connection, &key.namespace)?.ok_or_else(not_found)?;
        let mut statement = self.connection.prepare_cached(statements::RUN_BY_ID)?;
        let read = |row: &rusqlite::Row<'_>| decode::run(row, key.namespace.clone());
        let run = statement.query_row(params![ns, key.id.as_str()], read).optional();
        let run = run.map_err(|error| corrupt(key, error))?.ok_or_else(not_found)?;
        if run.deleted_at.is_some() {
            return Err(run.deleted().into());
        }
        Ok((ns, run))
    }

    pub(super) fn get(&mut self, key: &RunKey) -> Result<crate::api::RunView, Fault> {
        Ok(self.run(key)?.1.view())
    }

    /// Each run has its own answer: one that cannot be read does not touch the others.
    pub(super) fn load_all(&mut self, loads: &[Load]) -> Vec<Result<Loaded, StoreError>> {
        let load = |load: &Load| {
            self.load(load).map_err(|fault| match fault {
                Fault::Failed(error) => error,
                Fault::Miss => StoreError::corrupt("SQLite", "a row was asked for that SQLite does not fetch"),
            })
        };
        loads.iter().map(load).collect()
    }

    fn load(&mut self, load: &Load) -> Result<Loaded, Fault> {
        let (ns, run) = self.run(&load.run)?;
        let snapshot = match &load.from {
            LoadFrom::Index(_) => None,
            LoadFrom::Snapshot { definition } => self.snapshot(ns, &run, definition)?,
        };
        let first = match (&load.from, &snapshot) {
            (LoadFrom::Index(index), _) => *index,
            (LoadFrom::Snapshot { .. }, Some(snapshot)) => snapshot.index,
            (LoadFrom::Snapshot { .. }, None) => Index(0),
        };
        let events = self.events(ns, &run, run.generation, first, usize::MAX, usize::MAX)?;
        logic::check_contiguous(&run, first, events.len())?;
        let mut statement = self.connection.prepare_cached(statements::INBOX)?;
        let inbox = statement.query_map(params![ns, run.row], decode::inbox_item)?.collect::<Result<_, _>>();
        Ok(Loaded {
            generation: run.generation,
            input: rows::input(self.connection, ns, &run, run.generation)?,
            snapshot,
            first,
            events,
            inbox: inbox.map_err(|error| corrupt(&run.key, error))?,
            inbox_next: run.inbox_next,
            run: run.key,
        })
    }

    fn snapshot(&self, ns: i64, run: &RunRow, definition: &str) -> Result<Option<Snapshot>, Fault> {
        let sql = "SELECT idx, data FROM snapshot WHERE ns = ?1 AND run = ?2 AND generation = ?3 AND definition = ?4";
        let mut statement = self.connection.prepare_cached(sql)?;
        let generation = run.generation.0.cast_signed();
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Snapshot {
                index: Index(decode::number(row, 0, "snapshot.idx")?),
                definition: definition.to_owned(),
                data: decode::bytes(row, 1)?.unwrap_or_default(),
            })
        };
        Ok(statement.query_row(params![ns, run.row, generation, definition], read).optional()?)
    }

    /// One range scan; each index is checked as it comes off the disk.
    fn events(
        &self,
        ns: i64,
        run: &RunRow,
        generation: Generation,
        first: Index,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Record>, Fault> {
        let mut statement = self.connection.prepare_cached(statements::EVENTS_FROM)?;
        let (generation, from) = (generation.0.cast_signed(), i64::try_from(first.0).unwrap_or(i64::MAX));
        let limit = i64::try_from(events_max).unwrap_or(i64::MAX);
        let mut stored = statement.query(params![ns, run.row, generation, from, limit])?;
        let mut events = Vec::new();
        let (mut expected, mut bytes) = (from, 0);
        while bytes < bytes_max {
            let row = match stored.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(events),
                Err(error) => return Err(corrupt(&run.key, error)),
            };
            let index: i64 = row.get(0)?;
            if index != expected {
                let detail = format!("event {expected} is missing, the next one is {index}");
                return Err(StoreError::corrupt(format!("run {}", run.key), detail).into());
            }
            expected += 1;
            let record = decode::record(row, 1).map_err(|error| corrupt(&run.key, error))?;
            bytes += record.payload_bytes();
            events.push(record);
        }
        Ok(events)
    }

    pub(super) fn wakes(&mut self, lease: LeaseId, limit: usize) -> Result<Vec<RunKey>, Fault> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare_cached(statements::WOKEN)?;
        let mut stored = statement.query(params![lease.0.cast_signed(), limit])?;
        let mut woken = Vec::new();
        while let Some(row) = stored.next()? {
            let namespace = self.names.name(self.connection, row.get(0)?)?;
            let id: String = row.get(1)?;
            woken.push(RunKey::new(namespace, RunId::new(id).map_err(|error| bad_value("run.id", error))?));
        }
        Ok(woken)
    }

    pub(super) fn excerpt(&mut self, excerpt: &Excerpt) -> Result<Vec<Record>, Fault> {
        let (ns, run) = self.run(&excerpt.run)?;
        let generation = excerpt.generation.unwrap_or(run.generation);
        self.events(ns, &run, generation, excerpt.from, excerpt.events_max(), EXCERPT_BYTES_MAX)
    }

    pub(super) fn attributes(&mut self, key: &RunKey) -> Result<Vec<(String, String)>, Fault> {
        let (ns, run) = self.run(key)?;
        let sql = "SELECT name, value FROM attribute WHERE ns = ?1 AND run = ?2 ORDER BY name";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![ns, run.row], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn list(&mut self, filter: &Filter) -> Result<Page, Fault> {
        let limit = filter.limit.clamp(1, LIST_PAGE_MAX);
        let Some(ns) = self.names.number(self.connection, &filter.namespace)? else {
            return Ok(Page { runs: Vec::new(), next: None });
        };
        let (sql, values) = list_sql(ns, filter, limit + 1);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut stored = statement.query(params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = stored.next()? {
            // A row that cannot be read is left out: one bad run must not hide all the others.
            if let Ok(run) = decode::run(row, filter.namespace.clone()) {
                found.push(run);
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|run| Cursor(run.row.cast_unsigned()));
        Ok(Page { runs: found.iter().map(RunRow::view).collect(), next })
    }

    pub(super) fn count(&mut self, namespace: &Namespace) -> Result<Vec<(Status, u64)>, Fault> {
        let Some(ns) = self.names.number(self.connection, namespace)? else { return Ok(Vec::new()) };
        // One pass without sorting; a status nobody knows is in the total and in no part.
        let part = |status: &Status| format!(", count(*) FILTER (WHERE status = {})", status.code());
        let parts: String = Status::ALL.iter().map(part).collect();
        // tidy: constant sql
        let sql = format!("SELECT count(*){parts} FROM run WHERE ns = ?1 AND deleted_at IS NULL");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let (total, counts) = statement.query_row([ns], |row| {
            let counts =
                Status::ALL.iter().enumerate().map(|(at, status)| Ok((*status, decode::number(row, at + 1, "count")?)));
            Ok((decode::number(row, 0, "count")?, counts.collect::<rusqlite::Result<Vec<_>>>()?))
        })?;
        if counts.iter().map(|(_, count)| count).sum::<u64>() != total {
            return Err(StoreError::corrupt("run.status", "a run has a status this version does not know").into());
        }
        Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    pub(super) fn awaiting(&mut self, key: &RunKey) -> Result<Vec<Awaited>, Fault> {
        let (ns, run) = self.run(key)?;
        let timers = self.awaited_timers(ns, &run)?;
        let mut waits = Vec::new();
        for state in [WaitState::Open, WaitState::Answered] {
            let mut statement = self.connection.prepare_cached(statements::WAITS_IN_STATE)?;
            for wait in statement.query_map(params![ns, run.row, state.code()], decode::wait)? {
                waits.push(logic::awaited_wait(&wait?));
            }
        }
        logic::sort_awaited(&mut waits);
        let mut tasks: Vec<Awaited> =
            self.tasks_of(ns, &run)?.iter().filter_map(|task| logic::awaited_task(task, &run)).collect();
        logic::sort_awaited(&mut tasks);
        let mut children: Vec<Awaited> =
            self.children_of(ns, &run)?.iter().filter_map(|child| logic::awaited_child(child, &run)).collect();
        logic::sort_awaited(&mut children);
        Ok([timers, waits, tasks, children].concat())
    }

    fn awaited_timers(&self, ns: i64, run: &RunRow) -> Result<Vec<Awaited>, Fault> {
        let sql = "SELECT key, kind, due FROM timer WHERE ns = ?1 AND run = ?2 ORDER BY key, kind";
        let mut statement = self.connection.prepare_cached(sql)?;
        let timers = statement.query_map(params![ns, run.row], |row| decode::timer(row, 0))?;
        Ok(timers.map(|timer| timer.map(logic::awaited_timer)).collect::<Result<_, _>>()?)
    }

    fn tasks_of(&self, ns: i64, run: &RunRow) -> Result<Vec<TaskRow>, Fault> {
        let mut statement = self.connection.prepare_cached(statements::TASKS_OF)?;
        let read = |row: &rusqlite::Row<'_>| decode::task(row, run.key.namespace.clone());
        Ok(statement.query_map(params![ns, run.key.id.as_str()], read)?.collect::<Result<_, _>>()?)
    }

    fn children_of(&self, ns: i64, run: &RunRow) -> Result<Vec<RunRow>, Fault> {
        let mut statement = self.connection.prepare_cached(statements::CHILDREN_OF)?;
        let read = |row: &rusqlite::Row<'_>| decode::run(row, run.key.namespace.clone());
        Ok(statement.query_map(params![ns, run.key.id.as_str()], read)?.collect::<Result<_, _>>()?)
    }

    pub(super) fn task(&mut self, namespace: &Namespace, id: &TaskId) -> Result<TaskDetail, Fault> {
        let unknown = || Fault::Failed(StoreError::UnknownTask(id.clone()));
        let ns = self.names.number(self.connection, namespace)?.ok_or_else(unknown)?;
        let mut statement = self.connection.prepare_cached(statements::TASK_AT)?;
        let read = |row: &rusqlite::Row<'_>| decode::task(row, namespace.clone()).map(|task| task.detail());
        statement.query_row(params![ns, id.as_str()], read).optional()?.ok_or_else(unknown)
    }

    pub(super) fn tasks(&mut self, filter: &TaskFilter) -> Result<TaskPage, Fault> {
        let limit = filter.tasks_max();
        let Some(ns) = self.names.number(self.connection, &filter.namespace)? else {
            return Ok(TaskPage::of(Vec::new(), limit));
        };
        let (sql, values) = tasks_sql(ns, filter, limit + 1);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let read = |row: &rusqlite::Row<'_>| decode::task(row, filter.namespace.clone()).map(|task| task.view());
        let found = statement.query_map(params_from_iter(values), read)?.collect::<Result<_, _>>()?;
        Ok(TaskPage::of(found, limit))
    }

    pub(super) fn schedules(
        &mut self,
        namespace: &Namespace,
        only: Option<&ScheduleId>,
    ) -> Result<Vec<Schedule>, Fault> {
        let Some(ns) = self.names.number(self.connection, namespace)? else { return Ok(Vec::new()) };
        match only {
            None => self.schedules_where(statements::SCHEDULES, params![ns]),
            Some(id) => self.schedules_where(statements::SCHEDULE, params![ns, id.as_str()]),
        }
    }

    pub(super) fn due_schedules(
        &mut self,
        now: Timestamp,
        after: Option<&DueCursor>,
        limit: usize,
    ) -> Result<DueSchedules, Fault> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let schedules = match after {
            None => self.schedules_where(statements::SCHEDULES_DUE, params![now.as_millis(), limit])?,
            Some(DueCursor { next_at, namespace, id }) => {
                let place = params![now.as_millis(), limit, next_at.as_millis(), namespace.as_str(), id.as_str()];
                self.schedules_where(statements::SCHEDULES_DUE_AFTER, place)?
            }
        };
        let mut next = self.connection.prepare_cached(statements::SCHEDULE_NEXT)?;
        let next: Option<i64> = next.query_row(params![now.as_millis()], |row| row.get(0))?;
        Ok(DueSchedules { schedules, next_due: next.map(Timestamp::from_millis), now })
    }

    fn schedules_where(&mut self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Schedule>, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut stored = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = stored.next()? {
            let namespace = self.names.name(self.connection, row.get(0)?)?;
            let id: String = row.get(1)?;
            found.push(Schedule {
                namespace,
                id: ScheduleId::new(id).map_err(|error| bad_value("schedule.id", error))?,
                revision: Revision(decode::number(row, 2, "schedule.revision")?),
                spec: decode::bytes(row, 3)?.unwrap_or_default(),
                state: decode::bytes(row, 4)?.unwrap_or_default(),
                next_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis),
            });
        }
        Ok(found)
    }

    pub(super) fn secret(&mut self) -> Result<[u8; 32], Fault> {
        let sql = "SELECT value FROM secret WHERE id = 1";
        Ok(self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    pub(super) fn leases(&mut self, now: Timestamp) -> Result<Vec<Lease>, Fault> {
        let mut statement = self.connection.prepare_cached("SELECT id, node, until FROM lease ORDER BY id")?;
        let leases = statement.query_map([], |row| {
            Ok(Lease {
                id: LeaseId(row.get::<_, i64>(0)?.unsigned_abs()),
                node: NodeId::new(row.get::<_, String>(1)?).map_err(|error| bad_value("lease.node", error))?,
                until: Timestamp::from_millis(row.get(2)?),
                now,
            })
        })?;
        Ok(leases.collect::<Result<_, _>>()?)
    }

    pub(super) fn namespaces(&mut self) -> Result<Vec<Namespace>, Fault> {
        let mut statement = self.connection.prepare_cached("SELECT name FROM namespace ORDER BY name")?;
        let names = statement.query_map([], |row| {
            Namespace::new(row.get::<_, String>(0)?).map_err(|error| bad_value("namespace.name", error))
        })?;
        Ok(names.collect::<Result<_, _>>()?)
    }
}

fn corrupt(key: &RunKey, error: rusqlite::Error) -> Fault {
    match Fault::from(error) {
        Fault::Failed(StoreError::Corrupt { detail, .. }) => {
            Fault::Failed(StoreError::corrupt(format!("run {key}"), detail))
        }
        other => other,
    }
}

/// A listing's statement and its values. Only fixed pieces are joined; every value is bound.
pub(super) fn list_sql(ns: i64, filter: &Filter, limit: usize) -> (String, Vec<Value>) {
    let mut values = vec![Value::Integer(ns)];
    let mut sql = String::from(concat!("SELECT ", run_columns!(), " FROM run WHERE ns = ? AND deleted_at IS NULL"));
    let mut add = |piece: &str, bound: Vec<Value>| {
        sql.push_str(piece);
        values.extend(bound);
    };
    let text = |text: &str| vec![Value::Text(text.to_owned())];
    if !filter.status.is_empty() {
        // The named range lets the planner take the index over live or over failed rows.
        if filter.status.iter().all(|status| !status.is_terminal()) {
            add(" AND status < 5", vec![]);
        } else if filter.status.iter().all(|status| matches!(status, Status::Failed | Status::Cancelled)) {
            add(" AND status > 5", vec![]);
        }
        let marks = vec!["?"; filter.status.len()].join(", ");
        let codes = filter.status.iter().map(|status| Value::Integer(status.code().into())).collect();
        add(" AND status IN (", vec![]);
        add(&marks, codes);
        add(")", vec![]);
    }
    if let Some(workflow) = &filter.workflow {
        add(" AND workflow = ?", text(workflow.as_str()));
    }
    if let Some(version) = &filter.version {
        add(" AND version = ?", text(version.as_str()));
    }
    if let Some(prefix) = &filter.id_prefix {
        let length = Value::Integer(i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX));
        add(" AND substr(id, 1, ?) = ?", vec![length, Value::Text(prefix.clone())]);
    }
    if let Some(from) = filter.created_from {
        add(" AND created_at >= ?", vec![Value::Integer(from.as_millis())]);
    }
    if let Some(until) = filter.created_until {
        add(" AND created_at < ?", vec![Value::Integer(until.as_millis())]);
    }
    if let Some(parent) = &filter.parent {
        add(" AND parent = ?", text(parent.as_str()));
    }
    if let Some((name, value)) = &filter.attribute {
        let found = " AND EXISTS (SELECT 1 FROM attribute a WHERE a.ns = run.ns AND a.run = run.row AND a.name = ? AND a.value = ?)";
        add(found, vec![Value::Text(name.to_string()), Value::Text(value.clone())]);
    }
    if let Some(Cursor(after)) = filter.after {
        add(" AND row < ?", vec![Value::Integer(i64::try_from(after).unwrap_or(i64::MAX))]);
    }
    add(" ORDER BY row DESC LIMIT ?", vec![Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX))]);
    (sql, values)
}

/// As [`list_sql`], for tasks.
fn tasks_sql(ns: i64, filter: &TaskFilter, limit: usize) -> (String, Vec<Value>) {
    let mut values = vec![Value::Integer(ns)];
    let mut sql = String::from(concat!("SELECT ", task_columns!(), " FROM task WHERE ns = ?"));
    let mut add = |piece: &str, bound: Vec<Value>| {
        sql.push_str(piece);
        values.extend(bound);
    };
    let text = |text: &str| vec![Value::Text(text.to_owned())];
    if !filter.state.is_empty() {
        let marks = vec!["?"; filter.state.len()].join(", ");
        let codes = filter.state.iter().map(|state| Value::Integer(task_state_code(*state).into())).collect();
        add(" AND state IN (", vec![]);
        add(&marks, codes);
        add(")", vec![]);
    }
    if let Some(queue) = &filter.queue {
        add(" AND queue = ?", text(queue.as_str()));
    }
    if let Some(name) = &filter.name {
        add(" AND name = ?", text(name.as_str()));
    }
    if let Some(origin) = &filter.origin {
        add(" AND origin = ?", text(origin.as_str()));
    }
    if let Some(after) = &filter.after {
        add(" AND id > ?", text(after.as_str()));
    }
    add(" ORDER BY id LIMIT ?", vec![Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX))]);
    (sql, values)
}
