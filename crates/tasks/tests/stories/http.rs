//! `http.request`: what it sends, what it gives, and where it does not go.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_tasks::HttpOptions;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::server::{Server, answer, ok};
use crate::support::{local, request};

#[tokio::test]
async fn a_request_is_sent_and_its_answer_given() {
    let server = Server::start(|_| {
        let headers = "content-type: application/json; charset=utf-8\r\nx-a: 1\r\nX-A: 2\r\n";
        answer("201 Created", headers, "{\"paid\":\"7 €\"}")
    })
    .await;
    let args = json!({
        "url": server.url("/charge?x=1#part"),
        "method": "post",
        "headers": { "Authorization": "Bearer t", "X-Trace": "abc" },
        "json": { "euros": 7 },
        "timeout": "20s",
    });
    let result = request(local(), &args).await.unwrap();
    assert_eq!(result["status"], 201);
    assert_eq!(result["body"], json!({ "paid": "7 €" }));
    assert_eq!((&result["headers"]["x-a"], result.get("body_base64")), (&json!("1, 2"), None));
    let asked = server.asked_once();
    assert_eq!((asked.line.as_str(), asked.body.as_str()), ("POST /charge?x=1 HTTP/1.1", "{\"euros\":7}"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!((asked.header("authorization"), asked.header("x-trace")), (Some("Bearer t"), Some("abc")));
    assert_eq!(asked.header("idempotency-key"), Some("default/run-1/0/__task-http.request-0"));
    assert_eq!(asked.header("host"), Some(server.address.to_string().as_str()));
}

#[tokio::test]
async fn text_is_sent_as_text_and_given_as_text() {
    let server = Server::start(|asked| ok(&format!("you said {}", asked.body))).await;
    let args = json!({ "url": server.url("/"), "method": "PUT", "text": "Grüße", "timeout": 20 });
    assert_eq!(request(local(), &args).await.unwrap()["body"], "you said Grüße");
    let asked = server.asked_once();
    assert_eq!(asked.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(asked.header("idempotency-key"), None, "PUT is idempotent by itself");
    let own = json!({ "url": server.url("/"), "method": "POST", "text": "a=1", "headers": {
        "content-type": "application/x-www-form-urlencoded", "Idempotency-Key": "mine" } });
    request(local(), &own).await.unwrap();
    let asked = &server.asked()[1];
    assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(asked.header("idempotency-key"), Some("mine"));
}

/// Issue: "retries by status".
#[tokio::test]
async fn statuses_say_whether_to_try_again() {
    let server = Server::start(|asked| {
        let status = asked.path().trim_start_matches('/').to_owned();
        answer(&format!("{status} Hm"), "retry-after: 7\r\n", "no")
    })
    .await;
    let get = async |status: u16, retry_on: &[u16]| {
        request(local(), &json!({ "url": server.url(&format!("/{status}")), "retry_on": retry_on })).await
    };
    for (status, retry_on, permanent) in [
        (400, &[][..], true),
        (404, &[], true),
        (404, &[403, 404], false),
        (408, &[], false),
        (429, &[], false),
        (500, &[], false),
        (503, &[], false),
        (599, &[], false),
        (202, &[202], false),
    ] {
        let error = get(status, retry_on).await.unwrap_err();
        error.says("http_status", &[&format!("/{status} answered with status {status}")]);
        assert_eq!(error.permanent, permanent, "{error:?}");
        assert_eq!((error.data("status"), error.data("body")), (&json!(status), &json!("no")));
        assert_eq!(error.data("headers")["retry-after"], "7");
    }
    assert_eq!(get(304, &[]).await.unwrap()["status"], 304);
}

#[tokio::test]
async fn a_body_that_is_no_text_is_given_in_base64() {
    let server = Server::start(|_| ok("\u{7f}")).await;
    assert_eq!(request(local(), &json!({ "url": server.url("/") })).await.unwrap()["body"], "\u{7f}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let binary = async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\x00").await.unwrap();
    };
    let args = json!({ "url": url });
    let (result, ()) = tokio::join!(request(local(), &args), binary);
    let result = result.unwrap();
    assert_eq!((&result["body"], &result["body_base64"]), (&Value::Null, &json!("/wA=")));
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let server = Server::start(|asked| {
        let body = "x".repeat(1001);
        match asked.path() {
            "/exact" => ok(&body[1..]),
            "/endless" => format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", "x".repeat(1_000_000)),
            _ => ok(&body),
        }
    })
    .await;
    let get = async |path: &str| request(local().response_limit(1000), &json!({ "url": server.url(path) })).await;
    assert_eq!(get("/exact").await.unwrap()["body"].as_str().unwrap().len(), 1000);
    for path in ["/more", "/endless"] {
        let error = get(path).await.unwrap_err();
        error.says("limit_exceeded", &["more than 1000 bytes"]);
        assert!(error.permanent);
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_a_timeout_and_one_that_is_not_there_unreachable() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x?token=secret", silent.local_addr().unwrap());
    let error = request(local(), &json!({ "url": url, "timeout": "300ms" })).await.unwrap_err();
    error.says("timeout", &["/x did not answer within 300ms"]);
    assert!(!error.permanent && !error.message.contains("secret"), "{error:?}");
    let error = request(local().timeout(Duration::from_millis(300)), &json!({ "url": url })).await.unwrap_err();
    error.says("timeout", &[]);
    drop(silent);
    let error = request(local(), &json!({ "url": url })).await.unwrap_err();
    error.says("http_unreachable", &["/x cannot be reached", "refused"]);
    assert!(!error.permanent && !error.message.contains("secret"), "{error:?}");
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_for_good_and_shows_no_secret() {
    let cases = [
        (json!({}), "missing field `url`"),
        (json!({ "url": "nonsense" }), "its `url` is no URL"),
        (json!({ "url": "file:///etc/passwd" }), "only http and https"),
        (json!({ "url": "ftp://example.com/" }), "only http and https"),
        (json!({ "url": "gopher://127.0.0.1:6379/_x" }), "only http and https"),
        (json!({ "url": "http://me:secret@example.com/" }), "a user or a password"),
        (json!({ "url": "http://x/", "metod": "GET" }), "unknown field `metod`"),
        (json!({ "url": "http://x/", "method": "CONNECT" }), "there is no method `CONNECT`"),
        (json!({ "url": "http://x/", "method": "GET / HTTP/1.1\r\nx: y" }), "there is no method"),
        (json!({ "url": "http://x/", "json": 1, "text": "1" }), "both `json` and `text`"),
        (json!({ "url": "http://x/", "timeout": 0 }), "a length of time is"),
        (json!({ "url": "http://x/", "headers": { "Host": "internal" } }), "`Host` cannot be set"),
        (json!({ "url": "http://x/", "headers": { "Transfer-Encoding": "chunked" } }), "cannot be set"),
        (json!({ "url": "http://x/", "headers": { "Proxy-Authorization": "secret" } }), "cannot be set"),
        (json!({ "url": "http://x/", "headers": { "a b": "1" } }), "no name of a header"),
        (json!({ "url": "http://x/", "headers": { "X-Key": "secret\r\nx: y" } }), "`X-Key` has characters"),
        (json!({ "url": "http://x/", "headers": { "X-Key": "1", "x-key": "2" } }), "given twice"),
    ];
    for (args, told) in cases {
        let error = request(local(), &args).await.unwrap_err();
        error.says("validation_error", &[told]);
        assert!(error.permanent && !error.message.contains("secret"), "{error:?}");
    }
}

/// Reliability, SSRF: "block private, link-local, IPv4-mapped IPv6, metadata".
#[tokio::test]
async fn addresses_that_are_not_public_are_refused_in_every_spelling() {
    let server = Server::start(|_| ok("secret")).await;
    let port = server.address.port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "①②⑦.⓪.⓪.①",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "224.0.0.1",
        "255.255.255.255",
        "localhost",
    ];
    for host in hosts {
        let url = format!("http://{host}:{port}/latest/meta-data");
        let error = request(HttpOptions::default(), &json!({ "url": url })).await.unwrap_err();
        error.says("address_refused", &["not an address of the public internet", "allow it"]);
        assert!(error.permanent, "{host}");
    }
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn what_is_allowed_is_reached_and_nothing_beside_it() {
    let server = Server::start(|_| ok("here")).await;
    let port = server.address.port();
    let get = async |options: HttpOptions, host: &str| {
        request(options, &json!({ "url": format!("http://{host}:{port}/") })).await
    };
    let allow = |what: &str| HttpOptions::default().allow(what).unwrap();
    for (what, host) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.0/8", "127.0.0.1"),
        ("127.0.0.1", "2130706433"),
        ("localhost", "localhost"),
        ("localhost", "LocalHost."),
    ] {
        let options = allow(what).resolver(async |_| Ok(vec![[127, 0, 0, 1].into()]));
        assert_eq!(get(options, host).await.unwrap()["body"], "here", "{what} {host}");
    }
    for (what, host) in [("127.0.0.2", "127.0.0.1"), ("10.0.0.0/8", "127.0.0.1"), ("localhost", "127.0.0.1")] {
        get(allow(what), host).await.unwrap_err().says("address_refused", &[]);
    }
}

/// Reliability, SSRF: "connect to the checked IP" (DNS rebinding).
#[tokio::test]
async fn the_connection_goes_to_the_address_that_was_checked_whatever_the_name_leads_to_later() {
    let public = Server::start(|_| ok("the one that was checked")).await;
    let port = public.address.port();
    let private = Server::at(&format!("127.0.0.2:{port}"), |_| ok("the metadata")).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    // The first answer may be reached, all later ones may not.
    let options = local().resolver(move |name| {
        assert_eq!(name, "rebind.example");
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move { Ok(vec![IpAddr::from([127, 0, 0, if first { 1 } else { 2 }])]) }
    });
    let url = format!("http://rebind.example:{port}/");
    let result = request(options.clone(), &json!({ "url": url })).await.unwrap();
    assert_eq!(result["body"], "the one that was checked");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "resolved once");
    assert_eq!(public.asked_once().header("host"), Some(format!("rebind.example:{port}").as_str()));
    request(options, &json!({ "url": url })).await.unwrap_err().says("address_refused", &["leads to 127.0.0.2"]);
    assert_eq!(private.asked().len(), 0);
}

#[tokio::test]
async fn of_several_addresses_only_those_that_may_be_reached_are_tried() {
    let private = Server::at("127.0.0.2:0", |_| ok("the metadata")).await;
    let port = private.address.port();
    // Nobody listens at the one that may be reached: the other must not be the next to try.
    let options = local().resolver(async |_| Ok(vec![[127, 0, 0, 2].into(), [127, 0, 0, 1].into()]));
    let error = request(options, &json!({ "url": format!("http://both.example:{port}/") })).await.unwrap_err();
    error.says("http_unreachable", &["refused"]);
    assert_eq!(private.asked().len(), 0);
}

#[tokio::test]
async fn a_name_without_addresses_may_have_some_later() {
    let lost = local().resolver(async |_| Err(std::io::Error::other("no such host")));
    let error = request(lost, &json!({ "url": "http://lost.example/" })).await.unwrap_err();
    error.says("http_unreachable", &["http://lost.example/ cannot be found: no such host"]);
    assert!(!error.permanent);
    let empty = local().resolver(async |_| Ok(Vec::new()));
    request(empty, &json!({ "url": "http://lost.example/" })).await.unwrap_err().says("http_unreachable", &[]);
}
