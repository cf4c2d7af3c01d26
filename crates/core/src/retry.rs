//! When to try again. Delays are integers and a function of policy, attempt and seed: the same everywhere.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::millis;

/// The shortest delay between two attempts, whatever the policy and the jitter: a retry never becomes a hot loop.
pub const DELAY_MS_MIN: u64 = 1;

/// How delays grow from one attempt to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Each delay is the one before, times a factor in percent (200 doubles; below 100 counts as 100).
    Exponential {
        /// The factor, in percent.
        factor_percent: u32,
    },
    /// Each delay is the first one longer than the one before.
    Linear,
    /// All delays are the same.
    Constant,
}

/// How much of a delay is left to chance, so that many failures at once do not come back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Nothing: exactly the delay.
    None,
    /// Between half the delay and the delay.
    Half,
    /// Between [`DELAY_MS_MIN`] and the delay.
    Full,
}

/// A retry policy.
///
/// ```
/// use std::time::Duration;
/// use outlast_core::retry::{Jitter, Retry};
///
/// let retry = Retry::attempts(4).initial(Duration::from_secs(1)).factor(3.0).jitter(Jitter::None);
/// assert_eq!(retry.next_delay(1, 0), Some(Duration::from_secs(1)));
/// assert_eq!(retry.next_delay(2, 0), Some(Duration::from_secs(3)));
/// assert_eq!(retry.next_delay(3, 0), Some(Duration::from_secs(9)));
/// assert_eq!(retry.next_delay(4, 0), None); // four attempts were made: that is all
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    attempts: u32,
    backoff: Backoff,
    jitter: Jitter,
    initial_ms: u64,
    cap_ms: u64,
}

impl Default for Retry {
    /// Six attempts, one second apart at first, doubling up to five minutes, half of it jitter.
    fn default() -> Self {
        Retry {
            attempts: 6,
            backoff: Backoff::Exponential { factor_percent: 200 },
            jitter: Jitter::Half,
            initial_ms: 1_000,
            cap_ms: 300_000,
        }
    }
}

impl Retry {
    /// The default policy with this many attempts in all, the first included; 0 counts as 1.
    pub fn attempts(attempts: u32) -> Self {
        Retry { attempts: attempts.max(1), ..Retry::default() }
    }

    /// One attempt and no more.
    pub fn never() -> Self {
        Retry::attempts(1)
    }

    /// How many attempts there are in all.
    pub fn attempts_max(&self) -> u32 {
        self.attempts.max(1)
    }

    /// The delay after the first attempt, in whole milliseconds, rounded up.
    #[must_use]
    pub fn initial(self, initial: Duration) -> Self {
        Retry { initial_ms: whole_millis(initial), ..self }
    }

    /// The longest delay, in whole milliseconds, rounded up. It wins over a longer first delay.
    #[must_use]
    pub fn cap(self, cap: Duration) -> Self {
        Retry { cap_ms: whole_millis(cap), ..self }
    }

    /// Exponential delays with this factor, to a hundredth; below 1 counts as 1.
    #[must_use]
    pub fn factor(self, factor: f64) -> Self {
        // A float to integer cast saturates, and makes 0 of NaN.
        let factor_percent = ((factor * 100.0).round() as u32).max(100);
        Retry { backoff: Backoff::Exponential { factor_percent }, ..self }
    }

    /// Delays that grow like this.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Retry { backoff, ..self }
    }

    /// Delays with this much chance in them.
    #[must_use]
    pub fn jitter(self, jitter: Jitter) -> Self {
        Retry { jitter, ..self }
    }

    /// How long to wait after `attempt` attempts were made (from 1); none when there are no more.
    ///
    /// The seed decides the jitter and nothing else: the same seed and attempt give the same delay.
    pub fn next_delay(&self, attempt: u32, seed: u64) -> Option<Duration> {
        if attempt >= self.attempts_max() + u32::from(crate::planted!("one-attempt-too-many")) {
            return None;
        }
        let longest = self.backoff_ms(attempt.max(1));
        let shortest = match self.jitter {
            Jitter::None => longest,
            Jitter::Half => longest - longest / 2,
            Jitter::Full => DELAY_MS_MIN,
        };
        let delay = between(shortest, longest, hash(seed, u64::from(attempt)));
        Some(Duration::from_millis(if crate::planted!("no-backoff") { 0 } else { delay }))
    }

    /// The delay without jitter: at least [`DELAY_MS_MIN`], at most the cap, never shorter than the one before.
    fn backoff_ms(&self, attempt: u32) -> u64 {
        let cap = self.cap_ms.max(DELAY_MS_MIN);
        let initial = self.initial_ms.clamp(DELAY_MS_MIN, cap);
        match self.backoff {
            Backoff::Constant => initial,
            Backoff::Linear => initial.saturating_mul(u64::from(attempt)).min(cap),
            Backoff::Exponential { factor_percent } => exponential_ms(initial, cap, factor_percent, attempt),
        }
    }
}

/// Multiplies in nanoseconds, so that a small factor of a small delay is not rounded away, and stops at the cap: that
/// is at most a few thousand rounds for the slowest growth there is.
fn exponential_ms(initial: u64, cap: u64, factor_percent: u32, attempt: u32) -> u64 {
    const NANOS: u128 = 1_000_000;
    if factor_percent <= 100 {
        return initial;
    }
    let (mut delay, cap_nanos) = (u128::from(initial) * NANOS, u128::from(cap) * NANOS);
    for _ in 1..attempt {
        if delay >= cap_nanos {
            return cap;
        }
        // The largest delay is 2^64 ms, below 2^84 ns: times a factor below 2^32 it fits in 128 bits.
        delay = delay * u128::from(factor_percent) / 100;
    }
    u64::try_from(delay.min(cap_nanos) / NANOS).unwrap_or(cap)
}

fn whole_millis(duration: Duration) -> u64 {
    millis(duration).unsigned_abs()
}

/// A number from `low` to `high`, both included, chosen by `chance`.
fn between(low: u64, high: u64, chance: u64) -> u64 {
    let choices = u128::from(high - low) + 1;
    let chosen = (u128::from(chance) * choices) >> 64;
    low + u64::try_from(chosen).unwrap_or(0)
}

/// SplitMix64 of a seed and a counter: well mixed, and the same on every machine. Not for secrets.
pub(crate) fn hash(seed: u64, counter: u64) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut z = seed.wrapping_add(counter.wrapping_add(1).wrapping_mul(GOLDEN));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any policy at all, extremes included, chosen by a number.
    fn policy(n: u64) -> Retry {
        let chance = |field| hash(n, field);
        // A random width first, so that small and enormous values are equally common.
        let wide = |field| chance(field) >> (chance(field + 100) % 64);
        let factor_percent = u32::try_from(wide(1) & u64::from(u32::MAX)).unwrap();
        Retry {
            attempts: u32::try_from(wide(2) & u64::from(u32::MAX)).unwrap(),
            backoff: [Backoff::Exponential { factor_percent }, Backoff::Linear, Backoff::Constant]
                [usize::try_from(chance(3) % 4).unwrap().min(2)],
            jitter: [Jitter::None, Jitter::Half, Jitter::Full][usize::try_from(chance(4) % 3).unwrap()],
            initial_ms: wide(5),
            cap_ms: wide(6),
        }
    }

    #[test]
    fn no_policy_ever_gives_zero_or_more_than_its_cap_or_shrinks_before_it() {
        for n in 0..1_000_000 {
            let retry = policy(n);
            let cap = Duration::from_millis(retry.cap_ms.max(DELAY_MS_MIN));
            let first = [1, 2, 1u32 << (n % 32)][usize::try_from(n % 3).unwrap()];
            let exact = retry.jitter(Jitter::None);
            let mut before = Duration::ZERO;
            for attempt in first..first.saturating_add(4) {
                let (Some(delay), Some(jittered)) = (exact.next_delay(attempt, n), retry.next_delay(attempt, n)) else {
                    assert!(attempt >= retry.attempts_max(), "{retry:?}, attempt {attempt}");
                    break;
                };
                assert!(delay >= before, "{retry:?}, attempt {attempt}: {delay:?} after {before:?}");
                assert!(delay <= cap && jittered <= delay, "{retry:?}, attempt {attempt}: {jittered:?} of {delay:?}");
                assert!(jittered >= Duration::from_millis(DELAY_MS_MIN), "{retry:?}, attempt {attempt}: no delay");
                before = delay;
            }
        }
    }

    #[test]
    fn half_jitter_keeps_at_least_half() {
        let retry = Retry::attempts(9).initial(Duration::from_millis(1001)).jitter(Jitter::Half);
        for seed in 0..10_000 {
            let delay = retry.next_delay(1, seed).unwrap().as_millis();
            assert!((501..=1001).contains(&delay), "{delay}");
        }
    }

    #[test]
    fn jitter_reaches_both_ends_and_depends_on_seed_and_attempt() {
        assert_eq!((between(3, 9, 0), between(3, 9, u64::MAX)), (3, 9));
        assert_eq!(between(0, u64::MAX, u64::MAX), u64::MAX);
        let retry =
            Retry::attempts(9).initial(Duration::from_secs(100)).backoff(Backoff::Constant).jitter(Jitter::Full);
        assert_eq!(retry.next_delay(1, 7), retry.next_delay(1, 7));
        assert_ne!(retry.next_delay(1, 7), retry.next_delay(2, 7));
        assert_ne!(retry.next_delay(1, 7), retry.next_delay(1, 8));
    }

    #[test]
    fn the_slowest_growth_still_reaches_the_cap_at_the_last_attempt() {
        let retry =
            Retry::attempts(u32::MAX).initial(Duration::ZERO).factor(1.01).cap(Duration::MAX).jitter(Jitter::None);
        assert_eq!(retry.next_delay(u32::MAX - 1, 0), Some(Duration::from_millis(i64::MAX.unsigned_abs())));
    }

    #[test]
    fn a_factor_of_a_little_more_than_one_is_not_rounded_away() {
        let retry = Retry::attempts(500).initial(Duration::from_millis(1)).factor(1.01).jitter(Jitter::None);
        assert_eq!(retry.next_delay(1, 0), Some(Duration::from_millis(1)));
        assert_eq!(retry.next_delay(300, 0), Some(Duration::from_millis(19)));
    }

    #[test]
    fn nonsense_counts_as_the_nearest_sense() {
        assert_eq!(Retry::attempts(0).attempts_max(), 1);
        assert_eq!(Retry::never().next_delay(1, 0), None);
        for factor in [f64::NAN, -3.0, 0.0] {
            assert_eq!(Retry::default().factor(factor).backoff, Backoff::Exponential { factor_percent: 100 });
        }
    }

    #[test]
    fn a_policy_is_stored_and_read_with_defaults_for_what_is_missing() {
        let text = serde_json::to_string(&Retry::default()).unwrap();
        assert_eq!(
            text,
            r#"{"attempts":6,"backoff":{"exponential":{"factor_percent":200}},"jitter":"half","initial_ms":1000,"cap_ms":300000}"#
        );
        assert_eq!(serde_json::from_str::<Retry>(&text).unwrap(), Retry::default());
        assert_eq!(serde_json::from_str::<Retry>(r#"{"attempts":2}"#).unwrap(), Retry::attempts(2));
    }
}
