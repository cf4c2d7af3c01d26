//! Tasks: which are ready, which are to be made ready, and what people see of them.

use std::collections::BTreeSet;
use std::convert::Infallible;

use outlast_core::id::{Namespace, QueueName, TaskId};
use outlast_core::planted;

use super::query::unnegated;
use super::{Line, State};
use crate::api::{ClaimTasks, TaskFilter, TaskPage, TaskState};
use crate::logic::task::{PROMOTE_MAX, is_mine, is_wanted, order, promoted};
use crate::logic::turns::{self, Ready, Round};
use crate::rows::{Rows, TaskRow};

impl State {
    pub(super) fn index_task(&mut self, task: &TaskRow) {
        if task.state == TaskState::Ready {
            let line = self.line_of(task);
            self.ready_tasks.entry(line).or_default().insert((task.place, task.id.clone(), task.namespace.clone()));
        }
        if let Some(until) = task.until {
            let end = (until, task.namespace.clone(), task.id.clone());
            self.task_ends.entry(task.queue.clone()).or_default().insert(end);
        }
    }

    pub(super) fn unindex_task(&mut self, task: &TaskRow) {
        let line = self.line_of(task);
        if let Some(ready) = self.ready_tasks.get_mut(&line) {
            ready.remove(&(task.place, task.id.clone(), task.namespace.clone()));
            if ready.is_empty() {
                self.ready_tasks.remove(&line);
            }
        }
        if let (Some(until), Some(ends)) = (task.until, self.task_ends.get_mut(&task.queue)) {
            ends.remove(&(until, task.namespace.clone(), task.id.clone()));
        }
    }

    fn line_of(&self, task: &TaskRow) -> Line {
        let priority = if planted!("priority-ignored") { 0 } else { i32::from(task.priority) };
        (task.queue.clone(), -priority, self.number(&task.namespace))
    }

    /// Makes those ready whose time has come.
    pub(super) fn promote_tasks(&mut self, claim: &ClaimTasks) {
        let now = self.now();
        let ended = |queue: &QueueName| {
            let ends = self.task_ends.get(queue).into_iter().flatten().take_while(|(until, ..)| *until <= now);
            ends.take(PROMOTE_MAX).map(|(_, namespace, id)| (namespace.clone(), id.clone())).collect::<Vec<_>>()
        };
        let ended: Vec<(Namespace, TaskId)> = claim.queues.iter().flat_map(ended).collect();
        for name in ended {
            let kept = |task: &&TaskRow| planted!("silent-worker-keeps-its-task") && task.state == TaskState::Claimed;
            if let Some(task) = self.tasks.get(&name).filter(|task| !kept(task)).map(promoted) {
                // Memory's rows have no faults.
                let _ = self.put_task(&task);
            }
        }
    }

    /// What this claim holds already, then ready ones.
    pub(super) fn task_candidates(&mut self, claim: &ClaimTasks, limit: usize) -> Vec<TaskRow> {
        let now = self.now();
        let held = self.tasks.values().filter(|task| is_wanted(task, claim) && is_mine(task, claim, now));
        let mut found: Vec<TaskRow> = held.cloned().collect();
        found.sort_by_key(order);
        found.truncate(limit);
        let mut turns = std::mem::take(&mut self.turns);
        let mut ready = ReadyTasks { state: self, claim };
        let Ok(taken) = turns::take(&mut ready, &mut turns, |priority| Round::of(claim, priority), limit - found.len());
        self.turns = turns;
        found.extend(taken);
        found
    }

    pub(super) fn list_tasks(&self, filter: &TaskFilter) -> TaskPage {
        let limit = filter.tasks_max();
        let fits = |task: &&TaskRow| {
            task.namespace == filter.namespace
                && (filter.state.is_empty() || filter.state.contains(&task.state))
                && filter.queue.as_ref().is_none_or(|queue| *queue == task.queue)
                && filter.name.as_ref().is_none_or(|name| *name == task.name)
                && filter.origin.as_ref().is_none_or(|run| task.origin.as_ref() == Some(run))
                && filter.after.as_ref().is_none_or(|after| task.id > *after)
        };
        let found = self.tasks.values().filter(fits).take(limit + 1).map(TaskRow::view);
        TaskPage::of(found.collect(), limit)
    }
}

/// Ready tasks that a claim asks for.
struct ReadyTasks<'s> {
    state: &'s State,
    claim: &'s ClaimTasks,
}

impl Ready for ReadyTasks<'_> {
    type Item = TaskRow;
    type Fault = Infallible;

    fn priority(&mut self, below: Option<i16>) -> Result<Option<i16>, Infallible> {
        let from = below.map_or(i32::MIN, |below| 1 - i32::from(below));
        let first = |queue: &QueueName| {
            let lines = (queue.clone(), from, i64::MIN)..=(queue.clone(), i32::MAX, i64::MAX);
            self.state.ready_tasks.range(lines).next().map(|((_, level, _), _)| *level)
        };
        Ok(self.claim.queues.iter().filter_map(first).min().map(unnegated))
    }

    fn namespaces(&mut self, priority: i16) -> Result<Vec<i64>, Infallible> {
        let level = -i32::from(priority);
        let lines = |queue: &QueueName| (queue.clone(), level, i64::MIN)..=(queue.clone(), level, i64::MAX);
        let found = self.claim.queues.iter().flat_map(|queue| self.state.ready_tasks.range(lines(queue)));
        let only = self.claim.namespace.as_ref().map(|namespace| self.state.number(namespace));
        let found = found.map(|((.., number), _)| *number);
        Ok(found.filter(|number| only.is_none_or(|only| only == *number)).collect())
    }

    fn first(&mut self, priority: i16, namespace: i64, count: usize) -> Result<Vec<TaskRow>, Infallible> {
        let mut first = Vec::new();
        for queue in self.claim.queues.iter().collect::<BTreeSet<_>>() {
            let line = self.state.ready_tasks.get(&(queue.clone(), -i32::from(priority), namespace));
            let tasks =
                line.into_iter().flatten().filter_map(|(_, id, of)| self.state.tasks.get(&(of.clone(), id.clone())));
            first.extend(tasks.filter(|task| is_wanted(task, self.claim)).take(count).cloned());
        }
        first.sort_by_key(order);
        Ok(first)
    }
}
