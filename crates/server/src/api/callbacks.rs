//! Answers of those who hold a callback's token. The token is their credential: it was made by the database's secret for one
//! operation of one run of one namespace, so that naming another one in the path leads nowhere.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use outlast::{Delivered as Told, EngineError, RunHandle};
use serde::Deserialize;

use super::convert;
use crate::app::App;
use crate::audit::Act;
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
        let known = app.engine().has_namespace(&self.namespace).await?;
        if !known {
            return Err(unknown());
        }
        let run = app.engine_of(&self.namespace).await?.run(&self.run).map_err(|_| unknown())?;
        // Before the run is told anything: what became of it is nobody's business who does not hold the token.
        if run.is_token_of(&self.callback, &self.token).await.map_err(told)? { Ok(run) } else { Err(unknown()) }
    }

    /// Writes down what came of an answer, for whoever held the callback's token. Of strangers nothing is written: anybody can
    /// be one, as often as they like.
    async fn noted(
        &self,
        app: &App,
        run: &RunHandle,
        what: &str,
        said: Result<Told, EngineError>,
    ) -> ApiResult<Answer<Delivered>> {
        let answer = said.map(convert::delivered).map_err(told);
        let status = answer.as_ref().map_or_else(ApiError::status, |_| StatusCode::OK);
        let Which { namespace, run: id, callback, .. } = self;
        let act = Act {
            who: "callback".into(),
            token: None,
            namespace: run.key().namespace.clone(),
            action: format!("POST /callbacks/{{namespace}}/{{run}}/{{callback}}/{{token}}/{what}"),
            // Its token is a secret.
            target: format!("/callbacks/{namespace}/{id}/{callback}"),
        };
        app.audit(act, None, status).await.map_err(|_| ApiError::internal())?;
        answer.map(Answer)
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("there is no such callback, or this is not its token")
}

/// Refusals that would tell a stranger something.
fn told(error: EngineError) -> ApiError {
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
    which.noted(&app, &run, "resolve", tell.await).await
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
    which.noted(&app, &run, "fail", tell.await).await
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
    let told = run.heartbeat_callback(&which.callback, &which.token).await;
    which.noted(&app, &run, "heartbeat", told).await
}
