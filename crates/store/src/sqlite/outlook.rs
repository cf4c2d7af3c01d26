//! What there is to do, as one question.

use outlast_core::id::QueueName;
use outlast_core::time::Timestamp;
use rusqlite::params;

use super::admit::NEXT_FRESH;
use super::decode;
use super::error::bad_value;
use super::query::Query;
use crate::api::{Depths, Outlook};
use crate::rows::{Fault, task_state_from_code};

pub(super) const RUN: &str = "SELECT 1 FROM run WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3 LIMIT 1";
pub(super) const ORPHAN: &str =
    "SELECT 1 FROM lease l WHERE l.until <= ?1 AND EXISTS (SELECT 1 FROM run r WHERE r.owner = l.id) LIMIT 1";
pub(super) const TIMER: &str = "SELECT due FROM timer ORDER BY due LIMIT 1";
pub(super) const ENDED: &str = "SELECT 1 FROM slot WHERE done LIMIT 1";
pub(super) const GATE: &str = "SELECT look_at FROM gate WHERE look_at IS NOT NULL ORDER BY look_at LIMIT 1";
pub(super) const WAITING: &str = "SELECT 1 FROM held WHERE gate IS NOT NULL LIMIT 1";
pub(super) const READY_TASK: &str = "SELECT 1 FROM task WHERE queue = ?1 AND state = 0 LIMIT 1";
pub(super) const NEXT_TASK: &str =
    "SELECT until FROM task WHERE queue = ?1 AND until IS NOT NULL ORDER BY until LIMIT 1";

const READY_RUNS: &str =
    "SELECT count(*), min(ready_at) FROM run WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3";
/// What can be claimed is ready, whatever its row says.
const QUEUES: &str = "SELECT queue, CASE WHEN until <= ?1 THEN 0 ELSE state END AS stands, count(*), \
     min(CASE WHEN until <= ?1 THEN until ELSE available_at END) FROM task GROUP BY queue, stands ORDER BY queue, stands";

impl Query<'_> {
    pub(super) fn depths(&mut self, now: Timestamp) -> Result<Depths, Fault> {
        let mut runs = self.connection.prepare_cached(READY_RUNS)?;
        let (ready, oldest) =
            runs.query_row([], |row| Ok((decode::number(row, 0, "count")?, row.get::<_, Option<i64>>(1)?)))?;
        let mut depths = Depths { now, ready, oldest: oldest.map(Timestamp::from_millis), queues: Vec::new() };
        let mut queues = self.connection.prepare_cached(QUEUES)?;
        let mut rows = queues.query([now.as_millis()])?;
        while let Some(row) = rows.next()? {
            let queue = QueueName::new(row.get::<_, String>(0)?).map_err(|error| bad_value("task.queue", error))?;
            let Some(state) = task_state_from_code(row.get(1)?) else { continue };
            let oldest = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
            depths.add(queue, state, decode::number(row, 2, "count")?, oldest);
        }
        Ok(depths)
    }

    pub(super) fn outlook(&mut self, now: Timestamp, queues: &[QueueName]) -> Result<Outlook, Fault> {
        let ended = self.first(ENDED, [])?.is_some();
        let held = self.first(NEXT_FRESH, [])?.into_iter().chain(self.first(GATE, [])?).min();
        let mut task = None;
        for queue in queues {
            let ready = self.first(READY_TASK, [queue.as_str()])?.map(|_| now.as_millis());
            let next = if ready.is_some() { ready } else { self.first(NEXT_TASK, [queue.as_str()])? };
            let next = next.map(|at| at.max(now.as_millis()));
            task = task.into_iter().chain(next).min();
        }
        Ok(Outlook {
            now,
            runs: self.first(RUN, [])?.is_some() || self.first(ORPHAN, params![now.as_millis()])?.is_some(),
            timer: self.first(TIMER, [])?.map(Timestamp::from_millis),
            held: if ended { Some(now) } else { held.map(Timestamp::from_millis) },
            waiting: self.first(WAITING, [])?.is_some(),
            task: task.map(Timestamp::from_millis),
        })
    }

    /// The number in the first row, if there is one.
    fn first(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<i64>, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
    }
}
