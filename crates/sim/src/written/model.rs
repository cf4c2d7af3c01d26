//! The model of texts: whether what a run came to is possible at all. It knows the program and what the outside knows.

mod flow;
mod leaf;
mod script;

use std::collections::{BTreeMap, BTreeSet};

use outlast::Failure;
use outlast_core::failure::code;
use serde_json::Value;

use super::{EDITIONS, Program, Written};
use crate::model::Told;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// With this output.
    Output(Value),
    /// With this failure.
    Failed(Failure),
    /// It was asked to stop, and did.
    Cancelled,
    /// It was ended without being asked.
    Terminated,
}

impl Came {
    /// What it is called, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Came::Output(_) => "finished",
            Came::Failed(_) => "failed",
            Came::Cancelled => "cancelled",
            Came::Terminated => "terminated",
        }
    }
}

/// What the outside knows.
#[derive(Clone, Debug, Default)]
pub struct Known<'k> {
    /// The run's id.
    pub run: &'k str,
    /// What runs were told, by their ids.
    pub told: BTreeMap<String, Told>,
    /// Whether nothing went wrong.
    pub calm: bool,
    /// Whether it began with a part of another one's journal.
    pub forked: bool,
    /// How many operations of a run may be pending at once, if only a few.
    pub pending_max: Option<usize>,
    /// Nodes that somebody wanted to be skipped, by their keys.
    pub skipped: Vec<String>,
    /// What operators said when they let it go on.
    pub said: Vec<Value>,
}

/// Whether a run of this text can have ended so; if not, why not.
///
/// # Errors
///
/// If it cannot: which part came to what.
pub fn accepts(written: &Written, came: &Came, known: &Known<'_>) -> Result<(), String> {
    let mut judge = Judge { known, used: BTreeSet::new() };
    let told = judge.told();
    match (came, &written.program) {
        (Came::Output(output), program) => {
            let edition = output.get("edition").and_then(Value::as_u64);
            if !EDITIONS.iter().any(|known| edition == Some(u64::from(*known))) {
                return Err(format!("it says that it is edition {edition:?}"));
            }
            match program {
                Program::Script(line) => judge.script(line, output),
                Program::Flow(graph) => judge.flow(graph, output),
            }
        }
        (Came::Failed(failure), Program::Script(line)) if judge.line_fails(line, "0", &failure.code) => Ok(()),
        (Came::Failed(failure), Program::Flow(graph)) if judge.list_fails(&graph.nodes, "n", &failure.code) => Ok(()),
        (Came::Failed(failure), _) => Err(format!("nothing in it fails so: {failure}")),
        (Came::Cancelled, _) if told.cancels == 0 => Err("it was cancelled, and nobody asked it to stop".to_owned()),
        (Came::Terminated, _) if !told.terminated => Err("it was terminated, and nobody asked for that".to_owned()),
        (Came::Cancelled | Came::Terminated, _) => Ok(()),
    }
}

/// Walks through program and output, and remembers what can be used only once.
struct Judge<'k> {
    known: &'k Known<'k>,
    /// Signals that were consumed.
    used: BTreeSet<usize>,
}

impl Judge<'_> {
    fn told(&self) -> Told {
        self.known.told.get(self.known.run).cloned().unwrap_or_default()
    }

    /// Whether something may fail with this code because of what others do: whatever is open when a run is asked to stop, and
    /// whatever is one too many.
    fn said_by_others(&self, said: &str) -> bool {
        let stopped = said == code::CANCELLED && self.told().cancels > 0;
        stopped || (said == code::LIMIT_EXCEEDED && self.known.pending_max.is_some())
    }

    /// Whether a run below this one was stopped.
    fn kid_stopped(&self) -> bool {
        let below = format!("{}.", self.known.run);
        let mut told = self.known.told.iter().filter(|(run, _)| self.known.forked || run.starts_with(&below));
        told.any(|(_, told)| told.cancels > 0 || told.terminated)
    }
}
