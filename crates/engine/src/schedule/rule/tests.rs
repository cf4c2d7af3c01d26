//! What a rule says, and what cannot be one.

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn cron_rule(expression: &str, zone: &str) -> Result<Rule, String> {
    Rule::new(&When::Cron { expression: expression.to_owned(), zone: zone.to_owned() })
}

fn times(rule: &Rule, after: &str, count: usize) -> Vec<String> {
    let times = std::iter::successors(rule.after(at(after)), |at| rule.after(*at));
    times.take(count).map(|at| Utc(at).to_string()).collect()
}

#[test]
fn hour_that_is_skipped_is_made_up_for_right_behind_it() {
    let rule = cron_rule("30 2 * * *", "Europe/Berlin").unwrap();
    let expected = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    assert_eq!(times(&rule, "2026-03-27T12:00:00Z", 3), expected);
}

#[test]
fn hour_that_is_repeated_counts_once_for_one_time_a_day_and_twice_for_every_so_often() {
    let daily = cron_rule("30 2 * * *", "Europe/Berlin").unwrap();
    let expected = ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    assert_eq!(times(&daily, "2026-10-24T12:00:00Z", 2), expected);
    let often = cron_rule("*/30 * * * *", "Europe/Berlin").unwrap();
    let expected = ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"];
    assert_eq!(times(&often, "2026-10-24T23:30:00Z", 4), expected);
}

#[test]
fn seconds_and_years_are_understood() {
    let rule = cron_rule("*/20 59 23 31 12 * 2026", "UTC").unwrap();
    let expected = ["2026-12-31T23:59:00Z", "2026-12-31T23:59:20Z", "2026-12-31T23:59:40Z"];
    assert_eq!(times(&rule, "2026-01-01T00:00:00Z", 9), expected);
}

#[test]
fn interval_is_counted_from_the_epoch() {
    let rule = Rule::new(&When::Every { every_ms: 3_600_000, offset_ms: 60_000 }).unwrap();
    assert_eq!(times(&rule, "2026-01-01T00:00:30Z", 2), ["2026-01-01T00:01:00Z", "2026-01-01T01:01:00Z"]);
    assert_eq!(times(&rule, "2026-01-01T00:01:00Z", 1), ["2026-01-01T01:01:00Z"], "strictly after");
    assert_eq!(times(&rule, "1969-12-31T23:59:00Z", 1), ["1970-01-01T00:01:00Z"]);
    assert_eq!(rule.after(Timestamp::MAX), None, "and not in the past");
}

#[test]
fn one_shot_is_due_however_late_it_is_put_and_once() {
    let rule = Rule::new(&When::Once { at: at("2026-01-01T00:00:00Z") }).unwrap();
    let late = at("2026-06-01T00:00:00Z");
    assert_eq!(rule.first(late, None), Some(at("2026-01-01T00:00:00Z")));
    assert_eq!(rule.first(late, Some(at("2026-01-01T00:00:00Z"))), None);
    assert_eq!(rule.after(at("2026-01-01T00:00:00Z")), None);
}

#[test]
fn what_cannot_be_a_rule_says_why() {
    let refused = |expression: &str| cron_rule(expression, "UTC").unwrap_err();
    for (expression, why) in [
        ("", "empty"),
        ("* * *", "fields"),
        ("61 * * * *", "61"),
        ("* 24 * * *", "24"),
        ("x * * * *", "illegal character 'X'"),
        ("*/0 * * * *", "0"),
        ("5-1 * * * *", "5-1"),
    ] {
        let error = refused(expression);
        assert!(error.contains(&format!("{expression:?}")) && error.contains(why), "{error}");
    }
    let error = cron_rule("* * * * *", "Europe/Atlantis").unwrap_err();
    assert_eq!(
        error,
        "there is no time zone \"Europe/Atlantis\"; name one of the IANA database, like \"Europe/Berlin\""
    );
    let error = refused(&"1,".repeat(1_000));
    assert_eq!(error, "a cron expression may have at most 1024 bytes");
    for (every_ms, offset_ms) in [(0, 0), (-5, 0), (999, 0), (1_000, 1_000), (1_000, -1)] {
        assert!(Rule::new(&When::Every { every_ms, offset_ms }).is_err(), "{every_ms} {offset_ms}");
    }
}

#[test]
fn expression_that_matches_no_day_has_no_instant() {
    assert_eq!(cron_rule("0 0 30 2 *", "UTC").unwrap().after(at("2026-01-01T00:00:00Z")), None);
}
