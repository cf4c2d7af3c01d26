//! What happened in a run: page by page, and live.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use outlast::{Attached, EngineError, RunHandle};
use serde::Deserialize;
use utoipa::IntoParams;

use super::convert;
use super::runs::page_size;
use crate::app::{App, Subscription};
use crate::auth::{Caller, Door, Scope};
use crate::body::{Path, Query, whole};
use crate::dto::{EventPage, StreamEnd};
use crate::error::{ApiError, ApiResult};

/// How often a stream that has nothing to say says so, so that nobody on the way takes it for dead.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Which part of the journal.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// Which generation's; the current one otherwise.
    #[serde(default, deserialize_with = "whole")]
    generation: Option<u64>,
    /// From this index on; from the beginning otherwise.
    #[serde(default, deserialize_with = "whole")]
    from: Option<u64>,
    /// At most so many: from 1 to 1000, 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// A part of a run's journal.
#[utoipa::path(get, path = "/api/v1/runs/{run}/events", params(Part), responses((status = 200, body = EventPage)))]
pub(super) async fn page(
    caller: Caller,
    Path(run): Path<String>,
    Query(part): Query<Part>,
) -> ApiResult<Answer<EventPage>> {
    let handle = caller.engine.run(&run)?;
    let view = handle.view().await?;
    let (generation, from) = (part.generation.unwrap_or(view.generation.0), part.from.unwrap_or(0));
    let limit = page_size(part.limit)?;
    // No journal has such an index, and no database such a number.
    if generation > view.generation.0 || from > u64::from(u32::MAX) {
        return Ok(Answer(EventPage { generation, events: Vec::new(), next: from }));
    }
    let events = handle.journal_page(Some(generation), from, limit).await?;
    let next = from + events.len() as u64;
    Ok(Answer(EventPage { generation, events: events.iter().map(convert::event).collect(), next }))
}

/// Where a stream begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct After {
    /// Behind the event with this id; the header `Last-Event-ID` says the same, and goes before.
    after: Option<String>,
}

/// A run as it happens, as server-sent events: `RUN_STARTED`, the journal so far, and what comes. The id of an event is its journal
/// index; whoever was cut off goes on behind the last one it saw with `Last-Event-ID`. When the run has ended or rests, a
/// last event `end` says where it stands. 204 if there is nothing more to come.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/stream",
    params(
        After,
        ("Last-Event-ID" = Option<String>, Header, description = "Behind the event with this id, which was seen last.")
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 204, description = "The run has ended, and everything was told.")
    )
)]
pub(super) async fn stream(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    if app.is_draining() {
        return Err(ApiError::stopping());
    }
    let handle = caller.engine.run(&run)?;
    let view = handle.view().await?;
    let seen = match headers.get("last-event-id") {
        Some(header) => Some(header.to_str().map_err(|_| no_event_id("the header"))?.to_owned()),
        None => after.after,
    };
    let seen = seen.map(|text| position(&text).ok_or_else(|| no_event_id(&text))).transpose()?;
    let mut attached = handle.attach();
    if let Some((generation, index)) = seen {
        if view.status.is_terminal() && (generation, index + 1) == (view.generation.0, view.next.0) {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        if (generation, index) >= (view.generation.0, view.next.0) {
            return Err(ApiError::unfit(format!("the run has no event {index} of generation {generation} yet")));
        }
        attached = attached.after(generation, index);
    }
    let Some(place) = app.subscribe(&handle.key().to_string()) else {
        return Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_subscribers",
            "too many watch this run",
            "watch it through one of them, or ask for pages of events",
        ));
    };
    let door = Door::behind(&app, &caller, Scope::Read);
    let told = Stage::Watching(Box::new(Watching { door, app, handle, attached, _place: place }));
    let events = futures_util::stream::unfold(told, Stage::next);
    Ok(Sse::new(boxed(events)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

fn boxed(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> std::pin::Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>> {
    Box::pin(events)
}

/// An event's id: its index, with the generation before it from the second one on.
fn position(text: &str) -> Option<(u64, u64)> {
    let (generation, index) = text.split_once(':').unwrap_or(("0", text));
    let (generation, index): (u64, u64) = (generation.parse().ok()?, index.parse().ok()?);
    (generation <= u64::from(u32::MAX) && index < u64::from(u32::MAX)).then_some((generation, index))
}

fn no_event_id(text: &str) -> ApiError {
    ApiError::unfit(format!("{text:?} is not the id of an event; send the last one you saw"))
}

struct Watching {
    door: Door,
    app: App,
    handle: RunHandle,
    attached: Attached,
    _place: Subscription,
}

enum Stage {
    Watching(Box<Watching>),
    Over,
}

impl Stage {
    async fn next(self) -> Option<(Result<Event, Infallible>, Stage)> {
        let Stage::Watching(mut watching) = self else { return None };
        let observed = tokio::select! {
            // First, so that whoever has to go is told nothing more.
            biased;
            refused = watching.door.shut() => return Some((Ok(said(&refused)), Stage::Over)),
            observed = watching.attached.observe() => observed,
            // Whoever watches comes again, here or elsewhere, and goes on where it was.
            () = watching.app.drained() => return None,
        };
        match observed {
            Ok(Some(observed)) => {
                let event = convert::event(&observed);
                let sent = Event::default().event(&event.kind).json_data(&event);
                let sent = sent.map(|sent| event.id().map_or(sent.clone(), |id| sent.id(id)));
                Some((Ok(sent.unwrap_or_default()), Stage::Watching(watching)))
            }
            Ok(None) => Some((Ok(end(watching.handle.status().await)), Stage::Over)),
            Err(error) => Some((Ok(cut_off(error)), Stage::Over)),
        }
    }
}

fn end(status: Result<outlast::Status, EngineError>) -> Event {
    match status {
        Ok(status) => {
            let end = StreamEnd { status: status.name().to_owned() };
            Event::default().event("end").json_data(end).unwrap_or_default()
        }
        Err(error) => cut_off(error),
    }
}

fn cut_off(error: EngineError) -> Event {
    said(&ApiError::from(error))
}

/// An error as the last event of a stream.
pub(super) fn said(error: &ApiError) -> Event {
    Event::default().event("error").json_data(error.body()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_an_index_with_the_generation_before_it() {
        assert_eq!(position("0"), Some((0, 0)));
        assert_eq!(position("41"), Some((0, 41)));
        assert_eq!(position("3:41"), Some((3, 41)));
        for wrong in ["", "-1", "a", "1:", ":1", "1:2:3", " 1", "18446744073709551615", "9999999999:0"] {
            assert_eq!(position(wrong), None, "{wrong}");
        }
    }
}
