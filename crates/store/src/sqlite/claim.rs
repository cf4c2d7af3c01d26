//! Who may be claimed. The order is the reference store's: held, some of the orphaned, ready, the other orphaned.

use std::time::Duration;

use outlast_core::commit::{Delivery, InboxItem, TimerRef};
use outlast_core::id::{LeaseId, NodeId, RunId, RunKey};
use outlast_core::limits::{CLAIM_BATCH_MAX, Limits};
use outlast_core::time::Timestamp;
use rusqlite::params;

use super::rows::SqliteRows;
use super::{decode, ready, statements};
use crate::api::{Claim, ClaimTasks, Claimed, ClaimedTask, DeliveredAndClaimed, Lease, Pick, Serves, Swept};
use crate::error::StoreError;
use crate::logic::turns::{self, Round, Turns};
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

/// Items, and bytes of them, that are read with a claim. Others wait for this: what is more is loaded beside it.
const INBOX_MAX: usize = 256;
const INBOX_BYTES_MAX: usize = 64 * 1_024;

/// The same, with inboxes: for one who is likely to have the programs.
fn claim_with_inboxes(rows: &mut SqliteRows<'_>, claim: &Claim) -> Answer<Vec<Claimed>> {
    let mut claimed = self::claim(rows, claim)?;
    for claimed in &mut claimed {
        claimed.inbox = small_inbox(rows, &claimed.run)?;
    }
    Ok(claimed)
}

/// A run's inbox, if it is small; none, too, if it cannot be read: whoever loads it is told why.
fn small_inbox(rows: &mut SqliteRows<'_>, run: &RunKey) -> Result<Option<Vec<InboxItem>>, Fault> {
    let ns = rows.ns(&run.namespace)?;
    rows.with(statements::INBOX_OF, |statement| {
        let mut stored = statement.query(params![ns, run.id.as_str()])?;
        let (mut items, mut bytes) = (Vec::new(), 0);
        while let Some(row) = stored.next()? {
            let Ok(item) = decode::inbox_item(row) else { return Ok(None) };
            let large = [&item.meta, &item.payload].into_iter().flatten().map(|part| part.len()).sum::<usize>();
            bytes += large;
            if items.len() == INBOX_MAX || bytes > INBOX_BYTES_MAX {
                return Ok(None);
            }
            items.push(item);
        }
        Ok(Some(items))
    })
}

/// What came of tasks, and a claim of what that made ready.
pub(super) fn deliver_and_claim(
    rows: &mut SqliteRows<'_>,
    deliveries: &[Delivery],
    claim: &Claim,
    limits: &Limits,
) -> Result<DeliveredAndClaimed, Fault> {
    if deliveries.iter().all(|delivery| matches!(delivery, Delivery::Task { .. })) {
        // The end of a task changes the row of its run, and asks for runs by their names only.
        rows.write_runs_later();
    }
    let each = deliveries.iter().map(|delivery| super::answer(logic::deliver::deliver(rows, delivery, limits)));
    let delivered = each.collect::<Result<Vec<_>, _>>()?;
    match claim.pick {
        // Asked for by its name, too.
        Pick::Run(_) => {}
        Pick::Ready | Pick::Seize(_) => rows.write_runs()?,
    }
    let claimed = super::answer(claim_with_inboxes(rows, claim))?;
    rows.write_runs()?;
    Ok(DeliveredAndClaimed { delivered, claimed: Some(claimed) })
}

fn candidates(rows: &mut SqliteRows<'_>, claim: &Claim) -> Result<Vec<RunRow>, Fault> {
    let limit = claim.limit.min(CLAIM_BATCH_MAX);
    let mut turns = std::mem::take(&mut rows.names.turns);
    let mut search = ready::Runs::new(rows, &claim.serves);
    let found = find(&mut search, &mut turns, claim, limit);
    let corrupt = search.corrupt;
    rows.names.turns = turns;
    for (row, why) in corrupt {
        // A row nobody can read must not stop everybody: it parks, and says why.
        let why = format!("the run's row cannot be read: {why}");
        rows.execute(statements::PARK_CORRUPT, params![row, why, rows.now().as_millis()])?;
    }
    found
}

fn find(
    search: &mut ready::Runs<'_, '_>,
    turns: &mut Turns,
    claim: &Claim,
    limit: usize,
) -> Result<Vec<RunRow>, Fault> {
    let held = params![claim.lease.0.cast_signed(), claim.id.0.cast_signed(), signed(limit)];
    let mut found = search.read(statements::HELD, held, limit, &Serves::Everything)?;
    let (room, now) = (limit - found.len(), search.now().as_millis());
    let mut orphans = search.read(statements::ORPHANED, [now], room, &claim.serves)?.into_iter();
    found.extend(orphans.by_ref().take(logic::claim::for_orphans(room)));
    found.extend(turns::take(search, turns, Round::Runs, limit - found.len())?);
    found.extend(orphans.take(limit - found.len()));
    Ok(found)
}

fn signed(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn claim_tasks(rows: &mut SqliteRows<'_>, claim: &ClaimTasks) -> Answer<Vec<ClaimedTask>> {
    let limit = claim.limit.min(CLAIM_BATCH_MAX);
    let mut claimed = Vec::new();
    if logic::task::asks_nobody(rows, claim)? {
        return Ok(claimed);
    }
    promote_tasks(rows, claim)?;
    for task in task_candidates(rows, claim, limit)? {
        claimed.extend(logic::task::take(rows, &task, claim)?);
    }
    Ok(claimed)
}

/// Makes those ready whose time has come.
fn promote_tasks(rows: &mut SqliteRows<'_>, claim: &ClaimTasks) -> Result<(), Fault> {
    let now = rows.now().as_millis();
    for queue in &claim.queues {
        let ended = params![queue.as_str(), now, signed(logic::task::PROMOTE_MAX)];
        for task in ready::tasks(rows, statements::TASKS_ENDED, ended, |_| true, usize::MAX)? {
            rows.put_task(&logic::task::promoted(&task))?;
        }
    }
    Ok(())
}

fn task_candidates(rows: &mut SqliteRows<'_>, claim: &ClaimTasks, limit: usize) -> Result<Vec<TaskRow>, Fault> {
    let wanted = |task: &TaskRow| logic::task::is_wanted(task, claim);
    let held = params![claim.worker.as_str(), claim.id.0.cast_signed(), rows.now().as_millis()];
    let mut found = ready::tasks(rows, statements::TASKS_HELD, held, wanted, limit)?;
    found.sort_by_key(logic::task::order);
    let mut turns = std::mem::take(&mut rows.names.turns);
    let round = |priority| Round::of(claim, priority);
    let taken = turns::take(&mut ready::Tasks::new(rows, claim), &mut turns, round, limit - found.len());
    rows.names.turns = turns;
    found.extend(taken?);
    Ok(found)
}

pub(super) fn sweep(rows: &mut SqliteRows<'_>, limit: usize) -> Answer<Swept> {
    let now = rows.now();
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let due = rows.many(statements::TIMERS_DUE, params![now.as_millis(), most], |row| {
        Ok((row.get::<_, i64>(0)?, decode::timer(row, 1)?))
    })?;
    let full = due.len() == limit;
    let late = due.first().map_or(Duration::ZERO, |(_, timer)| now.since(timer.due));
    let mut fired = 0;
    for (row, timer) in due {
        fired += usize::from(fire(rows, row, &timer.timer)?);
    }
    forget_leases(rows, now)?;
    let first = rows.one("SELECT min(due) FROM timer", [], |row| row.get::<_, Option<i64>>(0))?;
    let next_due = first.flatten().map(Timestamp::from_millis);
    Ok(Swept { now, fired, late, next_due, more: full && next_due.is_some_and(|due| due <= now) })
}

fn fire(rows: &mut SqliteRows<'_>, row: i64, timer: &TimerRef) -> Answer<bool> {
    let key = rows.one("SELECT ns, id FROM run WHERE row = ?1", [row], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let Some((ns, id)) = key else {
        // There is nobody to tell, and nobody else would ever remove it.
        rows.execute("DELETE FROM timer WHERE run = ?1", [row])?;
        return Ok(false);
    };
    let namespace = rows.names.name(rows.connection, ns).map_err(Fault::from)?;
    match RunId::new(id) {
        Ok(id) => logic::deliver::fire_timer(rows, &RunKey::new(namespace, id), timer),
        Err(_) => Ok(false),
    }
}
