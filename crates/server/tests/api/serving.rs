//! Connections that do not behave.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use outlast_server::{Access, Options, Scope, Tokens};
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::house::{Answer, House, token};

/// Sends bytes as they are, and reads what comes.
pub(crate) async fn raw(house: &House, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(house.address.strip_prefix("http://").unwrap()).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(25), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_refused_and_the_next_one_is_answered() {
    let house = House::open().await;
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(500));
    for bytes in [
        b"\0\0\0\0\r\n\r\n".as_slice(),
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS greeting \r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        long.as_bytes(),
        many.as_bytes(),
    ] {
        let answer = raw(&house, bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer:.200}");
    }
    assert_eq!(house.get("/healthz").await.ok()["status"], "ok");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_comes_is_not_waited_for() {
    let house = House::open().await;
    let head = "POST /api/v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 100\r\n\r\n{";
    let answer = raw(&house, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("slow_body"), "{answer:?}");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_have_four_mebibytes_and_not_one_byte_more() {
    const MAX: usize = 4 * 1024 * 1024;
    let house = House::open().await;
    for (size, status) in [(MAX, 404), (MAX + 1, 413)] {
        let frame = r#"{"workflow":"nobody"}"#;
        let body = format!("{}{frame}", " ".repeat(size - frame.len()));
        let sized = house.request(reqwest::Method::POST, "/api/v1/runs").header("content-type", "application/json");
        assert_eq!(sized.body(body.clone()).send().await.unwrap().status().as_u16(), status);
        // The same without saying how much comes.
        let chunks = futures_util::stream::iter(vec![Ok::<_, std::io::Error>(body)]);
        let chunked = house.request(reqwest::Method::POST, "/api/v1/runs").header("content-type", "application/json");
        let chunked = chunked.body(reqwest::Body::wrap_stream(chunks)).send().await;
        if let Ok(response) = chunked {
            assert_eq!(response.status().as_u16(), status);
        }
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_asks_too_often_is_told_so_and_others_go_on() {
    let tokens = [token("ann", "shop", &[Scope::Read]), token("bob", "bank", &[Scope::Read])];
    let known = tokens.each_ref().map(|new| new.token.clone());
    let access = Access::Tokens(Arc::new(Tokens::new(&known).unwrap()));
    let house = House::with(Options { access, requests_per_second: NonZeroU32::new(2), ..Options::default() }).await;
    let house = house.showing(&tokens[0].text);
    let asked = join_all((0..50).map(|_| house.request(Method::GET, "/api/v1/runs").send())).await;
    let (taken, refused): (Vec<_>, Vec<_>) =
        asked.into_iter().map(Result::unwrap).partition(|answer| answer.status().is_success());
    assert!(taken.len() >= 2, "as many as a second allows come through at once");
    let answer = refused.into_iter().next().expect("fifty at once are too many");
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(Answer::of(answer).await.refused(429), "rate_limited");
    let house = house.showing(&tokens[1].text);
    house.get("/api/v1/runs").await.ok();
    // What was asked for too often has room again when time has passed.
    let house = house.showing(&tokens[0].text);
    while house.get("/api/v1/runs").await.status != 200 {}
    house.leave().await;
}
