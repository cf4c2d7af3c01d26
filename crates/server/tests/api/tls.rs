//! The server over TLS.

use std::sync::Arc;

use outlast_server::{Access, Options, Scope, Tls, Tokens};

use crate::house::{House, client, token};

#[tokio::test(flavor = "multi_thread")]
async fn it_shows_its_certificate_and_plain_text_is_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Some(Tls::read(&cert, &key).unwrap());
    let house = House::with(Options { tls, metrics: false, ..Options::default() }).await;
    let address = house.address.replace("http://127.0.0.1", "https://localhost");

    drop(client());
    let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let trusting = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
    let answer = trusting.get(format!("{address}/healthz")).send().await.unwrap();
    assert!(answer.status().is_success());
    assert!(
        client().get(format!("{address}/healthz")).send().await.is_err(),
        "a stranger's certificate is not trusted"
    );
    assert!(client().get(format!("{}/healthz", house.address)).send().await.is_err(), "plain text is not answered");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_over_tls_never_travels_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let ann = token("ann", "shop", &[Scope::Admin]);
    let access = Access::Tokens(Arc::new(Tokens::new(std::slice::from_ref(&ann.token)).unwrap()));
    let tls = Some(Tls::read(&cert, &key).unwrap());
    let house = House::with(Options { tls, access, metrics: false, ..Options::default() }).await;
    let address = house.address.replace("http://127.0.0.1", "https://localhost");

    drop(client());
    let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let browser = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
    let begin = browser.post(format!("{address}/api/v1/session")).json(&serde_json::json!({ "token": ann.text }));
    let answer = begin.send().await.unwrap();
    let said = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(said.starts_with("__Host-") && said.ends_with("; Secure"), "{said}");
    let cookie = said.split(';').next().unwrap();
    // The same session under the name that any other host of the domain could set.
    let plain = cookie.strip_prefix("__Host-").unwrap();
    let asks = browser.get(format!("{address}/api/v1/whoami")).header("cookie", plain);
    assert_eq!(asks.send().await.unwrap().status().as_u16(), 401);
    let both = browser.get(format!("{address}/api/v1/whoami")).header("cookie", format!("outlast_session=x; {cookie}"));
    assert!(both.send().await.unwrap().status().is_success());
    let write = browser.put(format!("{address}/api/v1/workflows")).header("cookie", cookie).header("origin", &address);
    let write = write.json(&serde_json::json!({ "file": "n.wf", "text": "workflow n(x) { return x }" }));
    assert!(write.send().await.unwrap().status().is_success());
    house.leave().await;
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, none) = (folder.path().join("empty.pem"), folder.path().join("none.pem"));
    std::fs::write(&empty, "").unwrap();
    for file in [&empty, &none] {
        let error = Tls::read(file, file).unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()), "{error}");
    }
}
