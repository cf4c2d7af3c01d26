//! One thread, one queue, and time that moves only when nothing else can.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use outlast_core::time::Timestamp;
use outlast_store::ManualClock;
use outlast_store::faults::Timer;
use tokio::runtime::Handle;

use super::own::Own;
use crate::host::{Host, LocalFuture, MakeDriver, SendFuture};

/// A task's number. The future of `block_on` is 0.
pub(super) type TaskNo = u64;

/// What all hosts of one world share. Wakers reach it from any thread.
pub(super) struct Core {
    state: Mutex<State>,
    something: Condvar,
    clock: ManualClock,
    /// Where the clock stood at the beginning, in milliseconds.
    begin: i64,
    random: AtomicU64,
    runtime: Mutex<Option<Handle>>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<TaskNo>,
    /// Tasks to begin, with the process they belong to.
    incoming: Vec<(Arc<Own>, Birth)>,
    /// Who sleeps until when, by the world's clock, and of which process.
    sleepers: BTreeMap<(Duration, u64), (u64, Waker)>,
    last_sleeper: u64,
    elapsed: Duration,
    /// How far the store's clock has jumped, in milliseconds.
    jumped: i64,
    /// The chance with which the next task is chosen; without it, who is ready first goes on first.
    order: Option<u64>,
    /// A hash of everything that was decided so far.
    trace: u64,
}

/// How a task begins.
pub(super) enum Birth {
    Future(SendFuture),
    Driver(MakeDriver),
}

impl Birth {
    pub(super) fn future(self) -> LocalFuture {
        match self {
            Birth::Future(future) => future,
            Birth::Driver(make) => make(),
        }
    }
}

impl Core {
    pub(super) fn new(begin: i64, seed: u64) -> Arc<Core> {
        Arc::new(Core {
            state: Mutex::default(),
            something: Condvar::new(),
            clock: ManualClock::at(begin),
            begin,
            random: AtomicU64::new(seed),
            runtime: Mutex::new(None),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    pub(super) fn set_runtime(&self, runtime: Handle) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
    }

    pub(super) fn runtime(&self) -> Option<Handle> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn has_runtime(&self) -> bool {
        self.runtime().is_some()
    }

    pub(super) fn wake(&self, task: TaskNo) {
        let mut state = self.state();
        if state.order.is_some() {
            // By number: the order in which a channel wakes those who listen may come from outside of the world.
            if let Err(place) = state.ready.binary_search(&task) {
                state.ready.insert(place, task);
            }
        } else if !state.ready.contains(&task) {
            state.ready.push_back(task);
        }
        self.something.notify_all();
    }

    /// Takes the task that goes on next.
    pub(super) fn next_ready(&self) -> Option<TaskNo> {
        let mut state = self.state();
        let ready = state.ready.len() as u64;
        let place = match &mut state.order {
            Some(order) if ready > 1 => usize::try_from(next(order) % ready).unwrap_or(0),
            Some(_) | None => 0,
        };
        state.ready.remove(place)
    }

    /// From now on, who goes on next is a matter of chance.
    pub(super) fn shuffle(&self, seed: u64) {
        let mut state = self.state();
        state.ready.make_contiguous().sort_unstable();
        state.order = Some(seed);
    }

    /// Notes that a task goes on now.
    pub(super) fn note(&self, task: TaskNo) {
        let mut state = self.state();
        let nanos = u64::try_from(state.elapsed.as_nanos()).unwrap_or(u64::MAX);
        let decided = mix(state.trace.wrapping_add(GAMMA) ^ task);
        state.trace = mix(decided.wrapping_add(nanos));
    }

    pub(super) fn trace(&self) -> u64 {
        self.state().trace
    }

    /// Runs a task beside everything else.
    pub(super) fn begin(&self, own: &Arc<Own>, birth: Birth) {
        self.state().incoming.push((Arc::clone(own), birth));
        self.something.notify_all();
    }

    pub(super) fn take_incoming(&self) -> Vec<(Arc<Own>, Birth)> {
        std::mem::take(&mut self.state().incoming)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.state().elapsed
    }

    pub(super) fn sleep_until(self: &Arc<Self>, own: &Arc<Own>, until: Duration) -> Sleep {
        Sleep { core: Arc::clone(self), own: Arc::clone(own), until, place: None }
    }

    /// A process's clock runs at another rate: whoever sleeps by it looks at it again.
    pub(super) fn drift(&self, own: &Own, per_mille: i32) {
        let mut state = self.state();
        own.drift(per_mille, state.elapsed);
        let woken: Vec<Waker> =
            state.sleepers.extract_if(.., |_, (of, _)| *of == own.number).map(|(_, (_, waker))| waker).collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The store's clock jumps.
    pub(super) fn jump(&self, millis: i64) {
        let mut state = self.state();
        state.jumped = state.jumped.saturating_add(millis);
        self.set_clock(&state);
    }

    fn set_clock(&self, state: &State) {
        let millis = i64::try_from(state.elapsed.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        self.clock.set(self.begin.saturating_add(millis).saturating_add(state.jumped));
    }

    /// Waits, in real time, for a wake from another thread; whether one came.
    pub(super) fn wait(&self, at_most: Duration) -> bool {
        let state = self.state();
        if !state.ready.is_empty() {
            return true;
        }
        let (state, _) = self.something.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner);
        !state.ready.is_empty()
    }

    /// Moves time to the next instant somebody waits for; whether somebody does.
    pub(super) fn skip(&self) -> bool {
        let mut state = self.state();
        let Some((&(until, _), _)) = state.sleepers.first_key_value() else { return false };
        state.elapsed = state.elapsed.max(until);
        self.set_clock(&state);
        let after = (state.elapsed + Duration::from_nanos(1), 0);
        let later = state.sleepers.split_off(&after);
        let due = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        due.into_values().for_each(|(_, waker)| waker.wake());
        true
    }

    pub(super) fn waker(self: &Arc<Self>, task: TaskNo) -> Waker {
        Waker::from(Arc::new(TaskWaker { core: Arc::clone(self), task }))
    }

    /// The same numbers for the same seed.
    fn draw(&self) -> u64 {
        mix(self.random.fetch_add(GAMMA, Ordering::Relaxed))
    }
}

/// The step of SplitMix64.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The next number of SplitMix64.
pub(super) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
    mix(*state)
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

struct TaskWaker {
    core: Arc<Core>,
    task: TaskNo,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.core.wake(self.task);
    }
}

/// A world's host for one process: what it runs ends when the process does.
pub(super) struct WorldHost {
    pub(super) core: Arc<Core>,
    pub(super) own: Arc<Own>,
}

impl Host for WorldHost {
    fn elapsed(&self) -> Duration {
        self.own.elapsed(self.core.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.core.clock().now().as_millis().saturating_add(self.own.wall()))
    }

    fn sleep_until(&self, until: Duration) -> SendFuture {
        Box::pin(self.core.sleep_until(&self.own, until))
    }

    fn spawn(&self, future: SendFuture) {
        self.core.begin(&self.own, Birth::Future(future));
    }

    fn spawn_driver(&self, _name: String, make: MakeDriver) {
        self.core.begin(&self.own, Birth::Driver(make));
    }

    fn hears(&self) -> bool {
        self.own.hears()
    }

    fn may_block(&self) -> bool {
        self.own.may_block()
    }

    fn random(&self) -> u128 {
        (u128::from(self.core.draw()) << 64) | u128::from(self.core.draw())
    }

    fn runtime(&self) -> Option<Handle> {
        self.core.runtime()
    }
}

/// The time between a process and its store: the world's, whatever becomes of the process.
impl Timer for WorldHost {
    fn sleep(&self, duration: Duration) -> SendFuture {
        let until = Host::elapsed(self).saturating_add(duration);
        Host::sleep_until(self, until)
    }

    fn spawn(&self, future: SendFuture) {
        Host::spawn(self, future);
    }
}

pub(super) struct Sleep {
    core: Arc<Core>,
    own: Arc<Own>,
    /// By the clock of its process.
    until: Duration,
    /// Where it is among those who sleep.
    place: Option<(Duration, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let core = Arc::clone(&self.core);
        let mut state = core.state();
        if self.own.elapsed(state.elapsed) >= self.until {
            return Poll::Ready(());
        }
        // The clock it sleeps by may run at another rate than before.
        let until = self.own.world(self.until);
        let number = self.place.map_or_else(
            || {
                state.last_sleeper += 1;
                state.last_sleeper
            },
            |(_, number)| number,
        );
        let place = (until, number);
        if let Some(before) = self.place.replace(place).filter(|before| *before != place) {
            state.sleepers.remove(&before);
        }
        state.sleepers.insert(place, (self.own.number, context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.core.state().sleepers.remove(&place);
        }
    }
}

/// Waits, in real time, for what other threads do.
pub(super) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
