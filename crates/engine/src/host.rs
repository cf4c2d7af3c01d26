//! The world around the engine: time, chance, and somewhere to run.
//!
//! Everything else in this crate gets these from a [`Host`], so that the same loops run on Tokio and real threads, and on
//! one thread with a clock that only moves when it is told to.

#[cfg(test)]
mod tests;
mod threads;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use outlast_core::time::Timestamp;
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
    /// What the clock on the wall shows. Nothing happens because of it: it only says that clocks were set, or that the machine
    /// slept, when it goes otherwise than [`Host::elapsed`].
    fn wall(&self) -> Timestamp;
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

/// Engine time: the host's clock, and how far the store's was ahead of it by its replies.
///
/// A reply says what the store's clock showed while it was asked, maybe long before the reply came. So each one is a lower
/// bound, the highest one counts, and only a reply that cannot be true of the clock as it was believed to be lowers it:
/// that clock was set back. Hence engine time is never ahead of the store's, and never behind what the store has said.
pub(crate) struct Time {
    host: Arc<dyn Host>,
    /// Store time minus host time, in nanoseconds.
    offset: AtomicI64,
    /// An instant the store's clock has certainly passed.
    passed: AtomicI64,
}

impl Time {
    pub(crate) fn new(host: Arc<dyn Host>) -> Time {
        Time { host, offset: AtomicI64::new(0), passed: AtomicI64::new(i64::MIN) }
    }

    /// When something is asked, for [`Time::observe`].
    pub(crate) fn asked(&self) -> Asked {
        Asked(nanos(self.host.elapsed()))
    }

    /// How long ago it was asked.
    pub(crate) fn since(&self, Asked(asked): Asked) -> Duration {
        Duration::from_nanos(u64::try_from(nanos(self.host.elapsed()).saturating_sub(asked)).unwrap_or(0))
    }

    /// Learns the store's time from the reply to something that was asked.
    pub(crate) fn observe(&self, Asked(asked): Asked, now: Timestamp) {
        let most = of_store(now).saturating_add(NANOS_PER_MILLI - 1).saturating_sub(asked);
        let sample = self.sample(now);
        let learn = |offset| Some(if sample > offset || most < offset { sample } else { offset });
        // It always learns something.
        let _ = self.offset.fetch_update(Ordering::Relaxed, Ordering::Relaxed, learn);
        self.passed.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// Learns that the store's clock has shown this.
    pub(crate) fn has_passed(&self, at: Timestamp) {
        self.offset.fetch_max(self.sample(at), Ordering::Relaxed);
        self.passed.fetch_max(at.as_millis(), Ordering::Relaxed);
    }

    /// The least that the store's clock is ahead, if it shows this, or showed it.
    fn sample(&self, shown: Timestamp) -> i64 {
        of_store(shown).saturating_sub(nanos(self.host.elapsed()))
    }

    /// The store's time, as far as it can be told from here.
    pub(crate) fn now(&self) -> Timestamp {
        let now = nanos(self.host.elapsed()).saturating_add(self.offset.load(Ordering::Relaxed));
        Timestamp::from_millis(now.div_euclid(NANOS_PER_MILLI))
    }

    /// An instant the store's clock has certainly passed.
    pub(crate) fn passed(&self) -> Timestamp {
        Timestamp::from_millis(self.passed.load(Ordering::Relaxed))
    }

    /// When it will be `at`, by the host's clock.
    pub(crate) fn instant(&self, at: Timestamp) -> Duration {
        let host = of_store(at).saturating_sub(self.offset.load(Ordering::Relaxed));
        Duration::from_nanos(u64::try_from(host).unwrap_or(0))
    }

    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }
}

/// When something was asked, by the host's clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(i64);

const NANOS_PER_MILLI: i64 = 1_000_000;

fn nanos(elapsed: Duration) -> i64 {
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

fn of_store(at: Timestamp) -> i64 {
    at.as_millis().saturating_mul(NANOS_PER_MILLI)
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Time({})", self.now())
    }
}
