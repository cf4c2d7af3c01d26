//! Where a run stands among its pause points, and the one thing it asks for: derived from its journal, stored nowhere.

use bytes::Bytes;
use outlast_core::commit::{InboxItem, InboxKind};
use outlast_core::event::Event;
use outlast_core::id::{Index, Key};
use outlast_core::journal::Journal;
use outlast_core::time::Timestamp;
use outlast_store::StoreError;

use super::{EngineError, RunHandle};

/// The pause points of a run: its sleeps and its waits for signals, counted together from 1 in the order in which they were
/// first asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// How many were asked for.
    pub reached: u32,
    /// The largest n such that 1 … n are complete; 0 if the first is not.
    pub completed_pause_index: u32,
    /// When the first sleep that is pending ends.
    pub pending_resume_at: Option<Timestamp>,
    /// The first wait for a signal that is pending.
    pub pending_wait: Option<PendingWait>,
    /// The first approval that nobody has decided.
    pub pending_approval: Option<PendingApproval>,
}

/// A wait for a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWait {
    /// Which operation waits: a signal can be aimed at it.
    pub key: Key,
    /// The name of the signal.
    pub event: String,
    /// Until when.
    pub timeout_at: Option<Timestamp>,
    /// What has come for it, and is not yet read. `null` is a payload too.
    pub payload: Option<Bytes>,
}

/// Something somebody has to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingApproval {
    /// The id the decision must name.
    pub approval: String,
    /// What the person reads.
    pub title: String,
    /// Who should decide.
    pub assignee: Option<String>,
    /// Until when.
    pub timeout_at: Option<Timestamp>,
}

impl Pauses {
    /// The name of the signal the run waits for.
    pub fn waiting_for(&self) -> Option<&str> {
        self.pending_wait.as_ref().map(|wait| wait.event.as_str())
    }

    /// Reads them from a journal. `inbox` is what has come and is not yet in it.
    pub(super) fn of(journal: &Journal, inbox: &[InboxItem]) -> Pauses {
        let mut pauses = Pauses::default();
        let mut unbroken = true;
        for event in journal.events() {
            match event {
                Event::TimerStarted { key, deadline, .. } => {
                    let pending = journal.is_open(key);
                    unbroken = pauses.count(pending, unbroken);
                    if pending {
                        pauses.pending_resume_at.get_or_insert(*deadline);
                    }
                }
                Event::SignalAwaited { key, name, deadline } => {
                    let pending = journal.is_open(key);
                    unbroken = pauses.count(pending, unbroken);
                    if pending {
                        pauses.pending_wait.get_or_insert_with(|| PendingWait {
                            key: key.clone(),
                            event: name.to_string(),
                            timeout_at: *deadline,
                            payload: payload_for(inbox, key, name.as_str()),
                        });
                    }
                }
                Event::ApprovalRequested { key, approval, title, assignee, deadline } if journal.is_open(key) => {
                    pauses.pending_approval.get_or_insert_with(|| PendingApproval {
                        approval: approval.clone(),
                        title: title.clone(),
                        assignee: assignee.clone(),
                        timeout_at: *deadline,
                    });
                }
                _ => {}
            }
        }
        pauses
    }

    /// Counts one more; whether all so far are complete.
    fn count(&mut self, pending: bool, unbroken: bool) -> bool {
        self.reached += 1;
        if pending || !unbroken {
            return false;
        }
        self.completed_pause_index = self.reached;
        true
    }
}

/// The payload of the signal a wait would get next.
fn payload_for(inbox: &[InboxItem], key: &Key, name: &str) -> Option<Bytes> {
    let signals = || inbox.iter().filter(|item| item.kind == InboxKind::Signal);
    let aimed = signals().find(|item| item.key.as_ref() == Some(key));
    let named = || signals().find(|item| item.key.is_none() && item.name.as_deref() == Some(name));
    aimed.or_else(named)?.payload.clone()
}

impl RunHandle {
    /// Where the run stands among its pause points, and what it asks for first. [`RunHandle::awaiting`] has everything a run
    /// waits for, and [`RunHandle::explain`] says it in words.
    pub async fn pauses(&self) -> Result<Pauses, EngineError> {
        // The run first: what it says must not be newer than what is read.
        let view = self.view().await?;
        let events = self.journal().await?;
        if view.status.is_terminal() {
            let ended = Pauses::of(&open_journal(self, events)?, &[]);
            // Nothing is pending any more: it only never became complete.
            return Ok(Pauses { pending_resume_at: None, pending_wait: None, pending_approval: None, ..ended });
        }
        let inbox = self.inbox(view.next).await?;
        Ok(Pauses::of(&open_journal(self, events)?, &inbox))
    }
}

/// The journal up to its end, so that what was open when the run ended is not taken for complete.
fn open_journal(handle: &RunHandle, mut events: Vec<Event>) -> Result<Journal, EngineError> {
    if events.last().is_some_and(Event::ends_generation) {
        events.pop();
    }
    let mut journal = Journal::new();
    for (index, event) in events.into_iter().enumerate() {
        let appended = journal.append(Index(index as u64), event);
        appended.map_err(|error| StoreError::Corrupt { what: handle.run.to_string(), detail: error.to_string() })?;
    }
    Ok(journal)
}
