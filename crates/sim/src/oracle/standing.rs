//! Where runs stand: each by itself, against what the watch saw, and in its namespace.

use outlast_core::commit::Status;
use outlast_core::event::Event;
use outlast_core::id::RunKey;
use outlast_core::limits::TRIES_MAX;
use outlast_store::Awaited;
use outlast_store::invariants::RunState;

use super::{Evidence, Scene};
use crate::violation::Findings;
use crate::watch::Shadow;

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    for (namespace, world) in &evidence.worlds {
        for (run, state) in &world.runs {
            for (invariant, verdict) in state.verdicts(&world.tasks) {
                findings.check(invariant, verdict.map_err(|broken| format!("{run}: {broken}")));
            }
            findings.ensure(20, run.namespace == *namespace, || format!("{run} is listed in {namespace}"));
            parked(evidence, scene, run, state, findings);
            late(evidence, scene, run, state, findings);
            match evidence.shadows.get(run) {
                Some(shadow) if shadow.sure => as_watched(run, state, shadow, findings),
                Some(_) => {}
                None => findings
                    .ensure_unless(!evidence.ordered, 1, false, || format!("{run} is there, and nobody created it")),
            }
            versions(run, state, findings, evidence.shadows.get(run));
        }
        for task in &world.tasks {
            let owner = task.run.clone().map(|id| RunKey::new(namespace.clone(), id));
            let there = owner.as_ref().is_none_or(|owner| world.runs.contains_key(owner));
            findings.ensure(20, there, || format!("task {} is of {owner:?}, which is not in {namespace}", task.id));
        }
    }
    for (run, shadow) in evidence.shadows.iter().filter(|(_, shadow)| !evidence.has_gone(shadow) && shadow.sure) {
        let there = evidence.state(run).is_some();
        findings.ensure(2, there, || format!("{run} was created and is gone ({} generations)", shadow.chapters.len()));
    }
}

/// The store shows what was appended, and nothing else.
fn as_watched(run: &RunKey, state: &RunState, shadow: &Shadow, findings: &mut Findings) {
    let same = state.journals.len() == shadow.chapters.len()
        && state.journals.iter().zip(&shadow.chapters).all(|(found, chapter)| found.iter().eq(chapter.records()));
    findings.ensure(1, same, || format!("{run} does not show the events that were appended to it"));
    findings.ensure(3, state.view.status.is_terminal() == shadow.ended, || {
        format!(
            "{run} is {:?}; the commits say it has {}ended",
            state.view.status,
            if shadow.ended { "" } else { "not " }
        )
    });
}

/// Only what nobody could go on with is parked: what cannot be read, and what took too many drivers along. The one who
/// finds the latter out is the last try.
fn parked(evidence: &Evidence, scene: &Scene<'_>, run: &RunKey, state: &RunState, findings: &mut Findings) {
    let shadow = evidence.shadows.get(run);
    let poisonous = shadow.is_none_or(|shadow| !shadow.sure || shadow.tries + 1 >= TRIES_MAX);
    let excused = evidence.damaged.contains_key(run)
        || scene.may_park.contains(run.id.as_str())
        || (poisonous && state.view.tries + 1 >= TRIES_MAX);
    findings.ensure(18, state.view.status != Status::Parked || excused, || {
        format!("{run} is parked: {}", state.view.note.as_deref().unwrap_or("no reason is given"))
    });
    // Whoever repairs it must know what to look at.
    if let (Status::Parked, Some(indices), false) = (state.view.status, evidence.damaged.get(run), poisonous) {
        let note = state.view.note.as_deref().unwrap_or("");
        let named = indices.iter().any(|index| note.contains(&format!("event {index}:")));
        findings.ensure(18, named || note.contains(run.id.as_str()), || {
            format!("{run} is parked, damaged at {indices:?}, and says: {note}")
        });
    }
}

/// When trouble is over, no timer is overdue for long, and what can go on does. At rest somebody may just be about to: who
/// stays so there is found by looking twice.
fn late(evidence: &Evidence, scene: &Scene<'_>, run: &RunKey, state: &RunState, findings: &mut Findings) {
    let (Some(patience), Some(now)) = (scene.patience, evidence.now) else { return };
    if !state.view.status.is_claimable() {
        return;
    }
    for awaited in &state.awaiting {
        if let Awaited::Timer { key, due, .. } = awaited {
            findings.ensure(10, *due + patience >= now, || {
                format!("{run}: the timer of {key} is due since {due}, it is {now}")
            });
        }
    }
    let idle = state.view.ready && state.view.owner.is_none();
    findings.ensure_unless(scene.at_rest, 5, !idle, || format!("{run} is ready, and nobody drives it"));
}

/// A run is what it was started as, or what a generation said the next one is.
fn versions(run: &RunKey, state: &RunState, findings: &mut Findings, shadow: Option<&Shadow>) {
    let Some(shadow) = shadow.filter(|shadow| shadow.sure) else { return };
    let current = shadow.chapter().map(|chapter| &chapter.version);
    findings.ensure(22, current == Some(&state.view.version) && shadow.workflow == state.view.workflow, || {
        format!("{run} is {} {}, and was {} {current:?}", state.view.workflow, state.view.version, shadow.workflow)
    });
    for (before, after) in shadow.chapters.iter().zip(shadow.chapters.iter().skip(1)) {
        let said = match before.journal.events().last() {
            Some(Event::RunContinued { version, .. }) => version.clone(),
            _ => None,
        };
        let expected = said.unwrap_or_else(|| before.version.clone());
        findings.ensure(22, after.version == expected, || {
            format!("{run} went from version {} to {}, it said {expected}", before.version, after.version)
        });
    }
}
