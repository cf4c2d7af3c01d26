//! Logging in and out: the web page shows a token once, and from then on its browser has a cookie that proves it.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};

use crate::app::App;
use crate::auth::session::{self, Sessions};
use crate::auth::{Caller, Scope, Shown, whose};
use crate::body::Json;
use crate::dto::{Done, SessionRequest, WhoAmI};
use crate::error::{ApiError, ApiResult};

/// Begins a session: the answer sets a cookie that may do what the token may, for a week at most, and no longer than there is
/// such a token. Only for pages of this server: what a cookie asks to change must come from one.
#[utoipa::path(
    post,
    path = "/api/v1/session",
    request_body = SessionRequest,
    responses((status = 200, body = WhoAmI))
)]
pub(super) async fn begin(
    State(app): State<App>,
    headers: HeaderMap,
    Json(request): Json<SessionRequest>,
) -> ApiResult<Response> {
    if headers.contains_key(header::ORIGIN) && !session::from_own_page(&headers) {
        return Err(session_is_foreign());
    }
    let Some((caller, known)) = whose(&app, Shown::Token(request.token.trim()), Scope::Read).await? else {
        let hint = "use the page as it is";
        return Err(ApiError::new(StatusCode::CONFLICT, "no_session", "this server asks nobody for a token", hint));
    };
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let secure = app.is_encrypted() || origin.is_some_and(|origin| origin.starts_with("https://"));
    let cookie = Sessions::of(app.engine()).begin(&known, app.engine().now(), secure).ok_or_else(ApiError::internal)?;
    noted(&app, &caller, "POST /api/v1/session").await?;
    // Only one is to be left: whoever put the other one there must not be taken for them later.
    let cookies = [cookie, session::end_of(!secure)].map(|cookie| (header::SET_COOKIE, cookie));
    let me = WhoAmI { session: true, ..super::health::about(&caller) };
    Ok((AppendHeaders(cookies), Answer(me)).into_response())
}

/// Ends a session: the answer takes the cookie back. What the token itself may do is not touched.
#[utoipa::path(delete, path = "/api/v1/session", responses((status = 200, body = Done)))]
pub(super) async fn end(State(app): State<App>, headers: HeaderMap) -> ApiResult<Response> {
    if let Some(shown) = session::shown(&headers, app.is_encrypted()) {
        if !session::from_own_page(&headers) {
            return Err(session_is_foreign());
        }
        // A session whose token is gone is ended all the same, and there is nobody to write down.
        if let Ok(Some((caller, _))) = whose(&app, Shown::Session(shown), Scope::Read).await {
            noted(&app, &caller, "DELETE /api/v1/session").await?;
        }
    }
    let ended = [false, true].map(|secure| (header::SET_COOKIE, session::end_of(secure)));
    Ok((AppendHeaders(ended), Answer(Done {})).into_response())
}

fn session_is_foreign() -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "foreign_origin",
        "sessions begin and end only on pages of this server",
        "open the server's own page; a proxy before it must pass the header `Host` on",
    )
}

async fn noted(app: &App, caller: &Caller, action: &str) -> ApiResult<()> {
    let act = caller.act(action.to_owned(), "/api/v1/session".to_owned());
    app.audit(act, None, StatusCode::OK).await.map_err(|_| ApiError::internal())
}
