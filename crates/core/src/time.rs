//! Instants as data. Nothing here reads a clock.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant, in milliseconds since the Unix epoch, by the store's clock.
///
/// ```
/// use std::time::Duration;
/// use outlast_core::time::Timestamp;
///
/// let due = Timestamp::from_millis(100) + Duration::from_millis(50);
/// assert_eq!(due.as_millis(), 150);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The last instant that can be expressed; additions saturate here instead of wrapping into the past.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// The instant `millis` milliseconds after (or, if negative, before) the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How much later `self` is than `earlier`; zero if it is not later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    /// Saturates at [`Timestamp::MAX`]: an absurdly long delay must never come due in the past.
    fn add(self, delay: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(millis(delay)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Whole milliseconds of `duration`, rounded *up* so that nothing comes due early, saturating.
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_saturates_instead_of_wrapping_into_the_past() {
        assert_eq!(Timestamp::from_millis(1) + Duration::MAX, Timestamp::MAX);
    }

    #[test]
    fn a_fraction_of_a_millisecond_rounds_up_so_that_nothing_is_early() {
        assert_eq!(Timestamp::EPOCH + Duration::from_micros(1), Timestamp::from_millis(1));
    }

    #[test]
    fn since_is_zero_for_the_future() {
        assert_eq!(Timestamp::EPOCH.since(Timestamp::from_millis(5)), Duration::ZERO);
    }
}
