//! What holds for every flow and every journal.

use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::Index;
use outlast_core::program::Program as _;
use outlast_flow::derive;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::everywhere::everywhere;
use crate::random::flows;
use crate::stage::{Stage, World, info, parse};

fn world() -> World {
    World { decide: |_| Some(true), signal: |_| Some(json!("gone")), ..World::default() }
}

#[test]
fn a_stop_at_every_event_of_any_flow_changes_nothing() {
    let (finished, failed, most) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    runner
        .run(&flows(), |random| {
            let flow = parse(&random.text());
            let mut probe = Stage::new(&flow, &json!({ "times": 2 }), world());
            probe.run();
            let events = probe.journal.events().len();
            most.fetch_max(events, Ordering::Relaxed);
            // The work grows with the square.
            if events > 90 {
                return Ok(());
            }
            match everywhere(&flow, &json!({ "times": 2 }), world()) {
                Ok(_) => finished.fetch_add(1, Ordering::Relaxed),
                Err(_) => failed.fetch_add(1, Ordering::Relaxed),
            };
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    // The property is worth nothing if the flows are: both ends are seen, and some flows are long.
    let (finished, failed, most) = (finished.into_inner(), failed.into_inner(), most.into_inner());
    assert!(finished >= 20 && failed >= 3 && most >= 60, "{finished} finished, {failed} failed, {most} events at most");
}

/// What a damaged disk, or a bug, might do to a journal.
fn damage(events: &mut Vec<Event>, how: (u8, usize, usize)) {
    let (kind, at, other) = how;
    if events.is_empty() {
        return;
    }
    let (at, other) = (at % events.len(), other % events.len());
    match kind % 6 {
        0 => drop(events.remove(at)),
        1 => events.swap(at, other),
        2 => events.insert(at, events[other].clone()),
        3 => match &mut events[at] {
            Event::ContainerIterationStarted { index, .. } | Event::ContainerIterationCompleted { index, .. } => {
                *index = other as u32
            }
            Event::NodeCompleted { output, .. } => *output = outlast_core::Bytes::from("{"),
            Event::ContainerChildCompleted { output, .. } => *output = Some(Index(9_999)),
            Event::TaskFinished { result, .. } => *result = outlast_core::Bytes::from("nonsense"),
            Event::NodeStarted { index, .. } => *index += 1,
            _ => {}
        },
        4 => {
            let key = events[other].key().cloned();
            match (&mut events[at], key) {
                (
                    Event::ContainerChildStarted { child, .. } | Event::ContainerChildCompleted { child, .. },
                    Some(key),
                ) => *child = key,
                (Event::NodeStarted { node, .. } | Event::NodeError { node, .. }, Some(key)) => *node = key,
                (_, _) => {}
            }
        }
        _ => {
            let node =
                outlast_core::id::Key::new(["n0", "n1/0/n2", "nobody", "n0/x", "pass-9/n0", "n0.timeout"][other % 6])
                    .unwrap();
            let event = match at % 5 {
                0 => Event::NodeError { node, error: Failure::new("x", "y") },
                1 => Event::NodeSkipped { node, by: Some("eve".to_owned()), reason: None },
                2 => Event::NodeRetried { node, by: None, reason: None },
                3 => Event::ContainerIterationCompleted { node, index: 0, outputs: Vec::new() },
                _ => Event::TimerFired { key: node },
            };
            events.insert(at, event);
        }
    }
}

#[test]
fn any_journal_is_a_position_or_a_descriptive_error_and_never_a_panic() {
    let refused = AtomicUsize::new(0);
    let mut runner = TestRunner::new(Config { cases: 1_500, failure_persistence: None, ..Config::default() });
    let damages = prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 1..4);
    runner
        .run(&(flows(), damages), |(random, damages)| {
            let flow = parse(&random.text());
            let mut stage = Stage::new(&flow, &json!({ "times": 2 }), world());
            stage.run_to(300);
            let mut events = stage.journal.events().to_vec();
            for how in damages {
                damage(&mut events, how);
            }
            if let Err(error) = derive(&flow, &info(), br#"{"times":2}"#, &events) {
                let place = format!("event {}, ", error.index);
                prop_assert!(error.to_string().starts_with(&place));
                prop_assert!(error.message.len() > 15, "{}", error);
                prop_assert!((error.index.0 as usize) < events.len());
                refused.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(refused.into_inner() > 600);
}

#[test]
fn damaged_snapshots_are_refused_and_never_a_panic() {
    let flow = parse(crate::containers::THREE_DEEP);
    let mut stage = Stage::new(&flow, &json!([[1, 2], [3]]), world());
    stage.run();
    let snapshot = stage.snapshots[stage.snapshots.len() / 2].1.clone();
    let mut runner = TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    runner
        .run(&(any::<usize>(), any::<u8>(), any::<bool>()), |(at, with, cut)| {
            let mut data = snapshot.data.to_vec();
            let at = at % data.len();
            if cut {
                data.truncate(at)
            } else {
                data[at] ^= with.max(1)
            }
            let damaged = outlast_core::commit::Snapshot { data: data.into(), ..snapshot.clone() };
            prop_assert!(flow.restore(info(), b"[[1,2],[3]]", Default::default(), &damaged).is_err());
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let other = parse(&crate::containers::THREE_DEEP.replace("deep", "deeper"));
    assert_eq!(
        other.restore(info(), b"[[1,2],[3]]", Default::default(), &snapshot).unwrap_err(),
        outlast_flow::SnapshotError::OtherFlow
    );
}

#[test]
fn an_operators_word_at_any_event_leaves_a_journal_that_can_be_gone_on_from() {
    let said = AtomicUsize::new(0);
    let mut runner = TestRunner::new(Config { cases: 32, failure_persistence: None, ..Config::default() });
    runner
        .run(&(flows(), any::<bool>(), any::<bool>()), |(random, skips, is_paused)| {
            let flow = parse(&random.text());
            let input = json!({ "times": 2 });
            let mut whole = Stage::new(&flow, &input, world());
            whole.run();
            let length = whole.journal.events().len();
            for stop in (0..length.min(80)).step_by(3) {
                let mut stage = Stage::new(&flow, &input, world());
                stage.run_to(stop);
                if is_paused {
                    // What was decided before the pause is still to be recorded when the operator speaks.
                    stage.pause("x");
                    stage.resume("go");
                }
                let open: Vec<_> = stage.program.open_operations().map(|(key, ..)| key).collect();
                let containers =
                    stage.position().container_stack.into_iter().map(|frame| crate::stage::key(&frame.key));
                let targets: Vec<_> = open.into_iter().chain(containers).collect();
                let Some(node) = targets.get(stop % targets.len().max(1)).cloned() else { continue };
                let by = Some("eve".to_owned());
                let event = if skips {
                    Event::NodeSkipped { node, by, reason: None }
                } else {
                    Event::NodeRetried { node, by, reason: None }
                };
                if stage.program.refuses(&event).is_some() || stage.progress != outlast_core::program::Progress::Blocked
                {
                    continue;
                }
                stage.append(event);
                said.fetch_add(1, Ordering::Relaxed);
                stage.run();
                let ended = stage.ended();
                let events = stage.journal.events().to_vec();
                for cut in (stop..=events.len()).step_by(5).chain([events.len()]) {
                    let again = Stage::restored(&flow, &input, world(), &events[..cut], None);
                    again.position();
                    if cut == events.len() {
                        prop_assert_eq!(again.ended(), ended.clone());
                    }
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(said.into_inner() > 60);
}
