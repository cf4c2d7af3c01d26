//! Runs as a transaction left them: several things that come for one run in a group read its row once.

use std::cell::RefCell;

use outlast_core::id::RunKey;
use rustc_hash::FxHashMap;

use crate::rows::RunRow;

/// Runs that are remembered; then it begins anew.
const RUNS_MAX: usize = 1_024;
/// How statements begin that may change a run's row, or undo a change.
const CHANGES: [&str; 3] = ["UPDATE run ", "DELETE FROM run ", "ROLLBACK"];

#[derive(Default)]
pub(super) struct KnownRuns(RefCell<FxHashMap<RunKey, RunRow>>);

impl KnownRuns {
    pub(super) fn get(&self, key: &RunKey) -> Option<RunRow> {
        self.0.borrow().get(key).cloned()
    }

    /// The run is like this now.
    pub(super) fn remember(&self, run: &RunRow) {
        let mut runs = self.0.borrow_mut();
        if runs.len() >= RUNS_MAX {
            runs.clear();
        }
        match runs.get_mut(&run.key) {
            Some(known) => known.clone_from(run),
            None => drop(runs.insert(run.key.clone(), run.clone())),
        }
    }

    /// Whatever the statement may change is not known any more.
    pub(super) fn forget_before(&self, sql: &str) {
        if CHANGES.iter().any(|beginning| sql.starts_with(beginning)) {
            self.0.borrow_mut().clear();
        }
    }
}
