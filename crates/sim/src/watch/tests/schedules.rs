//! Schedules: what is fired against what they say.

use outlast::Overlap;
use outlast_core::id::{Revision, ScheduleId};
use outlast_store::{Fire, Fired, Schedule};

use super::super::schedules::{Says, instant_of};
use super::*;

/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600_000;

fn spec(overlap: &str) -> Bytes {
    let spec = serde_json::json!({
        "when": { "every": { "every_ms": 5_000, "offset_ms": 0 } },
        "until": null, "overlap": overlap, "catch_up_ms": 20_000, "jitter_ms": 0, "remaining": null,
    });
    Bytes::from(spec.to_string())
}

/// A schedule every five seconds, put at the new year.
fn put(overlap: &str) -> Sight {
    let mut sight = Sight::default();
    let schedule = Schedule {
        namespace: Namespace::default_namespace(),
        id: ScheduleId::new("s").unwrap(),
        revision: Revision(0),
        spec: spec(overlap),
        state: json(r#"{"paused":null}"#),
        next_at: None,
    };
    sight.schedule_put(&schedule, at(NEW_YEAR));
    sight
}

/// Fires so many seconds after the new year, the instant of `due` with the run of `run`.
fn fire(sight: &mut Sight, seconds: i64, due: Option<i64>, run: Option<&str>) {
    let now = at(NEW_YEAR + seconds * 1_000);
    sight.told(now);
    let fire = Fire {
        namespace: Namespace::default_namespace(),
        id: ScheduleId::new("s").unwrap(),
        revision: Revision(1),
        at: due.map(|due| at(NEW_YEAR + due * 1_000)),
        state: json(r#"{"paused":null}"#),
        next_at: None,
        run: run.map(|run| new(&format!("s-2026-01-01T{run}"))),
    };
    let created = fire.run.as_ref().map(|_| Created::Created { fence: Fence(0), at: now });
    sight.fired(&fire, &Ok(Fired::Fired { revision: Revision(2), run: created.clone() }), now, ALONE);
    if let (Some(new), Some(created)) = (&fire.run, created) {
        sight.created(new, &created);
    }
}

fn passed(sight: &Sight) -> Vec<(i64, bool)> {
    let editions = sight.almanac.all().map(|(_, edition)| edition);
    let passed = editions.flat_map(|edition| &edition.passed);
    passed.map(|passed| ((passed.instant - NEW_YEAR) / 1_000, passed.late)).collect()
}

#[test]
fn an_instant_is_read_from_the_id_of_its_run() {
    let instant = |id: &str| instant_of("s", id);
    assert_eq!(instant("s-2026-01-01T00:00:00Z"), Some((NEW_YEAR, false)));
    assert_eq!(instant("s-2026-01-01T00:00:00.25Z-manual"), Some((NEW_YEAR + 250, true)));
    assert_eq!(instant("s-2024-02-29T23:59:59.007Z"), Some((1_709_251_199_007, false)));
    assert_eq!(instant("s-1969-12-31T23:59:59Z"), Some((-1_000, false)));
    assert_eq!(instant("other-2026-01-01T00:00:00Z"), None);
    assert_eq!(instant("s-soon"), None);
}

#[test]
fn what_a_schedule_says_is_read_and_its_instants_are_counted_from_the_epoch() {
    let says = Says::read(&spec("skip")).unwrap();
    assert_eq!((says.every, says.overlap, says.last(NEW_YEAR + 7_000)), (5_000, Overlap::Skip, NEW_YEAR + 5_000));
    let cron = r#"{"when":{"cron":{"expression":"*/15 * * * * *","zone":"UTC"}},"overlap":"allow","catch_up_ms":1,"jitter_ms":0,
        "until":17000}"#;
    let says = Says::read(cron.as_bytes()).unwrap();
    assert_eq!((says.every, says.last(100_000)), (15_000, 15_000));
}

#[test]
fn a_schedule_that_fires_each_instant_once_breaks_nothing() {
    let mut sight = put("allow");
    fire(&mut sight, 5, Some(5), Some("00:00:05Z"));
    fire(&mut sight, 10, Some(10), Some("00:00:10Z"));
    fire(&mut sight, 11, None, Some("00:00:11Z-manual"));
    assert_eq!(sight.findings.violations, []);
    assert_eq!(passed(&sight), []);
}

#[test]
fn an_instant_that_is_fired_twice_is_none_or_is_to_come_is_reported() {
    let broken = |seconds, due, run: &str| {
        let mut sight = put("allow");
        fire(&mut sight, 5, Some(5), Some("00:00:05Z"));
        fire(&mut sight, seconds, due, Some(run));
        sight.findings.violations.iter().map(|found| found.text.clone()).collect::<String>()
    };
    assert!(broken(6, Some(5), "00:00:05Z-again").contains("for the same instant"));
    assert!(broken(7, Some(7), "00:00:07Z").contains("no instant of its schedule"));
    assert!(broken(9, Some(10), "00:00:10Z").contains("never passed"));
}

#[test]
fn a_run_beside_the_one_before_it_is_reported_unless_that_is_allowed() {
    for (overlap, broken) in [("skip", true), ("buffer_all", true), ("allow", false)] {
        let mut sight = put(overlap);
        fire(&mut sight, 5, Some(5), Some("00:00:05Z"));
        fire(&mut sight, 10, Some(10), Some("00:00:10Z"));
        assert_eq!(sight.findings.violations.iter().any(|it| it.text.contains("had not ended")), broken, "{overlap}");
    }
}

#[test]
fn instants_that_are_passed_are_kept_and_those_that_came_too_late_are_told_apart() {
    let mut sight = put("skip");
    fire(&mut sight, 5, Some(5), Some("00:00:05Z"));
    fire(&mut sight, 32, Some(30), None);
    assert_eq!(passed(&sight), [(10, true), (15, false), (20, false), (25, false), (30, false)]);
}
