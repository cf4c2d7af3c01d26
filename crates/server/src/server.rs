//! The server: how it is built, bound and drained.

mod connections;
mod metrics;
mod tls;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use outlast::Engine;
use thiserror::Error;
use tokio::net::{TcpListener, ToSocketAddrs};
use utoipa::OpenApi;

use crate::api;
use crate::app::App;
use crate::audit::Audit;
use crate::auth::Access;
use crate::error::ApiError;
use crate::hooks::Hooks;
use crate::mistakes::Mistakes;
use crate::page;

pub use tls::Tls;

/// What can be said about a server.
#[derive(Clone)]
pub struct Options {
    /// Who may use it; whoever reaches it if nobody says otherwise, and then only on a loopback address.
    pub access: Access,
    /// The webhooks it has.
    pub hooks: Hooks,
    /// Where to write who did what; nowhere if there is no path.
    pub audit: Option<PathBuf>,
    /// What it shows who asks over TLS; without it nothing is encrypted.
    pub tls: Option<Tls>,
    /// How long requests may take to end when the server is stopped.
    pub drain: Duration,
    /// How many connections it has at once, at most.
    pub connections_max: usize,
    /// Whether this process keeps metrics, for `/metrics`.
    pub metrics: bool,
    /// Whether it answers questions in SQL of admins of the engine's own namespace. They see every namespace.
    pub sql: bool,
    /// How many requests a second it takes from a namespace; as many as come if nobody says otherwise.
    pub requests_per_second: Option<NonZeroU32>,
    /// What is wrong with the files it follows, if it follows any.
    pub mistakes: Mistakes,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            access: Access::Open,
            hooks: Hooks::default(),
            audit: None,
            tls: None,
            drain: Duration::from_secs(10),
            connections_max: 4_096,
            metrics: true,
            sql: false,
            requests_per_second: None,
            mistakes: Mistakes::default(),
        }
    }
}

/// Why a server cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Whoever reaches the address could do anything.
    #[error(
        "{0} can be reached from other machines, and this server has no tokens; bind a loopback address, or add tokens"
    )]
    Unprotected(SocketAddr),
    /// The address cannot be bound.
    #[error("{0} cannot be bound: {1}")]
    Bind(String, #[source] io::Error),
    /// The audit log cannot be written.
    #[error("the audit log {0} cannot be opened: {1}")]
    Audit(PathBuf, #[source] io::Error),
}

/// An engine that is about to be served.
pub struct Server {
    engine: Engine,
    options: Options,
}

impl Server {
    /// Serves an engine. The engine stays the caller's: shut it down after the server.
    pub fn new(engine: Engine, options: Options) -> Server {
        Server { engine, options }
    }

    /// Takes an address. Requests are answered once [`Bound::run`] is awaited.
    pub async fn bind(self, address: impl ToSocketAddrs + std::fmt::Debug) -> Result<Bound, ServerError> {
        let failed = |error| ServerError::Bind(format!("{address:?}"), error);
        // Looked at before anything listens: not even for a moment may a stranger be let in.
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(&address).await.map_err(failed)?.collect();
        let open = self.options.access.is_for_this_machine();
        if let Some(public) = addresses.iter().find(|address| open && !address.ip().is_loopback()) {
            return Err(ServerError::Unprotected(*public));
        }
        let audit = match &self.options.audit {
            Some(path) => Some(Audit::open(path).map_err(|error| ServerError::Audit(path.clone(), error))?),
            None => None,
        };
        let listener = TcpListener::bind(&*addresses).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let metrics = self.options.metrics.then(metrics::handle).flatten();
        let app = App::new(self.engine, &self.options, audit, metrics);
        Ok(Bound { listener, address, router: router(&app), app, options: self.options })
    }
}

fn router(app: &App) -> Router {
    let (router, _) = api::table().build(api::Document::openapi(), Some(app));
    router
        .fallback(page::fallback)
        .method_not_allowed_fallback(|| async {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this path does not know that method",
                "see `openapi.json` for what it knows",
            )
        })
        .layer(from_fn(careful))
        .with_state(app.clone())
}

/// A handler that panics is one answer that failed. No answer is kept by anybody on the way, or guessed to be something else.
async fn careful(request: Request, next: Next) -> Response {
    let sends_much = sends_much(request.headers());
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| {
        tracing::error!("a handler panicked");
        ApiError::internal().into_response()
    });
    let refused = !response.status().is_success();
    let headers = response.headers_mut();
    if refused && sends_much {
        // Nobody may have read what was sent; what is left of it must not be taken for the next request's.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether a request has more of a body than arrives with its head, as far as it says.
fn sends_much(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length > 8 * 1024)
}

/// A server that has an address.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    app: App,
    options: Options,
}

impl Bound {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `shutdown` completes. Then nothing new is taken, whoever waits is answered at once, and what is
    /// being done may end for a while ([`Options::drain`]).
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Bound { listener, router, app, options, .. } = self;
        connections::serve(listener, router, app, &options, shutdown).await;
    }
}
