//! Workflows that are text.

use serde_json::{Value, json};

use crate::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn new_runs_begin_with_what_was_put_last_and_others_go_on_with_what_they_began_with() {
    let house = House::open().await;
    let text = |n: u32| format!("workflow n(x) {{ await Signal.next(\"go\"); return {n} }}");
    house.script("n.wf", &text(1)).await;
    house.start(json!({ "workflow": "n", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    house.script("n.wf", &text(2)).await;
    house.start(json!({ "workflow": "n", "id": "b" })).await;
    let versions = house.get("/api/v1/workflows/n/versions").await.ok();
    let versions = versions["workflows"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!((&versions[0]["current"], &versions[1]["current"]), (&json!(false), &json!(true)));
    let old = versions[0]["version"].as_str().unwrap();
    let shown = house.get(&format!("/api/v1/workflows/n/versions/{old}")).await.ok();
    assert_eq!(shown["text"], text(1));
    assert_eq!(house.get("/api/v1/workflows/n").await.ok()["text"], text(2));
    house.start(json!({ "workflow": "n", "id": "c", "version": old })).await;
    for (run, output) in [("a", 1), ("b", 2), ("c", 1)] {
        house.post(&format!("/api/v1/runs/{run}/signals/go"), json!({})).await.ok();
        assert_eq!(house.result(run).await["output"], output, "{run}");
    }
    let all = house.get("/api/v1/workflows").await.ok();
    assert_eq!(all["workflows"].as_array().unwrap().len(), 1);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_a_text_are_told_with_their_lines_and_change_nothing() {
    let house = House::open().await;
    let put = |file: &str, text: &str| house.put("/api/v1/workflows", json!({ "file": file, "text": text }));
    let wrong = put("n.wf", "workflow n(x) {\n  return y +\n}").await;
    assert_eq!(wrong.refused(422), "validation_error");
    assert!(wrong.body["message"].as_str().unwrap().contains("n.wf:3"), "{wrong:?}");
    assert_eq!(put("n.flow.yaml", "flow: [").await.refused(422), "validation_error");
    for file in ["n", "", "n.txt", "../n.wf", "a\u{0}.wf", "a\nb.wf", ".flow.yaml.exe"] {
        assert_eq!(put(file, "return 1").await.refused(422), "validation_error", "{file:?}");
    }
    assert_eq!(house.get("/api/v1/workflows").await.ok()["workflows"], Value::Array(Vec::new()));
    let unknown = house.post("/api/v1/runs", json!({ "workflow": "n" })).await;
    assert_eq!(unknown.refused(404), "unknown_workflow");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_goes_on_without_a_node_that_an_operator_skips() {
    let house = House::open().await;
    let text = "flow: ship\nnodes:\n  - { id: ok, type: approve, title: 'Ship it?' }\n  - { id: sent, type: script, script: '${ok == null}' }\nresult: '${sent}'\n";
    house.script("ship.flow.yaml", text).await;
    house.start(json!({ "workflow": "ship", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    house.post("/api/v1/runs/a/retry", json!({ "node": "ok" })).await.ok();
    house.until("/api/v1/runs/a", |view| view["awaiting"][0]["key"] == "ok#2").await;
    house.post("/api/v1/runs/a/skip", json!({ "node": "ok#2", "reason": "everybody is away" })).await.ok();
    assert_eq!(house.result("a").await["output"], true);
    let refused = house.post("/api/v1/runs/a/skip", json!({ "node": "ok" })).await;
    assert!(refused.status.is_client_error(), "{refused:?}");
    house.leave().await;
}
