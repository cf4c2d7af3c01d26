//! From abstract operations to calls: fences, indices and tokens are remembered from earlier answers.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::commit::{
    Admission, Begin, Bound, CloseCause, ClosedWait, Commit, Control, Debounce, Delivery, Ending, Fair, Limit, NewRun,
    NewTask, NewTimer, NewWait, Owner, Parent, Rate, Signal, Single, Snapshot, StandaloneTask, Status, TaskOutcome,
    Then, TimerKind, TimerRef, WaitKind, Window,
};
use outlast_core::id::{
    ClaimId, Fence, Generation, InboxId, Index, LeaseId, LimitKey, Namespace, NodeId, Revision, RunKey, ScheduleId,
    TaskId, TaskToken, TxnId, WorkerId,
};
use outlast_store::{
    Claim, ClaimTasks, Created, DefinitionFilter, Excerpt, Filter, Fire, Lapse, Load, LoadFrom, Pick, Release,
    Retention, Schedule, Serves, Store, Take, TaskHeartbeat,
};

use crate::call::{Call, Reply};
use crate::names::*;
use crate::ops::{CommitSpec, Consume, DeliverySpec, FlowSpec, Op, Run, RunSpec, SignalSpec, Skew, TaskSpec, WaitSpec};
use crate::sights::Sights;

fn skewed(number: u64, skew: Skew) -> u64 {
    match skew {
        Skew::Right => number,
        Skew::Stale => number.saturating_sub(1),
        Skew::Future => number + 1,
    }
}

/// What a careful client would remember, and the model it may look into.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    pub(crate) clock: i64,
    pub(crate) leases: Vec<LeaseId>,
    /// The newest lease of each node.
    newest: BTreeMap<NodeId, LeaseId>,
    fences: BTreeMap<RunKey, Fence>,
    tokens: BTreeMap<(Namespace, TaskId), TaskToken>,
    events: usize,
}

impl Memo {
    /// Learns from the model's answer.
    pub(crate) fn learn(&mut self, call: &Call, reply: &Reply) {
        match (call, reply) {
            (Call::Clock(now), _) => self.clock = *now,
            (Call::Register(..), Reply::Lease(Ok(lease))) => {
                self.leases.push(lease.id);
                self.newest.insert(lease.node.clone(), lease.id);
            }
            (Call::Create(runs), Reply::Created(answers)) => {
                for (new, answer) in runs.iter().zip(answers) {
                    if let Ok(Created::Created { fence, .. }) = answer {
                        self.fences.insert(new.run.clone(), *fence);
                    }
                }
            }
            (Call::Claim(_), Reply::Claimed(Ok(claimed))) => {
                self.fences.extend(claimed.iter().map(|claimed| (claimed.run.clone(), claimed.fence)));
            }
            (Call::ClaimTasks(_), Reply::Tasks(Ok(tasks))) => {
                self.tokens.extend(tasks.iter().map(|task| ((task.namespace.clone(), task.id.clone()), task.token)));
            }
            _ => {}
        }
    }

    /// The newest lease of a node; or the oldest there is; or none that ever was.
    fn lease(&self, number: u8) -> LeaseId {
        let newest = || self.newest.values().nth(usize::from(number)).copied();
        match number {
            0 | 1 => newest().unwrap_or(LeaseId(98)),
            2 => self.leases.first().copied().unwrap_or(LeaseId(97)),
            _ => LeaseId(99),
        }
    }

    fn fence(&self, run: &RunKey, skew: Skew) -> Fence {
        // A child created with an owner is held under fence 1 without anybody having said so.
        Fence(skewed(self.fences.get(run).map_or(1, |fence| fence.0), skew))
    }

    /// A task and its token: mostly one that somebody claimed.
    fn token(&self, ns: u8, task: u8, skew: Skew) -> (Namespace, TaskId, TaskToken) {
        let asked = (namespace(ns), task_id(task));
        let claimed = self.tokens.iter().nth(usize::from(task) % self.tokens.len().max(1));
        let known = self.tokens.get_key_value(&asked).or(claimed.filter(|_| task < 3));
        let ((namespace, id), token) = known.map_or((asked, 0), |(names, token)| (names.clone(), token.0));
        (namespace, id, TaskToken(skewed(token, skew)))
    }

    /// The call an operation means now.
    pub(crate) async fn resolve(&mut self, model: &dyn Store, op: &Op) -> Call {
        match op.clone() {
            Op::Clock(by) => Call::Clock(self.clock + by),
            Op::Register { node, lease } => Call::Register(NodeId::new(format!("node-{node}")).unwrap(), ms(lease)),
            Op::Renew { lease, duration } => Call::Renew(self.lease(lease), ms(duration)),
            Op::Retire { lease } => Call::Retire(self.lease(lease)),
            Op::Create(runs) => Call::Create(runs.iter().map(|spec| self.new_run(spec)).collect()),
            Op::Claim { lease, id, limit, pick, serves } => Call::Claim(self.claim(lease, id, limit, pick, serves)),
            Op::Wakes { lease, limit } => Call::Wakes(self.lease(lease), limit),
            Op::Take(run, fence, read) => {
                let run = run_key(run);
                let load = Load { run: run.clone(), from: LoadFrom::Index(Index(0)) };
                let next = model.load(vec![load]).await.remove(0).map_or(0, |loaded| loaded.inbox_next.0);
                Call::Take(vec![Take { fence: self.fence(&run, fence), read: InboxId(skewed(next, read)), run }])
            }
            Op::Release(run, skew, again) => {
                let run = run_key(run);
                Call::Release(vec![Release { fence: self.fence(&run, skew), run, again }])
            }
            Op::Commit(specs) => Call::Commit(self.commits(model, &specs).await),
            Op::Resolve => Call::Resolve(TxnId(uuid::Uuid::from_u128(42))),
            Op::Unpark(run) => Call::Unpark(run_key(run)),
            Op::Announce(serves) => {
                Call::Announce(serves.iter().map(|(name, number)| (workflow(*name), version(*number))).collect())
            }
            Op::ParkUnserved { grace, limit } => Call::ParkUnserved(ms(grace), limit),
            Op::Deliver(specs) => {
                let sights = Sights::look(model).await;
                let deliveries = specs.iter().map(|spec| sights.steer(self.delivery(spec)));
                Call::Deliver(deliveries.collect())
            }
            Op::PutSchedule { ns, id, right, next } => {
                let revision = revision(model, &namespace(ns), &schedule_id(id)).await;
                Call::PutSchedule(Schedule {
                    namespace: namespace(ns),
                    id: schedule_id(id),
                    revision: if right { revision } else { Revision(revision.0 / 2) },
                    spec: bytes(id),
                    state: bytes(id + 1),
                    next_at: next.map(|delay| at(self.clock, delay)),
                })
            }
            Op::Due { limit, after } => {
                let due = model.due_schedules(None, usize::from(after)).await.unwrap().schedules;
                Call::Due(due.last().and_then(Schedule::cursor), limit)
            }
            Op::Fire { ns, id, right, next, run } => self.fire(model, ns, id, right, next, run).await,
            Op::Delete(run) => Call::Delete(run_key(run)),
            Op::Retain { age, limit } => Call::Retain(Retention { age: ms(age), limit }),
            other => self.resolve_plain(other),
        }
    }

    /// Operations that need no look into the model.
    fn resolve_plain(&self, op: Op) -> Call {
        match op {
            Op::Enqueue(tasks) => Call::Enqueue(tasks.iter().map(|(ns, spec)| self.standalone(*ns, spec)).collect()),
            Op::ClaimTasks { worker, id, only, queues, name, lease, limit } => {
                let queues = (0u8..2).filter(|queue| queues & (1 << queue) != 0).map(queue).collect();
                let worker = WorkerId::new(format!("worker-{worker}")).unwrap();
                let names = name.map(task_name).into_iter().collect();
                let namespace = only.map(namespace);
                Call::ClaimTasks(ClaimTasks {
                    worker,
                    id: ClaimId(id.into()),
                    namespace,
                    queues,
                    names,
                    lease: ms(lease),
                    limit,
                })
            }
            Op::Heartbeat { ns, task, token, lapse, progress } => {
                let (namespace, task, token) = self.token(ns, task, token);
                let progress = progress.map(bytes);
                let lapse = lapse.map(|timeout| if timeout { Lapse::Timeout } else { Lapse::Silence });
                Call::Heartbeat(TaskHeartbeat { namespace, task, token, lease: ms(50), lapse, progress })
            }
            Op::Task { ns, task, what } => {
                let (namespace, id, _) = self.token(ns, task, Skew::Right);
                match what {
                    0 => Call::Task(namespace, id),
                    1 | 2 => Call::RetryTask(namespace, id),
                    _ => Call::DiscardTask(namespace, id),
                }
            }
            Op::Tasks { ns, filter, limit } => Call::Tasks(task_filter(ns, filter, limit)),
            Op::Sweep { limit } => Call::Sweep(limit),
            Op::Admit { limit } => Call::Admit(limit),
            Op::Define(definitions) => Call::Define(definitions.into_iter().map(definition).collect()),
            Op::Definition { ns, workflow: of, version: which } => {
                Call::Definition(namespace(ns), workflow(of), which.map(version))
            }
            Op::Definitions { ns, workflow: of, after, limit } => Call::Definitions(DefinitionFilter {
                namespace: ns.map(namespace),
                workflow: of.map(workflow),
                after: Revision(after),
                limit,
            }),
            Op::ForgetDefinition { ns, workflow: of, version: which } => {
                Call::ForgetDefinition(namespace(ns), workflow(of), version(which))
            }
            Op::RemoveSchedule { ns, id } => Call::RemoveSchedule(namespace(ns), schedule_id(id)),
            Op::Schedules { ns, only } => Call::Schedules(namespace(ns), only.map(schedule_id)),
            Op::PutNamespace { ns } => Call::PutNamespace(namespace(ns)),
            Op::Load(loads) => Call::Load(loads.into_iter().map(|(run, from)| load(run, from)).collect()),
            Op::Get(run) => Call::Get(run_key(run)),
            Op::List { ns, filter, limit } => Call::List(list(ns, filter, limit)),
            Op::Count { ns } => Call::Count(namespace(ns)),
            Op::Awaiting(run) => Call::Awaiting(run_key(run)),
            Op::Excerpt { run, generation, from, limit } => Call::Excerpt(Excerpt {
                run: run_key(run),
                generation: generation.map(Generation),
                from: Index(from),
                limit,
            }),
            Op::Attributes(run) => Call::Attributes(run_key(run)),
            stateful => panic!("{stateful:?} is resolved elsewhere"),
        }
    }

    fn claim(&self, lease: u8, id: u8, limit: usize, pick: Option<(Run, bool)>, serves: Option<(u8, u8)>) -> Claim {
        let pick = match pick {
            None => Pick::Ready,
            Some((run, false)) => Pick::Run(run_key(run)),
            Some((run, true)) => Pick::Seize(run_key(run)),
        };
        let serves = match serves {
            None => Serves::Everything,
            Some((name, number)) => Serves::Only(vec![(workflow(name), version(number))]),
        };
        Claim { lease: self.lease(lease), id: ClaimId(u64::from(id)), limit, pick, serves }
    }

    fn new_run(&self, spec: &RunSpec) -> NewRun {
        let mut new = NewRun::new(run_key(spec.run), workflow(spec.workflow), version(spec.version), bytes(spec.input));
        new.priority = spec.priority;
        new.owner = spec.owner.map(|(lease, claim)| Owner { lease: self.lease(lease), claim: ClaimId(claim.into()) });
        new.parent = spec.parent.map(|(run, number, detached)| Parent {
            run: run_id(run),
            generation: Generation(0),
            key: key(number),
            detached,
        });
        new.attributes = spec.attribute.map(|value| (attribute(0), format!("v{value}"))).into_iter().collect();
        new.history = (0..spec.history).map(record).collect();
        // A fork: what is open in its journal comes along.
        if spec.history > 0 {
            let timer = TimerRef { key: key(0), kind: TimerKind::Delay };
            new.timers = vec![NewTimer { timer, due: at(self.clock, 20) }];
            new.waits = vec![NewWait {
                key: key(1),
                kind: wait_kind(spec.workflow),
                name: None,
                token: None,
                heartbeat: None,
                assignee: None,
                meta: None,
            }];
        }
        new.signals = spec.signals.iter().map(signal).collect();
        new.admission = spec.flow.map(|flow| Box::new(admission(flow)));
        new
    }

    fn standalone(&self, ns: u8, spec: &TaskSpec) -> StandaloneTask {
        StandaloneTask { namespace: namespace(ns), task: self.new_task(spec) }
    }

    fn new_task(&self, spec: &TaskSpec) -> NewTask {
        NewTask {
            id: task_id(spec.id),
            key: spec.key.map(key),
            name: task_name(spec.name),
            queue: queue(spec.queue),
            priority: spec.priority,
            args: bytes(spec.args),
            available_at: spec.available.map(|delay| at(self.clock, delay)),
            meta: (spec.args == 1).then(|| bytes(1)),
        }
    }

    fn delivery(&self, spec: &DeliverySpec) -> Delivery {
        let secret = |token: &Option<u8>| token.map(|token| format!("secret-{token}"));
        match spec {
            DeliverySpec::Signal(run, spec) => Delivery::Signal { run: run_key(*run), signal: signal(spec) },
            DeliverySpec::Answer { run, key: number, kind, id, token } => Delivery::Answer {
                run: run_key(*run),
                key: key(*number),
                kind: wait_kind(*kind),
                id: delivery_id(*id),
                token: secret(token),
                meta: None,
                payload: Some(bytes(*kind)),
            },
            DeliverySpec::Heartbeat { run, key: number, token } => {
                Delivery::Heartbeat { run: run_key(*run), key: key(*number), token: secret(token) }
            }
            DeliverySpec::Child { run, generation, key: number, child } => Delivery::Child {
                run: run_key(*run),
                generation: Generation(*generation),
                key: key(*number),
                child: run_id(*child),
                meta: Some(bytes(1)),
                payload: None,
            },
            DeliverySpec::Control { run, control, id } => {
                let control = [Control::Cancel, Control::Pause, Control::Resume][usize::from(*control)];
                Delivery::Control { run: run_key(*run), control, id: delivery_id(*id), meta: None, child_of: None }
            }
            DeliverySpec::Task { ns, task, token, outcome, at: delay } => {
                let outcome = match outcome {
                    0 => TaskOutcome::Finished { result: bytes(2), log: Some(bytes(1)) },
                    1 => TaskOutcome::Failed { error: bytes(1) },
                    2 => TaskOutcome::GivenBack,
                    _ => TaskOutcome::Retry { at: at(self.clock, *delay), error: bytes(0) },
                };
                let (namespace, task, token) = self.token(*ns, *task, *token);
                Delivery::Task { namespace, task, token, outcome, receipt: None }
            }
        }
    }

    async fn fire(
        &self,
        model: &dyn Store,
        ns: u8,
        id: u8,
        right: bool,
        next: Option<i64>,
        run: Option<RunSpec>,
    ) -> Call {
        let due = model.due_schedules(None, 1).await.unwrap().schedules.pop().filter(|_| right);
        let (namespace, id, revision, instant) = match due {
            Some(due) => (due.namespace, due.id, due.revision, due.next_at),
            // Not due, or not there, or without an instant.
            None => {
                let (namespace, id) = (namespace(ns), schedule_id(id));
                let revision = revision(model, &namespace, &id).await;
                (namespace, id, revision, next.map(|delay| at(self.clock, delay)))
            }
        };
        Call::Fire(Box::new(Fire {
            namespace,
            id,
            revision,
            at: instant,
            state: bytes(ns),
            next_at: next.map(|delay| at(self.clock, delay)),
            run: run.map(|spec| self.new_run(&spec)),
        }))
    }

    async fn commits(&mut self, model: &dyn Store, specs: &[CommitSpec]) -> Vec<Commit> {
        let mut commits: Vec<Commit> = Vec::new();
        let sights = Sights::look(model).await;
        for spec in specs {
            let run = sights.owned(run_key(spec.run));
            let earlier: usize =
                commits.iter().filter(|commit| commit.run == run).map(|commit| commit.events.len()).sum();
            let next = model.get(run.clone()).await.map_or(0, |view| view.next.0) + earlier as u64;
            let load = Load { run: run.clone(), from: LoadFrom::Index(Index(0)) };
            let inbox = model.load(vec![load]).await.remove(0).map_or_else(|_| Vec::new(), |loaded| loaded.inbox);
            let inbox: Vec<InboxId> = inbox.iter().map(|item| item.id).collect();
            let mut commit = Commit::new(run.clone(), self.fence(&run, spec.fence), Index(skewed(next, spec.index)));
            commit.consumed = match spec.consume {
                Consume::Nothing => Vec::new(),
                Consume::First => inbox.into_iter().take(1).collect(),
                Consume::All => inbox,
                Consume::Unknown => vec![InboxId(77)],
            };
            self.fill(&mut commit, spec);
            sights.steer_commit(&mut commit);
            commits.push(commit);
        }
        commits
    }

    fn fill(&mut self, commit: &mut Commit, spec: &CommitSpec) {
        commit.events = (0..spec.events).map(|number| record(self.events + number)).collect();
        self.events += spec.events;
        commit.timers = spec
            .timer
            .iter()
            .map(|(number, kind, delay)| NewTimer { timer: timer(*number, *kind), due: at(self.clock, *delay) })
            .collect();
        commit.timers_cancelled = spec.cancelled.iter().map(|(number, kind)| timer(*number, *kind)).collect();
        commit.timers_fired = spec.fired.iter().map(|(number, kind)| timer(*number, *kind)).collect();
        commit.waits = spec.waits.iter().map(new_wait).collect();
        let causes = [CloseCause::Resolved, CloseCause::TimedOut, CloseCause::Cancelled];
        commit.waits_closed = spec
            .closed
            .iter()
            .map(|(number, cause)| ClosedWait { key: key(*number), cause: causes[usize::from(*cause)] })
            .collect();
        commit.tasks = spec.task.iter().map(|task| self.new_task(task)).collect();
        commit.tasks_cancelled = spec.task_cancelled.iter().map(|number| key(*number)).collect();
        commit.children = spec.child.iter().map(|child| self.child(&commit.run, child)).collect();
        commit.deliveries = spec.delivery.iter().map(|delivery| self.delivery(delivery)).collect();
        commit.attributes = spec
            .attribute
            .iter()
            .map(|(name, value)| (attribute(*name), value.map(|value| format!("v{value}"))))
            .collect();
        commit.snapshot = spec.snapshot.map(|definition| Snapshot {
            index: commit.expected,
            definition: DEFINITIONS[usize::from(definition)].to_owned(),
            data: bytes(definition),
        });
        commit.then = then(spec.then);
    }

    fn child(&self, parent: &RunKey, spec: &RunSpec) -> NewRun {
        let mut child = self.new_run(spec);
        // Mostly a child of its own parent, in its own namespace.
        if spec.input == 0 {
            child.run = RunKey::new(parent.namespace.clone(), child.run.id);
            let detached = spec.version == 1;
            let (run, generation) = (parent.id.clone(), Generation(0));
            child.parent = Some(Parent { run, generation, key: key(spec.workflow), detached });
        }
        child
    }
}

fn then(number: u8) -> Then {
    match number {
        0..=8 => Then::Continue,
        9..=12 => Then::Suspend,
        13 => Then::Pause,
        14 => Then::Park { reason: "because".to_owned() },
        15 => Then::Finish(Ending::Completed),
        16 => Then::Finish(Ending::Cancelled),
        _ => Then::ContinueAsNew { input: bytes(1), version: Some(version(1)) },
    }
}

fn new_wait(spec: &WaitSpec) -> NewWait {
    let kind = wait_kind(spec.kind);
    NewWait {
        key: key(spec.key),
        kind,
        name: (kind == WaitKind::Signal).then(|| signal_name(spec.name)),
        token: spec.token.filter(|_| kind == WaitKind::Callback).map(|token| format!("secret-{token}")),
        heartbeat: spec.heartbeat.filter(|_| kind == WaitKind::Callback).map(ms),
        assignee: (kind == WaitKind::Approval).then(|| "ann".to_owned()),
        meta: spec.heartbeat.map(|_| bytes(1)),
    }
}

fn signal(spec: &SignalSpec) -> Signal {
    Signal {
        name: signal_name(spec.name),
        id: delivery_id(spec.id),
        payload: bytes(spec.payload),
        aimed: spec.aimed.map(key),
    }
}

fn load(run: Run, from: Option<u64>) -> Load {
    let from = match from {
        Some(index) => LoadFrom::Index(Index(index)),
        None => LoadFrom::Snapshot { definition: DEFINITIONS[0].to_owned() },
    };
    Load { run: run_key(run), from }
}

fn list(ns: u8, filter: u8, limit: usize) -> Filter {
    let mut list = Filter { limit, ..Filter::all(namespace(ns)) };
    match filter {
        0 => list.status = vec![Status::Waiting, Status::Completed, Status::Cancelled],
        1 => list.workflow = Some(workflow(0)),
        2 => list.version = Some(version(1)),
        3 => list.id_prefix = Some("b".to_owned()),
        4 => list.parent = Some(run_id(0)),
        5 => list.attribute = Some((attribute(0), "v0".to_owned())),
        6 => (list.created_from, list.created_until) = (Some(at(0, 1)), Some(at(0, 1000))),
        _ => {}
    }
    list
}

/// The revision of a schedule; 0 if it is not there.
async fn revision(model: &dyn Store, namespace: &Namespace, id: &ScheduleId) -> Revision {
    let found = model.schedules(namespace.clone(), Some(id.clone())).await.unwrap().pop();
    found.map_or(Revision(0), |found| found.revision)
}

/// A few keys, so that they collide; some of it makes no sense, and is refused.
fn admission(spec: FlowSpec) -> Admission {
    let key = |name: &str, number: u8| LimitKey::new(format!("{name}-{number}")).unwrap();
    let concurrency = |number| Limit { key: key("k", number), bound: Bound::Concurrency { max: spec.max } };
    let rate = Limit { key: key("k", 0), bound: Bound::Rate(Rate::new(spec.max.max(1), Duration::from_millis(40))) };
    let all = [concurrency(0), concurrency(1), rate];
    let picked = all.into_iter().enumerate().filter(|(at, _)| spec.limits & (1 << at) != 0);
    let mut admission = Admission {
        begin: spec.delay.map_or(Begin::Now, |delay| Begin::After(Duration::from_millis(delay))),
        limits: picked.map(|(_, limit)| limit).collect(),
        fair: spec.fair.map(|(number, weight)| Fair { key: key("f", number), weight }),
        ..Admission::default()
    };
    let (wait, at_most) = (Duration::from_millis(20), Duration::from_millis(50));
    match spec.start_key {
        None => {}
        Some((0, number)) => admission.window = Some(Window { key: key("s", number), window: at_most }),
        Some((kind @ 1..=2, number)) => {
            admission.single = Some(Single { key: key("s", number), replace: kind == 2, meta: None });
        }
        Some((_, number)) => {
            admission.begin = Begin::Now;
            admission.debounce = Some(Debounce { key: key("s", number), wait, at_most });
        }
    }
    admission.fair = admission.fair.filter(|_| !admission.limits.is_empty());
    admission
}
