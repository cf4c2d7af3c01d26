//! Nodes one after the other, and what each type does.

use outlast_core::event::{Event, Kind};
use serde_json::json;

use crate::everywhere::everywhere;
use crate::stage::{Stage, World, parse, run, run_in};

#[test]
fn the_flow_of_the_design_runs() {
    let text = r#"
flow: fulfil
nodes:
  - { id: order, type: task, task: load_order, with: { id: "${input.order_id}" } }
  - id: lines
    type: foreach
    items: "${order.lines}"
    as: line
    body:
      - { id: reserve, type: task, task: reserve, with: { sku: "${line.sku}" } }
      - { id: label,   type: task, task: label,   with: { sku: "${line.sku}" } }
  - { id: ok, type: approve, title: "Ship ${order.id}?" }
  - { id: ship, type: workflow, workflow: ship, with: "${lines}" }
edges:
  - { from: order, to: lines }
  - { from: ship, to: order, type: loop, max_iterations: 3, when: "${ship.retry}" }
"#;
    let world = World {
        work: |name, args, key| match name {
            "load_order" => Ok(json!({ "id": args["id"], "lines": [{ "sku": "a" }, { "sku": "b" }] })),
            "ship" => Ok(json!({ "retry": key.as_str() == "ship" })),
            _ => Ok(args["sku"].clone()),
        },
        decide: |title| Some(title == "Ship 42?"),
        ..World::default()
    };
    let stage = run_in(text, &json!({ "order_id": 42 }), world);
    let output = stage.output();
    assert_eq!(output["lines"]["count"], 2);
    assert_eq!(
        output["lines"]["iterations"][1],
        json!({ "index": 1, "item": { "sku": "b" }, "outputs": { "reserve": "b", "label": "b" } })
    );
    assert_eq!(output["ship"], json!({ "retry": false }));
    assert_eq!(stage.keys(Kind::LoopIterate), ["ship"]);
    assert_eq!(stage.keys(Kind::ChildStarted), ["ship", "pass-2/ship"]);
    assert!(stage.keys(Kind::TaskScheduled).contains(&"pass-2/lines/1/label".to_owned()));
}

#[test]
fn a_flow_without_containers_has_an_empty_stack_and_runs_one_node_at_a_time() {
    let text = r#"
flow: plain
nodes:
  - { id: c, type: task, task: echo, with: "${a + b}" }
  - { id: a, type: script, script: "${input.n + 1}" }
  - { id: b, type: task, task: echo, with: "${a * 2}" }
edges: [{ from: a, to: c }, { from: b, to: c }]
"#;
    let mut stage = Stage::new(&parse(text), &json!({ "n": 1 }), World::default());
    while stage.step() {
        let position = stage.position();
        assert_eq!(position.container_stack, []);
        assert!(stage.program.open_operations().count() <= 1);
    }
    assert_eq!(stage.output(), json!({ "a": 2, "b": 4, "c": 6 }));
    assert_eq!(
        stage.told(),
        [
            "NODE_STARTED a",
            "NODE_COMPLETED a",
            "NODE_STARTED b",
            "TASK_SCHEDULED b",
            "TASK_FINISHED b",
            "NODE_COMPLETED b",
            "NODE_STARTED c",
            "TASK_SCHEDULED c",
            "TASK_FINISHED c",
            "NODE_COMPLETED c"
        ]
    );
}

#[test]
fn every_type_of_node_has_its_output() {
    let text = r#"
flow: all
nodes:
  - { id: t, type: task, task: pack, with: { n: 1 } }
  - { id: s, type: step, step: charge, with: "${t.did}" }
  - { id: x, type: script, script: { a: "${t.did}", b: "did ${t.did} ${1 + 1} times", c: "$${x}" } }
  - { id: z, type: sleep, for: "${input.seconds}" }
  - { id: u, type: sleep, until: 5000 }
  - { id: w, type: wait, signal: paid, timeout: 1h }
  - { id: ok, type: approve, title: "Go, ${run.id}?", assignee: "${input.who}" }
  - { id: kid, type: workflow, workflow: pack_all, with: 3 }
  - { id: call, type: callback, timeout: 1m, task: tell, with: "${$token}", on_error: continue }
result: { t: "${t}", s: "${s}", x: "${x}", z: "${z}", w: "${w}", ok: "${ok}", kid: "${kid}", call: "${errors.call.code}" }
"#;
    let world =
        World { decide: |title| Some(title == "Go, run-1?"), signal: |name| Some(json!(name)), ..World::default() };
    let stage = run_in(text, &json!({ "seconds": 10, "who": "ada" }), world);
    assert_eq!(
        stage.output(),
        json!({
            "t": { "did": "pack", "with": { "n": 1 } },
            "s": { "did": "charge", "with": "pack" },
            "x": { "a": "pack", "b": "did pack 2 times", "c": "${x}" },
            "z": null,
            "w": "paid",
            "ok": { "approved": true, "by": "ada", "feedback": null, "approval": "ok" },
            "kid": { "did": "pack_all", "with": 3 },
            "call": "timeout"
        })
    );
    assert!(stage.told().contains(&"TASK_SCHEDULED call.task".to_owned()));
}

#[test]
fn a_rejected_approval_fails_its_node_unless_the_flow_says_otherwise() {
    let strict = "flow: f\nnodes: [{ id: ok, type: approve, title: Go? }, { id: go, type: task, task: go }]";
    let world = World { decide: |_| Some(false), ..World::default() };
    let stage = run_in(strict, &json!(null), world);
    let failure = stage.ended().unwrap_err();
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("rejected", "ok: `ok` was refused by ada"));
    assert_eq!(stage.keys(Kind::TaskScheduled), [""; 0]);
    let lenient = strict
        .replace("title: Go?", "title: Go?, on_reject: continue")
        .replace("task: go }", "task: go, when: \"${ok.approved}\" }");
    let stage = run_in(&lenient, &json!(null), world);
    assert_eq!(stage.output()["ok"]["approved"], false);
    assert_eq!(stage.keys(Kind::NodeSkipped), ["go"]);
}

#[test]
fn input_output_and_the_outputs_of_nodes_are_checked_against_their_schemas() {
    let text = r#"
flow: f
input: { type: object, required: [n], properties: { n: { type: integer } } }
output: { type: integer }
nodes:
  - { id: a, type: task, task: echo, with: "${input.n}", output: { maximum: 5 } }
result: "${a > 3 ? 'many' : a}"
"#;
    assert_eq!(run(text, &json!({ "n": 3 })).output(), json!(3));
    for (input, said) in [
        (json!({ "n": "x" }), "the input does not fit its schema at /n"),
        (json!({ "n": 9 }), "a: the output of `a` does not fit its schema"),
        (json!({ "n": 4 }), "the output of the flow does not fit its schema"),
    ] {
        let failure = run(text, &input).ended().unwrap_err();
        assert_eq!(failure.code, "validation_error");
        assert!(failure.message.starts_with(said), "{failure}");
    }
}

#[test]
fn a_failed_node_fails_the_flow_is_passed_or_is_left_for_another() {
    let text = |on_error: &str| {
        format!(
            "flow: f\nnodes:\n  - {{ id: a, type: task, task: fail, with: {{ code: declined }}, on_error: {on_error} }}\n  \
             - {{ id: b, type: task, task: b }}\n  - {{ id: c, type: script, script: \"${{errors.a?.code ?? 'fine'}}\" }}\n"
        )
    };
    let failed = run(&text("fail"), &json!(null));
    assert_eq!(failed.ended().unwrap_err().to_string(), "declined: a: failed as asked");
    assert_eq!(failed.told().last().unwrap(), "NODE_ERROR a");
    let passed = run(&text("continue"), &json!(null));
    assert_eq!(passed.output(), json!({ "b": { "did": "b", "with": null }, "c": "declined" }));
    let left = run(&text("{ goto: c }"), &json!(null));
    assert_eq!(left.output(), json!({ "c": "declined" }));
}

#[test]
fn an_expression_that_fails_fails_its_node_and_says_where() {
    let text = "flow: f\nnodes: [{ id: a, type: task, task: t, with: \"${input.x.y}\" }]";
    let failure = run(text, &json!({})).ended().unwrap_err();
    assert_eq!(failure.code, "type_error");
    assert!(failure.message.starts_with("a: ${input.x.y}: "), "{failure}");
    let text = "flow: f\nnodes: [{ id: a, type: task, task: t, when: \"${input.x.y}\", on_error: continue }]\nresult: \"${errors.a.code}\"";
    let stage = run(text, &json!({}));
    assert_eq!(stage.output(), json!("type_error"));
    assert_eq!(stage.keys(Kind::TaskScheduled), [""; 0]);
}

#[test]
fn edges_with_conditions_choose_who_runs() {
    let text = r#"
flow: f
nodes:
  - { id: a, type: script, script: "${input}" }
  - { id: small, type: script, script: small }
  - { id: large, type: script, script: large }
  - { id: after, type: script, script: after }
  - { id: end, type: script, script: end }
edges:
  - { from: a, to: small, when: "${a < 10}" }
  - { from: a, to: large, when: "${a >= 10}" }
  - { from: large, to: after }
  - { from: small, to: end }
  - { from: after, to: end }
"#;
    assert_eq!(run(text, &json!(3)).output(), json!({ "a": 3, "small": "small", "end": "end" }));
    assert_eq!(run(text, &json!(30)).output(), json!({ "a": 30, "large": "large", "after": "after", "end": "end" }));
}

#[test]
fn nodes_that_do_not_wait_for_each_other_run_at_once_where_asked() {
    let text = r#"
flow: f
concurrency: 2
nodes:
  - { id: a, type: task, task: echo, with: 1 }
  - { id: b, type: task, task: echo, with: 2 }
  - { id: c, type: task, task: echo, with: 3 }
  - { id: d, type: task, task: echo, with: "${a + b}" }
edges: [{ from: a, to: d }, { from: b, to: d }]
"#;
    let mut stage = Stage::new(&parse(text), &json!(null), World::default());
    let mut most = 0;
    while stage.step() {
        most = most.max(stage.program.open_operations().count());
    }
    assert_eq!((most, stage.output()), (2, json!({ "a": 1, "b": 2, "c": 3, "d": 3 })));
}

#[test]
fn a_workflow_or_container_that_takes_too_long_fails_and_owns_nothing() {
    let text = "flow: f\nnodes: [{ id: p, type: parallel, timeout: 1m, branches: { l: [{ id: a, type: sleep, for: 1h }], r: [{ id: b, type: wait, signal: s }] } }]";
    let stage = run(text, &json!(null));
    assert_eq!(stage.ended().unwrap_err().to_string(), "timeout: p: `p` took longer than 60s");
    assert_eq!(stage.keys(Kind::OperationCancelled), ["p/0/a", "p/1/b"]);
    let quick =
        text.replace("1h", "1s").replace("{ id: b, type: wait, signal: s }", "{ id: b, type: script, script: x }");
    let stage = run(&quick, &json!(null));
    assert_eq!(stage.keys(Kind::OperationCancelled), ["p.timeout"]);
    assert_eq!(stage.output(), json!({ "p": { "l": { "a": null }, "r": { "b": "x" } } }));
}

#[test]
fn objects_keep_the_order_of_their_fields() {
    let text = r#"
flow: f
nodes:
  - { id: keys, type: script, script: "${Object.keys(input)}" }
  - { id: made, type: script, script: { z: 1, y: "${input.b}", x: 3 } }
  - { id: told, type: task, task: echo, with: "${input}" }
  - id: each
    type: foreach
    items: "${Object.entries(told)}"
    body: [{ id: name, type: script, script: "${item[0]}" }]
result: { keys: "${keys}", made: "${Object.keys(made)}", names: "${each.iterations.map(one => one.outputs.name)}" }
"#;
    let input = serde_json::from_str(r#"{"b":1,"a":2,"c":{"d":0,"a":0}}"#).unwrap();
    let expected = json!({ "keys": ["b", "a", "c"], "made": ["z", "y", "x"], "names": ["b", "a", "c"] });
    assert_eq!(run(text, &input).output(), expected);
    assert_eq!(everywhere(&parse(text), &input, World::default()).unwrap(), expected);
}

#[test]
fn values_in_a_text_are_written_for_people() {
    let text = r#"
flow: f
nodes:
  - { id: order, type: task, task: load }
  - { id: ok, type: approve, title: "Pay ${order.amount} for ${order.lines}, ${order.none}, ${order.small}?" }
"#;
    let world = World {
        work: |_, _, _| {
            let lines = json!([1.0, { "price": 2.50, "sku": "a" }]);
            Ok(json!({ "amount": 100.0, "lines": lines, "none": null, "small": 1e-7 }))
        },
        ..World::default()
    };
    let stage = run_in(text, &json!(null), world);
    let titles: Vec<&str> = stage
        .journal
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::ApprovalRequested { title, .. } => Some(title.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(titles, [r#"Pay 100 for [1,{"price":2.5,"sku":"a"}], null, 1e-7?"#]);
}

#[test]
fn a_condition_that_fails_begins_nothing() {
    let text = r#"
flow: f
nodes:
  - { id: call, type: callback, task: tell, with: "${$token}", timeout: 1h, when: "${input.x.y}", on_error: continue }
  - { id: all, type: foreach, items: [1], timeout: 1h, when: "${input.x.y}", on_error: continue, body: [{ id: x, type: script, script: 1 }] }
result: "${[errors.call.code, errors.all.code]}"
"#;
    let stage = run(text, &json!({}));
    assert_eq!(stage.output(), json!(["type_error", "type_error"]));
    assert_eq!(
        stage.told(),
        ["NODE_STARTED call", "NODE_ERROR call", "NODE_STARTED all", "NODE_ERROR all"],
        "nothing is asked for and taken back"
    );
}
