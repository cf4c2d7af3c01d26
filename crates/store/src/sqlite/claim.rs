//! Who may be claimed. The order is the reference store's: held, ready, orphaned.

use outlast_core::commit::TimerRef;
use outlast_core::id::{ClaimId, LeaseId, NodeId, RunId, RunKey};
use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_core::time::Timestamp;
use rusqlite::{Params, params};

use super::rows::SqliteRows;
use super::{decode, statements};
use crate::api::{Claim, ClaimTasks, Claimed, ClaimedTask, Lease, Pick, Serves, Swept};
use crate::error::StoreError;
use crate::logic::{self, Halt};
use crate::rows::{Fault, Rows, RunRow, TaskRow};

type Answer<T> = Result<T, Halt<StoreError>>;

pub(super) fn register(rows: &mut SqliteRows<'_>, node: &NodeId, lease: std::time::Duration) -> Answer<Lease> {
    let now = rows.now();
    let until = now + lease;
    // Ended for good, also if the clock steps back.
    rows.execute("UPDATE lease SET until = 0 WHERE node = ?1", [node.as_str()])?;
    rows.execute("INSERT INTO lease (node, until) VALUES (?1, ?2)", params![node.as_str(), until.as_millis()])?;
    let id = LeaseId(rows.connection.last_insert_rowid().cast_unsigned());
    forget_leases(rows, now)?;
    Ok(Lease { id, node: node.clone(), until, now })
}

/// Leases that are over and own nothing are of no use to anybody.
fn forget_leases(rows: &SqliteRows<'_>, now: Timestamp) -> Result<(), Fault> {
    let sql = "DELETE FROM lease WHERE until <= ?1 AND NOT EXISTS (SELECT 1 FROM run WHERE owner = lease.id)";
    rows.execute(sql, [now.as_millis()])?;
    Ok(())
}

pub(super) fn renew(rows: &mut SqliteRows<'_>, lease: LeaseId, duration: std::time::Duration) -> Answer<Lease> {
    logic::claim::check_lease(rows, lease)?;
    let now = rows.now();
    let until = now + duration;
    let id = lease.0.cast_signed();
    rows.execute("UPDATE lease SET until = ?2 WHERE id = ?1", params![id, until.as_millis()])?;
    let node = rows.one("SELECT node FROM lease WHERE id = ?1", [id], |row| row.get::<_, String>(0))?;
    let node = NodeId::new(node.unwrap_or_default());
    let node = node.map_err(|error| Fault::from(StoreError::corrupt("a lease", error.to_string())))?;
    Ok(Lease { id: lease, node, until, now })
}

pub(super) fn retire(rows: &mut SqliteRows<'_>, lease: LeaseId) -> Answer<()> {
    rows.execute("UPDATE lease SET until = 0 WHERE id = ?1", [lease.0.cast_signed()])?;
    Ok(())
}

pub(super) fn claim(rows: &mut SqliteRows<'_>, claim: &Claim) -> Answer<Vec<Claimed>> {
    logic::claim::check_lease(rows, claim.lease)?;
    match &claim.pick {
        Pick::Run(key) | Pick::Seize(key) => Ok(logic::claim::claim_named(rows, key, claim)?.into_iter().collect()),
        Pick::Ready => {
            let mut claimed = Vec::new();
            for run in candidates(rows, claim)? {
                claimed.extend(logic::claim::take_over(rows, &run, claim)?);
            }
            Ok(claimed)
        }
    }
}

fn candidates(rows: &mut SqliteRows<'_>, claim: &Claim) -> Result<Vec<RunRow>, Fault> {
    let mut found = Candidates { limit: claim.limit.min(CLAIM_BATCH_MAX), runs: Vec::new(), corrupt: Vec::new() };
    let ClaimId(id) = claim.id;
    let lease = claim.lease.0.cast_signed();
    let limit = i64::try_from(found.limit).unwrap_or(i64::MAX);
    found.read(rows, statements::HELD, params![lease, id.cast_signed(), limit], &Serves::Everything)?;
    found.read(rows, statements::READY, [], &claim.serves)?;
    found.read(rows, statements::ORPHANED, [rows.now().as_millis()], &claim.serves)?;
    for (row, why) in found.corrupt {
        // A row nobody can read must not stop everybody: it parks, and says why.
        rows.execute(statements::PARK_CORRUPT, params![row, format!("the run's row cannot be read: {why}")])?;
    }
    Ok(found.runs)
}

struct Candidates {
    limit: usize,
    runs: Vec<RunRow>,
    corrupt: Vec<(i64, String)>,
}

impl Candidates {
    /// Reads on until there are enough.
    fn read(
        &mut self,
        rows: &mut SqliteRows<'_>,
        sql: &str,
        params: impl Params,
        serves: &Serves,
    ) -> Result<(), Fault> {
        if self.runs.len() >= self.limit {
            return Ok(());
        }
        let mut statement = rows.connection.prepare_cached(sql)?;
        let mut stored = statement.query(params)?;
        while self.runs.len() < self.limit {
            let Some(row) = stored.next()? else { break };
            let namespace = rows.names.name(rows.connection, row.get(1)?);
            match namespace.and_then(|namespace| decode::run(row, namespace)) {
                Ok(run) if logic::claim::serves(serves, &run) => self.runs.push(run),
                Ok(_) => {}
                Err(error) => self.corrupt.push((row.get(0)?, error.to_string())),
            }
        }
        Ok(())
    }
}

pub(super) fn claim_tasks(rows: &mut SqliteRows<'_>, claim: &ClaimTasks) -> Answer<Vec<ClaimedTask>> {
    let limit = claim.limit.min(CLAIM_BATCH_MAX);
    let mut claimed = Vec::new();
    for task in task_candidates(rows, claim, limit)? {
        claimed.extend(logic::task::take(rows, &task, claim)?);
    }
    Ok(claimed)
}

fn task_candidates(rows: &mut SqliteRows<'_>, claim: &ClaimTasks, limit: usize) -> Result<Vec<TaskRow>, Fault> {
    let now = rows.now().as_millis();
    let held = params![claim.worker.as_str(), claim.id.0.cast_signed(), now];
    let mut found = tasks(rows, statements::TASKS_HELD, held, claim, limit)?;
    if found.len() < limit {
        let mut more = Vec::new();
        // Those whose worker fell silent take their old place.
        for sql in [statements::TASKS_READY, statements::TASKS_SILENT] {
            for queue in &claim.queues {
                more.extend(tasks(rows, sql, params![queue.as_str(), now], claim, limit)?);
            }
        }
        more.sort_by_key(|task| {
            (-i32::from(task.priority), task.available_at, task.id.clone(), task.namespace.clone())
        });
        found.extend(more);
    }
    found.truncate(limit);
    Ok(found)
}

fn tasks(
    rows: &mut SqliteRows<'_>,
    sql: &str,
    params: impl Params,
    claim: &ClaimTasks,
    limit: usize,
) -> Result<Vec<TaskRow>, Fault> {
    let mut statement = rows.connection.prepare_cached(sql)?;
    let mut stored = statement.query(params)?;
    let mut found = Vec::new();
    while found.len() < limit {
        let Some(row) = stored.next()? else { break };
        let namespace = rows.names.name(rows.connection, row.get(0)?)?;
        let task = decode::task(row, namespace)?;
        let wanted = claim.queues.contains(&task.queue) && (claim.names.is_empty() || claim.names.contains(&task.name));
        if wanted {
            found.push(task);
        }
    }
    Ok(found)
}

pub(super) fn sweep(rows: &mut SqliteRows<'_>, limit: usize) -> Answer<Swept> {
    let now = rows.now();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let due = rows.many(statements::TIMERS_DUE, params![now.as_millis(), limit], |row| {
        Ok((row.get::<_, i64>(0)?, decode::timer(row, 1)?.timer))
    })?;
    let mut fired = 0;
    for (row, timer) in due {
        fired += usize::from(fire(rows, row, &timer)?);
    }
    forget_leases(rows, now)?;
    let first = rows.one("SELECT min(due) FROM timer", [], |row| row.get::<_, Option<i64>>(0))?;
    let next_due = first.flatten().map(Timestamp::from_millis);
    Ok(Swept { now, fired, next_due, more: next_due.is_some_and(|due| due <= now) })
}

fn fire(rows: &mut SqliteRows<'_>, row: i64, timer: &TimerRef) -> Answer<bool> {
    let key = rows.one("SELECT ns, id FROM run WHERE row = ?1", [row], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let Some((ns, id)) = key else { return Ok(false) };
    let namespace = rows.names.name(rows.connection, ns).map_err(Fault::from)?;
    match RunId::new(id) {
        Ok(id) => logic::deliver::fire_timer(rows, &RunKey::new(namespace, id), timer),
        Err(_) => Ok(false),
    }
}
