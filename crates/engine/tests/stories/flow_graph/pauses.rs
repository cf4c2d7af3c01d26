//! Pauses in the middle of containers, messages, and where a run stands meanwhile.

use outlast::{EngineError, Event, Status, TaskContext};
use outlast_core::commit::{Control, Delivery};
use outlast_core::id::DeliveryId;
use serde_json::{Value, json};

use super::{lines, numbers, tell};
use crate::support::{Scene, Tally, journal, key, seconds, status};

const HUNDRED: &str = r#"
flow: story
nodes:
  - id: each
    type: foreach
    items: "${input}"
    body:
      - { id: a, type: task, task: work, with: "${item}" }
      - { id: b, type: sleep, for: 10s }
      - { id: c, type: script, script: "${[a, messages.length]}" }
result: "${each.iterations.map(one => one.outputs.c)}"
"#;

/// Each item takes 10 s: so after 475 s item 47 sleeps, and its task is done.
#[test]
fn a_pause_in_item_47_of_100_begins_nothing_and_the_resume_goes_on_there_with_a_message() {
    Scene::play_scripts(async |scene| {
        let done = Tally::default();
        let counted = done.clone();
        let work = move |_: TaskContext, n: u32| {
            counted.add();
            async move { Ok(n) }
        };
        let engine = scene.engine(|engine| engine.task("work", work).flow("story.flow.yaml", HUNDRED)).await;
        let run = engine.start("story", &numbers(100)).id("a").await.unwrap();
        scene.pass(seconds(475)).await;
        run.pause("lunch").await.unwrap();
        scene.pass(seconds(60)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        let position = run.position().await.unwrap();
        assert_eq!(position.pause_reason.as_deref(), Some("lunch"));
        let frame = &position.container_stack[0];
        assert_eq!((frame.iteration_index, frame.child_index), (47, 1));
        assert_eq!((frame.total_iterations, frame.completed_count), (Some(100), 47));
        assert_eq!(frame.partial_child_outputs, [("a".to_owned(), json!(47))].into_iter().collect());
        assert_eq!(frame.current_item, Some(json!(47)));
        assert_eq!(done.count(), 48, "nothing new began");
        run.resume_with("go").await.unwrap();
        let output = run.result::<Value>().await.unwrap();
        assert_eq!(output[46], json!([46, 0]));
        assert_eq!(output[47], json!([47, 1]), "the message can be read");
        assert_eq!(output[99], json!([99, 1]));
        assert_eq!(done.count(), 100, "no child ran twice");
    });
}

#[test]
fn a_task_that_runs_finishes_and_is_recorded_before_the_pause_begins() {
    let text =
        "flow: story\nnodes: [{ id: a, type: task, task: held, with: 1 }, { id: b, type: task, task: held, with: 2 }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(5)).await;
        run.pause("x").await.unwrap();
        scene.pass(seconds(5)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting, "nobody has done the task yet");
        let late = scene.engine(|engine| engine.task("held", held).flow("story.flow.yaml", text)).await;
        scene.pass(seconds(5)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        let told = lines(&journal(&engine, "a").await);
        assert_eq!(told, ["NODE_STARTED a", "TASK_SCHEDULED a", "TASK_FINISHED a", "RUN_PAUSED"]);
        run.resume().await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "a": 1, "b": 2 }));
        late.shutdown().await;
    });
}

/// Nothing else is read before the pause begins, and the doctor finds nothing wrong with that.
#[test]
fn a_timer_that_comes_while_a_pause_waits_for_a_task_is_read_after_the_resume() {
    let text = r#"
flow: story
nodes:
  - id: both
    type: parallel
    branches: { l: [{ id: a, type: task, task: held, with: 1 }], r: [{ id: n, type: sleep, for: 10s }] }
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(5)).await;
        run.pause("x").await.unwrap();
        scene.pass(seconds(20)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        let diagnosis = engine.doctor().await.unwrap();
        assert!(diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
        let late = scene.engine(|engine| engine.task("held", held).flow("story.flow.yaml", text)).await;
        scene.pass(seconds(5)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        assert!(!lines(&journal(&engine, "a").await).contains(&"TIMER_FIRED both/1/n".to_owned()));
        run.resume().await.unwrap();
        run.result::<Value>().await.unwrap();
        assert!(lines(&journal(&engine, "a").await).contains(&"TIMER_FIRED both/1/n".to_owned()));
        late.shutdown().await;
    });
}

/// The pause waits for the task: whoever sends a message meanwhile is told that it counts.
#[test]
fn a_message_that_comes_before_its_pause_does_is_not_lost() {
    let text = r#"
flow: story
nodes:
  - { id: a, type: task, task: held, with: 1 }
  - { id: b, type: script, script: "${messages.length}" }
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(5)).await;
        run.pause("x").await.unwrap();
        scene.pass(seconds(5)).await;
        run.resume_with("go").await.unwrap();
        scene.pass(seconds(5)).await;
        let late = scene.engine(|engine| engine.task("held", held).flow("story.flow.yaml", text)).await;
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "a": 1, "b": 1 }));
        late.shutdown().await;
    });
}

/// Both saw that the run was asked to pause, and both were told that they count.
#[test]
fn of_two_messages_at_once_none_is_lost() {
    let text = r#"
flow: story
nodes:
  - { id: a, type: task, task: held, with: 1 }
  - { id: b, type: script, script: "${messages}" }
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(5)).await;
        run.pause("x").await.unwrap();
        run.resume_with("one").await.unwrap();
        // The other one looked before that, and is on its way.
        let meta = Some(json!({ "message": "\"two\"" }).to_string().into());
        let id = DeliveryId::new("two").unwrap();
        let two = Delivery::Control { run: key("a"), control: Control::Resume, id, meta, child_of: None };
        scene.store.deliver(vec![two]).await.remove(0).unwrap();
        scene.pass(seconds(5)).await;
        let late = scene.engine(|engine| engine.task("held", held).flow("story.flow.yaml", text)).await;
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "a": 1, "b": ["one", "two"] }));
        late.shutdown().await;
    });
}

#[test]
fn a_message_after_a_pause_that_was_taken_back_is_refused() {
    let text = "flow: story\nnodes: [{ id: said, type: script, script: \"${messages}\" }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").delay(seconds(60)).await.unwrap();
        run.pause("x").await.unwrap();
        run.resume().await.unwrap();
        assert_eq!(run.resume_with("late").await.unwrap_err().code(), "already_running");
        assert_eq!(run.resume_with("late").id("1").await.unwrap_err().code(), "already_running");
        scene.pass(seconds(60)).await;
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "said": [] }));
    });
}

async fn held(_: TaskContext, n: u32) -> outlast::Result<u32> {
    Ok(n)
}

#[test]
fn a_resume_says_what_is_wrong_and_a_pause_of_what_has_ended_changes_nothing() {
    let text = "flow: story\nnodes: [{ id: w, type: wait, signal: s }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(run.resume_with("go").await.unwrap_err().code(), "already_running");
        assert_eq!(run.resume_with("").await.unwrap_err().code(), "validation_error");
        assert_eq!(engine.run("nobody").unwrap().resume_with("go").await.unwrap_err().code(), "not_found");
        run.pause("x").await.unwrap();
        scene.pass(seconds(1)).await;
        run.resume_with("go").id("1").await.unwrap();
        scene.pass(seconds(1)).await;
        let again = run.resume_with("go").id("1").await.unwrap();
        assert_eq!(again, outlast::Delivered::Duplicate);
        let told = journal(&engine, "a").await;
        assert_eq!(told.iter().filter(|event| matches!(event, Event::RunResumed { .. })).count(), 1);
        run.cancel("enough").await.unwrap();
        assert!(matches!(engine.run("a").unwrap().result::<Value>().await, Err(EngineError::Cancelled(_))));
        assert!(run.position().await.unwrap().pending_messages.is_empty());
        let told = journal(&engine, "a").await;
        assert_eq!(run.pause("too late").await.unwrap(), outlast::Delivered::Lost);
        scene.pass(seconds(1)).await;
        assert_eq!(journal(&engine, "a").await, told, "a pause of what has ended changes nothing");
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
    });
}

/// Pauses and resumes at every second of a flow of containers: the outputs are the same, and nothing runs twice.
#[test]
fn a_pause_at_any_moment_of_a_nested_flow_changes_nothing() {
    let text = r#"
flow: story
nodes:
  - id: rows
    type: foreach
    items: [[1, 2], [3]]
    as: row
    body:
      - id: cells
        type: foreach
        items: "${row}"
        concurrency: 2
        body: [{ id: n, type: sleep, for: 2s }, { id: t, type: task, task: echo, with: "${item}" }, { id: s, type: step, step: double, with: "${t}" }]
      - { id: ok, type: wait, signal: s, timeout: 3s, on_error: continue }
result: "${rows.iterations.map(row => row.outputs.cells.iterations.map(cell => cell.outputs.s))}"
"#;
    for second in 0..12 {
        tell(text, async |scene, engine| {
            let run = engine.start("story", &()).id("a").await.unwrap();
            scene.pass(seconds(second)).await;
            run.pause("x").await.ok();
            scene.pass(seconds(1)).await;
            run.resume_with("on").await.ok();
            assert_eq!(run.result::<Value>().await.unwrap(), json!([[2, 4], [6]]));
        });
    }
}
