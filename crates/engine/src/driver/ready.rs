//! Which runs have something to do. Wakers put them here from any thread.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

/// A run's number on its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RunNo(pub(super) u64);

#[derive(Default)]
pub(super) struct Ready {
    runs: Mutex<Vec<RunNo>>,
    driver: AtomicWaker,
}

impl Ready {
    pub(super) fn register(&self, driver: &Waker) {
        self.driver.register(driver);
    }

    pub(super) fn push(&self, run: RunNo) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        self.driver.wake();
    }

    /// Lets the driver look again.
    pub(super) fn wake_driver(&self) {
        self.driver.wake();
    }

    /// Everything that is ready, each run once.
    pub(super) fn drain(&self) -> Vec<RunNo> {
        let mut runs = std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// A waker that makes a run ready.
    pub(super) fn waker(self: &Arc<Self>, run: RunNo) -> Waker {
        Waker::from(Arc::new(RunWaker { ready: Arc::clone(self), run }))
    }
}

struct RunWaker {
    ready: Arc<Ready>,
    run: RunNo,
}

impl Wake for RunWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.run);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.push(self.run);
    }
}
