//! Deleting what has ended, in bounded steps: mark, purge, forget. See the reference store's module of the same name.

use std::time::Duration;

use outlast_core::id::{RunId, RunKey};
use outlast_core::limits::TOMBSTONE_DAYS;
use outlast_core::time::{Timestamp, millis};
use rusqlite::{Params, params};

use super::rows::SqliteRows;
use super::{decode, statements};
use crate::api::{Retained, Retention};
use crate::error::StoreError;
use crate::logic::{Halt, live_row, refuse};
use crate::rows::{Fault, Rows, RunRow};

/// A run's rows outside its own, largest table first.
const PURGES: [&str; 6] = [
    "DELETE FROM event WHERE ns = ?1 AND run = ?2 AND (generation, idx) IN \
     (SELECT generation, idx FROM event WHERE ns = ?1 AND run = ?2 LIMIT ?3)",
    "DELETE FROM delivered WHERE ns = ?1 AND run = ?2 AND id IN \
     (SELECT id FROM delivered WHERE ns = ?1 AND run = ?2 LIMIT ?3)",
    "DELETE FROM inbox WHERE ns = ?1 AND run = ?2 AND id IN (SELECT id FROM inbox WHERE ns = ?1 AND run = ?2 LIMIT ?3)",
    "DELETE FROM attribute WHERE ns = ?1 AND run = ?2 AND name IN \
     (SELECT name FROM attribute WHERE ns = ?1 AND run = ?2 LIMIT ?3)",
    "DELETE FROM run_input WHERE ns = ?1 AND run = ?2 AND generation IN \
     (SELECT generation FROM run_input WHERE ns = ?1 AND run = ?2 LIMIT ?3)",
    "DELETE FROM snapshot WHERE ns = ?1 AND run = ?2 AND ?3 > 0",
];

pub(super) fn delete(rows: &mut SqliteRows<'_>, key: &RunKey, reason: &str) -> Result<(), Halt<StoreError>> {
    let run = live_row(rows, key)?;
    if !run.status.is_terminal() {
        return refuse(StoreError::Live(key.clone()));
    }
    let ns = rows.ns(&key.namespace)?;
    let live = rows.one(statements::LIVE_MEMBER, params![ns, key.id.as_str()], |row| row.get::<_, String>(0))?;
    if let Some(live) = live.and_then(|id| RunId::new(id).ok()) {
        return refuse(StoreError::Live(RunKey::new(key.namespace.clone(), live)));
    }
    mark_deleted(rows, &run, Some(reason.to_owned()))?;
    Ok(())
}

fn mark_deleted(rows: &mut SqliteRows<'_>, run: &RunRow, reason: Option<String>) -> Result<(), Fault> {
    let after = RunRow { deleted_at: Some(rows.now()), note: reason, side: true, ..run.clone() };
    rows.update_run(run, &after)
}

pub(super) fn retain(rows: &mut SqliteRows<'_>, retention: Retention) -> Result<Retained, Fault> {
    let now = rows.now();
    let cutoff = now.as_millis().saturating_sub(millis(retention.age));
    let limit = i64::try_from(retention.limit).unwrap_or(i64::MAX);
    let mut retained = Retained::default();
    retained.runs += mark_all(rows, statements::RIPE, params![cutoff, limit])?;
    retained.runs += mark_all(rows, statements::DOOMED_MEMBERS, [limit])?;
    purge(rows, limit, &mut retained)?;
    retained.rows += rows.execute(statements::BURY_OLD, params![cutoff, limit])?;
    retained.rows += forget(rows, now, limit)?;
    retained.rows += super::admit::forget_windows(rows, now, limit)?;
    retained.rows += super::workers::forget(rows, now, limit)?;
    retained.rows += super::workers::forget_replies(rows, now, limit)?;
    retained.more = retained.runs > 0 || retained.rows > 0;
    Ok(retained)
}

fn mark_all(rows: &mut SqliteRows<'_>, sql: &str, params: impl Params) -> Result<usize, Fault> {
    let doomed = runs(rows, sql, params)?;
    for run in &doomed {
        mark_deleted(rows, run, None)?;
    }
    Ok(doomed.len())
}

fn runs(rows: &mut SqliteRows<'_>, sql: &str, params: impl Params) -> Result<Vec<RunRow>, Fault> {
    let mut statement = rows.connection.prepare_cached(sql)?;
    let mut stored = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = stored.next()? {
        let namespace = rows.names.name(rows.connection, row.get(1)?)?;
        found.push(decode::run(row, namespace)?);
    }
    Ok(found)
}

fn purge(rows: &mut SqliteRows<'_>, limit: i64, retained: &mut Retained) -> Result<(), Fault> {
    let mut budget = limit;
    for run in runs(rows, statements::DOOMED, [limit])? {
        let ns = rows.ns(&run.key.namespace)?;
        for sql in PURGES {
            let removed = rows.execute(sql, params![ns, run.row, budget])?;
            retained.rows += removed;
            budget -= i64::try_from(removed).unwrap_or(i64::MAX);
            if budget <= 0 {
                return Ok(());
            }
        }
        let removed = rows.execute(statements::BURY_OF, params![ns, run.key.id.as_str(), budget])?;
        retained.rows += removed;
        budget -= i64::try_from(removed).unwrap_or(i64::MAX);
        if budget <= 0 {
            return Ok(());
        }
        rows.execute("UPDATE run SET input = NULL, side = 0 WHERE row = ?1", [run.row])?;
        retained.rows += 1;
    }
    Ok(())
}

/// Tombstones past their age, whose rows are gone. The top of a tree stays until every member is marked: it is what
/// dooms them.
fn forget(rows: &SqliteRows<'_>, now: Timestamp, limit: i64) -> Result<usize, Fault> {
    let age = Duration::from_secs(TOMBSTONE_DAYS * 24 * 60 * 60);
    let cutoff = now.as_millis().saturating_sub(millis(age));
    rows.execute(statements::FORGET, params![cutoff, limit])
}
