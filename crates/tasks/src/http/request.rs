//! What a request consists of, checked before it goes anywhere.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast::{Error, Result, TaskContext};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::told;
use crate::{code, duration};

/// Headers that are the connection's business, or say where the request goes.
const NOT_YOURS: [&str; 9] =
    ["connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Headers that a request may keep when it is sent on to somebody else. All others may be secret.
const HARMLESS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// What the task is given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body, as JSON.
    #[serde(default)]
    json: Option<Box<RawValue>>,
    /// The body, as text.
    #[serde(default)]
    text: Option<String>,
    #[serde(default, deserialize_with = "duration::deserialize")]
    pub(super) timeout: Option<Duration>,
    /// Statuses after which to try again, besides 408, 425, 429 and those from 500.
    #[serde(default)]
    pub(super) retry_on: Vec<u16>,
}

/// A request that is ready to be sent.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
}

impl Call {
    pub(super) fn new(args: Args, context: &TaskContext) -> Result<Call> {
        let url = Url::parse(&args.url).map_err(|error| invalid(format!("its `url` is no URL: {error}")))?;
        check(&url).map_err(invalid)?;
        let method = method(args.method.as_deref().unwrap_or("GET"))?;
        let mut headers = headers(&args.headers)?;
        let (body, kind) = match (args.json, args.text) {
            (Some(_), Some(_)) => return Err(invalid("it has both `json` and `text`: give one of them".to_owned())),
            (Some(json), None) => (Some(json.get().to_owned()), "application/json"),
            (None, text) => (text, "text/plain; charset=utf-8"),
        };
        if body.is_some() {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        }
        if method == Method::POST || method == Method::PATCH {
            let name = HeaderName::from_static("idempotency-key");
            headers.entry(name).or_insert_with(|| idempotency_key(context.idempotency_key()));
        }
        Ok(Call { method, url, headers, body })
    }

    /// The request that follows when this one is answered by a redirect.
    pub(super) fn redirected(mut self, status: StatusCode, next: Url) -> Result<Call> {
        let refused = |why: String| {
            Error::new(code::HTTP_REDIRECT, format!("{} was redirected, but {why}", told(&self.url))).permanent()
        };
        check(&next).map_err(&refused)?;
        if self.url.scheme() == "https" && next.scheme() == "http" {
            return Err(refused("from https to http: what is encrypted stays so".to_owned()));
        }
        if next.origin() != self.url.origin() {
            let secret: Vec<HeaderName> =
                self.headers.keys().filter(|name| !HARMLESS.contains(&name.as_str())).cloned().collect();
            for name in secret {
                self.headers.remove(name);
            }
        }
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
            self.headers.remove("idempotency-key");
        }
        self.url = next;
        Ok(self)
    }
}

/// Whether it is a URL that a request can go to.
fn check(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("its URL begins with `{}:`; only http and https can be reached", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its URL has a user or a password in it; give them in a header, as URLs are shown".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("its URL names no host".to_owned());
    }
    Ok(())
}

fn method(name: &str) -> Result<Method> {
    let known = METHODS.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name));
    known.ok_or_else(|| {
        let names: Vec<String> = METHODS.iter().map(ToString::to_string).collect();
        invalid(format!("there is no method `{name}`; there are {}", names.join(", ")))
    })
}

fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let known =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(format!("`{name}` is no name of a header")))?;
        if NOT_YOURS.contains(&known.as_str()) || known.as_str().starts_with("proxy-") {
            return Err(invalid(format!("the header `{name}` cannot be set: the connection decides it")));
        }
        // Not told with its value, which may be secret.
        let value = HeaderValue::from_str(value)
            .map_err(|_| invalid(format!("the value of the header `{name}` has characters that no header can have")))?;
        if headers.insert(known, value).is_some() {
            return Err(invalid(format!("the header `{name}` is given twice, in different spellings")));
        }
    }
    Ok(headers)
}

/// The key of the task, of which a header can have every character.
fn idempotency_key(key: &str) -> HeaderValue {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("none"))
}

/// Trying again would not change it.
fn invalid(message: String) -> Error {
    Error::new("validation_error", format!("the request cannot be sent: {message}")).permanent()
}
