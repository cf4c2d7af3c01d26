//! Recorded results against the bodies that were seen to run.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::event::Event;
use outlast_core::failure::code;
use outlast_core::id::RunKey;
use outlast_core::time::Timestamp;

use super::Evidence;
use crate::ledger::{Place, Witnessed};
use crate::model::refused;
use crate::violation::Findings;
use crate::watch::{Shadow, TurnedDown};

type Bodies<'e> = BTreeMap<Place, Vec<&'e Witnessed>>;

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    let mut bodies: Bodies<'_> = BTreeMap::new();
    for witnessed in &evidence.bodies {
        let body = &witnessed.body;
        let place = (body.run.clone(), body.generation, body.key.clone());
        bodies.entry(place).or_default().push(witnessed);
    }
    idempotency_keys(&bodies, findings);
    attempts(evidence, &bodies, findings);
    known_outcomes(evidence, &bodies, findings);
    versions(evidence, findings);
    for place in bodies.keys() {
        let twice = evidence.twice.iter().find(|(of, _)| of == place);
        findings.ensure(4, twice.is_none(), || format!("two bodies ran at once in one process: {twice:?}"));
    }
    for (run, state) in evidence.runs() {
        for (generation, index, event) in evidence.own_events(run, state) {
            let Some(key) = event.key() else { continue };
            let place = (run.id.to_string(), generation as u64, key.to_string());
            let seen = bodies.get(&place).map_or(&[][..], Vec::as_slice);
            let at = state.journals[generation][index].at;
            let tick = evidence.shadows.get(run).and_then(|shadow| tick_of(shadow, generation, index));
            results(run, &event, seen, tick, findings);
            at_most_once(run, &event, seen, tick, findings);
            delays(evidence, &place, &event, at, findings);
            if let (true, Some(tick), Some(shadow)) = (settles(&event), tick, evidence.shadows.get(run)) {
                let late = seen.iter().find(|body| body.tick > tick && knew_better(shadow, body));
                findings.ensure(4, late.is_none(), || {
                    format!("{run}: a body of {key} began after its result was recorded: {late:?}")
                });
            }
        }
    }
}

/// When an event was appended, among everything that happened.
fn tick_of(shadow: &Shadow, generation: usize, index: usize) -> Option<u64> {
    let chapter = shadow.chapters.get(generation).filter(|_| shadow.sure)?;
    chapter.entries.get(index).map(|entry| entry.tick)
}

/// All attempts at an operation share their key, and no two operations do.
fn idempotency_keys(bodies: &Bodies<'_>, findings: &mut Findings) {
    let mut owners: BTreeMap<&str, &Place> = BTreeMap::new();
    for (place, seen) in bodies {
        for witnessed in seen {
            let key = witnessed.body.idempotency_key.as_str();
            let first = seen.first().map(|first| first.body.idempotency_key.as_str());
            findings.ensure(4, first == Some(key), || format!("bodies of {place:?} were given {first:?} and {key:?}"));
            let owner = *owners.entry(key).or_insert(place);
            findings.ensure(4, owner == place, || format!("{key:?} was given to {owner:?} and to {place:?}"));
        }
    }
}

/// A body is of the version its run began with, or was told to go on with.
fn versions(evidence: &Evidence, findings: &mut Findings) {
    for Witnessed { body, process, .. } in &evidence.bodies {
        let Some(shadow) = evidence.shadow_of(&body.run).filter(|shadow| shadow.sure) else { continue };
        let generation = usize::try_from(body.generation).unwrap_or(usize::MAX);
        // A text says which edition it is: see there.
        let code = !body.version.starts_with("edition");
        let Some(chapter) = shadow.chapters.get(generation).filter(|_| code) else { continue };
        findings.ensure(22, chapter.version.as_str() == body.version, || {
            format!(
                "{} is of version {}, and {process} ran {} of it with {}",
                body.run, chapter.version, body.key, body.version
            )
        });
    }
}

/// Whoever knows what a body came to does not run it again as long as it holds the run, whatever else was turned down.
fn known_outcomes(evidence: &Evidence, bodies: &Bodies<'_>, findings: &mut Findings) {
    for TurnedDown { run, generation, key, attempt, fence, tick } in &evidence.turned_down {
        let Some(holder) = evidence.shadows.get(run).and_then(|shadow| shadow.holders.get(fence)) else { continue };
        let place = (run.id.to_string(), generation.0, key.to_string());
        let again = bodies.get(&place).into_iter().flatten().find(|body| {
            let held = evidence.shadows.get(run).and_then(|shadow| shadow.holder_at(body.tick));
            body.tick > *tick && body.body.attempt == *attempt && held == Some(holder) && body.process == holder.process
        });
        findings.ensure(4, again.is_none(), || {
            format!("{run}: attempt {attempt} of {key} ran once more, and what it came to was known: {again:?}")
        });
    }
}

/// Nobody tries more often than was said.
fn attempts(evidence: &Evidence, bodies: &Bodies<'_>, findings: &mut Findings) {
    for (place, policy) in &evidence.policies {
        for witnessed in bodies.get(place).into_iter().flatten() {
            let attempt = witnessed.body.attempt;
            findings.ensure(15, (1..=policy.attempts).contains(&attempt), || {
                format!("{place:?} was tried for the {attempt}th time, {} were allowed", policy.attempts)
            });
        }
    }
}

/// Codes of steps that nobody saw run: nobody knows whether one began, or it was never to begin.
const UNSEEN: [&str; 4] = [code::STEP_IN_DOUBT, code::LIMIT_EXCEEDED, code::TRANSACTIONS_UNSUPPORTED, "no_runtime"];

/// A result is that of a body which began before it was recorded.
fn results(run: &RunKey, event: &Event, seen: &[&Witnessed], tick: Option<u64>, findings: &mut Findings) {
    if let Event::StepFailed { key, error, .. } = event
        && refused(error).is_some_and(|(named, _)| named == key.as_str())
    {
        findings.ensure(17, seen.is_empty(), || format!("{run}: {key} was one too many, and ran: {seen:?}"));
    }
    let attempt = match event {
        Event::StepFailed { error, .. } if UNSEEN.contains(&error.code.as_str()) => return,
        Event::StepFinished { attempts, .. } | Event::StepFailed { attempts, .. } => *attempts,
        Event::StepRetryScheduled { attempt, .. } | Event::ConditionChecked { attempt, .. } => *attempt,
        _ => return,
    };
    let before = |body: &&&Witnessed| body.body.attempt == attempt && tick.is_none_or(|tick| body.tick < tick);
    findings.ensure(4, seen.iter().any(|body| before(&body)), || {
        format!("{run}: {} of {:?}, attempt {attempt}, and nobody saw it run", event.kind(), event.key())
    });
}

fn at_most_once(run: &RunKey, event: &Event, seen: &[&Witnessed], tick: Option<u64>, findings: &mut Findings) {
    if let Event::StepStarted { key, attempt, at_most_once: true } = event {
        let of_attempt = || seen.iter().filter(|body| body.body.attempt == *attempt);
        let early = of_attempt().find(|body| tick.is_some_and(|tick| body.tick < tick));
        findings.ensure(4, early.is_none(), || {
            format!("{run}: {key}, attempt {attempt}, may run once and ran before that was recorded")
        });
        let times = of_attempt().count();
        findings
            .ensure(4, times <= 1, || format!("{run}: {key}, attempt {attempt}, may run once and ran {times} times"));
    }
}

/// The shortest delay there is.
const SHORTEST: Duration = Duration::from_millis(1);

/// A delay is never none, and within what was said.
fn delays(evidence: &Evidence, place: &Place, event: &Event, at: Timestamp, findings: &mut Findings) {
    let (attempt, next_at) = match event {
        Event::StepRetryScheduled { attempt, next_at, .. } => (*attempt, *next_at),
        Event::ConditionChecked { attempt, next_at: Some(next_at), .. } => (*attempt, *next_at),
        _ => return,
    };
    let delay = next_at.since(at);
    let policy = evidence.policies.get(place);
    let allowed = match policy {
        // A delay of none is as short as there is, and grows from there.
        Some(policy) => {
            let longest = policy.longest.max(SHORTEST * 2_u32.saturating_pow(attempt.saturating_sub(1)));
            attempt < policy.attempts && (policy.shortest..=longest).contains(&delay)
        }
        None => delay > Duration::ZERO,
    };
    findings.ensure(15, allowed, || format!("{place:?} waits {delay:?} after attempt {attempt}; said was {policy:?}"));
}

fn settles(event: &Event) -> bool {
    matches!(
        event,
        Event::StepFinished { .. } | Event::StepFailed { .. } | Event::ConditionChecked { next_at: None, .. }
    )
}

/// Whether whoever ran a body held the run at that time, and so knew what was recorded. A process that does not know yet that
/// it lost a run may do something once more: that is what idempotency keys are for.
fn knew_better(shadow: &Shadow, body: &Witnessed) -> bool {
    let holder = shadow.holder_at(body.tick).map(|holder| holder.process.as_str());
    match (holder, body.process.as_str()) {
        (Some(holder), process) if !holder.is_empty() && !process.is_empty() => holder == process,
        _ => shadow.holders.len() == 1,
    }
}
