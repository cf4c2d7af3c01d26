//! Nothing is recorded twice.

use std::collections::BTreeMap;

use outlast::Event;
use outlast_core::id::Index;
use outlast_core::journal::Journal;

use super::Findings;
use crate::evidence::{Recorded, Seen};

pub(super) fn judge(run: &str, seen: &Seen, findings: &mut Findings) {
    let mut settled: BTreeMap<(u64, String), Recorded> = BTreeMap::new();
    let mut attempts: BTreeMap<(u64, String, u32), usize> = BTreeMap::new();
    for recorded in seen.events() {
        let Recorded { generation, index, .. } = recorded;
        let Some(key) = recorded.key().map(str::to_owned) else { continue };
        if let Some(attempt) = recorded.attempt().filter(|_| !matches!(recorded.event, Event::StepFailed { .. })) {
            let times = attempts.entry((generation, key.clone(), attempt)).or_default();
            *times += 1;
            let times = *times;
            findings.ensure(times == 1, || {
                format!("{run}, generation {generation}: attempt {attempt} of {key} is recorded {times} times")
            });
        }
        let after = settled.get(&(generation, key.clone()));
        findings.ensure(after.is_none(), || {
            let (kind, before) = (recorded.event.kind(), after.map(|before| before.event.kind()));
            format!("{run}, generation {generation}: {key} is settled by {before:?}, and {index} says {kind}")
        });
        if settles(&recorded.event) {
            settled.insert((generation, key), recorded);
        }
    }
    for (generation, journal) in seen.journals.iter().enumerate() {
        let last = generation + 1 == seen.journals.len();
        let records = (0..).map(Index).zip(journal.iter().cloned());
        match Journal::load(records) {
            Err(error) => findings.ensure(false, || format!("{run}, generation {generation}: {error}")),
            Ok(journal) => {
                let ends = journal.events().iter().filter(|event| event.ends_generation()).count();
                let expected = usize::from(!last || seen.status.is_terminal());
                findings.ensure(ends == expected, || {
                    format!("{run}, generation {generation} ends {ends} times, and it is {:?}", seen.status)
                });
            }
        }
    }
}

/// Whether an event is the last word about its operation.
pub(super) fn settles(event: &Event) -> bool {
    match event {
        Event::StepFinished { .. }
        | Event::StepFailed { .. }
        | Event::TaskFinished { .. }
        | Event::TaskFailed { .. }
        | Event::TimerFired { .. }
        | Event::SignalResolved { .. }
        | Event::SignalTimedOut { .. }
        | Event::ApprovalResolved { .. }
        | Event::ApprovalTimedOut { .. }
        | Event::CallbackResolved { .. }
        | Event::CallbackFailed { .. }
        | Event::CallbackTimedOut { .. }
        | Event::ChildFinished { .. }
        | Event::ChildFailed { .. }
        | Event::ScopeFinished { .. }
        | Event::ScopeFailed { .. }
        | Event::NowRecorded { .. }
        | Event::UuidRecorded { .. }
        | Event::RandomRecorded { .. }
        | Event::OperationCancelled { .. }
        | Event::OperationRefused { .. }
        | Event::ChildStarted { detached: true, .. } => true,
        Event::ConditionChecked { met, next_at, .. } => *met || next_at.is_none(),
        _ => false,
    }
}
