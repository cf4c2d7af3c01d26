//! What goes out: when a commit is sent, what becomes of the run with it, and what follows when it is durable.

use outlast_core::commit::{Commit, Then};
use outlast_core::event::Event;
use outlast_core::id::Index;
use outlast_core::lifecycle::{Decision, Situation, decide};
use outlast_core::planted;

use super::{Run, Stop};
use crate::drive::lifecycle::Lifecycle;

/// The part of a commit's limit after which it is full. What ends a run, or a scope, may still come to it.
const FULL_SHARE: usize = 4;
/// The bytes of payloads after which it is full.
const FULL_BYTES: usize = 16 * 1024 * 1024;

pub(in crate::drive) struct InFlight {
    pub(in crate::drive) until: Index,
    /// The program's state at that index goes with it.
    pub(in crate::drive) has_snapshot: bool,
    pub(in crate::drive) emitted: Vec<(Index, Event)>,
    pub(in crate::drive) then: Then,
}

/// What a commit that was applied means for the run.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) then: Then,
    /// What observers may see now, beside what is in the journal, and before which index.
    pub(crate) emitted: Vec<(Index, Event)>,
}

impl Run {
    /// Whether the next commit has as much as one should: what a program wants at once may be more than a store takes, and
    /// whoever asks for a pause meanwhile is not to wait for all of it.
    pub(super) fn is_full(&self) -> bool {
        self.draft.events.len() >= (self.settings.limits.commit_events / FULL_SHARE).max(1)
            || self.draft.bytes >= FULL_BYTES
    }

    /// The next commit to send, if there is one. At most one is in flight.
    pub(crate) fn commit(&mut self) -> Result<Option<Commit>, Stop> {
        if self.in_flight.is_some() {
            return Ok(None);
        }
        let Some(then) = self.then()? else { return Ok(None) };
        let until = self.journal.next();
        let (run, fence) = (self.identity.run.clone(), self.fence);
        let snapshot = self.snapshot_if_due();
        let has_snapshot = snapshot.is_some();
        let (commit, emitted) = self.draft.take(run, fence, self.durable, then.clone());
        self.in_flight = Some(InFlight { until, has_snapshot, emitted, then });
        Ok(Some(Commit { snapshot, ..commit }))
    }

    /// What becomes of the run with the next commit; none if there is nothing to commit.
    fn then(&mut self) -> Result<Option<Then>, Stop> {
        if let Some(outcome) = &self.outcome {
            return Ok(Some(outcome.then()));
        }
        let executing = self.table.bodies_running();
        if self.pausing && !executing && !self.reading && !self.owes_body() && !self.finishes_tasks() {
            self.record_pause()?;
        }
        if self.journal.is_paused() {
            return Ok((!self.reading).then_some(Then::Pause));
        }
        // What gathered goes out with this very commit.
        let decision = self.decide(true, false);
        tracing::debug!(target: "outlast::turn", run = %self.identity.run, ?decision, "may the turn end?");
        match decision {
            Decision::Suspend(reason) => {
                self.table.notes.note(|| Lifecycle::AllIdle { reason });
                Ok(Some(Then::Suspend))
            }
            Decision::Wait(_) if self.draft.is_empty() => Ok(None),
            Decision::Wait(_) => Ok(Some(Then::Continue)),
            Decision::Finish => Err(Stop::Unsound(
                "the workflow waits for nothing: it awaits something that is not an operation of its Ctx; do other waiting inside a step"
                    .to_owned(),
            )),
        }
    }

    /// May the turn end? The one place where that is decided.
    pub(super) fn decide(&mut self, queue_empty: bool, commit_in_flight: bool) -> Decision {
        let body_executing = self.table.bodies_running() || self.table.wants_to_run();
        decide(&Situation {
            queue_empty,
            commit_in_flight,
            flush_waiting: self.reading && !planted!("turn-ends-while-reading"),
            body_executing,
            runnable: self.is_full(),
            operations: &self.table.views(),
        })
    }

    /// The commit in flight is durable.
    pub(crate) fn committed(&mut self) -> Option<Applied> {
        let InFlight { until, has_snapshot, emitted, then } = self.in_flight.take()?;
        if has_snapshot {
            // Whatever is needed of it is in the snapshot, and a long run must not fill the memory.
            self.journal.forget_below(until);
        }
        if self.snapshots.is_none() && self.settings.limits.warns_of_journal(self.durable, until) {
            let run = &self.identity.run;
            tracing::warn!(%run, events = until.0, "the journal is long, and so is its replay; continue as new now and then");
        }
        self.is_from_snapshot = false;
        self.durable = until;
        Some(Applied { then, emitted })
    }

    /// What observers may see now because everything before it is durable, and no commit has to be waited for.
    pub(crate) fn take_emitted(&mut self) -> Vec<(Index, Event)> {
        let quiet = self.in_flight.is_none() && self.durable == self.journal.next();
        if quiet { std::mem::take(&mut self.draft.emitted) } else { Vec::new() }
    }

    pub(in crate::drive) fn set_in_flight(&mut self, in_flight: InFlight) {
        self.in_flight = Some(in_flight);
    }

    /// The commit in flight will not be; what was to be emitted with it.
    pub(in crate::drive) fn give_up_in_flight(&mut self) -> Option<Vec<(Index, Event)>> {
        Some(self.in_flight.take()?.emitted)
    }
}
