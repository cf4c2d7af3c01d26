//! Sessions of the web page: a token in a cookie that no script can read. It ends when the token does, and needs no
//! place in the server: it outlives a restart, and whoever takes the token away ends it.

use axum::http::{HeaderMap, HeaderValue, header};

/// The cookie, and what it is called where it may only travel encrypted: then no other host can set it.
const NAME: &str = "outlast_session";
const NAME_SECURE: &str = "__Host-outlast_session";

/// The token in the cookie of a request.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| matches!(*name, NAME | NAME_SECURE)).map(|(_, token)| token)
}

/// The header that begins a session, which ends after so many seconds. None if the token is none that a cookie can
/// have.
pub(crate) fn begin(token: &str, seconds: u64, secure: bool) -> Option<HeaderValue> {
    let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_plain {
        return None;
    }
    HeaderValue::from_str(&cookie(token, seconds, secure)).ok()
}

/// The headers that end a session, whichever way it travels.
pub(crate) fn end() -> [HeaderValue; 2] {
    [cookie("", 0, false), cookie("", 0, true)]
        .map(|text| HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("")))
}

fn cookie(token: &str, seconds: u64, secure: bool) -> String {
    let (name, more) = if secure { (NAME_SECURE, "; Secure") } else { (NAME, "") };
    format!("{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{more}")
}

/// Whether a request comes from a page of this very server, as its browser says. Only a browser has cookies, and every
/// browser says where a write comes from.
pub(crate) fn from_own_page(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(|host| !host.is_empty());
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.and_then(|origin| origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://")));
    host.is_some() && host == origin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_cookie_is_found_among_others_and_nothing_else_is() {
        for (cookies, expected) in [
            ("outlast_session=olt_1_a", Some("olt_1_a")),
            ("theme=dark; outlast_session=olt_1_a; more=1", Some("olt_1_a")),
            ("__Host-outlast_session=olt_1_b", Some("olt_1_b")),
            ("xoutlast_session=olt_1_a", None),
            ("outlast_sessions=olt_1_a", None),
            ("outlast_session", None),
            ("", None),
        ] {
            assert_eq!(token(&asks(&[(header::COOKIE, cookies)])), expected, "{cookies}");
        }
    }

    #[test]
    fn no_script_reads_the_cookie_and_no_other_site_sends_it() {
        let plain = begin("olt_1_a", 60, false).unwrap();
        assert_eq!(plain, "outlast_session=olt_1_a; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        let secure = begin("olt_1_a", 60, true).unwrap();
        assert_eq!(secure, "__Host-outlast_session=olt_1_a; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
        for wrong in ["a;b", "a b", "a=b; Domain=evil", "ä", "a\r\nb"] {
            assert!(begin(wrong, 60, false).is_none(), "{wrong:?}");
        }
        assert!(end().iter().all(|ended| ended.to_str().unwrap().contains("Max-Age=0;")));
    }

    #[test]
    fn only_a_page_of_this_server_writes() {
        let comes = |host: &str, origin: Option<&str>| {
            let mut headers = asks(&[(header::HOST, host)]);
            origin.map(|origin| headers.insert(header::ORIGIN, origin.parse().unwrap()));
            from_own_page(&headers)
        };
        assert!(comes("outlast.example:7117", Some("https://outlast.example:7117")));
        assert!(comes("127.0.0.1:7117", Some("http://127.0.0.1:7117")));
        for (host, origin) in [
            ("127.0.0.1:7117", None),
            ("127.0.0.1:7117", Some("null")),
            ("127.0.0.1:7117", Some("http://127.0.0.1:7118")),
            ("outlast.example", Some("https://evil.example")),
            ("outlast.example", Some("https://outlast.example.evil.example")),
            ("", Some("https://")),
        ] {
            assert!(!comes(host, origin), "{host} {origin:?}");
        }
    }
}
