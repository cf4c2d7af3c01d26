//! Another namespace: runs there have the ids of those of the case, and nothing of what happens to these reaches them. One has
//! something to do, and does it.

use outlast_core::commit::Status;
use outlast_core::event::Kind;
use outlast_core::id::RunKey;
use outlast_store::invariants::RunState;

use super::{Evidence, Scene, is_beside};
use crate::cluster::NEIGHBOUR;
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    for (run, state) in evidence.runs().filter(|(run, _)| is_beside(run)) {
        let verdict = if run.id.as_str() == NEIGHBOUR { is_as_usual(state, scene) } else { is_untouched(state) };
        findings.check(20, verdict.map_err(|broken| untouched(run, &broken)));
    }
    for (run, shadow) in evidence.shadows.iter().filter(|(run, _)| is_beside(run)) {
        let is_there = evidence.state(run).is_some() || evidence.has_gone(shadow);
        findings.ensure(20, is_there, || untouched(run, "it is gone"));
    }
}

/// It does what it does, and comes to its end like any other, whatever happens to its neighbours.
fn is_as_usual(state: &RunState, scene: &Scene<'_>) -> Result<(), String> {
    let usual = [Kind::StepFinished, Kind::TimerStarted, Kind::TimerFired, Kind::RunFinished];
    let kinds: Vec<Kind> = state.events().iter().map(|event| event.kind()).collect();
    if kinds.iter().any(|kind| !usual.contains(kind)) {
        return Err(format!("it has {kinds:?}"));
    }
    if scene.is_end && state.view.status != Status::Completed {
        return Err(format!("it is {:?} at the end", state.view.status));
    }
    Ok(())
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
