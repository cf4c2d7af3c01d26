//! Every call of a store, passed on.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{
    LeaseId, Namespace, NodeId, QueueName, Revision, RunId, RunKey, ScheduleId, TaskId, TxnId, Version, WorkerId,
    WorkflowName,
};
use outlast_core::record::Record;
use tokio::sync::watch;

use super::FaultStore;
use crate::{
    Admitted, Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, CommitError, Committed, Created, Defined,
    Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, Delivered, Depths, DueCursor, DueSchedules,
    Excerpt, Filter, Fire, Fired, Held, KeyedReply, Lease, Load, Loaded, Outlook, Page, Release, Resolution, Resume,
    Retained, Retention, RunView, Schedule, Sighting, Store, StoreError, Swept, Take, TaskDetail, TaskExtended,
    TaskFilter, TaskHeartbeat, TaskPage, Transact, Transacted, WorkerView,
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

    fn leases(&self) -> BoxFuture<'_, Result<Vec<Lease>, StoreError>> {
        pass!(self, 1, leases())
    }

    fn hints(&self) -> Option<watch::Receiver<u64>> {
        self.inner.hints()
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

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<bool, StoreError>>> {
        pass!(self, runs.len(), take(runs))
    }

    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>> {
        let loads = self.loads(loads);
        Box::pin(async move { self.loaded(pass!(self, loads.len(), load(loads)).await) })
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

    fn task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<TaskDetail, StoreError>> {
        pass!(self, 1, task(namespace, id))
    }

    fn tasks(&self, filter: TaskFilter) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        pass!(self, 1, tasks(filter))
    }

    fn retry_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, retry_task(namespace, id))
    }

    fn discard_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, discard_task(namespace, id))
    }

    fn see_worker(&self, sighting: Sighting) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, see_worker(sighting))
    }

    fn forget_worker(&self, namespace: Option<Namespace>, worker: WorkerId) -> BoxFuture<'_, Result<(), StoreError>> {
        pass!(self, 1, forget_worker(namespace, worker))
    }

    fn workers(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<WorkerView>, StoreError>> {
        pass!(self, 1, workers(namespace))
    }

    fn reply(&self, reply: KeyedReply) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        pass!(self, 1, reply(reply))
    }

    fn define(&self, definitions: Vec<Definition>) -> BoxFuture<'_, Vec<Result<Defined, StoreError>>> {
        pass!(self, definitions.len(), define(definitions))
    }

    fn definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Option<Version>,
    ) -> BoxFuture<'_, Result<Option<DefinitionDetail>, StoreError>> {
        pass!(self, 1, definition(namespace, workflow, version))
    }

    fn definitions(&self, filter: DefinitionFilter) -> BoxFuture<'_, Result<DefinitionPage, StoreError>> {
        pass!(self, 1, definitions(filter))
    }

    fn forget_definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Version,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        pass!(self, 1, forget_definition(namespace, workflow, version))
    }

    fn wake(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        pass!(self, 1, wake(run))
    }

    fn resumes(
        &self,
        namespace: Namespace,
        after: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Resume>, StoreError>> {
        pass!(self, 1, resumes(namespace, after, limit))
    }

    fn outlook(&self, queues: Vec<QueueName>) -> BoxFuture<'_, Result<Outlook, StoreError>> {
        pass!(self, 1, outlook(queues))
    }

    fn depths(&self) -> BoxFuture<'_, Result<Depths, StoreError>> {
        pass!(self, 1, depths())
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        pass!(self, 1, sweep(limit))
    }

    fn admit(&self, limit: usize) -> BoxFuture<'_, Result<Admitted, StoreError>> {
        pass!(self, 1, admit(limit))
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        pass!(self, 1, put_schedule(schedule))
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        pass!(self, 1, remove_schedule(namespace, id))
    }

    fn schedules(
        &self,
        namespace: Namespace,
        only: Option<ScheduleId>,
    ) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        pass!(self, 1, schedules(namespace, only))
    }

    fn due_schedules(&self, after: Option<DueCursor>, limit: usize) -> BoxFuture<'_, Result<DueSchedules, StoreError>> {
        pass!(self, 1, due_schedules(after, limit))
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

    fn held(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Held>, StoreError>> {
        pass!(self, 1, held(run))
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
