//! Redirects: each hop is checked like the first, and secrets stay with whom they were meant for.

use outlast_tasks::HttpOptions;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::server::{Server, answer, ok, redirect};
use crate::support::{local, request};

/// Headers of which all but one are nobody else's business.
fn secrets() -> Value {
    json!({ "Authorization": "Bearer t", "Cookie": "c", "X-Api-Key": "k", "Accept": "text/plain" })
}

#[tokio::test]
async fn redirects_to_the_same_place_are_followed_with_everything() {
    let server = Server::start(|asked| match asked.path() {
        "/a" => redirect("307 Temporary Redirect", "b?x=1"),
        "/b?x=1" => redirect("308 Permanent Redirect", "/c"),
        _ => ok(&format!("{} {}", asked.line, asked.body)),
    })
    .await;
    let args = json!({ "url": server.url("/a"), "method": "POST", "json": { "n": 1 }, "headers": secrets() });
    let result = request(local(), &args).await.unwrap();
    assert_eq!(result["body"], "POST /c HTTP/1.1 {\"n\":1}");
    let last = &server.asked()[2];
    assert_eq!((last.header("authorization"), last.header("x-api-key")), (Some("Bearer t"), Some("k")));
    assert!(last.header("idempotency-key").is_some());
}

#[tokio::test]
async fn a_request_that_is_to_be_looked_up_elsewhere_becomes_a_get() {
    let server = Server::start(|asked| match asked.path() {
        "/see" => redirect("303 See Other", "/there"),
        "/found" => redirect("302 Found", "/there"),
        "/moved" => redirect("301 Moved Permanently", "/there"),
        _ => ok(&format!("{} [{}]", asked.line, asked.body)),
    })
    .await;
    for path in ["/see", "/found", "/moved"] {
        let args = json!({ "url": server.url(path), "method": "POST", "text": "body" });
        assert_eq!(request(local(), &args).await.unwrap()["body"], "GET /there HTTP/1.1 []", "{path}");
        let last = server.asked().pop().unwrap();
        assert_eq!((last.header("content-type"), last.header("idempotency-key")), (None, None));
    }
    let put = json!({ "url": server.url("/found"), "method": "PUT", "text": "body" });
    assert_eq!(request(local(), &put).await.unwrap()["body"], "PUT /there HTTP/1.1 [body]");
}

#[tokio::test]
async fn secrets_are_not_sent_on_to_somebody_else() {
    let other = Server::start(|_| ok("other")).await;
    let url = other.url("/landed");
    let server = Server::start(move |_| redirect("307 Temporary Redirect", &url)).await;
    let args = json!({ "url": server.url("/"), "method": "POST", "text": "x", "headers": secrets() });
    assert_eq!(request(local(), &args).await.unwrap()["body"], "other");
    assert_eq!(server.asked_once().header("cookie"), Some("c"));
    let landed = other.asked_once();
    assert_eq!(landed.header("accept"), Some("text/plain"));
    for secret in ["authorization", "cookie", "x-api-key", "idempotency-key", "referer"] {
        assert_eq!(landed.header(secret), None, "{secret}");
    }
}

/// Reliability, SSRF: "re-check redirects".
#[tokio::test]
async fn a_redirect_to_where_requests_must_not_go_is_refused() {
    let inside = Server::at("127.0.0.2:0", |_| ok("secret")).await;
    let cases = [
        ("http://169.254.169.254/latest/meta-data".to_owned(), "address_refused"),
        ("http://[::ffff:169.254.169.254]/".to_owned(), "address_refused"),
        ("//2852039166/".to_owned(), "address_refused"),
        (inside.url("/"), "address_refused"),
        ("file:///etc/passwd".to_owned(), "http_redirect"),
        ("http://me:secret@127.0.0.1/".to_owned(), "http_redirect"),
        ("http://".to_owned(), "http_redirect"),
    ];
    for (to, code) in cases {
        let location = to.clone();
        let server = Server::start(move |_| redirect("302 Found", &location)).await;
        let error = request(local(), &json!({ "url": server.url("/") })).await.unwrap_err();
        error.says(code, &[]);
        assert!(error.permanent && !error.message.contains("secret"), "{to}: {error:?}");
    }
    assert_eq!(inside.asked().len(), 0);
}

#[tokio::test]
async fn redirects_come_to_an_end() {
    let server = Server::start(|asked| {
        let number: u32 = asked.path().trim_start_matches('/').parse().unwrap();
        if number == 0 { ok("arrived") } else { redirect("302 Found", &format!("/{}", number - 1)) }
    })
    .await;
    let get = async |path: &str| request(local(), &json!({ "url": server.url(path) })).await;
    assert_eq!(get("/5").await.unwrap()["body"], "arrived");
    let error = get("/6").await.unwrap_err();
    error.says("http_redirect", &["more than 5 times"]);
    assert!(error.permanent);
}

#[tokio::test]
async fn a_redirect_to_nowhere_is_an_answer_like_any_other() {
    let server = Server::start(|_| answer("302 Found", "", "where?")).await;
    let result = request(local(), &json!({ "url": server.url("/") })).await.unwrap();
    assert_eq!((&result["status"], &result["body"]), (&json!(302), &json!("where?")));
}

/// A server for `secure.example` whose certificate is its own authority.
async fn secure(answer: impl Fn(&crate::server::Asked) -> String + Send + Sync + 'static) -> (Server, HttpOptions) {
    let made = rcgen::generate_simple_self_signed(["secure.example".to_owned()]).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let key = tokio_rustls::rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let server = Server::with("127.0.0.1:0", Some(TlsAcceptor::from(Arc::new(config))), answer).await;
    let options = local().roots(made.cert.pem()).resolver(async |_| Ok(vec![[127, 0, 0, 1].into()]));
    (server, options)
}

#[tokio::test]
async fn an_encrypted_connection_checks_the_name_and_the_authority() {
    let (server, options) = secure(|_| ok("encrypted")).await;
    let port = server.address.port();
    let get = async |options: HttpOptions, host: &str| {
        request(options, &json!({ "url": format!("https://{host}:{port}/") })).await
    };
    assert_eq!(get(options.clone(), "secure.example").await.unwrap()["body"], "encrypted");
    let told = &["cannot be reached", "certificate"];
    get(options, "other.example").await.unwrap_err().says("http_unreachable", told);
    let system = local().resolver(async |_| Ok(vec![[127, 0, 0, 1].into()]));
    get(system, "secure.example").await.unwrap_err().says("http_unreachable", &["certificate"]);
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|asked| asked.line != "no TLS").count(), 1, "{asked:?}");
}

#[tokio::test]
async fn what_is_encrypted_stays_so() {
    let plain = Server::start(|_| ok("in the clear")).await;
    let url = plain.url("/");
    let (server, options) = secure(move |_| redirect("302 Found", &url)).await;
    let url = format!("https://secure.example:{}/", server.address.port());
    let error = request(options, &json!({ "url": url })).await.unwrap_err();
    error.says("http_redirect", &["from https to http"]);
    assert_eq!(plain.asked().len(), 0);
}
