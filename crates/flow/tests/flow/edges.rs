//! Which edges are taken when a node failed, was skipped, or runs again.

use outlast_core::event::{Event, Kind};
use outlast_core::failure::Failure;
use outlast_core::program::Program as _;
use serde_json::json;

use crate::everywhere::everywhere;
use crate::stage::{Stage, World, key, parse, run, run_in};

fn skip(node: &str) -> Event {
    Event::NodeSkipped { node: key(node), by: Some("eve".to_owned()), reason: None }
}

/// What is said about nodes that were skipped.
fn reasons(stage: &Stage) -> Vec<(String, String)> {
    let skipped = stage.journal.events().iter().filter_map(|event| match event {
        Event::NodeSkipped { node, reason, .. } => Some((node.to_string(), reason.clone().unwrap_or_default())),
        _ => None,
    });
    skipped.collect()
}

const PAYMENT: &str = r#"
flow: f
nodes:
  - { id: charge, type: task, task: fail, with: { code: declined }, on_error: { goto: refund } }
  - { id: ship, type: task, task: ship }
  - { id: refund, type: script, script: "${errors.charge?.code ?? 'nothing'}" }
edges:
  - { from: charge, to: ship }
  - { from: ship, to: refund, when: "${ship.broken}" }
"#;

#[test]
fn a_failure_leads_to_its_target_whatever_edges_lead_there() {
    let stage = run(PAYMENT, &json!(null));
    assert_eq!(stage.output(), json!({ "refund": "declined" }));
    everywhere(&parse(PAYMENT), &json!(null), World::default()).unwrap();
    // Its own condition counts.
    let never = PAYMENT.replace("id: refund,", "id: refund, when: \"${input != null}\",");
    let stage = run(&never, &json!(null));
    assert_eq!(stage.output(), json!({}));
    assert_eq!(reasons(&stage), [("refund".to_owned(), "its condition does not hold".to_owned())]);
}

#[test]
fn a_node_that_failed_and_led_elsewhere_takes_none_of_its_edges() {
    // The target stands before what must not run.
    let text = r#"
flow: f
nodes:
  - { id: charge, type: task, task: fail, on_error: { goto: refund } }
  - { id: refund, type: script, script: back }
  - { id: ship, type: task, task: ship }
edges: [{ from: charge, to: refund, when: "${false}" }, { from: charge, to: ship }]
"#;
    let stage = run(text, &json!(null));
    assert_eq!(stage.output(), json!({ "refund": "back" }));
    assert_eq!(reasons(&stage), [("ship".to_owned(), "no edge to it was taken".to_owned())]);
    let fine = run(&text.replace("task: fail", "task: pay"), &json!(null));
    assert_eq!(fine.output()["ship"]["did"], "ship");
    assert_eq!(reasons(&fine), [("refund".to_owned(), "no edge to it was taken".to_owned())]);
}

#[test]
fn where_several_nodes_run_a_failure_leaves_the_others_alone() {
    let text = r#"
flow: f
concurrency: 2
nodes:
  - { id: charge, type: task, task: fail, on_error: { goto: refund } }
  - { id: slow, type: sleep, for: 1h }
  - { id: letter, type: script, script: sent }
  - { id: ship, type: task, task: ship }
  - { id: both, type: script, script: both }
  - { id: refund, type: script, script: back }
edges:
  - { from: slow, to: letter }
  - { from: charge, to: ship }
  - { from: charge, to: both }
  - { from: slow, to: both }
  - { from: ship, to: refund }
"#;
    let stage = run(text, &json!(null));
    assert_eq!(stage.output(), json!({ "slow": null, "letter": "sent", "both": "both", "refund": "back" }));
    assert_eq!(stage.keys(Kind::NodeSkipped), ["ship"]);
    everywhere(&parse(text), &json!(null), World::default()).unwrap();
}

#[test]
fn in_the_next_pass_edges_count_again() {
    let text = r#"
flow: f
nodes:
  - { id: a, type: task, task: work, on_error: { goto: c } }
  - { id: b, type: script, script: "${a}" }
  - { id: c, type: script, script: "${errors.a?.code ?? 'none'}" }
  - { id: d, type: script, script: "${c}" }
edges:
  - { from: a, to: b }
  - { from: b, to: c, when: "${false}" }
  - { from: c, to: a, type: loop, max_iterations: 3, when: "${c == 'broken'}" }
"#;
    let world = World {
        work: |_, _, key| if key.as_str() == "a" { Err(Failure::new("broken", "x")) } else { Ok(json!(1)) },
        ..World::default()
    };
    let stage = run_in(text, &json!(null), world);
    // What the first pass left can still be read.
    assert_eq!(stage.output(), json!({ "a": 1, "b": 1, "d": "broken" }));
    assert_eq!(stage.keys(Kind::NodeSkipped), ["pass-2/c"]);
    everywhere(&parse(text), &json!(null), world).unwrap();
}

#[test]
fn what_an_operator_skips_lets_what_follows_it_run() {
    let text = r#"
flow: f
nodes:
  - { id: order, type: wait, signal: s }
  - { id: lines, type: script, script: "${order ?? 'nothing'}" }
  - { id: never, type: script, script: 1, when: "${false}" }
  - { id: after, type: script, script: 2 }
edges: [{ from: order, to: lines }, { from: never, to: after }]
"#;
    let flow = parse(text);
    let mut stage = run(text, &json!(null));
    stage.append(skip("order"));
    let (events, snapshot) = (stage.journal.events().to_vec(), stage.snapshots.last().cloned());
    stage.run();
    // A condition that does not hold ends the way; an operator does not.
    assert_eq!(stage.output(), json!({ "lines": "nothing" }));
    assert_eq!(stage.position().nodes["order"], outlast_flow::NodeStatus::Skipped);
    assert_eq!(stage.program.refuses(&skip("order")).unwrap().message, "`order` is over");
    let snapshot = snapshot.map(|(_, snapshot)| snapshot);
    for snapshot in [None, snapshot.as_ref()] {
        let mut again = Stage::restored(&flow, &json!(null), World::default(), &events, snapshot);
        again.run();
        assert_eq!(again.output(), json!({ "lines": "nothing" }));
    }
}

#[test]
fn an_operators_word_is_about_one_pass() {
    let text = r#"
flow: f
nodes:
  - { id: a, type: wait, signal: s }
  - { id: b, type: script, script: "${a}" }
edges: [{ from: b, to: a, type: loop, max_iterations: 3, when: "${b == null}" }]
"#;
    let mut stage = run(text, &json!(null));
    let refused = |stage: &Stage, node: &str| stage.program.refuses(&skip(node)).map(|failure| failure.message);
    assert_eq!(refused(&stage, "pass-2/b").unwrap(), "there is no node `pass-2/b` that is open or comes next");
    stage.append(skip("a"));
    stage.run();
    assert_eq!(stage.told().last().unwrap(), "SIGNAL_AWAITED pass-2/a");
    assert_eq!(refused(&stage, "b").unwrap(), "`b` is over");
    assert_eq!(refused(&stage, "a").unwrap(), "`a` is over");
    assert_eq!(refused(&stage, "pass-7/b").unwrap(), "there is no node `pass-7/b` that is open or comes next");
    assert_eq!(refused(&stage, "pass-1/b").unwrap(), "there is no node `pass-1/b` that is open or comes next");
    assert_eq!(refused(&stage, "pass-2/b"), None);
    // What is recorded all the same changes nothing.
    for node in ["a", "b", "pass-7/b"] {
        stage.append(skip(node));
    }
    assert_eq!(stage.keys(Kind::OperationCancelled), ["a"]);
    stage.append(skip("pass-2/b"));
    stage.append(skip("pass-2/a"));
    stage.run();
    assert_eq!(stage.output(), json!({}), "both were skipped, and nothing goes back");
}
