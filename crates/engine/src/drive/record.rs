//! Appending to the journal, and what an event means for the operation it is about.

use outlast_core::commit::{NewTimer, TimerKind, TimerRef};
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::Key;
use outlast_core::lifecycle::Transition;
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::run::{Run, Stop};
use super::table::{Body, Code, Detail, Entry};

impl Run {
    /// Appends an event: to the journal now, to the store with the next commit.
    pub(super) fn append(&mut self, event: Event) -> Result<(), Stop> {
        let record = event.encode(self.moment.now);
        self.journal.append(self.journal.next(), event)?;
        self.snapshots.recorded(&record);
        self.draft.bytes += record.payload_bytes();
        self.draft.events.push(record);
        Ok(())
    }

    // Attempts.

    /// An attempt at a step, or at the check of a condition, failed: it is tried again later, or not at all.
    pub(super) fn attempt_failed(&mut self, key: &Key, error: Failure) -> Result<(), Stop> {
        let Some((retry, attempt)) = self.end_attempt(key) else { return Ok(()) };
        let delay = if error.permanent { None } else { retry.next_delay(attempt, self.chance(key)) };
        match delay {
            None => self.append(Event::StepFailed { key: key.clone(), error, attempts: attempt }),
            Some(delay) => {
                let next_at = self.moment.now + delay;
                self.append(Event::StepRetryScheduled { key: key.clone(), attempt, next_at, error })?;
                self.start_timer(key, TimerKind::Retry, next_at);
                Ok(())
            }
        }
    }

    /// A condition was checked: it holds, or is checked again later, or not at all.
    pub(super) fn checked(&mut self, key: &Key, met: bool, state: bytes::Bytes) -> Result<(), Stop> {
        let Some((retry, attempt)) = self.end_attempt(key) else { return Ok(()) };
        let delay = if met { None } else { retry.next_delay(attempt, self.chance(key)) };
        let next_at = delay.map(|delay| self.moment.now + delay);
        self.append(Event::ConditionChecked { key: key.clone(), attempt, met, state, next_at })?;
        if let Some(next_at) = next_at {
            self.start_timer(key, TimerKind::Retry, next_at);
        }
        Ok(())
    }

    pub(super) fn attempt_finished(&mut self, key: &Key, result: bytes::Bytes) -> Result<(), Stop> {
        let Some((_, attempts)) = self.end_attempt(key) else { return Ok(()) };
        self.append(Event::StepFinished { key: key.clone(), result, attempts })
    }

    /// Notes that an attempt ended; which one it was. None if nobody wants its outcome any more.
    fn end_attempt(&mut self, key: &Key) -> Option<(outlast_core::retry::Retry, u32)> {
        if !self.table.is_live(key) {
            return None;
        }
        self.table.stop_body(key);
        let Some(Entry { detail: Detail::Code(code), .. }) = self.table.get_mut(key) else { return None };
        code.attempts += 1;
        if let Some(item) = code.due_item.take() {
            self.draft.consumed.push(item);
        }
        Some((code.retry, code.attempts))
    }

    pub(super) fn start_timer(&mut self, key: &Key, kind: TimerKind, due: Timestamp) {
        let whole = Timestamp::from_millis(due.as_millis() / 1_000 * 1_000);
        let due = if planted!("timer-in-whole-seconds") { whole } else { due };
        self.draft.timers.push(NewTimer { timer: TimerRef { key: key.clone(), kind }, due });
    }

    /// A number for jitter: the same for the same operation of the same run.
    fn chance(&self, key: &Key) -> u64 {
        let text = self.identity.run.id.as_str().bytes().chain(key.as_str().bytes());
        text.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    /// Ends attempts whose time is up.
    pub(super) fn expire(&mut self) -> Result<(), Stop> {
        for key in self.table.expired(self.moment.now) {
            if self.has_returned(&key) {
                continue;
            }
            let timeout = match self.table.get(&key) {
                Some(Entry { detail: Detail::Code(Code { timeout: Some(timeout), .. }), .. }) => *timeout,
                Some(_) | None => continue,
            };
            let error = Failure::timeout(format!("the step {key} took longer than {timeout:?}"));
            self.attempt_failed(&key, error)?;
        }
        Ok(())
    }

    /// Ends attempts that were silent for too long; whether there were any. Called after every sign of life was heard, and
    /// what returned was recorded.
    pub(super) fn end_silent(&mut self) -> Result<bool, Stop> {
        let silent = self.table.silent(self.moment.now);
        for key in &silent {
            let Some(Entry { detail: Detail::Code(Code { heartbeat: Some(silence), .. }), .. }) = self.table.get(key)
            else {
                continue;
            };
            let error = Failure::timeout(format!("the step {key} gave no sign of life for {silence:?}"));
            self.attempt_failed(key, error)?;
        }
        Ok(!silent.is_empty())
    }

    /// Whether the outcome of a step is known without running it: a body that ran before a commit was turned down, one
    /// too many, or an at-most-once step that began and nobody knows whether it ended.
    pub(super) fn settle_without_running(&mut self, key: &Key) -> Result<bool, Stop> {
        if let Some(outcome) = self.hints.outcomes.remove(key) {
            self.end_attempt(key);
            self.append(outcome)?;
            return Ok(true);
        }
        if let Some(error) = self.refusal(key) {
            self.end_attempt(key);
            self.append(Event::StepFailed { key: key.clone(), error, attempts: 1 })?;
            return Ok(true);
        }
        let Some(Entry { detail: Detail::Code(code), .. }) = self.table.get(key) else { return Ok(false) };
        let attempt = code.attempts + 1;
        if code.at_most_once && self.began_before(key, attempt) {
            let message =
                format!("the step {key} began before a crash, and nobody knows whether it ended; it runs at most once");
            // With what it was woken by, if it was a retry: nobody else would take that.
            self.end_attempt(key);
            let error = Failure::new(code::STEP_IN_DOUBT, message).permanent();
            self.append(Event::StepFailed { key: key.clone(), error, attempts: attempt })?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether an earlier owner recorded that this attempt began.
    fn began_before(&self, key: &Key, attempt: u32) -> bool {
        let latest = self.journal.operation(key).filter(|recorded| recorded.latest < self.loaded());
        let event = latest.and_then(|recorded| self.journal.get(recorded.latest));
        matches!(event, Some(Event::StepStarted { attempt: began, .. }) if *began >= attempt)
    }

    /// Whether this owner recorded that the next attempt begins.
    pub(super) fn is_announced(&self, key: &Key) -> bool {
        let Some(Entry { detail: Detail::Code(code), .. }) = self.table.get(key) else { return false };
        let latest = self.journal.operation(key).filter(|recorded| recorded.latest >= self.loaded());
        let event = latest.and_then(|recorded| self.journal.get(recorded.latest));
        matches!(event, Some(Event::StepStarted { attempt, .. }) if *attempt == code.attempts + 1)
    }

    /// Records that an at-most-once attempt begins, before it does; whether that had to be done.
    pub(super) fn announce(&mut self, key: &Key) -> Result<bool, Stop> {
        let Some(Entry { detail: Detail::Code(code), .. }) = self.table.get(key) else { return Ok(false) };
        let attempt = code.attempts + 1;
        if !code.at_most_once || self.is_announced(key) {
            return Ok(false);
        }
        self.append(Event::StepStarted { key: key.clone(), attempt, at_most_once: true })?;
        // It still wants to run, once this is durable.
        self.table.not_yet(key.clone());
        Ok(true)
    }

    /// Whether a body is allowed to want to run: used when a retry falls due.
    pub(super) fn retry_due(&mut self, key: &Key, item: outlast_core::id::InboxId) {
        self.table.shift(key, Transition::RetryDue);
        if let Some(Entry { detail: Detail::Code(code), deadline, .. }) = self.table.get_mut(key) {
            code.due_item = Some(item);
            if planted!("retry-consumed-early") {
                self.draft.consumed.extend(code.due_item.take());
            }
            *deadline = None;
            debug_assert_eq!(code.body, Body::Idle);
        }
        self.table.want(key);
    }
}
