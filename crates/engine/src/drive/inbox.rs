//! What others left for the run: which item comes next, and the event it becomes.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use outlast_core::commit::{CloseCause, ClosedWait, HELD_CANCEL, InboxItem, InboxKind, TimerKind};
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{DeliveryId, InboxId, Index, Key, RunId, SignalName, TaskId};
use outlast_core::operation::OperationKind;
use outlast_core::planted;
use serde::{Deserialize, Serialize};

use super::end::{ChildReport, Outcome};
use super::run::{Run, Stop};
use super::table::{Detail, Entry};

/// What an operator, or a parent, says with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControlMeta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// Do not ask the workflow: end it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) terminate: bool,
    /// What a resume tells the run, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

fn control_meta(item: &InboxItem) -> ControlMeta {
    item.meta.as_deref().and_then(|meta| serde_json::from_slice(meta).ok()).unwrap_or_default()
}

/// What an operator wants done to a flow's node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Intervention {
    Skip { node: Key, by: String, reason: Option<String> },
    Retry { node: Key, by: String, reason: Option<String> },
}

impl Intervention {
    /// How it is recorded.
    pub(crate) fn event(self) -> Event {
        match self {
            Intervention::Skip { node, by, reason } => Event::NodeSkipped { node, by: Some(by), reason },
            Intervention::Retry { node, by, reason } => Event::NodeRetried { node, by: Some(by), reason },
        }
    }

    /// How it is recorded that it was not done.
    fn refused(self, error: Failure) -> Event {
        let (wanted, node, by, reason) = match self {
            Intervention::Skip { node, by, reason } => ("skip", node, by, reason),
            Intervention::Retry { node, by, reason } => ("retry", node, by, reason),
        };
        Event::InterventionRefused { node, wanted: wanted.to_owned(), by: Some(by), reason, error }
    }
}

/// What somebody says with the answer to an approval or callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerMeta {
    Decided {
        approved: bool,
        by: Option<String>,
        feedback: Option<String>,
    },
    /// The payload is the answer.
    Resolved,
    Failed(Failure),
}

/// Items that were read and are not consumed, sorted by what has to happen first.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Cancellations, pauses and resumes.
    controls: VecDeque<InboxItem>,
    /// What operators want done to a flow's nodes.
    interventions: VecDeque<InboxItem>,
    /// Decisions, answers, results. They come before timers: a payload beats a deadline that is not journaled yet.
    answers: VecDeque<InboxItem>,
    timers: VecDeque<InboxItem>,
    /// Signals nobody has asked for yet, by name, the oldest first.
    mailbox: BTreeMap<String, VecDeque<InboxItem>>,
    /// Signals for one operation.
    aimed: BTreeMap<Key, InboxItem>,
    /// The newest item that was read.
    newest: Option<InboxId>,
}

impl Inbox {
    pub(super) fn new(items: Vec<InboxItem>) -> Inbox {
        let mut inbox = Inbox::default();
        inbox.receive(items);
        inbox
    }

    /// Adds what is new among `items`: ids only grow, so whatever is older was read before.
    pub(super) fn receive(&mut self, items: Vec<InboxItem>) {
        for item in items {
            if self.newest.is_some_and(|newest| item.id <= newest) {
                continue;
            }
            self.newest = Some(item.id);
            match item.kind {
                InboxKind::Cancel | InboxKind::Pause | InboxKind::Resume => self.controls.push_back(item),
                InboxKind::Intervene => self.interventions.push_back(item),
                InboxKind::Timer => self.timers.push_back(item),
                InboxKind::Signal => match &item.key {
                    Some(key) => {
                        self.aimed.insert(key.clone(), item);
                    }
                    None => self.mailbox.entry(item.name.clone().unwrap_or_default()).or_default().push_back(item),
                },
                InboxKind::Approval
                | InboxKind::Callback
                | InboxKind::TaskFinished
                | InboxKind::TaskFailed
                | InboxKind::Child => self.answers.push_back(item),
            }
        }
    }
}

impl Run {
    /// Does what an operator asked of the run: stop, pause, go on; whether there was something. It does not wait until the program
    /// wants nothing more: by then the run may be over.
    pub(super) fn take_control(&mut self) -> Result<bool, Stop> {
        let Some(item) = self.inbox.controls.pop_front() else { return Ok(false) };
        self.control(item)?;
        Ok(true)
    }

    /// Takes the next item that can be taken; whether there was one.
    pub(super) fn take_from_inbox(&mut self) -> Result<bool, Stop> {
        if self.is_stopping() {
            return if self.finishes_tasks() { self.take_task() } else { Ok(false) };
        }
        if self.take_answer()? {
            return Ok(true);
        }
        if let Some(item) = self.inbox.timers.pop_front() {
            self.timer(item)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// A pause is wanted, or has begun.
    fn is_stopping(&self) -> bool {
        self.pausing || self.journal.is_paused()
    }

    /// Takes what came of a task that a pause waits for; whether there was one.
    fn take_task(&mut self) -> Result<bool, Stop> {
        let is_task = |item: &InboxItem| matches!(item.kind, InboxKind::TaskFinished | InboxKind::TaskFailed);
        let place = self.inbox.answers.iter().position(is_task);
        let Some(item) = place.and_then(|place| self.inbox.answers.remove(place)) else { return Ok(false) };
        self.answer(item)?;
        Ok(true)
    }

    /// Does what an operator wants done to a node, before whatever the flow does next; whether there was something. Somebody was
    /// told that it counts: what cannot be done any more is recorded as refused.
    pub(super) fn intervene(&mut self) -> Result<bool, Stop> {
        if self.journal.is_paused() {
            return Ok(false);
        }
        self.take_intervention(|run, event| run.refuses(event))
    }

    fn take_intervention(&mut self, refuses: impl Fn(&Run, &Event) -> Option<Failure>) -> Result<bool, Stop> {
        let Some(item) = self.inbox.interventions.pop_front() else { return Ok(false) };
        self.draft.consumed.push(item.id);
        let intervention = item.meta.as_deref().and_then(|meta| serde_json::from_slice(meta).ok());
        let Some(intervention): Option<Intervention> = intervention else { return Ok(true) };
        let event = intervention.clone().event();
        match refuses(self, &event) {
            None => self.append(event)?,
            Some(why) => self.append(intervention.refused(why))?,
        }
        Ok(true)
    }

    /// Takes an answer whose giver was told that it counts; whether there was one. It comes before whatever the program
    /// and its bodies do, because any of that may close what was answered.
    pub(super) fn take_owed(&mut self) -> Result<bool, Stop> {
        if self.is_stopping() {
            return Ok(false);
        }
        if let Some(place) = self.inbox.answers.iter().position(|item| self.is_owed(item))
            && let Some(item) = self.inbox.answers.remove(place)
        {
            self.answer(item)?;
            return Ok(true);
        }
        let aimed = self.inbox.aimed.iter().find(|(key, item)| self.is_open_wait(key, item.name.as_deref()));
        let Some(key) = aimed.map(|(key, _)| key.clone()) else { return Ok(false) };
        let Some(item) = self.inbox.aimed.remove(&key) else { return Ok(false) };
        self.signal(key, item)?;
        Ok(true)
    }

    /// The run ends: answers whose givers were told that they count are recorded, although nobody waits for them any more, and so
    /// is what an operator wanted.
    pub(super) fn record_owed(&mut self) -> Result<(), Stop> {
        if self.is_stopping() {
            // Nothing is recorded in a pause; they go with the run. What was sent before anybody waited for it is for the next
            // generation, if there is one.
            let aimed = self.inbox.aimed.iter().filter(|(key, item)| self.is_open_wait(key, item.name.as_deref()));
            let owed: Vec<_> =
                self.inbox.answers.iter().chain(aimed.map(|(_, item)| item)).map(|item| item.id).collect();
            self.draft.consumed.extend(owed);
            return Ok(());
        }
        let too_late = || Failure::new(code::VALIDATION_ERROR, "the run came to its end first").permanent();
        while self.take_owed()? || self.take_intervention(|_, _| Some(too_late()))? {
            // Passed and not fed: the program has come to its end, and what is answered must not be closed once more.
            while self.next_fact()?.is_some() {}
        }
        Ok(())
    }

    fn owes_answer(&self) -> bool {
        self.inbox.answers.iter().any(|item| self.is_owed(item))
            || self.inbox.aimed.iter().any(|(key, item)| self.is_open_wait(key, item.name.as_deref()))
    }

    /// Whether the item answers something that is open, and that only one answer is accepted for.
    fn is_owed(&self, item: &InboxItem) -> bool {
        let once = matches!(item.kind, InboxKind::Approval | InboxKind::Callback);
        once && item.key.as_ref().is_some_and(|key| self.table.is_live(key) && self.journal.is_open(key))
    }

    /// Takes the next answer or signal that somebody waits for; whether there was one.
    fn take_answer(&mut self) -> Result<bool, Stop> {
        if self.is_stopping() {
            return Ok(false);
        }
        if let Some(item) = self.inbox.answers.pop_front() {
            self.answer(item)?;
            return Ok(true);
        }
        let Some((key, item)) = self.next_signal() else { return Ok(false) };
        self.signal(key, item)?;
        Ok(true)
    }

    // Controls.

    fn control(&mut self, item: InboxItem) -> Result<(), Stop> {
        let meta = control_meta(&item);
        match item.kind {
            InboxKind::Cancel if !meta.terminate && self.is_stopping() && self.owes_answer() => {
                // It takes no answer before it goes on, and then the answer comes before the cancellation.
                self.inbox.controls.push_front(item);
                self.unpause();
                if self.journal.is_paused() {
                    self.append(Event::RunResumed { message: None, by: meta.by })
                } else {
                    Ok(())
                }
            }
            InboxKind::Cancel => self.cancel(item.id, meta),
            InboxKind::Pause => {
                if self.journal.is_paused() || self.pausing {
                    self.draft.consumed.push(item.id);
                } else {
                    // Consumed with the event that says so, so that a crash before that does not lose the request.
                    self.pausing = true;
                    self.pause_item = Some((item.id, meta));
                }
                Ok(())
            }
            _ => self.resume_run(item.id, meta),
        }
    }

    /// Ends a run that was asked to cancel before it was admitted: its program never begins. Whether it was one.
    pub(super) fn end_unbegun(&mut self) -> Result<bool, Stop> {
        let asked = |item: &InboxItem| item.kind == InboxKind::Cancel && item.name.as_deref() == Some(HELD_CANCEL);
        let place = self.inbox.controls.iter().position(asked).filter(|_| self.loaded() == Index(0));
        let Some(item) = place.and_then(|place| self.inbox.controls.remove(place)) else { return Ok(false) };
        let ControlMeta { reason, by, terminate, .. } = control_meta(&item);
        self.draft.consumed.push(item.id);
        // No request is recorded: nobody is there to hear it. So its journal says that it never began.
        let outcome = if terminate { Outcome::Terminated { reason, by } } else { Outcome::Cancelled { reason } };
        self.ended(outcome)?;
        Ok(true)
    }

    fn cancel(&mut self, item: InboxId, meta: ControlMeta) -> Result<(), Stop> {
        self.draft.consumed.push(item);
        if meta.terminate {
            return self.ended(Outcome::Terminated { reason: meta.reason, by: meta.by });
        }
        self.unpause();
        if self.cancel_requested || planted!("cancel-swallowed") {
            return Ok(());
        }
        self.cancel_requested = true;
        self.append(Event::CancelRequested { reason: meta.reason, by: meta.by })
    }

    /// A pause that has not happened yet no longer does.
    fn unpause(&mut self) {
        self.pausing = false;
        if let Some((item, _)) = self.pause_item.take() {
            self.draft.consumed.push(item);
        }
    }

    fn resume_run(&mut self, item: InboxId, meta: ControlMeta) -> Result<(), Stop> {
        self.draft.consumed.push(item);
        let paused = self.pause_item.as_ref().map(|(_, paused)| paused.clone()).unwrap_or_default();
        self.unpause();
        if !self.journal.is_paused() {
            if meta.message.is_none() {
                return Ok(());
            }
            // It came before the pause did, or somebody else let the run go on first. Whoever sent the message was told that it
            // counts.
            self.append(Event::RunPaused { reason: paused.reason, by: paused.by })?;
        }
        self.append(Event::RunResumed { message: meta.message.map(Bytes::from), by: meta.by })
    }

    /// Nothing executes any more: the pause begins.
    pub(super) fn record_pause(&mut self) -> Result<(), Stop> {
        let (item, meta) = self.pause_item.take().unzip();
        let ControlMeta { reason, by, .. } = meta.unwrap_or_default();
        self.draft.consumed.extend(item);
        self.pausing = false;
        self.append(Event::RunPaused { reason, by })
    }

    // Answers.

    fn answer(&mut self, item: InboxItem) -> Result<(), Stop> {
        if item.key.as_ref().is_some_and(|key| self.draft.closes(key)) {
            // Its giver was told that it counts, and that what it answers is closed nobody was: left unread, it makes the
            // store turn the commit down, and is fed first then.
            return Ok(());
        }
        self.draft.consumed.push(item.id);
        let Some(key) = item.key.clone().filter(|key| self.table.is_live(key)) else { return Ok(()) };
        let payload = item.payload.clone().unwrap_or_else(|| Bytes::from_static(b"null"));
        let meta = item.meta.as_deref();
        match item.kind {
            InboxKind::Approval => {
                let said = meta.and_then(|meta| serde_json::from_slice(meta).ok());
                let (approved, by, feedback) = match said {
                    Some(AnswerMeta::Decided { approved, by, feedback }) => (approved, by, feedback),
                    Some(AnswerMeta::Resolved | AnswerMeta::Failed(_)) | None => (false, None, None),
                };
                self.close_wait(&key, CloseCause::Resolved);
                self.append(Event::ApprovalResolved { approval: key.to_string(), key, approved, by, feedback })
            }
            InboxKind::Callback => {
                self.close_wait(&key, CloseCause::Resolved);
                let callback = key.to_string();
                match meta.and_then(|meta| serde_json::from_slice(meta).ok()) {
                    Some(AnswerMeta::Failed(error)) => self.append(Event::CallbackFailed { key, callback, error }),
                    Some(AnswerMeta::Resolved | AnswerMeta::Decided { .. }) | None => {
                        self.append(Event::CallbackResolved { key, callback, payload })
                    }
                }
            }
            InboxKind::Child => self.child_ended(key, &item, payload),
            InboxKind::TaskFinished | InboxKind::TaskFailed => self.task_ended(key, &item, payload),
            InboxKind::Signal
            | InboxKind::Timer
            | InboxKind::Cancel
            | InboxKind::Pause
            | InboxKind::Resume
            | InboxKind::Intervene => Ok(()),
        }
    }

    fn child_ended(&mut self, key: Key, item: &InboxItem, result: Bytes) -> Result<(), Stop> {
        let Some(child) = item.name.as_deref().and_then(|name| RunId::new(name).ok()) else { return Ok(()) };
        let report = item.meta.as_deref().and_then(|meta| serde_json::from_slice(meta).ok());
        match report {
            Some(ChildReport::Finished) => self.append(Event::ChildFinished { key, child, result }),
            Some(ChildReport::Failed(error)) => self.append(Event::ChildFailed { key, child, error }),
            None => {
                let error = Failure::new(code::ERROR, "the child ended, and how it did cannot be read");
                self.append(Event::ChildFailed { key, child, error })
            }
        }
    }

    fn task_ended(&mut self, key: Key, item: &InboxItem, payload: Bytes) -> Result<(), Stop> {
        let Some(task) = item.name.as_deref().and_then(|name| TaskId::new(name).ok()) else { return Ok(()) };
        if item.kind == InboxKind::TaskFinished {
            let log = item.meta.as_deref().map(|log| String::from_utf8_lossy(log).into_owned());
            return self.append(Event::TaskFinished { key, task, log, result: payload });
        }
        let error = serde_json::from_slice(&payload)
            .unwrap_or_else(|_| Failure::new(code::ERROR, String::from_utf8_lossy(&payload).into_owned()));
        self.append(Event::TaskFailed { key, task, error })
    }

    // Signals.

    /// A signal, and the wait it resolves.
    fn next_signal(&mut self) -> Option<(Key, InboxItem)> {
        let aimed = self.inbox.aimed.iter().find(|(key, item)| self.is_open_wait(key, item.name.as_deref()));
        let aimed = aimed.map(|(key, _)| key.clone());
        if let Some(key) = aimed {
            let item = self.inbox.aimed.remove(&key)?;
            return Some((key, item));
        }
        let named = self.inbox.mailbox.iter().find_map(|(name, items)| {
            let key = self.table.waiting_for(name).filter(|_| !items.is_empty())?;
            Some((name.clone(), key.clone()))
        });
        let (name, key) = named?;
        let items = self.inbox.mailbox.get_mut(&name)?;
        let item = if planted!("newest-signal-first") { items.pop_back() } else { items.pop_front() }?;
        Some((key, item))
    }

    /// Whether the operation waits for a signal of this name. One that was aimed at something else is left alone.
    fn is_open_wait(&self, key: &Key, signal: Option<&str>) -> bool {
        self.signal_name(key).is_some_and(|name| Some(name.as_str()) == signal)
            && self.table.is_live(key)
            && self.journal.is_open(key)
    }

    fn signal(&mut self, key: Key, item: InboxItem) -> Result<(), Stop> {
        if item.key.is_some() || !planted!("signal-not-consumed") {
            self.draft.consumed.push(item.id);
        }
        let name = match self.table.get(&key) {
            Some(Entry { detail: Detail::Signal { name }, .. }) => name.clone(),
            Some(_) | None => return Ok(()),
        };
        let Some(signal_id) = item.delivery.clone().or_else(|| DeliveryId::new(format!("item-{}", item.id)).ok())
        else {
            return Ok(());
        };
        let payload = item.payload.unwrap_or_else(|| Bytes::from_static(b"null"));
        if let Some(error) = self.misfit(&key, &payload) {
            // The wait goes on. One that was answered by this signal alone is open again.
            if item.key.is_some() {
                self.draft.waits_closed.push(ClosedWait { key: key.clone(), cause: CloseCause::Misfit });
            }
            return self.append(Event::SignalRejected { key, name, signal_id, error });
        }
        self.close_wait(&key, CloseCause::Resolved);
        self.append(Event::SignalResolved { key, name, signal_id, payload })
    }

    // Timers.

    fn timer(&mut self, item: InboxItem) -> Result<(), Stop> {
        let kind = item.name.as_deref().and_then(TimerKind::from_name);
        let (Some(key), Some(kind)) = (item.key.filter(|key| self.table.is_live(key)), kind) else {
            self.draft.consumed.push(item.id);
            return Ok(());
        };
        if kind == TimerKind::Retry {
            self.retry_due(&key, item.id);
            return Ok(());
        }
        self.draft.consumed.push(item.id);
        let operation = self.table.get(&key).map(|entry| entry.kind);
        match (kind, operation) {
            (TimerKind::Delay, Some(OperationKind::Timer)) => self.append(Event::TimerFired { key }),
            (TimerKind::Timeout, Some(OperationKind::Signal)) => {
                let Some(name) = self.signal_name(&key) else { return Ok(()) };
                self.time_out(&key);
                self.append(Event::SignalTimedOut { key, name })
            }
            (TimerKind::Timeout, Some(OperationKind::Approval)) => {
                self.time_out(&key);
                self.append(Event::ApprovalTimedOut { approval: key.to_string(), key })
            }
            (TimerKind::Timeout | TimerKind::Heartbeat, Some(OperationKind::Callback)) => {
                self.time_out(&key);
                self.append(Event::CallbackTimedOut { callback: key.to_string(), key })
            }
            (TimerKind::Delay | TimerKind::Timeout | TimerKind::Heartbeat | TimerKind::Retry, _) => Ok(()),
        }
    }

    fn time_out(&mut self, key: &Key) {
        self.close_wait(key, CloseCause::TimedOut);
    }

    fn signal_name(&self, key: &Key) -> Option<SignalName> {
        match self.table.get(key) {
            Some(Entry { detail: Detail::Signal { name }, .. }) => Some(name.clone()),
            Some(_) | None => None,
        }
    }
}
