//! Containers: what they go over, in which order, and what they keep.

use outlast_core::event::Kind;
use outlast_core::failure::Failure;
use outlast_flow::{NodeStatus, Picture, render};
use serde_json::json;

use crate::stage::{Stage, World, parse, run, run_in};

pub(crate) const THREE_DEEP: &str = r#"
flow: deep
nodes:
  - id: outer
    type: foreach
    items: "${input}"
    as: row
    body:
      - id: middle
        type: foreach
        items: "${row}"
        as: cell
        body:
          - { id: first, type: task, task: echo, with: "${cell}" }
          - id: inner
            type: foreach
            items: "${[first, first + 1]}"
            body:
              - { id: leaf, type: task, task: echo, with: "${[row.length, cell, item, $iteration]}" }
          - { id: last, type: script, script: "${inner.iterations.map(i => i.outputs.leaf[2])}" }
"#;

#[test]
fn three_containers_deep_every_child_runs_once_in_order() {
    let stage = run(THREE_DEEP, &json!([[1, 2], [3]]));
    let output = stage.output();
    let lasts: Vec<_> = output["outer"]["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row["outputs"]["middle"]["iterations"].as_array().unwrap())
        .map(|cell| cell["outputs"]["last"].clone())
        .collect();
    assert_eq!(lasts, [json!([1, 2]), json!([2, 3]), json!([3, 4])]);
    let tasks = stage.keys(Kind::TaskScheduled);
    assert_eq!(
        tasks[..3],
        ["outer/0/middle/0/first", "outer/0/middle/0/inner/0/leaf", "outer/0/middle/0/inner/1/leaf"]
    );
    assert_eq!(tasks.len(), 9);
}

#[test]
fn the_stack_shows_every_container_and_never_a_stale_one() {
    let mut stage = Stage::new(&parse(THREE_DEEP), &json!([[1, 2], [3]]), World::default());
    let mut deepest = 0;
    while stage.step() {
        let position = stage.position();
        let names: Vec<&str> = position.container_stack.iter().map(|frame| frame.node.as_str()).collect();
        assert!(["outer", "middle", "inner"].starts_with(&names), "{names:?}");
        for pair in position.container_stack.windows(2) {
            // A frame belongs to one entry: its key begins with the iteration it is in.
            assert!(pair[1].key.starts_with(&format!("{}/{}/", pair[0].key, pair[0].iteration_index)));
        }
        for frame in &position.container_stack {
            assert!(frame.total_iterations.is_some(), "total_iterations is set");
            assert!(frame.completed_count <= frame.total_iterations.unwrap());
        }
        deepest = deepest.max(names.len());
    }
    assert_eq!(deepest, 3);
    assert_eq!(stage.position().container_stack, []);
}

#[test]
fn a_foreach_knows_where_it_is() {
    let text = r#"
flow: f
nodes:
  - id: each
    type: foreach
    items: "${input}"
    body: [{ id: x, type: script, script: "${[item, $iteration, $first, $last, $max_iterations]}" }]
result: "${each.iterations.map(i => i.outputs.x)}"
"#;
    let output = run(text, &json!(["a", "b", "c"])).output();
    assert_eq!(output, json!([["a", 0, true, false, 3], ["b", 1, false, false, 3], ["c", 2, false, true, 3]]));
    assert_eq!(run(text, &json!([])).output(), json!([]));
    let failure = run(text, &json!({ "a": 1 })).ended().unwrap_err();
    assert_eq!(failure.to_string(), "validation_error: each: what a foreach goes over must be a list");
}

#[test]
fn a_foreach_keeps_all_outputs_or_the_last_or_none() {
    let text = |collect: &str| {
        format!(
            "flow: f\nnodes: [{{ id: e, type: foreach, items: [1, 2, 3], collect: {collect}, body: [{{ id: x, type: task, task: echo, with: \"${{item}}\" }}] }}]"
        )
    };
    let counts: Vec<usize> = ["all", "last", "none"]
        .map(|collect| {
            let output = run(&text(collect), &json!(null)).output();
            assert_eq!(output["e"]["count"], 3);
            output["e"]["iterations"].as_array().unwrap().len()
        })
        .to_vec();
    assert_eq!(counts, [3, 1, 0]);
    assert_eq!(run(&text("last"), &json!(null)).output()["e"]["iterations"][0]["index"], 2);
}

#[test]
fn so_many_iterations_run_at_once_and_no_more() {
    let text = "flow: f\nnodes: [{ id: e, type: foreach, items: \"${input}\", concurrency: 3, body: [{ id: x, type: task, task: echo, with: \"${item}\" }, { id: y, type: sleep, for: 1s }] }]";
    let items: Vec<u32> = (0..10).collect();
    let mut stage = Stage::new(&parse(text), &json!(items), World::default());
    let mut most = 0;
    while stage.step() {
        let open = stage.program.open_operations().count();
        most = most.max(open);
        if let Some(frame) = stage.position().container_stack.first() {
            assert!(frame.active.len() <= 3);
            assert_eq!(frame.active.first().copied().unwrap_or(frame.iteration_index), frame.iteration_index);
        }
    }
    assert_eq!(most, 3);
    let output = stage.output();
    let indices: Vec<u64> =
        output["e"]["iterations"].as_array().unwrap().iter().map(|i| i["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, (0..10).collect::<Vec<u64>>());
}

#[test]
fn a_loop_goes_around_while_and_until_it_is_told_and_never_too_often() {
    let text = |rule: &str| {
        format!(
            "flow: f\nnodes: [{{ id: l, type: loop, {rule}, collect: all, body: [{{ id: n, type: script, script: \"${{(n ?? 0) + 1}}\" }}] }}]\nresult: \"${{l.count}}\""
        )
    };
    assert_eq!(run(&text("while: \"${(n ?? 0) < 3}\", max_iterations: 9"), &json!(null)).output(), json!(3));
    assert_eq!(run(&text("until: \"${n == 4}\", max_iterations: 9"), &json!(null)).output(), json!(4));
    assert_eq!(run(&text("max_iterations: 5"), &json!(null)).output(), json!(5));
    assert_eq!(run(&text("while: \"${false}\", max_iterations: 5"), &json!(null)).output(), json!(0));
    for rule in ["while: \"${true}\", max_iterations: 3", "until: \"${false}\", max_iterations: 3"] {
        let failure = run(&text(rule), &json!(null)).ended().unwrap_err();
        assert_eq!(failure.code, "loop_iteration_exceeded");
    }
    // The last round that is allowed may be the one that ends it.
    assert_eq!(run(&text("until: \"${n == 3}\", max_iterations: 3"), &json!(null)).output(), json!(3));
}

#[test]
fn a_choice_takes_one_branch_or_none() {
    let text = r#"
flow: f
nodes:
  - { id: i, type: if, condition: "${input != 1}", then: [{ id: a, type: script, script: big }], else: [{ id: b, type: script, script: small }] }
  - id: s
    type: switch
    on: "${input}"
    cases:
      - { value: 1, body: [{ id: one, type: script, script: one }] }
      - { value: two, body: [{ id: two, type: script, script: two }] }
    default: [{ id: other, type: script, script: "${input}" }]
  - { id: n, type: if, condition: "${input == 'x'}", then: [{ id: x, type: script, script: x }] }
"#;
    assert_eq!(run(text, &json!(1)).output(), json!({ "i": { "b": "small" }, "s": { "one": "one" }, "n": {} }));
    assert_eq!(run(text, &json!(1.0)).output()["s"], json!({ "one": "one" }));
    assert_eq!(run(text, &json!(5)).output(), json!({ "i": { "a": "big" }, "s": { "other": 5 }, "n": {} }));
    assert_eq!(run(text, &json!("two")).output()["s"], json!({ "two": "two" }));
}

#[test]
fn branches_run_at_once_and_give_their_outputs_by_name() {
    let text = "flow: f\nnodes: [{ id: p, type: parallel, branches: { left: [{ id: a, type: sleep, for: 2s }, { id: b, type: script, script: l }], right: [{ id: c, type: sleep, for: 1s }] } }]";
    let stage = run(text, &json!(null));
    assert_eq!(stage.output(), json!({ "p": { "left": { "a": null, "b": "l" }, "right": { "c": null } } }));
    assert_eq!(stage.keys(Kind::TimerFired), ["p/1/c", "p/0/a"]);
}

#[test]
fn a_failure_inside_fails_the_container_and_cancels_what_runs_beside_it() {
    let text = |on_error: &str| {
        format!(
            "flow: f\nnodes:\n  - id: p\n    type: parallel\n    {on_error}\n    branches:\n      l: [{{ id: a, type: task, task: fail }}]\n      r: [{{ id: b, type: wait, signal: never }}]\n  - {{ id: after, type: script, script: \"${{errors.p.message}}\" }}\n"
        )
    };
    let stage = run(&text(""), &json!(null));
    assert_eq!(stage.ended().unwrap_err().to_string(), "error: p: failed as asked");
    assert_eq!(stage.keys(Kind::OperationCancelled), ["p/1/b"]);
    assert_eq!(stage.keys(Kind::NodeError), ["p/0/a", "p"]);
    let stage = run(&text("on_error: continue"), &json!(null));
    assert_eq!(stage.output(), json!({ "after": "failed as asked" }));
}

#[test]
fn an_approval_in_a_branch_holds_the_branch_and_nothing_passes_it() {
    let text = r#"
flow: f
nodes:
  - id: large
    type: if
    condition: "${input > 100}"
    then:
      - { id: ok, type: approve, title: "Pay ${input}?" }
      - { id: note, type: task, task: note }
  - { id: pay, type: task, task: pay, with: "${input}" }
"#;
    let mut stage = run(text, &json!(500));
    assert_eq!(stage.told().last().unwrap(), "APPROVAL_REQUESTED large/0/ok");
    assert_eq!(stage.keys(Kind::TaskScheduled), [""; 0]);
    stage.approve("large/0/ok", true);
    assert_eq!(stage.output()["pay"]["with"], 500);
    // Where it is not needed nobody waits for it.
    let stage = run(text, &json!(5));
    assert_eq!(stage.output(), json!({ "large": {}, "pay": { "did": "pay", "with": 5 } }));
    let rejected = run_in(text, &json!(500), World { decide: |_| Some(false), ..World::default() });
    assert_eq!(rejected.ended().unwrap_err().code, "rejected");
    assert_eq!(rejected.keys(Kind::TaskScheduled), [""; 0]);
}

#[test]
fn a_skipped_approval_never_parks_the_flow() {
    let text = r#"
flow: f
nodes:
  - id: each
    type: foreach
    items: [1, 2, 3]
    body:
      - { id: ok, type: approve, title: "Take ${item}?", when: "${item == 2}" }
      - { id: go, type: task, task: echo, with: "${ok?.approved ?? 'not asked'}" }
result: "${each.iterations.map(i => i.outputs.go)}"
"#;
    let stage = run_in(text, &json!(null), World { decide: |_| Some(true), ..World::default() });
    assert_eq!(stage.output(), json!(["not asked", true, "not asked"]));
    assert_eq!(stage.keys(Kind::NodeSkipped), ["each/0/ok", "each/2/ok"]);
    assert_eq!(stage.keys(Kind::ApprovalRequested), ["each/1/ok"]);
}

#[test]
fn containers_nest_as_deep_as_the_limit_and_no_deeper() {
    let nested = |depth: usize, rule: &str| {
        let mut node = "{ id: leaf, type: script, script: x }".to_owned();
        for level in (0..depth).rev() {
            node = format!("{{ id: n{level}, {rule}: [{node}] }}");
        }
        format!("flow: f\nnodes: [{node}]")
    };
    let quiet = "type: loop, max_iterations: 1, collect: none, body";
    assert_eq!(run(&nested(127, quiet), &json!(null)).output(), json!({ "n0": { "iterations": [], "count": 1 } }));
    let found = outlast_flow::Flow::parse("deep.flow.yaml", &nested(140, quiet)).unwrap_err();
    assert!(found.list().iter().any(|problem| problem.code == "nested_too_deep"), "{found}");
    // An output that nobody could read back is refused.
    let deep = run(&nested(127, "type: if, condition: true, then"), &json!(null));
    let failure = deep.ended().unwrap_err();
    assert_eq!(failure.code, "limit_exceeded");
    assert!(failure.message.ends_with("the output of a node is 121 levels deep, the limit is 120"), "{failure}");
}

#[test]
fn a_container_that_is_over_still_shows_how_its_nodes_stood() {
    use NodeStatus::{Done, Failed, Pending, Skipped};
    let text = r#"
flow: f
nodes:
  - id: each
    type: foreach
    items: [1, 2]
    on_error: continue
    body:
      - { id: quiet, type: script, script: 1, when: "${item == 1}" }
      - { id: risky, type: task, task: "work", with: "${item}" }
      - { id: late, type: script, script: 1 }
  - id: both
    type: parallel
    on_error: continue
    branches:
      left: [{ id: wait, type: wait, signal: never }]
      right:
        - { id: deep, type: loop, max_iterations: 1, body: [{ id: leaf, type: script, script: 1 }] }
        - { id: bad, type: task, task: work, with: 2 }
  - { id: choice, type: if, condition: true, then: [{ id: yes, type: script, script: 1 }], else: [{ id: no, type: script, script: 1 }] }
  - { id: hold, type: wait, signal: s }
"#;
    let world = World {
        work: |_, args, _| if *args == json!(2) { Err(Failure::new("x", "y")) } else { Ok(json!(1)) },
        ..World::default()
    };
    let stage = run_in(text, &json!(null), world);
    let expected = [
        ("each", Failed),
        ("quiet", Skipped),
        ("risky", Failed),
        ("late", Pending),
        ("both", Failed),
        ("wait", Skipped),
        ("deep", Done),
        ("leaf", Done),
        ("bad", Failed),
        ("choice", Done),
        ("yes", Done),
        ("no", Pending),
    ];
    let restored = stage.snapshots.last().map(|(length, snapshot)| {
        let events = &stage.journal.events()[..*length];
        Stage::restored(&parse(text), &json!(null), world, events, Some(snapshot)).program.position()
    });
    for position in [stage.position(), restored.unwrap()] {
        for (node, status) in expected {
            assert_eq!(position.nodes[node], status, "{node}");
        }
    }
    let picture = render(&parse(text), Some(&stage.position()), Picture::Mermaid);
    assert!(picture.contains("n_risky[\"risky<br/>task\"]:::failed"), "{picture}");
}

#[test]
fn a_container_shows_its_last_iteration_between_two_and_nothing_when_it_begins_anew() {
    let text = r#"
flow: f
nodes:
  - id: outer
    type: foreach
    items: [1, 2]
    body:
      - { id: nap, type: sleep, for: 1s }
      - { id: inner, type: foreach, items: [1, 2], body: [{ id: leaf, type: script, script: 1 }] }
  - { id: again, type: script, script: 1 }
edges: [{ from: again, to: outer, type: loop, max_iterations: 1, when: "${$pass ?? input}" }]
"#
    .replace("${$pass ?? input}", "${true}");
    let mut stage = Stage::new(&parse(&text), &json!(null), World::default());
    let mut seen = Vec::new();
    while stage.step() {
        let (last, leaf) = (stage.told().pop().unwrap(), stage.position().nodes["leaf"]);
        seen.push(format!("{last} {leaf:?}"));
    }
    for line in [
        "CONTAINER_ITERATION_COMPLETED outer/0/inner 0 Done",
        "CONTAINER_ITERATION_STARTED outer/0/inner 1 Pending",
        "CONTAINER_CHILD_COMPLETED outer/0/inner Done",
        "CONTAINER_ITERATION_STARTED outer 1 Pending",
        "NODE_COMPLETED outer Done",
        "LOOP_ITERATE again pass-2/outer 1 Pending",
    ] {
        assert!(seen.contains(&line.to_owned()), "{line}\n{}", seen.join("\n"));
    }
}
