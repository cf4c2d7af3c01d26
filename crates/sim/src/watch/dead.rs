//! Tasks that failed for good: somebody queues them again, or removes them.

use outlast_core::id::{Namespace, TaskId};
use outlast_store::StoreError;

use super::sight::{Sight, Stand};
use super::tasks::State;

impl Sight {
    /// A task was to be queued again, with all its attempts; nobody waits for it.
    pub(super) fn revived(&mut self, id: &(Namespace, TaskId), answer: &Result<(), StoreError>, stand: Stand) {
        self.judge_grave(id, answer, stand);
        if let (Ok(()), Some(book)) = (answer, self.tasks.books.get_mut(id)) {
            (book.awaited, book.state, book.attempt, book.available_at) = (None, State::Ready, 0, None);
        }
    }

    /// A task was to be removed.
    pub(super) fn discarded(&mut self, id: &(Namespace, TaskId), answer: &Result<(), StoreError>, stand: Stand) {
        self.judge_grave(id, answer, stand);
        if let (Ok(()), Some(book)) = (answer, self.tasks.books.get_mut(id)) {
            (book.awaited, book.state) = (None, State::Buried);
        }
    }

    /// That is done to those that failed for good, and to no others.
    fn judge_grave(&mut self, id: &(Namespace, TaskId), answer: &Result<(), StoreError>, stand: Stand) {
        if !stand.alone || self.overlapped {
            return;
        }
        let state = self.tasks.books.get(id).map(|book| book.state.clone());
        let dead = state == Some(State::Dead);
        let fits = match answer {
            Ok(()) => dead,
            Err(StoreError::TaskNotDead { .. } | StoreError::UnknownTask(_)) => !dead,
            Err(_) => return,
        };
        self.findings
            .ensure(17, fits, || format!("task {} is {state:?}, and whoever looks after it is told {answer:?}", id.1));
    }
}
