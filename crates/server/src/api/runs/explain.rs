//! An explanation, as it goes over the wire.

use outlast::{Explanation, Standing, Waiting, WaitsFor};

use crate::api::convert::{at, maybe_at};
use crate::dto::{Explained, ExplainedOperation, InboxEntry};

pub(super) fn explained(mut found: Explanation, limit: Option<usize>) -> Explained {
    let next_wake = maybe_at(found.operations.iter().filter_map(|waiting| waiting.until).min());
    let left_out = found.operations.len().saturating_sub(limit.unwrap_or(usize::MAX));
    found.operations.truncate(found.operations.len() - left_out);
    let found = &found;
    let inbox = found.inbox.iter().map(|unread| InboxEntry {
        kind: format!("{:?}", unread.kind).to_lowercase(),
        key: unread.key.as_ref().map(ToString::to_string),
        name: unread.name.clone(),
        since: at(unread.since),
    });
    Explained {
        run: found.run.id.to_string(),
        workflow: found.workflow.to_string(),
        version: found.version.to_string(),
        status: found.status.name().to_owned(),
        standing: standing(&found.standing).to_owned(),
        text: found.to_string(),
        woken: found.woken,
        operations: found.operations.iter().map(operation).collect(),
        left_out: left_out as u64,
        next_wake,
        inbox: inbox.collect(),
        unreadable: found.unreadable.clone(),
    }
}

fn standing(standing: &Standing) -> &'static str {
    match standing {
        Standing::Queued { .. } => "queued",
        Standing::Held { .. } => "held",
        Standing::DrivenHere { .. } => "driven_here",
        Standing::DrivenElsewhere { .. } => "driven_elsewhere",
        Standing::Suspended { .. } => "suspended",
        Standing::Paused { .. } => "paused",
        Standing::Parked { .. } => "parked",
        Standing::Ended { .. } => "ended",
    }
}

fn operation(waiting: &Waiting) -> ExplainedOperation {
    let (waits_for, name, arrived) = match &waiting.on {
        WaitsFor::Body => ("body", None, false),
        WaitsFor::Retry { .. } => ("retry", None, false),
        WaitsFor::Timer => ("timer", None, false),
        WaitsFor::Signal { name, arrived } => ("signal", Some(name.clone()), *arrived),
        WaitsFor::Approval { approval, arrived, .. } => ("approval", Some(approval.clone()), *arrived),
        WaitsFor::Callback { callback, arrived, .. } => ("callback", Some(callback.clone()), *arrived),
        WaitsFor::Child { run, .. } => ("child", Some(run.to_string()), false),
        WaitsFor::Task { task, .. } => ("task", Some(task.to_string()), false),
        WaitsFor::Inside => ("inside", None, false),
    };
    ExplainedOperation {
        key: waiting.key.to_string(),
        kind: waiting.kind.to_string(),
        parent: waiting.parent.clone(),
        state: waiting.state.map(|state| state.to_string()),
        since: maybe_at(waiting.since),
        until: maybe_at(waiting.until),
        location: waiting.location.as_ref().map(ToString::to_string),
        waits_for: waits_for.to_owned(),
        name,
        arrived,
        text: waiting.to_string(),
    }
}
