//! Nothing is early: neither by what the journal says, nor by when bodies were seen to run.

use outlast::{Event, Timestamp};

use super::Findings;
use crate::evidence::{Recorded, Seen};
use crate::ledger::{Ask, Entry, Note};
use crate::workflows::TIMEOUTS;

/// Workflows that do one thing after the other: a body runs when every sleep before it is over.
const ONE_BY_ONE: [&str; 2] = ["naps", "child"];

pub(super) fn judge(run: &str, seen: &Seen, entries: &[Entry], findings: &mut Findings) {
    let events = seen.events();
    for recorded in &events {
        let Recorded { at, generation, .. } = recorded;
        let (Some(key), kind) = (recorded.key(), recorded.event.kind()) else { continue };
        if let Some((deadline, why)) = earliest(recorded, &events, run, entries) {
            findings.ensure(*at >= deadline, || {
                format!("{run}, generation {generation}: {kind} of {key} at {at} is early: {why} {deadline}")
            });
        }
        retried_bodies(run, recorded, entries, findings);
    }
    if ONE_BY_ONE.contains(&seen.workflow.as_str()) {
        bodies_after_sleeps(run, &events, entries, findings);
    }
}

/// Before when an event cannot happen, and why.
fn earliest(of: &Recorded, events: &[Recorded], run: &str, entries: &[Entry]) -> Option<(i64, &'static str)> {
    let deadline = |deadline: Timestamp| deadline.as_millis();
    let before = || events.iter().take_while(|event| (event.generation, event.index) < (of.generation, of.index));
    let of_key = || before().filter(|event| event.generation == of.generation && event.key() == of.key());
    let started = || of_key().next().map(|started| &started.event);
    match &of.event {
        Event::TimerFired { .. } => match started()? {
            Event::TimerStarted { deadline: due, .. } => Some((deadline(*due), "its deadline is")),
            _ => None,
        },
        Event::SignalTimedOut { .. } => match started()? {
            Event::SignalAwaited { deadline: Some(due), .. } => Some((deadline(*due), "its deadline is")),
            _ => Some((i64::MAX, "it has no deadline:")),
        },
        Event::ApprovalTimedOut { .. } => match started()? {
            Event::ApprovalRequested { deadline: Some(due), .. } => Some((deadline(*due), "its deadline is")),
            _ => Some((i64::MAX, "it has no deadline:")),
        },
        Event::CallbackTimedOut { key, .. } => {
            let created = of_key().next()?;
            let Event::CallbackCreated { deadline: due, heartbeat_ms, .. } = &created.event else { return None };
            let silence = heartbeat_ms.map(|silence| {
                let beat = last_beat(run, key.as_str(), entries).unwrap_or(created.at);
                created.at.max(beat) + i64::try_from(silence).unwrap()
            });
            let due = due.map(deadline).into_iter().chain(silence).min();
            Some((due.unwrap_or(i64::MAX), "it was given time until"))
        }
        Event::StepFinished { .. }
        | Event::StepFailed { .. }
        | Event::StepRetryScheduled { .. }
        | Event::ConditionChecked { .. } => {
            let retry = of_key().filter_map(|event| next_at(&event.event)).max();
            let timed_out = timed_out(of, before().last());
            [retry.map(|due| (due, "its attempt begins at")), timed_out].into_iter().flatten().max()
        }
        _ => None,
    }
}

/// When the next attempt begins.
fn next_at(event: &Event) -> Option<i64> {
    match event {
        Event::StepRetryScheduled { next_at, .. } => Some(next_at.as_millis()),
        Event::ConditionChecked { next_at, .. } => next_at.map(Timestamp::as_millis),
        _ => None,
    }
}

/// When the last sign of life was sent that was acknowledged.
fn last_beat(run: &str, callback: &str, entries: &[Entry]) -> Option<i64> {
    let ask = Ask::Heartbeat { run: run.to_owned(), callback: callback.to_owned() };
    let acked = |entry: &&Entry| entry.note == Note::Acked(ask.clone());
    let tried = |acked: &Entry, entry: &&Entry| entry.life == acked.life && entry.note == Note::Tried(ask.clone());
    let beats = entries.iter().enumerate().filter(|(_, entry)| acked(entry));
    beats.filter_map(|(at, acked)| Some(entries[..at].iter().rev().find(|entry| tried(acked, entry))?.at)).max()
}

/// An attempt that ran out of time had all of it, from the fact before it on: until then it could not begin.
fn timed_out(of: &Recorded, before: Option<&Recorded>) -> Option<(i64, &'static str)> {
    let (Event::StepFailed { error, .. } | Event::StepRetryScheduled { error, .. }) = &of.event else { return None };
    let (_, limit) = TIMEOUTS.iter().find(|(key, _)| Some(*key) == of.key())?;
    let begun = before?.at;
    (error.code == "timeout").then(|| (begun + i64::try_from(limit.as_millis()).unwrap(), "it had time until"))
}

/// No body of the next attempt ran before its time.
fn retried_bodies(run: &str, recorded: &Recorded, entries: &[Entry], findings: &mut Findings) {
    let (Some(due), Some(attempt)) = (next_at(&recorded.event), recorded.attempt()) else { return };
    for entry in entries {
        let Note::Body { run: of, generation, key, attempt: next } = &entry.note else { continue };
        let same = of == run && *generation == recorded.generation && Some(key.as_str()) == recorded.key();
        findings.ensure(!same || *next <= attempt || entry.at >= due, || {
            format!("{run}: attempt {next} of {key} ran at {}, and was not to before {due}", entry.at)
        });
    }
}

/// No body ran while a sleep before it had not ended.
fn bodies_after_sleeps(run: &str, events: &[Recorded], entries: &[Entry], findings: &mut Findings) {
    let mut awake = i64::MIN;
    for recorded in events {
        match &recorded.event {
            Event::TimerStarted { deadline, .. } => awake = awake.max(deadline.as_millis()),
            Event::StepFinished { key, .. } => {
                for entry in entries {
                    let Note::Body { run: of, generation, key: ran, .. } = &entry.note else { continue };
                    let same = of == run && *generation == recorded.generation && ran == key.as_str();
                    findings.ensure(!same || entry.at >= awake, || {
                        format!("{run}: {key} ran at {}, and the sleep before it ends at {awake}", entry.at)
                    });
                }
            }
            _ => {}
        }
    }
}
