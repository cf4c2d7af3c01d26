//! What waits for people, and for those who hold a token.

use outlast::{Ctx, Outlast};
use outlast_server::{Options, Scope};
use reqwest::Method;
use serde_json::json;

use crate::house::{Answer, House, token};

const ASKS: &str = "workflow asks(input) {
  let decision = await Approval.request({ title: \"Ship it?\", assignee: \"ann\" });
  return decision
}";

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_decided_once_by_whoever_s_token_it_is() {
    let (ann, bob) = (token("ann", "default", &[Scope::Approve]), token("bob", "default", &[Scope::Approve]));
    let (ann_text, bob_text) = (ann.text.clone(), bob.text.clone());
    let house = House::guarded(&[ann, bob]).await;
    house.script("asks.wf", ASKS).await;
    house.start(json!({ "workflow": "asks", "id": "a" })).await;
    let inbox = house.until("/api/v1/approvals", |inbox| inbox["approvals"][0].is_object()).await;
    let approval = &inbox["approvals"][0];
    assert_eq!((approval["run"].as_str(), approval["title"].as_str()), (Some("a"), Some("Ship it?")));
    assert_eq!(approval["assignee"], "ann");
    let name = approval["approval"].as_str().unwrap();
    let decide = |token: &str, key: &str, approved: bool| {
        let request = house.client.post(format!("{}/api/v1/runs/a/approvals/{name}", house.address));
        let request = request.bearer_auth(token).header("idempotency-key", key);
        request.json(&json!({ "approved": approved, "feedback": "gladly" })).send()
    };
    let first = Answer::of(decide(&ann_text, "k1", true).await.unwrap()).await.ok();
    assert_eq!(first["outcome"], "delivered");
    let again = Answer::of(decide(&ann_text, "k1", true).await.unwrap()).await.ok();
    assert_eq!(again["outcome"], "duplicate");
    let second = Answer::of(decide(&bob_text, "k2", false).await.unwrap()).await;
    assert_eq!(second.refused(409), "approval_lost");
    house.result("a").await;
    let events = house.get("/api/v1/runs/a/events").await.ok();
    let resolved =
        events["events"].as_array().unwrap().iter().find(|event| event["kind"] == "APPROVAL_RESOLVED").unwrap();
    assert_eq!(resolved["data"]["by"], "ann", "{resolved}");
    assert!(house.get("/api/v1/approvals").await.ok()["approvals"].as_array().unwrap().is_empty());
    house.leave().await;
}

async fn calls(ctx: Ctx, _: ()) -> outlast::Result<String> {
    ctx.callback::<String>().create().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_a_callback_s_token_answers_it_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Outlast::sqlite(folder.path().join("house.db")).workflow("calls", calls).start().await.unwrap();
    let logged = tempfile::tempdir().unwrap();
    let audit = logged.path().join("audit.jsonl");
    let options = Options { metrics: false, audit: Some(audit.clone()), ..Options::default() };
    let house = House::on(engine, options, folder).await;
    house.start(json!({ "workflow": "calls", "id": "a" })).await;
    let view = house.until_status("a", "waiting").await;
    let key = view["awaiting"][0]["key"].as_str().unwrap();
    let forked = house.engine.run("a").unwrap().fork(1).id("b").await.unwrap();
    let token = forked.reissued[0].token.clone().unwrap();
    house.until_status("b", "waiting").await;

    let wrong = [
        format!("/callbacks/default/a/{key}/{token}/resolve"),
        format!("/callbacks/other/b/{key}/{token}/resolve"),
        format!("/callbacks/default/nobody/{key}/{token}/resolve"),
        format!("/callbacks/default/b/{key}/{}/resolve", "0".repeat(64)),
        format!("/callbacks/default/b/{key}/x/resolve"),
        format!("/callbacks/default/b/other/{token}/resolve"),
    ];
    let mut said = Vec::new();
    for path in wrong {
        let answer = house.post(&path, json!({ "value": "paid" })).await;
        assert_eq!(answer.refused(404), "not_found", "{path}");
        said.push(answer.body);
    }
    said.dedup();
    assert_eq!(said.len(), 1, "whatever is wrong, the answer is the same");
    let own = format!("/callbacks/default/b/{key}/{token}/resolve");
    let request = house.request(Method::POST, &own).json(&json!({ "value": "paid" }));
    assert_eq!(Answer::of(request.send().await.unwrap()).await.ok()["outcome"], "delivered");
    assert_eq!(house.result("b").await["output"], "paid");
    // Whoever holds the token is told that it is too late; others learn nothing, also not that the run has ended.
    let late = house.post(&own, json!({ "value": "again" })).await;
    assert_eq!(late.status.as_u16(), 409, "{late:?}");
    for verb in ["resolve", "fail", "heartbeat"] {
        let body = if verb == "fail" { json!({ "error": { "code": "x", "message": "x" } }) } else { json!({}) };
        let path = format!("/callbacks/default/b/{key}/{}/{verb}", "0".repeat(64));
        assert_eq!(house.post(&path, body).await.body, said[0], "{verb}");
    }
    house.leave().await;
    let log = std::fs::read_to_string(&audit).unwrap();
    let answers: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["who"] == "callback")
        .collect();
    assert_eq!(answers.len(), 2, "{log}");
    let action = "POST /callbacks/{namespace}/{run}/{callback}/{token}/resolve";
    for (line, status) in answers.iter().zip([200, 409]) {
        assert_eq!((&line["action"], &line["status"]), (&json!(action), &json!(status)));
        assert_eq!(
            (&line["namespace"], &line["target"]),
            (&json!("default"), &json!(format!("/callbacks/default/b/{key}")))
        );
    }
    assert!(!log.contains(&token), "{log}");
}
