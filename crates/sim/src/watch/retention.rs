//! What goes because it ended long ago: only whole trees that are over, and not before their time.

use std::time::Duration;

use outlast_core::id::{Namespace, RunKey};
use outlast_core::time::Timestamp;
use outlast_store::{LIST_PAGE_MAX, Retained, Retention, Store, StoreError, TaskFilter, TaskState, TaskView};

use super::Watch;
use super::sight::Sight;

impl Watch {
    pub(super) async fn see_retain(&self, retention: Retention) -> Result<Retained, StoreError> {
        let under_way = self.begin(Vec::new());
        self.sight().retains |= retention.age < Duration::MAX;
        // What goes is what is old enough when the call begins, or a moment later.
        let now = self.now();
        let store = self.inner();
        let dead = self.dead(&*store).await;
        let answer = store.retain(retention).await;
        let stand = under_way.answered();
        self.sight().trace.note(&answer);
        if answer.as_ref().is_ok_and(|retained| retained.runs > 0) {
            let gone = self.gone(&*store).await;
            let mut sight = self.sight();
            if stand.alone && !sight.overlapped {
                gone.iter().for_each(|run| sight.judge_age(run, retention.age, now));
            }
            gone.iter().for_each(|run| sight.removed(run));
        }
        if !dead.is_empty() && answer.as_ref().is_ok_and(|retained| retained.rows > 0) {
            let left = self.dead(&*store).await;
            let mut sight = self.sight();
            for (namespace, task) in dead.iter().filter(|(_, task)| !left.iter().any(|(_, other)| other.id == task.id))
            {
                if stand.alone && !sight.overlapped {
                    sight.judge_burial(namespace, task, retention.age, now);
                }
                sight.tasks.buried(namespace, &task.id);
            }
        }
        answer
    }

    /// Tasks that failed for good and are kept.
    async fn dead(&self, store: &dyn Store) -> Vec<(Namespace, TaskView)> {
        let mut dead = Vec::new();
        let home = Namespace::default_namespace();
        let mut filter =
            TaskFilter { state: vec![TaskState::Dead], limit: LIST_PAGE_MAX, ..TaskFilter::all(home.clone()) };
        while let Ok(page) = store.tasks(filter.clone()).await {
            dead.extend(page.tasks.into_iter().map(|task| (home.clone(), task)));
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        dead
    }

    /// Runs that are there as far as anybody knows, and are not.
    async fn gone(&self, store: &dyn Store) -> Vec<RunKey> {
        let known = self.sight().runs.clone();
        let there = known.iter().filter(|(_, shadow)| !shadow.deleted && !shadow.doomed);
        let mut gone = Vec::new();
        for (run, _) in there {
            if let Err(StoreError::Deleted { .. } | StoreError::NotFound(_)) = store.get(run.clone()).await {
                gone.push(run.clone());
            }
        }
        gone
    }
}

impl Sight {
    /// A run went: everybody of its tree must have ended long enough ago.
    pub(super) fn judge_age(&mut self, run: &RunKey, age: Duration, now: Option<Timestamp>) {
        let top = self.top(run);
        if self.runs.get(&top).is_some_and(|shadow| shadow.deleted) {
            // Somebody deleted it, and whoever is left of its tree follows.
            return;
        }
        let family: Vec<RunKey> = self.runs.keys().filter(|other| self.top(other) == top).cloned().collect();
        for member in family {
            let Some(shadow) = self.runs.get(&member).filter(|shadow| shadow.sure && !shadow.deleted) else { continue };
            let (ended, at) = (shadow.ended, shadow.ended_at);
            self.findings.ensure(19, ended, || format!("{run} was removed by its age, and {member} has not ended"));
            let old = at.zip(now).is_none_or(|(at, now)| at + age <= now);
            self.findings.ensure(19, !ended || old, || {
                format!("{run} was removed at {now:?}, and {member} ended at {at:?}: it is to be kept for {age:?}")
            });
        }
    }

    /// A task that failed for good went: it did so long enough ago, or its run is gone too.
    fn judge_burial(&mut self, namespace: &Namespace, task: &TaskView, age: Duration, now: Option<Timestamp>) {
        let origin = task.origin.as_ref().and_then(|run| self.runs.get(&RunKey::new(namespace.clone(), run.clone())));
        let orphan = origin.is_some_and(|shadow| shadow.deleted || shadow.doomed);
        let old = task.died_at.zip(now).is_none_or(|(at, now)| at + age <= now);
        self.findings
            .ensure(19, orphan || old, || format!("{task:?} was removed at {now:?}: it is to be kept for {age:?}"));
    }

    /// The top of a run's tree. One whose parent does not wait for it is a tree of its own.
    fn top(&self, run: &RunKey) -> RunKey {
        let mut top = run.clone();
        let above = |run: &RunKey| self.runs.get(run)?.parent.as_ref().filter(|parent| !parent.detached);
        while let Some(parent) = above(&top) {
            top = RunKey::new(top.namespace.clone(), parent.run.clone());
        }
        top
    }

    fn removed(&mut self, run: &RunKey) {
        self.removed += 1;
        if let Some(shadow) = self.runs.get_mut(run) {
            shadow.deleted = true;
        }
    }
}
