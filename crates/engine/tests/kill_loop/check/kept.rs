//! What is in the store stays there.

use std::collections::BTreeSet;

use outlast::Event;

use super::{Findings, acked};
use crate::evidence::{Seen, Snapshot};
use crate::ledger::{Ask, Entry, Note};

/// Every run that was acknowledged is there, and every child a journal speaks of; and nobody else is.
pub(super) fn runs(now: &Snapshot, entries: &[Entry], findings: &mut Findings) {
    for ask in acked(entries) {
        let (Ask::Start { run } | Ask::Fork { run, .. }) = ask else { continue };
        findings.ensure(now.runs.contains_key(run), || format!("{run} was acknowledged and is gone: {ask:?}"));
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for entry in entries {
        if let Note::Tried(Ask::Start { run } | Ask::Fork { run, .. }) = &entry.note {
            known.insert(run);
        }
    }
    let recorded: Vec<_> = now.runs.values().flat_map(Seen::events).collect();
    for recorded in &recorded {
        let Event::ChildStarted { child, .. } = &recorded.event else { continue };
        findings
            .ensure(now.runs.contains_key(child.as_str()), || format!("{child} was started as a child and is gone"));
        known.insert(child.as_str());
    }
    for run in now.runs.keys() {
        findings.ensure(known.contains(run.as_str()), || format!("nobody asked for {run}"));
    }
}

/// Every later journal begins with the earlier one.
pub(super) fn journals(before: &Snapshot, after: &Snapshot, findings: &mut Findings) {
    for (run, old) in &before.runs {
        let Some(new) = after.runs.get(run) else {
            findings.ensure(false, || format!("{run} was there and is gone"));
            continue;
        };
        let ended = old.status.is_terminal();
        findings.ensure(!ended || old.status == new.status, || {
            format!("{run} had ended: it was {:?} and is {:?}", old.status, new.status)
        });
        findings.ensure(!ended || old.journals.len() == new.journals.len(), || {
            format!("{run} had ended and has another generation")
        });
        for (generation, journal) in old.journals.iter().enumerate() {
            let later = new.journals.get(generation).map_or(&[][..], Vec::as_slice);
            findings.ensure(later.starts_with(journal), || {
                let first = journal.iter().zip(later).take_while(|(old, new)| old == new).count();
                let (was, is) = (journal.get(first), later.get(first));
                format!("{run}, generation {generation}: event {first} was {was:?} and is {is:?}")
            });
            let over = ended || generation + 1 < old.journals.len();
            findings.ensure(!over || later.len() == journal.len(), || {
                format!("{run}, generation {generation} was over and has grown to {} events", later.len())
            });
        }
    }
}
