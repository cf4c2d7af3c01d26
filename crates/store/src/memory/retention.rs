//! Deleting what has ended, in bounded steps.
//!
//! A deleted run's row stays as its tombstone. First it is marked (from then on it answers `Deleted`), then its rows go
//! in batches, last the tombstone itself, seven days later. A crash between any two steps leaves a state the next call
//! continues from.

use std::time::Duration;

use outlast_core::id::{Generation, InboxId, Index, RunKey};
use outlast_core::limits::TOMBSTONE_DAYS;
use outlast_core::planted;
use outlast_core::time::{Timestamp, millis};

use super::State;
use crate::api::{Retained, Retention, TaskState};
use crate::error::StoreError;
use crate::logic::{Halt, live_row, refuse};
use crate::rows::{Rows, RunRow, TaskRow};

impl State {
    pub(super) fn delete(&mut self, key: &RunKey, reason: String) -> Result<(), Halt<StoreError>> {
        let run = live_row(self, key)?;
        if !run.status.is_terminal() {
            return refuse(StoreError::Live(key.clone()));
        }
        if let Some(live) = self.tree(&run).find(|member| !member.status.is_terminal()) {
            return refuse(StoreError::Live(live.key.clone()));
        }
        self.mark_deleted(&run, Some(reason));
        Ok(())
    }

    pub(super) fn retain(&mut self, retention: Retention) -> Retained {
        let now = self.now();
        let cutoff = Timestamp::from_millis(now.as_millis().saturating_sub(millis(retention.age)));
        let mut retained = Retained::default();
        let cutoff = if planted!("retention-too-early") { now } else { cutoff };
        self.doom_ripe(cutoff, retention.limit, &mut retained);
        self.doom_members(retention.limit, &mut retained);
        self.purge(retention.limit, &mut retained);
        self.bury(retention.limit, &mut retained, |task| task.died_at.is_some_and(|at| at <= cutoff));
        self.forget(now, retention.limit, &mut retained);
        retained.rows += self.forget_windows(now, retention.limit);
        retained.rows += self.forget_workers(now, retention.limit);
        retained.rows += self.forget_replies(now, retention.limit);
        retained.more = retained.runs > 0 || retained.rows > 0;
        retained
    }

    /// The other runs of the tree whose top is `run`.
    fn tree<'a>(&'a self, run: &'a RunRow) -> impl Iterator<Item = &'a RunRow> {
        self.runs.values().filter(move |member| {
            member.root.as_ref() == Some(&run.key.id)
                && member.key.namespace == run.key.namespace
                && member.deleted_at.is_none()
        })
    }

    fn mark_deleted(&mut self, run: &RunRow, reason: Option<String>) {
        let after = RunRow { deleted_at: Some(self.now()), note: reason, side: true, ..run.clone() };
        self.unindex_deleted(run, &after);
    }

    fn unindex_deleted(&mut self, before: &RunRow, after: &RunRow) {
        // Memory's rows have no faults.
        let _ = self.update_run(before, after);
    }

    fn doom_ripe(&mut self, cutoff: Timestamp, limit: usize, retained: &mut Retained) {
        let ripe = |run: &&RunRow| run.deleted_at.is_none() && run.finished_at.is_some_and(|at| at <= cutoff);
        let tops = self.runs.values().filter(|run| run.root.is_none()).filter(ripe);
        let alone = planted!("retention-forgets-children");
        let whole = tops.filter(|top| alone || self.tree(top).all(|member| ripe(&member)));
        let mut doomed: Vec<RunRow> = whole.cloned().collect();
        doomed.sort_by_key(|run| (run.finished_at, run.row));
        for run in doomed.into_iter().take(limit) {
            self.mark_deleted(&run, None);
            retained.runs += 1;
        }
    }

    /// Members of a tree follow its top.
    fn doom_members(&mut self, limit: usize, retained: &mut Retained) {
        let doomed = |run: &&RunRow| match &run.root {
            Some(root) if run.deleted_at.is_none() => {
                let top = RunKey::new(run.key.namespace.clone(), root.clone());
                self.runs.get(&top).is_some_and(|top| top.deleted_at.is_some())
            }
            Some(_) | None => false,
        };
        let members: Vec<RunRow> = self.runs.values().filter(doomed).take(limit).cloned().collect();
        for run in members {
            self.mark_deleted(&run, None);
            retained.runs += 1;
        }
    }

    fn purge(&mut self, limit: usize, retained: &mut Retained) {
        let mut budget = limit;
        let doomed: Vec<RunRow> =
            self.runs.values().filter(|run| run.deleted_at.is_some() && run.side).cloned().collect();
        for run in doomed {
            let removed = self.purge_rows(run.row, budget);
            retained.rows += removed;
            budget -= removed;
            budget -= self.bury(budget, retained, |task| {
                task.namespace == run.key.namespace && task.origin.as_ref() == Some(&run.key.id)
            });
            if budget == 0 {
                return;
            }
            let after = RunRow { side: false, ..run.clone() };
            self.unindex_deleted(&run, &after);
            retained.rows += 1;
        }
    }

    fn purge_rows(&mut self, row: i64, budget: usize) -> usize {
        let events = (row, Generation(0), Index(0))..=(row, Generation(u64::MAX), Index(u64::MAX));
        let events: Vec<_> = self.events.range(events).map(|(key, _)| *key).take(budget).collect();
        for key in &events {
            self.events.remove(key);
        }
        if events.len() == budget {
            return budget;
        }
        self.inputs.retain(|(owner, _), _| *owner != row);
        self.delivered.retain(|(owner, _)| *owner != row);
        self.attributes.retain(|(owner, _), _| *owner != row);
        self.snapshots.remove(&row);
        self.inbox.retain(|(owner, _): &(i64, InboxId), _| *owner != row);
        events.len()
    }

    /// Removes dead tasks, at most so many; how many.
    fn bury(&mut self, limit: usize, retained: &mut Retained, which: impl Fn(&TaskRow) -> bool) -> usize {
        let dead = self.tasks.values().filter(|task| task.state == TaskState::Dead && which(task));
        let mut dead: Vec<_> = dead.map(|task| (task.died_at, task.namespace.clone(), task.id.clone())).collect();
        dead.sort();
        dead.truncate(limit);
        for (_, namespace, id) in &dead {
            // Memory's rows have no faults.
            let _ = self.remove_task(namespace, id);
        }
        retained.rows += dead.len();
        dead.len()
    }

    /// Tombstones past their age, whose rows are gone. The top of a tree stays until every member is marked: it is what
    /// dooms them.
    fn forget(&mut self, now: Timestamp, limit: usize, retained: &mut Retained) {
        let age = Duration::from_secs(TOMBSTONE_DAYS * 24 * 60 * 60);
        let old = |run: &&RunRow| !run.side && run.deleted_at.is_some_and(|at| at + age <= now);
        let alone = |run: &&RunRow| self.tree(run).next().is_none();
        let forgotten: Vec<RunRow> = self.runs.values().filter(old).filter(alone).take(limit).cloned().collect();
        for run in forgotten {
            self.runs.remove(&run.key);
            self.names.remove(&run.row);
            retained.rows += 1;
        }
    }
}
