//! What happened in a run: page by page, and live.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::house::House;

const TALKS: &str = "workflow talks(input) {
  let a = await Signal.next(\"word\");
  let b = await Signal.next(\"word\");
  return a + b
}";

/// A server-sent event.
#[derive(Debug, Default, PartialEq)]
struct Told {
    id: Option<String>,
    event: String,
    data: Value,
}

/// Reads events until there are so many, or the stream ends.
async fn read(response: Response, count: usize) -> Vec<Told> {
    assert_eq!(response.status().as_u16(), 200);
    let (mut text, mut told) = (String::new(), Vec::new());
    let mut chunks = response.bytes_stream();
    while told.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(20), chunks.next()).await.expect("an event in time");
        let Some(chunk) = next else { break };
        text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        while let Some((event, rest)) = text.clone().split_once("\n\n") {
            told.extend(parse(event));
            text = rest.to_owned();
        }
    }
    told
}

fn parse(text: &str) -> Option<Told> {
    let mut told = Told::default();
    for line in text.lines() {
        match line.split_once(": ").or_else(|| line.split_once(':')) {
            Some(("id", id)) => told.id = Some(id.to_owned()),
            Some(("event", event)) => told.event = event.to_owned(),
            Some(("data", data)) => told.data = serde_json::from_str(data).unwrap(),
            _ => {}
        }
    }
    (!told.event.is_empty()).then_some(told)
}

async fn stream(house: &House, last: Option<&str>) -> Response {
    let request = house.request(Method::GET, "/api/v1/runs/a/stream");
    let request = if let Some(last) = last { request.header("last-event-id", last) } else { request };
    request.send().await.unwrap()
}

fn kinds(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.event.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_is_read_in_pages() {
    let house = House::open().await;
    house.script("talks.wf", TALKS).await;
    house.start(json!({ "workflow": "talks", "id": "a" })).await;
    for word in ["x", "y"] {
        house.post("/api/v1/runs/a/signals/word", json!({ "payload": word })).await.ok();
    }
    assert_eq!(house.result("a").await["output"], "xy");
    let all = house.get("/api/v1/runs/a/events").await.ok();
    let all = all["events"].as_array().unwrap();
    assert!(all.len() >= 4, "{all:?}");
    assert_eq!(all.last().unwrap()["kind"], "RUN_FINISHED");
    let (mut paged, mut from) = (Vec::new(), 0);
    loop {
        let page = house.get(&format!("/api/v1/runs/a/events?limit=2&from={from}")).await.ok();
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            break;
        }
        paged.extend(events.clone());
        from = page["next"].as_u64().unwrap();
    }
    assert_eq!(&paged, all);
    for (index, event) in all.iter().enumerate() {
        assert_eq!(event["index"], index);
    }
    assert!(house.get("/api/v1/runs/a/events?generation=7").await.ok()["events"].as_array().unwrap().is_empty());
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_cut_off_goes_on_behind_the_last_event_it_saw() {
    let house = House::open().await;
    house.script("talks.wf", TALKS).await;
    house.start(json!({ "workflow": "talks", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    let first = read(stream(&house, None).await, 2).await;
    assert_eq!(kinds(&first), ["RUN_STARTED", "SIGNAL_AWAITED"]);
    assert_eq!((first[0].id.as_deref(), first[1].id.as_deref()), (None, Some("0")));

    for word in ["x", "y"] {
        house.post("/api/v1/runs/a/signals/word", json!({ "payload": word })).await.ok();
    }
    house.result("a").await;
    let rest = read(stream(&house, first[1].id.as_deref()).await, usize::MAX).await;
    let page = house.get("/api/v1/runs/a/events?from=1").await.ok();
    let page = page["events"].as_array().unwrap();
    assert_eq!(rest.len(), page.len() + 1, "{rest:?}");
    for (told, event) in rest.iter().zip(page) {
        assert_eq!(&told.data, event);
        assert_eq!(told.id.as_deref(), Some(&*event["index"].to_string()));
    }
    assert_eq!(
        (rest.last().unwrap().event.as_str(), &rest.last().unwrap().data),
        ("end", &json!({ "status": "completed" }))
    );

    let last = page.last().unwrap()["index"].to_string();
    assert_eq!(stream(&house, Some(&last)).await.status().as_u16(), 204, "nothing more to come");
    for wrong in ["x", "-1", "99", "1:0", "18446744073709551615"] {
        assert_eq!(stream(&house, Some(wrong)).await.status().as_u16(), 422, "{wrong}");
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_told_as_it_happens() {
    let house = House::open().await;
    house.script("talks.wf", TALKS).await;
    house.start(json!({ "workflow": "talks", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    let watching = stream(&house, None).await;
    let watching = tokio::spawn(read(watching, usize::MAX));
    for word in ["x", "y"] {
        house.post("/api/v1/runs/a/signals/word", json!({ "payload": word })).await.ok();
    }
    let told = tokio::time::timeout(Duration::from_secs(20), watching).await.unwrap().unwrap();
    let journal = house.get("/api/v1/runs/a/events").await.ok();
    let stored: Vec<&str> =
        journal["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    let kept: Vec<&str> = told.iter().filter(|told| told.id.is_some()).map(|told| told.event.as_str()).collect();
    assert_eq!(kept, stored);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sixty_fifth_who_watches_a_run_is_refused_and_a_place_is_given_back() {
    let house = House::open().await;
    house.script("talks.wf", TALKS).await;
    house.start(json!({ "workflow": "talks", "id": "a" })).await;
    let mut watching = Vec::new();
    for _ in 0..64 {
        watching.push(stream(&house, None).await);
    }
    assert!(watching.iter().all(|response| response.status().as_u16() == 200));
    assert_eq!(stream(&house, None).await.status().as_u16(), 429);
    watching.pop();
    for _ in 0..200 {
        if stream(&house, None).await.status().as_u16() == 200 {
            drop(watching);
            house.leave().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the place was never given back");
}
