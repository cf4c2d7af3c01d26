//! Runs of texts: each goes on with the text it began with, and what a flow's journal says was done once was done once.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::event::Event;
use outlast_core::id::RunKey;
use outlast_store::invariants::RunState;
use serde_json::Value;

use super::{Evidence, end_of, is_beside};
use crate::interpret::edition;
use crate::violation::Findings;
use crate::written::place_of;

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    editions(evidence, findings);
    for (run, state) in evidence.runs().filter(|(run, _)| !is_beside(run)) {
        for (generation, records) in state.journals.iter().enumerate() {
            let events: Vec<Event> = records.iter().filter_map(|record| Event::decode(record).ok()).collect();
            once(run, &events, findings);
            skipped(evidence, run, generation, &events, findings);
        }
    }
}

/// Which edition each version of a text is: whatever runs of one version do says the same, and of another another.
#[derive(Default)]
struct Editions {
    known: BTreeMap<(String, String), String>,
}

impl Editions {
    fn take(&mut self, workflow: &str, version: &str, said: String, who: &str, findings: &mut Findings) {
        let others = self.known.iter().filter(|((of, other), _)| of == workflow && other != version);
        let shared = others.clone().find(|(_, edition)| **edition == said).map(|((_, other), _)| other.clone());
        findings
            .ensure(22, shared.is_none(), || format!("{who} is of version {version}, and does what {shared:?} does"));
        let first = self.known.entry((workflow.to_owned(), version.to_owned())).or_insert_with(|| said.clone());
        findings.ensure(22, *first == said, || {
            format!("{who} is of version {version} of {workflow}, which is {first}, and does what {said} does")
        });
    }
}

fn editions(evidence: &Evidence, findings: &mut Findings) {
    let mut editions = Editions::default();
    let version_of = |run: &str| {
        let shadow =
            evidence.shadow_of(run).filter(|shadow| shadow.sure && place_of(shadow.workflow.as_str()).is_some())?;
        Some((shadow.workflow.to_string(), shadow.chapters.first()?.version.to_string()))
    };
    for (run, state) in evidence.runs() {
        let Some((workflow, version)) = version_of(run.id.as_str()).filter(|_| !is_beside(run)) else { continue };
        if let Some(said) = said(state) {
            editions.take(&workflow, &version, edition(said), &run.to_string(), findings);
        }
    }
    let efforts = evidence.efforts.iter().filter_map(|effort| {
        let who = format!("task {}", effort.task);
        Some((effort.run.clone()?, edition(effort.edition?), who))
    });
    let bodies = evidence.bodies.iter().map(|seen| &seen.body).filter(|body| body.version.starts_with("edition"));
    let bodies = bodies.map(|body| (body.run.clone(), body.version.clone(), format!("{} of {}", body.key, body.run)));
    for (run, said, who) in efforts.chain(bodies) {
        if let Some((workflow, version)) = version_of(&run) {
            editions.take(&workflow, &version, said, &who, findings);
        }
    }
}

/// Which edition a run's output says that it is.
fn said(state: &RunState) -> Option<u32> {
    let Some(Event::RunFinished { output }) = end_of(state) else { return None };
    let output: Value = serde_json::from_slice(&output).ok()?;
    u32::try_from(output.get("edition")?.as_u64()?).ok()
}

/// No node, child or iteration begins or is completed twice.
fn once(run: &RunKey, events: &[Event], findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for event in events {
        let done = match event {
            Event::ContainerIterationStarted { node, index, .. }
            | Event::ContainerIterationCompleted { node, index, .. } => format!("{} {node}/{index}", event.kind()),
            Event::ContainerChildStarted { child, .. } | Event::ContainerChildCompleted { child, .. } => {
                format!("{} {child}", event.kind())
            }
            Event::NodeStarted { node, .. } | Event::NodeCompleted { node, .. } => format!("{} {node}", event.kind()),
            _ => continue,
        };
        findings.ensure(4, seen.insert(done.clone()), || format!("{run} has {done} twice"));
    }
}

/// What is skipped does not begin, and what was never to begin was never seen to run.
fn skipped(evidence: &Evidence, run: &RunKey, generation: usize, events: &[Event], findings: &mut Findings) {
    for (index, event) in events.iter().enumerate() {
        let Event::NodeSkipped { node, by, .. } = event else { continue };
        let again = format!("{node}#");
        let is_it = |key: &str| key == node.as_str() || key.starts_with(&again);
        let later = events[index + 1..]
            .iter()
            .find(|event| begins(event) && event.key().is_some_and(|key| is_it(key.as_str())));
        findings.ensure(4, later.is_none(), || format!("{run}: {node} was skipped, and then there is {later:?}"));
        if by.is_some() {
            continue;
        }
        let id = run.id.as_str();
        let task = format!("/{node}");
        let body = evidence
            .bodies
            .iter()
            .map(|seen| &seen.body)
            .find(|body| body.run == id && body.generation == generation as u64 && is_it(&body.key));
        let effort =
            evidence.efforts.iter().find(|effort| effort.run.as_deref() == Some(id) && effort.task.ends_with(&task));
        findings.ensure(4, body.is_none() && effort.is_none(), || {
            format!("{run}: {node} was not to run, and did: {body:?} {effort:?}")
        });
    }
}

fn begins(event: &Event) -> bool {
    matches!(
        event,
        Event::NodeStarted { .. }
            | Event::TaskScheduled { .. }
            | Event::TimerStarted { .. }
            | Event::SignalAwaited { .. }
            | Event::ApprovalRequested { .. }
            | Event::CallbackCreated { .. }
            | Event::ChildStarted { .. }
            | Event::StepFinished { .. }
    )
}
