//! Lists that follow what happens. A list changes by what any engine on the store does, so the store is asked, and
//! whoever watches is told only what is new: who watches a server where nothing happens hears nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use outlast::{EngineError, Page};

use super::convert;
use super::events::{KEEP_ALIVE, said};
use super::runs::Which;
use crate::app::{App, Subscription};
use crate::auth::{Caller, Door, Scope};
use crate::body::Query;
use crate::dto::{RunCounts, RunSummary, RunsChange};
use crate::error::{ApiError, ApiResult};

/// How soon after an answer the store is asked again.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How soon after an answer runs are counted again: that costs more, the more there are.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// An answer that took long is followed by a rest so many times as long, so that one who watches costs the store a
/// twentieth.
const REST_FACTOR: u32 = 20;

/// How many runs stand where, by status.
#[utoipa::path(get, path = "/api/v1/counts", responses((status = 200, body = RunCounts)))]
pub(super) async fn counts(caller: Caller) -> ApiResult<Answer<RunCounts>> {
    Ok(Answer(RunCounts { counts: counted(&caller).await? }))
}

async fn counted(caller: &Caller) -> Result<BTreeMap<String, u64>, EngineError> {
    let counts = caller.engine.count().await?;
    Ok(counts.into_iter().map(|(status, count)| (status.name().to_owned(), count)).collect())
}

/// A page of a list of runs as it changes, as server-sent events `runs`. Takes what the list takes. Only the first page comes
/// with the counts: whoever follows others has it, too.
#[utoipa::path(
    get,
    path = "/api/v1/changes/stream",
    params(Which),
    responses((status = 200, content_type = "text/event-stream", body = RunsChange))
)]
pub(super) async fn changes(State(app): State<App>, caller: Caller, Query(which): Query<Which>) -> ApiResult<Response> {
    if app.is_draining() {
        return Err(ApiError::stopping());
    }
    // Before a stream begins: what is wrong with the question is told as with any other.
    let first = Some(which.ask(&caller)?.await?);
    // No run can have this name.
    let Some(place) = app.subscribe(&format!("/{}", caller.engine.namespace())) else {
        return Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_subscribers",
            "too many watch the runs of this namespace",
            "ask for pages of the list",
        ));
    };
    let told = Told {
        door: Door::behind(&app, &caller, Scope::Read),
        app,
        caller,
        which,
        first,
        known: Known::default(),
        looks: Pace::default(),
        counts: Pace::default(),
        _place: place,
    };
    let events = futures_util::stream::unfold(Some(told), Told::next);
    Ok(Sse::new(Box::pin(events)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Somebody who watches a list.
struct Told {
    door: Door,
    app: App,
    caller: Caller,
    which: Which,
    /// What the store said when the stream began.
    first: Option<Page>,
    known: Known,
    looks: Pace,
    counts: Pace,
    _place: Subscription,
}

impl Told {
    async fn next(told: Option<Told>) -> Option<(Result<Event, Infallible>, Option<Told>)> {
        let mut told = told?;
        loop {
            match told.look().await {
                Ok(Some(change)) => {
                    let event = Event::default().event("runs").json_data(change).unwrap_or_default();
                    return Some((Ok(event), Some(told)));
                }
                Ok(None) => {}
                Err(error) => {
                    return Some((Ok(said(&error)), None));
                }
            }
        }
    }

    /// Waits until it is time, and asks the store; what is new, if anything is. A server that shuts down, and a token that is
    /// good no longer, end the stream with an error that says so.
    async fn look(&mut self) -> ApiResult<Option<RunsChange>> {
        let ends = async {
            tokio::select! {
                // First, so that whoever has to go is told nothing more.
                biased;
                refused = self.door.shut() => refused,
                () = self.app.drained() => ApiError::stopping(),
            }
        };
        if let Ok(end) = tokio::time::timeout(self.looks.rest, ends).await {
            return Err(end);
        }
        let began = self.caller.engine.now();
        let page = match self.first.take() {
            Some(first) => first,
            None => self.which.ask(&self.caller)?.await?,
        };
        let looked = self.caller.engine.now();
        self.looks.took(looked.since(began), LOOK_EVERY);
        let mut change = self.known.compare(&page);
        self.counts.rest = self.counts.rest.saturating_sub(self.looks.rest);
        if self.which.cursor.is_none() && self.counts.rest.is_zero() {
            let counts = counted(&self.caller).await?;
            self.counts.took(self.caller.engine.now().since(looked), COUNT_EVERY);
            change.counts = self.known.count(counts);
        }
        let says_nothing = change == RunsChange::default();
        Ok((!says_nothing).then_some(change))
    }
}

/// When to ask again.
#[derive(Default)]
struct Pace {
    rest: Duration,
}

impl Pace {
    fn took(&mut self, took: Duration, at_least: Duration) {
        self.rest = (took * REST_FACTOR).max(at_least);
    }
}

/// What somebody who watches was told.
#[derive(Default)]
struct Known {
    runs: BTreeMap<String, RunSummary>,
    order: Option<Vec<String>>,
    next: Option<String>,
    counts: Option<BTreeMap<String, u64>>,
}

impl Known {
    /// What is new, which is known from now on.
    fn compare(&mut self, page: &Page) -> RunsChange {
        let found: Vec<RunSummary> = page.runs.iter().map(convert::summary).collect();
        let order: Vec<String> = found.iter().map(|run| run.run.clone()).collect();
        let runs: Vec<RunSummary> = found.into_iter().filter(|run| self.runs.get(&run.run) != Some(run)).collect();
        let kept: BTreeSet<&String> = order.iter().collect();
        self.runs.retain(|run, _| kept.contains(run));
        self.runs.extend(runs.iter().map(|run| (run.run.clone(), run.clone())));
        let next = convert::cursor(page.next);
        let is_same = self.order.as_ref() == Some(&order) && self.next == next;
        if is_same {
            return RunsChange { runs, ..RunsChange::default() };
        }
        (self.order, self.next) = (Some(order.clone()), next.clone());
        RunsChange { runs, order: Some(order), next, counts: None }
    }

    fn count(&mut self, counts: BTreeMap<String, u64>) -> Option<BTreeMap<String, u64>> {
        if self.counts.as_ref() == Some(&counts) {
            return None;
        }
        self.counts = Some(counts.clone());
        Some(counts)
    }
}
