//! What the store's clock has shown: it may be set back, and then it has shown more than it shows.

use outlast_core::time::Timestamp;

use crate::ledger::tick;

/// Instants of a clock, as far as they tell what it showed at most since something happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    current: Timestamp,
    /// Each later than all that came after it, with its place among everything that happened.
    peaks: Vec<(u64, Timestamp)>,
}

impl Clock {
    /// It shows this now.
    pub(super) fn shows(&mut self, now: Timestamp) {
        self.current = now;
        while self.peaks.last().is_some_and(|(_, before)| *before <= now) {
            self.peaks.pop();
        }
        self.peaks.push((tick(), now));
    }

    /// It still shows the same: so that it has been seen since what just happened.
    pub(super) fn stays(&mut self) {
        self.shows(self.current);
    }

    /// What it showed last.
    pub(super) fn now(&self) -> Timestamp {
        self.current
    }

    /// The latest instant it ever showed.
    pub(super) fn latest(&self) -> Timestamp {
        self.peaks.first().map_or(self.current, |(_, peak)| *peak)
    }

    /// The latest instant it has shown since then.
    pub(super) fn latest_since(&self, tick: u64) -> Timestamp {
        let first = self.peaks.partition_point(|(of, _)| *of < tick);
        self.peaks.get(first).map_or(self.current, |(_, peak)| *peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_clock_showed_before_it_was_set_back_is_not_what_it_showed_since() {
        let at = Timestamp::from_millis;
        let mut clock = Clock::default();
        [at(10), at(90), at(20)].into_iter().for_each(|now| clock.shows(now));
        let since = tick();
        clock.stays();
        assert_eq!((clock.latest(), clock.latest_since(since)), (at(90), at(20)));
        [at(50), at(30)].into_iter().for_each(|now| clock.shows(now));
        assert_eq!((clock.now(), clock.latest(), clock.latest_since(since)), (at(30), at(90), at(50)));
        clock.shows(at(95));
        assert_eq!((clock.latest(), clock.latest_since(since)), (at(95), at(95)));
    }
}
