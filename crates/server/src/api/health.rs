//! Whether the server is well, and who asks.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use crate::app::App;
use crate::auth::Caller;
use crate::body::Json;
use crate::dto::{DoctorFinding, DoctorReport, DoctorRequest, Health, Ready, WhoAmI};
use crate::error::{ApiError, ApiResult};

/// How long the store may take to answer before the server is not ready.
const STORE_TIME_MAX: Duration = Duration::from_secs(2);

/// The web page, if it was built in; otherwise a plain one with the version, whether all is well, and where to go on.
#[utoipa::path(get, path = "/", responses((status = 200, content_type = "text/html", body = String)))]
pub(super) async fn page(State(app): State<App>, headers: HeaderMap) -> Response {
    if let Some(built_in) = crate::page::home(&headers) {
        return built_in;
    }
    let page = plain(readiness(&app).await);
    let policy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(page)).into_response()
}

/// The page of a server that has no other: which version it is, whether all is well, where to go on, and how to have the other.
fn plain(readiness: &str) -> String {
    let health = match readiness {
        "ready" => "it is ready, and its database answers",
        "draining" => "it is shutting down",
        _ => "its database does not answer",
    };
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Outlast</title>\n<h1>Outlast {}</h1>\n\
         <p>This server is up; {health}. <a href=\"/healthz\">Health</a>, <a href=\"/readyz\">readiness</a>, \
         <a href=\"/metrics\">metrics</a>.</p>\n<p>The API is under <code>/api/v1</code>; \
         <a href=\"/openapi.json\">openapi.json</a> describes it.</p>\n\
         <p>The web page is not in this binary: <code>cargo xtask web</code> builds it, and the next build of the \
         server has it.</p>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
    )
}

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> Answer<Health> {
    Answer(Health { status: "ok".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// Whether the server can work: its store answers, and it is not shutting down.
#[utoipa::path(
    get,
    path = "/readyz",
    responses((status = 200, body = Ready), (status = 503, description = "It cannot.", body = Ready))
)]
pub(super) async fn readyz(State(app): State<App>) -> (StatusCode, Answer<Ready>) {
    let status = readiness(&app).await;
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Answer(Ready { status: status.to_owned() }))
}

async fn readiness(app: &App) -> &'static str {
    if app.is_draining() {
        return "draining";
    }
    match tokio::time::timeout(STORE_TIME_MAX, app.engine().ping()).await {
        Ok(Ok(())) => "ready",
        Ok(Err(_)) | Err(_) => "unavailable",
    }
}

/// What there is and what happened, for Prometheus. It is about every namespace, so that only an admin of the server's own namespace
/// may ask.
#[utoipa::path(get, path = "/metrics", responses((status = 200, content_type = "text/plain", body = String)))]
pub(super) async fn metrics(State(app): State<App>, caller: Caller) -> ApiResult<Response> {
    let Some(handle) = app.metrics() else {
        return Err(ApiError::not_found("this server keeps no metrics"));
    };
    caller.is_of_the_house(&app, "metrics are about every namespace, and only an admin of")?;
    caller.engine.measure().await?;
    handle.run_upkeep();
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], handle.render()).into_response())
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, body = serde_json::Value)))]
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], crate::openapi()).into_response()
}

/// Whose token this is, and what it may do.
#[utoipa::path(get, path = "/api/v1/whoami", responses((status = 200, body = WhoAmI)))]
pub(super) async fn whoami(caller: Caller) -> Answer<WhoAmI> {
    Answer(about(&caller))
}

pub(super) fn about(caller: &Caller) -> WhoAmI {
    WhoAmI {
        name: caller.name.to_string(),
        namespace: caller.engine.namespace().to_string(),
        scopes: caller.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        session: caller.has_session,
    }
}

/// Looks for runs that nothing would ever move again; repairs what their journals prove, if that is asked for.
#[utoipa::path(post, path = "/api/v1/doctor", request_body = Option<DoctorRequest>, responses((status = 200, body = DoctorReport)))]
pub(super) async fn doctor(caller: Caller, Json(request): Json<DoctorRequest>) -> ApiResult<Answer<DoctorReport>> {
    let doctor = caller.engine.doctor();
    let diagnosis = if request.repair { doctor.repair().await? } else { doctor.await? };
    let findings = diagnosis.findings.iter().map(|finding| DoctorFinding {
        run: finding.run.id.to_string(),
        ailment: finding.ailment.to_string(),
        repaired: finding.repaired,
        refused: finding.refused.clone(),
    });
    Ok(Answer(DoctorReport {
        runs: diagnosis.runs as u64,
        healthy: diagnosis.is_healthy(),
        findings: findings.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_page_says_what_it_is_how_it_is_and_where_to_go_on() {
        let page = plain("ready");
        let links = ["healthz", "readyz", "metrics", "openapi.json"].map(|path| format!("<a href=\"/{path}\">"));
        for link in links {
            assert!(page.contains(&link), "{link} in {page}");
        }
        let version = format!("<h1>Outlast {}</h1>", env!("CARGO_PKG_VERSION"));
        for part in [version.as_str(), "<title>Outlast</title>", "<code>/api/v1</code>", "<code>cargo xtask web</code>"]
        {
            assert!(page.contains(part), "{part} in {page}");
        }
        for (readiness, said) in [
            ("ready", "it is ready, and its database answers"),
            ("draining", "it is shutting down"),
            ("unavailable", "its database does not answer"),
        ] {
            assert!(plain(readiness).contains(said), "{readiness}");
        }
    }
}
