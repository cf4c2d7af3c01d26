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

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{LeaseId, Namespace, NodeId, RunKey, ScheduleId, TxnId, Version, WorkflowName};
use outlast_core::record::Record;

use crate::{
    Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, CommitError, Committed, Created, Delivered, Excerpt,
    Filter, Fire, Fired, Lease, Load, Loaded, Page, Release, Resolution, Retained, Retention, RunView, Schedule, Store,
    StoreError, Swept, Take, TaskExtended, TaskHeartbeat, TaskView, Transact, Transacted, Trouble,
};

/// In which way a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Nothing is applied, and the caller gets an error.
    NotApplied {
        /// Only for `commit` and `transact`: whether its sender is left in doubt ([`CommitError::Unknown`], which resolves to
        /// [`Resolution::NotApplied`]) instead of being told.
        in_doubt: bool,
    },
    /// Everything is applied, but the caller gets an error; a `commit` or `transact` gets [`CommitError::Unknown`],
    /// which resolves to [`Resolution::Applied`].
    AppliedThenError,
    /// Everything is applied, but nobody learns of it: this call and every later one says that the store is closed.
    AppliedThenCrash,
}

/// Which call fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plan {
    /// The number of the call, from 0.
    pub at: u64,
    /// The way in which it fails.
    pub fault: Fault,
}

/// A store in front of another, which fails as planned.
///
/// Every call of the [`Store`] trait counts, also one that only reads. A call counts when it is first polled.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The faults to come.
    plans: Vec<Plan>,
    log: Vec<&'static str>,
    landed: usize,
    /// Calls that have begun and not ended.
    under_way: usize,
    crashed: bool,
    /// Who wants to know when a fault happens.
    watcher: Option<Waker>,
    /// What became of the commits whose senders were left in doubt.
    doubts: BTreeMap<TxnId, Resolution>,
}

/// What happens to a call.
enum Fate {
    Pass,
    Fail { call: u64, fault: Fault },
    Dead,
}

struct UnderWay<'s>(&'s FaultStore);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.state().under_way -= 1;
    }
}

impl FaultStore {
    /// In front of `inner`, with one fault.
    pub fn new(inner: Arc<dyn Store>, plan: Plan) -> Self {
        FaultStore::counting(inner).and(plan)
    }

    /// In front of `inner`, without a fault: it only counts.
    pub fn counting(inner: Arc<dyn Store>) -> Self {
        FaultStore { inner, state: Mutex::default() }
    }

    /// With one more fault.
    #[must_use]
    pub fn and(self, plan: Plan) -> Self {
        self.state().plans.push(plan);
        self
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

    /// Calls this waker when the next fault happens.
    pub fn notify(&self, watcher: &Waker) {
        self.state().watcher = Some(watcher.clone());
    }

    /// How many calls have begun and not ended; one whose future was dropped has ended.
    pub fn under_way(&self) -> usize {
        self.state().under_way
    }

    /// Whether the process that uses this store counts as dead.
    pub fn has_crashed(&self) -> bool {
        self.state().crashed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and says what happens to it.
    fn begin(&self, name: &'static str) -> Fate {
        let mut state = self.state();
        let call = state.log.len() as u64;
        state.log.push(name);
        if state.crashed {
            return Fate::Dead;
        }
        let Some(place) = state.plans.iter().position(|plan| plan.at == call) else { return Fate::Pass };
        let Plan { fault, .. } = state.plans.remove(place);
        state.landed += 1;
        if let Some(watcher) = state.watcher.take() {
            watcher.wake();
        }
        Fate::Fail { call, fault }
    }

    /// Counts a call as under way, until the answer is dropped.
    fn enter(&self) -> UnderWay<'_> {
        self.state().under_way += 1;
        UnderWay(self)
    }

    fn crash(&self) {
        self.state().crashed = true;
    }

    /// Every call but `commit` and `transact`: they differ in their answer's shape only.
    fn pass<'a, T, C>(&'a self, name: &'static str, items: usize, call: C) -> BoxFuture<'a, T>
    where
        T: Answer + Send + 'a,
        C: FnOnce(&'a dyn Store) -> BoxFuture<'a, T> + Send + 'a,
    {
        Box::pin(async move {
            let fate = self.begin(name);
            let _under_way = self.enter();
            let answer = match fate {
                Fate::Pass | Fate::Fail { fault: Fault::AppliedThenError | Fault::AppliedThenCrash, .. } => {
                    call(&*self.inner).await
                }
                Fate::Fail { fault: Fault::NotApplied { .. }, .. } | Fate::Dead => T::failed(&dead(), items),
            };
            match fate {
                // Somebody else's call may have been the last one meanwhile.
                Fate::Pass if !self.has_crashed() => answer,
                Fate::Fail { call, fault: Fault::NotApplied { .. } | Fault::AppliedThenError } => {
                    T::failed(&injected(call), items)
                }
                Fate::Fail { fault: Fault::AppliedThenCrash, .. } => {
                    self.crash();
                    T::failed(&dead(), items)
                }
                Fate::Pass | Fate::Dead => T::failed(&dead(), items),
            }
        })
    }

    /// As [`FaultStore::pass`], but a commit's sender may be left in doubt.
    async fn pass_commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, CommitError>> {
        let items = commits.len();
        let _under_way = self.enter();
        match self.begin("commit") {
            Fate::Pass => {
                let answers = self.inner.commit(commits).await;
                if self.has_crashed() { not_applied(&dead(), items) } else { answers }
            }
            Fate::Fail { call, fault: Fault::NotApplied { in_doubt: false } } => not_applied(&injected(call), items),
            Fate::Fail { call, fault: Fault::NotApplied { in_doubt: true } } => {
                (0..items).map(|item| Err(self.doubt(call, item, Resolution::NotApplied))).collect()
            }
            Fate::Fail { call, fault: fault @ (Fault::AppliedThenError | Fault::AppliedThenCrash) } => {
                let answers = self.inner.commit(commits).await;
                if fault == Fault::AppliedThenCrash {
                    self.crash();
                }
                // A commit that was refused was not applied, whatever became of its neighbours.
                let resolution = |applied| if applied { Resolution::Applied } else { Resolution::NotApplied };
                let doubt = |(item, answer): (usize, &Result<Committed, CommitError>)| {
                    Err(self.doubt(call, item, resolution(answer.is_ok())))
                };
                answers.iter().enumerate().map(doubt).collect()
            }
            Fate::Dead => not_applied(&dead(), items),
        }
    }

    /// As [`FaultStore::pass_commit`], for a transaction.
    async fn pass_transact(&self, transact: Transact) -> Result<Transacted, CommitError> {
        let _under_way = self.enter();
        match self.begin("transact") {
            Fate::Pass => {
                let answer = self.inner.transact(transact).await;
                if self.has_crashed() { Err(CommitError::NotApplied(dead())) } else { answer }
            }
            Fate::Fail { call, fault: Fault::NotApplied { in_doubt: false } } => {
                Err(CommitError::NotApplied(injected(call)))
            }
            Fate::Fail { call, fault: Fault::NotApplied { in_doubt: true } } => {
                Err(self.doubt(call, 0, Resolution::NotApplied))
            }
            Fate::Fail { call, fault: fault @ (Fault::AppliedThenError | Fault::AppliedThenCrash) } => {
                let answer = self.inner.transact(transact).await;
                if fault == Fault::AppliedThenCrash {
                    self.crash();
                }
                let applied = matches!(answer, Ok(Transacted::Committed(_)));
                Err(self.doubt(call, 0, if applied { Resolution::Applied } else { Resolution::NotApplied }))
            }
            Fate::Dead => Err(CommitError::NotApplied(dead())),
        }
    }

    /// Leaves a sender in doubt, and keeps the truth for [`Store::resolve`].
    fn doubt(&self, call: u64, item: usize, resolution: Resolution) -> CommitError {
        let txn = TxnId(uuid::Uuid::from_u64_pair(call, item as u64));
        self.state().doubts.insert(txn, resolution);
        CommitError::Unknown(txn)
    }
}

impl fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore").field("state", &self.state).finish_non_exhaustive()
    }
}

fn injected(call: u64) -> StoreError {
    StoreError::unavailable(Trouble::Connection, format!("call {call} was made to fail"))
}

fn dead() -> StoreError {
    StoreError::unavailable(Trouble::Closed, "the process was made to crash")
}

fn not_applied(error: &StoreError, items: usize) -> Vec<Result<Committed, CommitError>> {
    (0..items).map(|_| Err(CommitError::NotApplied(error.clone()))).collect()
}

/// What a call answers, and how that looks when it fails.
trait Answer {
    fn failed(error: &StoreError, items: usize) -> Self;
}

impl<T> Answer for Result<T, StoreError> {
    fn failed(error: &StoreError, _items: usize) -> Self {
        Err(error.clone())
    }
}

impl<T> Answer for Vec<Result<T, StoreError>> {
    fn failed(error: &StoreError, items: usize) -> Self {
        (0..items).map(|_| Err(error.clone())).collect()
    }
}

impl Store for FaultStore {
    fn register(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.pass("register", 1, move |store| store.register(node, lease))
    }

    fn renew(&self, lease: LeaseId, duration: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.pass("renew", 1, move |store| store.renew(lease, duration))
    }

    fn retire(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.pass("retire", 1, move |store| store.retire(lease))
    }

    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        self.pass("create", runs.len(), move |store| store.create(runs))
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        self.pass("claim", 1, move |store| store.claim(claim))
    }

    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.pass("wakes", 1, move |store| store.wakes(lease, limit))
    }

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.pass("take", runs.len(), move |store| store.take(runs))
    }

    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>> {
        self.pass("load", loads.len(), move |store| store.load(loads))
    }

    fn commit(&self, commits: Vec<Commit>) -> BoxFuture<'_, Vec<Result<Committed, CommitError>>> {
        Box::pin(self.pass_commit(commits))
    }

    fn transact(&self, transact: Transact) -> BoxFuture<'_, Result<Transacted, CommitError>> {
        Box::pin(self.pass_transact(transact))
    }

    fn resolve(&self, txn: TxnId) -> BoxFuture<'_, Result<Resolution, StoreError>> {
        let known = self.state().doubts.get(&txn).copied();
        self.pass("resolve", 1, move |store| match known {
            Some(resolution) => Box::pin(async move { Ok(resolution) }),
            None => store.resolve(txn),
        })
    }

    fn release(&self, runs: Vec<Release>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.pass("release", runs.len(), move |store| store.release(runs))
    }

    fn unpark(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.pass("unpark", 1, move |store| store.unpark(run))
    }

    fn announce(&self, serves: Vec<(WorkflowName, Version)>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.pass("announce", 1, move |store| store.announce(serves))
    }

    fn park_unserved(&self, grace: Duration, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.pass("park_unserved", 1, move |store| store.park_unserved(grace, limit))
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Delivered, StoreError>>> {
        self.pass("deliver", deliveries.len(), move |store| store.deliver(deliveries))
    }

    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.pass("enqueue", tasks.len(), move |store| store.enqueue(tasks))
    }

    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>> {
        self.pass("claim_tasks", 1, move |store| store.claim_tasks(claim))
    }

    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>> {
        self.pass("heartbeat", 1, move |store| store.heartbeat(heartbeat))
    }

    fn tasks(&self, namespace: Namespace, limit: usize) -> BoxFuture<'_, Result<Vec<TaskView>, StoreError>> {
        self.pass("tasks", 1, move |store| store.tasks(namespace, limit))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        self.pass("sweep", 1, move |store| store.sweep(limit))
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<(), StoreError>> {
        self.pass("put_schedule", 1, move |store| store.put_schedule(schedule))
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.pass("remove_schedule", 1, move |store| store.remove_schedule(namespace, id))
    }

    fn schedules(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.pass("schedules", 1, move |store| store.schedules(namespace))
    }

    fn due_schedules(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.pass("due_schedules", 1, move |store| store.due_schedules(limit))
    }

    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>> {
        self.pass("fire", 1, move |store| store.fire(fire))
    }

    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.pass("put_namespace", 1, move |store| store.put_namespace(namespace))
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>> {
        self.pass("namespaces", 1, move |store| store.namespaces())
    }

    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>> {
        self.pass("secret", 1, move |store| store.secret())
    }

    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>> {
        self.pass("get", 1, move |store| store.get(run))
    }

    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.pass("list", 1, move |store| store.list(filter))
    }

    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>> {
        self.pass("count", 1, move |store| store.count(namespace))
    }

    fn awaiting(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<Awaited>, StoreError>> {
        self.pass("awaiting", 1, move |store| store.awaiting(run))
    }

    fn excerpt(&self, excerpt: Excerpt) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.pass("excerpt", 1, move |store| store.excerpt(excerpt))
    }

    fn attributes(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        self.pass("attributes", 1, move |store| store.attributes(run))
    }

    fn delete(&self, run: RunKey) -> BoxFuture<'_, Result<(), StoreError>> {
        self.pass("delete", 1, move |store| store.delete(run))
    }

    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>> {
        self.pass("retain", 1, move |store| store.retain(retention))
    }
}

#[cfg(test)]
mod tests;
