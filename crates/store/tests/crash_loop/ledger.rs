//! What is known outside the store: what was acknowledged, and which bodies ran. It outlives every crash.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::commit::WaitKind;
use outlast_core::event::Event;
use outlast_core::id::{DeliveryId, Fence, Generation, Index, Key, RunKey, TaskId};
use outlast_core::record::Record;
use outlast_store::Delivered;
use outlast_store::invariants::{RunState, Seen, Sent, Verdict, World, signals_are_conserved};

/// Events whose commit was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) run: RunKey,
    pub(crate) generation: Generation,
    pub(crate) first: Index,
    pub(crate) events: Vec<Record>,
}

/// A body that ran: of a step, or of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) idempotency_key: String,
    /// What it returned: no two bodies return the same.
    pub(crate) result: String,
}

/// The answer somebody got for an approval or a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) run: RunKey,
    pub(crate) key: Key,
    pub(crate) kind: WaitKind,
    pub(crate) id: DeliveryId,
    pub(crate) delivered: Delivered,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// How far the client is in its script.
    pub(crate) acts: usize,
    pub(crate) created: BTreeSet<RunKey>,
    pub(crate) deleted: BTreeSet<RunKey>,
    pub(crate) sent: BTreeMap<RunKey, Vec<Sent>>,
    pub(crate) answered: Vec<Answered>,
    pub(crate) commits: Vec<Acknowledged>,
    pub(crate) results: Vec<(TaskId, String)>,
    pub(crate) bodies: Vec<Body>,
    /// What drivers hold now.
    pub(crate) held: BTreeSet<(RunKey, Fence)>,
    /// What drivers lost without giving it back: each may try once more, and must fail.
    stale: BTreeSet<(RunKey, Fence)>,
    /// What happened at least once.
    pub(crate) sometimes: BTreeSet<&'static str>,
    seen: Seen,
}

impl Ledger {
    /// A body ran. What it returns names its run, so that a recorded result can be traced.
    pub(crate) fn body(&mut self, idempotency_key: String, what: &str) -> String {
        let result = format!("{what}@{}", self.bodies.len());
        self.bodies.push(Body { idempotency_key, result: result.clone() });
        result
    }

    /// Every process died.
    pub(crate) fn crashed(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.stale.extend(held);
    }

    /// A driver was told that the run is somebody else's.
    pub(crate) fn lost(&mut self, run: &RunKey, fence: Fence) {
        self.stale.insert((run.clone(), fence));
    }

    /// A fence under which the run was held before `current`, once.
    pub(crate) fn take_stale(&mut self, run: &RunKey, current: Fence) -> Option<Fence> {
        let found = self.stale.iter().find(|(of, fence)| of == run && *fence < current).cloned()?;
        self.stale.remove(&found);
        Some(found.1)
    }

    /// The store against itself, against what it showed before, and against what was acknowledged.
    pub(crate) fn check(&mut self, world: &World) -> Verdict {
        world.check()?;
        self.seen.compare(world)?;
        for run in &self.created {
            if !world.runs.contains_key(run) && !self.deleted.contains(run) {
                return Err(format!("{run} was acknowledged and is gone"));
            }
        }
        self.commits_are_present(world)?;
        for (key, run) in &world.runs {
            let sent = self.sent.get(key).map_or(&[][..], Vec::as_slice);
            signals_are_conserved(run, sent).map_err(|broken| format!("{key}: {broken}"))?;
            self.results_have_bodies(key, run)?;
            self.answers_agree(key, run)?;
        }
        self.task_results_are_present(world)
    }

    /// Invariant 2: acknowledged events are there, where they were written.
    fn commits_are_present(&self, world: &World) -> Verdict {
        for Acknowledged { run, generation, first, events } in &self.commits {
            let Some(state) = world.runs.get(run) else { continue };
            let journal = state.journals.get(generation.0 as usize).map_or(&[][..], Vec::as_slice);
            let there = journal.iter().skip(first.0 as usize).take(events.len());
            if !there.eq(events) {
                return Err(format!("{run}: acknowledged events from {first} on are not there"));
            }
        }
        Ok(())
    }

    /// Invariant 4: each recorded result is one a body returned, and bodies of one operation share their key.
    fn results_have_bodies(&self, key: &RunKey, run: &RunState) -> Verdict {
        for (generation, records) in run.journals.iter().enumerate() {
            for event in records.iter().filter_map(|record| Event::decode(record).ok()) {
                let (Event::StepFinished { key: operation, result, .. }
                | Event::TaskFinished { key: operation, result, .. }) = event
                else {
                    continue;
                };
                let idempotency_key = idempotency_key(key, generation as u64, &operation);
                let body = Body { idempotency_key, result: String::from_utf8_lossy(&result).into_owned() };
                if !self.bodies.contains(&body) {
                    return Err(format!("{key}: {body:?} is recorded, and no such body ran"));
                }
            }
        }
        Ok(())
    }

    /// Invariants 2 and 9: who was told that the answer counts finds it in the journal, and nobody else's.
    fn answers_agree(&self, key: &RunKey, run: &RunState) -> Verdict {
        let events = run.events();
        for answered in self.answered.iter().filter(|answered| answered.run == *key) {
            let resolved = |event: &Event| match event {
                Event::ApprovalResolved { key, by, .. } => {
                    *key == answered.key && by.as_deref() == Some(answered.id.as_str())
                }
                Event::CallbackResolved { key, payload, .. } => {
                    *key == answered.key && payload == answered.id.as_str().as_bytes()
                }
                _ => false,
            };
            let won = matches!(answered.delivered, Delivered::Delivered | Delivered::Duplicate);
            let recorded = events.iter().any(resolved);
            let waits = run.inbox.iter().any(|item| item.delivery.as_ref() == Some(&answered.id));
            if won != (recorded || waits) {
                return Err(format!("{key}: {answered:?}, recorded: {recorded}, in the inbox: {waits}"));
            }
        }
        Ok(())
    }

    /// Invariant 2: an acknowledged result of a task is on its way to the journal or in it.
    fn task_results_are_present(&self, world: &World) -> Verdict {
        for (task, result) in &self.results {
            let recorded = |run: &RunState| {
                run.events().iter().any(|event| match event {
                    Event::TaskFinished { task: of, result: found, .. } => of == task && found == result.as_bytes(),
                    _ => false,
                })
            };
            let waits = |run: &RunState| run.inbox.iter().any(|item| item.name.as_deref() == Some(task.as_str()));
            if !world.runs.values().any(|run| recorded(run) || waits(run)) {
                return Err(format!("the result {result} of {task} was acknowledged and is gone"));
            }
        }
        Ok(())
    }
}

/// What a body gets so that its side effect can be made once.
pub(crate) fn idempotency_key(run: &RunKey, generation: u64, key: &Key) -> String {
    format!("{run}/{generation}/{key}")
}
