//! The web page, if it was built in: its files, and its addresses, which are all one file.

use std::io::Read as _;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;

/// A file of the page.
struct Asset {
    /// Relative to the page's root: `assets/index-1a2b3c4d.js`.
    path: &'static str,
    /// Whether the bytes are compressed, by gzip: most browsers are sent them as they are.
    is_packed: bool,
    bytes: &'static [u8],
}

static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// What the page may load: nothing inline, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Names with a hash of their content never mean anything else.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

/// Where programs ask: whoever is wrong there must not get a page.
const OF_PROGRAMS: [&str; 6] = ["api", "callbacks", "hooks", "metrics", "healthz", "readyz"];

/// The page itself, if it is here.
pub(crate) fn home(headers: &HeaderMap) -> Option<Response> {
    respond(ASSETS, "index.html", headers)
}

/// Answers what no route knows: a file of the page, or an address of it, such as `/runs/order-7`.
pub(crate) async fn fallback(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let found = find(ASSETS, &method, uri.path(), &headers).and_then(|path| respond(ASSETS, path, &headers));
    found.unwrap_or_else(|| ApiError::not_found("there is nothing at this path").into_response())
}

/// Which file answers a request; none if the page does not know it either.
fn find<'a>(assets: &[Asset], method: &Method, path: &'a str, headers: &HeaderMap) -> Option<&'a str> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let path = path.trim_start_matches('/');
    if assets.iter().any(|asset| asset.path == path) {
        return Some(path);
    }
    let first = path.split('/').next().unwrap_or_default();
    // A file that is gone is gone: an old page that asks for it must not take another page for a script.
    let is_address = first != "assets" && !OF_PROGRAMS.contains(&first);
    (is_address && accepts(headers, &header::ACCEPT, "text/html")).then_some("index.html")
}

fn respond(assets: &'static [Asset], path: &str, headers: &HeaderMap) -> Option<Response> {
    let asset = assets.iter().find(|asset| asset.path == path)?;
    let as_it_is = !asset.is_packed || accepts(headers, &header::ACCEPT_ENCODING, "gzip");
    let mut response = if as_it_is { asset.bytes.into_response() } else { unpack(asset.bytes)?.into_response() };
    let caching = if path.starts_with("assets/") { FOR_EVER } else { ASK_AGAIN };
    let said = [
        (header::CONTENT_TYPE, kind(path)),
        (header::CACHE_CONTROL, caching),
        (header::VARY, "accept-encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in said {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if asset.is_packed && as_it_is {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Some(response)
}

/// For the few who do not take it compressed.
fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).ok()?;
    Some(plain)
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// Whether a list of what somebody takes has this in it, and does not refuse it.
fn accepts(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let lists = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|entry| {
        let (kind, quality) = entry.split_once(';').unwrap_or((entry, ""));
        kind.trim().eq_ignore_ascii_case(wanted) && quality.trim() != "q=0"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "plain", compressed.
    const PACKED: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0x2b, 0xc8, 0x49, 0xcc, 0xcc, 3, 0, 0xcf, 0x62, 0x20, 0x19, 5, 0, 0, 0,
    ];

    const PAGE: &[Asset] = &[
        Asset { path: "assets/index-1a2b.js", is_packed: true, bytes: PACKED },
        Asset { path: "icon.svg", is_packed: false, bytes: b"<svg/>" },
        Asset { path: "index.html", is_packed: false, bytes: b"<!doctype html>" },
    ];

    fn asks(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn browser() -> HeaderMap {
        asks(&[(header::ACCEPT, "text/html,application/xhtml+xml;q=0.9"), (header::ACCEPT_ENCODING, "br, gzip")])
    }

    #[track_caller]
    fn check(method: Method, path: &str, headers: &HeaderMap, expected: Option<&str>) {
        assert_eq!(find(PAGE, &method, path, headers), expected, "{method} {path}");
    }

    #[test]
    fn every_address_of_the_page_is_the_page() {
        for path in ["/runs", "/runs/order.v1", "/runs/a%2Fb", "/workflows/x", "/nowhere"] {
            check(Method::GET, path, &browser(), Some("index.html"));
            check(Method::HEAD, path, &browser(), Some("index.html"));
            check(Method::POST, path, &browser(), None);
            check(Method::GET, path, &asks(&[(header::ACCEPT, "*/*")]), None);
        }
    }

    #[test]
    fn files_are_found_by_whoever_asks_and_missing_ones_are_missing() {
        check(Method::GET, "/assets/index-1a2b.js", &HeaderMap::new(), Some("assets/index-1a2b.js"));
        check(Method::GET, "/icon.svg", &HeaderMap::new(), Some("icon.svg"));
        for path in ["/assets/index-0000.js", "/assets/index-1a2b.js.gz", "/assets/../index.html"] {
            check(Method::GET, path, &browser(), None);
        }
    }

    #[test]
    fn a_program_that_is_wrong_gets_no_page() {
        for path in ["/api/v1/nothing", "/api", "/callbacks/x", "/hooks", "/metrics/x", "/healthz/x"] {
            check(Method::GET, path, &browser(), None);
        }
    }

    #[test]
    fn answers_say_what_they_are_how_long_they_last_and_what_they_may_load() {
        let script = respond(PAGE, "assets/index-1a2b.js", &browser()).unwrap();
        assert_eq!(script.headers()[header::CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert_eq!(script.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(script.headers()[header::CACHE_CONTROL], FOR_EVER);
        let page = respond(PAGE, "index.html", &HeaderMap::new()).unwrap();
        assert_eq!(page.headers()[header::CACHE_CONTROL], ASK_AGAIN);
        assert_eq!(page.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        assert!(!page.headers().contains_key(header::CONTENT_ENCODING));
        assert!(respond(PAGE, "nothing", &browser()).is_none());
    }

    async fn sent(headers: &HeaderMap) -> Vec<u8> {
        let script = respond(PAGE, "assets/index-1a2b.js", headers).unwrap();
        axum::body::to_bytes(script.into_body(), 1_024).await.unwrap().to_vec()
    }

    #[tokio::test]
    async fn what_somebody_refuses_is_not_sent_packed() {
        for refuses in ["gzip;q=0, br", "identity", ""] {
            let refuses = asks(&[(header::ACCEPT_ENCODING, refuses)]);
            let script = respond(PAGE, "assets/index-1a2b.js", &refuses).unwrap();
            assert!(!script.headers().contains_key(header::CONTENT_ENCODING));
            assert_eq!(sent(&refuses).await, b"plain");
        }
        assert_eq!(sent(&HeaderMap::new()).await, b"plain");
        assert_eq!(sent(&browser()).await, PACKED);
    }
}
