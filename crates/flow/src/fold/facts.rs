//! What became of operations.

use std::sync::Arc;

use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::{Index, Key};
use outlast_core::operation::Operation;
use serde_json::{Value as Json, json};

use super::Care;
use crate::decide::settle;
use crate::model::{Node, NodeKind};
use crate::state::{Outcome, Role, Slot, State};
use crate::walk::Path;

/// The failure of an approval that was refused.
const REJECTED: &str = "rejected";

/// What a fact says about its operation.
enum Settled {
    Value(Arc<Json>),
    Failed(Failure),
    /// It is decided by the node.
    Decision {
        approved: bool,
        decision: Json,
    },
}

impl State {
    pub(super) fn take_fact(
        &mut self,
        index: Index,
        event: &Event,
        path: Option<&Path<'_>>,
        care: Care,
    ) -> Result<(), String> {
        let (Some(key), Some(settled)) = (event.key(), settled(event)) else { return Ok(()) };
        // What was decided to start need not be asked for: its outcome is known.
        self.starts
            .retain(|requested| requested.operation.starts().is_none() || requested.operation.key() != Some(key));
        let mut settled = Some(settled);
        let found = path.and_then(|path| {
            self.at_path(path, &mut |spot, asking, path| {
                let (node, role) = (spot.node(), path.role);
                let outcome = settled.take().and_then(|settled| outcome(node, role, index, settled));
                let Slot::Running(entry) = &mut spot.block.slots[spot.place] else { return false };
                let place = entry.operations.iter().position(|open| open.role == role);
                let of = key.as_str().strip_suffix(role.suffix());
                let Some(place) = place.filter(|_| of == Some(entry.key.as_str())) else { return false };
                entry.operations.remove(place);
                if let Some(outcome) = outcome {
                    settle(entry, outcome, asking);
                }
                true
            })
        });
        if found == Some(true) || care == Care::Lenient {
            return Ok(());
        }
        // Somebody else was faster than the cancellation.
        let before = self.starts.len();
        self.starts
            .retain(|requested| !matches!(&requested.operation, Operation::Cancel { key: other } if other == key));
        if self.starts.len() < before || self.end.is_some() {
            return Ok(());
        }
        Err(format!("`{key}` is settled, and no node waits for it"))
    }

    /// Whether a node waits for an operation.
    pub(super) fn is_open(&mut self, key: &Key) -> bool {
        let found = self.at(key, &mut |spot, _, path| match &spot.block.slots[spot.place] {
            Slot::Running(entry) if entry.attempt == spot.attempt => {
                entry.operations.iter().any(|open| open.role == path.role)
            }
            Slot::Running(_) | Slot::Waiting | Slot::Done { .. } => false,
            Slot::Failed | Slot::Skipped | Slot::Waived => false,
        });
        found.unwrap_or_default()
    }
}

/// What the node comes to by it; none if it goes on.
fn outcome(node: &Node, role: Role, index: Index, settled: Settled) -> Option<Outcome> {
    match (role, settled) {
        (Role::Main, Settled::Value(value)) => Some(Outcome::Output { value, at: Some(index) }),
        (Role::Main, Settled::Decision { approved, decision }) => Some(decided(node, index, approved, decision)),
        (Role::Submit, Settled::Value(_) | Settled::Decision { .. }) => None,
        (Role::Main | Role::Submit | Role::Timeout, Settled::Failed(failure)) => Some(Outcome::Failed(failure)),
        (Role::Timeout, Settled::Value(_) | Settled::Decision { .. }) => {
            let timeout = node.timeout.unwrap_or_default();
            Some(Outcome::Failed(Failure::timeout(format!("`{}` took longer than {timeout:?}", node.id))))
        }
    }
}

fn decided(node: &Node, index: Index, approved: bool, decision: Json) -> Outcome {
    let goes_on = matches!(&node.kind, NodeKind::Approve(approve) if approve.continues_when_rejected);
    if approved || goes_on {
        return Outcome::Output { value: Arc::new(decision), at: Some(index) };
    }
    let by = decision["by"].as_str().map_or(String::new(), |by| format!(" by {by}"));
    let feedback = decision["feedback"].as_str().map_or(String::new(), |feedback| format!(": {feedback}"));
    let message = format!("`{}` was refused{by}{feedback}", node.id);
    Outcome::Failed(Failure::new(REJECTED, message).with_data(decision.to_string()).permanent())
}

/// What an event says about its operation; none if the operation goes on.
fn settled(event: &Event) -> Option<Settled> {
    Some(match event {
        Event::StepFinished { result, .. }
        | Event::TaskFinished { result, .. }
        | Event::ChildFinished { result, .. } => json_of(result),
        Event::SignalResolved { payload, .. } | Event::CallbackResolved { payload, .. } => json_of(payload),
        Event::StepFailed { error, .. }
        | Event::TaskFailed { error, .. }
        | Event::ChildFailed { error, .. }
        | Event::CallbackFailed { error, .. }
        | Event::OperationRefused { error, .. } => Settled::Failed(error.clone()),
        Event::TimerFired { .. } => Settled::Value(Arc::new(Json::Null)),
        Event::SignalTimedOut { name, .. } => {
            Settled::Failed(Failure::timeout(format!("the deadline passed before the signal {name} came")))
        }
        Event::ApprovalTimedOut { .. } => {
            Settled::Failed(Failure::timeout("the deadline passed before anybody decided"))
        }
        Event::CallbackTimedOut { .. } => {
            Settled::Failed(Failure::timeout("the deadline passed before the callback was answered"))
        }
        Event::ApprovalResolved { approval, approved, by, feedback, .. } => {
            let decision = json!({ "approved": approved, "by": by, "feedback": feedback, "approval": approval });
            Settled::Decision { approved: *approved, decision }
        }
        // Nothing a node waits for.
        _ => return None,
    })
}

fn json_of(bytes: &[u8]) -> Settled {
    match serde_json::from_slice(bytes) {
        Ok(value) => Settled::Value(Arc::new(value)),
        Err(problem) => {
            Settled::Failed(Failure::new("bad_result", format!("the result is not JSON: {problem}")).permanent())
        }
    }
}
