//! Whoever is not over and was left alone rests for a reason: it is driven by somebody who lives, it waits, or somebody
//! said that it should.

use std::time::Duration;

use outlast_core::commit::Status;
use outlast_core::event::Event;
use outlast_core::id::RunKey;
use outlast_store::invariants::RunState;

use super::{Evidence, Scene};
use crate::ledger::Asked;
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    let Some(patience) = scene.patience.filter(|_| scene.at_rest) else { return };
    for (run, state) in evidence.runs().filter(|(_, state)| !state.view.status.is_terminal()) {
        owned(evidence, run, state, patience, findings);
        paused(evidence, run, state, findings);
    }
}

/// Whoever owns a run lives, or is known to be dead for less than it takes to take over.
fn owned(evidence: &Evidence, run: &RunKey, state: &RunState, patience: Duration, findings: &mut Findings) {
    let (Some(owner), Some(now)) = (state.view.owner, evidence.now) else { return };
    let until = evidence.leases.get(&owner).copied();
    findings.ensure(5, until.is_some_and(|until| until + patience >= now), || {
        format!("{run} is {:?} under lease {owner}, which was over at {until:?}; it is {now}", state.view.status)
    });
}

/// Whoever pauses was asked to, itself or, before it was a fork, whoever it was.
fn paused(evidence: &Evidence, run: &RunKey, state: &RunState, findings: &mut Findings) {
    if state.view.status != Status::Paused {
        return;
    }
    let asked = evidence.asks.iter().any(|ask| {
        let it = run.id.as_str().starts_with(ask.run.as_str());
        it && ask.is_possible() && ask.asked == Asked::Pause
    });
    let said = state.events().iter().any(|event| matches!(event, Event::RunPaused { .. }));
    findings.ensure(2, asked && said, || format!("{run} is paused, and nobody asked for that"));
}
