//! A run, looked back at: what a script's variables held, and where in the source operations were asked for.

use axum::Json as Answer;
use axum::extract::State;
use outlast::{EngineError, Trace};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::auth::Caller;
use crate::body::{Path, Query, whole};
use crate::dto::{LocationsView, OperationLocation, TraceView, TracedCallView, TracedVariable};
use crate::error::{ApiError, ApiResult};

/// When.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct When {
    /// After so many events of the journal; after all of them otherwise.
    #[serde(default, deserialize_with = "whole")]
    at: Option<u64>,
}

impl When {
    pub(in crate::api) fn events(&self) -> u64 {
        self.at.unwrap_or(u64::MAX)
    }
}

/// Where a run of a script was after some events of its journal, and what its variables held. The journal of the
/// current generation is replayed from its beginning: it can have 50000 events.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/trace",
    params(When),
    responses((status = 200, body = TraceView))
)]
pub(in crate::api) async fn trace(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(when): Query<When>,
) -> ApiResult<Answer<TraceView>> {
    // Replaying keeps a core busy: others must not wait for those who look back. The turn ends with the replay, also if nobody
    // waits for it any more.
    let turn = app.turn_to_look_back().await;
    let past = caller.engine.run(&run)?.look_back().await?;
    let events = past.events();
    let look = move || {
        let _turn = turn;
        past.after(when.events())
    };
    let looked = tokio::task::spawn_blocking(look).await;
    Ok(Answer(shown(looked.map_err(|_| ApiError::internal())?, events)))
}

/// Where in its source a run asked for each of its operations, done or not. No journal says so: the run's current
/// generation is replayed with the code that this server has, so its journal can have 50000 events, and a server that does
/// not have the code answers 422. Flows have no such places: their operations are named after nodes.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/locations",
    responses((status = 200, body = LocationsView))
)]
pub(in crate::api) async fn locations(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
) -> ApiResult<Answer<LocationsView>> {
    let turn = app.turn_to_look_back().await;
    let replay = caller.engine.run(&run)?.replay().await?;
    let events = replay.events();
    let locate = move || {
        let _turn = turn;
        replay.locate()
    };
    let located = tokio::task::spawn_blocking(locate).await.map_err(|_| ApiError::internal())?;
    let located = located.map_err(|error| {
        EngineError::Invalid(format!("the run {run} cannot be replayed with the code of this server: {error}"))
    })?;
    let found = located.locations.into_iter();
    let locations =
        found.map(|(key, location)| OperationLocation { key: key.to_string(), location: location.to_string() });
    let divergence = located.divergence.map(|divergence| divergence.to_string());
    Ok(Answer(LocationsView { events, locations: locations.collect(), divergence }))
}

fn shown(trace: Trace, events: u64) -> TraceView {
    let waiting = trace.waiting.into_iter().map(|call| TracedCallView {
        function: call.function,
        line: call.position.line,
        text: call.line,
        operations: call.operations,
        variables: call.variables.into_iter().map(|(name, value)| TracedVariable { name, value }).collect(),
    });
    TraceView {
        at: trace.index.0,
        events,
        ended: trace.end.is_some(),
        gave_up: trace.gave_up,
        calls: trace.calls as u64,
        waiting: waiting.collect(),
    }
}
