//! Workers that are not part of this process: they ask for tasks, give signs of life, and say what came of each.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use outlast::{ClaimRequest, WorkerInfo};

use super::convert;
use super::runs::WAIT_MS_MAX;
use crate::app::App;
use crate::auth::Caller;
use crate::body::{Json, compact, text};
use crate::dto::{
    self, ClaimTasks, CompleteTask, Done, FailTask, HeartbeatTask, TaskBeat, TaskClaimed, TaskFailed, TaskOffer,
    TaskToken, WorkerList, WorkerView,
};
use crate::error::{ApiError, ApiResult};

/// How long a worker may be silent if it does not say so.
const LEASE_MS: u64 = 30_000;
/// The most queues, and the most names, one claim has.
const MANY: usize = 256;

/// Who works, by id, with what each does now.
#[utoipa::path(get, path = "/api/v1/workers", responses((status = 200, body = WorkerList)))]
pub(super) async fn list(caller: Caller) -> ApiResult<Answer<WorkerList>> {
    let workers = caller.engine.workers().await?.iter().map(worker).collect();
    Ok(Answer(WorkerList { workers }))
}

fn worker(info: &WorkerInfo) -> WorkerView {
    WorkerView {
        worker: info.id.to_string(),
        host: info.host.clone(),
        queues: info.queues.clone(),
        tasks: info.tasks.clone(),
        tasks_max: info.tasks_max,
        started: convert::at(info.started),
        seen: convert::at(info.seen),
        holds: info.holds.iter().map(convert::task).collect(),
    }
}

/// Asks for tasks to do. If there are none it waits, if that is asked for. A claim whose answer was lost is repeated under the
/// same id and gives the same tasks.
#[utoipa::path(post, path = "/api/v1/work/claim", request_body = ClaimTasks, responses((status = 200, body = TaskClaimed)))]
pub(super) async fn claim(
    State(app): State<App>,
    caller: Caller,
    Json(request): Json<ClaimTasks>,
) -> ApiResult<Answer<TaskClaimed>> {
    let patience = Duration::from_millis(request.wait_ms.unwrap_or(0).min(WAIT_MS_MAX));
    let wanted = wanted(request)?;
    let offers = if patience.is_zero() {
        caller.engine.claim_tasks(wanted).await?
    } else {
        let over = async {
            let _ = tokio::time::timeout(patience, app.drained()).await;
        };
        caller.engine.claim_tasks_until(wanted, over).await?
    };
    Ok(Answer(TaskClaimed { tasks: offers.into_iter().map(offer).collect() }))
}

fn wanted(request: ClaimTasks) -> ApiResult<ClaimRequest> {
    if request.queues.len() > MANY || request.names.len() > MANY {
        return Err(ApiError::unfit(format!("a claim has {MANY} queues and {MANY} names at most")));
    }
    // Numbers that every database can keep, and every client can write.
    let numbers = [Some(request.id), request.lease_ms, request.wait_ms];
    if numbers.into_iter().flatten().any(|number| i64::try_from(number).is_err()) {
        return Err(ApiError::invalid(format!("a claim's id and its times are {} at most", i64::MAX)));
    }
    if let Some(host) = &request.host {
        text("the host", host, 255)?;
    }
    let queues = if request.queues.is_empty() { vec!["default".to_owned()] } else { request.queues };
    let limit = request.limit.unwrap_or(1);
    if limit == 0 {
        return Err(ApiError::invalid("`limit` must be at least 1"));
    }
    Ok(ClaimRequest {
        worker: request.worker,
        id: request.id,
        queues,
        names: request.names,
        host: request.host,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        lease: convert::duration("`lease_ms`", request.lease_ms.unwrap_or(LEASE_MS))?,
    })
}

fn offer(offer: outlast::TaskOffer) -> TaskOffer {
    let millis = |silence: Duration| u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
    TaskOffer {
        token: offer.token,
        namespace: offer.namespace.to_string(),
        task: offer.id.to_string(),
        name: offer.name.to_string(),
        queue: offer.queue.to_string(),
        run: offer.run.as_ref().map(ToString::to_string),
        args: dto::json(&offer.args),
        attempt: offer.attempt,
        idempotency_key: offer.idempotency_key,
        until: convert::at(offer.until),
        deadline: convert::maybe_at(offer.deadline),
        silence_ms: offer.silence.map(millis),
        now: convert::at(offer.now),
    }
}

/// A sign of life, with something to be shown while the task runs. Says how long the task stays the worker's, and whether nobody
/// wants it any more.
#[utoipa::path(post, path = "/api/v1/work/heartbeat", request_body = HeartbeatTask, responses((status = 200, body = TaskBeat)))]
pub(super) async fn heartbeat(caller: Caller, Json(request): Json<HeartbeatTask>) -> ApiResult<Answer<TaskBeat>> {
    let progress = request.progress.as_deref().map(|progress| serde_json::from_str(progress.get())).transpose();
    let progress: Option<serde_json::Value> = progress.map_err(|error| ApiError::unfit(error.to_string()))?;
    let beat = caller.engine.heartbeat_task(&request.token, progress.as_ref()).await?;
    let now = convert::at(caller.engine.now());
    Ok(Answer(TaskBeat { until: convert::at(beat.until), now, cancelled: beat.cancelled }))
}

/// The attempt succeeded. Said again it is answered as before. `task_lost` says that the attempt was over: then there is nothing
/// more to do.
#[utoipa::path(post, path = "/api/v1/work/complete", request_body = CompleteTask, responses((status = 200, body = Done)))]
pub(super) async fn complete(caller: Caller, Json(request): Json<CompleteTask>) -> ApiResult<Answer<Done>> {
    let result = request.result.as_deref().map_or_else(dto::null, compact);
    caller.engine.complete_task(&request.token, &result).await?;
    Ok(Answer(Done {}))
}

/// The attempt failed. Says when the task is tried again, if it is. Said again it is answered as before, until the next attempt
/// begins.
#[utoipa::path(post, path = "/api/v1/work/fail", request_body = FailTask, responses((status = 200, body = TaskFailed)))]
pub(super) async fn fail(caller: Caller, Json(request): Json<FailTask>) -> ApiResult<Answer<TaskFailed>> {
    let again = caller.engine.fail_task(&request.token, convert::failure_of(request.error)?).await?;
    Ok(Answer(TaskFailed { again_at: convert::maybe_at(again) }))
}

/// The attempt was not made: others may have the task at once, and it does not count.
#[utoipa::path(post, path = "/api/v1/work/give-back", request_body = TaskToken, responses((status = 200, body = Done)))]
pub(super) async fn give_back(caller: Caller, Json(request): Json<TaskToken>) -> ApiResult<Answer<Done>> {
    caller.engine.give_back_task(&request.token).await?;
    Ok(Answer(Done {}))
}
