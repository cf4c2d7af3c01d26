//! Flow control: what a run waits for before it may begin, and which other run may answer for its start.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::LimitKey;
use crate::time::{Timestamp, millis};

/// Limits one run may have.
pub const LIMITS_MAX: usize = 8;
/// The longest delay, wait, window or period.
pub const SPAN_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// The largest weight.
pub const WEIGHT_MAX: u32 = 1_000;
/// The largest number of runs at once, runs in a period, and burst.
pub const COUNT_MAX: u32 = 1_000_000;

/// When a run may begin, and what becomes of it if another one has the same start key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Not before.
    pub begin: Begin,
    /// It begins when there is room in all of these.
    pub limits: Vec<Limit>,
    /// Whose share of the first limit it uses.
    pub fair: Option<Fair>,
    /// A start with the same key within a window is the same start.
    pub window: Option<Window>,
    /// One run with this key at a time.
    pub single: Option<Single>,
    /// A start with the same key replaces the input of one that has not begun.
    pub debounce: Option<Debounce>,
}

/// The earliest instant at which a run may begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// At once.
    #[default]
    Now,
    /// So long after the store accepted it.
    After(Duration),
    /// From this instant on.
    At(Timestamp),
}

/// One limit of a run. The limit belongs to its key: what was said last holds for all who have that key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Who shares it.
    pub key: LimitKey,
    /// How much there is to share.
    pub bound: Bound,
}

/// How much there is to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// So many runs at once, each from its admission to its end: also while it sleeps.
    Concurrency {
        /// How many.
        max: u32,
    },
    /// So many admissions in a period.
    Rate(Rate),
}

/// So many admissions in a period, evenly: in any period there are at most `count` and one less than `burst`.
///
/// ```
/// use outlast_core::commit::Rate;
///
/// let rate = Rate::per_minute(120).burst(10);
/// assert_eq!(rate.every().as_millis(), 500);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    count: u32,
    per: Duration,
    burst: u32,
}

impl Rate {
    /// `count` admissions in each period.
    pub const fn new(count: u32, per: Duration) -> Rate {
        Rate { count, per, burst: 1 }
    }

    /// `count` admissions in each second.
    pub const fn per_second(count: u32) -> Rate {
        Rate::new(count, Duration::from_secs(1))
    }

    /// `count` admissions in each minute.
    pub const fn per_minute(count: u32) -> Rate {
        Rate::new(count, Duration::from_secs(60))
    }

    /// `count` admissions in each hour.
    pub const fn per_hour(count: u32) -> Rate {
        Rate::new(count, Duration::from_secs(3_600))
    }

    /// So many may be admitted at once after a time in which none were; one if nobody says otherwise.
    #[must_use]
    pub const fn burst(self, burst: u32) -> Rate {
        Rate { burst, ..self }
    }

    /// How many in a period.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The period.
    pub fn per(&self) -> Duration {
        self.per
    }

    /// The time from one admission to the next: rounded up, so that there are never more than were allowed.
    pub fn every(&self) -> Duration {
        let nanos = self.per.as_nanos().div_ceil(u128::from(self.count.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// By how much admissions may come early.
    pub fn slack(&self) -> Duration {
        self.every().saturating_mul(self.burst.saturating_sub(1))
    }
}

/// Whose share a run uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fair {
    /// Who.
    pub key: LimitKey,
    /// Twice the weight, twice the share.
    pub weight: u32,
}

/// A start with the same key within a window is the same start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The key.
    pub key: LimitKey,
    /// How long it counts, from the first start on.
    pub window: Duration,
}

/// One run with this key at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Single {
    /// The key.
    pub key: LimitKey,
    /// Whether a new one takes the place of the one that is there: that one is asked to cancel, and the new one begins
    /// when it has ended. If not, the one that is there answers for the start.
    pub replace: bool,
    /// What the request to cancel says: opaque to the store.
    pub meta: Option<Bytes>,
}

/// A start with the same key replaces the input of one that has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debounce {
    /// The key.
    pub key: LimitKey,
    /// It begins when nobody has started another for so long.
    pub wait: Duration,
    /// And at the latest so long after the first.
    pub at_most: Duration,
}

/// Why a run cannot be admitted as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unadmittable {
    /// More limits than one run may have.
    #[error("a run may have {LIMITS_MAX} limits, this one has {0}; use fewer keys")]
    Limits(usize),
    /// One key stands for two limits of a kind.
    #[error("the limit {0:?} was given twice; give each key one {1} limit")]
    Twice(String, &'static str),
    /// A number out of its range.
    #[error("{what} is {found}; it must be from {least} to {most}")]
    Count {
        /// What was counted.
        what: &'static str,
        /// What was asked for.
        found: u32,
        /// At least.
        least: u32,
        /// At most.
        most: u32,
    },
    /// A duration out of its range.
    #[error("{what} is {found:?}; it must be from {least:?} to {most:?}")]
    Span {
        /// What was measured.
        what: &'static str,
        /// What was asked for.
        found: Duration,
        /// At least.
        least: Duration,
        /// At most.
        most: Duration,
    },
    /// More admissions than a clock that counts milliseconds can tell apart.
    #[error(
        "a rate of {count} in {per:?} is more than one in a millisecond; use a smaller rate, or a concurrency limit"
    )]
    TooFast {
        /// How many.
        count: u32,
        /// In which period.
        per: Duration,
    },
    /// There is nothing to share fairly.
    #[error("fairness shares a limit, and this run has none; add a concurrency or rate limit")]
    NothingToShare,
    /// Two answers to what becomes of a second start.
    #[error("a debounced start has no other start key; use either debounce, or singleton and an idempotency window")]
    TwoStartKeys,
    /// Two answers to when it begins.
    #[error("a debounced start says itself when it begins; leave the delay out")]
    TwoDelays,
}

impl Admission {
    /// Whether a new run has to be admitted before it may begin.
    pub fn holds(&self) -> bool {
        // One at a time is a limit like another: whoever comes next waits for the end of the one that is there.
        self.begin != Begin::Now || !self.limits.is_empty() || self.debounce.is_some() || self.single.is_some()
    }

    /// Refuses what makes no sense or is out of range.
    pub fn check(&self) -> Result<(), Unadmittable> {
        if self.limits.len() > LIMITS_MAX {
            return Err(Unadmittable::Limits(self.limits.len()));
        }
        for (at, limit) in self.limits.iter().enumerate() {
            limit.check()?;
            let same = |other: &Limit| other.key == limit.key && other.bound.kind() == limit.bound.kind();
            if self.limits.iter().take(at).any(same) {
                return Err(Unadmittable::Twice(limit.key.to_string(), limit.bound.kind()));
            }
        }
        if let Some(fair) = &self.fair {
            within("the weight of a fairness key", fair.weight, WEIGHT_MAX)?;
            if self.limits.is_empty() {
                return Err(Unadmittable::NothingToShare);
            }
        }
        if let Begin::After(delay) = self.begin {
            span("the delay", delay, Duration::ZERO)?;
        }
        if let Some(window) = &self.window {
            span("the idempotency window", window.window, Duration::from_millis(1))?;
        }
        self.debounce.as_ref().map_or(Ok(()), |debounce| self.check_debounce(debounce))
    }

    fn check_debounce(&self, debounce: &Debounce) -> Result<(), Unadmittable> {
        span("the wait of a debounce", debounce.wait, Duration::from_millis(1))?;
        span("the longest wait of a debounce", debounce.at_most, debounce.wait)?;
        if self.single.is_some() || self.window.is_some() {
            return Err(Unadmittable::TwoStartKeys);
        }
        if self.begin != Begin::Now {
            return Err(Unadmittable::TwoDelays);
        }
        Ok(())
    }
}

impl Limit {
    fn check(&self) -> Result<(), Unadmittable> {
        match self.bound {
            Bound::Concurrency { max } => within("the number of runs at once", max, COUNT_MAX),
            Bound::Rate(rate) => rate.check(),
        }
    }
}

impl Rate {
    fn check(&self) -> Result<(), Unadmittable> {
        within("the number of runs in a period", self.count, COUNT_MAX)?;
        within("the burst of a rate", self.burst, COUNT_MAX)?;
        span("the period of a rate", self.per, Duration::from_millis(1))?;
        if i64::from(self.count) > millis(self.per) {
            return Err(Unadmittable::TooFast { count: self.count, per: self.per });
        }
        Ok(())
    }
}

impl Bound {
    /// What kind of limit it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Bound::Concurrency { .. } => "concurrency",
            Bound::Rate(_) => "rate",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Concurrency { max } => write!(f, "{max} at once"),
            Bound::Rate(rate) => write!(f, "{} in {:?}", rate.count, rate.per),
        }
    }
}

fn within(what: &'static str, found: u32, most: u32) -> Result<(), Unadmittable> {
    if (1..=most).contains(&found) { Ok(()) } else { Err(Unadmittable::Count { what, found, least: 1, most }) }
}

fn span(what: &'static str, found: Duration, least: Duration) -> Result<(), Unadmittable> {
    if found >= least && found <= SPAN_MAX {
        Ok(())
    } else {
        Err(Unadmittable::Span { what, found, least, most: SPAN_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> LimitKey {
        LimitKey::new(text).unwrap()
    }

    fn limited(limits: Vec<Limit>) -> Admission {
        Admission { limits, ..Admission::default() }
    }

    fn at_once(name: &str, max: u32) -> Limit {
        Limit { key: key(name), bound: Bound::Concurrency { max } }
    }

    fn rated(rate: Rate) -> Limit {
        Limit { key: key("api"), bound: Bound::Rate(rate) }
    }

    #[test]
    fn every_refusal_says_what_is_allowed() {
        let told = |admission: Admission| admission.check().unwrap_err().to_string();
        assert_eq!(
            told(limited(vec![at_once("a", 0)])),
            "the number of runs at once is 0; it must be from 1 to 1000000"
        );
        let nine = (0..9).map(|n| at_once(&n.to_string(), 1)).collect();
        assert_eq!(told(limited(nine)), "a run may have 8 limits, this one has 9; use fewer keys");
        let twice = limited(vec![at_once("a", 1), at_once("a", 2)]);
        assert_eq!(told(twice), "the limit \"a\" was given twice; give each key one concurrency limit");
        let fast = limited(vec![rated(Rate::per_second(1_001))]);
        assert!(told(fast).starts_with("a rate of 1001 in 1s is more than one in a millisecond"));
        let unshared = Admission { fair: Some(Fair { key: key("a"), weight: 1 }), ..Admission::default() };
        assert!(told(unshared).contains("add a concurrency or rate limit"));
        let begin = Begin::After(SPAN_MAX + Duration::from_millis(1));
        assert!(told(Admission { begin, ..Admission::default() }).starts_with("the delay is 31622400.001s"));
        let debounce = Debounce { key: key("a"), wait: Duration::from_secs(5), at_most: Duration::from_secs(4) };
        let debounced = Admission { debounce: Some(debounce), ..Admission::default() };
        assert!(told(debounced).starts_with("the longest wait of a debounce is 4s; it must be from 5s"));
    }

    #[test]
    fn one_key_may_limit_both_the_number_at_once_and_the_rate() {
        assert_eq!(limited(vec![at_once("api", 1), rated(Rate::per_second(1))]).check(), Ok(()));
    }

    #[test]
    fn the_time_between_two_admissions_is_never_too_short() {
        for count in [1, 3, 7, 999, 1_000] {
            let rate = Rate::per_second(count);
            assert!(rate.every() * count >= Duration::from_secs(1), "{count}");
        }
    }

    #[test]
    fn only_what_holds_a_run_back_holds_it_back() {
        assert!(!Admission::default().holds());
        let single = |replace| Some(Single { key: key("a"), replace, meta: None });
        assert!(Admission { single: single(false), ..Admission::default() }.holds(), "it has the only place");
        assert!(Admission { single: single(true), ..Admission::default() }.holds());
        assert!(Admission { begin: Begin::At(Timestamp::EPOCH), ..Admission::default() }.holds());
    }
}
