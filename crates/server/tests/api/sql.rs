//! Questions in SQL: off unless somebody turns them on, and they only ever read.

use std::time::Instant;

use outlast::Outlast;
use outlast_server::{Access, Options, Scope, Tokens};
use serde_json::{Value, json};

use crate::house::{House, token};

async fn open() -> House {
    House::with(Options { metrics: false, sql: true, ..Options::default() }).await
}

fn ask(query: &str) -> Value {
    json!({ "query": query })
}

/// What must change nothing, on any database.
const WRITES: [&str; 16] = [
    "DELETE FROM run",
    "UPDATE run SET status = 5",
    "INSERT INTO namespace (id, name) VALUES (77, 'evil')",
    "DROP TABLE run",
    "CREATE TABLE evil (x INTEGER)",
    "CREATE TEMP TABLE evil (x INTEGER)",
    "CREATE TEMPORARY VIEW run AS SELECT 1 AS x",
    "ALTER TABLE run ADD COLUMN evil TEXT",
    "WITH gone AS (DELETE FROM run RETURNING *) SELECT * FROM gone",
    "SELECT 1) q) r; DELETE FROM run; SELECT (1",
    "BEGIN",
    "COMMIT",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "SELECT * FROM run FOR UPDATE; DELETE FROM run",
];

/// Whatever is asked, a run stays, and so does the secret by which tokens are made.
async fn only_reads(house: &House, more: &[&str]) {
    house.script("n.wf", "workflow n(x) { return x }").await;
    house.start(json!({ "workflow": "n", "id": "kept", "input": { "a": 1 } })).await;
    house.result("kept").await;
    for write in WRITES.iter().chain(more) {
        let answer = house.post("/api/v1/sql", ask(write)).await;
        assert_eq!(answer.refused(422), "validation_error", "{write}");
        assert_eq!(house.result("kept").await["output"], json!({ "a": 1 }), "{write}");
    }
    let found = house.post("/api/v1/sql", ask("SELECT DISTINCT id, workflow FROM run WHERE id = 'kept';")).await.ok();
    assert_eq!(found, json!({ "columns": ["id", "workflow"], "rows": [["kept", "n"]], "more": false }));
    let names = house.post("/api/v1/sql", ask("SELECT count(*) AS n FROM namespace WHERE name = 'evil'")).await.ok();
    assert_eq!(names["rows"], json!([[0]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_none_unless_it_is_told_to() {
    let house = House::open().await;
    let refused = house.post("/api/v1/sql", ask("SELECT 1")).await;
    assert_eq!(refused.refused(404), "not_found");
    assert!(refused.body["hint"].as_str().unwrap().contains("sql = true"), "{refused:?}");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_to_sqlite_reads_and_nothing_else() {
    let house = open().await;
    let more = [
        "PRAGMA writable_schema = on",
        "PRAGMA journal_mode = DELETE",
        "ATTACH DATABASE 'evil.db' AS evil",
        "SELECT load_extension('evil')",
        "SELECT value FROM secret",
        "SELECT hex(value) FROM main.secret",
        "WITH s AS (SELECT * FROM secret) SELECT * FROM s",
        "SELECT * FROM wait",
        "SELECT token FROM wait",
        "SELECT key FROM wait WHERE token LIKE 'a%'",
        "SELECT w.\"TOKEN\" FROM main.wait AS w",
        "SELECT data FROM sqlite_dbpage",
        "SELECT * FROM pragma_table_info('secret')",
    ];
    only_reads(&house, &more).await;
    house.post("/api/v1/sql", ask("SELECT key, kind FROM wait")).await.ok();
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_takes_no_longer_and_is_given_no_more_than_it_may() {
    let house = open().await;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    let since = Instant::now();
    let late = house.post("/api/v1/sql", ask(&format!("{endless} SELECT count(*) FROM n"))).await;
    assert_eq!(late.refused(422), "validation_error");
    assert!(late.body["message"].as_str().unwrap().contains("longer than 5s"), "{late:?}");
    assert!(since.elapsed().as_secs() < 15, "{:?}", since.elapsed());
    let many = house.post("/api/v1/sql", ask(&format!("{endless} SELECT i FROM n"))).await.ok();
    assert_eq!((many["rows"].as_array().unwrap().len(), &many["more"]), (1_000, &json!(true)));
    let few = json!({ "query": format!("{endless} SELECT i FROM n"), "limit": 3 });
    assert_eq!(house.post("/api/v1/sql", few).await.ok()["rows"], json!([[1], [2], [3]]));
    let large = house.post("/api/v1/sql", ask(&format!("{endless} SELECT hex(zeroblob(100000)) FROM n"))).await.ok();
    let bytes = large.to_string().len();
    assert!(bytes > 500_000 && bytes < 1_200_000 && large["more"] == true, "{bytes}");
    let huge = house.post("/api/v1/sql", ask("SELECT zeroblob(1000000000)")).await;
    assert_eq!(huge.refused(422), "validation_error");
    for wrong in [json!({ "query": "SELECT 1", "limit": 0 }), json!({ "query": "SELECT 1", "limit": 1001 }), ask("")] {
        assert_eq!(house.post("/api/v1/sql", wrong.clone()).await.refused(422), "validation_error", "{wrong}");
    }
    house.leave().await;
}

/// It sees every namespace, so that it is for those who run the server.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_of_the_server_s_own_namespace_may_ask() {
    let own = token("own", "default", &[Scope::Admin]);
    let other = token("other", "shop", &[Scope::Admin]);
    let reader = token("reader", "default", &[Scope::Read, Scope::Start, Scope::Worker]);
    let tokens = [&own, &other, &reader].map(|new| new.token.clone());
    let access = Access::Tokens(std::sync::Arc::new(Tokens::new(&tokens).unwrap()));
    let house = House::with(Options { access, metrics: false, sql: true, ..Options::default() }).await;
    let house = house.showing(&other.text);
    assert_eq!(house.post("/api/v1/sql", ask("SELECT 1")).await.refused(403), "forbidden");
    let house = house.showing(&reader.text);
    assert_eq!(house.post("/api/v1/sql", ask("SELECT 1")).await.refused(403), "forbidden");
    let house = house.showing(&own.text);
    assert_eq!(house.post("/api/v1/sql", ask("SELECT 1 AS x")).await.ok()["rows"], json!([[1]]));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_to_postgres_reads_and_nothing_else() {
    let url = crate::postgres::url();
    let folder = tempfile::tempdir().unwrap();
    let engine = Outlast::postgres(&url).start().await.unwrap();
    let space = format!("sql-{}", std::process::id());
    let engine = engine.in_namespace(&space).await.unwrap();
    let house = House::on(engine, Options { metrics: false, sql: true, ..Options::default() }, folder).await;
    let more = [
        "COPY run TO STDOUT",
        "COPY (SELECT 1) TO PROGRAM 'touch evil'",
        "SELECT nextval('run_seq')",
        "SELECT set_config('transaction_read_only', 'off', true), (SELECT count(*) FROM run)",
        "LOCK TABLE run",
        "SELECT 1 AS x, 2 AS x",
        "NOTIFY evil",
        "SET ROLE postgres",
        "SELECT count(*) AS n FROM secret",
        "SELECT query_to_xml('SELECT * FROM secret', true, false, '')::text AS x",
        "SELECT set_config('role', 'none', true) AS x",
        "SELECT * FROM wait",
    ];
    only_reads(&house, &more).await;
    let late = house.post("/api/v1/sql", ask("SELECT pg_sleep(60)::text AS x")).await;
    assert!(late.body["message"].as_str().unwrap().contains("longer than 5s"), "{late:?}");
    let many = house.post("/api/v1/sql", ask("SELECT i FROM generate_series(1, 100000) i")).await.ok();
    assert_eq!((many["rows"].as_array().unwrap().len(), &many["more"]), (1_000, &json!(true)));
    let huge = house.post("/api/v1/sql", ask("SELECT repeat('x', 100000000) AS x")).await.ok();
    assert_eq!((&huge["rows"], &huge["more"]), (&json!([]), &json!(true)));
    // What a question locks is free when it is answered: its connection is gone.
    house.post("/api/v1/sql", ask("SELECT pg_advisory_lock(4711)::text AS x")).await.ok();
    house.post("/api/v1/sql", ask("SELECT pg_advisory_lock(4711)::text AS x")).await.ok();
    // And the secret is where it was: a token of before is good.
    house.script("w.wf", "workflow w(x) { return await Task.run(\"elsewhere\", x) }").await;
    house.start(json!({ "workflow": "w", "id": "w" })).await;
    let claim = json!({ "worker": space, "id": 1, "names": ["elsewhere"], "wait_ms": 10_000 });
    let offer = house.post("/api/v1/work/claim", claim).await.ok()["tasks"][0]["token"].clone();
    house.post("/api/v1/sql", ask("SELECT 1 AS x")).await.ok();
    house.post("/api/v1/work/complete", json!({ "token": offer, "result": 5 })).await.ok();
    assert_eq!(house.result("w").await["output"], 5);
    house.leave().await;
}
