//! What the engine says, as it goes over the wire.

use std::time::Duration;

use outlast::{
    Awaited, Cursor, Delivered, Failure, Observed, OperationInfo, RunView, Status, TaskView, Timestamp, WorkflowVersion,
};

use crate::body::compact;
use crate::dto::{self, Json};
use crate::error::{ApiError, ApiResult};
use crate::instant;

pub(super) fn at(instant: Timestamp) -> String {
    instant::text(instant)
}

pub(super) fn maybe_at(instant: Option<Timestamp>) -> Option<String> {
    instant.map(instant::text)
}

/// An instant that a client wrote.
pub(super) fn instant_of(what: &str, text: &str) -> ApiResult<Timestamp> {
    instant::parse(text).ok_or_else(|| {
        ApiError::unfit(format!("{what} must be an instant of RFC 3339, such as 2026-11-17T21:00:00Z, and is {text:?}"))
    })
}

/// A value a client gave; `null` if it gave none.
pub(super) fn value(given: Option<&Json>) -> Json {
    given.map_or_else(dto::null, |value| compact(value))
}

/// Where a page ends, as clients keep it.
pub(super) fn cursor(next: Option<Cursor>) -> Option<String> {
    next.map(|cursor| cursor.0.to_string())
}

/// Where a page begins, as a client gave it back.
pub(super) fn cursor_of(text: Option<&str>) -> ApiResult<Option<Cursor>> {
    let parsed = text.map(|text| text.parse().map(Cursor)).transpose();
    parsed.map_err(|_| ApiError::unfit("the cursor is none that a page ended with"))
}

pub(super) fn status_of(text: &str) -> ApiResult<Status> {
    let found = Status::ALL.into_iter().find(|status| status.name() == text);
    found.ok_or_else(|| {
        let known = Status::ALL.map(Status::name).join(", ");
        ApiError::unfit(format!("there is no status {text:?}; there are {known}"))
    })
}

pub(super) fn summary(view: &RunView) -> dto::RunSummary {
    dto::RunSummary {
        run: view.run.id.to_string(),
        workflow: view.workflow.to_string(),
        version: view.version.to_string(),
        status: view.status.name().to_owned(),
        note: view.note.clone(),
        parked_at: maybe_at(view.parked_at),
        generation: view.generation.0,
        events: view.next.0,
        parent: view.parent.as_ref().map(|parent| parent.run.to_string()),
        created_at: at(view.created_at),
        finished_at: maybe_at(view.finished_at),
    }
}

pub(super) fn awaited(awaited: &Awaited) -> dto::AwaitedView {
    match awaited {
        Awaited::Timer { key, kind, due } => {
            dto::AwaitedView::Timer { key: key.to_string(), kind: kind.name().to_owned(), due: at(*due) }
        }
        Awaited::Wait { key, kind, name, assignee, answered, since, .. } => {
            let (key, answered, since) = (key.to_string(), *answered, at(*since));
            match format!("{kind:?}").as_str() {
                "Approval" => dto::AwaitedView::Approval { key, assignee: assignee.clone(), answered, since },
                "Callback" => dto::AwaitedView::Callback { key, answered, since },
                _ => dto::AwaitedView::Signal { key, name: name.clone().unwrap_or_default(), answered, since },
            }
        }
        Awaited::Task { key, id, state } => {
            let (key, task) = (key.to_string(), id.to_string());
            dto::AwaitedView::Task { key, task, state: state.name().to_owned() }
        }
        Awaited::Child { key, run, status } => {
            let (key, run) = (key.to_string(), run.to_string());
            dto::AwaitedView::Child { key, run, status: status.name().to_owned() }
        }
    }
}

pub(super) fn event(observed: &Observed) -> dto::RunEvent {
    // As it is stored: a few small fields, and the author's value.
    let record = observed.event.encode(observed.at.unwrap_or_default());
    dto::RunEvent {
        generation: observed.generation,
        index: observed.index,
        kind: observed.event.kind().name().to_owned(),
        key: record.key.as_ref().map(ToString::to_string),
        at: maybe_at(observed.at),
        data: record.meta.as_deref().map(dto::json),
        payload: record.payload.as_deref().map(dto::json),
    }
}

pub(super) fn failure(failure: &Failure) -> dto::FailureView {
    dto::FailureView {
        code: failure.code.clone(),
        message: failure.message.clone(),
        data: failure.data.as_deref().map(dto::json),
        permanent: failure.permanent,
        trace: failure.trace.clone(),
    }
}

/// An error a client reports.
pub(super) fn failure_of(view: dto::FailureView) -> ApiResult<Failure> {
    let code = crate::body::text("the code of an error", &view.code, 255)?;
    if code.is_empty() {
        return Err(ApiError::unfit("an error needs a code"));
    }
    let failure = Failure::new(code, view.message);
    let failure = if view.permanent { failure.permanent() } else { failure };
    let failure = match view.trace {
        Some(trace) => failure.with_trace(trace),
        None => failure,
    };
    Ok(match view.data {
        Some(data) => failure.with_data(compact(&data).get().to_owned()),
        None => failure,
    })
}

pub(super) fn delivered(delivered: Delivered) -> dto::Delivered {
    let outcome = match delivered {
        Delivered::Buffered => "buffered",
        Delivered::Duplicate => "duplicate",
        Delivered::Lost => "lost",
        // The others are errors before they come here.
        Delivered::Delivered | Delivered::NotFound | Delivered::Deleted | Delivered::Full => "delivered",
    };
    dto::Delivered { outcome: outcome.to_owned() }
}

pub(super) fn workflow(version: WorkflowVersion) -> dto::WorkflowVersionView {
    dto::WorkflowVersionView {
        workflow: version.workflow.to_string(),
        version: version.version.to_string(),
        style: version.style.to_owned(),
        file: version.file,
        defined_at: maybe_at(version.defined_at),
        current: version.current,
    }
}

pub(super) fn operation(info: &OperationInfo) -> dto::OperationView {
    dto::OperationView {
        key: info.key.to_string(),
        kind: info.kind.to_string(),
        parent: info.parent.clone(),
        state: info.state.to_string(),
        deadline: maybe_at(info.deadline),
        location: info.location.as_ref().map(ToString::to_string),
    }
}

pub(super) fn task(view: &TaskView) -> dto::TaskView {
    dto::TaskView {
        task: view.id.to_string(),
        name: view.name.to_string(),
        queue: view.queue.to_string(),
        state: view.state.name().to_owned(),
        run: view.origin.as_ref().map(ToString::to_string),
        priority: view.priority,
        attempt: view.attempt,
        worker: view.worker.as_ref().map(ToString::to_string),
        since: maybe_at(view.since),
        until: maybe_at(view.until),
        died_at: maybe_at(view.died_at),
        note: view.note.as_deref().map(dto::json),
    }
}

/// The longest time a client can ask for: a thousand years, so that no instant leaves the calendar.
const MILLIS_MAX: u64 = 1_000 * 366 * 24 * 60 * 60 * 1_000;

/// A time a client gave in milliseconds.
pub(super) fn duration(what: &str, millis: u64) -> ApiResult<Duration> {
    if i64::try_from(millis).is_err() {
        return Err(ApiError::invalid(format!("{what} is {millis}, the limit is {MILLIS_MAX}")));
    }
    if millis > MILLIS_MAX {
        return Err(ApiError::unfit(format!("{what} is {millis}, the limit is {MILLIS_MAX}")));
    }
    Ok(Duration::from_millis(millis))
}
