//! Workers and resumes, as operators see them.

use bytes::Bytes;
use outlast_core::id::{Namespace, RunId, RunKey, WorkerId};
use outlast_core::time::Timestamp;

use super::State;
use crate::api::{HOLDS_MAX, KeyedReply, Resume, Sighting, TaskState, WORKERS_MAX, WorkerView};
use crate::error::StoreError;
use crate::logic::{Halt, refuse, worker};
use crate::rows::{Rows, TaskRow};

#[derive(Debug)]
pub(super) struct WorkerRow {
    about: Bytes,
    started: Timestamp,
    seen: Timestamp,
}

impl State {
    pub(super) fn see_worker(&mut self, sighting: Sighting) -> Result<(), Halt<StoreError>> {
        let now = self.now();
        if let Some(unknown) = sighting.namespace.as_ref().filter(|namespace| self.number(namespace) == 0) {
            return refuse(StoreError::UnknownNamespace(unknown.clone()));
        }
        let Sighting { namespace, worker, about, arrived } = sighting;
        match (self.workers.get_mut(&(worker.clone(), namespace.clone())), about) {
            (Some(row), about) => {
                row.about = about.unwrap_or_else(|| row.about.clone());
                row.started = if arrived { now } else { row.started };
                row.seen = now;
            }
            (None, Some(about)) => {
                self.workers.insert((worker, namespace), WorkerRow { about, started: now, seen: now });
            }
            (None, None) => {}
        }
        Ok(())
    }

    pub(super) fn list_workers(&self, namespace: &Namespace) -> Vec<WorkerView> {
        let shown = self.workers.iter().filter(|((_, of), _)| of.as_ref().is_none_or(|of| of == namespace));
        let view = |((worker, of), row): (&(WorkerId, Option<Namespace>), &WorkerRow)| {
            let held = |task: &&TaskRow| {
                task.namespace == *namespace && task.state == TaskState::Claimed && task.worker.as_ref() == Some(worker)
            };
            WorkerView {
                namespace: of.clone(),
                worker: worker.clone(),
                about: row.about.clone(),
                started: row.started,
                seen: row.seen,
                holds: self.tasks.values().filter(held).take(HOLDS_MAX).map(TaskRow::view).collect(),
            }
        };
        shown.take(WORKERS_MAX).map(view).collect()
    }

    /// How many were forgotten.
    pub(super) fn forget_workers(&mut self, now: Timestamp, limit: usize) -> usize {
        let gone = worker::gone(now);
        let old: Vec<_> =
            self.workers.iter().filter(|(_, row)| row.seen <= gone).map(|(name, _)| name.clone()).collect();
        let old = old.into_iter().take(limit);
        old.map(|name| self.workers.remove(&name)).count()
    }

    pub(super) fn reply(&mut self, reply: KeyedReply) -> Result<Option<Bytes>, Halt<StoreError>> {
        let KeyedReply { namespace, key, reply } = reply;
        if self.number(&namespace) == 0 {
            return refuse(StoreError::UnknownNamespace(namespace));
        }
        let now = self.now();
        let place = (namespace, key);
        if let Some((_, kept)) = self.replies.get(&place) {
            return Ok(Some(kept.clone()));
        }
        if let Some(reply) = reply {
            self.replies.insert(place, (now, reply));
        }
        Ok(None)
    }

    /// How many were forgotten.
    pub(super) fn forget_replies(&mut self, now: Timestamp, limit: usize) -> usize {
        let gone = worker::gone(now);
        let mut old: Vec<_> = self
            .replies
            .iter()
            .filter(|(_, (at, _))| *at <= gone)
            .map(|(place, (at, _))| (*at, place.clone()))
            .collect();
        old.sort();
        old.into_iter().take(limit).map(|(_, place)| self.replies.remove(&place)).count()
    }

    pub(super) fn resumes(&self, namespace: &Namespace, after: Option<&RunId>, limit: usize) -> Vec<Resume> {
        let runs = self.runs.values().filter(|run| run.key.namespace == *namespace);
        let runs = runs.filter(|run| after.is_none_or(|after| run.key.id > *after));
        let resumes = runs.filter(|run| run.owner.is_some() || (run.ready_at.is_some() && run.status.is_claimable()));
        let resume = |run: &crate::rows::RunRow| {
            let node = |lease| self.leases.get(&lease).map(|(node, _)| node.clone());
            let RunKey { id, .. } = run.key.clone();
            Resume { run: id, claimed: run.owner.map(|lease| (lease, node(lease))), ready_since: run.ready_at }
        };
        resumes.take(limit).map(resume).collect()
    }
}
