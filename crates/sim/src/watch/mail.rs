//! What is left for runs: accepted once, there until it is consumed, consumed with a trace.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast_core::commit::{Commit, Control, Delivery, InboxItem, InboxKind, Then, TimerKind, TimerRef, WaitKind};
use outlast_core::event::Event;
use outlast_core::id::{DeliveryId, Generation, Index, Key, RunKey};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Delivered, Loaded};
use serde_json::Value;

use super::commits::began;
use super::shadow::{Arrival, Parcel, Shadow};
use super::sight::{Sight, Stand};
use crate::violation::Findings;

impl Sight {
    /// A delivery was answered.
    pub(super) fn delivered(&mut self, delivery: &Delivery, delivered: Delivered, stand: Stand) {
        let accepted = match delivered {
            Delivered::Delivered | Delivered::Buffered => true,
            Delivered::Duplicate | Delivered::Lost | Delivered::NotFound | Delivered::Deleted | Delivered::Full => {
                false
            }
        };
        let Some(run) = delivery.run() else { return self.reported(delivery, delivered, stand) };
        let loose = self.loose;
        let Some(shadow) = self.runs.get_mut(run) else {
            self.findings.ensure(2, !accepted || loose, || format!("{run} does not exist and accepted {delivery:?}"));
            return;
        };
        let strict = stand.alone && shadow.sure;
        if let (true, true, Delivery::Child { generation, child, .. }) = (strict, accepted, delivery) {
            let current = shadow.generation();
            self.findings.ensure(13, *generation == current, || {
                format!("{run} is at generation {current} and took the report of {child}, which {generation} started")
            });
        }
        let Some((id, what)) = parcel(delivery) else {
            if let (true, Delivery::Heartbeat { key, .. }) = (accepted, delivery) {
                put_off(shadow, key, self.clock.now());
            }
            return;
        };
        if strict {
            judge_acceptance(&mut self.findings, run, shadow, (&id, &what), delivered);
        }
        if accepted {
            shadow.mail_sure &= stand.alone;
            shadow.arrivals.push(Arrival { id, what, inbox: None, consumed: false });
        }
    }

    /// A journal and an inbox were read.
    pub(super) fn loaded(&mut self, loaded: &Loaded, stand: Stand) {
        self.read(&loaded.run, loaded.generation, loaded.first, &loaded.events, stand);
        if loaded.generation == Generation(0) {
            self.begins_with(&loaded.run, &loaded.input);
        }
        let Some(shadow) = self.runs.get_mut(&loaded.run).filter(|shadow| shadow.sure && stand.alone) else { return };
        let run = &loaded.run;
        let stands = (shadow.generation(), shadow.next());
        let read = (loaded.generation, Index(loaded.first.0 + loaded.events.len() as u64));
        // Whoever asks for what comes after the end, as one does who knew an earlier generation, reads nothing.
        let behind = loaded.events.is_empty() && loaded.generation == stands.0 && loaded.first > stands.1;
        self.findings.ensure(2, read == stands || behind, || {
            format!("{run} stands at {}/{}, and was read up to {}/{}", stands.0, stands.1, read.0, read.1)
        });
        let kept: BTreeSet<&DeliveryId> = loaded.inbox.iter().filter_map(|item| item.delivery.as_ref()).collect();
        let owed: BTreeSet<&DeliveryId> = shadow.arrivals.iter().filter(|it| !it.consumed).map(|it| &it.id).collect();
        self.findings.ensure(8, kept == owed || !shadow.mail_sure, || {
            format!("{run} has {kept:?} in its inbox, and should have {owed:?}")
        });
        for item in &loaded.inbox {
            judge_timer(&mut self.findings, run, shadow, item);
            let arrival = shadow.arrivals.iter_mut().find(|arrival| Some(&arrival.id) == item.delivery.as_ref());
            if let Some(arrival) = arrival {
                arrival.inbox = Some(item.id);
            }
        }
    }

    /// A part of a journal was read: it is what was appended.
    pub(super) fn read(&mut self, run: &RunKey, generation: Generation, first: Index, events: &[Record], stand: Stand) {
        let Some(shadow) = self.runs.get(run).filter(|shadow| shadow.sure) else { return };
        let chapter = usize::try_from(generation.0).ok().and_then(|generation| shadow.chapters.get(generation));
        let first = usize::try_from(first.0).unwrap_or(usize::MAX);
        let expected = chapter.map(|chapter| chapter.records().skip(first)).into_iter().flatten();
        // What is read while others write may be ahead of what they were told, or behind.
        let same = expected.zip(events).all(|(expected, found)| expected == found);
        let known = chapter.map_or(0, |chapter| chapter.entries.len().saturating_sub(first));
        self.findings.ensure(1, same && (events.len() <= known || !stand.alone), || {
            let found: Vec<u16> = events.iter().map(|record| record.kind).collect();
            format!("{run}/{generation} shows other events from {first} on than were appended: kinds {found:?}")
        });
    }

    /// What a commit consumed, and what it says about it.
    pub(super) fn consume(&mut self, commit: &Commit, events: &[Event], shadow: &mut Shadow, stand: Stand) {
        let run = &commit.run;
        let known = stand.alone && shadow.mail_sure;
        for event in events {
            let Some((invariant, fits)) = resolution(event) else { continue };
            let found = shadow.arrivals.iter_mut().find(|arrival| !arrival.consumed && fits(arrival));
            let said = found.as_ref().is_some_and(|arrival| says(event, &arrival.what));
            if let Some(arrival) = found {
                arrival.consumed = true;
            }
            self.findings.ensure_unless(!known, invariant, said, || {
                format!("{run}: {} of {:?} was answered by nobody, or otherwise", event.kind(), event.key())
            });
        }
        let terminated = matches!(events.last(), Some(Event::RunTerminated { .. }));
        let told = |event: &Event| matches!(event, Event::CancelRequested { .. });
        let paused = |arrival: &Arrival| arrival.what == Parcel::Control(Control::Pause);
        let was_paused = shadow.arrivals.iter().any(paused);
        // One that was held back ends without a word.
        let unbegun = self.lobby.get(run).is_some() && shadow.next() == Index(1);
        let was_told = shadow.chapter().is_some_and(|chapter| chapter.journal.events().iter().any(told));
        for arrival in shadow.arrivals.iter_mut().filter(|arrival| !arrival.consumed) {
            if !arrival.inbox.is_some_and(|inbox| commit.consumed.contains(&inbox)) {
                continue;
            }
            arrival.consumed = true;
            let (invariant, traced) = match arrival.what {
                Parcel::Control(Control::Cancel) => (16, was_told || unbegun),
                Parcel::Control(Control::Pause | Control::Resume | Control::Intervene | Control::Recall) => (8, true),
                // Nothing is recorded in a pause: what was for one operation goes with a run that ends in one.
                Parcel::Signal { aimed: Some(_), .. } => (8, was_paused && matches!(commit.then, Then::Finish(_))),
                Parcel::Signal { .. } | Parcel::Approval { .. } | Parcel::Callback { .. } => (8, false),
            };
            self.findings.ensure(invariant, traced || terminated, || {
                format!("{run}: {:?}, {:?}, was consumed without a trace", arrival.id, arrival.what)
            });
        }
        match commit.then {
            Then::Continue | Then::Suspend | Then::Pause | Then::Park { .. } => {}
            Then::Finish(_) | Then::ContinueAsNew { .. } => self.leave_behind(commit, shadow, stand),
        }
    }

    /// Answers must not be lost with the end of a generation. Signals and requests go with the run.
    fn leave_behind(&mut self, commit: &Commit, shadow: &mut Shadow, stand: Stand) {
        let over = matches!(commit.then, Then::Finish(_));
        let known = stand.alone && shadow.mail_sure;
        for arrival in shadow.arrivals.iter_mut().filter(|arrival| !arrival.consumed) {
            let stays = arrival.what.outlives_generation();
            self.findings.ensure_unless(!known, 9, stays, || {
                format!("{} ended over {:?}, which was accepted and not fed", commit.run, arrival.id)
            });
            arrival.consumed = over || !stays;
        }
    }
}

/// A sign of life: from now on it is silence again that counts. The clock may have gone back since the last one.
fn put_off(shadow: &mut Shadow, key: &Key, now: Timestamp) {
    let began = shadow.chapter().and_then(|chapter| began(chapter, key));
    let Some(Event::CallbackCreated { heartbeat_ms: Some(silence), .. }) =
        began.and_then(|entry| Event::decode(&entry.record).ok())
    else {
        return;
    };
    let timer = TimerRef { key: key.clone(), kind: TimerKind::Heartbeat };
    let due = now + Duration::from_millis(silence);
    shadow.timers.insert(timer.clone(), due);
    shadow.given.insert(timer, due);
}

fn parcel(delivery: &Delivery) -> Option<(DeliveryId, Parcel)> {
    let (id, what) = match delivery {
        Delivery::Signal { signal, .. } => {
            let (name, aimed, payload) = (signal.name.to_string(), signal.aimed.clone(), signal.payload.clone());
            (&signal.id, Parcel::Signal { name, aimed, payload })
        }
        Delivery::Answer { key, kind: WaitKind::Approval, id, meta, .. } => {
            (id, Parcel::Approval { key: key.clone(), meta: meta.clone() })
        }
        Delivery::Answer { key, kind: WaitKind::Callback, id, payload, .. } => {
            (id, Parcel::Callback { key: key.clone(), payload: payload.clone() })
        }
        Delivery::Control { id, control, .. } => (id, Parcel::Control(*control)),
        Delivery::Answer { .. } | Delivery::Heartbeat { .. } | Delivery::Child { .. } | Delivery::Task { .. } => {
            return None;
        }
    };
    Some((id.clone(), what))
}

fn judge_acceptance(
    findings: &mut Findings,
    run: &RunKey,
    shadow: &Shadow,
    (id, what): (&DeliveryId, &Parcel),
    delivered: Delivered,
) {
    let before = shadow.arrivals.iter().any(|arrival| arrival.id == *id);
    let accepted = matches!(delivered, Delivered::Delivered | Delivered::Buffered);
    findings.ensure_unless(shadow.deleted || shadow.doomed, 2, (delivered == Delivered::Duplicate) == before, || {
        format!("{run} answered {delivered:?} to {id:?}, which it had {}", if before { "before" } else { "never" })
    });
    if !accepted {
        return;
    }
    findings.ensure(6, !shadow.ended, || format!("{run} has ended and accepted {id:?}"));
    let open = |key| shadow.chapter().is_some_and(|chapter| chapter.journal.is_open(key));
    match what {
        Parcel::Approval { key, .. } => {
            findings.ensure(12, open(key), || format!("{run}: {key} is not open and took a decision"));
        }
        Parcel::Callback { key, .. } => {
            findings.ensure(9, open(key), || format!("{run}: {key} is not open and took an answer"));
        }
        Parcel::Signal { .. } | Parcel::Control(_) => {}
    }
}

/// A timer that lies in an inbox was due when it was put there, by the same clock.
fn judge_timer(findings: &mut Findings, run: &RunKey, shadow: &Shadow, item: &InboxItem) {
    let kind = item.name.as_deref().and_then(TimerKind::from_name).filter(|_| item.kind == InboxKind::Timer);
    let (Some(key), Some(kind)) = (item.key.clone(), kind) else { return };
    let Some(due) = shadow.timers.get(&TimerRef { key: key.clone(), kind }).copied() else { return };
    findings.ensure(10, due <= item.at, || {
        format!("{run}: the {} of {key} fired at {}, due at {due}", kind.name(), item.at)
    });
}

type Fits<'e> = Box<dyn Fn(&Arrival) -> bool + 'e>;

/// What an event that resolves a wait must go back to.
fn resolution(event: &Event) -> Option<(u8, Fits<'_>)> {
    Some(match event {
        Event::SignalResolved { signal_id, .. } | Event::SignalRejected { signal_id, .. } => {
            (8, Box::new(move |arrival| arrival.id == *signal_id))
        }
        Event::ApprovalResolved { key: of, .. } => {
            (12, Box::new(move |arrival| matches!(&arrival.what, Parcel::Approval { key, .. } if key == of)))
        }
        Event::CallbackResolved { key: of, .. } | Event::CallbackFailed { key: of, .. } => {
            (9, Box::new(move |arrival| matches!(&arrival.what, Parcel::Callback { key, .. } if key == of)))
        }
        _ => return None,
    })
}

/// Whether the event says what was accepted.
fn says(event: &Event, what: &Parcel) -> bool {
    match (event, what) {
        (Event::SignalResolved { key, name, payload, .. }, Parcel::Signal { name: sent, aimed, payload: said }) => {
            name.as_str() == sent && payload == said && aimed.as_ref().is_none_or(|aimed| aimed == key)
        }
        (Event::SignalRejected { name, .. }, Parcel::Signal { name: sent, .. }) => name.as_str() == sent,
        (Event::ApprovalResolved { approved, by, .. }, Parcel::Approval { meta, .. }) => {
            let said: Option<Value> = meta.as_deref().and_then(|meta| serde_json::from_slice(meta).ok());
            let decided = said.as_ref().map(|said| &said["decided"]);
            decided
                .is_some_and(|said| said["approved"] == Value::Bool(*approved) && said["by"].as_str() == by.as_deref())
        }
        (Event::CallbackResolved { payload, .. }, Parcel::Callback { payload: said, .. }) => {
            said.as_ref() == Some(payload)
        }
        (Event::CallbackFailed { .. }, Parcel::Callback { payload, .. }) => payload.is_none(),
        _ => false,
    }
}
