//! Schedules.

use serde_json::json;

use crate::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_put_triggered_paused_and_removed() {
    let house = House::open().await;
    house.script("n.wf", "workflow n(x) { return x }").await;
    let put = json!({ "cron": "0 3 * * *", "zone": "Europe/Berlin", "workflow": "n", "input": 7, "overlap": "allow", "note": "nightly" });
    let view = house.put("/api/v1/schedules/nightly", put.clone()).await.ok();
    assert_eq!((view["workflow"].as_str(), view["overlap"].as_str()), (Some("n"), Some("allow")));
    assert_eq!(view["next_times"].as_array().unwrap().len(), 5);
    assert_eq!(house.put("/api/v1/schedules/nightly", put).await.ok(), view, "the same again changes nothing");
    let triggered = house.post("/api/v1/schedules/nightly/trigger", json!({})).await.ok();
    assert_eq!(house.result(triggered["run"].as_str().unwrap()).await["output"], 7);
    house.post("/api/v1/schedules/nightly/pause", json!({ "reason": "holiday" })).await.ok();
    let paused = house.get("/api/v1/schedules/nightly").await.ok();
    assert_eq!((paused["paused"].as_str(), paused["next_times"].as_array().unwrap().len()), (Some("holiday"), 0));
    house.post("/api/v1/schedules/nightly/resume", json!({})).await.ok();
    let day = json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z" });
    assert_eq!(house.post("/api/v1/schedules/nightly/backfill", day).await.ok()["instants"], 1);
    house.delete("/api/v1/schedules/nightly").await.ok();
    assert_eq!(house.delete("/api/v1/schedules/nightly").await.refused(404), "not_found");
    assert_eq!(house.get("/api/v1/schedules").await.ok()["schedules"], json!([]));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_schedule_is_told() {
    let house = House::open().await;
    house.script("n.wf", "workflow n(x) { return x }").await;
    for wrong in [
        json!({ "workflow": "n" }),
        json!({ "workflow": "n", "cron": "every day" }),
        json!({ "workflow": "n", "cron": "0 3 * * *", "every_ms": 1000 }),
        json!({ "workflow": "n", "every_ms": 0 }),
        json!({ "workflow": "n", "every_ms": i64::MAX }),
        json!({ "workflow": "n", "cron": "0 3 * * *", "zone": "Nowhere/Land" }),
        json!({ "workflow": "n", "once_at": "soon" }),
        json!({ "workflow": "n", "cron": "0 3 * * *", "from": "2027-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z" }),
    ] {
        let answer = house.put("/api/v1/schedules/s", wrong.clone()).await;
        assert_eq!(answer.refused(422), "validation_error", "{wrong}");
    }
    // The document says so.
    for forbidden in [
        json!({ "workflow": "n", "every_ms": u64::MAX }),
        json!({ "workflow": "n", "cron": "0 3 * * *", "overlap": "maybe" }),
    ] {
        let answer = house.put("/api/v1/schedules/s", forbidden.clone()).await;
        assert_eq!(answer.refused(400), "validation_error", "{forbidden}");
    }
    let unknown = house.put("/api/v1/schedules/s", json!({ "workflow": "nobody", "every_ms": 60_000 })).await;
    assert_eq!(unknown.refused(404), "unknown_workflow");
    house.leave().await;
}
