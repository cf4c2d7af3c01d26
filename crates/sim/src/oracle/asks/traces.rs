//! What is there goes back to somebody who asked for it.

use outlast_core::event::Event;
use outlast_core::id::RunKey;
use outlast_store::invariants::RunState;

use super::is_json;
use crate::case::{is_guest, schedule_of};
use crate::ledger::{Ask, Asked};
use crate::oracle::{Evidence, is_beside};
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    // Nobody wrote down what was asked.
    if evidence.asks.is_empty() {
        return;
    }
    for (run, state) in evidence.runs().filter(|(run, _)| !is_beside(run)) {
        beginning(evidence, run, state, findings);
        for (generation, _, event) in evidence.own_events(run, state) {
            decision(evidence, run, &event, findings);
            stop(evidence, run, state, (generation, &event), findings);
        }
        pauses(evidence, run, state, findings);
    }
}

fn asked<'e>(evidence: &'e Evidence, run: &'e RunKey) -> impl Iterator<Item = &'e Ask> {
    evidence.asks.iter().filter(|ask| ask.run == run.id.as_str())
}

/// A run is somebody's child, or was started, or forked.
fn beginning(evidence: &Evidence, run: &RunKey, state: &RunState, findings: &mut Findings) {
    let started = asked(evidence, run)
        .any(|ask| matches!(ask.asked, Asked::Start | Asked::StartOther | Asked::Signal { with_start: true, .. }));
    let forked = evidence.asks.iter().any(|ask| matches!(&ask.asked, Asked::Fork { to, .. } if to == run.id.as_str()));
    let scheduled = evidence.almanac.has_started(run) || !evidence.ordered && schedule_of(run.id.as_str()).is_some();
    findings
        .ensure(2, started || forked || scheduled || state.view.parent.is_some(), || format!("nobody asked for {run}"));
}

/// A decision, or an answer, is one that somebody gave.
fn decision(evidence: &Evidence, run: &RunKey, event: &Event, findings: &mut Findings) {
    let possible = || asked(evidence, run).filter(|ask| ask.is_possible());
    match event {
        Event::ApprovalResolved { key: of, approved, by: who, .. } => {
            let given = possible().any(|ask| {
                matches!(&ask.asked, Asked::Approve { key, yes, by, .. }
                    if key == of.as_str() && yes == approved && Some(by) == who.as_ref())
            });
            findings.ensure(12, given, || format!("{run}: {of} was decided {approved} by {who:?}, who never did"));
        }
        Event::CallbackResolved { key: of, payload, .. } => {
            let given = possible().any(|ask| {
                matches!(&ask.asked, Asked::Callback { key, value: Some(value), .. }
                    if key == of.as_str() && is_json(payload, value))
            });
            findings.ensure(9, given, || format!("{run}: {of} was answered with {payload:?}, which nobody said"));
        }
        Event::CallbackFailed { key: of, .. } => {
            let given = possible()
                .any(|ask| matches!(&ask.asked, Asked::Callback { key, value: None, .. } if key == of.as_str()));
            findings.ensure(9, given, || format!("{run}: {of} failed, and nobody said so"));
        }
        _ => {}
    }
}

/// A run stops because a client or its parent said so, and is told once.
fn stop(
    evidence: &Evidence,
    run: &RunKey,
    state: &RunState,
    (generation, event): (usize, &Event),
    findings: &mut Findings,
) {
    let makes_way = evidence.almanac.makes_way(run) || !evidence.ordered && schedule_of(run.id.as_str()).is_some();
    let guest = evidence.lobby.get(run);
    let replaced = guest.is_some_and(|visit| visit.replaced) || !evidence.ordered && is_guest(run.id.as_str());
    let mut ordered = evidence.told_to_stop.get(run).copied().unwrap_or_default();
    ordered.asked |= makes_way || replaced;
    ordered.ended |= makes_way || replaced;
    let requests = || {
        let events =
            state.journals.get(generation).into_iter().flatten().filter_map(|record| Event::decode(record).ok());
        events.filter(|event| matches!(event, Event::CancelRequested { .. })).count()
    };
    match event {
        Event::CancelRequested { .. } => {
            let wanted = asked(evidence, run).any(|ask| ask.asked == Asked::Cancel && ask.is_possible());
            findings.ensure(13, wanted || ordered.asked, || format!("{run} was told to stop by nobody"));
            findings.ensure(9, requests() == 1, || format!("{run} was told to stop {} times", requests()));
        }
        Event::RunCancelled { .. } => {
            // One that was held back ends without a word, if somebody wanted that.
            let wanted = asked(evidence, run).any(|ask| ask.asked == Asked::Cancel && ask.is_possible());
            let unbegun = state.events().len() == 1 && (guest.is_some() || is_guest(run.id.as_str()));
            let told = requests() == 1 || unbegun && (wanted || ordered.asked || ordered.ended);
            findings.ensure(16, told, || format!("{run} is cancelled, and was never told to stop"));
        }
        Event::RunTerminated { .. } => {
            // One that is answered with an error may have happened all the same.
            let wanted = asked(evidence, run).any(|ask| ask.asked == Asked::Terminate);
            findings.ensure(13, wanted || ordered.ended, || format!("{run} was terminated by nobody"));
        }
        _ => {}
    }
}

/// A run does not pause more often than it was asked to.
fn pauses(evidence: &Evidence, run: &RunKey, state: &RunState, findings: &mut Findings) {
    let own = evidence.own_events(run, state);
    let paused = own.iter().filter(|(_, _, event)| matches!(event, Event::RunPaused { .. })).count();
    let wanted = asked(evidence, run).filter(|ask| ask.asked == Asked::Pause && ask.is_possible()).count();
    findings.ensure(2, paused <= wanted, || format!("{run} paused {paused} times, and was asked {wanted} times"));
}
