//! Every kind of event happened: a loop that did nothing proves nothing.

use std::collections::BTreeSet;

use outlast_core::event::Kind;

use crate::evidence::{Seen, Snapshot};
use crate::ledger::{Entry, Note};

/// Which kinds of events were seen, in journals or by observers.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeSet<&'static str>);

/// Kinds of events that no workflow written as code makes.
const OTHER_STYLES: [Kind; 14] = [
    Kind::TaskScheduled,
    Kind::TaskFinished,
    Kind::TaskFailed,
    Kind::NodeStarted,
    Kind::NodeCompleted,
    Kind::NodeError,
    Kind::NodeSkipped,
    Kind::NodeRetried,
    Kind::InterventionRefused,
    Kind::ContainerIterationStarted,
    Kind::ContainerIterationCompleted,
    Kind::ContainerChildStarted,
    Kind::ContainerChildCompleted,
    Kind::LoopIterate,
];

impl Coverage {
    pub(crate) fn add(&mut self, end: &Snapshot, entries: &[Entry]) {
        let recorded = end.runs.values().flat_map(Seen::events);
        self.0.extend(recorded.map(|recorded| recorded.event.kind().name()));
        self.0.extend(entries.iter().filter_map(|entry| match &entry.note {
            Note::Shown { kind } => Some(Kind::from_name(kind).unwrap().name()),
            _ => None,
        }));
    }

    /// The kinds that never happened and should have.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let wanted = Kind::ALL.iter().filter(|kind| !OTHER_STYLES.contains(kind));
        wanted.map(|kind| kind.name()).filter(|name| !self.0.contains(name)).collect()
    }
}
