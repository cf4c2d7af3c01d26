//! Every suspension of a flow, with the engine killed at every call.

use outlast::Engine;
use outlast::testing::crash_everywhere;
use serde_json::{Value, json};

use super::{check_once, lines, tasks};

/// Containers in each other, everything that can be waited for, a loop edge, failures, steps.
const EVERYTHING: &str = r#"
flow: story
nodes:
  - id: each
    type: foreach
    items: "${input}"
    body:
      - { id: a, type: task, task: echo, with: "${item}" }
      - id: both
        type: parallel
        branches:
          l: [{ id: b, type: step, step: flaky, with: "${a}", retry: { attempts: 5, initial: 1s } }]
          r: [{ id: n, type: sleep, for: 5s }, { id: c, type: workflow, workflow: child, with: "${a}" }]
      - id: odd
        type: if
        condition: "${a % 2 == 1}"
        then: [{ id: no, type: task, task: fail, with: "${a}", on_error: continue }]
        else: [{ id: ok, type: approve, title: "Item ${a}?", timeout: 1m, on_error: continue }]
  - { id: word, type: wait, signal: word }
  - { id: again, type: step, step: double, with: "${(again ?? 1)}" }
edges:
  - { from: again, to: word, type: loop, max_iterations: 2, when: "${again < 4}" }
result: { count: "${each.count}", word: "${word}", again: "${again}", last: "${each.iterations[1].outputs}" }
"#;
const CHILD: &str = "flow: child\nnodes: [{ id: n, type: sleep, for: 1s }, { id: v, type: script, script: \"${input + 1}\" }]\nresult: \"${v}\"";

fn everything(snapshot_after: u64) {
    let crashes = crash_everywhere(
        |engine| {
            let engine = tasks(engine.snapshot_after(snapshot_after));
            engine.flow("story.flow.yaml", EVERYTHING).flow("child.flow.yaml", CHILD)
        },
        async |engine: Engine| {
            let run = engine.start("story", &json!([0, 1])).id("a").await.ok()?;
            for id in ["1", "2"] {
                engine.run("a").ok()?.signal("word", "hello", id).await.ok()?;
            }
            let output = run.result::<Value>().await.ok()?;
            let journal = engine.run("a").ok()?.journal().await.ok()?;
            check_once(&journal);
            engine.run("a").ok()?.position().await.ok()?;
            Some((output, lines(&journal).len()))
        },
    );
    assert!(crashes.kills > 100, "{crashes:?}");
}

#[test]
fn a_flow_survives_a_crash_at_every_call() {
    everything(64);
}

#[test]
fn a_flow_that_is_saved_with_every_commit_survives_a_crash_at_every_call() {
    everything(0);
}
