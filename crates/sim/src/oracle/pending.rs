//! How many operations of a run are pending at once: never more than may be.

use std::collections::BTreeSet;

use outlast_core::event::Event;
use outlast_core::failure::Failure;

use super::{Evidence, Scene, is_beside};
use crate::model::refused;
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    let Some(max) = scene.pending_max else { return };
    for (run, state) in evidence.runs().filter(|(run, _)| !is_beside(run)) {
        for (generation, records) in state.journals.iter().enumerate() {
            // A fork may begin between the record of an operation and that of its refusal.
            if evidence.history(run, generation) > 0 {
                continue;
            }
            let journal: Vec<Event> = records.iter().filter_map(|record| Event::decode(record).ok()).collect();
            let most = most_pending(&journal);
            findings
                .ensure(17, most <= max, || format!("{run} had {most} operations pending at once, and {max} may be"));
        }
    }
}

/// How many operations were pending at once by a journal. Steps that are tried for the first time are not in it.
pub(super) fn most_pending(journal: &[Event]) -> usize {
    let (mut open, mut most): (BTreeSet<&str>, usize) = (BTreeSet::new(), 0);
    let refused: BTreeSet<&str> = journal.iter().filter_map(refused_key).collect();
    for event in journal {
        if let Event::CancelRequested { .. } = event {
            // Whatever was open fails with it.
            open.clear();
        }
        let Some(key) = event.key().map(|key| key.as_str()).filter(|key| !refused.contains(key)) else { continue };
        match event {
            Event::TimerStarted { .. }
            | Event::SignalAwaited { .. }
            | Event::SignalRejected { .. }
            | Event::ApprovalRequested { .. }
            | Event::CallbackCreated { .. }
            | Event::StepStarted { .. }
            | Event::StepRetryScheduled { .. }
            | Event::ConditionChecked { met: false, next_at: Some(_), .. }
            | Event::ChildStarted { detached: false, .. }
            | Event::TaskScheduled { detached: false, .. } => {
                open.insert(key);
            }
            Event::ScopeStarted { .. } => {}
            _ => open.retain(|other| *other != key && !is_below(other, key)),
        }
        most = most.max(open.len());
    }
    most
}

fn is_below(key: &str, scope: &str) -> bool {
    key.strip_prefix(scope).is_some_and(|rest| rest.starts_with('/'))
}

/// The operation that an event refuses.
fn refused_key(event: &Event) -> Option<&str> {
    let error: &Failure = match event {
        Event::OperationRefused { error, .. }
        | Event::StepFailed { error, .. }
        | Event::TaskFailed { error, .. }
        | Event::ChildFailed { error, .. } => error,
        _ => return None,
    };
    let key = event.key()?.as_str();
    refused(error).filter(|(named, _)| *named == key).map(|_| key)
}

#[cfg(test)]
mod tests {
    use outlast_core::failure::code;
    use outlast_core::id::Key;
    use outlast_core::time::Timestamp;

    use super::*;

    fn key(key: &str) -> Key {
        Key::new(key).unwrap()
    }

    fn timer(of: &str) -> Event {
        Event::TimerStarted { key: key(of), deadline: Timestamp::EPOCH, duration_ms: None }
    }

    #[test]
    fn what_is_open_at_once_counts_and_what_was_refused_or_closed_does_not() {
        let message = "c: the run has 2 operations pending, which is the limit";
        let error = Failure::new(code::LIMIT_EXCEEDED, message).permanent();
        let mut journal = vec![timer("a"), timer("s/b"), timer("c"), Event::OperationRefused { key: key("c"), error }];
        assert_eq!(most_pending(&journal), 2);
        journal.extend([timer("d")]);
        assert_eq!(most_pending(&journal), 3);
        journal.pop();
        journal.extend([Event::OperationCancelled { key: key("s") }, timer("d")]);
        assert_eq!(most_pending(&journal), 2, "what was below the scope went with it");
    }
}
