//! Two servers on one PostgreSQL.

use std::sync::Arc;

use outlast::Outlast;
use outlast_server::{Access, Options, Scope, Tokens};
use reqwest::{Method, header};
use serde_json::json;

use crate::house::{Answer, House, token};

pub(crate) fn url() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES")
}

async fn house(schema: &str) -> House {
    let engine = Outlast::postgres(url()).start().await.unwrap();
    let engine = engine.in_namespace(schema).await.unwrap();
    let options = Options { metrics: false, ..Options::default() };
    House::on(engine, options, tempfile::tempdir().unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_server_is_told_the_other_one_knows() {
    let namespace = format!("server-{}", std::process::id());
    let (one, two) = (house(&namespace).await, house(&namespace).await);
    one.script("waits.wf", "workflow waits(input) { return await Signal.next(\"word\") }").await;
    one.start(json!({ "workflow": "waits", "id": "a", "input": "a\u{e4}" })).await;
    let (told, watching) = (two.address.clone(), two.client.clone());
    let watching = tokio::spawn(async move {
        watching.get(format!("{told}/api/v1/runs/a/stream")).send().await.unwrap().text().await.unwrap()
    });
    two.post("/api/v1/runs/a/signals/word", json!({ "payload": "from the other side", "id": "s" })).await.ok();
    assert_eq!(two.result("a").await["output"], "from the other side");
    assert_eq!(one.result("a").await["output"], "from the other side");
    assert!(watching.await.unwrap().contains("RUN_FINISHED"));
    let again = one.post("/api/v1/runs/a/signals/word", json!({ "payload": 1, "id": "s" })).await.ok();
    assert_eq!(again["outcome"], "duplicate");
    // What no text column of PostgreSQL can hold.
    for (path, body) in [
        ("/api/v1/runs/a/pause", json!({ "reason": "a\u{0}b" })),
        ("/api/v1/runs", json!({ "workflow": "waits", "id": "b", "attributes": { "x": "a\u{0}b" } })),
        ("/api/v1/runs", json!({ "workflow": "waits", "id": "a\u{0}b" })),
    ] {
        assert_eq!(one.post(path, body).await.refused(422), "validation_error");
    }
    assert_eq!(one.delete("/api/v1/runs/a?reason=a%00b").await.refused(422), "validation_error");
    one.start(json!({ "workflow": "waits", "id": "c", "input": "a\u{0}b" })).await;
    one.leave().await;
    two.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_begun_at_one_server_is_known_by_the_other() {
    let ann = token("ann", "default", &[Scope::Read]);
    let servers = [ann.token.clone(), ann.token.clone()].map(|known| async move {
        let access = Access::Tokens(Arc::new(Tokens::new(&[known]).unwrap()));
        let engine = Outlast::postgres(url()).start().await.unwrap();
        House::on(engine, Options { access, metrics: false, ..Options::default() }, tempfile::tempdir().unwrap()).await
    });
    let [one, two] = servers;
    let (one, two) = (one.await, two.await);
    let begins = one.request(Method::POST, "/api/v1/session").header(header::ORIGIN, &one.address);
    let begun = begins.json(&json!({ "token": ann.text })).send().await.unwrap();
    let cookie = begun.headers()[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let asked = two.request(Method::GET, "/api/v1/whoami").header(header::COOKIE, cookie).send().await.unwrap();
    assert_eq!(Answer::of(asked).await.ok()["name"], "ann");
    one.leave().await;
    two.leave().await;
}
