//! The scripts in `examples/scripts`, each of which runs, is laid out as the formatter does, and warns of nothing.

use std::fs;
use std::path::PathBuf;

use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::Key;
use outlast_core::operation::Operation;
use outlast_script::{Script, format};
use serde_json::{Value as Json, json};

use crate::stage::{Memory, Stage, Tasks, tasks};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/scripts")
}

fn script(name: &str) -> Script {
    let text = fs::read_to_string(directory().join(name)).unwrap();
    Script::compile(name, &text).unwrap_or_else(|found| panic!("{found}"))
}

fn stage(file: &str, workflow: &str, input: &Json, tasks: Tasks) -> Stage {
    Stage::new(&script(file), workflow, input, tasks)
}

fn result(file: &str, workflow: &str, input: &Json, tasks: Tasks) -> Json {
    let results = [Memory::Hot, Memory::Restored, Memory::Rebuilt]
        .map(|memory| stage(file, workflow, input, tasks).run(memory).ended().result);
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    results[0].clone().unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn every_example_is_formatted_and_warns_of_nothing_but_the_seeds_assignment() {
    let mut count = 0;
    for entry in fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "wf") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(format(&name, &text).unwrap(), text, "{name} is not formatted");
        let warnings = script(&name).warnings().clone();
        let warned: Vec<&str> = warnings.list().iter().map(|found| found.code).collect();
        let expected: &[&str] = if name == "seed.wf" { &["undeclared_assignment"] } else { &[] };
        assert_eq!(warned, expected, "{warnings}");
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn the_seeds_examples_run() {
    let input = json!({ "n": 1 });
    assert_eq!(script("seed.wf").workflows(), ["example", "all", "fastest", "timeout", "approval"]);
    assert_eq!(result("seed.wf", "example", &input, tasks), input);
    assert_eq!(result("seed.wf", "all", &input, tasks), json!([input, input, input]));
    assert_eq!(result("seed.wf", "fastest", &input, tasks), input);
    assert_eq!(result("seed.wf", "timeout", &input, tasks), input);
    let mut stage = stage("seed.wf", "approval", &Json::Null, tasks);
    stage.signal("__wait-approval-0", &json!("yes"));
    assert_eq!(stage.ended().result, Ok(json!("yes")));
}

fn shop(name: &str, args: &Json) -> Result<Json, Failure> {
    match name {
        "charge" => Ok(json!({ "id": "ch_1", "total": args["total"] })),
        "pack" => Ok(json!({ "parcel": args["id"] })),
        _ => Ok(Json::Null),
    }
}

#[test]
fn a_small_order_is_shipped_at_once_and_a_large_one_waits_for_approval() {
    let order = |price: u32| json!({ "id": 7, "email": "a@b.c", "lines": [{ "price": price, "count": 2 }] });
    let shipped = json!({ "status": "shipped", "charge": "ch_1", "parcel": { "parcel": 7 } });
    assert_eq!(result("checkout.wf", "checkout", &order(10), shop), shipped);
    assert_eq!(result("checkout.wf", "checkout", &order(1000), shop), json!({ "status": "expired" }));
    for approved in [true, false] {
        let mut stage = stage("checkout.wf", "checkout", &order(1000), shop);
        let (key, approval) = (Key::new("__approve-0").unwrap(), "a".to_owned());
        let (by, feedback) = (Some("kim".to_owned()), Some("ok".to_owned()));
        stage.feed(Event::ApprovalResolved { key, approval, approved, by, feedback });
        let ended = stage.run(Memory::Restored).ended().result.unwrap();
        let rejected = json!({ "status": "rejected", "by": "kim", "feedback": "ok" });
        assert_eq!(ended, if approved { shipped.clone() } else { rejected });
    }
}

#[test]
fn a_hundred_items_are_worked_on_ten_at_a_time() {
    fn work(_: &str, args: &Json) -> Result<Json, Failure> {
        let number = args.as_u64().unwrap();
        if number % 10 == 3 { Err(Failure::new("error", "three")) } else { Ok(json!(number)) }
    }
    let first = stage("fan_out.wf", "fan_out", &json!({}), work);
    let started = first.requests.iter().filter(|request| matches!(request, Operation::ScheduleTask { .. })).count();
    assert_eq!(started, 10);
    assert_eq!(result("fan_out.wf", "fan_out", &json!({}), work), json!({ "done": 90, "failed": 10, "sum": 4470 }));
}

#[test]
fn a_trip_that_fails_is_undone_in_reverse() {
    fn book(name: &str, _: &Json) -> Result<Json, Failure> {
        if name == "book_car" { Err(Failure::new("sold_out", "no cars")) } else { Ok(json!(name)) }
    }
    fn all(name: &str, _: &Json) -> Result<Json, Failure> {
        Ok(json!(name))
    }
    let booked = json!({ "flight": "book_flight", "hotel": "book_hotel", "car": "book_car" });
    assert_eq!(result("trip.wf", "trip", &json!({}), all), booked);
    let mut stage = stage("trip.wf", "trip", &json!({}), book);
    let failure = stage.run(Memory::Restored).ended().result.unwrap_err();
    assert_eq!(failure.code, "trip_failed");
    assert!(failure.message.starts_with("the trip was not booked: no cars"), "{failure}");
    let names: Vec<String> = stage
        .requests
        .iter()
        .filter_map(|request| match request {
            Operation::ScheduleTask { name, .. } => Some(name.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["book_flight", "book_hotel", "book_car", "cancel_hotel", "cancel_flight"]);
}

#[test]
fn a_poll_loop_asks_less_and_less_often_until_it_gives_up() {
    fn ready(_: &str, args: &Json) -> Result<Json, Failure> {
        Ok(json!({ "ready": args["tries"] == 5, "value": "v" }))
    }
    fn never(_: &str, _: &Json) -> Result<Json, Failure> {
        Ok(json!({ "ready": false }))
    }
    assert_eq!(result("poll.wf", "poll", &json!({ "id": 1 }), ready), json!({ "tries": 5, "value": "v" }));
    let mut stage = stage("poll.wf", "poll", &json!({ "id": 1 }), never);
    assert_eq!(stage.run(Memory::Restored).ended().result.unwrap_err().code, "gave_up");
    assert!(stage.now >= 3_600_000);
}

#[test]
fn an_order_moves_from_state_to_state() {
    let mut stage = stage("order.wf", "order", &json!({ "id": 7 }), tasks);
    for (place, event) in ["ship", "pay", "ship", "deliver"].iter().enumerate() {
        stage.signal(&format!("__wait-event-{place}"), &json!({ "type": event }));
        stage.run(Memory::Restored);
    }
    let expected = json!({ "state": "done", "history": ["new", "paid", "shipped", "done"] });
    assert_eq!(stage.ended().result, Ok(expected));
    assert_eq!(stage.logs, [json!(["\"ship\" means nothing to an order that is new"])]);
}
