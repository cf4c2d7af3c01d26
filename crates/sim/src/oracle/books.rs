//! Transactions: what they left in the author's table and what is on record of them are there together, or neither is.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::event::Event;

use super::{Evidence, Scene};
use crate::ledger::{Asked, Place};
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    let entries = match &scene.entries {
        None => return,
        Some(Ok(entries)) => entries,
        Some(Err(unreadable)) => {
            return findings.check(4, Err(format!("the author's table cannot be read: {unreadable}")));
        }
    };
    let table = Table { entries, places: places(evidence), recorded: recorded(evidence) };
    table.judge(|run| may_be_gone(evidence, run), findings);
}

/// What is in the author's table, and what is on record.
struct Table<'e> {
    entries: &'e [String],
    /// Whose entries they are, by what the bodies were given.
    places: BTreeMap<&'e str, Place>,
    /// The attempts with which transactions are on record.
    recorded: BTreeMap<Place, u32>,
}

impl Table<'_> {
    fn judge(&self, may_be_gone: impl Fn(&str) -> bool, findings: &mut Findings) {
        let mut found: BTreeSet<(&Place, u32)> = BTreeSet::new();
        for entry in self.entries {
            let Some((place, attempt)) = self.place_of(entry) else {
                findings.check(4, Err(format!("{entry:?} is in the author's table, and no transaction wrote it")));
                continue;
            };
            // What a run that is gone wrote stays.
            if may_be_gone(&place.0) {
                continue;
            }
            let (once, on_record) = (found.insert((place, attempt)), self.recorded.get(place));
            findings.ensure(4, once, || format!("{entry:?} is in the author's table twice"));
            findings.ensure(4, on_record == Some(&attempt), || {
                format!("{entry:?} is in the author's table, and on record is attempt {on_record:?}")
            });
        }
        for (place, attempt) in &self.recorded {
            findings.ensure(4, found.contains(&(place, *attempt)) || may_be_gone(&place.0), || {
                format!("{place:?} is on record with attempt {attempt}, and what it wrote is not there")
            });
        }
    }

    fn place_of(&self, entry: &str) -> Option<(&Place, u32)> {
        let (key, attempt) = entry.rsplit_once('#')?;
        Some((self.places.get(key)?, attempt.parse().ok()?))
    }
}

fn places(evidence: &Evidence) -> BTreeMap<&str, Place> {
    let bodies = evidence.bodies.iter().map(|seen| &seen.body);
    bodies.map(|body| (body.idempotency_key.as_str(), (body.run.clone(), body.generation, body.key.clone()))).collect()
}

/// The transactions that are on record, and with which attempt.
fn recorded(evidence: &Evidence) -> BTreeMap<Place, u32> {
    let mut recorded = BTreeMap::new();
    for (run, state) in evidence.runs() {
        for (generation, _, event) in evidence.own_events(run, state) {
            if let Event::StepFinished { key, attempts, .. } = &event
                && is_transaction(key.as_str())
            {
                recorded.insert((run.id.to_string(), generation as u64, key.to_string()), *attempts);
            }
        }
    }
    recorded
}

/// Operations are named after what they are.
fn is_transaction(key: &str) -> bool {
    key.rsplit('/').next().is_some_and(|name| name.starts_with("transaction-"))
}

/// Whether the run, or one above it, may have been deleted, and perhaps started anew; or went because of its age.
fn may_be_gone(evidence: &Evidence, run: &str) -> bool {
    if evidence.shadow_of(run).is_some_and(|shadow| evidence.has_gone(shadow)) {
        return true;
    }
    let deleted = evidence.asks.iter().filter(|ask| ask.asked == Asked::Delete && ask.is_possible());
    deleted.into_iter().any(|ask| run.starts_with(ask.run.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(run: &str) -> Place {
        (run.to_owned(), 0, "transaction-0".to_owned())
    }

    /// What is said of a table, if `run` is on record with its second attempt, and `old` was deleted.
    fn said(entries: &[&str]) -> Vec<String> {
        let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
        let places = [("k/run", place("run")), ("k/old", place("old")), ("k/other", place("other"))].into();
        let table = Table { entries: &entries, places, recorded: [(place("run"), 2)].into() };
        let mut findings = Findings::default();
        table.judge(|run| run == "old", &mut findings);
        findings.violations.into_iter().map(|broken| broken.text).collect()
    }

    #[test]
    fn what_is_on_record_is_in_the_table_once() {
        assert_eq!(said(&["k/run#2", "k/old#1"]), [""; 0]);
        assert!(said(&[])[0].contains("is not there"));
        assert!(said(&["k/run#2", "k/run#2"])[0].contains("twice"));
    }

    #[test]
    fn what_was_rolled_back_is_not_in_the_table() {
        assert!(said(&["k/run#1", "k/run#2"])[0].contains("k/run#1"));
        assert!(said(&["k/run#2", "k/other#1"])[0].contains("on record is attempt None"));
        assert!(said(&["k/run#2", "k/nobody#1"])[0].contains("no transaction wrote it"));
    }
}
