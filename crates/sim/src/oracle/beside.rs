//! Another namespace: the runs there have the ids of those of the case, and nothing of what happens to these reaches them.

use outlast_core::event::Kind;
use outlast_core::id::RunKey;
use outlast_store::invariants::RunState;

use super::{Evidence, is_beside};
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    for (run, state) in evidence.runs().filter(|(run, _)| is_beside(run)) {
        findings.check(20, is_untouched(state).map_err(|broken| untouched(run, &broken)));
    }
    for (run, _) in evidence.shadows.iter().filter(|(run, _)| is_beside(run)) {
        findings.ensure(20, evidence.state(run).is_some(), || untouched(run, "it is gone"));
    }
}

/// It was started, and waits; nobody ever told it anything.
fn is_untouched(state: &RunState) -> Result<(), String> {
    let kinds: Vec<Kind> = state.events().iter().map(|event| event.kind()).collect();
    if state.view.status.is_terminal() || !state.view.status.is_claimable() {
        return Err(format!("it is {:?}", state.view.status));
    }
    if kinds.iter().any(|kind| *kind != Kind::SignalAwaited) || kinds.len() > 1 {
        return Err(format!("it has {kinds:?}"));
    }
    match state.inbox.first() {
        Some(item) => Err(format!("it was told {item:?}")),
        None => Ok(()),
    }
}

fn untouched(run: &RunKey, broken: &str) -> String {
    format!("{run} is beside everything that happens, and {broken}")
}
