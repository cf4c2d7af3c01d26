//! The OpenAPI document is what is committed, and has every route.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_committed_document_is_the_server_s() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let document = outlast_server::openapi();
    if std::env::var_os("OUTLAST_WRITE_OPENAPI").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == document,
        "crates/server/openapi.json is out of date; write it anew with OUTLAST_WRITE_OPENAPI=1 and look at what changed"
    );
}

#[test]
fn every_route_is_in_the_document_and_in_the_table() {
    let document: serde_json::Value = serde_json::from_str(&outlast_server::openapi()).unwrap();
    let mut described: Vec<(String, String)> = Vec::new();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path} says what it does");
            assert!(names.insert(operation["operationId"].to_string()), "{method} {path} has a name of its own");
            described.push((method.to_uppercase(), path.clone()));
        }
    }
    let mut table: Vec<(String, String)> =
        outlast_server::routes().into_iter().map(|route| (route.method.to_owned(), route.path)).collect();
    described.sort();
    table.sort();
    assert_eq!(table, described);
    table.dedup();
    assert_eq!(table.len(), described.len(), "no route is there twice");
}
