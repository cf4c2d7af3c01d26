//! What was acknowledged shows, once.

use outlast::Event;

use super::{Findings, acked};
use crate::evidence::{Recorded, Snapshot};
use crate::ledger::{Ask, Entry, Note};

pub(super) fn judge(end: &Snapshot, entries: &[Entry], findings: &mut Findings) {
    for ask in acked(entries) {
        if let Err(why) = shows(end, ask) {
            findings.ensure(false, || format!("acknowledged was {ask:?}, and {why}"));
        }
    }
    signals_once(end, findings);
    new_once(entries, findings);
    for run in end.runs.keys() {
        pauses(run, end, entries, findings);
    }
}

/// Whether an effect is in the journals exactly once.
fn shows(end: &Snapshot, ask: &Ask) -> Result<(), String> {
    match ask {
        // That such a run is there, and never away, is judged at any time; that it ends, at the end.
        Ask::Start { .. } => Ok(()),
        Ask::Signal { run, id } => one(end, run, |event| taken(event).is_some_and(|taken| taken == id)),
        Ask::Approve { run, key, feedback } => one(end, run, |event| {
            matches!(event, Event::ApprovalResolved { key: of, approved: true, feedback: Some(said), .. }
                if of.as_str() == key && said == feedback)
        }),
        Ask::Resolve { run, callback, value } => one(end, run, |event| {
            matches!(event, Event::CallbackResolved { key, payload, .. }
                if key.as_str() == callback && payload == value.to_string().as_bytes())
        }),
        Ask::Fail { run, callback, message } => one(end, run, |event| {
            matches!(event, Event::CallbackFailed { key, error, .. }
                if key.as_str() == callback && error.message == *message)
        }),
        // Judged by the time of the timeout.
        Ask::Heartbeat { .. } => Ok(()),
        Ask::Cancel { run } => {
            one(end, run, |event| matches!(event, Event::CancelRequested { .. }))?;
            one(end, run, |event| matches!(event, Event::RunCancelled { .. }))
        }
        // Counted together.
        Ask::Pause { .. } | Ask::Resume { .. } => Ok(()),
        Ask::Fork { from, at, run } => begins_like(end, run, from, usize::try_from(*at).unwrap()),
        Ask::Terminate { run, reason } => {
            one(end, run, |event| matches!(event, Event::RunTerminated { reason: Some(said), .. } if said == reason))
        }
    }
}

fn events(end: &Snapshot, run: &str) -> Vec<Recorded> {
    end.runs.get(run).map(|seen| seen.events()).unwrap_or_default()
}

fn one(end: &Snapshot, run: &str, is: impl Fn(&Event) -> bool) -> Result<(), String> {
    match events(end, run).iter().filter(|recorded| is(&recorded.event)).count() {
        1 => Ok(()),
        times => Err(format!("it is in the journals {times} times")),
    }
}

/// The signal an event takes from the mailbox.
fn taken(event: &Event) -> Option<&str> {
    match event {
        Event::SignalResolved { signal_id, .. } | Event::SignalRejected { signal_id, .. } => Some(signal_id.as_str()),
        _ => None,
    }
}

/// Acknowledged or not: no signal is taken twice.
fn signals_once(end: &Snapshot, findings: &mut Findings) {
    for run in end.runs.keys() {
        let events = events(end, run);
        let mut ids: Vec<&str> = events.iter().filter_map(|recorded| taken(&recorded.event)).collect();
        ids.sort_unstable();
        for pair in ids.windows(2) {
            findings.ensure(pair[0] != pair[1], || format!("{run}: the signal {} is taken twice", pair[0]));
        }
    }
}

/// What has an id of its own is new only once: if it is new to somebody who asked after it was acknowledged, it was lost.
fn new_once(entries: &[Entry], findings: &mut Findings) {
    for (at, entry) in entries.iter().enumerate() {
        let Note::Acked(ask @ (Ask::Signal { .. } | Ask::Cancel { .. })) = &entry.note else { continue };
        let tried = |tried: &Entry| tried.life == entry.life && tried.note == Note::Tried(ask.clone());
        let tried = entries[..at].iter().rposition(tried).unwrap_or(at);
        let known = acked(&entries[..tried]).any(|known| known == ask);
        findings.ensure(!known, || format!("{ask:?} was acknowledged, and then forgotten"));
    }
}

/// A fork begins with what its source had.
fn begins_like(end: &Snapshot, run: &str, from: &str, at: usize) -> Result<(), String> {
    let begin = |run: &str| {
        let journal = end.runs.get(run).and_then(|seen| seen.journals.first());
        journal.and_then(|journal| journal.get(..at)).map(<[_]>::to_vec)
    };
    match (begin(run), begin(from)) {
        (Some(fork), Some(source)) if fork == source => Ok(()),
        (fork, source) => Err(format!("it begins with {fork:?} and not with {source:?}")),
    }
}

/// A pause is asked for only where none is seen, and a resume only where one is: so between two resumes that were tried, an
/// acknowledged pause has a pause of its own in the journal, and the other way round.
fn pauses(run: &str, end: &Snapshot, entries: &[Entry], findings: &mut Findings) {
    let (pause, resume) = (Ask::Pause { run: run.to_owned() }, Ask::Resume { run: run.to_owned() });
    let events = events(end, run);
    let paused = events.iter().filter(|recorded| matches!(recorded.event, Event::RunPaused { .. })).count();
    let resumed = events.iter().filter(|recorded| matches!(recorded.event, Event::RunResumed { .. })).count();
    let told = (stretches(entries, &pause, &resume), stretches(entries, &resume, &pause));
    findings.ensure(paused >= told.0, || format!("{run} was paused {} times, and its journal says {paused}", told.0));
    findings
        .ensure(resumed >= told.1, || format!("{run} was resumed {} times, and its journal says {resumed}", told.1));
}

/// In how many stretches between two tries of `end` an `ask` was acknowledged.
fn stretches(entries: &[Entry], ask: &Ask, end: &Ask) -> usize {
    let (mut count, mut counted) = (0, false);
    for entry in entries {
        match &entry.note {
            Note::Tried(tried) if tried == end => counted = false,
            Note::Acked(acked) if acked == ask && !counted => (count, counted) = (count + 1, true),
            _ => {}
        }
    }
    count
}
