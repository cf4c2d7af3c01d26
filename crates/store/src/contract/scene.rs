//! Short words for what the stories say again and again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{
    CloseCause, ClosedWait, Commit, Control, Delivery, Ending, InboxItem, NewRun, NewTask, NewTimer, NewWait, Owner,
    Parent, Signal, TaskOutcome, Then, TimerKind, TimerRef, WaitKind,
};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Generation, InboxId, Index, Key, LeaseId, Namespace, NodeId, QueueName, RunId, RunKey,
    SignalName, TaskId, TaskName, TaskToken, Version, WorkerId, WorkflowName,
};
use outlast_core::limits::Limits;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use super::{Fixture, Harness, RawWrite};
use crate::{
    Awaited, Claim, ClaimTasks, Claimed, ClaimedTask, CommitError, Committed, Created, Delivered, Load, LoadFrom,
    Loaded, ManualClock, Pick, Release, RunView, Serves, Store, Swept, Take, TaskFilter, TaskView,
};

/// Limits a story can reach.
pub(super) fn small_limits() -> Limits {
    Limits { payload_bytes: 8, commit_events: 3, unconsumed_signals: 3, ..Limits::default() }
}

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Why runs of these stories are deleted.
pub(super) const WHY: &str = "a story is over";

/// What is said of a run that somebody deleted.
pub(super) fn tombstone(run: RunKey) -> crate::StoreError {
    crate::StoreError::Deleted { run, reason: Some(WHY.to_owned()) }
}

/// What is said of a run that went by its age, or with its tree.
pub(super) fn faded(run: RunKey) -> crate::StoreError {
    crate::StoreError::Deleted { run, reason: None }
}

pub(super) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(super) fn namespace(name: &str) -> Namespace {
    Namespace::new(name).unwrap()
}

/// A run of the default namespace.
pub(super) fn run(id: &str) -> RunKey {
    run_in("default", id)
}

pub(super) fn run_in(space: &str, id: &str) -> RunKey {
    RunKey::new(namespace(space), RunId::new(id).unwrap())
}

pub(super) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub(super) fn id(text: &str) -> DeliveryId {
    DeliveryId::new(text).unwrap()
}

pub(super) fn task_id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

pub(super) fn workflow(name: &str) -> WorkflowName {
    WorkflowName::new(name).unwrap()
}

pub(super) fn version(name: &str) -> Version {
    Version::new(name).unwrap()
}

pub(super) fn new_run(run: &RunKey) -> NewRun {
    NewRun::new(run.clone(), workflow("checkout"), version("1"), bytes("{}"))
}

pub(super) fn child_of(parent: &Held, id: &str, operation: &str) -> NewRun {
    let run = RunKey::new(parent.run.namespace.clone(), RunId::new(id).unwrap());
    let generation = parent.generation;
    let parent = Parent { run: parent.run.id.clone(), generation, key: key(operation), detached: false };
    NewRun { parent: Some(parent), ..new_run(&run) }
}

/// An event that says `text`.
pub(super) fn event(text: &str) -> Record {
    Record { kind: 1, version: 1, key: Some(key("step")), at: at(7), meta: None, payload: Some(bytes(text)) }
}

pub(super) fn timer(text: &str) -> TimerRef {
    TimerRef { key: key(text), kind: TimerKind::Delay }
}

pub(super) fn letter(name: &str, as_id: &str, payload: &str) -> Signal {
    Signal { name: SignalName::new(name).unwrap(), id: id(as_id), payload: bytes(payload), aimed: None }
}

pub(super) fn signal(run: &RunKey, name: &str, as_id: &str, payload: &str) -> Delivery {
    Delivery::Signal { run: run.clone(), signal: letter(name, as_id, payload) }
}

/// A signal aimed at one operation.
pub(super) fn aimed(run: &RunKey, at_key: &str, name: &str, as_id: &str) -> Delivery {
    let signal = Signal { aimed: Some(key(at_key)), ..letter(name, as_id, "aimed") };
    Delivery::Signal { run: run.clone(), signal }
}

pub(super) fn decide(run: &RunKey, operation: &str, as_id: &str) -> Delivery {
    Delivery::Answer {
        run: run.clone(),
        key: key(operation),
        kind: WaitKind::Approval,
        id: id(as_id),
        token: None,
        meta: Some(bytes("{\"by\":\"ann\"}")),
        payload: Some(bytes("yes")),
    }
}

pub(super) fn call_back(run: &RunKey, operation: &str, as_id: &str, token: Option<&str>) -> Delivery {
    Delivery::Answer {
        run: run.clone(),
        key: key(operation),
        kind: WaitKind::Callback,
        id: id(as_id),
        token: token.map(str::to_owned),
        meta: None,
        payload: Some(bytes("done")),
    }
}

pub(super) fn beat(run: &RunKey, operation: &str, token: Option<&str>) -> Delivery {
    Delivery::Heartbeat { run: run.clone(), key: key(operation), token: token.map(str::to_owned) }
}

pub(super) fn control(run: &RunKey, control: Control, as_id: &str) -> Delivery {
    Delivery::Control { run: run.clone(), control, id: id(as_id), meta: None, child_of: None }
}

/// The end of a child, as its last commit carries it.
pub(super) fn tell(parent: &RunKey, generation: u64, operation: &str, child: &str) -> Delivery {
    Delivery::Child {
        run: parent.clone(),
        generation: Generation(generation),
        key: key(operation),
        child: RunId::new(child).unwrap(),
        meta: None,
        payload: Some(bytes("output")),
    }
}

pub(super) fn finished(task: &ClaimedTask, result: &str) -> Delivery {
    outcome(task, TaskOutcome::Finished { result: bytes(result), log: None })
}

pub(super) fn outcome(task: &ClaimedTask, outcome: TaskOutcome) -> Delivery {
    Delivery::Task {
        namespace: task.namespace.clone(),
        task: task.id.clone(),
        token: task.token,
        outcome,
        receipt: None,
    }
}

pub(super) fn result_of(task: &str, token: u64, result: &str) -> Delivery {
    let outcome = TaskOutcome::Finished { result: bytes(result), log: None };
    Delivery::Task {
        namespace: namespace("default"),
        task: task_id(task),
        token: TaskToken(token),
        outcome,
        receipt: None,
    }
}

pub(super) fn new_task(text: &str, operation: Option<&str>) -> NewTask {
    NewTask {
        id: task_id(text),
        key: operation.map(key),
        name: TaskName::new("charge").unwrap(),
        queue: QueueName::new("work").unwrap(),
        priority: 0,
        args: bytes("[]"),
        available_at: None,
        meta: None,
    }
}

pub(super) fn new_wait(operation: &str, kind: WaitKind) -> NewWait {
    let key = key(operation);
    NewWait { key, kind, name: None, token: None, heartbeat: None, assignee: None, meta: None }
}

/// A run somebody holds, and where its journal stands: what a driver knows.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) run: RunKey,
    pub(super) fence: Fence,
    pub(super) next: Index,
    pub(super) generation: Generation,
}

impl Held {
    pub(super) fn of(claimed: &Claimed) -> Held {
        let Claimed { run, fence, next, generation, .. } = claimed.clone();
        Held { run, fence, next, generation }
    }

    /// A commit at the journal's end.
    pub(super) fn commit(&self) -> Commit {
        Commit::new(self.run.clone(), self.fence, self.next)
    }

    pub(super) fn release(&self, again: bool) -> Release {
        Release { run: self.run.clone(), fence: self.fence, again }
    }

    pub(super) fn take(&self, read: InboxId) -> Take {
        Take { run: self.run.clone(), fence: self.fence, read }
    }
}

/// Builds commits as a sentence.
pub(super) trait Turn: Sized {
    fn change(self, change: impl FnOnce(&mut Commit)) -> Self;

    fn event(self, text: &str) -> Self {
        self.change(|commit| commit.events.push(event(text)))
    }

    fn sleep(self, operation: &str, due: i64) -> Self {
        self.change(|commit| commit.timers.push(NewTimer { timer: timer(operation), due: at(due) }))
    }

    fn fires(self, operation: &str) -> Self {
        self.change(|commit| commit.timers_fired.push(timer(operation)))
    }

    fn unsleep(self, operation: &str) -> Self {
        self.change(|commit| commit.timers_cancelled.push(timer(operation)))
    }

    fn wait(self, wait: NewWait) -> Self {
        self.change(|commit| commit.waits.push(wait))
    }

    fn wait_signal(self, operation: &str, name: &str) -> Self {
        let name = Some(SignalName::new(name).unwrap());
        self.wait(NewWait { name, ..new_wait(operation, WaitKind::Signal) })
    }

    fn approval(self, operation: &str) -> Self {
        self.wait(new_wait(operation, WaitKind::Approval))
    }

    fn callback(self, operation: &str, token: &str) -> Self {
        self.wait(NewWait { token: Some(token.to_owned()), ..new_wait(operation, WaitKind::Callback) })
    }

    fn close(self, operation: &str, cause: CloseCause) -> Self {
        self.change(|commit| commit.waits_closed.push(ClosedWait { key: key(operation), cause }))
    }

    fn task(self, task: NewTask) -> Self {
        self.change(|commit| commit.tasks.push(task))
    }

    fn child(self, child: NewRun) -> Self {
        self.change(|commit| commit.children.push(child))
    }

    fn deliver(self, delivery: Delivery) -> Self {
        self.change(|commit| commit.deliveries.push(delivery))
    }

    fn consume(self, items: &[InboxId]) -> Self {
        self.change(|commit| commit.consumed.extend(items))
    }

    fn then(self, then: Then) -> Self {
        self.change(|commit| commit.then = then)
    }

    fn suspend(self) -> Self {
        self.then(Then::Suspend)
    }

    fn finish(self) -> Self {
        self.then(Then::Finish(Ending::Completed))
    }

    fn park(self, reason: &str) -> Self {
        self.then(Then::Park { reason: reason.to_owned() })
    }

    fn continue_as_new(self, input: &str) -> Self {
        self.then(Then::ContinueAsNew { input: bytes(input), version: None })
    }
}

impl Turn for Commit {
    fn change(mut self, change: impl FnOnce(&mut Commit)) -> Self {
        change(&mut self);
        self
    }
}

/// A fresh store with a clock at 0, and what the stories do with it. Its calls panic where the story could not go on.
pub(super) struct Scene<'a> {
    harness: &'a dyn Harness,
    fixture: &'a Fixture,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: ManualClock,
}

impl<'a> Scene<'a> {
    pub(super) fn new(harness: &'a dyn Harness, fixture: &'a Fixture) -> Self {
        Scene { harness, fixture, store: Arc::clone(&fixture.store), clock: fixture.clock.clone() }
    }

    /// The same data as another process has it.
    pub(super) async fn other(&self) -> Arc<dyn Store> {
        self.harness.second(self.fixture).await.unwrap_or_else(|| Arc::clone(&self.store))
    }

    pub(super) async fn raw(&self, write: RawWrite) -> Option<Result<(), String>> {
        self.harness.raw(self.fixture, write).await
    }

    /// Makes a call while somebody else holds the locks it needs, and moves the clock to `now` before they are let go.
    pub(super) async fn contended<T>(&self, run: &RunKey, now: i64, call: impl Future<Output = T>) -> T {
        let held = self.harness.hold(self.fixture, run.clone()).await;
        let meanwhile = async {
            match held {
                None => self.clock.set(now),
                Some(mut held) => {
                    held.blocked().await;
                    self.clock.set(now);
                    held.release().await;
                }
            }
        };
        // Where nothing can be held, time simply passes before the call.
        let (moved, answer) = futures_util::future::join(meanwhile, call).await;
        let () = moved;
        answer
    }

    /// Registers a node for `lease` milliseconds from now.
    pub(super) async fn node(&self, name: &str, lease: u64) -> LeaseId {
        self.store.register(NodeId::new(name).unwrap(), ms(lease)).await.unwrap().id
    }

    pub(super) async fn try_create(&self, new: NewRun) -> Result<Created, crate::StoreError> {
        self.store.create(vec![new]).await.remove(0)
    }

    pub(super) async fn create(&self, new: NewRun) -> Created {
        self.try_create(new).await.unwrap()
    }

    /// Creates a run nobody owns, ready to be claimed.
    pub(super) async fn start(&self, id: &str) -> RunKey {
        let run = run(id);
        self.create(new_run(&run)).await;
        run
    }

    /// Creates a run a node owns for an hour.
    pub(super) async fn own(&self, id: &str) -> Held {
        let lease = self.node(&format!("driver-of-{id}"), 3_600_000).await;
        self.own_under(lease, id).await
    }

    pub(super) async fn own_under(&self, lease: LeaseId, id: &str) -> Held {
        let run = run(id);
        let owner = Some(Owner { lease, claim: ClaimId(0) });
        match self.create(NewRun { owner, ..new_run(&run) }).await {
            Created::Created { fence, .. } => Held { run, fence, next: Index(0), generation: Generation(0) },
            Created::Existing { .. } | Created::Joined { .. } => panic!("{run} should be new"),
        }
    }

    /// A run that ended.
    pub(super) async fn ended(&self, id: &str) -> RunKey {
        let mut held = self.own(id).await;
        let commit = held.commit().event("end").finish();
        self.apply(&mut held, commit).await;
        held.run
    }

    pub(super) async fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        self.store.commit(vec![commit]).await.remove(0)
    }

    /// Applies a commit that must succeed.
    pub(super) async fn apply(&self, held: &mut Held, commit: Commit) -> Committed {
        let committed = self.commit(commit).await.unwrap();
        held.next = committed.next;
        committed
    }

    pub(super) async fn deliver(&self, delivery: Delivery) -> Delivered {
        self.store.deliver(vec![delivery]).await.remove(0).unwrap()
    }

    pub(super) async fn claim(&self, lease: LeaseId, id: u64, pick: Pick) -> Vec<Claimed> {
        let claim = Claim { lease, id: ClaimId(id), limit: 10, pick, serves: Serves::Everything };
        self.store.claim(claim).await.unwrap()
    }

    /// Claims up to ten ready runs; their ids.
    pub(super) async fn claim_ids(&self, lease: LeaseId, id: u64) -> Vec<String> {
        let claimed = self.claim(lease, id, Pick::Ready).await;
        claimed.iter().map(|claimed| claimed.run.id.to_string()).collect()
    }

    /// Claims a run by name, if it may be had.
    pub(super) async fn claim_run(&self, lease: LeaseId, id: u64, run: &RunKey) -> Option<Claimed> {
        self.claim(lease, id, Pick::Run(run.clone())).await.pop()
    }

    pub(super) async fn seize(&self, lease: LeaseId, id: u64, run: &RunKey) -> Option<Claimed> {
        self.claim(lease, id, Pick::Seize(run.clone())).await.pop()
    }

    /// A new node claims the run, which must be there to be had.
    pub(super) async fn reclaim(&self, run: &RunKey) -> Held {
        let lease = self.node("next-driver", 3_600_000).await;
        Held::of(&self.claim_run(lease, 1, run).await.expect("the run should be ready to be claimed"))
    }

    pub(super) async fn view(&self, run: &RunKey) -> RunView {
        self.store.get(run.clone()).await.unwrap()
    }

    pub(super) async fn load(&self, run: &RunKey) -> Loaded {
        let load = Load { run: run.clone(), from: LoadFrom::Index(Index(0)) };
        self.store.load(vec![load]).await.remove(0).unwrap()
    }

    /// Reads the inbox and takes the resume, as an owner does.
    pub(super) async fn take(&self, held: &Held) -> Vec<InboxItem> {
        let Loaded { inbox, inbox_next, .. } = self.load(&held.run).await;
        assert_eq!(self.store.take(vec![held.take(inbox_next)]).await, [Ok(true)]);
        inbox
    }

    pub(super) async fn inbox(&self, run: &RunKey) -> Vec<InboxItem> {
        self.load(run).await.inbox
    }

    /// The payloads in the inbox, as text.
    pub(super) async fn mail(&self, run: &RunKey) -> Vec<String> {
        let text = |item: &InboxItem| String::from_utf8_lossy(item.payload.as_deref().unwrap_or(b"-")).into_owned();
        self.inbox(run).await.iter().map(text).collect()
    }

    /// The payloads of the journal, as text.
    pub(super) async fn story(&self, run: &RunKey) -> Vec<String> {
        let text = |event: &Record| String::from_utf8_lossy(event.payload.as_deref().unwrap_or(b"-")).into_owned();
        self.load(run).await.events.iter().map(text).collect()
    }

    pub(super) async fn awaiting(&self, run: &RunKey) -> Vec<Awaited> {
        self.store.awaiting(run.clone()).await.unwrap()
    }

    pub(super) async fn sweep(&self) -> Swept {
        self.store.sweep(100).await.unwrap()
    }

    /// The tasks of a namespace.
    pub(super) async fn tasks(&self, name: &str) -> Vec<TaskView> {
        self.store.tasks(TaskFilter::all(namespace(name))).await.unwrap().tasks
    }

    /// Claims up to ten tasks of the queue `work` for 50 ms.
    pub(super) async fn work(&self, worker: &str, id: u64) -> Vec<ClaimedTask> {
        self.store.claim_tasks(claim_tasks(worker, id)).await.unwrap()
    }

    /// Claims the one task there is to be had.
    pub(super) async fn work_one(&self, worker: &str, id: u64) -> ClaimedTask {
        let mut tasks = self.work(worker, id).await;
        assert_eq!(tasks.len(), 1, "one task should be there to be claimed");
        tasks.remove(0)
    }
}

pub(super) fn claim_tasks(worker: &str, id: u64) -> ClaimTasks {
    ClaimTasks {
        worker: WorkerId::new(worker).unwrap(),
        id: ClaimId(id),
        namespace: None,
        queues: vec![QueueName::new("work").unwrap()],
        names: Vec::new(),
        lease: ms(50),
        limit: 10,
    }
}
