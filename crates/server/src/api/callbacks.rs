//! Answers of those who hold a callback's token. The token is their credential: it was made by the database's secret for one
//! operation of one run of one namespace, so that naming another one in the path leads nowhere.

use axum::Json as Answer;
use axum::extract::State;
use outlast::RunHandle;
use serde::Deserialize;

use super::convert;
use crate::app::App;
use crate::body::{IdempotencyKey, Json, Path};
use crate::dto::{Delivered, Done, FailCallback, ResolveCallback};
use crate::error::{ApiError, ApiResult};

#[derive(Deserialize)]
pub(super) struct Which {
    namespace: String,
    run: String,
    callback: String,
    token: String,
}

impl Which {
    /// Whatever is wrong with it, the answer is the same: nobody learns which runs there are.
    async fn handle(&self, app: &App) -> ApiResult<RunHandle> {
        let is_token = self.token.len() == 64 && self.token.bytes().all(|byte| byte.is_ascii_hexdigit());
        let known = is_token && app.engine().has_namespace(&self.namespace).await?;
        if !known {
            return Err(unknown());
        }
        app.engine_of(&self.namespace).await?.run(&self.run).map_err(|_| unknown())
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("there is no such callback, or this is not its token")
}

/// Refusals that would tell a stranger something.
fn told(error: outlast::EngineError) -> ApiError {
    let error = ApiError::from(error);
    match error.status().as_u16() {
        404 | 410 | 422 => unknown(),
        _ => error,
    }
}

/// Answers a callback, once. Whoever comes second is told that it was lost.
#[utoipa::path(
    post,
    path = "/callbacks/{namespace}/{run}/{callback}/{token}/resolve",
    request_body = Option<ResolveCallback>,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn resolve(
    State(app): State<App>,
    Path(which): Path<Which>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<ResolveCallback>,
) -> ApiResult<Answer<Delivered>> {
    let run = which.handle(&app).await?;
    let tell = run.resolve_callback(&which.callback, &which.token, &convert::value(request.value.as_ref()));
    let tell = if let Some(key) = &key { tell.id(key) } else { tell };
    Ok(Answer(convert::delivered(tell.await.map_err(told)?)))
}

/// Answers a callback with an error: the workflow's await fails with it.
#[utoipa::path(
    post,
    path = "/callbacks/{namespace}/{run}/{callback}/{token}/fail",
    request_body = FailCallback,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn fail(
    State(app): State<App>,
    Path(which): Path<Which>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<FailCallback>,
) -> ApiResult<Answer<Delivered>> {
    let run = which.handle(&app).await?;
    let tell = run.fail_callback(&which.callback, &which.token, convert::failure_of(request.error)?);
    let tell = if let Some(key) = &key { tell.id(key) } else { tell };
    Ok(Answer(convert::delivered(tell.await.map_err(told)?)))
}

/// A sign of life for a callback that asks for them.
#[utoipa::path(
    post,
    path = "/callbacks/{namespace}/{run}/{callback}/{token}/heartbeat",
    responses((status = 200, body = Delivered))
)]
pub(super) async fn heartbeat(
    State(app): State<App>,
    Path(which): Path<Which>,
    Json(Done {}): Json<Done>,
) -> ApiResult<Answer<Delivered>> {
    let run = which.handle(&app).await?;
    let delivered = run.heartbeat_callback(&which.callback, &which.token).await.map_err(told)?;
    Ok(Answer(convert::delivered(delivered)))
}
