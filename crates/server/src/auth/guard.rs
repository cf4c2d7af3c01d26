//! What stands before every route that needs somebody.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use outlast::Engine;

use super::door::Kept;
use super::session::{self, Sessions};
use super::{Known, Scope};
use crate::app::App;
use crate::audit::{Act, Made};
use crate::body::IdempotencyKey;
use crate::error::{ApiError, ApiResult};

/// What a route needs. Every entry of the table says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A token with this scope.
    Scope(Scope),
    /// Nothing: it says nothing about runs, or the request carries a secret of its own.
    Nothing,
}

impl Needs {
    pub(crate) fn scope(self) -> Option<Scope> {
        match self {
            Needs::Scope(scope) => Some(scope),
            Needs::Nothing => None,
        }
    }
}

/// Who asks, and the engine as they may see it. A handler gets to runs in no other way.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) engine: Engine,
    pub(crate) name: Arc<str>,
    pub(crate) scopes: Arc<[Scope]>,
    /// Whether a cookie says who it is, and not a header.
    pub(crate) has_session: bool,
    /// The id of their token, which is no secret; none if this server asks for none.
    pub(crate) token: Option<Arc<str>>,
    /// What they showed, to be looked at again while they listen.
    pub(super) shown: Option<Arc<Kept>>,
}

impl Caller {
    /// Refuses who may see only a namespace of others, for what is about all of them.
    pub(crate) fn is_of_the_house(&self, app: &App, why: &str) -> ApiResult<()> {
        let own = app.engine().namespace();
        if self.engine.namespace() == own {
            return Ok(());
        }
        let message = format!("{why} {own:?} may ask");
        Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message, "use a token of that namespace"))
    }

    /// Something they do, as it is written down.
    pub(crate) fn act(&self, action: String, target: String) -> Act {
        Act {
            who: Arc::clone(&self.name),
            token: self.token.clone(),
            namespace: self.engine.namespace().clone(),
            action,
            target,
        }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> ApiResult<Self> {
        // Only the guard puts it there.
        parts.extensions.get::<Caller>().cloned().ok_or_else(ApiError::internal)
    }
}

/// Lets those through who may.
pub(crate) async fn guard(State((app, scope)): State<(App, Scope)>, mut request: Request, next: Next) -> Response {
    let caller = match admit(&app, scope, request.method(), request.headers()).await {
        Ok(caller) => caller,
        Err(refused) => return refused.into_response(),
    };
    if let Err(refused) = app.count(caller.engine.namespace()) {
        return refused.into_response();
    }
    let reads = reads(request.method());
    if let (false, Err(refused)) = (reads, IdempotencyKey::read(request.headers())) {
        return refused.into_response();
    }
    let act = (!reads)
        .then(|| caller.act(format!("{} {}", request.method(), matched(&request)), request.uri().path().to_owned()));
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    let Some(act) = act else { return response };
    let made = response.extensions().get::<Made>().cloned();
    match app.audit(act, made, response.status()).await {
        Ok(()) => response,
        Err(_) => ApiError::internal().into_response(),
    }
}

fn matched(request: &Request) -> &str {
    request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str)
}

async fn admit(app: &App, scope: Scope, method: &Method, headers: &HeaderMap) -> ApiResult<Caller> {
    // Whoever shows a token is who that says, whatever cookies their browser has.
    let (shown, has_session) = match headers.contains_key(header::AUTHORIZATION) {
        true => (bearer(headers).map(Shown::Token), false),
        false => (session::shown(headers, app.is_encrypted()).map(Shown::Session), true),
    };
    if app.access().needed().is_none() {
        from_here(headers)?;
        let (name, scopes) = ("local".into(), Arc::from(Scope::ALL));
        let engine = app.engine().clone();
        return Ok(Caller { engine, name, scopes, has_session: false, token: None, shown: None });
    }
    let found = whose(app, shown.ok_or_else(unknown)?, scope).await?;
    let (caller, _) = found.ok_or_else(unknown)?;
    // A browser sends its cookies whoever has it ask: what changes something must come from our own page.
    if has_session && !reads(method) && !session::from_own_page(headers) {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "foreign_origin",
            "a session changes nothing for pages of other origins",
            "open the server's own page; a proxy before it must pass the header `Host` on; programs show a token",
        ));
    }
    Ok(Caller { has_session, ..caller })
}

/// What somebody shows to say who they are. Neither is taken for the other.
#[derive(Clone, Copy)]
pub(crate) enum Shown<'a> {
    /// A token, in a header or to begin a session.
    Token(&'a str),
    /// A session, in a cookie.
    Session(&'a str),
}

/// Who shows this, for what needs this scope, and what is known of their token; nobody if this server asks for none.
pub(crate) async fn whose(app: &App, shown: Shown<'_>, scope: Scope) -> ApiResult<Option<(Caller, Arc<Known>)>> {
    let Some(tokens) = app.access().needed() else { return Ok(None) };
    let now = app.engine().now();
    let found = match shown {
        Shown::Token(text) => tokens.find(text, now),
        Shown::Session(text) => Sessions::of(app.engine()).find(tokens, text, now),
    };
    let known = found.ok_or_else(unknown)?;
    let token = &known.token;
    if !token.scopes.iter().any(|own| own.covers(scope)) {
        let message = format!("the token {:?} has no scope `{scope}`", token.name);
        let hint = format!("use a token with the scope `{scope}` or `admin`");
        return Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message, hint));
    }
    let engine = app.engine_of(&token.namespace).await?;
    let (name, scopes) = (token.name.as_str().into(), token.scopes.as_slice().into());
    let (token, shown) = (Some(token.id.as_str().into()), Some(Arc::new(Kept::from(shown))));
    Ok(Some((Caller { engine, name, scopes, has_session: false, token, shown }, known)))
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub(super) fn unknown() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        "unauthenticated",
        "no valid token was shown",
        "send `Authorization: Bearer …` with a token that has not expired",
    )
}

/// Without tokens a web page could have its visitor's browser talk to us: by a name that leads here (then the host is not
/// ours), or from a foreign origin.
fn from_here(headers: &HeaderMap) -> ApiResult<()> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let own = !headers.contains_key(header::ORIGIN) || session::from_own_page(headers);
    if own && is_loopback(host) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        "a server without tokens answers only to this machine",
        "ask it by a loopback address, or give it tokens",
    ))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_let_in_without_a_token() {
        let asks = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            origin.map(|origin| headers.insert(header::ORIGIN, origin.parse().unwrap()));
            from_here(&headers).is_ok()
        };
        for host in ["127.0.0.1:7117", "localhost:7117", "[::1]:7117", "127.0.0.1", "LOCALHOST"] {
            assert!(asks(host, None), "{host}");
            assert!(asks(host, Some(&format!("http://{host}"))), "{host}");
            assert!(asks(host, Some(&format!("https://{host}"))), "{host}");
            assert!(!asks(host, Some("http://evil.example")), "{host}");
        }
        for host in ["evil.example:7117", "127.0.0.1.evil.example", "10.0.0.1:7117", "", "localhost.evil.example"] {
            assert!(!asks(host, None), "{host}");
        }
    }
}
