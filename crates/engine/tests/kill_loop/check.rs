//! What must hold, judged from outside. Each check gets the evidence as data, so that doctored evidence can try it.

mod asks;
mod bodies;
mod coverage;
mod ends;
mod kept;
mod once;
mod times;

pub(crate) use coverage::Coverage;

use crate::evidence::Snapshot;
use crate::ledger::{Ask, Entry, Note};

/// What was found wrong.
#[derive(Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<String>);

impl Findings {
    fn ensure(&mut self, holds: bool, broken: impl FnOnce() -> String) {
        if !holds {
            self.0.push(broken());
        }
    }
}

/// What holds whenever somebody looks.
pub(crate) fn at_any_time(now: &Snapshot, entries: &[Entry], findings: &mut Findings) {
    let entries = &entries[..now.lines];
    kept::runs(now, entries, findings);
    for (run, seen) in &now.runs {
        times::judge(run, seen, entries, findings);
        once::judge(run, seen, findings);
        bodies::judge(run, seen, entries, findings);
    }
}

/// What holds between two moments: what was recorded stays, and what it says is not done again.
pub(crate) fn between(before: &Snapshot, after: &Snapshot, entries: &[Entry], findings: &mut Findings) {
    kept::journals(before, after, findings);
    bodies::not_again(before, &entries[before.lines..after.lines], findings);
}

/// What holds when all runs have ended.
pub(crate) fn at_the_end(end: &Snapshot, entries: &[Entry], findings: &mut Findings) {
    let entries = &entries[..end.lines];
    asks::judge(end, entries, findings);
    ends::judge(end, entries, findings);
}

/// What was acknowledged.
fn acked(entries: &[Entry]) -> impl Iterator<Item = &Ask> {
    entries.iter().filter_map(|entry| match &entry.note {
        Note::Acked(ask) | Note::Known(ask) => Some(ask),
        _ => None,
    })
}

/// Where a run's history came from, if it was forked: that many of its events happened elsewhere.
fn forked_events(run: &str, entries: &[Entry]) -> usize {
    entries
        .iter()
        .find_map(|entry| match &entry.note {
            Note::Tried(Ask::Fork { at, run: fork, .. }) if fork == run => usize::try_from(*at).ok(),
            _ => None,
        })
        .unwrap_or(0)
}
