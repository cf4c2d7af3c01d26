//! Outlast over HTTP: the API under `/api/v1`, server-sent events, webhooks, remote workers, health and metrics.
//!
//! [`Server`] puts an [`outlast::Engine`] behind a listener. [`dto`] is what goes over the wire, for clients too.
//!
//! ```
//! use outlast::Outlast;
//! use outlast_server::{Options, Server};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Outlast::memory().start().await?;
//! let server = Server::new(engine.clone(), Options::default()).bind("127.0.0.1:0").await?;
//! println!("listening on http://{}", server.address());
//! let shutdown = async {}; // a signal, usually
//! server.run(shutdown).await;
//! engine.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod api;
mod app;
mod audit;
mod auth;
mod body;
mod bulk;
mod config;
mod document;
pub mod dto;
mod error;
mod hooks;
mod instant;
mod mistakes;
mod page;
mod rates;
mod replies;
mod server;
mod table;

pub use audit::verify_audit;
pub use auth::{Access, NewToken, Scope, Token, TokenError, Tokens};
pub use config::{ConfigError, ServerConfig};
pub use error::ApiError;
pub use hooks::{Hook, HookAction, HookError, HookSecret, Hooks};
pub use mistakes::Mistakes;
pub use server::{Bound, Options, Server, ServerError, Tls};
pub use table::Route;

use utoipa::OpenApi;

/// The code in the guide compiles. Only here: a package has no guides.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/api.md")]
struct Guide;

/// The OpenAPI document, as it is committed in `openapi.json`.
pub fn openapi() -> String {
    let (_, document) = api::table().build(api::Document::openapi(), None);
    let mut document = serde_json::to_value(&document).unwrap_or_default();
    document::tighten(&mut document);
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Every route, and what it needs.
pub fn routes() -> Vec<Route> {
    api::table().routes()
}
