//! How turns end: over nothing that should have been read first, and by telling children what was said about them.

use bytes::Bytes;
use outlast_core::commit::{Commit, Control, Delivery, Then};
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::id::{Index, Key, RunKey};
use outlast_core::journal::Journal;
use outlast_core::operation::OperationKind;
use outlast_store::RunView;
use serde_json::Value;

use super::commits::began;
use super::shadow::{Arrival, Chapter, Parcel, Shadow};
use super::sight::{Sight, Stand};

impl Sight {
    /// What was accepted for a run and could be taken now, although the commit ended the turn: somebody must come for it.
    pub(super) fn left_unread(&self, commit: &Commit, stand: Stand) -> Option<String> {
        if commit.then != Then::Suspend || !stand.alone {
            return None;
        }
        let shadow = self.runs.get(&commit.run).filter(|shadow| shadow.sure && shadow.mail_sure)?;
        let chapter = shadow.chapter()?;
        let pausing = is_pausing(shadow, chapter);
        let frees = [Control::Resume, Control::Cancel, Control::Intervene].map(Parcel::Control);
        let may_wait = |arrival: &Arrival| pausing && !frees.contains(&arrival.what);
        let mut unread = shadow.arrivals.iter().filter(|arrival| !arrival.consumed && !may_wait(arrival));
        let unread = unread.find(|arrival| is_urgent(chapter, arrival))?;
        Some(format!("{:?} of {}", unread.what, unread.id))
    }

    /// Where a run stands that was left with something to take.
    pub(super) fn must_be_woken(&mut self, commit: &Commit, unread: &str, view: &RunView) {
        self.findings.ensure(5, view.ready || view.owner.is_some(), || {
            format!("{} waits beside {unread}, and nothing wakes it", commit.run)
        });
    }

    /// A run does not pause over a word that lets it go on.
    pub(super) fn judge_pause(&mut self, commit: &Commit, shadow: &Shadow, stand: Stand) {
        if commit.then != Then::Pause || !stand.alone || !shadow.mail_sure {
            return;
        }
        let frees = |arrival: &&Arrival| {
            matches!(arrival.what, Parcel::Control(Control::Resume | Control::Cancel)) && !arrival.consumed
        };
        let unread = shadow.arrivals.iter().find(frees);
        self.findings.ensure(2, unread.is_none(), || format!("{} paused over {unread:?}", commit.run));
    }

    /// Whoever drives a run parks it only if it cannot be read.
    pub(super) fn judge_park(&mut self, commit: &Commit) {
        if let Then::Park { reason } = &commit.then {
            let damaged = self.ever_damaged.contains_key(&commit.run);
            self.findings.ensure(18, damaged, || format!("{} was parked: {reason}", commit.run));
        }
    }

    /// What the end of a parent means for a child is what was said: one that was to go on alone is told nothing, one that was
    /// to be asked is asked, and only one that was to be ended is ended. Whoever no longer waits for a child only asks it.
    /// Where the parent's journal cannot be read, nobody knows what was said.
    pub(super) fn judge_close_policies(&mut self, commit: &Commit, shadow: &Shadow) {
        if self.ever_damaged.contains_key(&commit.run) {
            return;
        }
        let ends = matches!(commit.then, Then::Finish(_) | Then::ContinueAsNew { .. });
        let Some(chapter) = shadow.chapter() else { return };
        for delivery in &commit.deliveries {
            let Delivery::Control { child_of: Some(opener), .. } = delivery else { continue };
            let Some(Order { child, terminate }) = order_of(delivery) else { continue };
            if !ends {
                self.findings
                    .ensure(13, !terminate, || format!("{} goes on, and ended {child} without asking it", commit.run));
            } else if was_open(chapter, &opener.key) {
                let said = close_policy(chapter, &opener.key);
                let meant = if terminate { ClosePolicy::Terminate } else { ClosePolicy::Cancel };
                self.findings.ensure(13, said == Some(meant), || {
                    format!("{} ended and closed {child} by {meant:?}; said was {said:?}", commit.run)
                });
            }
        }
    }
}

/// A request to stop that a run sends to another one.
pub(super) struct Order {
    pub(super) child: RunKey,
    /// Whether it is ended without being asked.
    pub(super) terminate: bool,
}

pub(super) fn order_of(delivery: &Delivery) -> Option<Order> {
    match delivery {
        Delivery::Control { run, control: Control::Cancel, meta, .. } => {
            Some(Order { child: run.clone(), terminate: ends(meta.as_ref()) })
        }
        _ => None,
    }
}

/// Whether a request to stop does not ask.
pub(crate) fn ends(meta: Option<&Bytes>) -> bool {
    let said: Option<Value> = meta.and_then(|meta| serde_json::from_slice(meta).ok());
    said.is_some_and(|said| said["terminate"] == Value::Bool(true))
}

/// Whether a pause waits: that of a flow begins when the tasks that run have ended, and until then nothing else is read.
fn is_pausing(shadow: &Shadow, chapter: &Chapter) -> bool {
    let asked = |arrival: &Arrival| !arrival.consumed && arrival.what == Parcel::Control(Control::Pause);
    let is_flow = chapter.journal.events().iter().any(Event::is_mark);
    let has_tasks = chapter.journal.open().into_iter().any(|open| open.kind == OperationKind::Task);
    is_flow && has_tasks && shadow.arrivals.iter().any(asked)
}

/// Whether a run that is driven takes it as soon as it is read.
fn is_urgent(chapter: &Chapter, arrival: &Arrival) -> bool {
    match &arrival.what {
        // Nothing but a word from outside is taken in a pause.
        Parcel::Signal { .. } | Parcel::Approval { .. } | Parcel::Callback { .. } if chapter.journal.is_paused() => {
            false
        }
        // One that was aimed at something else than it names is left alone.
        Parcel::Signal { name, aimed: Some(key), .. } => awaited(chapter, key).as_ref() == Some(name),
        Parcel::Signal { name, aimed: None, .. } => {
            chapter.journal.open().iter().any(|open| awaited(chapter, &open.key).as_ref() == Some(name))
        }
        Parcel::Approval { .. } | Parcel::Callback { .. } | Parcel::Control(_) => true,
    }
}

/// The signal an open operation waits for.
fn awaited(chapter: &Chapter, key: &Key) -> Option<String> {
    if !chapter.journal.is_open(key) {
        return None;
    }
    match Event::decode(&began(chapter, key)?.record).ok()? {
        Event::SignalAwaited { name, .. } => Some(name.to_string()),
        _ => None,
    }
}

/// What was said about a child when it was started.
fn close_policy(chapter: &Chapter, of: &Key) -> Option<ClosePolicy> {
    chapter.journal.events().iter().rev().find_map(|event| match event {
        Event::ChildStarted { key, on_close, .. } if key == of => Some(*on_close),
        _ => None,
    })
}

/// Whether an operation was open until the generation's last event: then nobody cancelled it before.
fn was_open(chapter: &Chapter, key: &Key) -> bool {
    let before = chapter.records().take(chapter.entries.len().saturating_sub(1)).cloned();
    let journal = Journal::load(before.enumerate().map(|(index, record)| (Index(index as u64), record)));
    journal.is_ok_and(|journal| journal.is_open(key))
}
