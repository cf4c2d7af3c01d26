//! The world around the engine: time, chance, and somewhere to run.
//!
//! Everything else in this crate gets these from a [`Host`], so that the same loops run on Tokio and real threads, and on
//! one thread with a clock that only moves when it is told to.

mod threads;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use outlast_core::time::{Timestamp, millis};
use tokio::runtime::Handle;

pub(crate) use threads::Threads;

/// A future for any thread.
pub(crate) type SendFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// A future that stays on the thread that made it.
pub(crate) type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;
/// Makes a driver where it will run.
pub(crate) type MakeDriver = Box<dyn FnOnce() -> LocalFuture + Send>;

/// What the engine needs from the world.
pub(crate) trait Host: Send + Sync {
    /// Time since some fixed instant; it never goes back.
    fn elapsed(&self) -> Duration;
    /// Completes once [`Host::elapsed`] is at least `until`.
    fn sleep_until(&self, until: Duration) -> SendFuture;
    /// Runs a future beside everything else.
    fn spawn(&self, future: SendFuture);
    /// Runs a driver, which cannot be moved between threads.
    fn spawn_driver(&self, name: String, make: MakeDriver);
    /// Chance.
    fn random(&self) -> u128;
    /// Where step bodies run, if they need a Tokio runtime.
    fn runtime(&self) -> Option<Handle>;
    /// Whether a driver has its thread to itself, so that it may block.
    fn may_block(&self) -> bool {
        false
    }
    /// Whether notices reach the node's loop. In the real world they do; where they do not, polling must be enough.
    fn hears(&self) -> bool {
        true
    }
}

/// Engine time: the host's clock plus the offset of the store's last reply.
pub(crate) struct Time {
    host: Arc<dyn Host>,
    /// Store time minus host time, in milliseconds.
    offset: AtomicI64,
    /// An instant the store's clock has certainly passed.
    passed: AtomicI64,
}

impl Time {
    pub(crate) fn new(host: Arc<dyn Host>) -> Time {
        Time { host, offset: AtomicI64::new(0), passed: AtomicI64::new(i64::MIN) }
    }

    /// Learns the store's time from a reply.
    pub(crate) fn observe(&self, now: Timestamp) {
        let elapsed = millis(self.host.elapsed());
        self.offset.store(now.as_millis().saturating_sub(elapsed), Ordering::Relaxed);
        self.passed.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// The store's time, as far as it can be told from here.
    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.host.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(elapsed.saturating_add(self.offset.load(Ordering::Relaxed)))
    }

    /// An instant the store's clock has certainly passed.
    pub(crate) fn passed(&self) -> Timestamp {
        Timestamp::from_millis(self.passed.load(Ordering::Relaxed))
    }

    /// When it will be `at`, by the host's clock.
    pub(crate) fn instant(&self, at: Timestamp) -> Duration {
        let host = at.as_millis().saturating_sub(self.offset.load(Ordering::Relaxed));
        Duration::from_millis(u64::try_from(host).unwrap_or(0))
    }

    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Time({})", self.now())
    }
}
