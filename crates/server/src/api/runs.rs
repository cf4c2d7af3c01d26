//! Runs: starting them, finding them, what they came to.

mod explain;
mod start;
mod trace;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use outlast::{EngineError, List, RunHandle};
use serde::Deserialize;
use utoipa::IntoParams;

use super::convert;
use crate::app::App;
use crate::auth::Caller;
use crate::body::{Path, Query, TEXT_BYTES_MAX, text, whole};
use crate::dto::{self, Done, Explained, OperationList, RunList, RunResult, RunView};
use crate::error::{ApiError, ApiResult};

pub(super) use start::*;
pub(super) use trace::*;

/// How long a request may wait for something to happen.
pub(super) const WAIT_MS_MAX: u64 = 60_000;

/// Which runs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Those that stand here; several with commas between them.
    status: Option<String>,
    /// Of this workflow.
    workflow: Option<String>,
    /// Of this version.
    version: Option<String>,
    /// Whose id begins so.
    prefix: Option<String>,
    /// Created at this instant or later.
    created_from: Option<String>,
    /// Created before this instant.
    created_until: Option<String>,
    /// Children of this run.
    parent: Option<String>,
    /// With this search attribute: `name=value`.
    attribute: Option<String>,
    /// At most so many on a page: from 1 to 1000, 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
    /// Where the last page ended.
    pub(super) cursor: Option<String>,
}

/// How many a page has.
pub(super) fn page_size(limit: Option<u16>) -> ApiResult<usize> {
    match limit.unwrap_or(100) {
        limit @ 1..=1000 => Ok(usize::from(limit)),
        limit => Err(ApiError::invalid(format!("a page can have 1 to 1000, and not {limit}"))),
    }
}

/// Finds runs, the newest first.
#[utoipa::path(get, path = "/api/v1/runs", params(Which), responses((status = 200, body = RunList)))]
pub(super) async fn list(caller: Caller, Query(which): Query<Which>) -> ApiResult<Answer<RunList>> {
    let page = which.ask(&caller)?.await?;
    let runs = page.runs.iter().map(convert::summary).collect();
    Ok(Answer(RunList { runs, next: convert::cursor(page.next) }))
}

impl Which {
    /// The question as the engine takes it.
    pub(super) fn ask<'c>(&self, caller: &'c Caller) -> ApiResult<List<'c>> {
        let mut list = caller.engine.list().page_size(page_size(self.limit)?);
        for status in self.status.iter().flat_map(|all| all.split(',')) {
            list = list.status(convert::status_of(status)?);
        }
        if let Some(workflow) = &self.workflow {
            list = list.workflow(workflow);
        }
        if let Some(version) = &self.version {
            list = list.version(version);
        }
        if let Some(prefix) = &self.prefix {
            list = list.id_prefix(text("a prefix", prefix, 255)?);
        }
        if let Some(from) = &self.created_from {
            list = list.created_from(convert::instant_of("`created_from`", from)?);
        }
        if let Some(until) = &self.created_until {
            list = list.created_until(convert::instant_of("`created_until`", until)?);
        }
        if let Some(parent) = &self.parent {
            list = list.parent(parent);
        }
        if let Some(attribute) = &self.attribute {
            let parts = text("an attribute", attribute, TEXT_BYTES_MAX)?.split_once('=');
            let (name, value) = parts.ok_or_else(|| ApiError::unfit("an attribute is looked for as `name=value`"))?;
            list = list.attribute(name, value);
        }
        Ok(list.after(convert::cursor_of(self.cursor.as_deref())?))
    }
}

/// What is recorded of a run's last generation, to be replayed elsewhere.
#[utoipa::path(get, path = "/api/v1/runs/{run}/export", responses((status = 200, body = serde_json::Value)))]
pub(super) async fn export(caller: Caller, Path(run): Path<String>) -> ApiResult<Answer<outlast::Recording>> {
    Ok(Answer(caller.engine.run(&run)?.export().await?))
}

/// Where a run of a flow stands: its node, the outputs so far, and the containers it is in.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/position",
    params(When),
    responses((status = 200, body = serde_json::Value))
)]
pub(super) async fn position(
    caller: Caller,
    Path(run): Path<String>,
    Query(when): Query<When>,
) -> ApiResult<Answer<outlast::Position>> {
    Ok(Answer(caller.engine.run(&run)?.position_at(when.events()).await?))
}

/// How much to tell.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HowMuch {
    /// Leaves out what it waits for, of which there may be ten thousand.
    #[serde(default)]
    brief: bool,
}

/// A run, with everything it waits for.
#[utoipa::path(get, path = "/api/v1/runs/{run}", params(HowMuch), responses((status = 200, body = RunView)))]
pub(super) async fn get(
    caller: Caller,
    Path(run): Path<String>,
    Query(how_much): Query<HowMuch>,
) -> ApiResult<Answer<RunView>> {
    let run = caller.engine.run(&run)?;
    let view = run.view().await?;
    let awaiting = if how_much.brief { Vec::new() } else { run.awaiting().await? };
    Ok(Answer(RunView {
        summary: convert::summary(&view),
        input: dto::json(&run.input().await?),
        attributes: run.attributes().await?.into_iter().collect::<BTreeMap<_, _>>(),
        awaiting: awaiting.iter().map(convert::awaited).collect(),
    }))
}

/// Why.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Why {
    /// Told to whoever asks for the run within seven days.
    reason: Option<String>,
}

/// Deletes a run that has ended. For seven days whoever asks for it is told that it was deleted, and why.
#[utoipa::path(delete, path = "/api/v1/runs/{run}", params(Why), responses((status = 200, body = Done)))]
pub(super) async fn delete(caller: Caller, Path(run): Path<String>, Query(why): Query<Why>) -> ApiResult<Answer<Done>> {
    let reason = why.reason.unwrap_or_default();
    caller.engine.run(&run)?.delete(text("the reason", &reason, TEXT_BYTES_MAX)?).await?;
    Ok(Answer(Done {}))
}

/// How long to wait.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wait {
    /// If the run has not ended, waits so long for its end: at most 60000; not at all otherwise.
    #[serde(default, deserialize_with = "whole")]
    wait_ms: Option<u64>,
}

/// What a run came to. If it has not ended, the status is 202 and says where it stands. A run that is parked has no end in sight:
/// that is answered at once, however long somebody would wait, with `parked` and why as its error.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/result",
    params(Wait),
    responses((status = 200, body = RunResult), (status = 202, description = "It has not ended.", body = RunResult))
)]
pub(super) async fn result(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(wait): Query<Wait>,
) -> ApiResult<(StatusCode, Answer<RunResult>)> {
    let handle = caller.engine.run(&run)?;
    let view = handle.view().await?;
    let patience = Duration::from_millis(wait.wait_ms.unwrap_or(0).min(WAIT_MS_MAX));
    let ended = view.status.is_terminal() || wait_for_end(&app, &caller, &run, patience).await?;
    if ended {
        return Ok((StatusCode::OK, Answer(ended_as(handle, view.workflow.to_string()).await?)));
    }
    let view = handle.view().await?;
    let error = view.note.as_ref().map(|note| dto::FailureView {
        code: "parked".to_owned(),
        message: note.clone(),
        data: None,
        permanent: false,
        trace: None,
    });
    let (workflow, status) = (view.workflow.to_string(), view.status.name().to_owned());
    Ok((StatusCode::ACCEPTED, Answer(RunResult { run, workflow, status, output: None, error })))
}

/// Whether the run ended in time.
async fn wait_for_end(app: &App, caller: &Caller, run: &str, patience: Duration) -> ApiResult<bool> {
    if patience.is_zero() {
        return Ok(false);
    }
    let end = caller.engine.run(run)?.result::<serde::de::IgnoredAny>();
    tokio::select! {
        ended = tokio::time::timeout(patience, end) => match ended {
            Ok(Ok(_) | Err(EngineError::Failed(_) | EngineError::Cancelled(_))) => Ok(true),
            // It is parked, and has no end in sight; or its time is up.
            Ok(Err(EngineError::Parked { .. })) | Err(_) => Ok(false),
            Ok(Err(error)) => Err(error.into()),
        },
        () = app.drained() => Ok(false),
    }
}

/// What a run that has ended came to.
async fn ended_as(handle: RunHandle, workflow: String) -> ApiResult<RunResult> {
    let run = handle.id().to_string();
    let (status, output, error) = match handle.result::<dto::Json>().await {
        Ok(output) => ("completed", Some(output), None),
        Err(EngineError::Failed(failure)) => ("failed", None, Some(convert::failure(&failure))),
        Err(EngineError::Cancelled(reason)) => {
            let message = reason.unwrap_or_else(|| "the run was cancelled".to_owned());
            let error =
                dto::FailureView { code: "cancelled".to_owned(), message, data: None, permanent: true, trace: None };
            ("cancelled", None, Some(error))
        }
        Err(error) => return Err(error.into()),
    };
    Ok(RunResult { run, workflow, status: status.to_owned(), output, error })
}

/// Why a run stands where it stands, what it waits for, and what would wake it.
#[utoipa::path(get, path = "/api/v1/runs/{run}/explain", params(AtMost), responses((status = 200, body = Explained)))]
pub(super) async fn explain(
    caller: Caller,
    Path(run): Path<String>,
    Query(at_most): Query<AtMost>,
) -> ApiResult<Answer<Explained>> {
    let limit = at_most.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Answer(explain::explained(caller.engine.run(&run)?.explain().await?, limit)))
}

/// How many.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AtMost {
    /// Tells of so many operations at most, the oldest; of all otherwise.
    #[serde(default, deserialize_with = "whole")]
    limit: Option<u64>,
}

/// What a run does right now, as far as this process knows.
#[utoipa::path(get, path = "/api/v1/runs/{run}/operations", responses((status = 200, body = OperationList)))]
pub(super) async fn operations(caller: Caller, Path(run): Path<String>) -> ApiResult<Answer<OperationList>> {
    let handle = caller.engine.run(&run)?;
    // Whoever asks for a run that is not there is told so.
    handle.view().await?;
    let found = handle.operations().await;
    let operations = found.iter().flatten().map(convert::operation).collect();
    Ok(Answer(OperationList { here: found.is_some(), operations }))
}
