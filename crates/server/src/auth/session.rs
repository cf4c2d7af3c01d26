//! Sessions of the web page: a cookie that no script can read. It names a token and an instant, and proves by a MAC that a
//! server of this database was shown that token. So it needs no place in a server: it outlives a restart, every server of the
//! database takes it, it ends when its instant comes or its token goes, and whoever steals it has no token.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use hmac::{Hmac, KeyInit, Mac};
use outlast::{Engine, Timestamp};
use sha2::Sha256;

use super::token::{Known, Tokens, hex, unhex};

/// The cookie, and what it is called where it may only travel encrypted: then no other host can set it.
const NAME: &str = "outlast_session";
const NAME_SECURE: &str = "__Host-outlast_session";

/// How long a session lasts if its token lasts longer. A cookie that was stolen is worth no more.
const LASTS_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What makes sessions, and knows them again.
pub(crate) struct Sessions {
    key: [u8; 32],
}

impl Sessions {
    /// Those of a database. Its key alone makes none: the hash of a token goes into each.
    pub(crate) fn of(engine: &Engine) -> Sessions {
        Sessions { key: engine.derived_key("session") }
    }

    /// The header that begins a session for whoever has shown this token.
    pub(crate) fn begin(&self, known: &Known, now: Timestamp, secure: bool) -> Option<HeaderValue> {
        let until = known.expires.min(now + LASTS_MAX);
        let text = format!("{}.{}.", hex(known.token.id.as_bytes()), until.as_millis());
        let proof = hex(&self.proof(&text, known).finalize().into_bytes());
        HeaderValue::from_str(&cookie(&format!("{text}{proof}"), until.since(now).as_secs(), secure)).ok()
    }

    /// The token a session was begun with, if it was one of this database's, has not ended, and its token is still there.
    pub(super) fn find(&self, tokens: &Tokens, shown: &str, now: Timestamp) -> Option<Arc<Known>> {
        let (said, proof) = shown.rsplit_once('.')?;
        let (id, until) = said.split_once('.')?;
        let known = tokens.by_id(std::str::from_utf8(&unhex(id)?).ok()?)?;
        // What is proven is the text as it was shown, so that there is one way to write each session.
        self.proof(&format!("{said}."), &known).verify_slice(&unhex(proof)?).ok()?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        (now < until && now < known.expires).then_some(known)
    }

    fn proof(&self, text: &str, known: &Known) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a MAC takes a key of any length");
        // Another token under the same id has another hash: a session ends also when its token is exchanged.
        mac.update(&known.hash);
        mac.update(text.as_bytes());
        mac
    }
}

/// The session in the cookie of a request. Before all others the one that no other host can have set; a server that is
/// encrypted looks at no other. One that is not may be behind a proxy that is.
pub(crate) fn shown(headers: &HeaderMap, encrypted: bool) -> Option<&str> {
    let of = |wanted: &str| {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, session)| session)
    };
    of(NAME_SECURE).or_else(|| of(NAME).filter(|_| !encrypted))
}

/// The header that ends a session, as it travels encrypted or not.
pub(crate) fn end_of(secure: bool) -> HeaderValue {
    HeaderValue::from_str(&cookie("", 0, secure)).unwrap_or(HeaderValue::from_static(""))
}

fn cookie(session: &str, seconds: u64, secure: bool) -> String {
    let (name, more) = if secure { (NAME_SECURE, "; Secure") } else { (NAME, "") };
    format!("{name}={session}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{more}")
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
    use crate::auth::{NewToken, Scope, Token};

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
            assert_eq!(shown(&asks(&[(header::COOKIE, cookies)]), false), expected, "{cookies}");
        }
    }

    #[test]
    fn a_cookie_that_another_host_may_have_set_does_not_go_before_ours() {
        let planted = [(header::COOKIE, "outlast_session=theirs; __Host-outlast_session=ours")];
        let alone = [(header::COOKIE, "outlast_session=theirs")];
        assert_eq!((shown(&asks(&planted), false), shown(&asks(&planted), true)), (Some("ours"), Some("ours")));
        assert_eq!((shown(&asks(&alone), false), shown(&asks(&alone), true)), (Some("theirs"), None));
    }

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    /// A token that lasts so long from now on, the tokens with it in it, and a session begun with it.
    fn begun(lasts: Duration) -> (NewToken, Tokens, String) {
        let new = NewToken::draw("ann", "shop", &[Scope::Read], NOW + lasts).unwrap();
        let tokens = Tokens::new(std::slice::from_ref(&new.token)).unwrap();
        let known = tokens.find(&new.text, NOW).unwrap();
        let said = OWN.begin(&known, NOW, false).unwrap();
        let session = said.to_str().unwrap().split(['=', ';']).nth(1).unwrap().to_owned();
        (new, tokens, session)
    }

    const OWN: Sessions = Sessions { key: [7; 32] };
    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[test]
    fn no_script_reads_the_cookie_and_no_other_site_sends_it() {
        let (_, tokens, session) = begun(HOUR);
        let known = OWN.find(&tokens, &session, NOW).unwrap();
        let plain = OWN.begin(&known, NOW, false).unwrap();
        assert_eq!(plain, format!("outlast_session={session}; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict"));
        let secure = OWN.begin(&known, NOW, true).unwrap();
        assert_eq!(
            secure,
            format!("__Host-outlast_session={session}; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure")
        );
        assert!(session.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'.'), "{session}");
        assert!([true, false].map(end_of).iter().all(|ended| ended.to_str().unwrap().contains("Max-Age=0;")));
    }

    #[test]
    fn a_session_is_no_token_and_says_nothing_of_it() {
        let (new, tokens, session) = begun(HOUR);
        assert!(OWN.find(&tokens, &session, NOW).is_some());
        assert!(tokens.find(&session, NOW).is_none());
        assert!(OWN.find(&tokens, &new.text, NOW).is_none());
        let secret = new.text.rsplit('_').next().unwrap();
        let hash = new.token.hash.strip_prefix("sha256:").unwrap();
        assert!(!session.contains(secret) && !session.contains(hash), "{session}");
    }

    #[test]
    fn a_session_ends_after_a_week_or_with_its_token() {
        let (_, tokens, session) = begun(HOUR);
        assert!(OWN.find(&tokens, &session, NOW + (HOUR - Duration::from_millis(1))).is_some());
        assert!(OWN.find(&tokens, &session, NOW + HOUR).is_none());
        let (new, tokens, session) = begun(1_000 * HOUR);
        assert!(OWN.find(&tokens, &session, NOW + (LASTS_MAX - Duration::from_millis(1))).is_some());
        assert!(OWN.find(&tokens, &session, NOW + LASTS_MAX).is_none());
        // A token that is to end sooner than it was.
        let sooner = Token { expires: crate::instant::text(NOW + HOUR), ..new.token.clone() };
        tokens.replace(&[sooner]).unwrap();
        assert!(OWN.find(&tokens, &session, NOW).is_some());
        assert!(OWN.find(&tokens, &session, NOW + HOUR).is_none());
        // Another token under its id.
        let hash = format!("sha256:{}", hex(&[1; 32]));
        tokens.replace(&[Token { hash, ..new.token.clone() }]).unwrap();
        assert!(OWN.find(&tokens, &session, NOW).is_none());
        tokens.replace(&[new.token]).unwrap();
        assert!(OWN.find(&tokens, &session, NOW).is_some());
        tokens.replace(&[]).unwrap();
        assert!(OWN.find(&tokens, &session, NOW).is_none());
    }

    #[test]
    fn nobody_changes_a_session_or_makes_one_elsewhere() {
        let (_, tokens, session) = begun(HOUR);
        for at in 0..session.len() {
            for other in ["0", "1", "f", "."] {
                let mut changed = session.clone();
                changed.replace_range(at..=at, other);
                let is_same = changed == session;
                assert_eq!(OWN.find(&tokens, &changed, NOW).is_some(), is_same, "{other} at {at}");
            }
            assert!(OWN.find(&tokens, &session[..at], NOW).is_none(), "cut at {at}");
        }
        let [id, until, proof] = session.split('.').collect::<Vec<_>>()[..] else { panic!("{session}") };
        for wrong in [
            String::new(),
            "..".to_owned(),
            format!("{session}0"),
            format!("{id}.+{until}.{proof}"),
            format!("{id}.0{until}.{proof}"),
            format!("{id}.{until}9.{proof}"),
            format!("{}.{until}.{proof}", id.to_uppercase() + "00"),
            format!("{id}.{until}.{}", proof.to_uppercase()),
            format!("{id}.{until}.{}", hex(&[0; 32])),
        ] {
            assert!(OWN.find(&tokens, &wrong, NOW).is_none(), "{wrong}");
        }
        assert!(Sessions { key: [8; 32] }.find(&tokens, &session, NOW).is_none(), "of another database");
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
