//! Rows of runs that are written later, once, however often they changed: what a task's end makes ready is mostly taken in the
//! same breath, and then no index ever hears of it.

use outlast_core::id::RunKey;
use rustc_hash::FxHashMap;

use super::SqliteRows;
use crate::rows::{Fault, RunRow};

/// Runs as they were, and as they are to be. None while everything is written at once.
pub(super) type Later = Option<FxHashMap<RunKey, (RunRow, RunRow)>>;

impl SqliteRows<'_> {
    /// From now on changes of runs are kept here, until [`SqliteRows::write_runs`]. Meanwhile nobody may ask the tables for
    /// runs by anything that changes.
    pub(in crate::sqlite) fn write_runs_later(&mut self) {
        self.later.get_or_insert_default();
    }

    /// Writes what was kept; from now on changes are written at once.
    pub(in crate::sqlite) fn write_runs(&mut self) -> Result<(), Fault> {
        let mut changes: Vec<_> = self.later.take().unwrap_or_default().into_values().collect();
        changes.sort_unstable_by_key(|(before, _)| before.row);
        changes.iter().try_for_each(|(before, after)| self.write_run(before, after))
    }

    /// The run as it is to be, if it is not written yet.
    pub(super) fn unwritten(&self, key: &RunKey) -> Option<RunRow> {
        self.later.as_ref()?.get(key).map(|(_, after)| after.clone())
    }

    /// Keeps a change, if changes are kept; whether they are.
    pub(super) fn keep(&mut self, before: &RunRow, after: &RunRow) -> bool {
        let Some(later) = &mut self.later else { return false };
        match later.get_mut(&after.key) {
            Some((_, known)) => known.clone_from(after),
            None => drop(later.insert(after.key.clone(), (before.clone(), after.clone()))),
        }
        true
    }
}
