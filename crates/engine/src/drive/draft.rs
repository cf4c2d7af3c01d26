//! The commit under construction.

use outlast_core::commit::{
    CloseCause, ClosedWait, Commit, Delivery, NewRun, NewTask, NewTimer, NewWait, Then, TimerKind, TimerRef,
};
use outlast_core::event::Event;
use outlast_core::id::{Fence, InboxId, Index, Key, RunKey};
use outlast_core::planted;
use outlast_core::record::Record;

/// What has been decided and not yet sent.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) events: Vec<Record>,
    /// What the events carry.
    pub(super) bytes: usize,
    pub(super) timers: Vec<NewTimer>,
    pub(super) timers_cancelled: Vec<TimerRef>,
    pub(super) waits: Vec<NewWait>,
    pub(super) waits_closed: Vec<ClosedWait>,
    pub(super) tasks: Vec<NewTask>,
    pub(super) tasks_cancelled: Vec<Key>,
    pub(super) children: Vec<NewRun>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) consumed: Vec<InboxId>,
    /// What observers will be told once this is durable.
    pub(super) emitted: Vec<(Index, Event)>,
}

impl Draft {
    /// Whether there is nothing a store would have to write.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.consumed.is_empty() && self.timers_cancelled.is_empty()
    }

    /// Whether a wait is closed here over whatever answer it may have.
    pub(super) fn closes(&self, key: &Key) -> bool {
        let unanswered = |closed: &ClosedWait| matches!(closed.cause, CloseCause::TimedOut | CloseCause::Cancelled);
        self.waits_closed.iter().any(|closed| closed.key == *key && unanswered(closed))
    }

    /// Stops a timer: one that is not yet stored is forgotten, any other is cancelled.
    pub(super) fn stop_timer(&mut self, key: &Key, kind: TimerKind) {
        let before = self.timers.len();
        self.timers.retain(|new| new.timer.key != *key || new.timer.kind != kind);
        if self.timers.len() == before {
            self.timers_cancelled.push(TimerRef { key: key.clone(), kind });
        }
    }

    /// Takes a task back: one that is not yet queued is forgotten.
    pub(super) fn take_back(&mut self, key: &Key) {
        let before = self.tasks.len();
        if !planted!("task-queued-although-cancelled") {
            self.tasks.retain(|new| new.key.as_ref() != Some(key));
        }
        if self.tasks.len() == before {
            self.tasks_cancelled.push(key.clone());
        }
    }

    /// The commit, and what to emit after it. The draft is empty afterwards.
    pub(super) fn take(
        &mut self,
        run: RunKey,
        fence: Fence,
        expected: Index,
        then: Then,
    ) -> (Commit, Vec<(Index, Event)>) {
        let draft = std::mem::take(self);
        let commit = Commit {
            events: draft.events,
            timers: draft.timers,
            timers_cancelled: draft.timers_cancelled,
            waits: draft.waits,
            waits_closed: draft.waits_closed,
            tasks: draft.tasks,
            tasks_cancelled: draft.tasks_cancelled,
            children: draft.children,
            deliveries: draft.deliveries,
            consumed: draft.consumed,
            then,
            ..Commit::new(run, fence, expected)
        };
        (commit, draft.emitted)
    }
}
