//! Cron by the wall clock of a zone, which skips an hour and repeats one. An expression with one hour, one minute and one second
//! fires once a day all the same: right behind what is skipped, and the first time of what is repeated. Every other one fires
//! whenever the clock shows what it says: not in what is skipped, and both times in what is repeated.
//!
//! That is how Croner documents it. Croner is asked for dates and times of day only, and what they are in the zone is found
//! here: left to itself, Croner 4.0.2 fires a daily expression a second time on the day on which an hour is skipped.

use croner::{Cron, JobType};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp as Instant};
use outlast_core::time::Timestamp;

/// How much the clocks of a zone ever skip at once: a day, where the date line was moved.
const SKIPPED_MAX: SignedDuration = SignedDuration::from_hours(25);

/// The first instant after another one at which the clock shows what an expression says.
pub(super) fn next(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    // Cron thinks in whole seconds: the next one after the one that has begun is after any part of it.
    let after = Instant::from_second(after.as_millis().div_euclid(1_000)).ok()?;
    let next = match cron.determine_job_type() {
        JobType::FixedTime => next_daily(cron, zone, after),
        JobType::IntervalWildcard => next_often(cron, zone, after),
    };
    next.map(|next| Timestamp::from_millis(next.as_millisecond()))
}

/// Once on each day that matches.
fn next_daily(cron: &Cron, zone: &TimeZone, after: Instant) -> Option<Instant> {
    // From before anything that is only made up for later.
    let mut shown = zone.to_datetime(after).checked_sub(SKIPPED_MAX).ok()?;
    loop {
        shown = cron.find_next_occurrence(&shown, false).ok()?;
        let instant = once(zone, shown)?;
        if instant > after {
            return Some(instant);
        }
    }
}

/// The one instant that stands for a time of day.
fn once(zone: &TimeZone, shown: DateTime) -> Option<Instant> {
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown).ok(),
        // By the clock before the change it is so much after it; the change itself is right behind what is skipped.
        AmbiguousOffset::Gap { before, .. } => {
            let late = before.to_timestamp(shown).ok()?;
            zone.preceding(late.checked_add(SignedDuration::from_secs(1)).ok()?).next().map(|change| change.timestamp())
        }
    }
}

/// Whenever the clock shows it: between two changes it runs like any other.
fn next_often(cron: &Cron, zone: &TimeZone, after: Instant) -> Option<Instant> {
    let mut from = after.checked_add(SignedDuration::from_secs(1)).ok()?;
    loop {
        let offset = zone.to_offset(from);
        let change = zone.following(from).next().map(|change| change.timestamp());
        let shown: DateTime = cron.find_next_occurrence(&offset.to_datetime(from), true).ok()?;
        let instant = offset.to_timestamp(shown).ok();
        match (instant, change) {
            (Some(instant), Some(change)) if instant >= change => from = change,
            (instant, _) => return instant,
        }
    }
}
