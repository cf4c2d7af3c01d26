//! One thread, one queue, and time that moves only when nothing else can.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use outlast_store::ManualClock;
use tokio::runtime::Handle;

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
    /// Tasks to begin, with the group they belong to.
    incoming: Vec<(u64, Birth)>,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    last_sleeper: u64,
    elapsed: Duration,
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

    pub(super) fn has_runtime(&self) -> bool {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn wake(&self, task: TaskNo) {
        let mut state = self.state();
        if !state.ready.contains(&task) {
            state.ready.push_back(task);
        }
        self.something.notify_all();
    }

    pub(super) fn next_ready(&self) -> Option<TaskNo> {
        self.state().ready.pop_front()
    }

    pub(super) fn take_incoming(&self) -> Vec<(u64, Birth)> {
        std::mem::take(&mut self.state().incoming)
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
        let millis = i64::try_from(state.elapsed.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        self.clock.set(self.begin.saturating_add(millis));
        let after = (state.elapsed + Duration::from_nanos(1), 0);
        let later = state.sleepers.split_off(&after);
        let due = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        due.into_values().for_each(Waker::wake);
        true
    }

    pub(super) fn waker(self: &Arc<Self>, task: TaskNo) -> Waker {
        Waker::from(Arc::new(TaskWaker { core: Arc::clone(self), task }))
    }

    /// SplitMix64: the same numbers for the same seed.
    fn draw(&self) -> u64 {
        let mut z = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
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

/// A world's host for one engine: its tasks form a group, which can be killed.
pub(super) struct WorldHost {
    pub(super) core: Arc<Core>,
    pub(super) group: u64,
}

impl Host for WorldHost {
    fn elapsed(&self) -> Duration {
        self.core.state().elapsed
    }

    fn sleep_until(&self, until: Duration) -> SendFuture {
        Box::pin(Sleep { core: Arc::clone(&self.core), until, place: None })
    }

    fn spawn(&self, future: SendFuture) {
        self.core.state().incoming.push((self.group, Birth::Future(future)));
        self.core.something.notify_all();
    }

    fn spawn_driver(&self, _name: String, make: MakeDriver) {
        self.core.state().incoming.push((self.group, Birth::Driver(make)));
        self.core.something.notify_all();
    }

    fn random(&self) -> u128 {
        (u128::from(self.core.draw()) << 64) | u128::from(self.core.draw())
    }

    fn runtime(&self) -> Option<Handle> {
        self.core.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Sleep {
    core: Arc<Core>,
    until: Duration,
    place: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let core = Arc::clone(&self.core);
        let mut state = core.state();
        if state.elapsed >= self.until {
            return Poll::Ready(());
        }
        let place = self.place.unwrap_or_else(|| {
            state.last_sleeper += 1;
            state.last_sleeper
        });
        self.place = Some(place);
        state.sleepers.insert((self.until, place), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.core.state().sleepers.remove(&(self.until, place));
        }
    }
}
