//! What was asked for of containers, where no other story tells it. Each in memory and on a SQLite file.

use outlast::{EngineError, Status, TaskContext};
use serde_json::{Value, json};

use super::{lines, tell};
use crate::support::{Scene, Tally, journal, seconds, status};

/// Pauses a run and waits until it is.
async fn pause(scene: &Scene, run: &outlast::RunHandle) {
    run.pause("look").await.unwrap();
    scene.pass(seconds(1)).await;
    assert_eq!(run.status().await.unwrap(), Status::Paused);
}

/// "1 of 3 children done → resume at child 2", "pausing twice inside one iteration must not lose partial outputs".
#[test]
fn two_pauses_in_one_iteration_keep_what_its_children_came_to_and_go_on_at_the_next_child() {
    let text = r#"
flow: story
nodes:
  - id: each
    type: foreach
    items: [7, 8]
    body:
      - { id: a, type: task, task: work, with: "${item}" }
      - { id: one, type: wait, signal: one }
      - { id: b, type: task, task: work, with: "${a * 10}" }
      - { id: two, type: wait, signal: two }
      - { id: c, type: script, script: "${[a, b, one, two]}" }
result: "${each.iterations.map(each => each.outputs.c)}"
"#;
    Scene::play_scripts(async |scene| {
        let done = Tally::default();
        let counted = done.clone();
        let work = move |_: TaskContext, n: u32| {
            counted.add();
            async move { Ok(n) }
        };
        let engine = scene.engine(|engine| engine.task("work", work).flow("story.flow.yaml", text)).await;
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        let frame = run.position().await.unwrap().container_stack.remove(0);
        assert_eq!((frame.iteration_index, frame.child_index, frame.total_iterations), (0, 1, Some(2)));
        run.signal("one", &1, "1").await.unwrap();
        run.resume_with("first").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        let frame = run.position().await.unwrap().container_stack.remove(0);
        assert_eq!((frame.iteration_index, frame.child_index), (0, 3));
        let partial = json!(frame.partial_child_outputs);
        assert_eq!(partial, json!({ "a": 7, "one": 1, "b": 70 }));
        run.resume_with("second").await.unwrap();
        for (name, n) in [("two", 2), ("one", 3), ("two", 4)] {
            run.signal(name, &n, &n.to_string()).await.unwrap();
        }
        assert_eq!(run.result::<Value>().await.unwrap(), json!([[7, 70, 1, 2], [8, 80, 3, 4]]));
        assert_eq!(done.count(), 4, "no child ran twice");
    });
}

/// "stale inner frames never reach a later outer iteration"
#[test]
fn an_inner_container_begins_anew_in_every_outer_iteration_whatever_was_paused_before() {
    let text = r#"
flow: story
nodes:
  - id: rows
    type: foreach
    items: [[1, 2], [3, 4]]
    as: row
    body:
      - id: cells
        type: foreach
        items: "${row}"
        body: [{ id: t, type: task, task: echo, with: "${item}" }, { id: w, type: wait, signal: s }]
result: "${rows.iterations.map(row => row.outputs.cells.iterations.map(cell => [cell.index, cell.outputs.t]))}"
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        for (n, (outer, inner)) in [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().enumerate() {
            scene.pass(seconds(1)).await;
            pause(scene, &run).await;
            let stack = run.position().await.unwrap().container_stack;
            let at: Vec<_> = stack.iter().map(|frame| (frame.iteration_index, frame.completed_count)).collect();
            assert_eq!(at, [(outer, outer), (inner, inner)]);
            let partial = json!(stack[1].partial_child_outputs);
            assert_eq!(partial, json!({ "t": 2 * outer + inner + 1 }), "only what this iteration came to");
            assert_eq!(stack[1].key, format!("rows/{outer}/cells"));
            run.resume().await.unwrap();
            run.signal("s", &(), &n.to_string()).await.unwrap();
        }
        assert_eq!(run.result::<Value>().await.unwrap(), json!([[[0, 1], [1, 2]], [[0, 3], [1, 4]]]));
    });
}

/// "a container inside itself (through a child flow) has its own frame"
#[test]
fn a_flow_that_starts_itself_has_frames_of_its_own() {
    let text = r#"
flow: story
nodes:
  - id: each
    type: foreach
    items: "${input}"
    body:
      - { id: below, type: workflow, workflow: story, with: "${item}", when: "${item.length > 0}" }
      - { id: w, type: wait, signal: s, when: "${item.length == 0}" }
result: "${each.count}"
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &json!([[[]], [[], []]])).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        for (n, (outer, inner)) in [(0, 0), (1, 0), (1, 1)].into_iter().enumerate() {
            let frame = run.position().await.unwrap().container_stack.remove(0);
            assert_eq!((frame.iteration_index, frame.total_iterations), (outer, Some(2)));
            let started = journal(&engine, "a").await.into_iter().rev().find_map(|event| match event {
                outlast::Event::ChildStarted { child, .. } => Some(child.to_string()),
                _ => None,
            });
            let child = engine.run(&started.unwrap()).unwrap();
            let below = child.position().await.unwrap().container_stack;
            assert_eq!(below.len(), 1);
            assert_eq!((below[0].key.as_str(), below[0].iteration_index), ("each", inner));
            assert_eq!(below[0].total_iterations, Some(outer + 1));
            child.signal("s", &(), &n.to_string()).await.unwrap();
            scene.pass(seconds(1)).await;
        }
        assert_eq!(run.result::<Value>().await.unwrap(), json!(2));
    });
}

/// "conditions are evaluated once per entry, not again mid-loop": here they would come to something else after the resume.
#[test]
fn conditions_and_lists_are_found_out_once_although_a_message_would_change_them() {
    let text = r#"
flow: story
nodes:
  - id: branch
    type: if
    condition: "${messages.length == 0}"
    then:
      - id: each
        type: foreach
        items: "${messages.length == 0 ? [1, 2, 3] : []}"
        when: "${messages.length == 0}"
        body: [{ id: w, type: wait, signal: s }, { id: t, type: script, script: "${[item, messages.length]}" }]
    else: [{ id: no, type: task, task: fail, with: 1 }]
result: "${branch.each.iterations.map(one => one.outputs.t)}"
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        run.resume_with("changes everything").await.unwrap();
        for n in 0..3 {
            run.signal("s", &(), &n.to_string()).await.unwrap();
        }
        assert_eq!(run.result::<Value>().await.unwrap(), json!([[1, 1], [2, 1], [3, 1]]));
    });
}

/// "input cannot change on resume": a message is a message, whatever it looks like, and a run has the input it began with.
#[test]
fn an_input_stays_what_it_was_whatever_a_resume_says() {
    let text = r#"
flow: story
nodes: [{ id: w, type: wait, signal: s }, { id: n, type: script, script: "${[input.n, messages]}" }]
result: "${n}"
"#;
    tell(text, async |scene, engine| {
        let (given, other) = (json!({ "n": 1 }), json!({ "n": 2 }));
        let run = engine.start("story", &given).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        assert!(engine.start("story", &other).id("a").await.is_err(), "another input is not the same run");
        run.resume_with(&json!({ "input": other })).await.unwrap();
        scene.pass(seconds(1)).await;
        run.signal("s", &(), "s").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!([1, [{ "input": other }]]));
        let input = engine.run("a").unwrap().input().await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&input).unwrap(), given);
    });
}

/// "an empty array completes, then pauses"
#[test]
fn an_empty_list_completes_and_then_the_run_is_paused() {
    let text = "flow: story\nnodes: [{ id: each, type: foreach, items: [], body: [{ id: t, type: task, task: fail }] }, { id: w, type: wait, signal: s }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        let position = run.position().await.unwrap();
        assert_eq!((position.current_node.as_deref(), position.current_node_index), (Some("w"), 1));
        assert_eq!(position.outputs["each"], json!({ "iterations": [], "count": 0 }));
        assert_eq!(position.container_stack, []);
        run.resume().await.unwrap();
        run.signal("s", &1, "1").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap()["w"], json!(1));
    });
}

/// Everything an observer may ask for, in a concurrent container: the stack is the way to the lowest iteration that runs.
#[test]
fn a_position_says_where_a_run_stands_and_why() {
    let text = r#"
flow: story
nodes:
  - { id: first, type: script, script: "${input + 1}" }
  - id: each
    type: foreach
    items: [0, 1, 2, 3]
    concurrency: 3
    body: [{ id: t, type: task, task: echo, with: "${item}" }, { id: w, type: wait, signal: "s" }]
  - { id: last, type: script, script: 1 }
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &4).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        run.signal_to("each/1/w", "s", &(), "1").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        let position = run.position().await.unwrap();
        assert_eq!((position.run.as_str(), position.flow.as_str()), ("a", "story"));
        assert_eq!((position.current_node.as_deref(), position.current_node_index), (Some("each"), 1));
        assert_eq!(json!(position.outputs), json!({ "first": 5 }));
        assert_eq!(position.pause_reason.as_deref(), Some("look"));
        let paused_at = position.paused_at.unwrap();
        assert!(lines(&journal(&engine, "a").await)[paused_at.0 as usize].starts_with("RUN_PAUSED"));
        assert!(position.pending_messages.is_empty());
        let frame = &position.container_stack[0];
        assert_eq!(frame.active, [0, 2, 3], "iteration 1 is over, and 3 took its place");
        assert_eq!((frame.iteration_index, frame.child_index, frame.completed_count), (0, 1, 1));
        assert_eq!((frame.total_iterations, &frame.current_item), (Some(4), &Some(json!(0))));
        assert_eq!(frame.completed_iterations, [json!({ "index": 1, "item": 1, "outputs": { "t": 1, "w": null } })]);
        assert_eq!(json!(frame.partial_child_outputs), json!({ "t": 0 }));
        run.resume_with("on").await.unwrap();
        scene.pass(seconds(1)).await;
        let position = run.position().await.unwrap();
        assert_eq!((position.paused_at, position.pause_reason), (None, None));
        assert_eq!(position.pending_messages, [json!("on")], "nothing has begun since");
        run.cancel("enough").await.unwrap();
        scene.pass(seconds(1)).await;
        assert!(run.position().await.unwrap().pending_messages.is_empty(), "cancelling drops them");
    });
}

/// "cancelling a paused run drops pending messages"; and what it waited for is taken back at once.
#[test]
fn a_paused_run_that_is_cancelled_ends_and_keeps_no_message() {
    let text = "flow: story\nnodes: [{ id: w, type: wait, signal: s }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        run.resume_with("said").await.unwrap();
        scene.pass(seconds(1)).await;
        pause(scene, &run).await;
        assert_eq!(run.position().await.unwrap().pending_messages, [json!("said")]);
        run.cancel("enough").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
        assert!(matches!(engine.run("a").unwrap().result::<Value>().await, Err(EngineError::Cancelled(_))));
        assert!(run.position().await.unwrap().pending_messages.is_empty());
        assert!(scene.awaiting("a").await.is_empty());
    });
}
