//! Flows on real databases: the examples, and states that are kept, lost and damaged in the database itself.

use outlast::{Ctx, Engine, EngineError, Error, Event, Outlast, StepContext, TaskContext};
use serde_json::{Value, json};

use crate::place::{Place, node, seconds, stories};

stories! {
    an_order_is_fulfilled_line_by_line,
    a_stocktake_goes_three_containers_deep,
    a_payment_is_tried_again_by_a_loop_edge,
    an_expense_waits_for_its_approval_inside_the_branch,
    somebody_is_onboarded_by_work_of_every_kind,
    a_flow_goes_on_from_its_snapshot_in_another_process,
    a_flow_goes_on_without_its_snapshot,
    a_flow_goes_on_with_a_damaged_snapshot,
    a_flow_is_paused_and_skipped_on_a_database,
    a_journal_of_a_flow_that_cannot_be_is_told_with_its_event,
}

async fn echo(_: TaskContext, args: Value) -> outlast::Result<Value> {
    Ok(args)
}

/// An engine for one of the examples.
async fn engine(place: &Place, file: &str, tasks: impl Fn(Outlast) -> Outlast) -> Engine {
    let path = format!("{}/../../examples/flows/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    tasks(place.engine()).flow(file, &text).start().await.unwrap()
}

async fn result(engine: &Engine, workflow: &str, id: &str, input: &Value) -> Result<Value, EngineError> {
    engine.start(workflow, input).id(id).await.unwrap().result().await
}

fn an_order_is_fulfilled_line_by_line(place: &Place) {
    async fn load(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(json!({ "id": args["id"], "lines": [{ "sku": "a" }, { "sku": "b" }] }))
    }
    async fn reserve(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(json!({ "box": format!("box-{}", args["sku"].as_str().unwrap_or_default()) }))
    }
    async fn ship(ctx: Ctx, _: Value) -> outlast::Result<Value> {
        Ok(json!({ "retry": !ctx.run_id().as_str().contains("pass-"), "parcel": "p-1" }))
    }
    let tasks = |engine: Outlast| {
        let engine = engine.task("load_order", load).task("reserve", reserve).task("label", echo);
        engine.workflow("ship", ship)
    };
    place.world.block_on(async {
        let engine = engine(place, "fulfil.flow.yaml", tasks).await;
        let run = engine.start("fulfil", &json!({ "order_id": 42 })).id("a").await.unwrap();
        for key in ["ok", "pass-2/ok"] {
            place.world.sleep(seconds(60)).await;
            engine.run("a").unwrap().approve(key, true).by("kim").id(key).await.unwrap();
        }
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "order": 42, "parcel": "p-1" }));
    });
}

fn a_stocktake_goes_three_containers_deep(place: &Place) {
    async fn count(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(args["box"].clone())
    }
    let shelves = |boxes: [[u32; 2]; 2]| json!(boxes.map(|boxes| json!({ "boxes": boxes })));
    let input = json!({ "warehouses": [
        { "name": "north", "shelves": shelves([[1, 2], [3, 4]]) },
        { "name": "south", "shelves": shelves([[5, 6], [7, 8]]) },
    ] });
    place.world.block_on(async {
        let engine = engine(place, "nested.flow.yaml", |engine| engine.task("count", count)).await;
        assert_eq!(result(&engine, "stocktake", "a", &input).await.unwrap(), json!(26));
    });
}

fn a_payment_is_tried_again_by_a_loop_edge(place: &Place) {
    async fn charge(task: TaskContext, sum: Value) -> outlast::Result<Value> {
        match task.idempotency_key().contains("pass-3") {
            true => Ok(json!({ "paid": sum })),
            false => Err(Error::new("declined", "the bank said no").permanent()),
        }
    }
    place.world.block_on(async {
        let tasks = |engine: Outlast| engine.task("charge", charge).task("tell", echo);
        let engine = engine(place, "retry.flow.yaml", tasks).await;
        let output = result(&engine, "retry", "a", &json!(5)).await.unwrap();
        assert_eq!(output["outcome"], json!({ "paid": { "paid": 5 } }));
        assert_eq!(output["charge_count"]["n"], 3);
    });
}

fn an_expense_waits_for_its_approval_inside_the_branch(place: &Place) {
    let tasks = |engine: Outlast| engine.task("tell", echo).task("pay", echo);
    place.world.block_on(async {
        let engine = engine(place, "approval.flow.yaml", tasks).await;
        let small = json!({ "amount": 50, "who": "ada" });
        assert_eq!(result(&engine, "expense", "small", &small).await.unwrap(), json!("paid"));
        for (id, approved, expected) in [("yes", true, "paid"), ("no", false, "refused")] {
            let run = engine.start("expense", &json!({ "amount": 5000, "who": "ada" })).id(id).await.unwrap();
            place.world.sleep(seconds(60)).await;
            engine.run(id).unwrap().approve("check/0/ok", approved).by("kim").id("d").await.unwrap();
            assert_eq!(run.result::<Value>().await.unwrap(), json!(expected));
        }
        let misfit = result(&engine, "expense", "bad", &json!({ "amount": "much" })).await.unwrap_err();
        assert_eq!(misfit.code(), "validation_error");
    });
}

fn somebody_is_onboarded_by_work_of_every_kind(place: &Place) {
    async fn create(_: StepContext, args: Value) -> outlast::Result<Value> {
        Ok(json!({ "account": args["name"] }))
    }
    async fn laptop(task: TaskContext, _: Value) -> outlast::Result<Value> {
        Ok(json!({ "ready": task.idempotency_key().contains("poll/2/") }))
    }
    let greet = "workflow greet(who) { await Task.delay(5); return `Hello, ${who.name}` }";
    let tasks = |engine: Outlast| {
        let engine = engine.step("create_account", create).script("greet.wf", greet);
        engine.task("laptop_status", laptop).task("send_contract", echo)
    };
    place.world.block_on(async {
        let engine = engine(place, "mixed.flow.yaml", tasks).await;
        let run = engine.start("onboard", &json!({ "name": "Ada" })).id("a").await.unwrap();
        place.world.sleep(seconds(60)).await;
        let handle = engine.run("a").unwrap();
        let token = handle.journal().await.unwrap().iter().find_map(|event| match event {
            Event::TaskFinished { result, .. } => {
                serde_json::from_slice::<Value>(result).ok()?["token"].as_str().map(str::to_owned)
            }
            _ => None,
        });
        handle.resolve_callback("both/1/signed", &token.unwrap(), &true).await.unwrap();
        handle.signal("start_date", &"Monday", "s").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!("Ada starts on Monday, after 3 looks"));
    });
}

const LOOP: &str = r#"
flow: looped
nodes:
  - id: each
    type: foreach
    items: "${input}"
    collect: none
    body: [{ id: a, type: task, task: echo, with: "${item}" }, { id: s, type: step, step: same, with: "${a}" }]
  - { id: go, type: wait, signal: go }
result: "${[each.count, go]}"
"#;

async fn same(_: StepContext, n: Value) -> outlast::Result<Value> {
    Ok(n)
}

/// A run waits behind a hundred items; then something happens to its state, and another process goes on with it.
fn goes_on(place: &Place, harm: &str) {
    let ended: Value = place.world.block_on(async {
        let process = place.process();
        let engine =
            node(&process).task("echo", echo).step("same", same).flow("loop.flow.yaml", LOOP).start().await.unwrap();
        engine.start("looped", &(0..100).collect::<Vec<u32>>()).id("a").await.unwrap();
        place.world.sleep(seconds(60)).await;
        engine.shutdown().await;
        if !harm.is_empty() {
            place.write(harm);
        }
        let other = place.process();
        let engine = node(&other).task("echo", echo).step("same", same).start().await.unwrap();
        engine.run("a").unwrap().signal("go", &"went", "s").await.unwrap();
        engine.run("a").unwrap().result().await.unwrap()
    });
    assert_eq!(ended, json!([100, "went"]));
}

fn a_flow_goes_on_from_its_snapshot_in_another_process(place: &Place) {
    // Without its prefix nobody could rebuild it: only the snapshot and what follows it are read.
    goes_on(place, "DELETE FROM event WHERE idx < 60 AND idx > 1");
}

fn a_flow_goes_on_without_its_snapshot(place: &Place) {
    goes_on(place, "DELETE FROM snapshot");
}

fn a_flow_goes_on_with_a_damaged_snapshot(place: &Place) {
    goes_on(place, "UPDATE snapshot SET data = substr(data, 1, 50)");
}

/// What is wrong with a journal is told with the event, to whoever looks, and by the run itself.
fn a_journal_of_a_flow_that_cannot_be_is_told_with_its_event(place: &Place) {
    let text = "flow: f\nnodes: [{ id: each, type: foreach, items: [1, 2], body: [{ id: t, type: script, script: 1 }] }, { id: w, type: wait, signal: s }]";
    place.world.block_on(async {
        let first = place.process();
        let engine = node(&first).flow("f.flow.yaml", text).start().await.unwrap();
        engine.start("f", &()).id("a").await.unwrap();
        place.world.sleep(seconds(5)).await;
        engine.shutdown().await;
        let (kind, wrong) = (outlast_core::event::Kind::ContainerIterationStarted.code(), r#"{"index":7}"#);
        place.write(&format!(
            "UPDATE event SET meta = CAST('{wrong}' AS {}) WHERE kind = {kind} AND idx > 2",
            place.bytes()
        ));
        let second = place.process();
        let engine = node(&second).flow("f.flow.yaml", text).start().await.unwrap();
        let run = engine.run("a").unwrap();
        let told = run.position().await.unwrap_err().to_string();
        let expected = "event 5, CONTAINER_ITERATION_STARTED: the iterations of `each` skip from 1 to 7";
        assert!(told.contains(expected), "{told}");
        run.signal("s", &1, "1").await.unwrap();
        place.world.sleep(seconds(60)).await;
        assert_eq!(run.status().await.unwrap(), outlast::Status::Parked);
        let note = run.view().await.unwrap().note.unwrap();
        assert!(note.contains("event 8, CONTAINER_ITERATION_COMPLETED"), "{note}");
    });
}

fn a_flow_is_paused_and_skipped_on_a_database(place: &Place) {
    let text = "flow: f\nnodes: [{ id: each, type: foreach, items: [1, 2], body: [{ id: w, type: wait, signal: s }, { id: m, type: script, script: \"${messages.length}\" }] }]\nresult: \"${each.iterations.map(one => one.outputs.m)}\"";
    place.world.block_on(async {
        let engine = place.engine().flow("f.flow.yaml", text).start().await.unwrap();
        let run = engine.start("f", &()).id("a").await.unwrap();
        place.world.sleep(seconds(5)).await;
        run.pause("look").await.unwrap();
        place.world.sleep(seconds(5)).await;
        let position = run.position().await.unwrap();
        assert_eq!((position.container_stack[0].iteration_index, position.pause_reason.as_deref()), (0, Some("look")));
        run.skip_node("each/0/w").by("eve").id("1").await.unwrap();
        run.resume_with("on").await.unwrap();
        place.world.sleep(seconds(5)).await;
        run.signal("s", &true, "2").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!([1, 1]));
    });
}
