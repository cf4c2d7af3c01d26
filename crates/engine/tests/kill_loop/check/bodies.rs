//! Bodies that ran, against what is recorded of them.

use std::collections::BTreeMap;

use outlast::Event;

use super::{Findings, forked_events};
use crate::evidence::{Seen, Snapshot};
use crate::ledger::{Entry, Note};

/// A body by run, generation, key and attempt.
type Place<'a> = (&'a str, u64, &'a str, u32);

fn bodies(entries: &[Entry]) -> impl Iterator<Item = Place<'_>> {
    entries.iter().filter_map(|entry| match &entry.note {
        Note::Body { run, generation, key, attempt } => Some((run.as_str(), *generation, key.as_str(), *attempt)),
        _ => None,
    })
}

/// Whether a step's body runs inside the store, where nobody outside sees it.
fn is_transaction(workflow: &str, key: &str) -> bool {
    workflow == "payments" && (key == "table" || key.starts_with("pay"))
}

pub(super) fn judge(run: &str, seen: &Seen, entries: &[Entry], findings: &mut Findings) {
    let mut ran: BTreeMap<Place<'_>, usize> = BTreeMap::new();
    bodies(entries).filter(|body| body.0 == run).for_each(|body| *ran.entry(body).or_default() += 1);
    let elsewhere = forked_events(run, entries);
    let events = seen.events();
    for recorded in events.iter().skip(elsewhere) {
        let (Some(key), Some(attempt)) = (recorded.key(), recorded.attempt()) else { continue };
        // Nobody knows whether it ran.
        let in_doubt = matches!(&recorded.event, Event::StepFailed { error, .. } if error.code == "step_in_doubt");
        let unseen = in_doubt || is_transaction(&seen.workflow, key);
        findings.ensure(unseen || ran.contains_key(&(run, recorded.generation, key, attempt)), || {
            format!("{run}: attempt {attempt} of {key} is recorded and nobody saw it run")
        });
    }
    // What may run at most once says so before it does.
    for ((_, generation, key, attempt), times) in ran.into_iter().filter(|((_, _, key, _), _)| *key == "careful") {
        let said = events.iter().any(|recorded| {
            let same = recorded.generation == generation && recorded.key() == Some(key);
            same && matches!(&recorded.event, Event::StepStarted { attempt: begun, .. } if *begun == attempt)
        });
        findings.ensure(said && times == 1, || {
            let before = if said { "" } else { " before that was recorded" };
            format!("{run}: {key} may run at most once and ran {times} times{before}")
        });
    }
}

/// A body whose outcome was recorded before never runs again.
pub(super) fn not_again(before: &Snapshot, since: &[Entry], findings: &mut Findings) {
    let mut recorded: BTreeMap<(&str, u64, String), u32> = BTreeMap::new();
    for (run, seen) in &before.runs {
        for event in seen.events() {
            let (Some(key), Some(attempt)) = (event.key(), event.attempt()) else { continue };
            let latest = recorded.entry((run, event.generation, key.to_owned())).or_default();
            *latest = attempt.max(*latest);
        }
    }
    for (run, generation, key, attempt) in bodies(since) {
        let latest = recorded.get(&(run, generation, key.to_owned())).copied();
        findings.ensure(latest.is_none_or(|latest| attempt > latest), || {
            format!("{run}: attempt {attempt} of {key} ran again after its outcome was recorded")
        });
    }
}
