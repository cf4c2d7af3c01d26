//! Starting runs.

use std::time::Duration;

use axum::Extension;
use axum::Json as Answer;
use axum::http::StatusCode;

use crate::api::convert;
use crate::audit::Made;
use crate::auth::Caller;
use crate::body::{IdempotencyKey, Json, text};
use crate::dto::{StartRun, Started};
use crate::error::{ApiError, ApiResult};

/// How long a start under the same key is the same start.
const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
/// The most a search attribute's value can have.
const ATTRIBUTE_BYTES_MAX: usize = 1024;
/// The most search attributes, and the most limits, a start can have.
const MANY: usize = 64;

/// Starts a run; 201 if it is new, 200 if it was there already. With a `signal` it is a signal-with-start: both or neither.
#[utoipa::path(
    post,
    path = "/api/v1/runs",
    request_body = StartRun,
    responses((status = 201, body = Started), (status = 200, description = "It was there.", body = Started))
)]
pub(in crate::api) async fn start(
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<StartRun>,
) -> ApiResult<(StatusCode, Extension<Made>, Answer<Started>)> {
    let engine = &caller.engine;
    check(&request)?;
    let input = convert::value(request.input.as_ref());
    let mut start = engine.start(&request.workflow, &input);
    if let Some(version) = &request.version {
        own_version(&caller, &request.workflow, version).await?;
        start = start.version(version);
    }
    if let Some(id) = &request.id {
        start = start.id(id);
    }
    if let Some(key) = &key {
        start = start.idempotency(key, WINDOW);
    }
    for (name, value) in &request.attributes {
        start = start.attribute(name, text("an attribute's value", value, ATTRIBUTE_BYTES_MAX)?);
    }
    if let Some(priority) = request.priority {
        start = start.priority(priority);
    }
    if let Some(delay) = request.delay_ms {
        start = start.delay(convert::duration("`delay_ms`", delay)?);
    }
    for limit in &request.concurrency {
        start = start.concurrency(&limit.key, limit.max);
    }
    if let Some(key) = &request.singleton {
        start = start.singleton(key);
    }
    if let Some(signal) = &request.signal {
        start = start.signal(&signal.name, &convert::value(signal.payload.as_ref()), &signal.id);
    }
    let run = start.await?;
    let status = if run.is_new() { StatusCode::CREATED } else { StatusCode::OK };
    let started = Started { run: run.id().to_string(), new: run.is_new() };
    Ok((status, Extension(Made(started.run.clone())), Answer(started)))
}

fn check(request: &StartRun) -> ApiResult<()> {
    if request.attributes.len() > MANY || request.concurrency.len() > MANY {
        return Err(ApiError::unfit(format!("a start can have {MANY} attributes and {MANY} limits at most")));
    }
    Ok(())
}

/// A version of a text belongs to whoever put it: that another namespace has it is none of the caller's business.
async fn own_version(caller: &Caller, workflow: &str, version: &str) -> ApiResult<()> {
    let versions = caller.engine.workflow_versions(workflow).await?;
    if versions.is_empty() {
        return Err(outlast::EngineError::UnknownWorkflow(workflow.to_owned()).into());
    }
    if versions.iter().any(|known| known.version.as_str() == version) {
        return Ok(());
    }
    let (workflow, version) = (workflow.to_owned(), version.to_owned());
    Err(outlast::EngineError::VersionMismatch { workflow, version }.into())
}
