//! Every run ends, as it should, and owns nothing any more.

use outlast::{Event, Status};

use super::once::settles;
use super::{Findings, acked};
use crate::evidence::{Seen, Snapshot};
use crate::ledger::{Ask, Entry};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Result(u32),
    Failed,
    Cancelled,
    Terminated,
}

/// How each run ends that a worker, a client or a parent names: no fact that is lost, repeated or swapped allows it.
const EXPECTED: [(&str, End); 21] = [
    ("steps", End::Result(23)),
    ("naps", End::Result(6)),
    ("signals", End::Result(1_121)),
    ("greeted", End::Result(7)),
    ("races", End::Result(11)),
    ("batches", End::Result(21)),
    ("crowded", End::Result(7)),
    ("families", End::Result(30)),
    ("answers", End::Result(6)),
    ("generations", End::Result(7)),
    ("payments", End::Result(6)),
    ("failing", End::Failed),
    ("pausable", End::Result(6)),
    ("cancelled", End::Cancelled),
    ("doomed", End::Terminated),
    ("forked", End::Result(23)),
    ("detached", End::Result(12)),
    ("failed", End::Failed),
    ("loser", End::Cancelled),
    ("left", End::Terminated),
    ("orphan", End::Cancelled),
];

/// What is open when a run ends, and is meant to be.
const LEFT_OPEN: [(&str, &str); 2] = [("families", "__child-9"), ("doomed", "__child-0")];

pub(super) fn judge(end: &Snapshot, entries: &[Entry], findings: &mut Findings) {
    for ask in acked(entries) {
        let (Ask::Start { run } | Ask::Fork { run, .. }) = ask else { continue };
        let status = end.runs.get(run).map(|seen| seen.status);
        findings
            .ensure(status.is_some_and(Status::is_terminal), || format!("{run} was acknowledged and is {status:?}"));
    }
    for (run, seen) in &end.runs {
        findings.ensure(seen.status.is_terminal(), || format!("{run} has not ended: it is {:?}", seen.status));
        findings.ensure(!seen.owns, || format!("{run} has ended and still waits for something"));
        if let Some((_, expected)) = EXPECTED.iter().find(|(name, _)| name == run) {
            let found = how(seen);
            findings.ensure(found == Some(*expected), || format!("{run} ended with {found:?}, and not {expected:?}"));
        }
        all_settled(run, seen, findings);
    }
}

fn how(seen: &Seen) -> Option<End> {
    match seen.events().pop()?.event {
        Event::RunFinished { output } => Some(End::Result(serde_json::from_slice(&output).unwrap())),
        Event::RunErrored { .. } => Some(End::Failed),
        Event::RunCancelled { .. } => Some(End::Cancelled),
        Event::RunTerminated { .. } => Some(End::Terminated),
        _ => None,
    }
}

/// Everything that was begun has an outcome.
fn all_settled(run: &str, seen: &Seen, findings: &mut Findings) {
    let events = seen.events();
    for begun in &events {
        let Some(key) = begun.key() else { continue };
        let meant = LEFT_OPEN.contains(&(run, key)) || seen.workflow == "patient";
        let has_outcome = events
            .iter()
            .any(|other| other.generation == begun.generation && other.key() == Some(key) && settles(&other.event));
        findings
            .ensure(meant || has_outcome, || format!("{run}, generation {}: {key} has no outcome", begun.generation));
    }
}
