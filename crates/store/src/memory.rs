//! The reference store: maps behind a mutex. What it answers is right by definition; the others are compared with it.

mod admit;
mod definitions;
mod outlook;
mod query;
mod retention;
mod rows;
mod serve;
mod tasks;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Commit, Delivery, InboxItem, NewRun, Snapshot, StandaloneTask, Status, TimerRef};
use outlast_core::id::{
    AttributeName, DeliveryId, Generation, InboxId, Index, Key, LeaseId, Namespace, NodeId, QueueName, Revision, RunId,
    RunKey, ScheduleId, TaskId, TxnId, Version, WorkerId, WorkflowName,
};
use outlast_core::limits::{CLAIM_BATCH_MAX, Limits};
use outlast_core::planted;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use self::admit::PlaceInLine;
use self::definitions::Definitions;
use self::workers::WorkerRow;
use crate::logic::admit::Flow;
use crate::logic::turns::Turns;
use crate::logic::{self, Halt};
use crate::rows::{Fault, GateId, GateRow, HeldRow, Rows, RunRow, StartKey, StartKeyRow, TaskRow, TimerRow, WaitRow};
use crate::{
    Admitted, Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, Clock, CommitError, Committed, Created,
    Defined, Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, Delivered, Depths, DueCursor,
    DueSchedules, Excerpt, Filter, Fire, Fired, Held, KeyedReply, Lease, Load, Loaded, Outlook, Page, Pick, Release,
    Resolution, Resume, Retained, Retention, RunView, Schedule, Sighting, Store, StoreError, Swept, Take, TaskDetail,
    TaskExtended, TaskFilter, TaskHeartbeat, TaskPage, WorkerView,
};

/// A store in memory: for tests, simulation and runs that need not outlast the process.
///
/// ```
/// use outlast_store::{MemoryStore, Store};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::default();
/// assert_eq!(store.namespaces().await?.len(), 1);
/// # Ok::<(), outlast_store::StoreError>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    limits: Limits,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new(Clock::System, Limits::default())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Clock, limits: Limits) -> Self {
        MemoryStore { state: Mutex::new(State::new(clock)), limits }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The logic decides before it writes and does not panic in between; a poisoned lock holds good data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where tasks line up: queue, priority (negated, so that the highest comes first), namespace.
type Line = (QueueName, i32, i64);

/// Everything there is, by key.
#[derive(Debug)]
struct State {
    clock: Clock,
    secret: [u8; 32],
    /// With their numbers, which are the order in which they were made.
    namespaces: BTreeMap<Namespace, i64>,
    leases: BTreeMap<LeaseId, (NodeId, Timestamp)>,
    runs: BTreeMap<RunKey, RunRow>,
    names: BTreeMap<i64, RunKey>,
    inputs: BTreeMap<(i64, Generation), Bytes>,
    events: BTreeMap<(i64, Generation, Index), Record>,
    inbox: BTreeMap<(i64, InboxId), InboxItem>,
    delivered: BTreeSet<(i64, DeliveryId)>,
    waits: BTreeMap<(i64, Key), WaitRow>,
    timers: BTreeMap<(i64, TimerRef), TimerRow>,
    due: BTreeSet<(Timestamp, i64, TimerRef)>,
    tasks: BTreeMap<(Namespace, TaskId), TaskRow>,
    snapshots: BTreeMap<i64, (Generation, Snapshot)>,
    attributes: BTreeMap<(i64, AttributeName), String>,
    schedules: BTreeMap<(Namespace, ScheduleId), Schedule>,
    /// Claimable runs: priority (negated, so that the highest comes first), namespace, since when, row.
    ready: BTreeSet<(i32, i64, Timestamp, i64)>,
    /// Ready tasks, each line by place. None is empty.
    ready_tasks: BTreeMap<Line, BTreeSet<(Timestamp, TaskId, Namespace)>>,
    /// Delayed and claimed tasks by queue, and until when.
    task_ends: BTreeMap<QueueName, BTreeSet<(Timestamp, Namespace, TaskId)>>,
    turns: Turns,
    owned: BTreeSet<(LeaseId, i64)>,
    /// What was offered, and when last.
    served: BTreeMap<(WorkflowName, Version), Timestamp>,
    held: BTreeMap<i64, HeldRow>,
    /// Held runs in no line, by when they may begin.
    fresh: BTreeSet<(Timestamp, i64)>,
    lines: BTreeSet<PlaceInLine>,
    gates: BTreeMap<GateId, GateRow>,
    /// Whether the run has ended.
    slots: BTreeMap<(i64, GateId), bool>,
    flows: BTreeMap<Flow, i64>,
    /// With the only namespace each works for.
    workers: BTreeMap<(WorkerId, Option<Namespace>), WorkerRow>,
    start_keys: BTreeMap<StartKey, StartKeyRow>,
    /// With when each was given.
    replies: BTreeMap<(Namespace, DeliveryId), (Timestamp, Bytes)>,
    definitions: Definitions,
}

/// What tokens are made with. Where time is an argument, everything is told in the same way every time, tokens too.
fn secret(clock: &Clock) -> [u8; 32] {
    match clock {
        Clock::System => random_bytes(),
        Clock::Manual(_) => [7; 32],
    }
}

fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    let (low, high) = bytes.split_at_mut(16);
    low.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    high.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes
}

impl State {
    fn new(clock: Clock) -> Self {
        State {
            secret: secret(&clock),
            clock,
            namespaces: BTreeMap::from([(Namespace::default_namespace(), 1)]),
            leases: BTreeMap::new(),
            runs: BTreeMap::new(),
            names: BTreeMap::new(),
            inputs: BTreeMap::new(),
            events: BTreeMap::new(),
            inbox: BTreeMap::new(),
            delivered: BTreeSet::new(),
            waits: BTreeMap::new(),
            timers: BTreeMap::new(),
            due: BTreeSet::new(),
            tasks: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            attributes: BTreeMap::new(),
            schedules: BTreeMap::new(),
            ready: BTreeSet::new(),
            ready_tasks: BTreeMap::new(),
            task_ends: BTreeMap::new(),
            turns: Turns::default(),
            owned: BTreeSet::new(),
            served: BTreeMap::new(),
            held: BTreeMap::new(),
            fresh: BTreeSet::new(),
            lines: BTreeSet::new(),
            gates: BTreeMap::new(),
            slots: BTreeMap::new(),
            flows: BTreeMap::new(),
            workers: BTreeMap::new(),
            start_keys: BTreeMap::new(),
            replies: BTreeMap::new(),
            definitions: Definitions::default(),
        }
    }

    /// Whether it is new.
    fn put_namespace(&mut self, namespace: Namespace) -> bool {
        let number = self.namespaces.len() as i64 + 1;
        let new = !self.namespaces.contains_key(&namespace);
        self.namespaces.entry(namespace).or_insert(number);
        new
    }

    /// The number of a namespace; of one that does not exist, none that is in use.
    fn number(&self, namespace: &Namespace) -> i64 {
        self.namespaces.get(namespace).copied().unwrap_or(0)
    }

    fn by_row(&self, row: i64) -> Option<&RunRow> {
        self.names.get(&row).and_then(|key| self.runs.get(key))
    }

    fn register(&mut self, node: NodeId, lease: Duration) -> Lease {
        let now = self.now();
        for (owner, until) in self.leases.values_mut() {
            if *owner == node {
                // Ended for good, also if the clock steps back.
                *until = Timestamp::EPOCH;
            }
        }
        let id = self.leases.keys().next_back().map_or(LeaseId(1), |last| last.next());
        let until = now + lease;
        self.leases.insert(id, (node.clone(), until));
        Lease { id, node, until, now }
    }

    fn renew(&mut self, lease: LeaseId, duration: Duration) -> Result<Lease, Halt<StoreError>> {
        logic::claim::check_lease(self, lease)?;
        let now = self.now();
        let until = now + duration;
        let node = match self.leases.get_mut(&lease) {
            Some(found) => {
                found.1 = until;
                found.0.clone()
            }
            None => return Err(Halt::Refused(StoreError::LeaseLapsed { lease, until: Timestamp::EPOCH })),
        };
        Ok(Lease { id: lease, node, until, now })
    }

    fn claim(&mut self, claim: &Claim) -> Result<Vec<Claimed>, Halt<StoreError>> {
        logic::claim::check_lease(self, claim.lease)?;
        let limit = claim.limit.min(CLAIM_BATCH_MAX);
        match &claim.pick {
            Pick::Run(key) | Pick::Seize(key) => Ok(logic::claim::claim_named(self, key, claim)?.into_iter().collect()),
            Pick::Ready => {
                let mut claimed = Vec::new();
                for run in self.candidates(claim, limit) {
                    claimed.extend(logic::claim::take_over(self, &run, claim)?);
                }
                Ok(claimed)
            }
        }
    }

    fn claim_tasks(&mut self, claim: &ClaimTasks) -> Result<Vec<ClaimedTask>, Halt<StoreError>> {
        let limit = claim.limit.min(CLAIM_BATCH_MAX);
        let mut claimed = Vec::new();
        if logic::task::asks_nobody(self, claim)? {
            return Ok(claimed);
        }
        self.promote_tasks(claim);
        for task in self.task_candidates(claim, limit) {
            claimed.extend(logic::task::take(self, &task, claim)?);
        }
        Ok(claimed)
    }

    fn sweep(&mut self, limit: usize) -> Result<Swept, Halt<StoreError>> {
        let now = self.now();
        let due: Vec<_> = self.due.iter().take_while(|(due, ..)| *due <= now).take(limit).cloned().collect();
        let late = due.first().map_or(Duration::ZERO, |(due, ..)| now.since(*due));
        let full = due.len() == limit;
        let mut fired = 0;
        for (_, row, timer) in due {
            if let Some(key) = self.names.get(&row).cloned() {
                fired += usize::from(logic::deliver::fire_timer(self, &key, &timer)?);
            }
        }
        let next_due = self.due.first().map(|(due, _, _)| *due);
        Ok(Swept { now, fired, late, next_due, more: full && next_due.is_some_and(|due| due <= now) })
    }
}

/// The answer of a piece of logic. Memory has no faults.
fn answer<T>(result: Result<T, Halt<StoreError>>) -> Result<T, StoreError> {
    result.map_err(|halt| match halt {
        Halt::Refused(error) => error,
        Halt::Fault(fault) => fault_error(fault),
    })
}

fn fault_error(fault: Fault) -> StoreError {
    match fault {
        Fault::Failed(error) => error,
        Fault::Miss => StoreError::corrupt("memory", "a row was asked for that memory does not fetch"),
    }
}

impl Store for MemoryStore {
    fn register(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move { Ok(self.state().register(node, lease)) })
    }

    fn renew(&self, lease: LeaseId, duration: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move { answer(self.state().renew(lease, duration)) })
    }

    fn retire(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if let Some((_, until)) = self.state().leases.get_mut(&lease) {
                *until = Timestamp::EPOCH;
            }
            Ok(())
        })
    }

    fn leases(&self) -> BoxFuture<'_, Result<Vec<Lease>, StoreError>> {
        Box::pin(async move {
            let state = self.state();
            let now = state.now();
            let lease = |(id, (node, until)): (&LeaseId, &(NodeId, Timestamp))| Lease {
                id: *id,
                node: node.clone(),
                until: *until,
                now,
            };
            Ok(state.leases.iter().map(lease).collect())
        })
    }

    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        Box::pin(async move {
            let mut state = self.state();
            runs.iter().map(|new| answer(logic::create::create(&mut *state, new, &self.limits))).collect()
        })
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        Box::pin(async move { answer(self.state().claim(&claim)) })
    }

    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        Box::pin(async move { Ok(self.state().wakes(lease, limit)) })
    }

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<bool, StoreError>>> {
        Box::pin(async move {
            let mut state = self.state();
            runs.iter().map(|take| answer(logic::claim::take(&mut *state, take))).collect()
        })
    }

    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>> {
        Box::pin(async move {
            let mut state = self.state();
            loads.iter().map(|load| answer(state.load(load))).collect()
        })
    }

    fn commit(&self, commits: Vec<Commit>) -> BoxFuture<'_, Vec<Result<Committed, CommitError>>> {
        Box::pin(async move {
            let mut state = self.state();
            let apply = |commit: &Commit| {
                logic::commit::commit(&mut *state, commit, &self.limits).map_err(|halt| match halt {
                    Halt::Refused(error) => error,
                    Halt::Fault(fault) => CommitError::NotApplied(fault_error(fault)),
                })
            };
            commits.iter().map(apply).collect()
        })
    }

    fn resolve(&self, _txn: TxnId) -> BoxFuture<'_, Result<Resolution, StoreError>> {
        // Memory never loses a reply, so nobody can hold a transaction of which it does not know the outcome.
        Box::pin(async move { Ok(Resolution::NotApplied) })
    }

    fn release(&self, runs: Vec<Release>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let mut state = self.state();
            runs.iter().map(|release| answer(logic::claim::release(&mut *state, release))).collect()
        })
    }

    fn unpark(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { answer(logic::claim::unpark(&mut *self.state(), &run)) })
    }

    fn announce(&self, serves: Vec<(WorkflowName, Version)>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.state().announce(serves);
            Ok(())
        })
    }

    fn park_unserved(&self, grace: Duration, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        Box::pin(async move { answer(self.state().park_unserved(grace, limit)) })
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Delivered, StoreError>>> {
        Box::pin(async move {
            let mut state = self.state();
            let leave = |mut delivery| {
                if planted!("delivery-ignores-namespace")
                    && let Delivery::Signal { run, .. } = &mut delivery
                    && let Some(first) = state.runs.keys().find(|first| first.id == run.id)
                {
                    *run = first.clone();
                }
                answer(logic::deliver::deliver(&mut *state, &delivery, &self.limits))
            };
            deliveries.into_iter().map(leave).collect()
        })
    }

    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let mut state = self.state();
            tasks.iter().map(|task| answer(logic::task::enqueue(&mut *state, task, &self.limits))).collect()
        })
    }

    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>> {
        Box::pin(async move { answer(self.state().claim_tasks(&claim)) })
    }

    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>> {
        Box::pin(async move { answer(logic::task::heartbeat(&mut *self.state(), &heartbeat, &self.limits)) })
    }

    fn task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<TaskDetail, StoreError>> {
        Box::pin(async move { answer(logic::task::detail(&mut *self.state(), &namespace, &id)) })
    }

    fn tasks(&self, filter: TaskFilter) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        Box::pin(async move { Ok(self.state().list_tasks(&filter)) })
    }

    fn retry_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { answer(logic::task::retry(&mut *self.state(), &namespace, &id)) })
    }

    fn discard_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { answer(logic::task::discard(&mut *self.state(), &namespace, &id)) })
    }

    fn see_worker(&self, sighting: Sighting) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { answer(self.state().see_worker(sighting)) })
    }

    fn forget_worker(&self, namespace: Option<Namespace>, worker: WorkerId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.state().workers.remove(&(worker, namespace));
            Ok(())
        })
    }

    fn workers(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<WorkerView>, StoreError>> {
        Box::pin(async move { Ok(self.state().list_workers(&namespace)) })
    }

    fn reply(&self, reply: KeyedReply) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        Box::pin(async move { answer(self.state().reply(reply)) })
    }

    fn define(&self, definitions: Vec<Definition>) -> BoxFuture<'_, Vec<Result<Defined, StoreError>>> {
        Box::pin(async move {
            let mut state = self.state();
            definitions.into_iter().map(|definition| state.define(definition, &self.limits)).collect()
        })
    }

    fn definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Option<Version>,
    ) -> BoxFuture<'_, Result<Option<DefinitionDetail>, StoreError>> {
        Box::pin(async move { Ok(self.state().definition(&namespace, &workflow, version.as_ref())) })
    }

    fn definitions(&self, filter: DefinitionFilter) -> BoxFuture<'_, Result<DefinitionPage, StoreError>> {
        Box::pin(async move { Ok(self.state().list_definitions(&filter)) })
    }

    fn forget_definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Version,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { self.state().forget_definition(namespace, workflow, version) })
    }

    fn wake(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { answer(logic::worker::wake(&mut *self.state(), &run)) })
    }

    fn resumes(
        &self,
        namespace: Namespace,
        after: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Resume>, StoreError>> {
        Box::pin(async move { Ok(self.state().resumes(&namespace, after.as_ref(), limit)) })
    }

    fn outlook(&self, queues: Vec<QueueName>) -> BoxFuture<'_, Result<Outlook, StoreError>> {
        Box::pin(async move { answer(self.state().outlook(&queues)) })
    }

    fn depths(&self) -> BoxFuture<'_, Result<Depths, StoreError>> {
        Box::pin(async move { Ok(self.state().depths()) })
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(async move { answer(self.state().sweep(limit)) })
    }

    fn admit(&self, limit: usize) -> BoxFuture<'_, Result<Admitted, StoreError>> {
        Box::pin(async move { answer(logic::admit::admit(&mut *self.state(), limit)) })
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        Box::pin(async move { answer(logic::schedule::put(&mut *self.state(), &schedule, &self.limits)) })
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.state().schedules.remove(&(namespace, id)).is_some()) })
    }

    fn schedules(
        &self,
        namespace: Namespace,
        only: Option<ScheduleId>,
    ) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        Box::pin(async move {
            let state = self.state();
            let wanted = |schedule: &&Schedule| {
                schedule.namespace == namespace && only.as_ref().is_none_or(|id| schedule.id == *id)
            };
            Ok(state.schedules.values().filter(wanted).cloned().collect())
        })
    }

    fn due_schedules(&self, after: Option<DueCursor>, limit: usize) -> BoxFuture<'_, Result<DueSchedules, StoreError>> {
        Box::pin(async move { Ok(self.state().due_schedules(after.as_ref(), limit)) })
    }

    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>> {
        Box::pin(async move { answer(logic::schedule::fire(&mut *self.state(), &fire, &self.limits)) })
    }

    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.state().put_namespace(namespace)) })
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>> {
        Box::pin(async move { Ok(self.state().namespaces.keys().cloned().collect()) })
    }

    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>> {
        Box::pin(async move { Ok(self.state().secret) })
    }

    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>> {
        Box::pin(async move { answer(logic::live_row(&mut *self.state(), &run)).map(|run| run.view()) })
    }

    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move { Ok(self.state().list(&filter)) })
    }

    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>> {
        Box::pin(async move { Ok(self.state().count(&namespace)) })
    }

    fn held(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Held>, StoreError>> {
        Box::pin(async move { answer(logic::admit::held_view(&mut *self.state(), &run)) })
    }

    fn awaiting(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<Awaited>, StoreError>> {
        Box::pin(async move { answer(self.state().awaiting(&run)) })
    }

    fn excerpt(&self, excerpt: Excerpt) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move { answer(self.state().excerpt(&excerpt)) })
    }

    fn attributes(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        Box::pin(async move { answer(self.state().attributes(&run)) })
    }

    fn delete(&self, run: RunKey, reason: String) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.limits.check_text(logic::DELETION, &reason)?;
            answer(self.state().delete(&run, reason))
        })
    }

    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>> {
        Box::pin(async move { Ok(self.state().retain(retention)) })
    }
}
