//! How `http.request` behaves, and the addresses it may reach.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast::{Error, Result};
use reqwest::Url;

use super::address::{Allow, InvalidAllow, is_public};
use super::told;
use crate::code;

type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
type Resolver = dyn Fn(String) -> Resolving + Send + Sync;

/// How `http.request` behaves. By default it reaches the public internet and nothing else.
#[derive(Clone)]
pub struct HttpOptions {
    allow: Vec<Allow>,
    pub(super) timeout: Duration,
    pub(super) response_limit: usize,
    pub(super) roots: Option<Vec<u8>>,
    resolver: Arc<Resolver>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            allow: Vec::new(),
            timeout: Duration::from_secs(30),
            response_limit: 1024 * 1024,
            roots: None,
            resolver: Arc::new(|name| Box::pin(ask_the_system(name))),
        }
    }
}

impl HttpOptions {
    /// Lets requests reach what is not of the public internet: a host by its name (wherever the name leads), an address, or a
    /// block of addresses such as `10.1.0.0/16`.
    pub fn allow(mut self, what: &str) -> Result<HttpOptions, InvalidAllow> {
        self.allow.push(Allow::parse(what)?);
        Ok(self)
    }

    /// How long a request may take in all, redirects included, if it does not say so itself; 30 seconds otherwise.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> HttpOptions {
        self.timeout = timeout;
        self
    }

    /// How many bytes the body of a response may have; 1 MiB otherwise.
    #[must_use]
    pub fn response_limit(mut self, bytes: usize) -> HttpOptions {
        self.response_limit = bytes;
        self
    }

    /// The certificates, in PEM, of the authorities to trust instead of the system's.
    #[must_use]
    pub fn roots(mut self, pem: impl Into<Vec<u8>>) -> HttpOptions {
        self.roots = Some(pem.into());
        self
    }

    /// Finds the addresses of a host; the system does otherwise. What it finds is checked all the same.
    #[must_use]
    pub fn resolver<F, Fut>(mut self, resolver: F) -> HttpOptions
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        self.resolver = Arc::new(move |name| Box::pin(resolver(name)));
        self
    }

    /// The addresses of a URL that may be reached; an error if there are none.
    pub(super) async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>> {
        let port = url.port_or_known_default().unwrap_or_default();
        let host = url.host_str().unwrap_or_default();
        // The URL's parser has made an address of everything that systems take for one: 2130706433, 0x7f.1, 0177.0.0.1.
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let found = match literal {
            Some(address) => vec![address],
            None => (self.resolver)(host.to_owned()).await.map_err(|error| {
                Error::new(code::HTTP_UNREACHABLE, format!("the address of {} cannot be found: {error}", told(url)))
            })?,
        };
        if found.is_empty() {
            return Err(Error::new(code::HTTP_UNREACHABLE, format!("{} has no address", told(url))));
        }
        let passed = found.iter().filter(|address| self.may_reach(host, **address));
        let passed: Vec<SocketAddr> = passed.map(|address| SocketAddr::new(*address, port)).collect();
        if passed.is_empty() {
            let message = format!(
                "{} leads to {}, which is not an address of the public internet; if tasks may reach it, allow it in the \
                 worker's options",
                told(url),
                found[0]
            );
            return Err(Error::new(code::ADDRESS_REFUSED, message).permanent());
        }
        Ok(passed)
    }

    fn may_reach(&self, host: &str, address: IpAddr) -> bool {
        is_public(address) || self.allow.iter().any(|allow| allow.covers_host(host) || allow.covers(address))
    }
}

async fn ask_the_system(name: String) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name, 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("allow", &self.allow)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
