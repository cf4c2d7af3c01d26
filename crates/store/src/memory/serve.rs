//! Who offers to drive what.

use std::time::Duration;

use outlast_core::id::{RunKey, Version, WorkflowName};

use super::State;
use crate::error::StoreError;
use crate::logic::Halt;
use crate::logic::claim::lapsed;
use crate::logic::serve::{UNSERVED_SCAN_MAX, before, forgotten, is_overdue, park};
use crate::rows::{Rows, RunRow};

impl State {
    pub(super) fn announce(&mut self, serves: Vec<(WorkflowName, Version)>) {
        let now = self.now();
        self.served.extend(serves.into_iter().map(|served| (served, now)));
    }

    pub(super) fn park_unserved(&mut self, grace: Duration, limit: usize) -> Result<Vec<RunKey>, Halt<StoreError>> {
        let mut parked = Vec::new();
        for run in self.unserved(grace, limit) {
            if park(self, &run, grace)? {
                parked.push(run.key);
            }
        }
        let forgotten = forgotten(self.now(), grace);
        self.served.retain(|_, at| *at > forgotten);
        Ok(parked)
    }

    /// Ready runs by priority, namespace and age, then those whose owner's lease is over.
    fn unserved(&self, grace: Duration, limit: usize) -> Vec<RunRow> {
        let now = self.now();
        let silent = |run: &&RunRow| {
            let announced = self.served.get(&(run.workflow.clone(), run.version.clone()));
            announced.is_none_or(|at| *at <= before(now, grace))
        };
        let ready = self.ready_lines().flat_map(|line| line.take(UNSERVED_SCAN_MAX));
        let overdue = ready.filter(|run| is_overdue(run, now, grace));
        let lapsed_leases = self.leases.iter().filter(|(_, (_, until))| lapsed(*until, now)).map(|(id, _)| *id);
        overdue
            .chain(lapsed_leases.flat_map(|lease| self.owned_by(lease)))
            .filter(silent)
            .take(limit)
            .cloned()
            .collect()
    }
}
