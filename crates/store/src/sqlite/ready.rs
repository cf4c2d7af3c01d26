//! What is ready, by priority and namespace.

use std::collections::BTreeSet;

use outlast_core::id::QueueName;
use outlast_core::time::Timestamp;
use rusqlite::{Params, params};

use super::rows::SqliteRows;
use super::{decode, statements};
use crate::api::{ClaimTasks, Serves};
use crate::logic::turns::Ready;
use crate::logic::{claim, task};
use crate::rows::{Fault, Rows, RunRow, TaskRow};

/// Above every priority.
const TOP: i32 = 1 << 16;

fn above(below: Option<i16>) -> i32 {
    below.map_or(TOP, i32::from)
}

/// Ready runs that a claimer can drive.
pub(super) struct Runs<'r, 'c> {
    rows: &'r mut SqliteRows<'c>,
    serves: &'r Serves,
    /// Rows that cannot be read, and why.
    pub(super) corrupt: Vec<(i64, String)>,
}

impl<'r, 'c> Runs<'r, 'c> {
    pub(super) fn new(rows: &'r mut SqliteRows<'c>, serves: &'r Serves) -> Self {
        Runs { rows, serves, corrupt: Vec::new() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.rows.now()
    }

    /// Reads on until there are enough.
    pub(super) fn read(
        &mut self,
        sql: &str,
        params: impl Params,
        count: usize,
        serves: &Serves,
    ) -> Result<Vec<RunRow>, Fault> {
        let mut statement = self.rows.connection.prepare_cached(sql)?;
        let mut stored = statement.query(params)?;
        let mut found = Vec::new();
        while found.len() < count {
            let Some(row) = stored.next()? else { break };
            let namespace = self.rows.names.name(self.rows.connection, row.get(1)?);
            match namespace.and_then(|namespace| decode::run(row, namespace)) {
                Ok(run) if claim::serves(serves, &run) => found.push(run),
                Ok(_) => {}
                Err(error) => self.corrupt.push((row.get(0)?, error.to_string())),
            }
        }
        Ok(found)
    }
}

impl Ready for Runs<'_, '_> {
    type Item = RunRow;
    type Fault = Fault;

    fn priority(&mut self, below: Option<i16>) -> Result<Option<i16>, Fault> {
        self.rows.one(statements::READY_PRIORITY, [above(below)], |row| row.get(0))
    }

    fn namespaces(&mut self, priority: i16) -> Result<Vec<i64>, Fault> {
        steps(|from| self.rows.one(statements::READY_NAMESPACE, params![priority, from], |row| row.get(0)))
    }

    fn first(&mut self, priority: i16, namespace: i64, count: usize) -> Result<Vec<RunRow>, Fault> {
        self.read(statements::READY, params![priority, namespace], count, self.serves)
    }
}

/// From one number to the next that is there, without looking at what lies between.
fn steps(mut next: impl FnMut(i64) -> Result<Option<i64>, Fault>) -> Result<Vec<i64>, Fault> {
    let (mut found, mut from) = (Vec::new(), i64::MIN);
    while let Some(number) = next(from)? {
        found.push(number);
        from = number;
    }
    Ok(found)
}

/// Ready tasks that a claim asks for.
pub(super) struct Tasks<'r, 'c> {
    rows: &'r mut SqliteRows<'c>,
    claim: &'r ClaimTasks,
    queues: BTreeSet<&'r QueueName>,
}

impl<'r, 'c> Tasks<'r, 'c> {
    pub(super) fn new(rows: &'r mut SqliteRows<'c>, claim: &'r ClaimTasks) -> Self {
        Tasks { rows, claim, queues: claim.queues.iter().collect() }
    }
}

impl Ready for Tasks<'_, '_> {
    type Item = TaskRow;
    type Fault = Fault;

    fn priority(&mut self, below: Option<i16>) -> Result<Option<i16>, Fault> {
        let mut highest = None;
        for queue in &self.queues {
            let of_queue = params![queue.as_str(), above(below)];
            highest = highest.max(self.rows.one(statements::TASK_PRIORITY, of_queue, |row| row.get(0))?);
        }
        Ok(highest)
    }

    fn namespaces(&mut self, priority: i16) -> Result<Vec<i64>, Fault> {
        let mut found = Vec::new();
        for queue in &self.queues {
            let next = |from| {
                let after = params![queue.as_str(), priority, from];
                self.rows.one(statements::TASK_NAMESPACE, after, |row| row.get(0))
            };
            found.extend(steps(next)?);
        }
        if let Some(only) = &self.claim.namespace {
            let number = self.rows.names.number(self.rows.connection, only).map_err(Fault::from)?;
            found.retain(|found| Some(*found) == number);
        }
        Ok(found)
    }

    fn first(&mut self, priority: i16, namespace: i64, count: usize) -> Result<Vec<TaskRow>, Fault> {
        let mut first = Vec::new();
        for queue in &self.queues {
            let line = params![queue.as_str(), priority, namespace];
            let wanted = |task: &TaskRow| task::is_wanted(task, self.claim);
            first.extend(tasks(self.rows, statements::TASKS_READY, line, wanted, count)?);
        }
        if self.queues.len() > 1 {
            first.sort_by_key(task::order);
        }
        Ok(first)
    }
}

/// Tasks that are wanted, at most so many. One that cannot be read is set aside: it must not hold up its queue.
pub(super) fn tasks(
    rows: &mut SqliteRows<'_>,
    sql: &str,
    params: impl Params,
    wanted: impl Fn(&TaskRow) -> bool,
    count: usize,
) -> Result<Vec<TaskRow>, Fault> {
    let mut statement = rows.connection.prepare_cached(sql)?;
    let mut stored = statement.query(params)?;
    let (mut found, mut corrupt) = (Vec::new(), Vec::new());
    while found.len() < count {
        let Some(row) = stored.next()? else { break };
        let namespace = rows.names.name(rows.connection, row.get(0)?);
        match namespace.and_then(|namespace| decode::task(row, namespace)) {
            Ok(task) => found.extend(Some(task).filter(&wanted)),
            Err(_) => corrupt.push((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)),
        }
    }
    drop(stored);
    drop(statement);
    for (ns, id) in corrupt {
        let now = rows.now().as_millis();
        rows.execute(statements::BURY_TASK, params![ns, id, now])?;
    }
    Ok(found)
}
