//! A store that fails on purpose, at one call and in one way, so that every call of a story can be made to fail.
//!
//! [`FaultStore`] stands in front of a store, counts the calls that pass and makes the planned ones fail. Without a
//! plan it only counts: run a story once to learn how many calls it makes, then once for each of them and each way.
//!
//! ```
//! use std::sync::Arc;
//! use outlast_store::faults::{Fault, FaultStore, Plan};
//! use outlast_store::{MemoryStore, Store};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let plan = Plan { at: 1, fault: Fault::AppliedThenCrash };
//! let store = FaultStore::new(Arc::new(MemoryStore::default()), plan);
//! assert!(store.namespaces().await.is_ok());
//! assert!(store.sweep(10).await.is_err(), "the call with number 1 is the process's last");
//! assert!(store.namespaces().await.is_err(), "and nobody is there any more");
//! assert_eq!(store.log(), ["namespaces", "sweep", "namespaces"]);
//! # });
//! ```

mod answer;
mod calls;
mod course;
mod here;
mod hold;
mod snapshots;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use outlast_core::id::{RunKey, TxnId};

use crate::{BoxFuture, CommitError, Resolution, Store};

pub use hold::Hold;
pub use snapshots::Snapshots;

/// In which way a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Nothing is applied, and the caller gets an error.
    NotApplied {
        /// Only for `commit` and `transact`: whether its sender is left in doubt ([`crate::CommitError::Unknown`], which
        /// resolves to [`Resolution::NotApplied`]) instead of being told.
        in_doubt: bool,
    },
    /// Everything is applied, but the caller gets an error; a `commit` or `transact` gets
    /// [`crate::CommitError::Unknown`], which resolves to [`Resolution::Applied`].
    AppliedThenError,
    /// Everything is applied, but nobody learns of it: this call and every later one says that the store is closed.
    AppliedThenCrash,
    /// Nothing is applied: the process was dead before the call was sent. This call and every later one says that the store
    /// is closed.
    NotAppliedThenCrash,
    /// Nothing fails, but the call takes time. It arrives even if its sender is gone by then.
    Late {
        /// How long it is on its way.
        before: Duration,
        /// How long its answer is.
        after: Duration,
    },
    /// The call is still on its way when its caller gets an error, and arrives later. A `commit` or `transact` gets
    /// [`crate::CommitError::Unknown`]; whoever asks what became of it before it has arrived forbids it to arrive at all,
    /// as [`Store::resolve`] says.
    InFlight {
        /// How long it is on its way.
        before: Duration,
    },
    /// The caller hears nothing for long, and then gets an error; a `commit` or `transact` gets
    /// [`crate::CommitError::Unknown`], which resolves to what became of it.
    Hang {
        /// How long.
        long: Duration,
        /// Whether everything is applied, when the call begins.
        applied: bool,
    },
}

impl Fault {
    /// Its name in [`FaultStore::landed_by_kind`].
    pub fn kind(self) -> &'static str {
        match self {
            Fault::NotApplied { in_doubt: false } => "not_applied",
            Fault::NotApplied { in_doubt: true } => "in_doubt",
            Fault::AppliedThenError => "applied_then_error",
            Fault::AppliedThenCrash => "applied_then_crash",
            Fault::NotAppliedThenCrash => "not_applied_then_crash",
            Fault::Late { .. } => "late",
            Fault::InFlight { .. } => "in_flight",
            Fault::Hang { .. } => "hang",
        }
    }
}

/// Which call fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plan {
    /// The number of the call, from 0.
    pub at: u64,
    /// The way in which it fails.
    pub fault: Fault,
}

/// A fault that was planned, for [`FaultStore::has_landed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Planned(u64);

/// How long every call takes: at most `max` altogether, drawn for each from the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Latency {
    /// The seed.
    pub seed: u64,
    /// The most a call takes.
    pub max: Duration,
}

/// What [`Store::wakes`] answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wakes {
    /// Every run that was woken.
    #[default]
    Heard,
    /// Nothing.
    Lost,
    /// Also runs it has answered before.
    Doubled,
    /// What it would have answered the time before.
    Late,
}

/// Where the time comes from that calls take.
pub trait Timer: Send + Sync {
    /// Completes after so long.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
    /// Runs what is on its way, whatever becomes of its sender.
    fn spawn(&self, future: BoxFuture<'static, ()>);
}

/// A store in front of another, which fails as planned.
///
/// Every call of the [`Store`] trait counts, also one that only reads. A call counts when it is first polled.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    timer: Option<Arc<dyn Timer>>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The faults to come.
    plans: Vec<(Planned, Plan)>,
    last_planned: u64,
    /// Those of them that have happened.
    landed_plans: BTreeSet<Planned>,
    /// The faults of calls by name: how many calls of that name come before, and how many then fail.
    named: Vec<Named>,
    /// What the next commits are refused with, and how many of them.
    refusals: Vec<(u32, CommitError)>,
    /// Calls to hold back.
    holds: Vec<hold::Held>,
    log: Vec<&'static str>,
    landed: usize,
    landed_by_kind: BTreeMap<&'static str, u64>,
    landed_by_call: BTreeMap<&'static str, u64>,
    /// Calls that have reached the store and are not answered.
    under_way: usize,
    crashed: bool,
    full: bool,
    cut: bool,
    wakes: Wakes,
    snapshots: Snapshots,
    /// Runs that [`Store::wakes`] has answered.
    told: BTreeSet<RunKey>,
    /// Runs that it will answer the next time.
    delayed: Vec<RunKey>,
    latency: Option<Latency>,
    /// Who wants to know when a fault happens.
    watcher: Option<Waker>,
    /// What became of the commits whose senders were left in doubt.
    doubts: BTreeMap<TxnId, Resolution>,
    /// Commits whose senders were left in doubt, and that have not arrived.
    in_flight: BTreeSet<TxnId>,
}

/// Faults for calls of one name.
#[derive(Debug)]
struct Named {
    planned: Planned,
    name: &'static str,
    /// So many calls pass first.
    before: u64,
    /// And so many fail then.
    times: u32,
    fault: Fault,
}

impl State {
    /// The number of a plan that is made.
    fn number(&mut self) -> Planned {
        self.last_planned += 1;
        Planned(self.last_planned)
    }

    /// The fault of a call, which then is no longer to come.
    fn planned(&mut self, call: u64, name: &'static str) -> Option<Fault> {
        if let Some(place) = self.plans.iter().position(|(_, plan)| plan.at == call) {
            let (planned, plan) = self.plans.remove(place);
            self.landed_plans.insert(planned);
            return Some(plan.fault);
        }
        let mut fault = None;
        for named in self.named.iter_mut().filter(|named| named.name == name) {
            if named.before > 0 {
                named.before -= 1;
            } else if named.times > 0 && fault.is_none() {
                named.times -= 1;
                self.landed_plans.insert(named.planned);
                fault = Some(named.fault);
            }
        }
        fault
    }

    /// The fault of the next call, if it has this name; it stays to come.
    fn next_fault(&self, name: &'static str) -> Option<Fault> {
        let call = self.log.len() as u64;
        let by_number = self.plans.iter().find(|(_, plan)| plan.at == call).map(|(_, plan)| plan.fault);
        by_number.or_else(|| {
            let due = |named: &&Named| named.name == name && named.before == 0 && named.times > 0;
            self.named.iter().find(due).map(|named| named.fault)
        })
    }

    fn count(&mut self, kind: &'static str) {
        *self.landed_by_kind.entry(kind).or_default() += 1;
    }
}

impl FaultStore {
    /// In front of `inner`, with one fault.
    pub fn new(inner: Arc<dyn Store>, plan: Plan) -> Self {
        FaultStore::counting(inner).and(plan)
    }

    /// In front of `inner`, without a fault: it only counts.
    pub fn counting(inner: Arc<dyn Store>) -> Self {
        FaultStore { inner, timer: None, state: Arc::default() }
    }

    /// With one more fault.
    #[must_use]
    pub fn and(self, plan: Plan) -> Self {
        self.plan(plan);
        self
    }

    /// The store behind it, where nothing goes wrong.
    pub fn behind(&self) -> Arc<dyn Store> {
        Arc::clone(&self.inner)
    }

    /// With time. Without it, no call takes any.
    #[must_use]
    pub fn with_timer(self, timer: Arc<dyn Timer>) -> Self {
        FaultStore { timer: Some(timer), ..self }
    }

    /// Plans one more fault. One for a call that has already begun never happens.
    pub fn plan(&self, plan: Plan) {
        let mut state = self.state();
        let planned = state.number();
        state.plans.push((planned, plan));
    }

    /// Plans a fault for the n-th call from now on; 0 is the next one.
    pub fn plan_next(&self, n: u64, fault: Fault) {
        self.follow_next(None, n, fault);
    }

    /// Plans a fault for the n-th call from now on, or the n-th of a name: whether just this one happened can be asked.
    pub fn follow_next(&self, name: Option<&'static str>, n: u64, fault: Fault) -> Planned {
        let mut state = self.state();
        let planned = state.number();
        match name {
            Some(name) => state.named.push(Named { planned, name, before: n, times: 1, fault }),
            None => {
                let at = (state.log.len() as u64).saturating_add(n);
                state.plans.push((planned, Plan { at, fault }));
            }
        }
        planned
    }

    /// Whether a fault that was planned has happened.
    pub fn has_landed(&self, planned: Planned) -> bool {
        self.state().landed_plans.contains(&planned)
    }

    /// Makes the next so many calls of that name fail, whatever their numbers are.
    pub fn fail_next(&self, name: &'static str, times: u32, fault: Fault) {
        let mut state = self.state();
        let planned = state.number();
        state.named.push(Named { planned, name, before: 0, times, fault });
    }

    /// Plans a fault for the n-th call of this name from now on; 0 is the next one.
    pub fn plan_next_of(&self, name: &'static str, n: u64, fault: Fault) {
        self.follow_next(Some(name), n, fault);
    }

    /// A fault that was planned and has not happened will not happen.
    pub fn forget(&self, planned: Planned) {
        let mut state = self.state();
        state.plans.retain(|(of, _)| *of != planned);
        state.named.retain(|named| named.planned != planned);
    }

    /// What was planned and has not happened will not happen.
    pub fn forget_plans(&self) {
        let mut state = self.state();
        state.plans.clear();
        state.named.clear();
    }

    /// Whether the disk is full: writes are refused, and reads pass.
    pub fn set_full(&self, full: bool) {
        self.state().full = full;
    }

    /// Whether the store cannot be reached: every call fails, and nothing is applied.
    pub fn set_cut(&self, cut: bool) {
        self.state().cut = cut;
    }

    /// What [`Store::wakes`] answers from now on.
    pub fn set_wakes(&self, wakes: Wakes) {
        self.state().wakes = wakes;
    }

    /// How long every call takes from now on.
    pub fn set_latency(&self, latency: Option<Latency>) {
        self.state().latency = latency;
    }

    /// The process that uses this store is dead: every later call says that the store is closed.
    pub fn crash(&self) {
        self.state().crashed = true;
    }

    /// How many calls have begun.
    pub fn calls(&self) -> u64 {
        self.state().log.len() as u64
    }

    /// The names of the calls that have begun, in order: the index is the call's number.
    pub fn log(&self) -> Vec<&'static str> {
        self.state().log.clone()
    }

    /// How many of the planned faults have happened.
    pub fn landed(&self) -> usize {
        self.state().landed
    }

    /// How often each kind of fault has happened. Planned ones have the name of [`Fault::kind`]; every call that was refused
    /// because of `full` or `cut` counts, every one that was given a `latency`, or made on its caller's
    /// thread (`here`), every commit that was forbidden to arrive (`forbidden`), and every answer of [`Store::wakes`] that
    /// was changed (`wakes_lost`, `wakes_doubled`, `wakes_late`).
    pub fn landed_by_kind(&self) -> BTreeMap<&'static str, u64> {
        self.state().landed_by_kind.clone()
    }

    /// How often a planned fault has happened to a call of each name.
    pub fn landed_by_call(&self) -> BTreeMap<&'static str, u64> {
        self.state().landed_by_call.clone()
    }

    /// Calls this waker when the next planned fault happens.
    pub fn notify(&self, watcher: &Waker) {
        self.state().watcher = Some(watcher.clone());
    }

    /// How many calls have reached the store and are not answered; one whose future was dropped is.
    pub fn under_way(&self) -> usize {
        self.state().under_way
    }

    /// Whether the process that uses this store counts as dead.
    pub fn has_crashed(&self) -> bool {
        self.state().crashed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// What the caller of [`Store::wakes`] learns of the runs that were woken.
    fn told(&self, mut woken: Vec<RunKey>, limit: usize) -> Vec<RunKey> {
        let mut state = self.state();
        let state = &mut *state;
        // What was held back before is not forgotten, whatever is said now.
        let held = std::mem::take(&mut state.delayed);
        if state.wakes == Wakes::Late {
            if !woken.is_empty() {
                state.count("wakes_late");
            }
            state.delayed = std::mem::replace(&mut woken, held);
        } else {
            let room = limit.saturating_sub(woken.len());
            let missing: Vec<RunKey> = held.into_iter().filter(|run| !woken.contains(run)).take(room).collect();
            woken.extend(missing);
        }
        match state.wakes {
            Wakes::Heard | Wakes::Late => {}
            Wakes::Lost if woken.is_empty() => {}
            Wakes::Lost => {
                state.count("wakes_lost");
                woken.clear();
            }
            Wakes::Doubled => {
                let room = limit.saturating_sub(woken.len());
                let again: Vec<RunKey> =
                    state.told.iter().filter(|run| !woken.contains(run)).take(room).cloned().collect();
                if !again.is_empty() {
                    state.count("wakes_doubled");
                }
                woken.extend(again);
            }
        }
        state.told.extend(woken.iter().cloned());
        woken
    }
}

impl fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore").field("state", &self.state).finish_non_exhaustive()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
