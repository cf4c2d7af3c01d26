//! How a run ends, and what that means for its parent and its children.

use bytes::Bytes;
use outlast_core::commit::{Delivery, Ending, Then};
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::failure::{Failure, code};
use outlast_core::id::{DeliveryId, Key, RunId, RunKey, Version};
use serde::{Deserialize, Serialize};

use super::inbox::ControlMeta;
use super::run::{Run, Stop};
use super::table::{Detail, Entry};

/// How a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Finished(Bytes),
    Failed(Failure),
    Cancelled { reason: Option<String> },
    Terminated { reason: Option<String> },
    Continued { input: Bytes, version: Option<Version> },
}

impl Outcome {
    pub(super) fn then(&self) -> Then {
        match self {
            Outcome::Finished(_) => Then::Finish(Ending::Completed),
            Outcome::Failed(_) => Then::Finish(Ending::Failed),
            Outcome::Cancelled { .. } | Outcome::Terminated { .. } => Then::Finish(Ending::Cancelled),
            Outcome::Continued { input, version } => {
                Then::ContinueAsNew { input: input.clone(), version: version.clone() }
            }
        }
    }
}

/// What a child tells its parent, beside its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildReport {
    /// The payload is its output.
    Finished,
    Failed(Failure),
}

/// A request to stop, for a child.
pub(super) struct CancelOrder {
    pub(super) id: DeliveryId,
    pub(super) meta: Option<Bytes>,
}

impl CancelOrder {
    /// The same order for the same operation is applied once.
    pub(super) fn for_child(parent: &RunKey, generation: u64, key: &Key, meta: &ControlMeta) -> CancelOrder {
        let text = format!("close:{parent}:{generation}:{key}");
        let id = DeliveryId::new(&text).unwrap_or_else(|_| {
            let short: String = text.chars().take(40).collect();
            DeliveryId::new(format!("{short}:{}", crate::token::digest(&text)))
                .expect("a short text without control characters is an id")
        });
        CancelOrder { id, meta: serde_json::to_vec(meta).ok().map(Bytes::from) }
    }
}

impl Run {
    /// Records the end, tells the parent, and closes the children that are left.
    pub(super) fn finish(&mut self, outcome: Outcome) -> Result<Outcome, Stop> {
        let outcome = self.outcome_of(outcome);
        let event = match &outcome {
            Outcome::Finished(output) => Event::RunFinished { output: output.clone() },
            Outcome::Failed(error) => Event::RunErrored { error: error.clone() },
            Outcome::Cancelled { reason } => Event::RunCancelled { reason: reason.clone() },
            Outcome::Terminated { reason } => Event::RunTerminated { reason: reason.clone(), by: None },
            Outcome::Continued { input, version } => {
                Event::RunContinued { input: input.clone(), version: version.clone() }
            }
        };
        self.append(event)?;
        self.close_children();
        self.tell_parent(&outcome);
        // Whatever is left of the draft's rows would belong to a run that has ended.
        self.draft.timers.clear();
        let unopened: Vec<Key> = self.draft.waits.drain(..).map(|wait| wait.key).collect();
        self.draft.waits_closed.retain(|closed| !unopened.contains(&closed.key));
        Ok(outcome)
    }

    /// The program's word, in the light of what else happened.
    fn outcome_of(&mut self, outcome: Outcome) -> Outcome {
        if let Some((input, version)) = self.next_generation.take() {
            return Outcome::Continued { input, version };
        }
        match outcome {
            Outcome::Failed(error) if self.cancel_requested && error.code == code::CANCELLED => {
                Outcome::Cancelled { reason: Some(error.message) }
            }
            Outcome::Finished(output) if output.len() > self.settings.limits.payload_bytes => {
                let limit = self.settings.limits.payload_bytes;
                let message = format!("the output is {} bytes, the limit is {limit}", output.len());
                Outcome::Failed(Failure::new(code::LIMIT_EXCEEDED, message).permanent())
            }
            other => other,
        }
    }

    /// Children that run on without their parent do so as it was said when they were started.
    fn close_children(&mut self) {
        let mut orders = Vec::new();
        for (key, entry) in self.table.live() {
            if let Entry { detail: Detail::Child { child, on_close, detached: false }, .. } = entry {
                orders.push((key.clone(), child.clone(), *on_close));
            }
        }
        for (key, child, on_close) in orders {
            let terminate = match on_close {
                ClosePolicy::Abandon => continue,
                ClosePolicy::Cancel => false,
                ClosePolicy::Terminate => true,
            };
            self.order_child_to_stop(&key, &child, "its parent ended", terminate);
        }
    }

    pub(super) fn order_child_to_stop(&mut self, key: &Key, child: &RunId, why: &str, terminate: bool) {
        let meta = ControlMeta { reason: Some(why.to_owned()), by: None, terminate, message: None };
        let parent = &self.identity.run;
        let order = CancelOrder::for_child(parent, self.identity.generation.0, key, &meta);
        let run = RunKey::new(parent.namespace.clone(), child.clone());
        self.draft.cancel_run(run, order);
    }

    fn tell_parent(&mut self, outcome: &Outcome) {
        let Some(parent) = self.identity.parent.clone().filter(|parent| !parent.detached) else { return };
        let aborted = |what: &str, reason: &Option<String>| {
            let why = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let message = format!("the child run {} was {what}{why}", self.identity.run.id);
            ChildReport::Failed(Failure::new(code::CANCELLED, message).permanent())
        };
        let (report, payload) = match outcome {
            Outcome::Finished(output) => (ChildReport::Finished, Some(output.clone())),
            Outcome::Failed(error) => (ChildReport::Failed(error.clone()), None),
            Outcome::Cancelled { reason } => (aborted("cancelled", reason), None),
            Outcome::Terminated { reason } => (aborted("terminated", reason), None),
            Outcome::Continued { .. } => return,
        };
        self.draft.deliveries.push(Delivery::Child {
            run: RunKey::new(self.identity.run.namespace.clone(), parent.run),
            generation: parent.generation,
            key: parent.key,
            child: self.identity.run.id.clone(),
            meta: serde_json::to_vec(&report).ok().map(Bytes::from),
            payload,
        });
    }
}
