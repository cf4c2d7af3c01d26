//! Stepping through a recorded run: where it was, and what its variables held, after any event.

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::id::Index;
use outlast_core::operation::{Operations, Provided};
use outlast_core::program::{Input, Program, Progress};
use outlast_core::time::Timestamp;

use crate::limits::Limits;
use crate::machine::Machine;
use crate::script::Script;
use crate::source::Position;
use crate::world::RunInfo;

/// Values are shown up to so many bytes.
const SHOWN_BYTES_MAX: usize = 4096;
/// So many calls that wait are looked at.
const CALLS_MAX: usize = 100;
/// So many variables of a call are looked at, the innermost first.
const VARIABLES_MAX: usize = 200;
/// So many instructions are run before looking is given up: a run that took days must not be run again for minutes.
const INSTRUCTIONS_MAX: u64 = 200_000_000;

/// A run as it was after an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The next event's index.
    pub index: Index,
    /// The calls that wait, those for operations before those for other calls; a hundred of them at most.
    pub waiting: Vec<TracedCall>,
    /// How many wait.
    pub calls: usize,
    /// Whether looking was given up before that event: replaying so far takes too many instructions.
    pub gave_up: bool,
    /// How it ended, if it did.
    pub end: Option<Progress>,
}

/// A call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCall {
    /// The function's name.
    pub function: String,
    /// Where it waits.
    pub position: Position,
    /// The source line, without the space around it.
    pub line: String,
    /// The operations it waits for, by their keys; empty if it waits for another call.
    pub operations: Vec<String>,
    /// The variables it sees, as JSON; what cannot be written so is described.
    pub variables: Vec<(String, String)>,
}

/// Replays a journal up to an index, and looks. Answers of the clock and of chance come from the journal.
///
/// ```
/// use std::sync::Arc;
///
/// use outlast_core::Bytes;
/// use outlast_core::event::Event;
/// use outlast_core::id::{Index, Key};
/// use outlast_script::{RunInfo, Script, trace};
///
/// let text = "let paid = 0\nfor (const part of Inputs) {\n  await Timer.delay(part)\n  paid += part\n}\nreturn paid";
/// let script = Script::compile("pay.wf", text)?;
/// let info = RunInfo {
///     run_id: "run-1".to_owned(),
///     workflow: "pay".to_owned(),
///     tokens: Arc::new(|key: &Key| key.to_string()),
/// };
/// // The journal of the run, of which one timer has fired so far.
/// let journal = [Event::TimerFired { key: Key::new("__sleep-0")? }];
/// let seen = trace(&script, info, Bytes::from("[10, 20]"), &journal, Index(1));
/// let call = &seen.waiting[0];
/// assert_eq!((call.position.line, call.line.as_str()), (3, "await Timer.delay(part)"));
/// assert!(call.variables.contains(&("paid".to_owned(), "10".to_owned())), "{:?}", call.variables);
/// assert!(call.variables.contains(&("part".to_owned(), "20".to_owned())), "{:?}", call.variables);
/// assert_eq!(seen.end, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trace(script: &Script, info: RunInfo, input: Bytes, journal: &[Event], until: Index) -> Trace {
    let mut ops = Operations::new(Provided { now: Timestamp::EPOCH, seed: 0 });
    for event in journal {
        ops.remember(event);
    }
    let mut program = script.program(info, input, Limits::default());
    let mut progress = program.resume(Input::Start, &mut ops);
    let (mut spent, mut next) = (program.machine.spent(), Index(0));
    for (place, event) in journal.iter().enumerate() {
        let index = Index(place as u64);
        if index >= until || progress != Progress::Blocked || spent > INSTRUCTIONS_MAX {
            break;
        }
        progress = program.resume(Input::Fact { index, event }, &mut ops);
        // What it asks for is recorded already.
        ops.take();
        spent = spent.saturating_add(program.machine.spent());
        next = Index(index.0 + 1);
    }
    let gave_up = spent > INSTRUCTIONS_MAX;
    let (waiting, calls) = look(&mut program.machine);
    let index = if gave_up { next } else { until };
    Trace { index, waiting, calls, gave_up, end: (progress != Progress::Blocked).then_some(progress) }
}

/// What waits, and how much of it there is.
fn look(machine: &mut Machine) -> (Vec<TracedCall>, usize) {
    let mut suspended = machine.suspended();
    suspended.retain(|found| !machine.code.functions[found.task.function as usize].is_hidden);
    let calls = suspended.len();
    let found: Vec<_> = suspended
        .into_iter()
        .take(CALLS_MAX)
        .map(|found| {
            let function = machine.code.functions[found.task.function as usize].name.to_string();
            (function, found.position, machine.operations_of(found.task), machine.variables(found.task))
        })
        .collect();
    let show = |(function, position, operations, variables): (String, Position, Vec<String>, Vec<_>)| {
        let line = machine.code.source.line(position.line).trim().to_owned();
        let variables =
            variables.into_iter().take(VARIABLES_MAX).map(|(name, value)| (name, shown(machine, value))).collect();
        TracedCall { function, position, line, operations, variables }
    };
    let mut waiting: Vec<TracedCall> = found.into_iter().map(show).collect();
    // Those that wait for others stand behind what they wait for.
    waiting.sort_by_key(|call| call.operations.is_empty());
    (waiting, calls)
}

fn shown(machine: &mut Machine, value: crate::value::Value) -> String {
    machine.refuel();
    let mut text = match machine.stringify(value, "") {
        Ok(Some(text)) => text,
        Ok(None) | Err(_) => format!("({})", value.described()),
    };
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}
