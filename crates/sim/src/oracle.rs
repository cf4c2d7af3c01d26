//! The oracle: at the end of a case it compares what the store shows with what the outside saw, and believes nobody.
//!
//! Which invariant is looked at by whom is in [`TABLE`]. What the watch found on the way is part of the findings.

mod asks;
mod beside;
mod bodies;
mod books;
mod children;
mod pending;
mod replay;
mod resting;
mod schedules;
mod signals;
mod standing;
mod suspects;
mod tasks;
#[cfg(test)]
mod tests;
mod workers;
mod written;

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
use crate::ledger::{Ask, Effort, Ledger, Place, Policy, Wished, Witnessed};
use crate::watch::{Almanac, Lobby, Orders, Shadow, Tasks, TurnedDown, Watch};

/// The invariants a suite must have looked at.
pub const INVARIANTS: [u8; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22];

/// Events that nothing in a case brings about. A suite must have seen all others.
pub const LATER_EVENTS: [Kind; 4] = [
    // They are only shown to observers, and never in a journal.
    Kind::RunStarted,
    Kind::StateDelta,
    Kind::Custom,
    // An operator's word that becomes impossible in the very moment it comes: too seldom to be counted on.
    Kind::InterventionRefused,
];

/// What the oracle must be told about a case.
#[derive(Default)]
pub struct Scene<'a> {
    /// The code, to replay the journals with. Register it with a ledger of its own: replay runs programs, and what they say
    /// there is not to be believed.
    pub checker: Option<&'a Checker>,
    /// The same with the second edition of texts.
    pub second: Option<&'a Checker>,
    /// Runs that may be parked, by id, beside those that were damaged, and those that took too many drivers along.
    pub may_park: BTreeSet<String>,
    /// If trouble is over: how late a timer may still be.
    pub patience: Option<Duration>,
    /// If it is known: how far the clocks of processes may be apart.
    pub slack: Option<Duration>,
    /// Whether everything has come to its end, or should have.
    pub is_end: bool,
    /// Whether everybody was left alone for so long: then whoever is not over rests for a reason.
    pub at_rest: bool,
    /// How many tasks a process does at once, if that is known.
    pub tasks_max: Option<usize>,
    /// How many operations of a run may be pending at once, if that is known.
    pub pending_max: Option<usize>,
    /// What transactions left in the author's table, if the store has SQL; or why that cannot be read.
    pub entries: Option<Result<Vec<String>, String>>,
}

/// Everything that is judged.
pub(crate) struct Evidence {
    pub(crate) worlds: Vec<(Namespace, World)>,
    pub(crate) shadows: BTreeMap<RunKey, Shadow>,
    pub(crate) told_to_stop: BTreeMap<RunKey, Orders>,
    /// Runs that could not be read at some time, and where.
    pub(crate) damaged: BTreeMap<RunKey, BTreeSet<Index>>,
    /// Whether the order of what arrived is known.
    pub(crate) ordered: bool,
    /// Whether runs are removed some time after they ended.
    pub(crate) retains: bool,
    pub(crate) turned_down: Vec<TurnedDown>,
    pub(crate) bodies: Vec<Witnessed>,
    /// Operations of which two bodies ran at once in one process.
    pub(crate) twice: Vec<(Place, String)>,
    pub(crate) policies: BTreeMap<Place, Policy>,
    pub(crate) asks: Vec<Ask>,
    /// The tasks, as they should be, and the attempts at them.
    pub(crate) tasks: Tasks,
    pub(crate) efforts: Vec<Effort>,
    /// The schedules, as they should be, and what clients want of them.
    pub(crate) almanac: Almanac,
    pub(crate) wishes: Vec<Wished>,
    /// Runs that flow control holds back, or did.
    pub(crate) lobby: Lobby,
    /// Tasks that clients queued, and whether they were told so.
    pub(crate) queued: BTreeMap<String, bool>,
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
            let checkers: Vec<&Checker> = scene.checker.into_iter().chain(scene.second).collect();
            if !checkers.is_empty() {
                replay::judge(&evidence, &checkers, &mut findings);
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
            retains: sight.retains,
            turned_down: sight.turned_down.clone(),
            bodies: ledger.witnessed(),
            twice: ledger.twice(),
            policies: ledger.policies(),
            asks: ledger.asks(),
            tasks: sight.tasks.clone(),
            efforts: ledger.efforts(),
            almanac: sight.almanac.clone(),
            wishes: ledger.wishes(),
            lobby: sight.lobby.clone(),
            queued: ledger.tasks(),
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
        beside::judge(self, scene, findings);
        tasks::judge(self, scene, findings);
        schedules::judge(self, scene, findings);
        workers::judge(self, scene, findings);
        pending::judge(self, scene, findings);
        written::judge(self, findings);
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
        self.shadows.get(run).is_some_and(|shadow| self.has_gone(shadow))
    }

    /// Whether a run may be gone: somebody deleted it, or it was seen to go by its age. Where not everything is seen, one that
    /// has ended may have gone unseen.
    pub(crate) fn has_gone(&self, shadow: &Shadow) -> bool {
        let unseen = self.retains && !self.ordered && (shadow.ended || !shadow.sure);
        shadow.deleted || shadow.doomed || unseen
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
