//! How a run ends, and what that means for its parent and its children.

use bytes::Bytes;
use outlast_core::commit::{Control, Delivery, Ending, Opener, Then};
use outlast_core::event::{ClosePolicy, Event, Kind};
use outlast_core::failure::{Failure, code};
use outlast_core::id::{DeliveryId, Key, RunId, RunKey, Version};
use outlast_core::operation::OperationKind;
use outlast_core::planted;
use outlast_store::RunView;
use serde::{Deserialize, Serialize};

use super::inbox::ControlMeta;
use super::run::{Identity, Run, Stop};
use super::table::{Detail, Entry};

/// How a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Finished(Bytes),
    Failed(Failure),
    Cancelled { reason: Option<String> },
    Terminated { reason: Option<String>, by: Option<String> },
    Continued { input: Bytes, version: Option<Version> },
}

impl Outcome {
    /// The event that says so.
    pub(super) fn event(&self) -> Event {
        match self {
            Outcome::Finished(output) => Event::RunFinished { output: output.clone() },
            Outcome::Failed(error) => Event::RunErrored { error: error.clone() },
            Outcome::Cancelled { reason } => Event::RunCancelled { reason: reason.clone() },
            Outcome::Terminated { reason, by } => Event::RunTerminated { reason: reason.clone(), by: by.clone() },
            Outcome::Continued { input, version } => {
                Event::RunContinued { input: input.clone(), version: version.clone() }
            }
        }
    }

    /// The kind of event that says so.
    pub(super) fn event_kind(&self) -> Kind {
        match self {
            Outcome::Finished(_) => Kind::RunFinished,
            Outcome::Failed(_) => Kind::RunErrored,
            Outcome::Cancelled { .. } => Kind::RunCancelled,
            Outcome::Terminated { .. } => Kind::RunTerminated,
            Outcome::Continued { .. } => Kind::RunContinued,
        }
    }

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

/// A run to close: which operation started it, and what was said then about the end of its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenChild {
    pub(crate) key: Key,
    pub(crate) child: RunId,
    pub(crate) on_close: ClosePolicy,
}

impl OpenChild {
    /// What the end of its parent means for it; nothing if it goes on alone.
    pub(super) fn close(&self, parent: &Identity) -> Option<Delivery> {
        let terminate = match self.on_close {
            ClosePolicy::Abandon if !planted!("close-policy-ignored") => return None,
            ClosePolicy::Abandon | ClosePolicy::Cancel => false,
            ClosePolicy::Terminate => true,
        };
        let terminate = terminate ^ planted!("close-policy-swapped");
        Some(order_to_stop(parent, &self.key, &self.child, "its parent ended", terminate))
    }
}

/// A request to stop, for a child. The same order for the same operation is applied once.
pub(super) fn order_to_stop(parent: &Identity, key: &Key, child: &RunId, why: &str, terminate: bool) -> Delivery {
    let text = format!("close:{}:{}:{key}", parent.run, parent.generation.0);
    let id = DeliveryId::new(&text).unwrap_or_else(|_| {
        let short: String = text.chars().take(40).collect();
        DeliveryId::new(format!("{short}:{}", crate::token::digest(&text)))
            .expect("a short text without control characters is an id")
    });
    let meta = ControlMeta { reason: Some(why.to_owned()), terminate, ..ControlMeta::default() };
    let run = RunKey::new(parent.run.namespace.clone(), child.clone());
    let opener = Opener { run: parent.run.id.clone(), generation: parent.generation, key: key.clone() };
    let meta = serde_json::to_vec(&meta).ok().map(Bytes::from);
    Delivery::Control { run, control: Control::Cancel, id, meta, child_of: Some(opener) }
}

/// What the parent of a run that ended is told, from the event that ended it.
pub(crate) fn report_of(ended: &RunView, last: &Event) -> Option<Delivery> {
    let outcome = match last {
        Event::RunFinished { output } => Outcome::Finished(output.clone()),
        Event::RunErrored { error } => Outcome::Failed(error.clone()),
        Event::RunCancelled { reason } => Outcome::Cancelled { reason: reason.clone() },
        Event::RunTerminated { reason, by } => Outcome::Terminated { reason: reason.clone(), by: by.clone() },
        _ => return None,
    };
    let identity = Identity {
        run: ended.run.clone(),
        generation: ended.generation,
        workflow: ended.workflow.clone(),
        version: ended.version.clone(),
        parent: ended.parent.clone(),
    };
    report(&identity, &outcome)
}

/// What the parent of a run that ended is told; nothing if nobody waits for it.
pub(super) fn report(ended: &Identity, outcome: &Outcome) -> Option<Delivery> {
    let parent = ended.parent.clone().filter(|parent| !parent.detached)?;
    let aborted = |what: &str, reason: &Option<String>| {
        let why = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let message = format!("the child run {} was {what}{why}", ended.run.id);
        ChildReport::Failed(Failure::new(code::CANCELLED, message).permanent())
    };
    let (report, payload) = match outcome {
        Outcome::Finished(output) => (ChildReport::Finished, Some(output.clone())),
        Outcome::Failed(error) => (ChildReport::Failed(error.clone()), None),
        Outcome::Cancelled { reason } => (aborted("cancelled", reason), None),
        Outcome::Terminated { reason, .. } => (aborted("terminated", reason), None),
        Outcome::Continued { .. } => return None,
    };
    Some(Delivery::Child {
        run: RunKey::new(ended.run.namespace.clone(), parent.run),
        generation: parent.generation,
        key: parent.key,
        child: ended.run.id.clone(),
        meta: serde_json::to_vec(&report).ok().map(Bytes::from),
        payload,
    })
}

impl Run {
    /// Records the end, tells the parent, and closes the children that are left.
    pub(super) fn finish(&mut self, outcome: Outcome) -> Result<Outcome, Stop> {
        let outcome = self.outcome_of(outcome);
        self.append(outcome.event())?;
        if !(planted!("children-left-by-failure") && matches!(outcome, Outcome::Failed(_))) {
            self.close_children();
        }
        self.take_back_tasks();
        self.draft.deliveries.extend(report(&self.identity, &outcome));
        // Whatever is left of the draft's rows would belong to a run that has ended.
        self.draft.timers.clear();
        // A wait that took a signal which was there before it is recorded as over: else the next generation's would take that, too.
        let took = |key: &Key| {
            let continues = matches!(outcome, Outcome::Continued { .. });
            continues && self.draft.waits_closed.iter().any(|closed| closed.key == *key)
        };
        let (kept, unopened): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.draft.waits).into_iter().partition(|wait| took(&wait.key));
        self.draft.waits = kept;
        self.draft.waits_closed.retain(|closed| !unopened.iter().any(|wait| wait.key == closed.key));
        Ok(outcome)
    }

    /// The program's word, in the light of what else happened.
    pub(super) fn outcome_of(&mut self, outcome: Outcome) -> Outcome {
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

    /// No task outlives its operation, and no operation its generation. Those that nobody waits for are not the run's.
    fn take_back_tasks(&mut self) {
        if planted!("task-outlives-its-run") {
            return;
        }
        let leaves = self.leaves_unawaited();
        let open = self.table.live().filter(|(_, entry)| entry.kind == OperationKind::Task);
        open.filter(|(_, entry)| !leaves || entry.is_awaited()).for_each(|(key, _)| self.draft.take_back(key));
    }

    /// Children that run on without their parent do so as it was said when they were started.
    fn close_children(&mut self) {
        let leaves = self.leaves_unawaited();
        for (key, entry) in self.table.live() {
            if leaves && !entry.is_awaited() && entry.may_be_left() {
                continue;
            }
            // One that was refused has no child; its id may be somebody else's.
            if let Entry { detail: Detail::Child { child, on_close, detached: false }, refused: false, .. } = entry {
                let open = OpenChild { key: key.clone(), child: child.clone(), on_close: *on_close };
                self.draft.deliveries.extend(open.close(&self.identity));
            }
        }
    }

    pub(super) fn order_child_to_stop(&mut self, key: &Key, child: &RunId, why: &str) {
        self.draft.deliveries.push(order_to_stop(&self.identity, key, child, why, false));
    }
}
