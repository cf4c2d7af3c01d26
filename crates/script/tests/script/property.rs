//! What holds for every program.

use outlast_script::{Limits, Script, format};
use serde_json::{Value as Json, json};

use crate::random::program;
use crate::stage::{Ended, Memory, Stage, tasks};

const PROGRAMS: u64 = 4_000;
const PROGRAMS_QUICK: u64 = 300;

fn programs() -> u64 {
    if std::env::var_os("OUTLAST_QUICK").is_some() { PROGRAMS_QUICK } else { PROGRAMS }
}

fn run(seed: u64, text: &str, memory: Memory) -> Ended {
    let script = Script::compile("random.wf", text).unwrap_or_else(|found| panic!("{found}\n{text}"));
    Stage::shuffled(&script, "random", &Json::Null, tasks, crate::node::order(seed)).run(memory).ended()
}

/// As JSON, with the first line of an error only: what is known about where it came from may differ.
fn outcome(ended: &Ended) -> Json {
    match &ended.result {
        Ok(output) => json!({ "logs": ended.logs, "output": output }),
        Err(failure) => json!({ "logs": ended.logs, "error": failure.message.lines().next() }),
    }
}

#[test]
fn a_program_that_is_saved_and_restored_at_every_suspension_goes_on_as_if_it_had_not_been() {
    for seed in 0..programs() {
        let text = program(seed);
        assert_eq!(run(seed, &text, Memory::Restored), run(seed, &text, Memory::Hot), "seed {seed}\n{text}");
    }
}

#[test]
fn a_program_that_is_rebuilt_from_its_journal_at_every_suspension_goes_on_as_if_it_had_not_been() {
    for seed in 0..programs() {
        let text = program(seed);
        assert_eq!(run(seed, &text, Memory::Rebuilt), run(seed, &text, Memory::Hot), "seed {seed}\n{text}");
    }
}

#[test]
fn collecting_garbage_at_every_chance_changes_nothing() {
    let eager = Limits { garbage_bytes: 0, ..Limits::default() };
    let written = crate::node::programs().into_iter().map(|(_, text)| text);
    for text in (0..200).map(program).chain(written) {
        let script = Script::compile("random.wf", &text).unwrap_or_else(|found| panic!("{found}\n{text}"));
        let run =
            |limits, memory| Stage::with_limits(&script, "random", &Json::Null, tasks, limits).run(memory).ended();
        assert_eq!(run(eager, Memory::Restored), run(Limits::default(), Memory::Hot), "{text}");
    }
}

#[test]
fn a_snapshot_of_a_restored_program_is_the_snapshot_it_was_restored_from() {
    for seed in 0..100 {
        let script = Script::compile("random.wf", &program(seed)).unwrap();
        let mut stage = Stage::new(&script, "random", &Json::Null, tasks);
        while let Some(before) = stage.snapshot() {
            let restored = script.restore(crate::stage::info("random"), Limits::default(), &before).unwrap();
            let after = outlast_core::program::Program::snapshot(&restored).unwrap();
            assert_eq!(after.data, before.data, "seed {seed}");
            if !stage.step(Memory::Hot) {
                break;
            }
        }
    }
}

#[test]
fn formatting_twice_changes_nothing_and_once_changes_no_meaning() {
    for seed in 0..programs() {
        let text = program(seed);
        let once = format("random.wf", &text).unwrap_or_else(|found| panic!("{found}"));
        let twice = format("random.wf", &once).unwrap_or_else(|found| panic!("{found}\n{once}"));
        assert_eq!(twice, once, "seed {seed}\n{text}");
        assert_eq!(
            outcome(&run(seed, &once, Memory::Hot)),
            outcome(&run(seed, &text, Memory::Hot)),
            "seed {seed}\n{text}\n{once}"
        );
    }
}
