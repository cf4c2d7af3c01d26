//! Tasks.

use axum::Extension;
use axum::Json as Answer;
use axum::http::StatusCode;
use outlast::{Retry, TaskId, TaskState};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use super::convert;
use super::runs::page_size;
use crate::audit::Made;
use crate::auth::{Caller, hex};
use crate::body::{IdempotencyKey, Json, Path, Query};
use crate::dto::{self, Done, EnqueueTask, Enqueued, RetryPolicy, TaskDetail, TaskList};
use crate::error::{ApiError, ApiResult};

/// Which tasks.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Those that stand here: `ready`, `claimed`, `delayed` or `dead`; several with commas between them.
    state: Option<String>,
    /// Those of this queue.
    queue: Option<String>,
    /// Those for this handler.
    name: Option<String>,
    /// Those that this run queued.
    run: Option<String>,
    /// At most so many on a page: from 1 to 1000, 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// Finds tasks that are queued, running, or failed for good, by id.
#[utoipa::path(get, path = "/api/v1/tasks", params(Which), responses((status = 200, body = TaskList)))]
pub(super) async fn list(caller: Caller, Query(which): Query<Which>) -> ApiResult<Answer<TaskList>> {
    let mut tasks = caller.engine.tasks().page_size(page_size(which.limit)?);
    for state in which.state.iter().flat_map(|all| all.split(',')) {
        let found = TaskState::ALL.into_iter().find(|known| known.name() == state);
        tasks = tasks.state(found.ok_or_else(|| ApiError::unfit(format!("no task is {state:?}")))?);
    }
    if let Some(queue) = &which.queue {
        tasks = tasks.queue(queue);
    }
    if let Some(name) = &which.name {
        tasks = tasks.name(name);
    }
    if let Some(run) = &which.run {
        tasks = tasks.run(run);
    }
    let after = which.cursor.map(TaskId::new).transpose();
    let after = after.map_err(|_| ApiError::unfit("the cursor is none that a page ended with"))?;
    let page = tasks.after(after).await?;
    let next = page.next.as_ref().map(ToString::to_string);
    Ok(Answer(TaskList { tasks: page.tasks.iter().map(convert::task).collect(), next }))
}

/// Queues a task that no run waits for.
#[utoipa::path(post, path = "/api/v1/tasks", request_body = EnqueueTask, responses((status = 201, body = Enqueued)))]
pub(super) async fn enqueue(
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<EnqueueTask>,
) -> ApiResult<(StatusCode, Extension<Made>, Answer<Enqueued>)> {
    let mut task = caller.engine.enqueue(&request.name, &convert::value(request.args.as_ref()));
    // The same key means the same task, and a task is named by its id.
    let named = key.map(|key| format!("task-{}", &hex(&Sha256::digest(key.as_bytes()))[..32]));
    if let Some(id) = request.id.or(named) {
        task = task.id(id);
    }
    if let Some(queue) = &request.queue {
        task = task.queue(queue);
    }
    if let Some(priority) = request.priority {
        task = task.priority(priority);
    }
    if let Some(policy) = &request.retry {
        task = task.retry(retry_of(policy)?);
    }
    if let Some(timeout) = request.timeout_ms {
        task = task.timeout(convert::duration("`timeout_ms`", timeout)?);
    }
    if let Some(silence) = request.heartbeat_ms {
        task = task.heartbeat(convert::duration("`heartbeat_ms`", silence)?);
    }
    if let Some(delay) = request.delay_ms {
        task = task.delay(convert::duration("`delay_ms`", delay)?);
    }
    let task = task.await?.to_string();
    Ok((StatusCode::CREATED, Extension(Made(task.clone())), Answer(Enqueued { task })))
}

fn retry_of(policy: &RetryPolicy) -> ApiResult<Retry> {
    if policy.attempts == 0 {
        return Err(ApiError::unfit("`attempts` must be at least 1"));
    }
    let mut retry = Retry::attempts(policy.attempts);
    if let Some(initial) = policy.initial_ms {
        retry = retry.initial(convert::duration("`initial_ms`", initial)?);
    }
    if let Some(cap) = policy.cap_ms {
        retry = retry.cap(convert::duration("`cap_ms`", cap)?);
    }
    Ok(retry)
}

/// One task, with what its handler gets and the last error.
#[utoipa::path(get, path = "/api/v1/tasks/{task}", responses((status = 200, body = TaskDetail)))]
pub(super) async fn get(caller: Caller, Path(task): Path<String>) -> ApiResult<Answer<TaskDetail>> {
    let detail = caller.engine.task(&task).await?;
    Ok(Answer(TaskDetail { task: convert::task(&detail.view), args: dto::json(&detail.args) }))
}

/// Queues a task anew that failed for good, with all its attempts.
#[utoipa::path(post, path = "/api/v1/tasks/{task}/retry", responses((status = 200, body = Done)))]
pub(super) async fn retry(
    caller: Caller,
    Path(task): Path<String>,
    Json(Done {}): Json<Done>,
) -> ApiResult<Answer<Done>> {
    caller.engine.retry_task(&task).await?;
    Ok(Answer(Done {}))
}

/// Removes a task that failed for good.
#[utoipa::path(delete, path = "/api/v1/tasks/{task}", responses((status = 200, body = Done)))]
pub(super) async fn discard(caller: Caller, Path(task): Path<String>) -> ApiResult<Answer<Done>> {
    caller.engine.discard_task(&task).await?;
    Ok(Answer(Done {}))
}
