//! What an event means for the operation it is about.

use outlast_core::event::Event;
use outlast_core::id::Key;
use outlast_core::lifecycle::{State, Transition};
use outlast_core::time::Timestamp;

use super::table::{Detail, Table};

impl Table {
    /// Brings the operation to where an event says it is. Called once for each event, when it is passed in order.
    pub(super) fn note(&mut self, key: &Key, event: &Event) {
        match event {
            Event::StepRetryScheduled { attempt, next_at, .. } => self.note_retry(key, *attempt, *next_at),
            Event::ConditionChecked { attempt, met: false, next_at: Some(next_at), .. } => {
                self.note_retry(key, *attempt, *next_at);
            }
            Event::TimerStarted { deadline, .. } => self.note_deadline(key, Some(*deadline)),
            Event::SignalAwaited { deadline, .. }
            | Event::ApprovalRequested { deadline, .. }
            | Event::CallbackCreated { deadline, .. } => self.note_deadline(key, *deadline),
            Event::ScopeFinished { .. } | Event::ScopeFailed { .. } => {
                for below in self.below(key) {
                    self.shift(&below, Transition::ScopeClosed);
                }
                self.settle(key);
            }
            Event::StepFinished { .. }
            | Event::StepFailed { .. }
            | Event::TaskFinished { .. }
            | Event::TaskFailed { .. }
            | Event::TimerFired { .. }
            | Event::SignalResolved { .. }
            | Event::SignalTimedOut { .. }
            | Event::ApprovalResolved { .. }
            | Event::ApprovalTimedOut { .. }
            | Event::CallbackResolved { .. }
            | Event::CallbackFailed { .. }
            | Event::CallbackTimedOut { .. }
            | Event::ChildStarted { detached: true, .. }
            | Event::TaskScheduled { detached: true, .. }
            | Event::ChildFinished { .. }
            | Event::ChildFailed { .. }
            | Event::ConditionChecked { .. }
            | Event::NowRecorded { .. }
            | Event::UuidRecorded { .. }
            | Event::RandomRecorded { .. }
            | Event::OperationRefused { .. } => self.settle(key),
            // A start says nothing new about an operation that was asked for, and a cancellation was asked for too.
            _ => {}
        }
    }

    fn settle(&mut self, key: &Key) {
        let Some(entry) = self.get(key) else { return };
        match entry.state {
            State::Completed => {}
            // The journal has its outcome, so the next attempt was due.
            State::RetryWaiting => {
                self.shift(key, Transition::RetryDue);
                self.shift(key, Transition::Settled);
            }
            State::Executing | State::IdleNotAwaited | State::IdleAwaited => {
                self.shift(key, Transition::Settled);
            }
        }
    }

    fn note_deadline(&mut self, key: &Key, deadline: Option<Timestamp>) {
        if let Some(entry) = self.get_mut(key) {
            entry.deadline = deadline;
        }
    }

    fn note_retry(&mut self, key: &Key, attempt: u32, next_at: Timestamp) {
        if !self.is_live(key) {
            return;
        }
        self.stop_body(key);
        let waiting = self.get(key).is_some_and(|entry| entry.state == State::RetryWaiting);
        if waiting {
            self.shift(key, Transition::RetryDue);
        }
        self.shift(key, Transition::RetryScheduled);
        if let Some(entry) = self.get_mut(key) {
            entry.deadline = Some(next_at);
            if let Detail::Code(code) = &mut entry.detail {
                code.attempts = attempt;
            }
        }
    }
}
