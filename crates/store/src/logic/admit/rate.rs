//! Rates: one number per gate, the instant at which the next admission is due in theory. Whoever comes no more than the
//! slack before it is admitted, and it moves on by the time between two admissions: so a look that comes late by less than
//! the slack costs nothing. In nanoseconds, rounded so that nothing is early; sums saturate.

use outlast_core::commit::Rate;
use outlast_core::time::Timestamp;

const NANOS_PER_MILLI: i128 = 1_000_000;

fn nanos(at: Timestamp) -> i128 {
    i128::from(at.as_millis()) * NANOS_PER_MILLI
}

fn every(rate: &Rate) -> i128 {
    i128::try_from(rate.every().as_nanos()).unwrap_or(i128::MAX).max(1)
}

fn slack(rate: &Rate) -> i128 {
    i128::try_from(rate.slack().as_nanos()).unwrap_or(i128::MAX)
}

fn clamp(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The first millisecond that is not before an instant in nanoseconds.
fn first_milli(nanos: i128) -> Timestamp {
    let millis = nanos.div_euclid(NANOS_PER_MILLI) + i128::from(nanos.rem_euclid(NANOS_PER_MILLI) > 0);
    Timestamp::from_millis(clamp(millis))
}

/// How many may be admitted now.
pub(super) fn room(rate: &Rate, tat: Option<i64>, now: Timestamp) -> usize {
    let now = i128::from(clamp(nanos(now)));
    // What was not used is lost: the next one is due now at the earliest.
    let tat = tat.map_or(now, |tat| i128::from(tat).max(now));
    let early = now + slack(rate) - tat;
    if early < 0 { 0 } else { usize::try_from(early / every(rate) + 1).unwrap_or(usize::MAX) }
}

/// The instant after one more admission.
pub(super) fn after(rate: &Rate, tat: Option<i64>, now: Timestamp) -> i64 {
    let now = nanos(now);
    clamp(tat.map_or(now, |tat| i128::from(tat).max(now)) + every(rate))
}

/// When the next one may be admitted.
pub(super) fn room_at(rate: &Rate, tat: Option<i64>) -> Timestamp {
    tat.map_or(Timestamp::EPOCH, |tat| first_milli(i128::from(tat) - slack(rate)))
}

/// From when on it makes no difference what was admitted before.
pub(super) fn quiet_at(tat: Option<i64>) -> Timestamp {
    tat.map_or(Timestamp::EPOCH, |tat| first_milli(i128::from(tat)))
}

/// The same, no later than a new rate would have it: a slow one that became fast must not keep everybody waiting.
pub(super) fn no_later(rate: &Rate, tat: Option<i64>, now: Timestamp) -> Option<i64> {
    tat.map(|tat| tat.min(clamp(nanos(now) + slack(rate) + every(rate))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlast_core::time::millis;

    use super::*;

    /// Admits whenever there is room, at these instants; when it did.
    fn admissions(rate: Rate, looks: impl Iterator<Item = i64>) -> Vec<i64> {
        let (mut tat, mut admitted) = (None, Vec::new());
        for now in looks {
            let at = Timestamp::from_millis(now);
            while room(&rate, tat, at) > 0 {
                tat = Some(after(&rate, tat, at));
                admitted.push(now);
            }
        }
        admitted
    }

    #[test]
    fn in_any_period_there_are_at_most_as_many_as_declared() {
        for (count, per, burst) in [(1, 10, 1), (3, 10, 1), (7, 1_000, 1), (7, 100, 3), (10, 10, 10), (5, 7, 2)] {
            let rate = Rate::new(count, Duration::from_millis(per)).burst(burst);
            let admitted = admissions(rate, 0..3_000);
            let most = (count + burst - 1) as usize;
            for (at, first) in admitted.iter().enumerate() {
                let in_period = admitted[at..].iter().take_while(|then| **then < first + per as i64).count();
                assert!(in_period <= most, "{rate:?}: {in_period} in one period");
            }
            // The clock has whole milliseconds: without slack, what comes between two of them is lost.
            let least = 3_000 / millis(rate.every()) - 1;
            assert!(admitted.len() as i64 >= least, "{rate:?}: only {} of {least}", admitted.len());
        }
    }

    #[test]
    fn it_says_exactly_when_there_is_room_again() {
        let rate = Rate::new(3, Duration::from_millis(10)).burst(2);
        let mut tat = None;
        for now in (0..200).map(Timestamp::from_millis) {
            assert_eq!(room(&rate, tat, now) > 0, room_at(&rate, tat) <= now, "{now}");
            if room(&rate, tat, now) > 0 {
                tat = Some(after(&rate, tat, now));
            }
        }
    }

    #[test]
    fn the_ends_of_time_neither_overflow_nor_block_for_ever() {
        let rate = Rate::new(1, Duration::from_secs(366 * 24 * 60 * 60)).burst(1_000_000);
        for now in [Timestamp::MAX, Timestamp::from_millis(i64::MIN)] {
            let tat = after(&rate, None, now);
            assert!(room(&rate, Some(tat), now) > 0);
            room_at(&rate, Some(tat));
            quiet_at(Some(i64::MAX));
            no_later(&rate, Some(i64::MAX), now);
        }
    }
}
