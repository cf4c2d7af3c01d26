//! In which order tasks are handed out: nobody gets one while one of a higher priority that would do is left.

use std::collections::BTreeMap;

use outlast_core::commit::{Commit, NewTask};
use outlast_core::id::{Namespace, QueueName, TaskId, TaskName};
use outlast_store::{ClaimTasks, ClaimedTask};

use super::sight::{Sight, Stand};
use super::tasks::State;

/// What was said of tasks when they were queued.
pub(super) type Notes = BTreeMap<(Namespace, TaskId), Note>;

/// What was said of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    name: TaskName,
    queue: QueueName,
    priority: i16,
}

impl Note {
    fn is_wanted(&self, claim: &ClaimTasks) -> bool {
        claim.queues.contains(&self.queue) && (claim.names.is_empty() || claim.names.contains(&self.name))
    }
}

impl Sight {
    /// A task is queued; one that is there already stays as it is.
    pub(super) fn note(&mut self, namespace: &Namespace, task: &NewTask) {
        let id = (namespace.clone(), task.id.clone());
        let over = |state: &State| matches!(state, State::Buried | State::Gone);
        if self.tasks.books.get(&id).is_none_or(|book| over(&book.state)) {
            let NewTask { name, queue, priority, .. } = task;
            self.notes.insert(id, Note { name: name.clone(), queue: queue.clone(), priority: *priority });
        }
    }

    pub(super) fn note_all(&mut self, commit: &Commit) {
        commit.tasks.iter().for_each(|task| self.note(&commit.run.namespace, task));
    }

    /// Those of a claim's tasks that it did not have before.
    pub(super) fn newly_claimed<'c>(&self, asked: &ClaimTasks, claimed: &'c [ClaimedTask]) -> Vec<&'c ClaimedTask> {
        let had = |task: &ClaimedTask| {
            let book = self.tasks.get(&task.namespace, &task.id);
            book.is_some_and(|book| matches!(&book.state, State::Held { claim, .. } if *claim == asked.id))
        };
        claimed.iter().filter(|task| !had(task)).collect()
    }

    /// Tasks were handed out: whatever is left that would have done has no higher priority.
    pub(super) fn judge_priorities(&mut self, asked: &ClaimTasks, claimed: &[&ClaimedTask], stand: Stand) {
        let noted = |task: &&ClaimedTask| self.notes.get(&(task.namespace.clone(), task.id.clone()));
        let lowest = claimed.iter().filter_map(|task| Some((noted(task)?.priority, task.now))).min();
        let (Some((lowest, now)), true) = (lowest, stand.alone && !self.overlapped) else { return };
        let left = self.tasks.all().find(|(id, book)| {
            let ready = book.state == State::Ready && book.available_at.is_none_or(|at| at <= now);
            ready && self.notes.get(id).is_some_and(|note| note.is_wanted(asked) && note.priority > lowest)
        });
        let left = left.map(|(id, _)| id.1.clone());
        self.findings.ensure(17, left.is_none(), || {
            format!("{} was handed a task of priority {lowest}, and {left:?} has a higher one", asked.worker)
        });
    }
}
