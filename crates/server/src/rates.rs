//! How often a namespace may ask.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use outlast::Timestamp;

/// Counts what namespaces ask for. Each may ask as often as a second allows at once, and then as fast as that refills.
#[derive(Debug)]
pub(crate) struct Rates {
    per_second: Option<NonZeroU32>,
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

/// What a namespace has left, in thousandths of a request, and when that was counted.
#[derive(Debug)]
struct Bucket {
    left: u64,
    at: Timestamp,
}

/// A request, as buckets count it.
const WHOLE: u64 = 1_000;

impl Rates {
    /// Without a number everybody may ask as often as they like.
    pub(crate) fn new(per_second: Option<NonZeroU32>) -> Rates {
        Rates { per_second, buckets: Mutex::default() }
    }

    /// Counts a request; how many a second are allowed, if this is one too many. There are no more buckets than namespaces that
    /// tokens are for.
    pub(crate) fn take(&self, namespace: &str, now: Timestamp) -> Result<(), NonZeroU32> {
        let Some(per_second) = self.per_second else { return Ok(()) };
        let most = u64::from(per_second.get()) * WHOLE;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if !buckets.contains_key(namespace) {
            buckets.insert(namespace.to_owned(), Bucket { left: most, at: now });
        }
        let Some(bucket) = buckets.get_mut(namespace) else { return Ok(()) };
        // A clock that was set back gives nothing back for that, and is believed from then on.
        let passed = u64::try_from(now.since(bucket.at).as_millis()).unwrap_or(u64::MAX);
        // In a millisecond a thousandth of what a second allows comes back.
        let back = passed.saturating_mul(u64::from(per_second.get()));
        *bucket = Bucket { left: bucket.left.saturating_add(back).min(most), at: now };
        match bucket.left.checked_sub(WHOLE) {
            Some(left) => {
                bucket.left = left;
                Ok(())
            }
            None => Err(per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn asked(rates: &Rates, namespace: &str, now: i64) -> usize {
        (0..10_000).take_while(|_| rates.take(namespace, at(now)).is_ok()).count()
    }

    #[test]
    fn a_second_is_allowed_at_once_and_comes_back_as_time_passes() {
        let rates = Rates::new(NonZeroU32::new(20));
        assert_eq!(asked(&rates, "a", 0), 20);
        assert_eq!(asked(&rates, "b", 0), 20, "others have their own");
        assert_eq!(asked(&rates, "a", 49), 0);
        assert_eq!(asked(&rates, "a", 50), 1);
        assert_eq!(asked(&rates, "a", 1_050), 20);
        assert_eq!(asked(&rates, "a", 1_000_000), 20, "and no more is saved up");
        assert_eq!(asked(&rates, "a", 0), 0, "the clock was set back");
        assert_eq!(asked(&rates, "a", 500), 10);
    }

    #[test]
    fn without_a_number_nothing_is_counted() {
        let rates = Rates::new(None);
        assert_eq!(asked(&rates, "a", 0), 10_000);
        assert!(rates.buckets.lock().unwrap().is_empty());
    }
}
