//! Every kind of node, and the order of events.

use outlast::{Ctx, Event, Outlast, Status, StepContext};
use serde_json::{Value, json};

use super::{fails, lines, result, returns, tasks, tell};
use crate::support::{Scene, journal, seconds, status};

#[test]
fn a_foreach_records_every_iteration_and_child_in_order() {
    let text = r#"
flow: story
nodes:
  - id: each
    type: foreach
    items: "${input}"
    body:
      - { id: a, type: task, task: echo, with: "${item}" }
      - { id: b, type: step, step: double, with: "${a}" }
result: "${each.iterations.map(one => one.outputs.b)}"
"#;
    tell(text, async |_, engine| {
        assert_eq!(result(&engine, &json!([3])).await.unwrap(), json!([6]));
        let expected = [
            "NODE_STARTED each",
            "CONTAINER_ITERATION_STARTED each 0",
            "CONTAINER_CHILD_STARTED each/0/a",
            "TASK_SCHEDULED each/0/a",
            "TASK_FINISHED each/0/a",
            "CONTAINER_CHILD_COMPLETED each/0/a",
            "CONTAINER_CHILD_STARTED each/0/b",
            "STEP_FINISHED each/0/b",
            "CONTAINER_CHILD_COMPLETED each/0/b",
            "CONTAINER_ITERATION_COMPLETED each 0",
            "NODE_COMPLETED each",
            "RUN_FINISHED",
        ];
        let told = journal(&engine, "a").await;
        assert_eq!(lines(&told), expected);
        let total = told.iter().find_map(|event| match event {
            Event::ContainerIterationStarted { total, .. } => Some(*total),
            _ => None,
        });
        assert_eq!(total, Some(Some(1)), "it is known how many there will be");
        let refers = told.iter().find_map(|event| match event {
            Event::ContainerChildCompleted { output, value, .. } => Some((*output, value.clone())),
            _ => None,
        });
        assert_eq!(
            refers.map(|(at, value)| (at.map(|at| at.0), value)),
            Some((Some(4), None)),
            "the output is not repeated"
        );
    });
}

#[test]
fn a_foreach_knows_its_place_and_containers_nest_three_deep() {
    let text = r#"
flow: story
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
          - id: inner
            type: loop
            max_iterations: 2
            collect: all
            body: [{ id: leaf, type: task, task: echo, with: "${[cell, $iteration, $first, $last, $max_iterations]}" }]
result: "${outer.iterations.map(row => row.outputs.middle.iterations.map(cell => cell.outputs.inner.iterations.map(one => one.outputs.leaf)))}"
"#;
    let leaf = |n: u32| json!([[n, 0, true, false, 2], [n, 1, false, true, 2]]);
    assert_eq!(returns(text, &json!([[1, 2], [3]])), json!([[leaf(1), leaf(2)], [leaf(3)]]));
}

#[test]
fn an_empty_list_completes_and_a_flow_without_containers_has_no_stack() {
    let text = "flow: story\nnodes: [{ id: each, type: foreach, items: [], body: [{ id: a, type: task, task: echo }] }, { id: z, type: wait, signal: s }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let position = run.position().await.unwrap();
        assert_eq!(position.container_stack, []);
        assert_eq!((position.current_node.as_deref(), position.current_node_index), (Some("z"), 1));
        assert_eq!(position.outputs["each"], json!({ "iterations": [], "count": 0 }));
        run.signal("s", &7, "1").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap()["z"], 7);
    });
}

#[test]
fn choices_parallel_branches_sleeps_and_expressions_finish() {
    let text = r#"
flow: story
nodes:
  - { id: nap, type: sleep, for: 1m }
  - id: both
    type: parallel
    branches:
      left: [{ id: l, type: task, task: echo, with: 1 }]
      right: [{ id: s, type: sleep, for: 5s }, { id: r, type: script, script: "${input + 1}" }]
  - id: sign
    type: if
    condition: "${input > 0}"
    then: [{ id: plus, type: script, script: "plus" }]
    else: [{ id: minus, type: script, script: "minus" }]
  - id: which
    type: switch
    on: "${input}"
    cases:
      - { value: 7, body: [{ id: seven, type: script, script: seven }] }
    default: [{ id: other, type: script, script: other }]
  - { id: never, type: task, task: fail, with: 1, when: "${input < 0}" }
  - { id: caught, type: task, task: fail, with: 2, on_error: continue }
result: { l: "${both.left.l}", r: "${both.right.r}", sign: "${sign}", which: "${which}", never: "${never}", code: "${errors.caught.code}" }
"#;
    let expected = json!({
        "l": 1, "r": 8, "sign": { "plus": "plus" }, "which": { "seven": "seven" }, "never": null, "code": "broken"
    });
    assert_eq!(returns(text, &json!(7)), expected);
}

#[test]
fn a_loop_edge_opens_a_new_pass_and_stops_at_its_limit() {
    let text = |max: u32| {
        format!(
            r#"
flow: story
nodes:
  - {{ id: count, type: script, script: "${{(count ?? 0) + 1}}" }}
  - {{ id: work, type: task, task: echo, with: "${{count}}" }}
edges:
  - {{ from: work, to: count, type: loop, max_iterations: {max}, when: "${{work < 3}}" }}
result: "${{work}}"
"#
        )
    };
    tell(&text(5), async |_, engine| {
        assert_eq!(result(&engine, &json!(null)).await.unwrap(), json!(3));
        let told = lines(&journal(&engine, "a").await);
        let scheduled: Vec<&String> = told.iter().filter(|line| line.starts_with("TASK_SCHEDULED")).collect();
        assert_eq!(scheduled, ["TASK_SCHEDULED work", "TASK_SCHEDULED pass-2/work", "TASK_SCHEDULED pass-3/work"]);
    });
    assert_eq!(fails(&text(1), &json!(null)).code, "loop_iteration_exceeded");
}

#[test]
fn a_failed_node_fails_the_flow_with_its_place() {
    let text = "flow: story\nnodes: [{ id: each, type: foreach, items: [1], body: [{ id: a, type: task, task: fail, with: 5 }] }]";
    let failure = fails(text, &json!(null));
    assert_eq!(failure.code, "broken");
    assert!(failure.message.contains("each"), "{failure}");
}

#[test]
fn children_of_every_style_are_started_and_awaited() {
    async fn code(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        ctx.sleep(seconds(5)).await?;
        Ok(n + 1)
    }
    let text = r#"
flow: story
nodes:
  - { id: one, type: workflow, workflow: code, with: 1 }
  - { id: two, type: workflow, workflow: script, with: "${one}" }
  - { id: three, type: workflow, workflow: inner, with: "${two}" }
result: "${three}"
"#;
    let inner = "flow: inner\nnodes: [{ id: each, type: foreach, items: \"${[input, input]}\", body: [{ id: a, type: task, task: echo, with: \"${item}\" }] }]\nresult: \"${each.iterations[1].outputs.a}\"";
    let script = "workflow script(n) { await Task.delay(5); return n * 10 }";
    Scene::play_scripts(async |scene| {
        let engine = scene
            .engine(|engine| {
                let engine = tasks(engine).workflow("code", code).script("script.wf", script);
                engine.flow("inner.flow.yaml", inner).flow("story.flow.yaml", text)
            })
            .await;
        assert_eq!(result(&engine, &json!(null)).await.unwrap(), json!(20));
    });
}

#[test]
fn a_step_is_retried_as_its_node_says() {
    let text = "flow: story\nnodes: [{ id: s, type: step, step: flaky, with: 4, retry: { attempts: 5, initial: 1s } }]\nresult: \"${s}\"";
    tell(text, async |_, engine| {
        assert_eq!(result(&engine, &json!(null)).await.unwrap(), json!(4.0));
        let expected = [
            "NODE_STARTED s",
            "STEP_RETRY_SCHEDULED s",
            "STEP_RETRY_SCHEDULED s",
            "STEP_FINISHED s",
            "NODE_COMPLETED s",
            "RUN_FINISHED",
        ];
        assert_eq!(lines(&journal(&engine, "a").await), expected);
    });
}

/// Nothing is recorded of a step that is taken back before it came to anything, and nobody does it any more.
#[test]
fn a_step_that_was_taken_back_is_not_among_what_is_open() {
    let text = r#"
flow: story
nodes:
  - id: both
    type: parallel
    on_error: continue
    branches: { l: [{ id: s, type: step, step: stuck, with: 1 }], r: [{ id: f, type: task, task: fail, with: 1 }] }
  - { id: w, type: wait, signal: go }
"#;
    async fn stuck(_: StepContext, _: u32) -> outlast::Result<()> {
        std::future::pending().await
    }
    Scene::play_scripts(async |scene| {
        let with = |engine: Outlast| tasks(engine).step("stuck", stuck).flow("story.flow.yaml", text);
        let engine = scene.engine(with).await;
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(5)).await;
        let replayed = with(scene.world.engine()).checker().check(&run.export().await.unwrap()).unwrap();
        let open: Vec<String> = replayed.operations.iter().map(|operation| operation.key.to_string()).collect();
        assert_eq!(open, ["w"]);
        run.signal("go", &1, "1").await.unwrap();
        run.result::<Value>().await.unwrap();
    });
}

#[test]
fn a_callback_is_answered_with_the_token_its_task_was_given() {
    let text = "flow: story\nnodes: [{ id: c, type: callback, task: echo, with: \"${$token}\" }]\nresult: \"${c}\"";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let told = journal(&engine, "a").await;
        let token = told.iter().find_map(|event| match event {
            Event::TaskFinished { result, .. } => serde_json::from_slice::<String>(result).ok(),
            _ => None,
        });
        run.resolve_callback("c", &token.unwrap(), &json!({ "sum": 5 })).await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "sum": 5 }));
    });
}

#[test]
fn a_node_that_takes_too_long_is_cancelled_with_everything_in_it() {
    let text = r#"
flow: story
nodes:
  - id: both
    type: parallel
    timeout: 1m
    on_error: continue
    branches: { l: [{ id: w, type: wait, signal: s }], r: [{ id: n, type: sleep, for: 1h }] }
result: "${errors.both.code}"
"#;
    tell(text, async |scene, engine| {
        assert_eq!(result(&engine, &json!(null)).await.unwrap(), json!("timeout"));
        assert!(scene.awaiting("a").await.is_empty());
    });
}

#[test]
fn a_cancelled_flow_ends_and_takes_back_what_it_waits_for() {
    let text = "flow: story\nnodes: [{ id: each, type: foreach, items: [1, 2], concurrency: 2, body: [{ id: w, type: wait, signal: s }] }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        run.cancel("enough").await.unwrap();
        assert!(run.result::<Value>().await.is_err());
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
        assert!(scene.awaiting("a").await.is_empty());
    });
}

#[test]
fn mistakes_are_said_with_their_line() {
    Scene::play_scripts(async |scene| {
        let engine = scene
            .world
            .engine_on(scene.store.clone())
            .flow("bad.flow.yaml", "flow: bad\nnodes: [{ id: a, type: taks }]");
        let error = engine.start().await.err().unwrap();
        assert_eq!(error.code(), "validation_error");
        assert!(error.to_string().contains("bad.flow.yaml") && error.to_string().contains("task"), "{error}");
    });
}
