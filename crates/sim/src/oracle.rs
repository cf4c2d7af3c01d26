//! The oracle: at the end of a case it compares what the store shows with what the outside saw, and believes nobody.
//!
//! Which invariant is looked at by whom is in [`TABLE`]. What the watch found on the way is part of the findings.

mod asks;
mod beside;
mod bodies;
mod books;
mod children;
mod replay;
mod resting;
mod signals;
mod standing;
mod suspects;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use outlast::Checker;
use outlast_core::event::{Event, Kind};
use outlast_core::id::{Index, LeaseId, Namespace, RunKey};
use outlast_core::time::Timestamp;
use outlast_store::Store;
use outlast_store::invariants::{RunState, World};

pub use crate::violation::{Findings, Judge, TABLE, Violation};

use crate::cluster::beside;
use crate::ledger::{Ask, Ledger, Place, Policy, Witnessed};
use crate::watch::{Shadow, TurnedDown, Watch};

/// The invariants a suite must have looked at.
pub const INVARIANTS: [u8; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 20, 22];

/// Events that nothing in a case brings about: those that are only shown, and those of parts that are not simulated yet.
pub const LATER_EVENTS: [Kind; 15] = [
    Kind::RunStarted,
    Kind::StateDelta,
    Kind::Custom,
    Kind::TaskScheduled,
    Kind::TaskFinished,
    Kind::TaskFailed,
    // A tree is far smaller than the limit on what may be open at once.
    Kind::OperationRefused,
    Kind::NodeStarted,
    Kind::NodeCompleted,
    Kind::NodeError,
    Kind::ContainerIterationStarted,
    Kind::ContainerIterationCompleted,
    Kind::ContainerChildStarted,
    Kind::ContainerChildCompleted,
    Kind::LoopIterate,
];

/// What the oracle must be told about a case.
#[derive(Default)]
pub struct Scene<'a> {
    /// The code, to replay the journals with. Register it with a ledger of its own: replay runs programs, and what they say
    /// there is not to be believed.
    pub checker: Option<&'a Checker>,
    /// Runs that may be parked, by id, beside those that were damaged, and those that took too many drivers along.
    pub may_park: BTreeSet<String>,
    /// If trouble is over: how late a timer may still be.
    pub patience: Option<Duration>,
    /// Whether everybody was left alone for so long: then whoever is not over rests for a reason.
    pub at_rest: bool,
    /// What transactions left in the author's table, if the store has SQL; or why that cannot be read.
    pub entries: Option<Result<Vec<String>, String>>,
}

/// Everything that is judged.
pub(crate) struct Evidence {
    pub(crate) worlds: Vec<(Namespace, World)>,
    pub(crate) shadows: BTreeMap<RunKey, Shadow>,
    pub(crate) told_to_stop: BTreeSet<RunKey>,
    /// Runs that could not be read at some time, and where.
    pub(crate) damaged: BTreeMap<RunKey, BTreeSet<Index>>,
    /// Whether the order of what arrived is known.
    pub(crate) ordered: bool,
    pub(crate) turned_down: Vec<TurnedDown>,
    pub(crate) bodies: Vec<Witnessed>,
    pub(crate) policies: BTreeMap<Place, Policy>,
    pub(crate) asks: Vec<Ask>,
    pub(crate) now: Option<Timestamp>,
    /// Leases, and until when they last.
    pub(crate) leases: BTreeMap<LeaseId, Timestamp>,
}

/// Judges a case at its end. `store` is the store itself, behind the watch, and nobody writes any more.
pub async fn examine(store: &dyn Store, watch: &Watch, ledger: &Ledger, scene: &Scene<'_>) -> Findings {
    let mut findings = watch.findings();
    match Evidence::gather(store, watch, ledger).await {
        Ok(evidence) => {
            evidence.judge(scene, &mut findings);
            if let Some(checker) = scene.checker {
                replay::judge(&evidence, checker, &mut findings);
            }
        }
        Err(unreadable) => findings.check(2, Err(unreadable)),
    }
    findings
}

impl Evidence {
    pub(crate) async fn gather(store: &dyn Store, watch: &Watch, ledger: &Ledger) -> Result<Evidence, String> {
        let mut worlds = Vec::new();
        for namespace in store.namespaces().await.map_err(|error| error.to_string())? {
            let world = World::read(store, &namespace).await?;
            worlds.push((namespace, world));
        }
        let sight = watch.sight();
        Ok(Evidence {
            worlds,
            shadows: sight.runs.clone(),
            told_to_stop: sight.told_to_stop.clone(),
            damaged: sight.ever_damaged.clone(),
            ordered: !sight.overlapped,
            turned_down: sight.turned_down.clone(),
            bodies: ledger.witnessed(),
            policies: ledger.policies(),
            asks: ledger.asks(),
            now: watch.now(),
            leases: sight.leases(),
        })
    }

    /// Everything but the replay.
    pub(crate) fn judge(&self, scene: &Scene<'_>, findings: &mut Findings) {
        standing::judge(self, scene, findings);
        bodies::judge(self, findings);
        books::judge(self, scene, findings);
        asks::judge(self, findings);
        signals::judge(self, findings);
        children::judge(self, findings);
        suspects::judge(self, findings);
        resting::judge(self, scene, findings);
        beside::judge(self, findings);
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = (&RunKey, &RunState)> {
        self.worlds.iter().flat_map(|(_, world)| &world.runs)
    }

    pub(crate) fn state(&self, run: &RunKey) -> Option<&RunState> {
        self.worlds.iter().find_map(|(_, world)| world.runs.get(run))
    }

    /// The run with an id: outside nobody names a namespace, and means the one of the case.
    pub(crate) fn state_of(&self, id: &str) -> Option<(&RunKey, &RunState)> {
        self.runs().find(|(run, _)| run.id.as_str() == id && !is_beside(run))
    }

    pub(crate) fn shadow_of(&self, id: &str) -> Option<&Shadow> {
        self.shadows.iter().find(|(run, _)| run.id.as_str() == id && !is_beside(run)).map(|(_, shadow)| shadow)
    }

    /// Whether the run may be gone because somebody deleted it, or one above it.
    pub(crate) fn may_be_gone(&self, run: &RunKey) -> bool {
        self.shadows.get(run).is_some_and(|shadow| shadow.deleted || shadow.doomed)
    }

    /// How many events of a run's first generation are another run's.
    pub(crate) fn history(&self, run: &RunKey, generation: usize) -> usize {
        let first = self.shadows.get(run).and_then(|shadow| shadow.chapters.first());
        first.filter(|_| generation == 0).map_or(0, |chapter| chapter.history)
    }

    /// A run's own events, with generation and index: not those of a history it began with.
    pub(crate) fn own_events(&self, run: &RunKey, state: &RunState) -> Vec<(usize, usize, Event)> {
        let mut own = Vec::new();
        for (generation, records) in state.journals.iter().enumerate() {
            for (index, record) in records.iter().enumerate().skip(self.history(run, generation)) {
                own.extend(Event::decode(record).ok().map(|event| (generation, index, event)));
            }
        }
        own
    }
}

/// Whether it is a run that nothing of the case should reach.
pub(crate) fn is_beside(run: &RunKey) -> bool {
    run.namespace == beside()
}

/// The run's last event, if that ended it.
pub(crate) fn end_of(state: &RunState) -> Option<Event> {
    let last = state.journals.last()?.last()?;
    Event::decode(last).ok().filter(Event::is_terminal)
}
