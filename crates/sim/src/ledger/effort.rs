//! Attempts at tasks, as their handlers saw them.

use std::sync::Arc;
use std::time::Duration;

use outlast::TaskContext;
use outlast::testing::WorldTime;

use super::{Ledger, tick};

/// An attempt at a task that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The task's id.
    pub task: String,
    /// The handler's name.
    pub name: String,
    /// The run that waited for it, if one did.
    pub run: Option<String>,
    /// From 1.
    pub attempt: u32,
    /// What the handler was given.
    pub idempotency_key: String,
    /// Which edition of a text wanted it, as far as it says so itself.
    pub edition: Option<u32>,
    /// The process it ran in.
    pub process: String,
    /// When it began: its place among everything that happened, and the virtual time.
    pub begun: (u64, Duration),
    /// When it was over, and what it came to; none while it runs.
    pub ended: Option<(u64, Duration, Came)>,
}

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It gave a result.
    Gave,
    /// It failed, as planned.
    Failed,
    /// It was stopped, or its process died.
    Stopped,
}

impl Effort {
    /// One that begins now.
    pub(crate) fn of(task: &TaskContext, at: Duration) -> Effort {
        Effort {
            task: task.id().to_string(),
            name: task.name().to_string(),
            run: task.run_id().map(ToString::to_string),
            attempt: task.attempt(),
            idempotency_key: task.idempotency_key().to_owned(),
            edition: None,
            process: String::new(),
            begun: (0, at),
            ended: None,
        }
    }
}

/// An attempt under way: it is over when this is gone, whatever becomes of it.
pub(crate) struct UnderWay {
    ledger: Arc<Ledger>,
    number: usize,
    time: WorldTime,
}

impl UnderWay {
    /// It came to something.
    pub(crate) fn came(self, came: Came) {
        self.end(came);
    }

    fn end(&self, came: Came) {
        let at = self.time.elapsed();
        if let Some(effort) = self.ledger.seen().efforts.get_mut(self.number) {
            effort.ended.get_or_insert_with(|| (tick(), at, came));
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.end(Came::Stopped);
    }
}

impl Ledger {
    /// A handler began an attempt.
    pub(crate) fn effort(self: &Arc<Self>, effort: Effort, time: WorldTime) -> UnderWay {
        let mut seen = self.seen();
        let begun = (tick(), effort.begun.1);
        seen.efforts.push(Effort { process: self.process.clone(), begun, ..effort });
        let number = seen.efforts.len() - 1;
        drop(seen);
        UnderWay { ledger: Arc::clone(self), number, time }
    }

    /// Attempts at tasks, in order.
    pub fn efforts(&self) -> Vec<Effort> {
        self.seen().efforts.clone()
    }

    /// A client is about to queue a task that no run waits for.
    pub(crate) fn queues(&self, task: &str) {
        self.seen().queued.entry(task.to_owned()).or_insert(false);
    }

    /// A client was told that such a task is queued.
    pub(crate) fn queued(&self, task: &str) {
        self.seen().queued.insert(task.to_owned(), true);
    }

    /// Tasks that clients queued, and whether they were told so.
    pub fn tasks(&self) -> std::collections::BTreeMap<String, bool> {
        self.seen().queued.clone()
    }
}

#[cfg(test)]
mod tests {
    use outlast::testing::World;

    use super::*;

    fn effort() -> Effort {
        Effort {
            task: "t".to_owned(),
            name: "work".to_owned(),
            run: None,
            attempt: 1,
            idempotency_key: "default/t".to_owned(),
            edition: None,
            process: String::new(),
            begun: (0, Duration::ZERO),
            ended: None,
        }
    }

    #[test]
    fn an_attempt_is_over_when_it_came_to_something_or_is_dropped() {
        let (ledger, time) = (Ledger::new().of("p"), World::new().time());
        let [gives, dropped, _runs] = [0; 3].map(|_| ledger.effort(effort(), time.clone()));
        gives.came(Came::Gave);
        drop(dropped);
        let efforts = ledger.efforts();
        let came: Vec<Option<Came>> = efforts.iter().map(|effort| effort.ended.map(|(_, _, came)| came)).collect();
        assert_eq!(came, [Some(Came::Gave), Some(Came::Stopped), None]);
        assert!(efforts.iter().all(|effort| effort.process == "p" && effort.begun.0 > 0));
    }

    #[test]
    fn a_task_counts_as_queued_only_when_its_client_was_told() {
        let ledger = Ledger::new();
        ledger.queues("a");
        ledger.queues("b");
        ledger.queued("b");
        ledger.queues("b");
        assert_eq!(ledger.tasks(), [("a".to_owned(), false), ("b".to_owned(), true)].into());
    }
}
