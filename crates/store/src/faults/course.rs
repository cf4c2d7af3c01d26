//! The course of one call: when it reaches the store, whether it does, and what its caller hears.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_core::id::TxnId;
use tokio::sync::oneshot;

use super::answer::Answer;
use super::hold::Moment;
use super::{Fault, FaultStore, Latency, State, lock};
use crate::{BoxFuture, CommitError, Resolution, Store, StoreError, Trouble};

/// What happens to a call.
pub(super) struct Course {
    number: u64,
    before: Duration,
    /// Whether it reaches the store.
    arrives: bool,
    after: Duration,
    reply: Reply,
}

/// What a caller hears.
enum Reply {
    /// What the store says.
    True,
    /// That it was not applied.
    Refused(StoreError),
    /// That nobody knows.
    Doubt,
    /// The same, and it arrives only later, if it does.
    InFlight,
    /// Nothing any more.
    Crash,
}

/// Calls that change nothing, and so pass when there is no space.
pub(super) const READS: [&str; 23] = [
    "leases",
    "workers",
    "definition",
    "definitions",
    "resumes",
    "wakes",
    "load",
    "resolve",
    "task",
    "tasks",
    "outlook",
    "depths",
    "schedules",
    "due_schedules",
    "namespaces",
    "secret",
    "get",
    "list",
    "count",
    "held",
    "awaiting",
    "excerpt",
    "attributes",
];

/// A call that has reached the store and is not answered.
struct UnderWay(Arc<Mutex<State>>);

impl UnderWay {
    fn new(state: &Arc<Mutex<State>>) -> UnderWay {
        lock(state).under_way += 1;
        UnderWay(Arc::clone(state))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.0).under_way -= 1;
    }
}

impl FaultStore {
    /// Lets a call take its course.
    pub(super) fn pass<'a, T, C>(&'a self, name: &'static str, items: usize, call: C) -> BoxFuture<'a, T>
    where
        T: Answer + Send + 'static,
        C: FnOnce(Arc<dyn Store>) -> BoxFuture<'static, T> + Send + 'static,
    {
        Box::pin(async move {
            let course = self.begin(name);
            let refusal = self.refusal(name).and_then(|error| T::turned_down(&error, items));
            self.held(name, Moment::Before).await;
            if let Some(refused) = refusal {
                return refused;
            }
            if matches!(course.reply, Reply::InFlight) {
                return self.set_off(&course, items, call);
            }
            let truth = if course.arrives {
                self.send(course.before, call).await
            } else {
                self.sleep(course.before).await;
                None
            };
            self.sleep(course.after).await;
            self.held(name, Moment::After).await;
            self.answer(&course, items, truth)
        })
    }

    /// Counts a call and says what happens to it.
    pub(super) fn begin(&self, name: &'static str) -> Course {
        let mut state = self.state();
        let number = state.log.len() as u64;
        state.log.push(name);
        if let Some(error) = state.refuse(name) {
            return Course { arrives: false, reply: Reply::Refused(error), ..Course::plain(number) };
        }
        if let Some(fault) = state.land(number, name) {
            return Course::with(number, fault);
        }
        let Some(latency) = state.latency else { return Course::plain(number) };
        state.count("latency");
        let (before, after) = latency.draw(number);
        Course { before, after, ..Course::plain(number) }
    }

    /// Sends a call, which arrives after some time, whatever becomes of its sender; what the store answered.
    async fn send<T, C>(&self, before: Duration, call: C) -> Option<T>
    where
        T: Send + 'static,
        C: FnOnce(Arc<dyn Store>) -> BoxFuture<'static, T> + Send + 'static,
    {
        let (store, state) = (Arc::clone(&self.inner), Arc::clone(&self.state));
        let Some(timer) = self.timer.as_ref().filter(|_| !before.is_zero()) else {
            let _under_way = UnderWay::new(&state);
            return Some(call(store).await);
        };
        let (reply, answer) = oneshot::channel();
        let way = timer.sleep(before);
        timer.spawn(Box::pin(async move {
            way.await;
            let _under_way = UnderWay::new(&state);
            let _ = reply.send(call(store).await);
        }));
        // Nobody answers only if there is no time any more.
        answer.await.ok()
    }

    /// Sends a call that nobody waits for: it arrives later, unless somebody asks before what became of it.
    fn set_off<T, C>(&self, course: &Course, items: usize, call: C) -> T
    where
        T: Answer + Send + 'static,
        C: FnOnce(Arc<dyn Store>) -> BoxFuture<'static, T> + Send + 'static,
    {
        let (store, state, number) = (Arc::clone(&self.inner), Arc::clone(&self.state), course.number);
        let txns: Vec<TxnId> = (0..items).map(|item| txn(number, item)).collect();
        lock(&self.state).in_flight.extend(txns.iter().copied());
        if let Some(timer) = &self.timer {
            let way = timer.sleep(course.before);
            timer.spawn(Box::pin(async move {
                way.await;
                // One that was forbidden takes its neighbours along: they were one transaction.
                let goes = {
                    let mut state = lock(&state);
                    let goes = txns.iter().all(|txn| state.in_flight.contains(txn));
                    state.in_flight.retain(|txn| !goes || !txns.contains(txn));
                    goes
                };
                if goes {
                    let under_way = UnderWay::new(&state);
                    let truth = call(store).await;
                    drop(under_way);
                    let mut keep = |item: usize, resolution| {
                        lock(&state).doubts.insert(txn(number, item), resolution);
                        CommitError::Unknown(txn(number, item))
                    };
                    drop(T::in_doubt(&injected(number), items, Some(truth), &mut keep));
                }
            }));
        }
        let mut doubt = |item: usize, _| CommitError::Unknown(txn(number, item));
        T::in_doubt(&injected(number), items, None, &mut doubt)
    }

    /// What became of a commit whose sender was left in doubt, if that is known here. One that has not arrived never will.
    pub(super) fn resolution(&self, txn: TxnId) -> Option<Resolution> {
        let mut state = self.state();
        if state.in_flight.remove(&txn) {
            state.count("forbidden");
            state.doubts.insert(txn, Resolution::NotApplied);
        }
        state.doubts.get(&txn).copied()
    }

    async fn sleep(&self, duration: Duration) {
        if let Some(timer) = self.timer.as_ref().filter(|_| !duration.is_zero()) {
            timer.sleep(duration).await;
        }
    }

    /// What the caller hears in the end.
    pub(super) fn answer<T: Answer>(&self, course: &Course, items: usize, truth: Option<T>) -> T {
        let mut doubt = |item: usize, resolution| self.doubt(course.number, item, resolution);
        match &course.reply {
            // Somebody else's call may have been the last one meanwhile.
            Reply::True => truth.filter(|_| !self.has_crashed()).unwrap_or_else(|| T::failed(&dead(), items)),
            Reply::Refused(error) => T::failed(error, items),
            Reply::Doubt | Reply::InFlight => T::in_doubt(&injected(course.number), items, truth, &mut doubt),
            Reply::Crash => {
                self.crash();
                T::in_doubt(&dead(), items, truth, &mut doubt)
            }
        }
    }

    /// Leaves a sender in doubt, and keeps the truth for [`Store::resolve`].
    fn doubt(&self, call: u64, item: usize, resolution: Resolution) -> CommitError {
        let txn = txn(call, item);
        self.state().doubts.insert(txn, resolution);
        CommitError::Unknown(txn)
    }
}

impl State {
    /// Why a call cannot reach the store at all.
    fn refuse(&mut self, name: &str) -> Option<StoreError> {
        if self.crashed {
            return Some(dead());
        }
        if self.cut {
            self.count("cut");
            return Some(StoreError::unavailable(Trouble::Connection, "the store was cut off"));
        }
        if self.full && !READS.contains(&name) {
            self.count("full");
            return Some(StoreError::unavailable(Trouble::DiskFull, "the disk was made to be full"));
        }
        None
    }

    /// The fault that was planned for a call; it happens now.
    fn land(&mut self, call: u64, name: &'static str) -> Option<Fault> {
        let fault = self.planned(call, name)?;
        self.landed += 1;
        *self.landed_by_call.entry(name).or_default() += 1;
        self.count(fault.kind());
        if let Some(watcher) = self.watcher.take() {
            watcher.wake();
        }
        Some(fault)
    }
}

impl Course {
    /// Nothing happens to the call.
    fn plain(number: u64) -> Course {
        Course { number, before: Duration::ZERO, arrives: true, after: Duration::ZERO, reply: Reply::True }
    }

    fn with(number: u64, fault: Fault) -> Course {
        let plain = Course::plain(number);
        match fault {
            Fault::NotApplied { in_doubt: false } => {
                Course { arrives: false, reply: Reply::Refused(injected(number)), ..plain }
            }
            Fault::NotApplied { in_doubt: true } => Course { arrives: false, reply: Reply::Doubt, ..plain },
            Fault::AppliedThenError => Course { reply: Reply::Doubt, ..plain },
            Fault::AppliedThenCrash => Course { reply: Reply::Crash, ..plain },
            Fault::NotAppliedThenCrash => Course { arrives: false, reply: Reply::Crash, ..plain },
            Fault::Late { before, after } => Course { before, after, ..plain },
            Fault::InFlight { before } => Course { before, reply: Reply::InFlight, ..plain },
            Fault::Hang { long, applied } => Course { arrives: applied, after: long, reply: Reply::Doubt, ..plain },
        }
    }
}

impl Latency {
    /// How long a call and its answer are on their way.
    fn draw(self, call: u64) -> (Duration, Duration) {
        // SplitMix64.
        let mut z = self.seed.wrapping_add(call.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let half = u64::try_from(self.max.as_micros() / 2).unwrap_or(u64::MAX >> 1);
        let part = |draw: u64| Duration::from_micros((draw & 0xFFFF_FFFF) % (half + 1));
        (part(z), part(z >> 32))
    }
}

/// The name under which somebody asks what became of a commit.
fn txn(call: u64, item: usize) -> TxnId {
    TxnId(uuid::Uuid::from_u64_pair(call, item as u64))
}

fn injected(call: u64) -> StoreError {
    StoreError::unavailable(Trouble::Connection, format!("call {call} was made to fail"))
}

fn dead() -> StoreError {
    StoreError::unavailable(Trouble::Closed, "the process was made to crash")
}
