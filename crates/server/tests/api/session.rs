//! Sessions of the web page: a cookie that proves that a token was shown.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast_server::{Access, NewToken, Options, Scope, Tokens, verify_audit};
use reqwest::{Method, RequestBuilder, header};
use serde_json::json;

use crate::house::{Answer, House, in_an_hour, token};

/// A house that keeps an audit log, and whose tokens can change.
struct Guarded {
    house: House,
    tokens: Arc<Tokens>,
    audit: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

async fn guarded(known: &[&NewToken]) -> Guarded {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit.jsonl");
    let known: Vec<_> = known.iter().map(|new| new.token.clone()).collect();
    let tokens = Arc::new(Tokens::new(&known).unwrap());
    let access = Access::Tokens(Arc::clone(&tokens));
    let options = Options { access, audit: Some(audit.clone()), metrics: false, ..Options::default() };
    Guarded { house: House::with(options).await, tokens, audit, _folder: folder }
}

/// As a browser on a page of this server asks.
fn page(house: &House, method: Method, path: &str) -> RequestBuilder {
    house.request(method, path).header(header::ORIGIN, &house.address)
}

/// Logs in; the cookie a browser would send from then on, and all that was said about it.
async fn log_in(house: &House, token: &str) -> (String, String) {
    let request = page(house, Method::POST, "/api/v1/session").json(&json!({ "token": token }));
    let response = request.send().await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
    let said = response.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    (said.split(';').next().unwrap().to_owned(), said)
}

async fn sent(request: RequestBuilder) -> Answer {
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_says_what_its_token_says_until_one_logs_out() {
    let ann = token("ann", "shop", &[Scope::Read, Scope::Start]);
    let Guarded { house, audit, _folder, .. } = guarded(&[&ann]).await;
    let (cookie, said) = log_in(&house, &ann.text).await;
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(said.contains(part), "{said}");
    }
    let me = sent(house.request(Method::GET, "/api/v1/whoami").header(header::COOKIE, &cookie)).await.ok();
    assert_eq!(me, json!({ "name": "ann", "namespace": "shop", "scopes": ["read", "start"], "session": true }));
    let ended = page(&house, Method::DELETE, "/api/v1/session").header(header::COOKIE, &cookie).send().await.unwrap();
    let taken_back: Vec<&str> =
        ended.headers().get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap()).collect();
    let name = cookie.split('=').next().unwrap();
    assert!(taken_back.iter().any(|said| said.starts_with(&format!("{name}=;")) && said.contains("Max-Age=0")));
    house.leave().await;
    let log = std::fs::read_to_string(&audit).unwrap();
    let actions: Vec<String> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| format!("{} {}", line["who"].as_str().unwrap(), line["action"].as_str().unwrap()))
        .collect();
    assert_eq!(actions, ["ann POST /api/v1/session", "ann DELETE /api/v1/session"]);
    assert!(!log.contains(&ann.text));
    assert_eq!(verify_audit(&audit).unwrap(), Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_token() {
    let soon = crate::house::now() + Duration::from_secs(90);
    let ann = NewToken::draw("ann", "shop", &[Scope::Read], soon).unwrap();
    let Guarded { house, tokens, _folder, .. } = guarded(&[&ann]).await;
    let (cookie, said) = log_in(&house, &ann.text).await;
    let age = said.split("Max-Age=").nth(1).unwrap().split(';').next().unwrap().parse::<u64>().unwrap();
    assert!((80..=90).contains(&age), "{said}");
    tokens.replace(&[]).unwrap();
    let answer = sent(house.request(Method::GET, "/api/v1/runs").header(header::COOKIE, &cookie)).await;
    assert_eq!(answer.refused(401), "unauthenticated");
    house.leave().await;
}

/// A server on this database that knows these tokens.
async fn server_of(database: &Path, known: &[&NewToken]) -> House {
    let known: Vec<_> = known.iter().map(|new| new.token.clone()).collect();
    let access = Access::Tokens(Arc::new(Tokens::new(&known).unwrap()));
    let engine = Outlast::sqlite(database).start().await.unwrap();
    House::on(engine, Options { access, metrics: false, ..Options::default() }, tempfile::tempdir().unwrap()).await
}

async fn asked_with(house: &House, cookie: &str) -> Answer {
    sent(house.request(Method::GET, "/api/v1/whoami").header(header::COOKIE, cookie)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_known_by_every_server_of_its_database_and_by_no_other() {
    let (ann, bob) = (token("ann", "shop", &[Scope::Read]), token("bob", "shop", &[Scope::Read]));
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("own.db"), folder.path().join("other.db"));
    let house = server_of(&own, &[&ann, &bob]).await;
    let (cookie, _) = log_in(&house, &ann.text).await;
    house.leave().await;
    // Nothing of the first server is left but its database and the tokens.
    let second = server_of(&own, &[&bob, &ann]).await;
    assert_eq!(asked_with(&second, &cookie).await.ok()["name"], "ann");
    second.leave().await;
    let without = server_of(&own, &[&bob]).await;
    assert_eq!(asked_with(&without, &cookie).await.refused(401), "unauthenticated");
    without.leave().await;
    let elsewhere = server_of(&other, &[&ann, &bob]).await;
    assert_eq!(asked_with(&elsewhere, &cookie).await.refused(401), "unauthenticated");
    elsewhere.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_no_token_and_a_token_no_session() {
    let ann = token("ann", "shop", &[Scope::Admin]);
    let Guarded { house, _folder, .. } = guarded(&[&ann]).await;
    let (cookie, said) = log_in(&house, &ann.text).await;
    let (name, session) = cookie.split_once('=').unwrap();
    assert!(!said.contains(&ann.text) && !said.contains("olt_"), "{said}");
    let as_token = sent(house.request(Method::GET, "/api/v1/runs").bearer_auth(session)).await;
    assert_eq!(as_token.refused(401), "unauthenticated");
    let begins = sent(page(&house, Method::POST, "/api/v1/session").json(&json!({ "token": session }))).await;
    assert_eq!(begins.refused(401), "unauthenticated");
    for wrong in [ann.text.clone(), session.replace(['0', '1', '2'], "3"), session[..session.len() - 1].to_owned()] {
        assert_eq!(asked_with(&house, &format!("{name}={wrong}")).await.refused(401), "unauthenticated", "{wrong}");
    }
    assert_eq!(asked_with(&house, &cookie).await.ok()["name"], "ann");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_page_acts_with_the_cookie_of_its_visitor() {
    let ann = token("ann", "shop", &[Scope::Admin]);
    let Guarded { house, _folder, .. } = guarded(&[&ann]).await;
    let (cookie, _) = log_in(&house, &ann.text).await;
    let put = json!({ "file": "n.wf", "text": "workflow n(x) { return x }" });
    let write = || house.request(Method::PUT, "/api/v1/workflows").header(header::COOKIE, &cookie).json(&put);
    let other_port = format!("{}:1", house.address.rsplit_once(':').unwrap().0);
    for origin in ["https://evil.example", "null", other_port.as_str()] {
        assert_eq!(sent(write().header(header::ORIGIN, origin)).await.refused(403), "foreign_origin", "{origin}");
    }
    assert_eq!(sent(write()).await.refused(403), "foreign_origin", "no browser leaves the origin out");
    sent(write().header(header::ORIGIN, &house.address)).await.ok();
    // Whoever shows a token itself is a program, and programs have no origin.
    sent(write().bearer_auth(&ann.text)).await.ok();
    for method in [Method::POST, Method::DELETE] {
        let foreign = house.request(method.clone(), "/api/v1/session").header(header::ORIGIN, "https://evil.example");
        let foreign = foreign.header(header::COOKIE, &cookie).json(&json!({ "token": ann.text }));
        assert_eq!(sent(foreign).await.refused(403), "foreign_origin", "{method}");
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_token_begins_no_session() {
    let (ann, worker) = (token("ann", "shop", &[Scope::Read]), token("worker", "shop", &[Scope::Worker]));
    let Guarded { house, _folder, .. } = guarded(&[&ann, &worker]).await;
    let stranger = NewToken::draw("stranger", "shop", &[Scope::Admin], in_an_hour()).unwrap();
    for wrong in ["", "nothing", &stranger.text, &format!("{}; Domain=evil", ann.text)] {
        let request = page(&house, Method::POST, "/api/v1/session").json(&json!({ "token": wrong }));
        let response = request.send().await.unwrap();
        assert!(!response.headers().contains_key(header::SET_COOKIE), "{wrong}");
        assert_eq!(Answer::of(response).await.refused(401), "unauthenticated");
    }
    let blind = page(&house, Method::POST, "/api/v1/session").json(&json!({ "token": worker.text }));
    assert_eq!(sent(blind).await.refused(403), "forbidden", "it could not read anything");
    let form = page(&house, Method::POST, "/api/v1/session").header(header::CONTENT_TYPE, "text/plain");
    assert_eq!(sent(form.body(json!({ "token": ann.text }).to_string())).await.refused(415), "unsupported_media_type");
    house.leave().await;
    let open = House::open().await;
    let request = page(&open, Method::POST, "/api/v1/session").json(&json!({ "token": ann.text }));
    assert_eq!(sent(request).await.refused(409), "no_session");
    open.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_streams() {
    let ann = token("ann", "shop", &[Scope::Admin]);
    let Guarded { house, _folder, .. } = guarded(&[&ann]).await;
    let (cookie, _) = log_in(&house, &ann.text).await;
    for path in ["/api/v1/changes/stream", "/api/v1/counts"] {
        let response = house.request(Method::GET, path).header(header::COOKIE, &cookie).send().await.unwrap();
        assert!(response.status().is_success(), "{path}");
        assert_eq!(house.get(path).await.refused(401), "unauthenticated", "{path}");
    }
    house.leave().await;
}

/// What a stream said until it ended, which it does soon.
async fn heard_out(mut response: reqwest::Response) -> String {
    let mut heard = String::new();
    let listen = async {
        while let Some(chunk) = response.chunk().await.unwrap() {
            heard.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_millis(2_500), listen).await.expect("the stream ends");
    heard
}

/// The streams of a house with a run that waits, opened by this header.
async fn listeners(house: &House, header: &(header::HeaderName, String)) -> Vec<(&'static str, reqwest::Response)> {
    let mut all = Vec::new();
    for path in ["/api/v1/changes/stream", "/api/v1/runs/a/stream"] {
        let request = house.client.get(format!("{}{path}", house.address)).header(&header.0, &header.1);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{path}");
        all.push((path, response));
    }
    all
}

async fn waits(house: &House, token: &str) {
    let text = "workflow w(x) { while (true) { await Signal.next(\"word\") } }";
    let put = house.request(Method::PUT, "/api/v1/workflows").bearer_auth(token);
    sent(put.json(&json!({ "file": "w.wf", "text": text }))).await.ok();
    let start = house.request(Method::POST, "/api/v1/runs").bearer_auth(token);
    sent(start.json(&json!({ "workflow": "w", "id": "a" }))).await.ok();
}

fn is_sent_away(heard: &str) -> bool {
    heard.ends_with("\n\n") && heard.contains("event: error\n") && heard.contains("\"unauthenticated\"")
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_is_sent_away_when_their_token_goes() {
    let (ann, bob) = (token("ann", "shop", &[Scope::Admin]), token("bob", "shop", &[Scope::Admin]));
    let Guarded { house, tokens, _folder, .. } = guarded(&[&ann, &bob]).await;
    waits(&house, &ann.text).await;
    let (cookie, _) = log_in(&house, &ann.text).await;
    let by_token = listeners(&house, &(header::AUTHORIZATION, format!("Bearer {}", ann.text))).await;
    let by_session = listeners(&house, &(header::COOKIE, cookie)).await;
    let others = listeners(&house, &(header::AUTHORIZATION, format!("Bearer {}", bob.text))).await;
    // Also one who is told something all the time.
    let (client, address, text) = (house.client.clone(), house.address.clone(), bob.text.clone());
    let chatter = tokio::spawn(async move {
        loop {
            let signal = client.post(format!("{address}/api/v1/runs/a/signals/word")).bearer_auth(&text);
            if !signal.json(&json!({})).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    tokens.replace(std::slice::from_ref(&bob.token)).unwrap();
    for (path, response) in by_token.into_iter().chain(by_session) {
        let heard = heard_out(response).await;
        assert!(is_sent_away(&heard), "{path}: {heard}");
    }
    tokens.replace(&[]).unwrap();
    for (path, response) in others {
        let heard = heard_out(response).await;
        assert!(is_sent_away(&heard), "{path}: {heard}");
    }
    chatter.await.unwrap();
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_is_sent_away_when_their_token_expires_or_may_no_longer_read() {
    let soon = crate::house::now() + Duration::from_millis(2_500);
    let (ann, bob) =
        (NewToken::draw("ann", "shop", &[Scope::Read], soon).unwrap(), token("bob", "shop", &[Scope::Admin]));
    let Guarded { house, tokens, _folder, .. } = guarded(&[&ann, &bob]).await;
    waits(&house, &bob.text).await;
    let expires = listeners(&house, &(header::AUTHORIZATION, format!("Bearer {}", ann.text))).await;
    let blinded = listeners(&house, &(header::AUTHORIZATION, format!("Bearer {}", bob.text))).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for (path, response) in expires {
        let heard = heard_out(response).await;
        assert!(is_sent_away(&heard) && crate::house::now() >= soon, "{path}: {heard}");
    }
    let worker = outlast_server::Token { scopes: vec![Scope::Worker], ..bob.token.clone() };
    tokens.replace(&[worker]).unwrap();
    for (path, response) in blinded {
        let heard = heard_out(response).await;
        assert!(heard.contains("event: error\n") && heard.contains("\"forbidden\""), "{path}: {heard}");
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_without_a_token_is_sent_away_when_there_are_some() {
    let tokens = Arc::new(Tokens::new(&[]).unwrap());
    let access = Access::Local(Arc::clone(&tokens));
    let house = House::with(Options { access, metrics: false, ..Options::default() }).await;
    let response = house.request(Method::GET, "/api/v1/changes/stream").send().await.unwrap();
    assert!(response.status().is_success());
    tokens.replace(&[token("ann", "shop", &[Scope::Read]).token]).unwrap();
    assert!(is_sent_away(&heard_out(response).await));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_in_ends_the_other_cookie() {
    let ann = token("ann", "shop", &[Scope::Read]);
    let Guarded { house, _folder, .. } = guarded(&[&ann]).await;
    for (origin, kept, ended) in [
        (house.address.clone(), "outlast_session=", "__Host-outlast_session=;"),
        (house.address.replace("http://", "https://"), "__Host-outlast_session=", "outlast_session=;"),
    ] {
        let begin = house.request(Method::POST, "/api/v1/session").header(header::ORIGIN, origin);
        let response = begin.json(&json!({ "token": ann.text })).send().await.unwrap();
        let said: Vec<&str> =
            response.headers().get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with(kept) && !said[0].contains("Max-Age=0;"), "{said:?}");
        assert!(said[1].starts_with(ended) && said[1].contains("Max-Age=0;"), "{said:?}");
    }
    house.leave().await;
}
