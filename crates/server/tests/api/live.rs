//! Lists that follow what happens, and runs that are looked back at.

use std::time::Duration;

use outlast::{Ctx, Outlast};
use outlast_server::Options;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::house::House;

const ASK: &str = "workflow ask(input) {\n  let asked = 0\n  const answer = await Signal.next(\"answer\")\n  asked = answer\n  \
                   const more = await Signal.next(\"more\")\n  return asked\n}";

/// Somebody who watches a list.
struct Watcher {
    response: Response,
    read: String,
}

impl Watcher {
    async fn of(house: &House, query: &str) -> Watcher {
        let response = house.request(Method::GET, &format!("/api/v1/changes/stream?{query}")).send().await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        Watcher { response, read: String::new() }
    }

    /// What is told next.
    async fn next(&mut self) -> Value {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.read = rest.to_owned();
                match data {
                    Some(data) => return serde_json::from_str(&data).unwrap(),
                    None => continue,
                }
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.response.chunk()).await;
            let chunk = chunk.expect("something is told").unwrap().expect("the stream goes on");
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// What is told until this holds.
    async fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let told = self.next().await;
            if holds(&told) {
                return told;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_a_list_is_told_what_is_new_and_only_that() {
    let house = House::open().await;
    house.script("ask.wf", ASK).await;
    house.start(json!({ "workflow": "ask", "id": "first" })).await;
    house.until_status("first", "waiting").await;
    let mut watcher = Watcher::of(&house, "workflow=ask").await;
    let all = watcher.next().await;
    assert_eq!(all["order"], json!(["first"]));
    assert_eq!(all["runs"][0]["status"], "waiting");
    assert_eq!(all["counts"], json!({ "waiting": 1 }));

    house.start(json!({ "workflow": "ask", "id": "second" })).await;
    let told = watcher.until(|told| told.get("order").is_some()).await;
    assert_eq!(told["order"], json!(["second", "first"]));
    assert_eq!(told["runs"].as_array().unwrap().len(), 1, "what is known is not told again: {told}");
    watcher.until(|told| told["counts"] == json!({ "waiting": 2 })).await;

    house.post("/api/v1/runs/first/cancel", json!({})).await.ok();
    let told = watcher.until(|told| told["runs"][0]["status"] == "cancelled").await;
    assert_eq!((&told["runs"][0]["run"], told.get("order")), (&json!("first"), None));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_followed_by_its_filter_and_a_wrong_one_is_refused() {
    let house = House::open().await;
    house.script("ask.wf", ASK).await;
    let mut watcher = Watcher::of(&house, "prefix=a-&status=waiting").await;
    assert_eq!(watcher.next().await["order"], json!([]));
    for run in ["b-1", "a-1"] {
        house.start(json!({ "workflow": "ask", "id": run })).await;
    }
    let told = watcher.until(|told| told.get("order").is_some()).await;
    assert_eq!(told["order"], json!(["a-1"]));
    for (wrong, status) in
        [("status=odd", 422), ("cursor=x", 422), ("limit=0", 400), ("nothing=1", 400), ("workflow=", 422)]
    {
        house.get(&format!("/api/v1/changes/stream?{wrong}")).await.refused(status);
    }
    assert_eq!(house.get("/api/v1/counts").await.ok()["counts"], json!({ "waiting": 2 }));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_further_down_is_followed_too() {
    let house = House::open().await;
    house.script("ask.wf", ASK).await;
    for run in ["first", "second", "third"] {
        house.start(json!({ "workflow": "ask", "id": run })).await;
        house.until_status(run, "waiting").await;
    }
    let head = house.get("/api/v1/runs?limit=1").await.ok();
    let cursor = head["next"].as_str().unwrap();
    let mut watcher = Watcher::of(&house, &format!("limit=1&cursor={cursor}")).await;
    let all = watcher.next().await;
    assert_eq!((&all["order"], all.get("counts")), (&json!(["second"]), None));
    // What is before it and behind it is not its business, and a newer run moves nothing.
    house.start(json!({ "workflow": "ask", "id": "fourth" })).await;
    for run in ["first", "third", "second"] {
        house.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.ok();
        house.until_status(run, "cancelled").await;
    }
    let mut told = watcher.next().await;
    while told["runs"][0]["status"] != "cancelled" {
        assert_eq!((&told["runs"][0]["run"], told.get("order")), (&json!("second"), None), "{told}");
        told = watcher.next().await;
    }
    assert_eq!((told["runs"].as_array().unwrap().len(), &told["runs"][0]["run"]), (1, &json!("second")), "{told}");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_looked_back_at_after_any_event() {
    let house = House::open().await;
    house.script("ask.wf", ASK).await;
    house.start(json!({ "workflow": "ask", "id": "a" })).await;
    house.post("/api/v1/runs/a/signals/answer", json!({ "payload": "<b>7</b>" })).await.ok();
    house.until("/api/v1/runs/a/events", |page| page["events"].as_array().unwrap().len() == 3).await;
    let seen = |at: u64| format!("/api/v1/runs/a/trace?at={at}");
    let variable = |trace: &Value, name: &str| {
        let pairs = trace["waiting"][0]["variables"].as_array().unwrap().clone();
        pairs.into_iter().find(|pair| pair["name"] == name).map(|pair| pair["value"].clone())
    };
    let before = house.get(&seen(0)).await.ok();
    assert_eq!((&before["at"], &before["events"], &before["waiting"][0]["line"]), (&json!(0), &json!(3), &json!(3)));
    assert_eq!(variable(&before, "asked"), Some(json!("0")));
    assert_eq!(variable(&before, "answer"), None, "it has none yet");
    let now = house.get("/api/v1/runs/a/trace").await.ok();
    assert_eq!((&now["at"], &now["waiting"][0]["line"]), (&json!(3), &json!(5)));
    assert_eq!(variable(&now, "asked"), Some(json!("\"<b>7</b>\"")));
    assert_eq!(house.get(&seen(999)).await.ok(), now, "behind the end is the end");
    house.get("/api/v1/runs/nobody/trace").await.refused(404);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_a_callback_is_not_among_the_variables() {
    let house = House::open().await;
    let text = "workflow call(x) {\n  const bank = Callback.create({ id: \"bank\" })\n  const secret = bank.token\n  \
                return await bank\n}";
    house.script("call.wf", text).await;
    house.start(json!({ "workflow": "call", "id": "a" })).await;
    house.until_status("a", "waiting").await;
    let seen = house.get("/api/v1/runs/a/trace").await.ok().to_string();
    assert!(seen.contains("token of"), "{seen}");
    let hexadecimal = |word: &str| word.len() == 64 && word.chars().all(|c| c.is_ascii_hexdigit());
    assert!(!seen.split(|c: char| !c.is_ascii_alphanumeric()).any(hexadecimal), "{seen}");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_stands_where_it_stood_after_any_event() {
    let house = House::open().await;
    let text =
        "flow: two\nnodes:\n  - { id: one, type: wait, signal: one }\n  - { id: two, type: wait, signal: two }\n";
    house.put("/api/v1/workflows", json!({ "file": "two.flow.yaml", "text": text })).await.ok();
    house.start(json!({ "workflow": "two", "id": "a" })).await;
    house.post("/api/v1/runs/a/signals/one", json!({ "payload": 1 })).await.ok();
    house.until("/api/v1/runs/a/position", |position| position["current_node"] == "two").await;
    assert_eq!(house.get("/api/v1/runs/a/position?at=0").await.ok()["current_node"], "one");
    house.get("/api/v1/runs/a/trace").await.refused(422);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_operations_were_asked_for_is_told_of_code_and_of_scripts_also_when_they_are_done() {
    async fn calls(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("first", async |_| Ok(())).await?;
        let _: Value = ctx.wait_for("go").await?;
        Ok(())
    }
    let folder = tempfile::tempdir().unwrap();
    let engine = Outlast::sqlite(folder.path().join("house.db")).workflow("calls", calls).start().await.unwrap();
    let house = House::on(engine, Options::default(), folder).await;
    house.script("ask.wf", ASK).await;
    for (workflow, run) in [("calls", "code"), ("ask", "script")] {
        house.start(json!({ "workflow": workflow, "id": run })).await;
        house.until_status(run, "waiting").await;
    }
    house.post("/api/v1/runs/script/signals/answer", json!({ "payload": 7 })).await.ok();
    house.until("/api/v1/runs/script/events", |page| page["events"].as_array().unwrap().len() == 3).await;
    let told = async |run: &str| {
        let found = house.get(&format!("/api/v1/runs/{run}/locations")).await.ok();
        let all = found["locations"].as_array().unwrap().clone().into_iter();
        all.map(|one| format!("{} {}", one["key"].as_str().unwrap(), one["location"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let script = told("script").await;
    assert_eq!(script, ["__wait-answer-0 ask.wf:3:24", "__wait-more-0 ask.wf:5:22"]);
    let code = told("code").await;
    let line = line!() - 23;
    let at = |key: &str, line: u32, column: u32| format!("{key} {}:{line}:{column}", file!());
    assert_eq!(code, [at("__wait-go-0", line + 1, 28), at("first", line, 13)]);
    house.get("/api/v1/runs/nobody/locations").await.refused(404);
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_goes_another_way_says_places_up_to_there_and_code_that_is_not_here_none() {
    async fn before(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("first", async |_| Ok(())).await?;
        ctx.step("second", async |_| Ok(())).await
    }
    async fn after(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("first", async |_| Ok(())).await?;
        ctx.step("other", async |_| Ok(())).await
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("house.db");
    let engine = Outlast::sqlite(&file).workflow("calls", before).workflow("gone", before).start().await.unwrap();
    for workflow in ["calls", "gone"] {
        engine.start(workflow, &()).id(workflow).await.unwrap().result::<()>().await.unwrap();
    }
    engine.shutdown().await;
    let engine = Outlast::sqlite(&file).workflow("calls", after).start().await.unwrap();
    let house = House::on(engine, Options::default(), folder).await;
    let told = house.get("/api/v1/runs/calls/locations").await.ok();
    let keys: Vec<_> = told["locations"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!((&told["events"], keys), (&json!(3), vec!["first", "other"]), "{told}");
    let divergence = told["divergence"].as_str().unwrap();
    assert!(divergence.contains("STEP_FINISHED \"second\"") && divergence.contains("\"other\""), "{divergence}");
    let unknown = house.get("/api/v1/runs/gone/locations").await;
    unknown.refused(422);
    assert!(unknown.body["message"].as_str().unwrap().contains("gone version 1"), "{unknown:?}");
    house.leave().await;
}
