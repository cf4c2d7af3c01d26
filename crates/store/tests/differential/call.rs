//! Calls as data, and their answers: the same call is made to every store and the answers are compared.

use std::time::Duration;

use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{
    LeaseId, Namespace, NodeId, QueueName, Revision, RunKey, ScheduleId, TaskId, TxnId, Version, WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{
    Admitted, Awaited, Claim, ClaimTasks, Claimed, ClaimedTask, CommitError, Committed, Created, Defined, Definition,
    DefinitionDetail, DefinitionFilter, DefinitionPage, Delivered, DueCursor, DueSchedules, Excerpt, Filter, Fire,
    Fired, Held, Lease, Load, Loaded, Outlook, Release, Resolution, Retention, RunView, Schedule, Store, StoreError,
    Swept, Take, TaskDetail, TaskExtended, TaskFilter, TaskHeartbeat, TaskPage,
};

/// A call with all its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Clock(i64),
    Register(NodeId, Duration),
    Renew(LeaseId, Duration),
    Retire(LeaseId),
    Create(Vec<NewRun>),
    Claim(Claim),
    Wakes(LeaseId, usize),
    Take(Vec<Take>),
    Release(Vec<Release>),
    Load(Vec<Load>),
    Commit(Vec<Commit>),
    Resolve(TxnId),
    Unpark(RunKey),
    Announce(Vec<(WorkflowName, Version)>),
    ParkUnserved(Duration, usize),
    Deliver(Vec<Delivery>),
    Enqueue(Vec<StandaloneTask>),
    ClaimTasks(ClaimTasks),
    Heartbeat(TaskHeartbeat),
    Task(Namespace, TaskId),
    Tasks(TaskFilter),
    RetryTask(Namespace, TaskId),
    DiscardTask(Namespace, TaskId),
    Outlook(Vec<QueueName>),
    Sweep(usize),
    Admit(usize),
    Held(RunKey),
    Define(Vec<Definition>),
    Definition(Namespace, WorkflowName, Option<Version>),
    Definitions(DefinitionFilter),
    ForgetDefinition(Namespace, WorkflowName, Version),
    PutSchedule(Schedule),
    RemoveSchedule(Namespace, ScheduleId),
    Schedules(Namespace, Option<ScheduleId>),
    Due(Option<DueCursor>, usize),
    Fire(Box<Fire>),
    PutNamespace(Namespace),
    Namespaces,
    Get(RunKey),
    /// All pages of a listing.
    List(Filter),
    Count(Namespace),
    Awaiting(RunKey),
    Excerpt(Excerpt),
    Attributes(RunKey),
    Delete(RunKey),
    /// Until there is nothing left to do: what each step did is the store's business.
    Retain(Retention),
}

/// What a store answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Nothing,
    Lease(Result<Lease, StoreError>),
    Done(Result<(), StoreError>),
    AllDone(Vec<Result<(), StoreError>>),
    Taken(Vec<Result<bool, StoreError>>),
    Created(Vec<Result<Created, StoreError>>),
    Claimed(Result<Vec<Claimed>, StoreError>),
    Keys(Result<Vec<RunKey>, StoreError>),
    Loaded(Vec<Result<Loaded, StoreError>>),
    Committed(Vec<Result<Committed, CommitError>>),
    Resolved(Result<Resolution, StoreError>),
    Whether(Result<bool, StoreError>),
    Delivered(Vec<Result<Delivered, StoreError>>),
    Tasks(Result<Vec<ClaimedTask>, StoreError>),
    Extended(Result<TaskExtended, StoreError>),
    Task(Result<TaskDetail, StoreError>),
    TaskPage(Result<TaskPage, StoreError>),
    Outlook(Result<Outlook, StoreError>),
    Swept(Result<Swept, StoreError>),
    Admitted(Result<Admitted, StoreError>),
    Held(Result<Option<Held>, StoreError>),
    Defined(Vec<Result<Defined, StoreError>>),
    Definition(Result<Option<DefinitionDetail>, StoreError>),
    Definitions(Result<DefinitionPage, StoreError>),
    Put(Result<Option<Revision>, StoreError>),
    Schedules(Result<Vec<Schedule>, StoreError>),
    Due(Result<DueSchedules, StoreError>),
    Fired(Result<Fired, StoreError>),
    Namespaces(Result<Vec<Namespace>, StoreError>),
    View(Result<RunView, StoreError>),
    Pages(Result<Vec<Vec<RunView>>, StoreError>),
    Counts(Result<Vec<(Status, u64)>, StoreError>),
    Awaiting(Result<Vec<Awaited>, StoreError>),
    Records(Result<Vec<Record>, StoreError>),
    Attributes(Result<Vec<(String, String)>, StoreError>),
}

/// Makes the call.
pub(crate) async fn make(store: &dyn Store, call: Call) -> Reply {
    match call {
        Call::Clock(_) => Reply::Nothing,
        Call::Register(node, lease) => Reply::Lease(store.register(node, lease).await),
        Call::Renew(lease, duration) => Reply::Lease(store.renew(lease, duration).await.map_err(alike)),
        Call::Retire(lease) => Reply::Done(store.retire(lease).await),
        Call::Create(runs) => {
            Reply::Created(store.create(runs).await.into_iter().map(|created| created.map_err(alike)).collect())
        }
        Call::Claim(claim) => Reply::Claimed(store.claim(claim).await.map_err(alike)),
        Call::Wakes(lease, limit) => Reply::Keys(store.wakes(lease, limit).await),
        Call::Take(runs) => Reply::Taken(store.take(runs).await),
        Call::Release(runs) => Reply::AllDone(store.release(runs).await),
        Call::Load(loads) => Reply::Loaded(store.load(loads).await),
        Call::Commit(commits) => Reply::Committed(store.commit(commits).await),
        Call::Resolve(txn) => Reply::Resolved(store.resolve(txn).await),
        Call::Unpark(run) => Reply::Whether(store.unpark(run).await),
        Call::Announce(serves) => Reply::Done(store.announce(serves).await),
        Call::ParkUnserved(grace, limit) => Reply::Keys(store.park_unserved(grace, limit).await),
        Call::Deliver(deliveries) => Reply::Delivered(store.deliver(deliveries).await),
        Call::Enqueue(tasks) => Reply::AllDone(store.enqueue(tasks).await),
        Call::ClaimTasks(claim) => Reply::Tasks(store.claim_tasks(claim).await),
        Call::Heartbeat(beat) => Reply::Extended(store.heartbeat(beat).await),
        Call::Task(namespace, id) => Reply::Task(store.task(namespace, id).await),
        Call::Tasks(filter) => Reply::TaskPage(store.tasks(filter).await),
        Call::RetryTask(namespace, id) => Reply::Done(store.retry_task(namespace, id).await),
        Call::DiscardTask(namespace, id) => Reply::Done(store.discard_task(namespace, id).await),
        Call::Outlook(queues) => Reply::Outlook(store.outlook(queues).await),
        Call::Sweep(limit) => Reply::Swept(store.sweep(limit).await),
        Call::Admit(limit) => Reply::Admitted(store.admit(limit).await),
        Call::Held(run) => Reply::Held(store.held(run).await.map_err(alike)),
        Call::Define(definitions) => Reply::Defined(store.define(definitions).await),
        Call::Definition(namespace, workflow, version) => {
            Reply::Definition(store.definition(namespace, workflow, version).await)
        }
        Call::Definitions(filter) => Reply::Definitions(store.definitions(filter).await),
        Call::ForgetDefinition(namespace, workflow, version) => {
            Reply::Whether(store.forget_definition(namespace, workflow, version).await)
        }
        Call::PutSchedule(schedule) => Reply::Put(store.put_schedule(schedule).await),
        Call::RemoveSchedule(namespace, id) => Reply::Whether(store.remove_schedule(namespace, id).await),
        Call::Schedules(namespace, only) => Reply::Schedules(store.schedules(namespace, only).await),
        Call::Due(after, limit) => Reply::Due(store.due_schedules(after, limit).await),
        Call::Fire(fire) => Reply::Fired(store.fire(*fire).await.map_err(alike)),
        Call::PutNamespace(namespace) => Reply::Whether(store.put_namespace(namespace).await),
        Call::Namespaces => Reply::Namespaces(store.namespaces().await),
        Call::Get(run) => Reply::View(store.get(run).await),
        Call::List(filter) => Reply::Pages(pages(store, filter).await),
        Call::Count(namespace) => Reply::Counts(store.count(namespace).await),
        Call::Awaiting(run) => Reply::Awaiting(store.awaiting(run).await),
        Call::Excerpt(excerpt) => Reply::Records(store.excerpt(excerpt).await),
        Call::Attributes(run) => Reply::Attributes(store.attributes(run).await),
        Call::Delete(run) => Reply::Done(store.delete(run, "asked to".to_owned()).await),
        Call::Retain(retention) => Reply::Done(retain(store, retention).await),
    }
}

/// A store may forget a lease that is over and owns nothing, and then not know when it ended.
fn alike(error: StoreError) -> StoreError {
    match error {
        StoreError::LeaseLapsed { lease, .. } => StoreError::LeaseLapsed { lease, until: Timestamp::EPOCH },
        other => other,
    }
}

/// Follows the store's own cursors: they are opaque.
async fn pages(store: &dyn Store, mut filter: Filter) -> Result<Vec<Vec<RunView>>, StoreError> {
    let mut pages = Vec::new();
    loop {
        let page = store.list(filter.clone()).await?;
        pages.push(page.runs);
        match page.next {
            Some(next) => filter.after = Some(next),
            None => return Ok(pages),
        }
    }
}

async fn retain(store: &dyn Store, retention: Retention) -> Result<(), StoreError> {
    for _ in 0..1_000 {
        if !store.retain(retention).await?.more {
            return Ok(());
        }
    }
    panic!("retention does not come to an end");
}
