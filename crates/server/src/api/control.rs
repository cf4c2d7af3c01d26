//! Telling a run what to do.

use axum::Extension;
use axum::Json as Answer;
use axum::http::StatusCode;
use outlast::{Fork, Forked as NewRun, Intervene, RunHandle};
use sha2::{Digest, Sha256};

use super::convert;
use crate::audit::Made;
use crate::auth::{Caller, hex};
use crate::body::{IdempotencyKey, Json, Path, TEXT_BYTES_MAX, compact, text};
use crate::dto::{self, Delivered, Done, ForkRun, Forked, NodeRequest, Reason, Resume, Signal, Unparked};
use crate::error::{ApiError, ApiResult};

/// Sends a signal. It is durable when this returns, and is kept until the run waits for it.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/signals/{signal}",
    request_body = Option<Signal>,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn signal(
    caller: Caller,
    Path((run, signal)): Path<(String, String)>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<Signal>,
) -> ApiResult<Answer<Delivered>> {
    let run = caller.engine.run(&run)?;
    let payload = convert::value(request.payload.as_ref());
    let id = request.id.or(key).map_or_else(fresh_id, Ok)?;
    let delivered = match &request.operation {
        Some(operation) => run.signal_to(operation, &signal, &payload, &id).await?,
        None => run.signal(&signal, &payload, &id).await?,
    };
    Ok(Answer(convert::delivered(delivered)))
}

/// A name for something that nobody named.
pub(super) fn fresh_id() -> ApiResult<String> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|_| ApiError::internal())?;
    Ok(hex(&id))
}

/// Asks a run to start nothing new; what executes ends and is recorded.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/pause",
    request_body = Option<Reason>,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn pause(
    caller: Caller,
    Path(run): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<Reason>,
) -> ApiResult<Answer<Delivered>> {
    let tell = caller.engine.run(&run)?.pause(reason(&request)?).by(&caller.name);
    let tell = if let Some(key) = &key { tell.id(key) } else { tell };
    Ok(Answer(convert::delivered(tell.await?)))
}

/// Lets a paused run go on, and tells it something if there is something to tell.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/resume",
    request_body = Option<Resume>,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn resume(
    caller: Caller,
    Path(run): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<Resume>,
) -> ApiResult<Answer<Delivered>> {
    let run = caller.engine.run(&run)?;
    let delivered = match &request.message {
        Some(message) => {
            let message = compact(message);
            let resume = run.resume_with(&message).by(&caller.name);
            if let Some(key) = &key { resume.id(key).await? } else { resume.await? }
        }
        None => {
            let tell = run.resume().by(&caller.name);
            if let Some(key) = &key { tell.id(key).await? } else { tell.await? }
        }
    };
    Ok(Answer(convert::delivered(delivered)))
}

/// Asks a run to stop: what it awaits fails with `cancelled`, its cleanup runs, and its children are asked too.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/cancel",
    request_body = Option<Reason>,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn cancel(
    caller: Caller,
    Path(run): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<Reason>,
) -> ApiResult<Answer<Delivered>> {
    let tell = caller.engine.run(&run)?.cancel(reason(&request)?).by(&caller.name);
    let tell = if let Some(key) = &key { tell.id(key) } else { tell };
    Ok(Answer(convert::delivered(tell.await?)))
}

/// Ends a run without asking it: its cleanup does not run. Again it is refused with `signal_lost`, because it has ended.
#[utoipa::path(post, path = "/api/v1/runs/{run}/terminate", request_body = Option<Reason>, responses((status = 200, body = Done)))]
pub(super) async fn terminate(
    caller: Caller,
    Path(run): Path<String>,
    Json(request): Json<Reason>,
) -> ApiResult<Answer<Done>> {
    caller.engine.run(&run)?.terminate(reason(&request)?).by(&caller.name).await?;
    Ok(Answer(Done {}))
}

/// Lets a parked run go on, after whatever stopped it was mended.
#[utoipa::path(post, path = "/api/v1/runs/{run}/unpark", responses((status = 200, body = Unparked)))]
pub(super) async fn unpark(
    caller: Caller,
    Path(run): Path<String>,
    Json(Done {}): Json<Done>,
) -> ApiResult<Answer<Unparked>> {
    Ok(Answer(Unparked { was_parked: caller.engine.run(&run)?.unpark().await? }))
}

/// Makes a new run out of the beginning of this one's history, which is not touched; 201 if it is new.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/fork",
    request_body = Option<ForkRun>,
    responses((status = 201, body = Forked), (status = 200, description = "It was there.", body = Forked))
)]
pub(super) async fn fork(
    caller: Caller,
    Path(run): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<ForkRun>,
) -> ApiResult<(StatusCode, Extension<Made>, Answer<Forked>)> {
    let forked = make_fork(caller.engine.run(&run)?, key, &request).await?;
    let reissued = forked.reissued.iter().map(|operation| dto::ReissuedOperation {
        key: operation.key.to_string(),
        kind: operation.kind.to_string(),
        deadline: convert::maybe_at(operation.deadline),
        was: operation.was.clone(),
        child: operation.child.as_ref().map(ToString::to_string),
    });
    let answer = Forked { run: forked.run.id().to_string(), new: forked.run.is_new(), reissued: reissued.collect() };
    let status = if answer.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Extension(Made(answer.run.clone())), Answer(answer)))
}

async fn make_fork(run: RunHandle, key: Option<String>, request: &ForkRun) -> ApiResult<NewRun> {
    // A retry that nobody names is named for what is tried again: whatever key it has, it is there once.
    if request.failed && request.id.is_none() && request.input.is_none() {
        only_failed(request)?;
        return Ok(run.retry().await?);
    }
    let mut fork = cut(&run, request).await?;
    let named = match key {
        Some(key) => forked(run.id().as_str(), &key),
        None => format!("fork-{}", fresh_id()?),
    };
    fork = fork.id(request.id.as_ref().unwrap_or(&named));
    if let Some(input) = &request.input {
        fork = fork.input(&compact(input));
    }
    Ok(fork.await?)
}

fn only_failed(request: &ForkRun) -> ApiResult<()> {
    if request.at.is_none() && request.node.is_none() { Ok(()) } else { Err(where_to_cut()) }
}

fn where_to_cut() -> ApiError {
    ApiError::unfit("say where to cut, with one of `at`, `node` and `failed`")
}

/// What the fork of a run is called that was asked for under a key. The same key means the same fork.
fn forked(run: &str, key: &str) -> String {
    format!("fork-{}", &hex(&Sha256::digest(format!("{run}\n{key}")))[..32])
}

async fn cut<'h>(handle: &'h RunHandle, request: &ForkRun) -> ApiResult<Fork<'h>> {
    match (request.at, &request.node, request.failed) {
        (Some(at), None, false) => Ok(handle.fork(at)),
        (None, Some(node), false) => Ok(handle.fork_at_node(node).await?),
        (None, None, true) => Ok(handle.fork_before_failure().await?),
        _ => Err(where_to_cut()),
    }
}

/// Has a flow's node begin again that is under way.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/retry",
    request_body = NodeRequest,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn retry(
    caller: Caller,
    Path(run): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<NodeRequest>,
) -> ApiResult<Answer<Delivered>> {
    let run = caller.engine.run(&run)?;
    intervene(run.retry_node(&request.node), &caller, key, &request).await
}

/// Lets a flow go on without a node.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/skip",
    request_body = NodeRequest,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn skip(
    caller: Caller,
    Path(run): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<NodeRequest>,
) -> ApiResult<Answer<Delivered>> {
    let run = caller.engine.run(&run)?;
    intervene(run.skip_node(&request.node), &caller, key, &request).await
}

/// Who does it is whose token it is.
async fn intervene(
    intervene: Intervene<'_>,
    caller: &Caller,
    key: Option<String>,
    request: &NodeRequest,
) -> ApiResult<Answer<Delivered>> {
    let mut intervene = intervene.by(&caller.name);
    if let Some(reason) = &request.reason {
        intervene = intervene.reason(text("the reason", reason, TEXT_BYTES_MAX)?);
    }
    if let Some(key) = &key {
        intervene = intervene.id(key);
    }
    Ok(Answer(convert::delivered(intervene.await?)))
}

pub(super) fn reason(request: &Reason) -> ApiResult<&str> {
    text("the reason", &request.reason, TEXT_BYTES_MAX)
}
