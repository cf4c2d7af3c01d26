//! Who offers to drive what.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast_core::id::{RunKey, Version, WorkflowName};
use rusqlite::{Params, params};

use super::rows::SqliteRows;
use super::{decode, ready, statements};
use crate::api::Serves;
use crate::error::StoreError;
use crate::logic::Halt;
use crate::logic::serve::{UNSERVED_SCAN_MAX, before, forgotten, is_overdue, park};
use crate::logic::turns::Ready;
use crate::rows::{Fault, Rows, RunRow};

type Answer<T> = Result<T, Halt<StoreError>>;

pub(super) fn announce(rows: &mut SqliteRows<'_>, serves: &[(WorkflowName, Version)]) -> Answer<()> {
    let now = rows.now().as_millis();
    for (workflow, version) in serves {
        rows.execute(statements::ANNOUNCE, params![workflow.as_str(), version.as_str(), now])?;
    }
    Ok(())
}

pub(super) fn park_unserved(rows: &mut SqliteRows<'_>, grace: Duration, limit: usize) -> Answer<Vec<RunKey>> {
    let mut parked = Vec::new();
    for run in unserved(rows, grace, limit)? {
        if park(rows, &run, grace)? {
            parked.push(run.key);
        }
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    rows.execute(statements::FORGET_SERVED, params![forgotten(rows.now(), grace).as_millis(), limit])?;
    Ok(parked)
}

/// Ready runs by priority, namespace and age, then those whose owner's lease is over.
fn unserved(rows: &mut SqliteRows<'_>, grace: Duration, limit: usize) -> Result<Vec<RunRow>, Fault> {
    let now = rows.now();
    let cutoff = before(now, grace).as_millis();
    let served = rows.many(statements::SERVED, [cutoff], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut search = Search { served: served.into_iter().collect(), limit, found: Vec::new() };
    let everything = Serves::Everything;
    let mut below = None;
    while let Some(priority) = ready::Runs::new(rows, &everything).priority(below)? {
        below = Some(priority);
        for namespace in ready::Runs::new(rows, &everything).namespaces(priority)? {
            search.read(rows, statements::READY, params![priority, namespace], |run| is_overdue(run, now, grace))?;
        }
    }
    search.read(rows, statements::ORPHANED, [now.as_millis()], |_| true)?;
    Ok(search.found)
}

struct Search {
    /// What somebody offers.
    served: BTreeSet<(String, String)>,
    limit: usize,
    found: Vec<RunRow>,
}

impl Search {
    fn read(
        &mut self,
        rows: &mut SqliteRows<'_>,
        sql: &str,
        params: impl Params,
        wanted: impl Fn(&RunRow) -> bool,
    ) -> Result<(), Fault> {
        let mut statement = rows.connection.prepare_cached(sql)?;
        let mut stored = statement.query(params)?;
        for _ in 0..UNSERVED_SCAN_MAX {
            if self.found.len() >= self.limit {
                break;
            }
            let Some(row) = stored.next()? else { break };
            let namespace = rows.names.name(rows.connection, row.get(1)?);
            // One that cannot be read is set aside by the next claim.
            let Ok(run) = namespace.and_then(|namespace| decode::run(row, namespace)) else { continue };
            if wanted(&run) && !self.serves(&run) {
                self.found.push(run);
            }
        }
        Ok(())
    }

    fn serves(&self, run: &RunRow) -> bool {
        self.served.contains(&(run.workflow.to_string(), run.version.to_string()))
    }
}
