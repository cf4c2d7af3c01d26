//! What may be asked of a store: abstract operations over few names, so that collisions are frequent.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

/// A run: which namespace, which id.
pub(crate) type Run = (u8, u8);

/// How far a remembered number is off.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Skew {
    Right,
    Stale,
    Future,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Clock(i64),
    Register {
        node: u8,
        lease: u64,
    },
    Renew {
        lease: u8,
        duration: u64,
    },
    Retire {
        lease: u8,
    },
    Create(Vec<RunSpec>),
    Claim {
        lease: u8,
        id: u8,
        limit: usize,
        pick: Option<(Run, bool)>,
        serves: Option<(u8, u8)>,
    },
    Wakes {
        lease: u8,
        limit: usize,
    },
    /// Under which fence, and how far its inbox was read.
    Take(Run, Skew, Skew),
    Release(Run, Skew, bool),
    Load(Vec<(Run, Option<u64>)>),
    Commit(Vec<CommitSpec>),
    Resolve,
    Unpark(Run),
    /// Workflows and versions.
    Announce(Vec<(u8, u8)>),
    ParkUnserved {
        grace: u64,
        limit: usize,
    },
    Deliver(Vec<DeliverySpec>),
    Enqueue(Vec<(u8, TaskSpec)>),
    ClaimTasks {
        worker: u8,
        id: u8,
        only: Option<u8>,
        queues: u8,
        name: Option<u8>,
        lease: u64,
        limit: usize,
    },
    Heartbeat {
        ns: u8,
        task: u8,
        token: Skew,
        lapse: Option<bool>,
        progress: Option<u8>,
    },
    /// Asks for a task, queues it anew, or discards it.
    Task {
        ns: u8,
        task: u8,
        what: u8,
    },
    Tasks {
        ns: u8,
        filter: u8,
        limit: usize,
    },
    Sweep {
        limit: usize,
    },
    Admit {
        limit: usize,
    },
    /// Namespace, workflow, version, text: mostly the version's own.
    Define(Vec<(u8, u8, u8, u8)>),
    Definition {
        ns: u8,
        workflow: u8,
        version: Option<u8>,
    },
    Definitions {
        ns: Option<u8>,
        workflow: Option<u8>,
        after: u64,
        limit: usize,
    },
    ForgetDefinition {
        ns: u8,
        workflow: u8,
        version: u8,
    },
    PutSchedule {
        ns: u8,
        id: u8,
        right: bool,
        next: Option<i64>,
    },
    RemoveSchedule {
        ns: u8,
        id: u8,
    },
    Schedules {
        ns: u8,
        only: Option<u8>,
    },
    Due {
        limit: usize,
        after: u8,
    },
    Fire {
        ns: u8,
        id: u8,
        right: bool,
        next: Option<i64>,
        run: Option<RunSpec>,
    },
    PutNamespace {
        ns: u8,
    },
    Get(Run),
    List {
        ns: u8,
        filter: u8,
        limit: usize,
    },
    Count {
        ns: u8,
    },
    Awaiting(Run),
    Excerpt {
        run: Run,
        generation: Option<u64>,
        from: u64,
        limit: usize,
    },
    Attributes(Run),
    Delete(Run),
    Retain {
        age: u64,
        limit: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct RunSpec {
    pub(crate) run: Run,
    pub(crate) workflow: u8,
    pub(crate) version: u8,
    pub(crate) input: u8,
    pub(crate) priority: i16,
    pub(crate) owner: Option<(u8, u8)>,
    /// Run, key, detached.
    pub(crate) parent: Option<(u8, u8, bool)>,
    pub(crate) attribute: Option<u8>,
    pub(crate) history: usize,
    pub(crate) signals: Vec<SignalSpec>,
    pub(crate) flow: Option<FlowSpec>,
}

/// Flow control, in few numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSpec {
    /// Limits, by bits: two of concurrency, one rate.
    pub(crate) limits: u8,
    pub(crate) max: u32,
    pub(crate) fair: Option<(u8, u32)>,
    pub(crate) delay: Option<u64>,
    /// Window, singleton, singleton that replaces, debounce.
    pub(crate) start_key: Option<(u8, u8)>,
}

#[derive(Clone, Debug)]
pub(crate) struct SignalSpec {
    pub(crate) name: u8,
    pub(crate) id: u8,
    pub(crate) payload: u8,
    pub(crate) aimed: Option<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct TaskSpec {
    pub(crate) id: u8,
    pub(crate) key: Option<u8>,
    pub(crate) name: u8,
    pub(crate) queue: u8,
    pub(crate) priority: i16,
    pub(crate) args: u8,
    pub(crate) available: Option<i64>,
}

#[derive(Clone, Debug)]
pub(crate) enum DeliverySpec {
    Signal(Run, SignalSpec),
    Answer { run: Run, key: u8, kind: u8, id: u8, token: Option<u8> },
    Heartbeat { run: Run, key: u8, token: Option<u8> },
    Child { run: Run, generation: u64, key: u8, child: u8 },
    Control { run: Run, control: u8, id: u8 },
    Task { ns: u8, task: u8, token: Skew, outcome: u8, at: i64 },
}

#[derive(Clone, Debug)]
pub(crate) struct WaitSpec {
    pub(crate) key: u8,
    pub(crate) kind: u8,
    pub(crate) name: u8,
    pub(crate) token: Option<u8>,
    pub(crate) heartbeat: Option<u64>,
}

/// Which inbox items a commit consumes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Consume {
    Nothing,
    First,
    All,
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) struct CommitSpec {
    pub(crate) run: Run,
    pub(crate) fence: Skew,
    pub(crate) index: Skew,
    pub(crate) events: usize,
    /// Key, kind, due from now.
    pub(crate) timer: Option<(u8, u8, i64)>,
    pub(crate) cancelled: Option<(u8, u8)>,
    pub(crate) fired: Option<(u8, u8)>,
    pub(crate) waits: Vec<WaitSpec>,
    pub(crate) closed: Vec<(u8, u8)>,
    pub(crate) task: Option<TaskSpec>,
    pub(crate) task_cancelled: Option<u8>,
    pub(crate) child: Option<RunSpec>,
    pub(crate) delivery: Option<DeliverySpec>,
    pub(crate) consume: Consume,
    pub(crate) attribute: Option<(u8, Option<u8>)>,
    pub(crate) snapshot: Option<u8>,
    pub(crate) then: u8,
}

/// Mostly the default namespace.
fn ns() -> impl Strategy<Value = u8> {
    prop_oneof![16 => Just(0), 3 => Just(1), 1 => Just(2)]
}

fn run() -> impl Strategy<Value = Run> {
    (ns(), prop_oneof![3 => Just(0u8), 2 => Just(1), 1 => Just(2)])
}

fn skew() -> impl Strategy<Value = Skew> {
    prop_oneof![18 => Just(Skew::Right), 1 => Just(Skew::Stale), 1 => Just(Skew::Future)]
}

fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0usize), Just(1), Just(2), Just(10), Just(1000)]
}

fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![Just(-5i64), Just(0), Just(5), Just(10), Just(50), Just(1000)]
}

fn duration() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(5u64), 2 => Just(50), 6 => Just(100_000_000_000)]
}

fn signal() -> BoxedStrategy<SignalSpec> {
    (0u8..2, 0u8..8, 0u8..3, weighted(0.4, 0u8..3))
        .prop_map(|(name, id, payload, aimed)| SignalSpec { name, id, payload, aimed })
        .boxed()
}

fn flow() -> BoxedStrategy<FlowSpec> {
    let shares = weighted(0.3, (0u8..2, 1u32..3));
    let max = prop_oneof![1 => Just(0u32), 15 => 1u32..3];
    (0u8..8, max, shares, weighted(0.3, delay_millis()), weighted(0.8, (0u8..4, Just(0u8))))
        .prop_map(|(limits, max, fair, delay, start_key)| FlowSpec { limits, max, fair, delay, start_key })
        .boxed()
}

fn delay_millis() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), Just(10), Just(40)]
}

fn run_spec() -> BoxedStrategy<RunSpec> {
    let identity =
        (run(), prop_oneof![4 => Just(0u8), 1 => Just(1)], 0u8..2, prop_oneof![4 => Just(0u8), 1 => Just(1)]);
    let ownership = (-2i16..3, weighted(0.4, (0u8..3, 0u8..2)), weighted(0.15, (0u8..3, 0u8..2, any::<bool>())));
    let extras = (
        weighted(0.2, 0u8..2),
        prop_oneof![5 => Just(0usize), 1 => Just(2)],
        vec(signal(), 0..2),
        weighted(0.5, flow()),
    );
    (identity, ownership, extras)
        .prop_map(|(identity, ownership, extras)| {
            let (run, workflow, version, input) = identity;
            let (priority, owner, parent) = ownership;
            let (attribute, history, signals, flow) = extras;
            // Whoever is held back has no owner, mostly.
            let owner = owner.filter(|(lease, _)| flow.is_none() || *lease == 2);
            RunSpec { run, workflow, version, input, priority, owner, parent, attribute, history, signals, flow }
        })
        .boxed()
}

fn task() -> BoxedStrategy<TaskSpec> {
    (
        0u8..4,
        weighted(0.7, 0u8..3),
        0u8..2,
        0u8..2,
        -1i16..2,
        prop_oneof![3 => Just(0u8), 1 => Just(1)],
        weighted(0.3, delay()),
    )
        .prop_map(|(id, key, name, queue, priority, args, available)| TaskSpec {
            id,
            key,
            name,
            queue,
            priority,
            args,
            available,
        })
        .boxed()
}

fn delivery() -> BoxedStrategy<DeliverySpec> {
    let token = || weighted(0.7, prop_oneof![4 => Just(0u8), 1 => Just(1)]);
    prop_oneof![
        5 => (run(), signal()).prop_map(|(run, signal)| DeliverySpec::Signal(run, signal)),
        4 => (run(), 0u8..3, 0u8..3, 0u8..6, token())
            .prop_map(|(run, key, kind, id, token)| DeliverySpec::Answer { run, key, kind, id, token }),
        1 => (run(), 0u8..3, token()).prop_map(|(run, key, token)| DeliverySpec::Heartbeat { run, key, token }),
        1 => (run(), 0u64..2, 0u8..3, 0u8..3)
            .prop_map(|(run, generation, key, child)| DeliverySpec::Child { run, generation, key, child }),
        2 => (run(), 0u8..3, 0u8..6).prop_map(|(run, control, id)| DeliverySpec::Control { run, control, id }),
        4 => (ns(), 0u8..4, skew(), 0u8..4, delay())
            .prop_map(|(ns, task, token, outcome, at)| DeliverySpec::Task { ns, task, token, outcome, at }),
    ]
    .boxed()
}

fn wait() -> BoxedStrategy<WaitSpec> {
    (
        0u8..3,
        prop_oneof![2 => Just(0u8), 1 => Just(1), 1 => Just(2)],
        0u8..2,
        weighted(0.3, Just(0u8)),
        weighted(0.3, Just(50u64)),
    )
        .prop_map(|(key, kind, name, token, heartbeat)| WaitSpec { key, kind, name, token, heartbeat })
        .boxed()
}

fn commit() -> BoxedStrategy<CommitSpec> {
    let place = (run(), skew(), skew(), prop_oneof![1 => Just(0usize), 4 => Just(1), 1 => Just(3)]);
    let timers =
        (weighted(0.3, (0u8..3, 0u8..4, delay())), weighted(0.05, (0u8..3, 0u8..4)), weighted(0.2, (0u8..3, 0u8..4)));
    let waits = (vec(wait(), 0..2), prop_oneof![4 => Just(Vec::new()), 1 => vec((0u8..3, 0u8..3), 1..3)]);
    let work = (weighted(0.3, task()), weighted(0.1, 0u8..3), weighted(0.15, run_spec()), weighted(0.2, delivery()));
    let consume = prop_oneof![
        4 => Just(Consume::Nothing), 2 => Just(Consume::First), 3 => Just(Consume::All), 1 => Just(Consume::Unknown)
    ];
    let extras = (consume, weighted(0.1, (0u8..2, weighted(0.6, 0u8..2))), weighted(0.1, 0u8..2), 0u8..18);
    (place, timers, waits, work, extras)
        .prop_map(|(place, timers, waits, work, extras)| {
            let (run, fence, index, events) = place;
            let (timer, cancelled, fired) = timers;
            let (waits, closed) = waits;
            let (task, task_cancelled, child, delivery) = work;
            let (consume, attribute, snapshot, then) = extras;
            CommitSpec {
                run,
                fence,
                index,
                events,
                timer,
                cancelled,
                fired,
                waits,
                closed,
                task,
                task_cancelled,
                child,
                delivery,
                consume,
                attribute,
                snapshot,
                then,
            }
        })
        .boxed()
}

fn ownership() -> BoxedStrategy<Op> {
    prop_oneof![
        1 => (0u8..2, duration()).prop_map(|(node, lease)| Op::Register { node, lease }),
        1 => (0u8..4, duration()).prop_map(|(lease, duration)| Op::Renew { lease, duration }),
        1 => (0u8..4).prop_map(|lease| Op::Retire { lease }),
        8 => (0u8..4, 0u8..3, limit(), weighted(0.4, (run(), any::<bool>())), weighted(0.2, (0u8..2, 0u8..2)))
            .prop_map(|(lease, id, limit, pick, serves)| Op::Claim { lease, id, limit, pick, serves }),
        1 => (0u8..4, limit()).prop_map(|(lease, limit)| Op::Wakes { lease, limit }),
        1 => (run(), skew(), skew()).prop_map(|(run, fence, read)| Op::Take(run, fence, read)),
        1 => (run(), skew(), any::<bool>()).prop_map(|(run, fence, again)| Op::Release(run, fence, again)),
        1 => run().prop_map(Op::Unpark),
        1 => vec((0u8..2, 0u8..2), 0..3).prop_map(Op::Announce),
        1 => (prop_oneof![Just(0u64), Just(10), Just(60), Just(1000)], limit())
            .prop_map(|(grace, limit)| Op::ParkUnserved { grace, limit }),
    ]
    .boxed()
}

fn work() -> BoxedStrategy<Op> {
    prop_oneof![
        1 => vec((ns(), task()), 1..3).prop_map(Op::Enqueue),
        4 => (0u8..2, 0u8..3, weighted(0.2, ns()), 1u8..4, weighted(0.2, 0u8..2), duration(), limit())
            .prop_map(|(worker, id, only, queues, name, lease, limit)| Op::ClaimTasks { worker, id, only, queues, name, lease, limit }),
        1 => (ns(), 0u8..4, skew(), weighted(0.5, any::<bool>()), weighted(0.5, 0u8..2))
            .prop_map(|(ns, task, token, lapse, progress)| Op::Heartbeat { ns, task, token, lapse, progress }),
        5 => (ns(), 0u8..4, 0u8..4).prop_map(|(ns, task, what)| Op::Task { ns, task, what }),
        2 => limit().prop_map(|limit| Op::Sweep { limit }),
        3 => limit().prop_map(|limit| Op::Admit { limit }),
    ]
        .boxed()
}

fn schedules() -> BoxedStrategy<Op> {
    prop_oneof![
        4 => (ns(), 0u8..2, proptest::bool::weighted(0.9), weighted(0.8, delay()))
            .prop_map(|(ns, id, right, next)| Op::PutSchedule { ns, id, right, next }),
        1 => (ns(), 0u8..2).prop_map(|(ns, id)| Op::RemoveSchedule { ns, id }),
        1 => (ns(), weighted(0.5, 0u8..2)).prop_map(|(ns, only)| Op::Schedules { ns, only }),
        1 => (limit(), 0u8..3).prop_map(|(limit, after)| Op::Due { limit, after }),
        3 => (ns(), 0u8..2, any::<bool>(), weighted(0.8, delay()), weighted(0.7, run_spec()))
            .prop_map(|(ns, id, right, next, run)| Op::Fire { ns, id, right, next, run }),
    ]
    .boxed()
}

fn definitions() -> BoxedStrategy<Op> {
    let workflow = || prop_oneof![4 => Just(0u8), 1 => Just(1)];
    let definition = (ns(), workflow(), 0u8..3, prop_oneof![9 => Just(0u8), 1 => Just(1)]);
    prop_oneof![
        4 => vec(definition, 1..4).prop_map(Op::Define),
        1 => (ns(), workflow(), weighted(0.5, 0u8..3))
            .prop_map(|(ns, workflow, version)| Op::Definition { ns, workflow, version }),
        1 => (weighted(0.5, ns()), weighted(0.5, 0u8..2), 0u64..4, limit())
            .prop_map(|(ns, workflow, after, limit)| Op::Definitions { ns, workflow, after, limit }),
        3 => (ns(), workflow(), 0u8..3).prop_map(|(ns, workflow, version)| Op::ForgetDefinition { ns, workflow, version }),
    ]
    .boxed()
}

fn questions() -> BoxedStrategy<Op> {
    prop_oneof![
        vec((run(), weighted(0.6, 0u64..4)), 1..3).prop_map(Op::Load),
        (ns(), 0u8..16, limit()).prop_map(|(ns, filter, limit)| Op::Tasks { ns, filter, limit }),
        run().prop_map(Op::Get),
        (ns(), 0u8..8, limit()).prop_map(|(ns, filter, limit)| Op::List { ns, filter, limit }),
        ns().prop_map(|ns| Op::Count { ns }),
        run().prop_map(Op::Awaiting),
        (run(), weighted(0.5, 0u64..2), 0u64..3, limit()).prop_map(|(run, generation, from, limit)| Op::Excerpt {
            run,
            generation,
            from,
            limit
        }),
        run().prop_map(Op::Attributes),
        Just(Op::Resolve),
    ]
    .boxed()
}

fn endings() -> BoxedStrategy<Op> {
    prop_oneof![
        3 => run().prop_map(Op::Delete),
        1 => (prop_oneof![Just(0u64), Just(1000)], 1usize..5).prop_map(|(age, limit)| Op::Retain { age, limit }),
    ]
    .boxed()
}

fn clock() -> BoxedStrategy<Op> {
    // Never backwards: an ended lease may be forgotten or not, so a clock that steps back is a story of the contract.
    prop_oneof![
        4 => Just(1i64), 4 => Just(10), 4 => Just(50), 2 => Just(1000), 1 => Just(8 * 24 * 3_600_000)
    ]
    .prop_map(Op::Clock)
    .boxed()
}

/// Any operation.
pub(crate) fn op() -> BoxedStrategy<Op> {
    prop_oneof![
        12 => vec(commit(), 1..3).prop_map(Op::Commit),
        9 => ownership(),
        7 => vec(delivery(), 1..4).prop_map(Op::Deliver),
        5 => vec(run_spec(), 1..3).prop_map(Op::Create),
        5 => work(),
        3 => clock(),
        2 => questions(),
        2 => schedules(),
        2 => definitions(),
        1 => endings(),
        1 => (1u8..3).prop_map(|ns| Op::PutNamespace { ns }),
    ]
    .boxed()
}
