//! What operators do to nodes, and forks at a node.

use outlast::{Delivered, Event, Status};
use serde_json::{Value, json};

use super::{lines, tell};
use crate::support::{journal, seconds, status};

/// Users' wish 22: an approval inside a branch of a loop holds the branch, and a skipped one does not park the flow.
#[test]
fn a_skipped_approval_in_a_branch_of_a_loop_lets_the_flow_go_on_and_is_recorded() {
    let text = r#"
flow: story
nodes:
  - id: each
    type: foreach
    items: [1, 2]
    body:
      - id: i
        type: if
        condition: "${item > 0}"
        then: [{ id: ok, type: approve, title: "Item ${item}?" }, { id: go, type: task, task: echo, with: "${ok?.by ?? 'nobody'}" }]
result: "${each.iterations.map(one => one.outputs.i.go)}"
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(3600)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting, "the branch is held");
        let position = run.position().await.unwrap();
        let stack: Vec<&str> = position.container_stack.iter().map(|frame| frame.node.as_str()).collect();
        assert_eq!(stack, ["each", "i"]);
        let skip = || run.skip_node("each/0/i/0/ok").by("eve").reason("late").id("1");
        assert_eq!(skip().await.unwrap(), Delivered::Delivered);
        scene.pass(seconds(1)).await;
        assert_eq!(skip().await.unwrap(), Delivered::Duplicate, "the same request again");
        let again = run.skip_node("each/0/i/0/ok").await.unwrap_err().to_string();
        assert!(again.contains("each/0/i/0/ok"), "{again}");
        let told = journal(&engine, "a").await;
        let skipped = told.iter().find_map(|event| match event {
            Event::NodeSkipped { by, reason, .. } => Some((by.clone(), reason.clone())),
            _ => None,
        });
        assert_eq!(skipped, Some((Some("eve".to_owned()), Some("late".to_owned()))));
        run.approve("each/1/i/0/ok", true).by("ada").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!(["nobody", "ada"]));
    });
}

#[test]
fn a_node_that_waits_begins_again_with_a_key_of_its_own() {
    let text = "flow: story\nnodes: [{ id: w, type: wait, signal: s }, { id: x, type: task, task: echo, with: \"${w}\" }]\nresult: \"${x}\"";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert!(run.retry_node("x").await.unwrap_err().to_string().contains("has not begun"));
        assert!(run.retry_node("nobody").await.is_err());
        run.retry_node("w").by("eve").await.unwrap();
        scene.pass(seconds(1)).await;
        run.signal("s", &5, "1").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!(5));
        let expected = [
            "NODE_STARTED w",
            "SIGNAL_AWAITED w",
            "NODE_RETRIED w",
            "OPERATION_CANCELLED w",
            "SIGNAL_AWAITED w#2",
            "SIGNAL_RESOLVED w#2",
            "NODE_COMPLETED w#2",
            "NODE_STARTED x",
            "TASK_SCHEDULED x",
            "TASK_FINISHED x",
            "NODE_COMPLETED x",
            "RUN_FINISHED",
        ];
        assert_eq!(lines(&journal(&engine, "a").await), expected);
    });
}

/// Two operators, or one who is late: whoever was told that it counts finds in the journal what became of it.
#[test]
fn an_operator_who_came_too_late_is_told_so_in_the_journal() {
    let text = "flow: story\nnodes: [{ id: w, type: wait, signal: s }, { id: x, type: wait, signal: t }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        run.pause("look").await.unwrap();
        scene.pass(seconds(1)).await;
        // Each is possible as the run stands, and it does them when it goes on.
        run.skip_node("w").by("ann").await.unwrap();
        run.retry_node("w").by("eve").reason("it hangs").await.unwrap();
        run.skip_node("w").by("bob").await.unwrap();
        run.resume().await.unwrap();
        scene.pass(seconds(1)).await;
        run.signal("t", &5, "1").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "x": 5 }));
        let journal = journal(&engine, "a").await;
        let told = journal.iter().filter_map(|event| match event {
            Event::NodeSkipped { node, by, .. } => Some(format!("{} skipped {node}", by.as_deref()?)),
            Event::InterventionRefused { node, wanted, by, reason, error } => {
                let (by, reason) = (by.as_deref()?, reason.as_deref().unwrap_or("-"));
                Some(format!("{by} wanted to {wanted} {node} ({reason}): {}", error.message))
            }
            _ => None,
        });
        let expected =
            ["ann skipped w", "eve wanted to retry w (it hangs): `w` is over", "bob wanted to skip w (-): `w` is over"];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        // Whoever asks again is told at once.
        let run = engine.run("a").unwrap();
        assert!(run.skip_node("w").by("bob").id("1").await.unwrap_err().to_string().contains("over"));
    });
}

/// What a run was asked for when it came to its end in the same moment is in its journal, too.
#[test]
fn an_operator_whose_run_ended_first_is_told_so_in_the_journal() {
    let text = "flow: story\nnodes: [{ id: w, type: wait, signal: s }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        run.pause("look").await.unwrap();
        scene.pass(seconds(1)).await;
        run.skip_node("w").by("ann").await.unwrap();
        run.cancel("enough").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
        let told = lines(&journal(&engine, "a").await);
        let spoken = told.iter().filter(|line| line.contains("SKIPPED") || line.contains("REFUSED")).count();
        assert_eq!(spoken, 1, "{told:?}");
    });
}

#[test]
fn what_is_skipped_while_a_run_is_paused_never_begins() {
    let text = "flow: story\nnodes: [{ id: n, type: sleep, for: 5s }, { id: x, type: task, task: fail, with: 1 }]";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        run.pause("look").await.unwrap();
        scene.pass(seconds(1)).await;
        run.skip_node("x").await.unwrap();
        scene.pass(seconds(10)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused, "a request about a node does not end the pause");
        run.resume().await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "n": null }));
        let told = lines(&journal(&engine, "a").await);
        assert!(!told.contains(&"TASK_SCHEDULED x".to_owned()), "{told:?}");
    });
}

#[test]
fn a_fork_begins_at_a_nested_iteration() {
    let text = r#"
flow: story
nodes:
  - id: rows
    type: foreach
    items: [1, 2]
    body:
      - id: cells
        type: foreach
        items: [10, 20]
        as: cell
        body: [{ id: t, type: task, task: echo, with: "${item * cell}" }]
result: "${rows.iterations.map(row => row.outputs.cells.iterations.map(cell => cell.outputs.t))}"
"#;
    tell(text, async |_, engine| {
        let expected = json!([[10, 20], [20, 40]]);
        let run = engine.start("story", &()).id("a").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), expected);
        let run = engine.run("a").unwrap();
        for (node, id) in [("rows/1/cells/1", "b"), ("rows/0/cells/1/t", "c"), ("rows", "d")] {
            let fork = run.fork_at_node(node).await.unwrap().id(id).await.unwrap();
            assert_eq!(fork.run.result::<Value>().await.unwrap(), expected, "{node}");
        }
        let kept = journal(&engine, "b").await;
        assert_eq!(lines(&kept[..3]), lines(&journal(&engine, "a").await[..3]));
        assert!(run.fork_at_node("rows/7").await.is_err());
    });
}

#[test]
fn a_fork_where_several_nodes_run_asks_for_their_tasks_again() {
    let text = r#"
flow: story
concurrency: 2
nodes: [{ id: a, type: task, task: echo, with: 1 }, { id: b, type: task, task: echo, with: 2 }]
"#;
    tell(text, async |_, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        let expected = run.result::<Value>().await.unwrap();
        let told = lines(&journal(&engine, "a").await);
        for at in 1..u64::try_from(told.len()).unwrap() {
            let fork = engine.run("a").unwrap().fork(at).id(&format!("at-{at}")).await.unwrap();
            assert_eq!(fork.run.result::<Value>().await.unwrap(), expected, "at {at} of {told:?}");
        }
    });
}

/// The task that was skipped is not in the fork, and it is not wanted there either.
#[test]
fn a_fork_right_after_a_skip_begins_nothing_of_what_was_skipped() {
    let text = r#"
flow: story
nodes: [{ id: slow, type: task, task: nobodys, with: 1 }, { id: w, type: wait, signal: go }]
"#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        run.skip_node("slow").by("eve").await.unwrap();
        scene.pass(seconds(1)).await;
        let told = lines(&journal(&engine, "a").await);
        let skipped = told.iter().position(|line| line.starts_with("NODE_SKIPPED")).unwrap();
        run.fork(skipped as u64 + 1).id("b").await.unwrap();
        scene.pass(seconds(1)).await;
        let forked = lines(&journal(&engine, "b").await);
        assert_eq!(forked.last().unwrap(), "SIGNAL_AWAITED w");
        assert!(!forked.iter().any(|line| line.contains("TASK_SCHEDULED")), "{forked:?}");
    });
}

/// What is kept was decided with the input it had. One that decides otherwise parks the fork, which says so.
#[test]
fn a_fork_whose_input_takes_another_branch_than_it_kept_says_which() {
    let text = "flow: story\nnodes:\n  - id: dear\n    type: switch\n    on: '${input.kind}'\n    cases:\n      \
                - { value: a, body: [{ id: one, type: wait, signal: go }] }\n      \
                - { value: b, body: [{ id: two, type: wait, signal: go }] }\n  - id: big\n    type: if\n    \
                condition: '${input.amount > 100}'\n    then: [{ id: ask, type: wait, signal: go }]\n    \
                else: [{ id: small, type: wait, signal: go }]\n";
    tell(text, async |scene, engine| {
        let run = engine.start("story", &json!({ "amount": 500, "kind": "a" })).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let other = json!({ "amount": 500, "kind": "b" });
        let first = run.fork(journal(&engine, "a").await.len() as u64).id("b").input(&other).await.unwrap();
        run.signal("go", &1, "1").await.unwrap();
        scene.pass(seconds(1)).await;
        let all = journal(&engine, "a").await.len() as u64;
        let second = run.fork(all).id("c").input(&json!({ "amount": 5, "kind": "a" })).await.unwrap();
        let neither = run.fork(all).id("d").input(&json!({ "amount": 5, "kind": "c" })).await.unwrap();
        scene.pass(seconds(1)).await;
        for (fork, expected) in [
            (
                first,
                "`dear` took branch 0 when this was recorded, and takes branch 1 with the input and outputs it has now",
            ),
            (
                second,
                "`big` took `then` when this was recorded, and takes `else` with the input and outputs it has now",
            ),
            (
                neither,
                "`dear` took branch 0 when this was recorded, and takes none with the input and outputs it has now",
            ),
        ] {
            let note = fork.run.view().await.unwrap().note.unwrap();
            assert!(note.contains(expected) && note.ends_with("fork from further back"), "{note}");
        }
    });
}
