//! Journals that cannot be: what is said about each.

use outlast_core::event::Event;
use outlast_core::id::Index;
use outlast_flow::derive;
use serde_json::json;

use crate::stage::{Stage, World, info, key, parse};

const TEXT: &str = r#"
flow: f
nodes:
  - id: each
    type: foreach
    items: [1, 2, 3]
    body: [{ id: a, type: task, task: echo, with: "${item}" }, { id: b, type: script, script: "${a}" }]
  - id: other
    type: foreach
    items: [1]
    body: [{ id: c, type: script, script: 1 }]
"#;

fn journal() -> Vec<Event> {
    let mut stage = Stage::new(&parse(TEXT), &json!(null), World::default());
    stage.run();
    stage.journal.events().to_vec()
}

fn refused(events: &[Event]) -> String {
    derive(&parse(TEXT), &info(), b"null", events).expect_err("a journal that cannot be").to_string()
}

fn with(at: usize, event: Event) -> Vec<Event> {
    let mut events = journal();
    events.truncate(at);
    events.push(event);
    events
}

#[test]
fn what_cannot_be_is_told_with_the_index_of_the_event() {
    let completed = |index| Event::ContainerIterationCompleted { node: key("each"), index, outputs: Vec::new() };
    let started = |index| Event::ContainerIterationStarted { node: key("each"), index, item: None, total: Some(3) };
    // 0 NODE_STARTED each, 1 ITERATION_STARTED 0, 2 CHILD_STARTED a, 3 TASK_SCHEDULED, 4 TASK_FINISHED, 5 CHILD_COMPLETED a,
    // 6 CHILD_STARTED b, 7 CHILD_COMPLETED b, 8 ITERATION_COMPLETED 0, 9 ITERATION_STARTED 1
    let cases = [
        (
            with(1, completed(0)),
            "event 1, CONTAINER_ITERATION_COMPLETED: iteration 0 of `each` ended and had not begun",
        ),
        (with(10, started(0)), "event 10, CONTAINER_ITERATION_STARTED: the iterations of `each` go back from 1 to 0"),
        (with(9, started(2)), "event 9, CONTAINER_ITERATION_STARTED: the iterations of `each` skip from 1 to 2"),
        (
            with(2, Event::ContainerChildStarted { node: key("each"), child: key("other/0/c"), child_index: 0 }),
            "event 2, CONTAINER_CHILD_STARTED: `other/0/c` is not a child of `each`",
        ),
        (
            with(2, Event::ContainerChildStarted { node: key("each"), child: key("each/0/b"), child_index: 1 }),
            "event 2, CONTAINER_CHILD_STARTED: expected CONTAINER_CHILD_STARTED `each/0/a` of `each`, found CONTAINER_CHILD_STARTED `each/0/b` of `each`",
        ),
        (
            with(
                3,
                Event::ContainerChildCompleted {
                    node: key("each"),
                    child: key("each/0/a"),
                    output: Some(Index(0)),
                    value: None,
                },
            ),
            "event 3, CONTAINER_CHILD_COMPLETED: nothing can be marked while the flow waits, found CONTAINER_CHILD_COMPLETED `each/0/a` of `each`",
        ),
        (
            with(0, Event::NodeStarted { node: key("other"), index: 1, input: None }),
            "event 0, NODE_STARTED: expected NODE_STARTED of `each`, found NODE_STARTED of `other`",
        ),
        (
            with(1, Event::TimerFired { key: key("each/0/a") }),
            "event 1, TIMER_FIRED: `each/0/a` is settled, and no node waits for it",
        ),
    ];
    for (events, said) in cases {
        assert_eq!(refused(&events), said);
    }
    let mut after = journal();
    after.push(Event::NodeStarted { node: key("each"), index: 0, input: None });
    assert!(refused(&after).ends_with("the flow has finished: nothing of `each` can follow"));
}

/// Nobody has to clamp an index: a position is folded from the journal, and no journal has one that is out of range.
#[test]
fn an_index_out_of_range_is_refused_and_never_clamped() {
    let started = |index| Event::ContainerIterationStarted { node: key("each"), index, item: None, total: Some(4) };
    let child = |child_index| Event::ContainerChildStarted { node: key("each"), child: key("each/0/a"), child_index };
    let node = |index| Event::NodeStarted { node: key("each"), index, input: None };
    // 17 ITERATION_STARTED 2, 25 NODE_COMPLETED each
    let cases = [
        (with(25, started(3)), "event 25, CONTAINER_ITERATION_STARTED: `each` is not a container that is open"),
        (
            with(17, started(4_000_000_000)),
            "event 17, CONTAINER_ITERATION_STARTED: the iterations of `each` skip from 2 to 4000000000",
        ),
        (
            with(2, child(7)),
            "event 2, CONTAINER_CHILD_STARTED: expected CONTAINER_CHILD_STARTED `each/0/a` of `each` with its own place among its siblings, found another",
        ),
        (
            with(0, node(9)),
            "event 0, NODE_STARTED: expected NODE_STARTED of `each` with its own place among its siblings, found another",
        ),
    ];
    for (events, said) in cases {
        assert_eq!(refused(&events), said);
    }
    let last = derive(&parse(TEXT), &info(), b"null", &journal()[..24]).unwrap();
    let frame = &last.container_stack[0];
    assert_eq!((frame.iteration_index, frame.total_iterations, frame.completed_count), (2, Some(3), 2));
}

#[test]
fn every_event_of_a_run_is_a_position_that_only_goes_on() {
    let events = journal();
    let positions: Vec<_> =
        (0..=events.len()).map(|stop| derive(&parse(TEXT), &info(), b"null", &events[..stop]).unwrap()).collect();
    assert!(positions.is_sorted_by_key(|position| position.current_node_index));
    assert!(positions.is_sorted_by_key(|position| position.outputs.len()));
    // Where the output of a child is, is said by its completion.
    let referred = events.iter().find_map(|event| match event {
        Event::ContainerChildCompleted { output: Some(output), .. } => Some(&events[output.0 as usize]),
        _ => None,
    });
    assert!(matches!(referred, Some(Event::TaskFinished { .. })));
}
