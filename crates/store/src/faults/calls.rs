//! Every call of a store, passed on.

use std::time::Duration;

use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{LeaseId, Namespace, NodeId, RunKey, ScheduleId, TxnId, Version, WorkflowName};
use outlast_core::record::Record;

use super::FaultStore;
use crate::{
    Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, CommitError, Committed, Created, Delivered, Excerpt,
    Filter, Fire, Fired, Lease, Load, Loaded, Page, Release, Resolution, Retained, Retention, RunView, Schedule, Store,
    StoreError, Swept, Take, TaskExtended, TaskHeartbeat, TaskView, Transact, Transacted,
};

/// Passes a call on, with so many items: its arguments go along, so that it arrives even if nobody waits for it any more.
macro_rules! pass {
    ($store:expr, $items:expr, $call:ident($($argument:expr),*)) => {
        $store.pass(stringify!($call), $items, move |store| Box::pin(async move { store.$call($($argument),*).await }))
    };
}

impl Store for FaultStore {
    fn register(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        pass!(self, 1, register(node, lease))
    }

    fn renew(&self, lease: LeaseId, duration: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        pass!(self, 1, renew(lease, duration))
    }

    fn retire(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, retire(lease))
    }

    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        pass!(self, runs.len(), create(runs))
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        pass!(self, 1, claim(claim))
    }

    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        Box::pin(async move {
            let woken = pass!(self, 1, wakes(lease, limit)).await?;
            Ok(self.told(woken, limit))
        })
    }

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        pass!(self, runs.len(), take(runs))
    }

    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>> {
        pass!(self, loads.len(), load(loads))
    }

    fn commit(&self, commits: Vec<Commit>) -> BoxFuture<'_, Vec<Result<Committed, CommitError>>> {
        pass!(self, commits.len(), commit(commits))
    }

    fn create_here(&self, runs: &[NewRun]) -> Option<Vec<Result<Created, StoreError>>> {
        self.pass_here("create", runs.len(), |store| store.create_here(runs))
    }

    fn commit_here(&self, commits: &[Commit]) -> Option<Vec<Result<Committed, CommitError>>> {
        self.pass_here("commit", commits.len(), |store| store.commit_here(commits))
    }

    fn transact(&self, transact: Transact) -> BoxFuture<'_, Result<Transacted, CommitError>> {
        pass!(self, 1, transact(transact))
    }

    fn resolve(&self, txn: TxnId) -> BoxFuture<'_, Result<Resolution, StoreError>> {
        let here = self.another();
        self.pass("resolve", 1, move |store| {
            Box::pin(async move {
                match here.resolution(txn) {
                    Some(resolution) => Ok(resolution),
                    None => store.resolve(txn).await,
                }
            })
        })
    }

    fn release(&self, runs: Vec<Release>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        pass!(self, runs.len(), release(runs))
    }

    fn unpark(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        pass!(self, 1, unpark(run))
    }

    fn announce(&self, serves: Vec<(WorkflowName, Version)>) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, announce(serves))
    }

    fn park_unserved(&self, grace: Duration, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        pass!(self, 1, park_unserved(grace, limit))
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Delivered, StoreError>>> {
        pass!(self, deliveries.len(), deliver(deliveries))
    }

    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        pass!(self, tasks.len(), enqueue(tasks))
    }

    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>> {
        pass!(self, 1, claim_tasks(claim))
    }

    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>> {
        pass!(self, 1, heartbeat(heartbeat))
    }

    fn tasks(&self, namespace: Namespace, limit: usize) -> BoxFuture<'_, Result<Vec<TaskView>, StoreError>> {
        pass!(self, 1, tasks(namespace, limit))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        pass!(self, 1, sweep(limit))
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, put_schedule(schedule))
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        pass!(self, 1, remove_schedule(namespace, id))
    }

    fn schedules(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        pass!(self, 1, schedules(namespace))
    }

    fn due_schedules(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        pass!(self, 1, due_schedules(limit))
    }

    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>> {
        pass!(self, 1, fire(fire))
    }

    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>> {
        pass!(self, 1, put_namespace(namespace))
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>> {
        pass!(self, 1, namespaces())
    }

    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>> {
        pass!(self, 1, secret())
    }

    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>> {
        pass!(self, 1, get(run))
    }

    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>> {
        pass!(self, 1, list(filter))
    }

    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>> {
        pass!(self, 1, count(namespace))
    }

    fn awaiting(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<Awaited>, StoreError>> {
        pass!(self, 1, awaiting(run))
    }

    fn excerpt(&self, excerpt: Excerpt) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        pass!(self, 1, excerpt(excerpt))
    }

    fn attributes(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        pass!(self, 1, attributes(run))
    }

    fn delete(&self, run: RunKey, reason: String) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, delete(run, reason))
    }

    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>> {
        pass!(self, 1, retain(retention))
    }
}
