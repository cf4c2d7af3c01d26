//! Every example runs with the real binary, as its reader would run it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place::{Place, root};

fn example(name: &str) -> String {
    root().join("examples/scripts").join(name).to_string_lossy().into_owned()
}

fn output(place: &Place, args: &[&str]) -> Value {
    place.call(args).exits(0).json()
}

#[test]
fn the_readmes_first_command_ends_by_itself() {
    let place = Place::new(&[]);
    let since = Instant::now();
    let said = place.call(&["run", &example("checkout.wf")]).exits(0);
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert_eq!((said.json()["status"].clone(), said.json()["parcel"].clone()), (json!("shipped"), json!("parcel-1")));
    said.complains(&["↻ charge  attempt 1 failed", "the bank does not answer", "✓ pack", "✓ completed"]);
}

#[test]
fn a_large_order_waits_for_somebody() {
    let place = Place::new(&[]);
    let file = example("checkout.wf");
    let order = r#"{"id":8,"email":"a@b.c","lines":[{"price":900,"count":2}]}"#;
    place.call(&["run", &file, "-i", order, "--id", "o", "--timeout", "2s"]).exits(6).complains(&["Order 8 over 1800"]);
    place.call(&["deny", "o", "--feedback", "too dear", "--by", "kim"]).exits(0);
    assert_eq!(
        output(&place, &["run", &file, "--id", "o"]),
        json!({ "status": "rejected", "by": "kim", "feedback": "too dear" })
    );
}

#[test]
fn the_other_scripts_run_with_the_tasks_beside_them() {
    let place = Place::new(&[]);
    let done = output(&place, &["run", &example("fan_out.wf"), "-i", r#"{"items":[1,2,3]}"#]);
    assert_eq!(done, json!({ "done": 3, "failed": 0, "sum": 6 }));
    assert_eq!(output(&place, &["run", &example("poll.wf"), "-i", r#"{"id":1}"#]), json!({ "tries": 3, "value": 42 }));
    let trip = place.call(&["run", &example("trip.wf"), "-i", "{}", "-o", "json"]).exits(5);
    assert_eq!(trip.json()["error"]["code"], "trip_failed");
    assert_eq!(output(&place, &["run", &example("seed.wf"), "--workflow", "example", "-i", "5"]), json!(5));
    place.call(&["run", &example("order.wf"), "-i", r#"{"id":1}"#, "--id", "o"]).exits(6);
    for event in ["pay", "ship", "deliver"] {
        place.call(&["signal", "o", "event", &json!({ "type": event }).to_string()]).exits(0);
    }
    let order = output(&place, &["run", &example("order.wf"), "--id", "o"]);
    assert_eq!(order, json!({ "state": "done", "history": ["new", "paid", "shipped", "done"] }));
}

fn flow(name: &str) -> String {
    root().join("examples/flows").join(name).to_string_lossy().into_owned()
}

#[test]
fn the_flows_run_with_the_tasks_beside_them() {
    let place = Place::new(&[]);
    let fulfil = flow("fulfil.flow.yaml");
    place
        .call(&["run", &fulfil, "-i", r#"{"order_id":7}"#, "--id", "f", "--timeout", "8s"])
        .exits(6)
        .complains(&["Ship order 7 with 2 lines?"]);
    place.call(&["approve", "f"]).exits(0);
    assert_eq!(output(&place, &["run", &fulfil, "--id", "f"]), json!({ "order": 7, "parcel": "parcel-7" }));

    let expense = flow("approval.flow.yaml");
    assert_eq!(output(&place, &["run", &expense, "-i", r#"{"amount":50,"who":"kim"}"#]), json!("paid"));
    place.call(&["run", &expense, "-i", r#"{"amount":500,"who":"kim"}"#, "--id", "e", "--timeout", "8s"]).exits(6);
    place.call(&["deny", "e", "--feedback", "too dear"]).exits(0);
    assert_eq!(output(&place, &["run", &expense, "--id", "e"]), json!("refused"));

    let stock = r#"{"warehouses":[{"name":"a","shelves":[{"boxes":[1,2]},{"boxes":[3]}]}]}"#;
    assert_eq!(output(&place, &["run", &flow("nested.flow.yaml"), "-i", stock]), json!(3));
    let retried = place.call(&["run", &flow("retry.flow.yaml"), "-i", "{}", "--id", "r"]).exits(0);
    retried.complains(&["the bank does not answer"]);
    // It has a step, which is code: the binary has none, and says which is missing.
    let mixed = place.call(&["run", &flow("mixed.flow.yaml"), "-i", r#"{"name":"kim"}"#]);
    assert_ne!(mixed.code, Some(0));
    mixed.complains(&["create_account"]);
}
