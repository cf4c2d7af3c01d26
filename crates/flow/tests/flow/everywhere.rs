//! A stop at every event: by a crash, by an operator, by both. Whatever happens, the outcome is the same, and nothing that
//! was done is done again: the journal's law refuses a second start of a key.

use outlast_core::commit::Snapshot;
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_flow::{Flow, derive};
use serde_json::Value as Json;

use crate::stage::{Stage, World, info};

/// Runs a flow as it is, then with every kind of stop at every event.
pub(crate) fn everywhere(flow: &Flow, input: &Json, world: World) -> Result<Json, Failure> {
    let mut whole = Stage::new(flow, input, world);
    whole.run();
    let expected = whole.ended();
    let events = whole.journal.events().to_vec();
    for stop in 0..=events.len() {
        let before = &events[..stop];
        let bytes = input.to_string();
        derive(flow, &info(), bytes.as_bytes(), before).unwrap_or_else(|error| panic!("{error}"));
        // A crash, and the journal alone.
        finish(Stage::restored(flow, input, world, before, None), &events, &expected);
        // A crash, and the first and the last snapshot before it.
        let usable: Vec<&Snapshot> =
            whole.snapshots.iter().filter(|(taken, _)| *taken <= stop).map(|(_, snapshot)| snapshot).collect();
        for snapshot in usable.first().into_iter().chain(usable.last()) {
            finish(Stage::restored(flow, input, world, before, Some(snapshot)), &events, &expected);
        }
        // An operator, and a crash while the run is paused, and after it was resumed.
        let mut paused = Stage::new(flow, input, world);
        paused.run_to(stop);
        paused.pause("lunch");
        let journal = paused.journal.events().to_vec();
        let mut crashed = Stage::restored(flow, input, world, &journal, last(&paused));
        paused.resume("go on");
        let resumed = paused.journal.events().to_vec();
        finish_paused(paused, &expected);
        crashed.resume("go on");
        finish_paused(crashed, &expected);
        finish_paused(Stage::restored(flow, input, world, &resumed, None), &expected);
    }
    expected
}

fn last(stage: &Stage) -> Option<&Snapshot> {
    stage.snapshots.last().map(|(_, snapshot)| snapshot)
}

fn finish(mut stage: Stage, events: &[Event], expected: &Result<Json, Failure>) {
    stage.run();
    assert_eq!(&stage.ended(), expected, "{}", stage.told().join("\n"));
    // One thing at a time: so the journal is the same, too.
    let count = |kind| events.iter().filter(|event| event.kind() == kind).count();
    for kind in [outlast_core::event::Kind::TaskScheduled, outlast_core::event::Kind::NodeCompleted] {
        assert_eq!(stage.keys(kind).len(), count(kind));
    }
}

/// What runs finishes before anything else begins: where several things run at once and one fails, it may be another one.
fn finish_paused(mut stage: Stage, expected: &Result<Json, Failure>) {
    stage.run();
    let ended = stage.ended();
    match expected {
        Ok(_) => assert_eq!(&ended, expected, "{}", stage.told().join("\n")),
        Err(failure) => assert_eq!(ended.map_err(|failure| failure.code), Err(failure.code.clone())),
    }
}
