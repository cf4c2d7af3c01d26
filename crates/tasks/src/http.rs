//! `http.request`: a request to somewhere else, and to nowhere it must not reach.
//!
//! A name is resolved once for each hop, the addresses are checked, and the connection is made to one of those that passed:
//! what the name stands for a moment later does not matter. Redirects are followed here, and not by the client, because each
//! is a new place to check.

mod address;
mod options;
mod request;
mod response;
mod tls;

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;

use outlast::{Error, Failure, Handler, Result, TaskContext};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};

use crate::code;
pub use address::InvalidAllow;
pub use options::HttpOptions;
use request::{Args, Call};
use response::{Answer, read};
use tls::Tls;

/// How many redirects are followed.
const REDIRECTS_MAX: usize = 5;

/// The task's handler.
pub(crate) fn handler(options: HttpOptions) -> Handler {
    let requester = Arc::new(Requester { tls: Tls::new(options.roots.clone()), options });
    Handler::new("http.request", move |context: TaskContext, args: Args| {
        let requester = Arc::clone(&requester);
        async move { requester.request(&context, args).await }
    })
}

struct Requester {
    options: HttpOptions,
    tls: Tls,
}

impl Requester {
    async fn request(&self, context: &TaskContext, args: Args) -> Result<Answer> {
        let timeout = args.timeout.unwrap_or(self.options.timeout);
        let retry_on = args.retry_on.clone();
        let call = Call::new(args, context)?;
        let told = told(&call.url);
        let answered = tokio::time::timeout(timeout, self.follow(call)).await;
        let late = || Failure::timeout(format!("{told} did not answer within {timeout:?}"));
        let answer = answered.map_err(|_| late())??;
        answer.judge(&told, &retry_on)
    }

    /// Sends the request, and sends it on as often as it is told to.
    async fn follow(&self, mut call: Call) -> Result<Answer> {
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(&call).await?;
            match location(&response, &call.url)? {
                Some(next) => call = call.redirected(response.status(), next)?,
                None => return read(response, self.options.response_limit).await,
            }
        }
        let message = format!("{} was redirected more than {REDIRECTS_MAX} times", told(&call.url));
        Err(Error::new(code::HTTP_REDIRECT, message).permanent())
    }

    /// One hop.
    async fn send(&self, call: &Call) -> Result<reqwest::Response> {
        let checked = self.options.addresses(&call.url).await?;
        let client = self.client(&call.url, checked.clone())?;
        let mut request = client.request(call.method.clone(), call.url.clone()).headers(call.headers.clone());
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| unreachable(&call.url, error))?;
        // The client was given no other: this is to notice if that ever changes.
        let reached = response.remote_addr().map(|address| address.ip());
        if reached.is_some_and(|reached| checked.iter().all(|address| address.ip() != reached)) {
            let message = format!("{} was reached at an address that was not checked", told(&call.url));
            return Err(Error::new(code::ADDRESS_REFUSED, message).permanent());
        }
        tracing::debug!(method = %call.method, url = told(&call.url), status = response.status().as_u16(), "an HTTP request");
        Ok(response)
    }

    /// A client that knows these addresses and no others, follows nothing, and keeps nothing.
    fn client(&self, url: &Url, checked: Vec<SocketAddr>) -> Result<Client> {
        let client = Client::builder()
            .tls_backend_preconfigured(self.tls.config(url.scheme() == "https")?)
            .dns_resolver(Checked(checked))
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .pool_max_idle_per_host(0)
            .user_agent(concat!("outlast/", env!("CARGO_PKG_VERSION")));
        Ok(client.build()?)
    }
}

/// Resolves every name to addresses that were checked before.
struct Checked(Vec<SocketAddr>);

impl Resolve for Checked {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(async { Ok(addresses) })
    }
}

/// Where a response sends the request on to.
fn location(response: &reqwest::Response, url: &Url) -> Result<Option<Url>> {
    use StatusCode as S;
    let redirects = [S::MOVED_PERMANENTLY, S::FOUND, S::SEE_OTHER, S::TEMPORARY_REDIRECT, S::PERMANENT_REDIRECT];
    let Some(location) = response.headers().get(reqwest::header::LOCATION) else { return Ok(None) };
    if !redirects.contains(&response.status()) {
        return Ok(None);
    }
    let next = location.to_str().ok().and_then(|location| url.join(location).ok());
    next.map(Some).ok_or_else(|| {
        let message = format!("{} was redirected to something that is no URL", told(url));
        Error::new(code::HTTP_REDIRECT, message).permanent()
    })
}

/// No answer: it may be there later.
fn unreachable(url: &Url, error: reqwest::Error) -> Error {
    let error = error.without_url();
    let mut message = format!("{} cannot be reached: {error}", told(url));
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Error::new(code::HTTP_UNREACHABLE, message)
}

/// A URL as it is told of: without what may be secret.
fn told(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
