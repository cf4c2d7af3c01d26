//! Cron by brute force: every day of ten years, every time of day that is written down, in twenty zones. Nothing here knows how
//! the rule finds its instants; the fields are given as plain lists, so that no parser is shared either.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime, date};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, ToSpan};
use outlast_core::time::Timestamp;

use super::{Rule, When};

/// With summer times in both hemispheres, of half an hour and of two hours, at midnight, around Ramadan, ended and reintroduced;
/// with odd offsets; and without any.
const ZONES: [&str; 20] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Havana",
    "America/Asuncion",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Tehran",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Antarctica/Troll",
];

const FIRST: Date = date(2018, 1, 1);
const YEARS: i16 = 10;

/// An expression, and what it means, written down by hand.
struct Case {
    expression: &'static str,
    minutes: Vec<i8>,
    hours: Vec<i8>,
    day: fn(Date) -> bool,
}

fn case(
    expression: &'static str,
    minutes: impl IntoIterator<Item = i8>,
    hours: impl IntoIterator<Item = i8>,
    day: fn(Date) -> bool,
) -> Case {
    Case { expression, minutes: minutes.into_iter().collect(), hours: hours.into_iter().collect(), day }
}

fn any_day(_: Date) -> bool {
    true
}

/// Sunday is 0.
fn weekday(day: Date) -> i8 {
    day.weekday().to_sunday_zero_offset()
}

/// Few times a day: compared on every day of the ten years.
fn sparse() -> Vec<Case> {
    vec![
        case("0 3 * * *", [0], [3], any_day),
        case("30 2 * * *", [30], [2], any_day),
        case("0 0 * * *", [0], [0], any_day),
        case("30 0 * * *", [30], [0], any_day),
        case("15 1,2,23 * * *", [15], [1, 2, 23], any_day),
        case("30 2 * * 0", [30], [2], |day| weekday(day) == 0),
        case("0 9 * * MON-FRI", [0], [9], |day| (1..=5).contains(&weekday(day))),
        case("5 4 29 2 *", [5], [4], |day| day.month() == 2 && day.day() == 29),
        case("0 1 31 * *", [0], [1], |day| day.day() == 31),
        case("0 0 L * *", [0], [0], |day| day == day.last_of_month()),
        case("0 12 13 * 5", [0], [12], |day| day.day() == 13 || weekday(day) == 5),
        case("30 2 * * 7#1", [30], [2], |day| weekday(day) == 0 && day.day() <= 7),
        case("0 3 1 1,4,7,10 *", [0], [3], |day| day.day() == 1 && day.month() % 3 == 1),
    ]
}

/// Many times a day: compared on the days around every change of the clocks.
fn dense() -> Vec<Case> {
    vec![
        case("*/15 * * * *", [0, 15, 30, 45], 0..24, any_day),
        case("7 * * * *", [7], 0..24, any_day),
        case("*/20 0-3 * * *", [0, 20, 40], 0..4, any_day),
        case("0 */2 * * *", [0], (0..24).step_by(2), any_day),
        case("* 2 * * *", 0..60, [2], any_day),
        case("*/10 * * * 0,6", (0..60).step_by(10), 0..24, |day| matches!(weekday(day), 0 | 6)),
    ]
}

impl Case {
    /// One hour and one minute: then it fires once on a day, whatever the clocks do.
    fn is_fixed(&self) -> bool {
        self.hours.len() == 1 && self.minutes.len() == 1
    }

    /// All instants on these days.
    fn instants(&self, zone: &TimeZone, days: impl Iterator<Item = Date>) -> BTreeSet<i64> {
        let mut instants = BTreeSet::new();
        for day in days.filter(|day| (self.day)(*day)) {
            for hour in &self.hours {
                for minute in &self.minutes {
                    self.add(zone, day.at(*hour, *minute, 0, 0), &mut instants);
                }
            }
        }
        instants
    }

    fn add(&self, zone: &TimeZone, shown: DateTime, instants: &mut BTreeSet<i64>) {
        let ambiguous = zone.to_ambiguous_timestamp(shown);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => {
                instants.insert(offset.to_timestamp(shown).unwrap().as_second());
            }
            AmbiguousOffset::Fold { before, after } => {
                instants.insert(before.to_timestamp(shown).unwrap().as_second());
                if !self.is_fixed() {
                    instants.insert(after.to_timestamp(shown).unwrap().as_second());
                }
            }
            AmbiguousOffset::Gap { .. } if self.is_fixed() => {
                // The first minute that exists.
                let mut later = shown;
                while matches!(zone.to_ambiguous_timestamp(later).offset(), AmbiguousOffset::Gap { .. }) {
                    later += 1.minute();
                }
                instants.insert(zone.to_timestamp(later).unwrap().as_second());
            }
            AmbiguousOffset::Gap { .. } => {}
        }
    }

    /// All that the rule finds, asked again and again from before the first one on.
    fn found(&self, name: &str, from: i64, to: i64) -> BTreeSet<i64> {
        let when = When::Cron { expression: self.expression.to_owned(), zone: name.to_owned() };
        let rule = Rule::new(&when).unwrap();
        let next = |at: Timestamp| rule.after(at).filter(|next| next.as_millis() < to * 1_000);
        let first = next(Timestamp::from_millis(from * 1_000 - 1));
        std::iter::successors(first, |at| next(*at)).map(|at| at.as_millis() / 1_000).collect()
    }

    fn compare(&self, name: &str, zone: &TimeZone, first: Date, last: Date) -> usize {
        let midnight = |day: Date| day.to_zoned(zone.clone()).unwrap().timestamp().as_second();
        let (from, to) = (midnight(first), midnight(last));
        let days = first.series(1.day()).take_while(|day| *day < last);
        let expected = self.instants(zone, days);
        let found = self.found(name, from, to);
        let wrong: Vec<_> = expected
            .symmetric_difference(&found)
            .take(5)
            .map(|second| {
                let at = jiff::Timestamp::from_second(*second).unwrap().to_zoned(zone.clone());
                format!("{at} is {}", if found.contains(second) { "too much" } else { "missing" })
            })
            .collect();
        assert!(wrong.is_empty(), "{} in {name}: {wrong:?}", self.expression);
        expected.len()
    }
}

/// Days on which the clocks change, with some around them.
fn changes(zone: &TimeZone) -> Vec<(Date, Date)> {
    let last = FIRST.checked_add(YEARS.years()).unwrap();
    let (from, to) = (FIRST.to_zoned(zone.clone()).unwrap(), last.to_zoned(zone.clone()).unwrap());
    let changes = zone.following(from.timestamp()).take_while(|change| change.timestamp() < to.timestamp());
    let day = |change: jiff::tz::TimeZoneTransition<'_>| change.timestamp().to_zoned(zone.clone()).date();
    let around = |day: Date| (day.checked_sub(2.days()).unwrap(), day.checked_add(3.days()).unwrap());
    changes.map(day).map(around).collect()
}

#[test]
fn cron_agrees_with_brute_force_for_twenty_zones_and_ten_years() {
    let last = FIRST.checked_add(YEARS.years()).unwrap();
    let mut instants = 0;
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        for case in sparse() {
            instants += case.compare(name, &zone, FIRST, last);
        }
    }
    assert!(instants > 500_000, "only {instants} were compared");
}

#[test]
fn cron_agrees_with_brute_force_around_every_change_of_the_clocks() {
    let (mut instants, mut days) = (0, 0);
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        for (first, last) in changes(&zone) {
            days += 1;
            for case in dense() {
                instants += case.compare(name, &zone, first, last);
            }
        }
    }
    assert!(days > 200 && instants > 200_000, "only {days} changes and {instants} instants were compared");
}

/// Whoever asks from the middle of a repeated or skipped hour gets the same.
#[test]
fn cron_asked_from_any_moment_finds_the_first_instant_after_it() {
    for name in ["Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Antarctica/Troll"] {
        let zone = TimeZone::get(name).unwrap();
        for (first, last) in changes(&zone).into_iter().take(4) {
            for case in [case("30 2 * * *", [30], [2], any_day), case("*/15 * * * *", [0, 15, 30, 45], 0..24, any_day)]
            {
                let days = first.series(1.day()).take_while(|day| *day < last);
                let expected = case.instants(&zone, days);
                let when = When::Cron { expression: case.expression.to_owned(), zone: name.to_owned() };
                let rule = Rule::new(&when).unwrap();
                let mut at = first.to_zoned(zone.clone()).unwrap().timestamp();
                let end = last.checked_sub(2.days()).unwrap().to_zoned(zone.clone()).unwrap().timestamp();
                while at < end {
                    let next = expected.range(at.as_second() + 1..).next().unwrap() * 1_000;
                    for millis in [0, 1, 999] {
                        let asked = Timestamp::from_millis(at.as_millisecond() + millis);
                        let found = rule.after(asked).unwrap().as_millis();
                        assert_eq!(found, next, "{} in {name}, asked at {at}", case.expression);
                    }
                    at += SignedDuration::from_secs(7 * 60 + 30);
                }
            }
        }
    }
}
