//! Parents and children: nobody is forgotten, and what one says of the other is so.

use std::collections::BTreeMap;

use outlast_core::commit::InboxKind;
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::id::{Key, RunId, RunKey};
use outlast_store::invariants::RunState;

use super::{Evidence, end_of};
use crate::violation::Findings;
use crate::watch::ends;

/// Codes with which a child is refused: then there is none.
const REFUSALS: [&str; 3] = ["child_exists", "unknown_workflow", "limit_exceeded"];

/// A child, as its parent's journal has it.
struct Bond {
    key: Key,
    child: RunId,
    detached: bool,
    /// What was said about the end of its parent.
    on_close: ClosePolicy,
    /// Whether its parent stopped waiting for it: then it is asked to stop, whatever was said.
    cancelled: bool,
    /// The event that said how it ended.
    outcome: Option<Event>,
}

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    for (run, state) in evidence.runs() {
        parent_knows(evidence, run, state, findings);
        for generation in 0..state.journals.len() {
            let over = state.view.status.is_terminal() || generation + 1 < state.journals.len();
            let stopped = is_stopped(state);
            for bond in bonds(evidence, run, state, generation) {
                let key = RunKey::new(run.namespace.clone(), bond.child.clone());
                reported(evidence, run, &bond, &key, findings);
                let Some(child) = evidence.state(&key).filter(|_| !bond.detached) else { continue };
                if over && bond.outcome.is_none() && is_child(child, run, generation, &bond.key) {
                    // Where the journal could not be read, nobody knows what was said.
                    let unsaid = evidence.damaged.contains_key(run);
                    let closed = is_closed(child, &bond, unsaid);
                    findings.ensure(13, closed, || {
                        format!("{run} ended, its child {key} ({:?}) is {:?}", bond.on_close, child.view.status)
                    });
                    if stopped && bond.on_close != ClosePolicy::Abandon {
                        findings.ensure(16, closed, || format!("{run} was stopped, and {key} below it was not"));
                    }
                }
            }
        }
    }
}

/// The children of a generation, without those of a history it began with.
fn bonds(evidence: &Evidence, run: &RunKey, state: &RunState, generation: usize) -> Vec<Bond> {
    let mut bonds: BTreeMap<Key, Bond> = BTreeMap::new();
    for (_, _, event) in evidence.own_events(run, state).into_iter().filter(|(of, ..)| *of == generation) {
        match &event {
            Event::ChildStarted { key, child, detached, on_close, .. } => {
                let (child, detached, on_close) = (child.clone(), *detached, *on_close);
                bonds.insert(
                    key.clone(),
                    Bond { key: key.clone(), child, detached, on_close, cancelled: false, outcome: None },
                );
            }
            // The end of a scope cancels what is open in it, and so does giving it up.
            Event::OperationCancelled { key: scope }
            | Event::ScopeFinished { key: scope, .. }
            | Event::ScopeFailed { key: scope, .. } => {
                if let Some(bond) = bonds.get_mut(scope) {
                    bond.cancelled = true;
                }
                let inside = format!("{scope}/");
                let open = bonds.values_mut().filter(|bond| bond.outcome.is_none());
                open.filter(|bond| bond.key.as_str().starts_with(&inside)).for_each(|bond| bond.cancelled = true);
            }
            Event::ChildFinished { key, .. } | Event::ChildFailed { key, .. } => {
                if let Some(bond) = bonds.get_mut(key) {
                    bond.outcome = Some(event.clone());
                }
            }
            _ => {}
        }
    }
    bonds.into_values().collect()
}

fn is_child(child: &RunState, parent: &RunKey, generation: usize, key: &Key) -> bool {
    child
        .view
        .parent
        .as_ref()
        .is_some_and(|of| (&of.run, of.generation.0, &of.key) == (&parent.id, generation as u64, key))
}

/// Whoever has a parent is in that parent's journal.
fn parent_knows(evidence: &Evidence, run: &RunKey, state: &RunState, findings: &mut Findings) {
    let Some(parent) = &state.view.parent else { return };
    let key = RunKey::new(run.namespace.clone(), parent.run.clone());
    let Some(above) = evidence.state(&key) else {
        return findings
            .ensure_unless(evidence.may_be_gone(&key), 13, false, || format!("{run} is an orphan: there is no {key}"));
    };
    let generation = usize::try_from(parent.generation.0).unwrap_or(usize::MAX);
    let bonds = bonds(evidence, &key, above, generation);
    let known = bonds.iter().filter(|bond| bond.key == parent.key && bond.child == run.id).count();
    findings.ensure(13, known == 1, || {
        format!("{run} says {key} started it as {}, which it did {known} times", parent.key)
    });
}

/// What the parent recorded is how the child ended.
fn reported(evidence: &Evidence, run: &RunKey, bond: &Bond, key: &RunKey, findings: &mut Findings) {
    let Some(outcome) = &bond.outcome else { return };
    if matches!(outcome, Event::ChildFailed { error, .. } if REFUSALS.contains(&error.code.as_str())) {
        return;
    }
    let Some(child) = evidence.state(key) else {
        return findings
            .ensure(13, evidence.may_be_gone(key), || format!("{run} has {outcome:?}, and there is no {key}"));
    };
    let end = end_of(child);
    let so = match (outcome, &end) {
        (Event::ChildFinished { result, .. }, Some(Event::RunFinished { output })) => result == output,
        (Event::ChildFailed { error, .. }, Some(Event::RunErrored { error: said })) => error == said,
        (Event::ChildFailed { .. }, Some(Event::RunCancelled { .. } | Event::RunTerminated { .. })) => true,
        _ => false,
    };
    findings.ensure(13, so, || format!("{run} has {outcome:?}, and {key} ended with {end:?}"));
}

/// Whether a run was asked to stop, or ended without being asked.
fn is_stopped(state: &RunState) -> bool {
    let asked = state.events().iter().any(|event| matches!(event, Event::CancelRequested { .. }));
    asked || matches!(end_of(state), Some(Event::RunTerminated { .. }))
}

/// Whether the end of its parent has reached a child, or will once it is read.
fn is_closed(child: &RunState, bond: &Bond, unsaid: bool) -> bool {
    let over = child.view.status.is_terminal();
    let orders = || child.inbox.iter().filter(|item| item.kind == InboxKind::Cancel);
    let asked = || child.events().iter().any(|event| matches!(event, Event::CancelRequested { .. }));
    match bond.on_close {
        ClosePolicy::Abandon if !bond.cancelled => true,
        ClosePolicy::Terminate if !bond.cancelled && !unsaid => over || orders().any(|item| ends(item.meta.as_ref())),
        ClosePolicy::Abandon | ClosePolicy::Cancel | ClosePolicy::Terminate => {
            over || asked() || orders().next().is_some()
        }
    }
}
