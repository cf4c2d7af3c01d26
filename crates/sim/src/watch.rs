//! The watch: a store in front of the real one. It sees every call that truly reached it, keeps its own books, and compares.
//!
//! Violations are collected and never panic: the case goes on. With a store that answers at once, as the one in memory does,
//! the order of answers is the order of effects, and everything is judged. Where calls overlap, or are dropped under way, that
//! order is not known: then only what does not depend on it is judged. With stores on disk that is so from the beginning.

mod admission;
mod calls;
mod clock;
mod commits;
mod dead;
mod mail;
mod order;
mod retention;
mod schedules;
mod shadow;
mod sight;
mod snapshots;
mod store;
mod tasks;
#[cfg(test)]
mod tests;
mod trace;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::commit::Commit;
use outlast_core::event::Kind;
use outlast_core::id::{Index, Namespace, RunKey};
use outlast_core::limits::Limits;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Clock, CommitError, Committed, MemoryStore, Store, StoreError};

pub use admission::{FLOWS, Lobby, Stands, Visit};
pub use schedules::{Almanac, Edition, OUTCOMES, Passed, Says, Start};
pub use shadow::{Arrival, Chapter, Entry, Holder, Parcel, Shadow};
pub use sight::{Orders, Sight, TurnedDown};
pub use snapshots::Kept;
pub use tasks::{State, TaskBook, Tasks};
pub(crate) use turns::ends;

use crate::violation::Findings;
use sight::Stand;

/// A store that watches another one. Handles for several processes share what they see.
pub struct Watch {
    inner: Arc<Mutex<Arc<dyn Store>>>,
    clock: Clock,
    /// Who calls through this handle; empty if nobody said.
    process: String,
    /// Whether the store answers at once.
    answers_at_once: bool,
    /// Runs whose journals were read from their beginning through this handle.
    loaded: Mutex<BTreeSet<RunKey>>,
    sight: Arc<Mutex<Sight>>,
}

/// What is shown of a journal.
type Shown = Result<Vec<Record>, StoreError>;

/// A kind of event that there is not.
const NO_KIND: u16 = 60_000;

/// A call that writes, under way.
struct Call<'w> {
    watch: &'w Watch,
    /// The runs it is about.
    runs: Vec<RunKey>,
    /// Whether nothing else was under way when it began, and how many had begun.
    alone: bool,
    begun: u64,
    answered: bool,
}

impl Watch {
    /// In front of `inner`, whose clock is `clock`.
    pub fn new(inner: Arc<dyn Store>, clock: Clock) -> Watch {
        let (inner, loaded) = (Arc::new(Mutex::new(inner)), Mutex::default());
        Watch { inner, clock, process: String::new(), answers_at_once: true, loaded, sight: Arc::default() }
    }

    /// In front of a store whose answers come in another order than it did what they tell of.
    pub fn unordered(inner: Arc<dyn Store>, clock: Clock) -> Watch {
        let watch = Watch { answers_at_once: false, ..Watch::new(inner, clock) };
        watch.sight().lose_order();
        watch
    }

    /// Closes the store, if nobody else has it; nothing can be asked of it any more.
    pub fn close(&self) {
        self.reopen(|| Arc::new(MemoryStore::new(self.clock.clone(), Limits::default())));
    }

    /// The store itself.
    pub fn inner(&self) -> Arc<dyn Store> {
        Arc::clone(&self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes the store and opens it again; not while somebody has it. Whether that was done.
    pub fn reopen(&self, open: impl FnOnce() -> Arc<dyn Store>) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&inner) > 1 {
            return false;
        }
        // Its file is free only when the one that has it is gone; something must be in its place meanwhile.
        *inner = Arc::new(MemoryStore::new(self.clock.clone(), Limits::default()));
        *inner = open();
        true
    }

    /// The same watch for a process: what comes through it is known to come from there.
    pub fn of(&self, process: &str) -> Arc<Watch> {
        let (inner, clock, sight) = (Arc::clone(&self.inner), self.clock.clone(), Arc::clone(&self.sight));
        let (answers_at_once, loaded) = (self.answers_at_once, Mutex::default());
        Arc::new(Watch { inner, clock, process: process.to_owned(), answers_at_once, loaded, sight })
    }

    /// What was seen.
    pub fn sight(&self) -> MutexGuard<'_, Sight> {
        self.sight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found so far.
    pub fn findings(&self) -> Findings {
        self.sight().findings.clone()
    }

    /// How many events of each kind were appended.
    pub fn events_seen(&self) -> BTreeMap<String, u64> {
        self.sight().events.clone()
    }

    /// The time by the store's clock, if it is one that can be read from here.
    pub fn now(&self) -> Option<Timestamp> {
        match &self.clock {
            Clock::Manual(clock) => Some(clock.now()),
            Clock::System => None,
        }
    }

    /// How many calls reached the store.
    pub fn calls(&self) -> u64 {
        self.sight().calls
    }

    /// How often a process replayed a run that it had in memory before.
    pub fn replays(&self) -> u64 {
        self.sight().replays
    }

    /// How often somebody met what is damaged.
    pub fn damage_met(&self) -> u64 {
        self.sight().damage_met
    }

    /// From now on everything that is answered counts for [`Watch::trace`].
    pub fn keep_trace(&self) {
        self.sight().trace.keep();
    }

    /// A number over everything that was answered, in order.
    pub fn trace(&self) -> u64 {
        self.sight().trace.number()
    }

    /// From now on the middle of the run's journal cannot be read, or makes no sense; which run and where, if there is such
    /// a run and it has a journal. How long that is must be told where not every commit is seen.
    pub fn damage(&self, id: &str, event: bool, next: Option<Index>) -> Option<(RunKey, Index)> {
        let mut sight = self.sight();
        let here = |run: &RunKey| run.id.as_str() == id && run.namespace == Namespace::default_namespace();
        let there = |(run, shadow): &(&RunKey, &Shadow)| here(run) && !shadow.deleted;
        let (run, shadow) = sight.runs.iter().find(there)?;
        let (run, index) = (run.clone(), Index(next.unwrap_or(shadow.next()).0.checked_sub(1)? / 2));
        sight.damaged.insert(run.clone(), (index, event));
        sight.ever_damaged.entry(run.clone()).or_default().insert(index);
        Some((run, index))
    }

    /// The run's journal can be read again.
    pub fn repair(&self, run: &RunKey) {
        self.sight().damaged.remove(run);
    }

    /// Runs that cannot be read.
    pub fn damaged(&self) -> Vec<RunKey> {
        self.sight().damaged.keys().cloned().collect()
    }

    /// What somebody is shown of a run, from an index on: nothing, or nonsense, if it is damaged. A store on disk that is
    /// damaged itself shows that by itself.
    fn damaged_view(&self, run: &RunKey, from: Index, shown: Result<Vec<Record>, StoreError>) -> Shown {
        let mut sight = self.sight();
        let Some((index, event)) = sight.damaged.get(run).copied() else { return shown };
        let nonsense = |record: &Record| Kind::from_code(record.kind).is_none();
        let is_bad = |shown: &Shown| match shown {
            Ok(records) => records.iter().any(nonsense),
            Err(error) => matches!(error, StoreError::Corrupt { .. }),
        };
        sight.rows_met += u64::from(is_bad(&shown));
        let shown = match shown {
            Ok(mut records) if !records.iter().any(nonsense) => {
                let place = index.0.checked_sub(from.0).and_then(|place| usize::try_from(place).ok());
                match place.and_then(|place| records.get_mut(place)) {
                    Some(_) if !event => Err(StoreError::corrupt(run.to_string(), "it was damaged on purpose")),
                    Some(record) => {
                        record.kind = NO_KIND;
                        Ok(records)
                    }
                    None => return Ok(records),
                }
            }
            shown => shown,
        };
        sight.damage_met += u64::from(is_bad(&shown));
        shown
    }

    /// A call that writes begins.
    fn begin(&self, runs: Vec<RunKey>) -> Call<'_> {
        let now = self.now();
        let mut sight = self.sight();
        sight.calls += 1;
        now.into_iter().for_each(|now| sight.told(now));
        let call = Call { watch: self, runs, alone: sight.under_way == 0, begun: sight.begun, answered: false };
        sight.begun += 1;
        sight.under_way += 1;
        call
    }

    /// Judges the answers to commits.
    async fn committed(&self, commit: &Commit, answer: &Result<Committed, CommitError>, stand: Stand) {
        match answer {
            Ok(committed) => self.applied(commit, committed, stand).await,
            Err(CommitError::Unknown(_)) => self.sight().lost_sight_of(&runs_of(commit)),
            Err(error @ (CommitError::Fenced { .. } | CommitError::Conflict { .. } | CommitError::Rejected(_))) => {
                if matches!(error, CommitError::Rejected(_)) {
                    self.sight().turned_down(commit);
                }
                // Only then does a look tell something: nobody else may have gone on meanwhile.
                let begun = self.sight().begun;
                if let (true, Ok(view)) = (stand.alone, self.inner().get(commit.run.clone()).await) {
                    let mut sight = self.sight();
                    if sight.begun == begun {
                        sight.refused(commit, &view);
                    }
                }
            }
            Err(CommitError::NotApplied(_)) => {}
        }
    }
}

impl Watch {
    async fn applied(&self, commit: &Commit, committed: &Committed, stand: Stand) {
        let (unread, begun) = {
            let mut sight = self.sight();
            sight.applied(commit, committed, stand);
            (sight.left_unread(commit, stand), sight.begun)
        };
        let Some(unread) = unread else { return };
        if let Ok(view) = self.inner().get(commit.run.clone()).await {
            let mut sight = self.sight();
            if sight.begun == begun {
                sight.must_be_woken(commit, &unread, &view);
            }
        }
    }
}

impl Call<'_> {
    /// The call was answered: how it stands among the others.
    fn answered(mut self) -> Stand {
        self.answered = true;
        let mut sight = self.watch.sight();
        let alone = self.alone && sight.begun == self.begun + 1 && !sight.loose;
        sight.overlapped |= !alone;
        Stand { alone }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut sight = self.watch.sight();
        sight.under_way -= 1;
        if !self.answered {
            sight.lost_sight_of(&self.runs);
        }
    }
}

/// Every run a commit may change.
fn runs_of(commit: &Commit) -> Vec<RunKey> {
    let others = commit.deliveries.iter().filter_map(|delivery| delivery.run().cloned());
    let children = commit.children.iter().map(|child| child.run.clone());
    std::iter::once(commit.run.clone()).chain(children).chain(others).collect()
}
