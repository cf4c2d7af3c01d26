//! What a schedule decides: every policy, at one table.

use bytes::Bytes;
use outlast_core::id::WorkflowName;

use super::*;
use crate::schedule::{Asked, Draft, Pause};

const MINUTE: i64 = 60_000;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_millis(minute * MINUTE)
}

/// Fires every minute.
fn plan(change: impl FnOnce(&mut Draft)) -> Plan {
    let mut draft = Draft { whens: vec![Asked::Every(Duration::from_secs(60))], ..Draft::default() };
    change(&mut draft);
    let spec = draft.spec("s", WorkflowName::new("w").unwrap(), None, &Bytes::from_static(b"null")).unwrap();
    Plan::new(Namespace::default_namespace(), ScheduleId::new("s").unwrap(), spec).unwrap()
}

fn overlapping(overlap: Overlap) -> Plan {
    plan(|draft| draft.overlap = overlap)
}

/// Everything the plan does until it rests, with runs that are still going if `running` says so at first, and then because
/// they were just started.
fn play(plan: &Plan, state: &mut State, minute: i64, mut running: bool) -> Vec<String> {
    let mut done = Vec::new();
    loop {
        match plan.turn(state, at(minute), running) {
            Turn::Rest => return done,
            Turn::Stop(stop) => {
                done.push(format!("{stop:?}"));
                return done;
            }
            Turn::Write(Write { start, .. }) => {
                running |= start.is_some();
                done.push(start.map_or("write".to_owned(), |run| run.to_string()));
            }
        }
    }
}

fn waiting(state: &State) -> Vec<i64> {
    state.waiting.iter().map(|waiting| waiting.at.as_millis() / MINUTE).collect()
}

#[test]
fn first_instant_is_after_now_and_starts_a_run_named_for_it() {
    let plan = overlapping(Overlap::Skip);
    let mut state = plan.begin(at(10));
    assert_eq!(state.next, Some(at(11)));
    assert_eq!(play(&plan, &mut state, 10, false), [""; 0]);
    assert_eq!(play(&plan, &mut state, 11, false), ["s-1970-01-01T00:11:00Z"]);
    assert_eq!((state.next, state.done), (Some(at(12)), Some(at(11))));
    assert_eq!(play(&plan, &mut state, 11, false), [""; 0], "and not again");
}

#[test]
fn overlap_decides_what_becomes_of_three_instants_while_a_run_goes_on() {
    let expected: [(Overlap, &[&str], &[i64], u64); 6] = [
        (Overlap::Skip, &["write"], &[], 3),
        (Overlap::Allow, &["s-1970-01-01T00:01:00Z", "s-1970-01-01T00:02:00Z", "s-1970-01-01T00:03:00Z"], &[], 0),
        (Overlap::BufferOne, &["write"], &[1], 2),
        (Overlap::BufferAll, &["write"], &[1, 2, 3], 0),
        (Overlap::CancelPrevious, &["write", "Cancel"], &[3], 2),
        (Overlap::TerminatePrevious, &["write", "Terminate"], &[3], 2),
    ];
    for (overlap, done, left, skipped) in expected {
        let plan = overlapping(overlap);
        let mut state = plan.begin(at(0));
        assert_eq!(play(&plan, &mut state, 3, true), done, "{overlap:?}");
        assert_eq!(waiting(&state), left, "{overlap:?}");
        assert_eq!(state.skipped, skipped, "{overlap:?}");
        assert_eq!(state.next, Some(at(4)), "{overlap:?}");
    }
}

#[test]
fn what_waits_starts_one_after_the_other_when_the_run_before_it_has_ended() {
    let plan = overlapping(Overlap::BufferAll);
    let mut state = plan.begin(at(0));
    play(&plan, &mut state, 2, true);
    assert_eq!(plan.look_at(&state), Some(at(1)), "whenever somebody looks");
    assert_eq!(play(&plan, &mut state, 2, false), ["s-1970-01-01T00:01:00Z"], "and no more: that one runs");
    assert_eq!(play(&plan, &mut state, 2, true), [""; 0]);
    assert_eq!(play(&plan, &mut state, 2, false), ["s-1970-01-01T00:02:00Z"]);
    assert_eq!(plan.look_at(&state), Some(at(3)));
}

#[test]
fn at_most_a_hundred_wait() {
    let plan = overlapping(Overlap::BufferAll);
    let mut state = plan.begin(at(0));
    play(&plan, &mut state, 150, true);
    assert_eq!((state.waiting.len(), state.skipped), (100, 50));
}

#[test]
fn what_is_later_than_the_window_is_missed_and_the_rest_is_caught_up() {
    let plan = plan(|draft| {
        draft.overlap = Overlap::Allow;
        draft.catch_up = Some(Duration::from_secs(3 * 60));
    });
    let mut state = plan.begin(at(0));
    let done = play(&plan, &mut state, 1_000, false);
    let instants =
        ["s-1970-01-01T16:37:00Z", "s-1970-01-01T16:38:00Z", "s-1970-01-01T16:39:00Z", "s-1970-01-01T16:40:00Z"];
    assert_eq!(done, instants, "997 to 1000");
    assert_eq!(state.recent[0].outcome, FiringOutcome::Missed);
    assert_eq!(state.next, Some(at(1_001)));
}

#[test]
fn long_absence_is_dealt_with_in_few_writes() {
    let plan = plan(|draft| draft.catch_up = Some(Duration::from_secs(86_400 * 365)));
    let mut state = plan.begin(at(0));
    let done = play(&plan, &mut state, 1_440 * 3, false);
    assert_eq!(done[0], "s-1970-01-01T00:01:00Z");
    assert!(done.len() <= 6, "{} writes for 4,320 instants", done.len());
    assert_eq!((state.started, state.skipped), (1, 4_319));
}

#[test]
fn clock_that_goes_back_fires_nothing_again() {
    let plan = overlapping(Overlap::Allow);
    let mut state = plan.begin(at(0));
    play(&plan, &mut state, 5, false);
    for minute in 0..=5 {
        assert_eq!(play(&plan, &mut state, minute, false), [""; 0]);
    }
    assert_eq!(play(&plan, &mut state, 6, false), ["s-1970-01-01T00:06:00Z"]);
}

#[test]
fn jitter_is_the_same_for_everybody_different_for_each_instant_and_never_too_much() {
    let plan = plan(|draft| {
        draft.overlap = Overlap::Allow;
        draft.jitter = Duration::from_secs(30);
    });
    let late = |minute| plan.due(at(minute)).as_millis() - at(minute).as_millis();
    let lates: Vec<i64> = (1..1_000).map(late).collect();
    assert!(lates.iter().all(|late| (0..=30_000).contains(late)));
    assert_eq!(lates, (1..1_000).map(late).collect::<Vec<_>>());
    let mut distinct = lates.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 900, "{}", distinct.len());
    let mean = lates.iter().sum::<i64>() / 999;
    assert!((13_000..17_000).contains(&mean), "{mean}");
    // It is stored nowhere, so it must not change from release to release.
    assert_eq!(lates[..3], [10_086, 5_363, 4_583]);
    let mut state = plan.begin(at(0));
    let due = plan.due(at(1));
    let before = Timestamp::from_millis(due.as_millis() - 1);
    assert_eq!(plan.turn(&mut state, before, false), Turn::Rest);
    let write = Write { at: Some(due), start: Some(RunId::new("s-1970-01-01T00:01:00Z").unwrap()) };
    assert_eq!(plan.turn(&mut state, due, false), Turn::Write(write));
}

#[test]
fn number_of_times_counts_what_its_own_time_brings() {
    let plan = plan(|draft| {
        draft.overlap = Overlap::Allow;
        draft.remaining = Some(2);
    });
    let mut state = plan.begin(at(0));
    assert_eq!(plan.next_times(&state, 5).len(), 2);
    plan.trigger(&mut state, at(0), false);
    assert_eq!(play(&plan, &mut state, 9, false), ["s-1970-01-01T00:01:00Z", "s-1970-01-01T00:02:00Z"]);
    assert_eq!((state.next, state.remaining), (None, Some(0)));
    assert_eq!(plan.look_at(&state), None);
}

#[test]
fn one_that_is_replaced_while_it_waits_does_not_count() {
    let plan = plan(|draft| {
        draft.overlap = Overlap::CancelPrevious;
        draft.remaining = Some(2);
    });
    let mut state = plan.begin(at(0));
    play(&plan, &mut state, 3, true);
    assert_eq!((waiting(&state), state.remaining), (vec![3], Some(1)));
}

#[test]
fn instants_lie_between_beginning_and_end() {
    let plan = plan(|draft| {
        draft.from = Some(at(5));
        draft.until = Some(at(7));
    });
    let state = plan.begin(at(0));
    assert_eq!(plan.next_times(&state, 9), [at(5), at(6), at(7)], "both included");
    assert_eq!(plan.begin(at(7)).next, None);
}

#[test]
fn paused_schedule_starts_only_what_somebody_asks_for() {
    let plan = overlapping(Overlap::BufferAll);
    let mut state = plan.begin(at(0));
    play(&plan, &mut state, 1, true);
    state.paused = Some(Pause { reason: "lunch".to_owned(), at: at(1) });
    assert_eq!(play(&plan, &mut state, 9, false), [""; 0]);
    assert_eq!((plan.look_at(&state), plan.next_times(&state, 5)), (None, vec![]));
    assert_eq!(plan.backfill(&mut state, at(2), at(3)), Ok(2));
    assert_eq!(play(&plan, &mut state, 9, false), ["s-1970-01-01T00:02:00Z"]);
    assert!(plan.resume(&mut state, at(9)));
    assert!(!plan.resume(&mut state, at(9)));
    assert_eq!(state.next, Some(at(10)), "what passed meanwhile does not fire");
    assert_eq!(play(&plan, &mut state, 9, false), ["s-1970-01-01T00:01:00Z"], "what waited does");
}

#[test]
fn backfill_is_limited_complete_and_the_same_twice() {
    let plan = overlapping(Overlap::Skip);
    let mut state = plan.begin(at(500));
    assert_eq!(plan.backfill(&mut state, at(1), at(3)), Ok(3), "both included");
    assert_eq!(plan.backfill(&mut state, at(1), at(3)), Ok(3));
    assert_eq!(waiting(&state), [1, 2, 3], "none is skipped");
    assert_eq!(plan.backfill(&mut state, at(1), at(101)), Err(100));
}

#[test]
fn replaced_schedule_keeps_what_it_dealt_with() {
    let before = overlapping(Overlap::Allow);
    let mut state = before.begin(at(0));
    play(&before, &mut state, 5, false);
    let other = plan(|draft| draft.note = Some("new".to_owned()));
    let mut same = state.clone();
    other.replace(&before.spec, &mut same, at(9));
    assert_eq!(same.next, Some(at(6)), "the instants are the same: 6 to 9 are still to come");
    let hourly = plan(|draft| draft.whens = vec![Asked::Every(Duration::from_secs(3_600))]);
    hourly.replace(&before.spec, &mut state, at(9));
    assert_eq!(state.next, Some(at(60)));
    // A clock that went back: what was dealt with is not dealt with again.
    before.replace(&hourly.spec, &mut state, at(1));
    assert_eq!(state.next, Some(at(6)));
}

#[test]
fn trigger_goes_by_the_policy() {
    let plan = overlapping(Overlap::BufferOne);
    let mut state = plan.begin(at(0));
    let started = plan.trigger(&mut state, Timestamp::from_millis(30_500), false);
    assert_eq!(started.start.unwrap().as_str(), "s-1970-01-01T00:00:30.5Z-manual");
    assert_eq!(plan.trigger(&mut state, at(1), true), Write::default());
    assert_eq!(waiting(&state), [1]);
    plan.trigger(&mut state, at(2), true);
    assert_eq!((waiting(&state), state.skipped), (vec![1], 1));
}
