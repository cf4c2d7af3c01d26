//! Where a store's time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use outlast_core::time::Timestamp;

/// A store's clock. Leases and deadlines are compared with it, read after any lock is held.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock, or for PostgreSQL the server's.
    #[default]
    System,
    /// A clock that stands still until it is moved.
    Manual(ManualClock),
}

impl Clock {
    /// The time now. A clock before 1970 reads as 1970.
    #[expect(clippy::disallowed_methods, reason = "the store's clock is the authority on time; this is it")]
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Clock::Manual(clock) => clock.now(),
            Clock::System => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }
}

/// A clock for tests and simulation: time is an argument.
///
/// ```
/// use outlast_store::ManualClock;
/// use outlast_core::time::Timestamp;
///
/// let clock = ManualClock::at(10);
/// clock.set(111);
/// assert_eq!(clock.now(), Timestamp::from_millis(111));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that stands at `millis`.
    pub fn at(millis: i64) -> Self {
        ManualClock(Arc::new(AtomicI64::new(millis)))
    }

    /// Moves it, also backwards.
    pub fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    /// Moves it forward.
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
