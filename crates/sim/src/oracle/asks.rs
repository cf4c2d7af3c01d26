//! What clients were told against what is there; and nothing is there that nobody asked for.

mod traces;

use bytes::Bytes;
use outlast_core::commit::{InboxKind, Status};
use outlast_core::event::{Event, Kind};
use outlast_core::id::RunKey;
use outlast_core::record::Record;
use outlast_store::invariants::RunState;
use serde_json::Value;

use super::{Evidence, end_of};
use crate::ledger::{Ask, Asked};
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    for ask in evidence.asks.iter().filter(|ask| ask.is_done()) {
        done(evidence, ask, findings);
    }
    for ask in &evidence.asks {
        last_word(evidence, ask, findings);
    }
    traces::judge(evidence, findings);
}

/// What was acknowledged is there.
fn done(evidence: &Evidence, ask: &Ask, findings: &mut Findings) {
    let run = ask.run.as_str();
    let gone = evidence.shadow_of(run).is_some_and(|shadow| evidence.has_gone(shadow));
    let state = evidence.state_of(run);
    if let Asked::Fork { to, at } = &ask.asked {
        return forked(evidence, (run, *at), to, findings);
    }
    if let Asked::Delete = ask.asked {
        // An id that was deleted may have been given again.
        let again = evidence.shadow_of(run).is_none_or(|shadow| !shadow.deleted);
        return findings.ensure_unless(again, 2, state.is_none(), || format!("{run} was deleted and is there"));
    }
    let Some((key, state)) = state else {
        return findings.ensure_unless(gone, 2, false, || format!("{run} acknowledged {:?} and is gone", ask.asked));
    };
    let verdict = match &ask.asked {
        Asked::Start => Some(Ok(())),
        Asked::StartOther => {
            let starts = |other: &&Ask| other.run == run && matches!(other.asked, Asked::Start) && other.is_done();
            Some(match evidence.asks.iter().find(starts) {
                Some(_) => Err("it was started with two inputs".to_owned()),
                None => Ok(()),
            })
        }
        Asked::Signal { id, aimed, .. } => {
            let may_be_lost = match aimed {
                // The wait it is for was open: nobody ends over it who was asked to.
                Some(_) if ask.is_delivered() && !was_asked_to_pause(evidence, run) => was_terminated(state),
                Some(_) | None => state.view.status.is_terminal(),
            };
            is_there(state, signals_named(evidence, key, state, id), may_be_lost)
        }
        Asked::Approve { key: approval, by, yes, id } => {
            let decided = |event: &Event| {
                matches!(event, Event::ApprovalResolved { key, approved, by: who, .. }
                    if key.as_str() == approval && approved == yes && who.as_deref() == Some(by))
            };
            is_there(state, answers(state, decided, id), was_terminated(state))
        }
        Asked::Callback { key: callback, value, id } => {
            let answered = |event: &Event| match (event, value) {
                (Event::CallbackResolved { key, payload, .. }, Some(value)) => {
                    key.as_str() == callback && is_json(payload, value)
                }
                (Event::CallbackFailed { key, .. }, None) => key.as_str() == callback,
                _ => false,
            };
            // The same key may have failed in an earlier generation too.
            is_there(state, answers(state, answered, id).min(1), was_terminated(state))
        }
        Asked::Cancel => asked_to_stop(state),
        Asked::Terminate => Some(match end_of(state) {
            Some(Event::RunTerminated { .. }) => Ok(()),
            other => Err(format!("it ended with {:?}", other.as_ref().map(Event::kind))),
        }),
        Asked::Say(message) => is_there(state, told_with(state, message), state.view.status.is_terminal()),
        Asked::Pause | Asked::Resume | Asked::Fork { .. } | Asked::Delete | Asked::Skip(_) | Asked::Again(_) => None,
    };
    let Some(verdict) = verdict else { return };
    findings.check(2, verdict.map_err(|broken| format!("{run} acknowledged {:?}: {broken}", ask.asked)));
}

/// What is said about something that was acknowledged; nothing if nothing can be said.
type Said = Option<Result<(), String>>;

/// Whatever is acknowledged is found once; not at all only where the run's end took it away.
fn is_there(state: &RunState, found: usize, may_be_lost: bool) -> Said {
    match found {
        1 => Some(Ok(())),
        0 if may_be_lost => None,
        found => Some(Err(format!("it is there {found} times, and the run is {:?}", state.view.status))),
    }
}

fn signals_named(evidence: &Evidence, run: &RunKey, state: &RunState, id: &str) -> usize {
    let own = evidence.own_events(run, state);
    let taken = own.iter().filter(|(_, _, event)| {
        matches!(event, Event::SignalResolved { signal_id, .. } | Event::SignalRejected { signal_id, .. }
            if signal_id.as_str() == id)
    });
    taken.count() + in_the_inbox(state, id)
}

fn answers(state: &RunState, is: impl Fn(&Event) -> bool, id: &str) -> usize {
    state.events().iter().filter(|event| is(event)).count() + in_the_inbox(state, id)
}

/// How often the run was told something when it went on, or will be.
fn told_with(state: &RunState, message: &Value) -> usize {
    let said =
        |event: &&Event| matches!(event, Event::RunResumed { message: Some(said), .. } if is_json(said, message));
    let told = state.events().iter().filter(said).count();
    let unread = |item: &&outlast_core::commit::InboxItem| {
        item.kind == InboxKind::Resume && item.payload.as_ref().is_some_and(|said| is_json(said, message))
    };
    told + state.inbox.iter().filter(unread).count()
}

fn in_the_inbox(state: &RunState, id: &str) -> usize {
    state.inbox.iter().filter(|item| item.delivery.as_ref().is_some_and(|found| found.as_str() == id)).count()
}

/// Whether somebody may have paused it: nothing is recorded in a pause.
fn was_asked_to_pause(evidence: &Evidence, run: &str) -> bool {
    evidence.asks.iter().any(|ask| ask.run == run && ask.asked == Asked::Pause)
}

fn was_terminated(state: &RunState) -> bool {
    matches!(end_of(state), Some(Event::RunTerminated { .. }))
}

pub(super) fn is_json(payload: &Bytes, value: &Value) -> bool {
    serde_json::from_slice::<Value>(payload).is_ok_and(|payload| payload == *value)
}

/// A run that lives was told, or will be.
fn asked_to_stop(state: &RunState) -> Said {
    let told = state.events().iter().any(|event| matches!(event, Event::CancelRequested { .. }));
    let will_be = state.inbox.iter().any(|item| item.kind == InboxKind::Cancel);
    match (told || will_be, state.view.status.is_terminal()) {
        (true, _) => Some(Ok(())),
        (false, true) => None,
        (false, false) => Some(Err("it is alive and was never told".to_owned())),
    }
}

/// A pause that was acknowledged holds until somebody else is heard; a resume ends it.
fn last_word(evidence: &Evidence, ask: &Ask, findings: &mut Findings) {
    let Some((run, state)) = evidence.state_of(&ask.run).filter(|(_, state)| !state.view.status.is_terminal()) else {
        return;
    };
    let speaks = |other: &&Ask| {
        let control =
            matches!(other.asked, Asked::Pause | Asked::Resume | Asked::Say(_) | Asked::Cancel | Asked::Terminate);
        control && other.run == ask.run && other.is_possible()
    };
    // What overlaps it may have been heard before it or after.
    let alone = !evidence.asks.iter().filter(speaks).any(|other| {
        let after = ask.ended.is_none_or(|(ended, _)| other.begun > ended);
        let meanwhile = other.begun >= ask.begun && other != ask;
        let in_time = other.is_done() && other.ended.is_some_and(|(ended, _)| ended < ask.begun);
        let earlier = other.begun < ask.begun && !in_time;
        after || meanwhile || earlier
    });
    if !ask.is_done() || !alone || state.view.status == Status::Parked || evidence.told_to_stop.contains_key(run) {
        return;
    }
    let unread = state.inbox.iter().any(|item| item.kind == InboxKind::Pause);
    let pending = unread || state.view.owner.is_some();
    match ask.asked {
        Asked::Pause => findings.ensure(2, state.view.status == Status::Paused || pending, || {
            format!("{run} was paused, nobody let it go on, and it is {:?}", state.view.status)
        }),
        Asked::Resume | Asked::Say(_) => findings.ensure(2, state.view.status != Status::Paused, || {
            format!("{run} was resumed, nobody paused it again, and it is paused")
        }),
        _ => {}
    }
}

/// Whether a fork has this event of its source. Those that refer to others by their places are told the new ones.
fn is_same(of_source: &Record, of_fork: &Record) -> bool {
    let refers = [Kind::ContainerIterationCompleted, Kind::ContainerChildCompleted].map(Kind::code);
    let moved = refers.contains(&of_fork.kind) && (of_source.kind, &of_source.key) == (of_fork.kind, &of_fork.key);
    of_source == of_fork || moved
}

/// A fork began with what its source had, in the same order.
fn forked(evidence: &Evidence, (from, at): (&str, u64), to: &str, findings: &mut Findings) {
    let Some(fork) = evidence.shadow_of(to).filter(|_| evidence.state_of(to).is_some()) else {
        let gone = evidence.shadow_of(to).is_some_and(|shadow| evidence.has_gone(shadow));
        return findings.ensure_unless(gone, 2, false, || format!("{to} was forked from {from} and is not there"));
    };
    let (Some(source), Some(first)) = (evidence.shadow_of(from), fork.chapters.first()) else { return };
    if !source.sure || !fork.sure {
        return;
    }
    let history: Vec<&Record> = first.records().take(first.history).collect();
    let from_it = source.chapters.iter().any(|chapter| {
        let mut kept = chapter.records().take(usize::try_from(at).unwrap_or(usize::MAX));
        history.iter().all(|record| kept.any(|kept| is_same(kept, record)))
    });
    findings.ensure(2, from_it, || format!("{to} does not begin as {from} did up to {at}"));
}
