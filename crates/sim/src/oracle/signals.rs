//! Signals: whatever was accepted is consumed or still there, once, and those of one name in order.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::commit::InboxKind;
use outlast_core::event::Event;
use outlast_core::id::RunKey;
use outlast_store::invariants::RunState;

use super::Evidence;
use crate::violation::Findings;
use crate::watch::{Parcel, Shadow};

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    for (run, state) in evidence.runs() {
        let consumed = consumed(evidence, run, state);
        let waiting = state.inbox.iter().filter(|item| item.kind == InboxKind::Signal);
        let waiting = waiting.filter_map(|item| Some(item.delivery.as_ref()?.to_string()));
        let kept: Vec<String> = consumed.iter().map(|(_, id)| id.clone()).chain(waiting).collect();
        let distinct: BTreeSet<&String> = kept.iter().collect();
        findings.ensure(8, distinct.len() == kept.len(), || format!("{run} has a signal twice: {kept:?}"));
        if let Some(shadow) = evidence.shadows.get(run).filter(|shadow| shadow.sure && shadow.mail_sure) {
            arrived(run, state, shadow, &kept, findings);
            if evidence.ordered {
                in_order(run, shadow, &consumed, findings);
            }
        }
    }
}

/// Names and ids of the signals a run took, in order.
fn consumed(evidence: &Evidence, run: &RunKey, state: &RunState) -> Vec<(String, String)> {
    let own = evidence.own_events(run, state).into_iter();
    let taken = own.filter_map(|(_, _, event)| match event {
        Event::SignalResolved { name, signal_id, .. } | Event::SignalRejected { name, signal_id, .. } => {
            Some((name.to_string(), signal_id.to_string()))
        }
        _ => None,
    });
    taken.collect()
}

/// What is kept was sent, and what was accepted is kept as long as the run lives.
fn arrived(run: &RunKey, state: &RunState, shadow: &Shadow, kept: &[String], findings: &mut Findings) {
    let signals = shadow.arrivals.iter().filter(|arrival| matches!(arrival.what, Parcel::Signal { .. }));
    let sent: BTreeSet<String> = signals.map(|arrival| arrival.id.to_string()).collect();
    let kept: BTreeSet<String> = kept.iter().cloned().collect();
    findings.ensure(8, kept.is_subset(&sent), || format!("{run} has signals nobody sent: {kept:?}, of {sent:?}"));
    if !state.view.status.is_terminal() {
        findings.ensure(8, kept == sent, || format!("{run} accepted {sent:?} and has {kept:?}"));
    }
}

/// The first one that came is the first one taken.
fn in_order(run: &RunKey, shadow: &Shadow, consumed: &[(String, String)], findings: &mut Findings) {
    let mut sent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for arrival in &shadow.arrivals {
        if let Parcel::Signal { name, aimed: None, .. } = &arrival.what {
            sent.entry(name).or_default().push(arrival.id.to_string());
        }
    }
    for (name, sent) in sent {
        let of_name = consumed.iter().filter(|(of, id)| of == name && sent.contains(id));
        let taken: Vec<&String> = of_name.map(|(_, id)| id).collect();
        let expected: Vec<&String> = sent.iter().take(taken.len()).collect();
        findings.ensure(8, taken == expected, || format!("{run} took {taken:?} of {name}, which came as {expected:?}"));
    }
}
