//! One action for many runs.

use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{Answer, House};

const WAITS: &str = "workflow waits() { return await Signal.next(\"word\") }";

async fn waiting(count: usize) -> House {
    let house = House::open().await;
    house.script("waits.wf", WAITS).await;
    for number in 0..count {
        house.start(json!({ "workflow": "waits", "id": format!("w-{number}") })).await;
    }
    house.start(json!({ "workflow": "waits", "id": "other" })).await;
    house
}

async fn bulk(house: &House, key: &str, body: &Value) -> Answer {
    let request = house.request(Method::POST, "/api/v1/bulk").header("idempotency-key", key).json(body);
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_counted_first_and_then_all_of_them_are_told_once() {
    let house = waiting(30).await;
    let request = json!({ "action": "cancel", "workflow": "waits", "prefix": "w-", "reason": "a mistake" });
    let mut count = request.clone();
    count["dry_run"] = true.into();
    let counted = bulk(&house, "k", &count).await.ok();
    assert_eq!((&counted["state"], &counted["matched"], &counted["done"]), (&json!("counted"), &json!(30), &json!(0)));
    let begun = bulk(&house, "k", &request).await.ok();
    assert_eq!(begun["matched"], 30);
    // The same key is the same action, whatever became of it.
    assert_eq!(bulk(&house, "k", &request).await.ok()["bulk"], begun["bulk"]);
    let path = format!("/api/v1/bulk/{}", begun["bulk"].as_str().unwrap());
    let done = house.until(&path, |view| view["state"] == "done").await;
    assert_eq!((&done["done"], &done["refused"]), (&json!(30), &json!(0)), "{done}");
    for number in 0..30 {
        house.until_status(&format!("w-{number}"), "cancelled").await;
    }
    assert_eq!(house.get("/api/v1/runs/other").await.ok()["summary"]["status"], "waiting");
    let again = bulk(&house, "other key", &request).await.ok();
    assert_eq!((&again["matched"], &again["state"]), (&json!(0), &json!("done")));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_when_whoever_asked_is_gone() {
    let house = waiting(300).await;
    let paused = |counts: &Value| counts["counts"]["paused"].as_u64().unwrap_or(0);
    let mut cut_in_the_middle = false;
    // How fast they are told depends on the machine: one of these connections is cut before it is over.
    for (action, from, to) in [("pause", 0, 300), ("resume", 300, 0)].into_iter().cycle().take(12) {
        let body = json!({ "action": action, "prefix": "w-" }).to_string();
        let head = format!(
            "POST /api/v1/bulk HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        {
            use tokio::io::AsyncWriteExt;
            let address = house.address.strip_prefix("http://").unwrap();
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            // Nobody waits for the answer.
            let begun = house.until("/api/v1/counts", |counts| paused(counts) != from).await;
            cut_in_the_middle |= paused(&begun) != to;
        }
        house.until("/api/v1/counts", |counts| paused(counts) == to).await;
        if cut_in_the_middle {
            break;
        }
    }
    assert!(cut_in_the_middle, "each was over before its connection was cut");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_acts_on_everything_by_forgetting_to_say_what() {
    let house = waiting(1).await;
    for body in [json!({ "action": "delete" }), json!({ "action": "cancel", "reason": "x" })] {
        assert_eq!(bulk(&house, "k", &body).await.refused(422), "validation_error");
    }
    assert_eq!(bulk(&house, "k", &json!({ "action": "explode", "all": true })).await.refused(400), "validation_error");
    let all = bulk(&house, "all", &json!({ "action": "terminate", "all": true })).await.ok();
    assert_eq!(all["matched"], 2);
    house.until_status("w-0", "cancelled").await;
    house.until_status("other", "cancelled").await;
    house.leave().await;
}
