//! Pauses, messages, operators and forks.

use outlast_core::event::{Event, Kind};
use outlast_core::program::{Program, Progress};
use outlast_flow::NodeStatus;
use serde_json::json;

use crate::containers::THREE_DEEP;
use crate::everywhere::everywhere;
use crate::stage::{Stage, World, key, parse, run};

const HUNDRED: &str = r#"
flow: hundred
nodes:
  - id: each
    type: foreach
    items: "${input}"
    body:
      - { id: a, type: task, task: echo, with: "${item}" }
      - { id: b, type: task, task: echo, with: "${a}" }
      - { id: c, type: script, script: "${[a, b, messages.length]}" }
"#;

fn hundred() -> Stage {
    let items: Vec<u32> = (0..100).collect();
    Stage::new(&parse(HUNDRED), &json!(items), World::default())
}

fn run_until(stage: &mut Stage, last: &str) {
    while stage.told().last().map(String::as_str) != Some(last) {
        assert!(stage.step(), "never came to {last}");
    }
}

#[test]
fn a_pause_in_the_middle_of_item_47_stops_before_48_and_goes_on_there() {
    let mut stage = hundred();
    run_until(&mut stage, "TASK_FINISHED each/47/b");
    run_until(&mut stage, "CONTAINER_ITERATION_COMPLETED each 47");
    stage.pause("lunch");
    let position = stage.position();
    let frame = &position.container_stack[0];
    assert_eq!((frame.iteration_index, frame.total_iterations, frame.completed_count), (48, Some(100), 48));
    assert_eq!(position.pause_reason.as_deref(), Some("lunch"));
    assert_eq!(position.paused_at.map(|index| index.0 as usize), Some(stage.journal.events().len() - 1));
    let done = stage.keys(Kind::TaskScheduled).len();
    stage.resume("go");
    assert_eq!(stage.position().pending_messages, [json!("go")]);
    stage.run();
    assert_eq!(stage.keys(Kind::TaskScheduled)[done], "each/48/a");
    assert_eq!(stage.keys(Kind::TaskScheduled).len(), 200);
    let output = stage.output();
    assert_eq!(output["each"]["iterations"][47]["outputs"]["c"], json!([47, 47, 0]));
    assert_eq!(output["each"]["iterations"][48]["outputs"]["c"], json!([48, 48, 1]), "the message can be read");
    assert_eq!(stage.position().pending_messages, [json!(null); 0]);
}

#[test]
fn with_one_of_three_children_done_the_second_is_next_also_after_two_pauses_and_a_crash() {
    let mut stage = hundred();
    run_until(&mut stage, "TASK_SCHEDULED each/5/a");
    stage.pause("one");
    // The child that ran finished first.
    assert_eq!(stage.told()[stage.told().len() - 2], "TASK_FINISHED each/5/a");
    stage.resume("on");
    run_until(&mut stage, "CONTAINER_CHILD_COMPLETED each/5/a");
    stage.pause("two");
    let frame = stage.position().container_stack[0].clone();
    assert_eq!((frame.iteration_index, frame.child_index), (5, 1));
    assert_eq!(frame.partial_child_outputs, [("a".to_owned(), json!(5))].into_iter().collect());
    assert_eq!(frame.current_item, Some(json!(5)));
    let items: Vec<u32> = (0..100).collect();
    let events = stage.journal.events().to_vec();
    let mut crashed = Stage::restored(&parse(HUNDRED), &json!(items), World::default(), &events, None);
    crashed.resume("again");
    crashed.run();
    assert_eq!(crashed.keys(Kind::TaskScheduled).iter().filter(|key| *key == "each/5/a").count(), 1);
    assert_eq!(crashed.output()["each"]["iterations"][5]["outputs"]["a"], 5);
}

#[test]
fn an_empty_list_completes_and_then_the_flow_can_be_paused() {
    let text = "flow: f\nnodes: [{ id: each, type: foreach, items: [], body: [{ id: a, type: task, task: echo }] }, { id: z, type: wait, signal: s }]";
    let mut stage = run(text, &json!(null));
    stage.pause("x");
    let position = stage.position();
    assert_eq!(position.container_stack, []);
    assert_eq!((position.current_node.as_deref(), position.current_node_index), (Some("z"), 1));
    assert_eq!(position.outputs["each"], json!({ "iterations": [], "count": 0 }));
}

#[test]
fn conditions_are_evaluated_once_for_each_entry() {
    // The message would change every one of them.
    let text = r#"
flow: f
nodes:
  - id: each
    type: foreach
    items: "${messages.length == 0 ? [1, 2] : []}"
    when: "${messages.length == 0}"
    body:
      - { id: a, type: task, task: echo, with: "${item}" }
      - id: i
        type: if
        condition: "${messages.length == 0}"
        then: [{ id: t, type: task, task: echo, with: then }, { id: u, type: task, task: echo, with: also }]
        else: [{ id: e, type: task, task: echo, with: else }]
"#;
    let mut stage = Stage::new(&parse(text), &json!(null), World::default());
    run_until(&mut stage, "TASK_SCHEDULED each/0/i/0/t");
    stage.pause("x");
    let events = stage.journal.events().to_vec();
    let mut crashed = Stage::restored(
        &parse(text),
        &json!(null),
        World::default(),
        &events,
        stage.snapshots.last().map(|(_, snapshot)| snapshot),
    );
    for stage in [&mut stage, &mut crashed] {
        stage.resume("changed");
        stage.run();
        let output = stage.output();
        assert_eq!(output["each"]["count"], 2);
        assert_eq!(output["each"]["iterations"][0]["outputs"]["i"], json!({ "t": "then", "u": "also" }));
        assert_eq!(output["each"]["iterations"][1]["outputs"]["i"], json!({ "e": "else" }));
    }
}

#[test]
fn cancelling_ends_the_flow_and_drops_pending_messages() {
    let mut stage = hundred();
    run_until(&mut stage, "TASK_SCHEDULED each/3/b");
    stage.pause("x");
    stage.resume("for nobody");
    stage.append(Event::CancelRequested { reason: Some("enough".to_owned()), by: None });
    assert_eq!(stage.ended().unwrap_err().to_string(), "cancelled: the run was cancelled: enough");
    assert_eq!(stage.position().pending_messages, [json!(null); 0]);
}

#[test]
fn an_operator_skips_a_node_that_waits_and_that_is_recorded() {
    let text = "flow: f\nnodes: [{ id: ok, type: approve, title: Go? }, { id: go, type: task, task: echo, with: \"${ok ?? 'nobody'}\" }]";
    let mut stage = run(text, &json!(null));
    let skip = Event::NodeSkipped { node: key("ok"), by: Some("eve".to_owned()), reason: Some("late".to_owned()) };
    assert_eq!(stage.program.refuses(&skip), None);
    stage.append(skip.clone());
    stage.run();
    assert_eq!(stage.keys(Kind::OperationCancelled), ["ok"]);
    assert_eq!(stage.output(), json!({ "go": "nobody" }));
    assert!(stage.program.refuses(&skip).unwrap().message.contains("is over"));
    let nobody = Event::NodeRetried { node: key("nobody"), by: None, reason: None };
    assert!(stage.program.refuses(&nobody).is_some());
}

#[test]
fn an_operator_skips_what_has_not_begun() {
    let text = "flow: f\nnodes: [{ id: a, type: wait, signal: s }, { id: b, type: task, task: echo, with: 1 }, { id: c, type: script, script: \"${b}\" }]";
    let mut stage = run(text, &json!(null));
    stage.append(Event::NodeSkipped { node: key("b"), by: Some("eve".to_owned()), reason: None });
    stage.append(Event::NodeSkipped { node: key("a"), by: Some("eve".to_owned()), reason: None });
    stage.run();
    assert_eq!(stage.output(), json!({ "c": null }));
}

/// It was decided that a node begins and fails, and an operator was faster.
#[test]
fn what_is_wrong_with_a_node_that_is_skipped_is_not_wrong_with_the_next() {
    let text = "flow: f\nnodes: [{ id: a, type: script, script: 1, when: \"${input.missing.deep}\" }, { id: b, type: script, script: 2 }]";
    let mut stage = Stage::new(&parse(text), &json!({}), World::default());
    stage.append(Event::NodeSkipped { node: key("a"), by: Some("eve".to_owned()), reason: None });
    stage.run();
    assert_eq!(stage.output(), json!({ "b": 2 }));
}

#[test]
fn an_operator_has_a_node_begin_again_deep_inside() {
    let text = "flow: f\nnodes: [{ id: each, type: foreach, items: [1, 2], body: [{ id: p, type: parallel, branches: { l: [{ id: x, type: wait, signal: s }], r: [{ id: y, type: task, task: echo, with: \"${item}\" }] } }] }]";
    let mut stage = run(text, &json!(null));
    assert_eq!(stage.told().last().unwrap(), "CONTAINER_ITERATION_COMPLETED each/0/p 1");
    stage.append(Event::NodeRetried { node: key("each/0/p"), by: Some("eve".to_owned()), reason: None });
    stage.run();
    assert_eq!(stage.keys(Kind::OperationCancelled), ["each/0/p/0/x"]);
    assert_eq!(stage.keys(Kind::TaskScheduled), ["each/0/p/1/y", "each/0/p#2/1/y"]);
    // What comes too late changes nothing.
    stage.append(Event::NodeRetried { node: key("each/0/p"), by: Some("eve".to_owned()), reason: None });
    assert_eq!(
        stage.program.open_operations().map(|(key, ..)| key.to_string()).collect::<Vec<_>>(),
        ["each/0/p#2/0/x"]
    );
    let events = stage.journal.events().to_vec();
    let again = Stage::restored(&parse(text), &json!(null), World::default(), &events, None);
    assert_eq!(again.position(), stage.position());
    // What was begun again comes to its end like anything else, and what is skipped lets the rest go on.
    stage.append(Event::NodeSkipped { node: key("each/0/p#2/0/x"), by: Some("eve".to_owned()), reason: None });
    stage.run();
    stage.append(Event::NodeSkipped { node: key("each/1/p/0/x"), by: Some("eve".to_owned()), reason: None });
    stage.run();
    assert_eq!(stage.output()["each"]["iterations"][0]["outputs"]["p"], json!({ "l": {}, "r": { "y": 1 } }));
    assert!(stage.told().contains(&"CONTAINER_CHILD_COMPLETED each/0/p#2".to_owned()));
    let events = stage.journal.events().to_vec();
    for stop in 0..events.len() {
        Stage::restored(&parse(text), &json!(null), World::default(), &events[..stop], None).position();
    }
}

#[test]
fn an_operator_has_one_of_the_flows_own_nodes_begin_again_and_again() {
    let text =
        "flow: f\nnodes: [{ id: ok, type: approve, title: Go? }, { id: go, type: script, script: \"${ok.approval}\" }]";
    let mut stage = run(text, &json!(null));
    for at in ["ok", "ok#2"] {
        stage.append(Event::NodeRetried { node: key(at), by: Some("eve".to_owned()), reason: None });
        stage.run();
    }
    assert_eq!(stage.keys(Kind::ApprovalRequested), ["ok", "ok#2", "ok#3"]);
    assert_eq!(stage.keys(Kind::OperationCancelled), ["ok", "ok#2"]);
    stage.approve("ok#3", true);
    assert_eq!(stage.output()["go"], "ok#3");
}

#[test]
fn a_fork_goes_on_at_any_nested_iteration() {
    let flow = parse(THREE_DEEP);
    let expected = everywhere(&flow, &json!([[1, 2], [3]]), World::default()).unwrap();
    // With other input for what comes after: the journal before it stays.
    let mut stage = Stage::new(&flow, &json!([[1, 2], [3]]), World::default());
    run_until(&mut stage, "CONTAINER_CHILD_STARTED outer/0/middle/1/inner/0/leaf");
    let prefix = stage.journal.events().to_vec();
    let other = World {
        work: |_, args, _| Ok(if args.is_array() { json!([0, 0, "forked"]) } else { args.clone() }),
        ..World::default()
    };
    let mut fork = Stage::restored(&flow, &json!([[1, 2], [3]]), other, &prefix, None);
    fork.run();
    let lasts = |output: &serde_json::Value, row: usize, cell: usize| {
        output["outer"]["iterations"][row]["outputs"]["middle"]["iterations"][cell]["outputs"]["last"].clone()
    };
    let output = fork.output();
    assert_eq!(lasts(&output, 0, 0), lasts(&expected, 0, 0));
    assert_eq!(lasts(&output, 0, 1), json!(["forked", "forked"]));
}

#[test]
fn a_snapshot_does_not_grow_with_finished_iterations() {
    let text = |collect: &str| {
        format!(
            "flow: f\nnodes: [{{ id: e, type: foreach, items: \"${{input}}\", collect: {collect}, body: [{{ id: x, type: task, task: echo, with: \"${{item}}\" }}] }}]"
        )
    };
    let items: Vec<String> = (0..400).map(|n| format!("item number {n:04}")).collect();
    for (collect, grows) in [("none", false), ("last", false), ("all", true)] {
        let mut stage = Stage::new(&parse(&text(collect)), &json!(items), World::default());
        stage.run();
        let size = |share: usize| stage.snapshots[stage.snapshots.len() * share / 10].1.data.len();
        assert_eq!(size(9) > size(1) + 64, grows, "{collect}: {} and {}", size(1), size(9));
        // What it goes over is forgotten item by item.
        assert_eq!(size(9) + 4_000 < size(1), !grows, "{collect}: {} and {}", size(1), size(9));
    }
}

#[test]
fn a_snapshot_is_taken_only_when_nothing_is_under_way() {
    let mut stage = hundred();
    assert!(stage.program.snapshot().is_none(), "its first mark was asked for");
    while stage.step() && stage.progress == Progress::Blocked {}
    assert!(stage.snapshots.len() >= 200);
    assert!(stage.program.snapshot().is_none(), "it is over");
}

#[test]
fn a_signal_that_does_not_fit_is_not_what_a_node_waits_for() {
    let text = "flow: f\nnodes: [{ id: w, type: wait, signal: paid, schema: { type: object, required: [amount] } }]";
    let stage = run(text, &json!(null));
    assert_eq!(stage.program.misfit(&key("w"), br#"{"amount":3}"#), None);
    let misfit = stage.program.misfit(&key("w"), b"{}").unwrap();
    assert_eq!(misfit.code, "validation_error");
    assert!(stage.program.misfit(&key("w"), b"{").is_some());
    assert_eq!(stage.position().nodes["w"], NodeStatus::Waiting);
}

#[test]
fn going_back_opens_a_new_pass_counts_and_has_its_limit() {
    let text = |max: u32| {
        format!(
            "flow: f\nnodes:\n  - {{ id: a, type: script, script: \"${{(b ?? 0) + 1}}\" }}\n  - {{ id: b, type: task, task: echo, with: \"${{a}}\" }}\n  - {{ id: c, type: script, script: \"${{b}}\" }}\nedges:\n  - {{ from: b, to: a, type: loop, max_iterations: {max}, when: \"${{b < 3}}\" }}\n"
        )
    };
    let stage = run(&text(5), &json!(null));
    assert_eq!(stage.output(), json!({ "a": 3, "b": 3, "c": 3 }));
    let loops: Vec<String> = stage.told().into_iter().filter(|line| line.starts_with("LOOP")).collect();
    assert_eq!(loops, ["LOOP_ITERATE b pass-2/a 1", "LOOP_ITERATE pass-2/b pass-3/a 2"]);
    assert_eq!(stage.keys(Kind::TaskScheduled), ["b", "pass-2/b", "pass-3/b"]);
    assert_eq!(stage.keys(Kind::NodeStarted).last().unwrap(), "pass-3/c");
    let failure = run(&text(1), &json!(null)).ended().unwrap_err();
    assert_eq!(failure.code, "loop_iteration_exceeded");
    assert!(failure.message.contains("from `b` to `a` was taken 1 times"), "{failure}");
    everywhere(&parse(&text(5)), &json!(null), World::default()).unwrap();
}

#[test]
fn a_run_at_its_position_says_what_it_asks_for() {
    let mut stage = hundred();
    run_until(&mut stage, "CONTAINER_CHILD_STARTED each/2/b");
    let asked = outlast_flow::decide(&stage.position());
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].key().unwrap().as_str(), "each/2/b");
    run_until(&mut stage, "TASK_SCHEDULED each/2/b");
    assert_eq!(outlast_flow::decide(&stage.position()), []);
    run_until(&mut stage, "TASK_FINISHED each/2/b");
    assert!(matches!(&outlast_flow::decide(&stage.position())[..], [outlast_core::operation::Operation::Mark { .. }]));
}
