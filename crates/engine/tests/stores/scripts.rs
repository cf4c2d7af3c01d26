//! Scripts on real databases: the examples, and states that are kept, lost and damaged in the database itself.

use outlast::{Engine, EngineError, Error, Outlast, TaskContext};
use serde_json::{Value, json};

use crate::place::{Place, node, seconds, stories};

stories! {
    the_seeds_examples_run,
    a_checkout_is_approved_refused_or_expires,
    a_hundred_items_are_worked_on_and_some_fail,
    a_trip_that_fails_is_undone,
    a_poll_loop_ends_when_it_is_ready_or_gives_up,
    an_order_moves_from_state_to_state,
    a_script_goes_on_from_its_snapshot_in_another_process,
    a_script_goes_on_without_its_snapshot,
    a_script_goes_on_with_a_damaged_snapshot,
    a_new_text_leaves_old_runs_alone_across_processes,
}

async fn echo(_: TaskContext, args: Value) -> outlast::Result<Value> {
    Ok(args)
}

fn example(name: &str) -> String {
    let path = format!("{}/../../examples/scripts/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// An engine for one of the examples.
async fn engine(place: &Place, file: &str, tasks: impl Fn(Outlast) -> Outlast) -> Engine {
    tasks(place.engine()).script(file, &example(file)).start().await.unwrap()
}

async fn result(engine: &Engine, workflow: &str, id: &str, input: &Value) -> Result<Value, EngineError> {
    engine.start(workflow, input).id(id).await.unwrap().result().await
}

fn the_seeds_examples_run(place: &Place) {
    let tasks = |engine: Outlast| {
        let names = ["process_data", "task1", "task2", "task3", "api1", "api2", "api3", "operation"];
        names.into_iter().fold(engine, |engine, name| engine.task(name, echo))
    };
    place.world.block_on(async {
        let engine = engine(place, "seed.wf", tasks).await;
        let input = json!({ "n": 1 });
        for (workflow, expected) in
            [("example", json!(input)), ("all", json!([input, input, input])), ("timeout", json!(input))]
        {
            assert_eq!(result(&engine, workflow, workflow, &input).await.unwrap(), expected);
        }
        assert_eq!(result(&engine, "fastest", "fastest", &input).await.unwrap(), input);
        let run = engine.start("approval", &()).id("approval").await.unwrap();
        engine.run("approval").unwrap().signal("approval", &"yes", "s").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!("yes"));
    });
}

fn a_checkout_is_approved_refused_or_expires(place: &Place) {
    async fn charge(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(json!({ "id": "ch_1", "total": args["total"] }))
    }
    let tasks = |engine: Outlast| engine.task("charge", charge).task("pack", echo).task("mail", echo);
    let order = |price: u32| json!({ "id": 7, "email": "a@b.c", "lines": [{ "price": price, "count": 2 }] });
    place.world.block_on(async {
        let engine = engine(place, "checkout.wf", tasks).await;
        let shipped = |order: Value| json!({ "status": "shipped", "charge": "ch_1", "parcel": order });
        assert_eq!(result(&engine, "checkout", "small", &order(10)).await.unwrap(), shipped(order(10)));
        for (id, approved) in [("yes", true), ("no", false)] {
            let run = engine.start("checkout", &order(1000)).id(id).await.unwrap();
            place.world.sleep(seconds(60)).await;
            engine.run(id).unwrap().approve("__approve-0", approved).by("kim").id("d").await.unwrap();
            let ended: Value = run.result().await.unwrap();
            let refused = json!({ "status": "rejected", "by": "kim", "feedback": null });
            assert_eq!(ended, if approved { shipped(order(1000)) } else { refused });
        }
        let expired = result(&engine, "checkout", "late", &order(1000)).await.unwrap();
        assert_eq!(expired, json!({ "status": "expired" }));
    });
}

fn a_hundred_items_are_worked_on_and_some_fail(place: &Place) {
    async fn work(_: TaskContext, n: u64) -> outlast::Result<u64> {
        if n % 10 == 3 { Err(Error::new("error", "three").permanent()) } else { Ok(n) }
    }
    place.world.block_on(async {
        let engine = engine(place, "fan_out.wf", |engine| engine.task("work", work)).await;
        let ended = result(&engine, "fan_out", "a", &json!({})).await.unwrap();
        assert_eq!(ended, json!({ "done": 90, "failed": 10, "sum": 4470 }));
    });
}

fn a_trip_that_fails_is_undone(place: &Place) {
    async fn no_cars(_: TaskContext, _: Value) -> outlast::Result<Value> {
        Err(Error::new("sold_out", "no cars").permanent())
    }
    let tasks = |engine: Outlast| {
        let names = ["book_flight", "book_hotel", "cancel_hotel", "cancel_flight"];
        names.into_iter().fold(engine, |engine, name| engine.task(name, echo)).task("book_car", no_cars)
    };
    place.world.block_on(async {
        let engine = engine(place, "trip.wf", tasks).await;
        let Err(EngineError::Failed(failure)) = result(&engine, "trip", "a", &json!({})).await else { panic!() };
        assert_eq!(failure.code, "trip_failed");
        let data: Value = serde_json::from_slice(&failure.data.unwrap()).unwrap();
        assert_eq!(data, json!({ "cause": "sold_out", "undone": 2 }));
        let journal = engine.run("a").unwrap().journal().await.unwrap();
        let asked: Vec<&str> = journal
            .iter()
            .filter_map(|event| match event {
                outlast::Event::TaskScheduled { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(asked, ["book_flight", "book_hotel", "book_car", "cancel_hotel", "cancel_flight"]);
    });
}

fn a_poll_loop_ends_when_it_is_ready_or_gives_up(place: &Place) {
    async fn check(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(json!({ "ready": args["id"] == 1 && args["tries"] == 5, "value": "v" }))
    }
    place.world.block_on(async {
        let engine = engine(place, "poll.wf", |engine| engine.task("check", check)).await;
        let ready = result(&engine, "poll", "ready", &json!({ "id": 1 })).await.unwrap();
        assert_eq!(ready, json!({ "tries": 5, "value": "v" }));
        let before = place.world.now();
        let gave_up = result(&engine, "poll", "never", &json!({ "id": 2 })).await.unwrap_err();
        assert_eq!(gave_up.code(), "gave_up");
        assert!(place.world.now() >= before + seconds(3_600));
    });
}

fn an_order_moves_from_state_to_state(place: &Place) {
    place.world.block_on(async {
        let engine = engine(place, "order.wf", |engine| engine.task("ship", echo).task("refund", echo)).await;
        let run = engine.start("order", &json!({ "id": 7 })).id("a").await.unwrap();
        for (n, event) in ["ship", "pay", "ship", "deliver"].iter().enumerate() {
            engine.run("a").unwrap().signal("event", &json!({ "type": event }), &n.to_string()).await.unwrap();
        }
        let expected = json!({ "state": "done", "history": ["new", "paid", "shipped", "done"] });
        assert_eq!(run.result::<Value>().await.unwrap(), expected);
    });
}

const LOOP: &str = r#"
    const open = Task.run("echo", "late", { delay: 5000 })
    let sum = 0
    for (let i = 0; i < 100; i++) sum += await Task.run("echo", i)
    const more = await Signal.next("go")
    return [sum, more, await open]
"#;

/// A run waits behind a hundred tasks; then something happens to its state, and another process goes on with it.
fn goes_on(place: &Place, harm: &str) {
    let ended: Value = place.world.block_on(async {
        let process = place.process();
        let engine = node(&process).task("echo", echo).script("loop.wf", LOOP).start().await.unwrap();
        engine.start("loop", &()).id("a").await.unwrap();
        place.world.sleep(seconds(60)).await;
        engine.shutdown().await;
        if !harm.is_empty() {
            place.write(harm);
        }
        let other = place.process();
        let engine = node(&other).task("echo", echo).start().await.unwrap();
        engine.run("a").unwrap().signal("go", &"went", "s").await.unwrap();
        engine.run("a").unwrap().result().await.unwrap()
    });
    assert_eq!(ended, json!([4_950, "went", "late"]));
}

fn a_script_goes_on_from_its_snapshot_in_another_process(place: &Place) {
    // Without its prefix nobody could rebuild it: only the snapshot and what follows it are read.
    goes_on(place, "DELETE FROM event WHERE idx < 60 AND idx > 1");
}

fn a_script_goes_on_without_its_snapshot(place: &Place) {
    goes_on(place, "DELETE FROM snapshot");
}

fn a_script_goes_on_with_a_damaged_snapshot(place: &Place) {
    goes_on(place, "UPDATE snapshot SET data = substr(data, 1, 50)");
}

fn a_new_text_leaves_old_runs_alone_across_processes(place: &Place) {
    place.world.block_on(async {
        let first = place.process();
        let engine = node(&first).task("echo", echo).script("loop.wf", LOOP).start().await.unwrap();
        engine.start("loop", &()).id("old").await.unwrap();
        place.world.sleep(seconds(60)).await;
        engine.shutdown().await;
        let second = place.process();
        let engine = node(&second).task("echo", echo).script("loop.wf", "return \"new\"").start().await.unwrap();
        let new = engine.start("loop", &()).id("new").await.unwrap();
        assert_eq!(new.result::<String>().await.unwrap(), "new");
        engine.run("old").unwrap().signal("go", &1, "s").await.unwrap();
        assert_eq!(engine.run("old").unwrap().result::<Value>().await.unwrap(), json!([4_950, 1, "late"]));
    });
}
