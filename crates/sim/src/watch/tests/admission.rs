//! Flow control: who is let in, and whether there was room.

use outlast_core::commit::{Admission, Begin, Bound, Debounce, Limit, Single, Window};
use outlast_core::id::LimitKey;

use super::*;

fn limited(key: &str, max: u32) -> Admission {
    let limit = Limit { key: LimitKey::new(key).unwrap(), bound: Bound::Concurrency { max } };
    Admission { limits: vec![limit], ..Admission::default() }
}

fn single(replace: bool) -> Admission {
    let single = Single { key: LimitKey::new("k").unwrap(), replace, meta: None };
    Admission { single: Some(single), ..Admission::default() }
}

fn started(id: &str, admission: Admission, input: &'static str) -> NewRun {
    let mut new = new(id);
    (new.admission, new.input) = (Some(Box::new(admission)), json(input));
    new
}

fn start(sight: &mut Sight, new: &NewRun, now: i64) {
    let created = Created::Created { fence: Fence(0), at: at(now) };
    sight.told(at(now));
    sight.created(new, &created);
    sight.knocked(new, &created, at(now), ALONE);
}

fn join(sight: &mut Sight, new: &NewRun, other: &str, now: i64) {
    let joined = Created::Joined { run: RunId::new(other).unwrap(), status: Status::Queued };
    sight.created(new, &joined);
    sight.knocked(new, &joined, at(now), ALONE);
}

fn said(sight: &Sight) -> String {
    sight.findings.violations.iter().map(|found| found.text.as_str()).collect()
}

#[test]
fn one_too_many_under_a_limit_is_reported() {
    let mut sight = Sight::default();
    for id in ["a", "b"] {
        start(&mut sight, &started(id, limited("k", 1), "null"), 0);
    }
    sight.let_in(&[run("a")], at(1), ALONE);
    assert_eq!(said(&sight), "");
    sight.let_in(&[run("b")], at(2), ALONE);
    assert!(said(&sight).contains("has room for 1"), "{}", said(&sight));
}

#[test]
fn one_that_ended_gives_its_place_back() {
    let mut sight = Sight::default();
    for id in ["a", "b"] {
        start(&mut sight, &started(id, limited("k", 1), "null"), 0);
    }
    sight.let_in(&[run("a")], at(1), ALONE);
    sight.runs.get_mut(&run("a")).unwrap().ended = true;
    sight.let_in(&[run("b")], at(2), ALONE);
    assert_eq!(said(&sight), "");
}

#[test]
fn one_that_is_admitted_before_its_time_is_reported() {
    let mut sight = Sight::default();
    let later = Admission { begin: Begin::After(Duration::from_millis(100)), ..Admission::default() };
    start(&mut sight, &started("a", later, "null"), 0);
    sight.told(at(99));
    sight.let_in(&[run("a")], at(99), ALONE);
    assert!(said(&sight).contains("is to begin at"), "{}", said(&sight));
}

#[test]
fn one_of_a_higher_priority_that_is_passed_over_is_reported() {
    let mut sight = Sight::default();
    start(&mut sight, &started("low", limited("k", 2), "null"), 0);
    let mut high = started("high", limited("k", 2), "null");
    high.priority = 99;
    start(&mut sight, &high, 0);
    sight.let_in(&[run("low")], at(1), ALONE);
    assert!(said(&sight).contains("was passed over"), "{}", said(&sight));
}

#[test]
fn two_singletons_at_once_are_reported_and_one_that_is_told_to_make_way_is_not_admitted() {
    let mut sight = Sight::default();
    start(&mut sight, &started("a", single(false), "null"), 0);
    start(&mut sight, &started("b", single(false), "null"), 0);
    assert!(said(&sight).contains("has its place"), "{}", said(&sight));
    let mut sight = Sight::default();
    start(&mut sight, &started("a", single(true), "null"), 0);
    start(&mut sight, &started("b", single(true), "null"), 0);
    sight.let_in(&[run("a"), run("b")], at(1), ALONE);
    assert_eq!(said(&sight), "", "the first was told to stop before it began");
    start(&mut sight, &started("c", single(true), "null"), 2);
    sight.let_in(&[run("c")], at(3), ALONE);
    assert!(said(&sight).contains("it is a singleton"), "{}", said(&sight));
}

#[test]
fn a_second_run_within_a_window_is_reported() {
    let window = |ms| Window { key: LimitKey::new("k").unwrap(), window: Duration::from_millis(ms) };
    let admission = || Admission { window: Some(window(100)), ..Admission::default() };
    let mut sight = Sight::default();
    start(&mut sight, &started("a", admission(), "null"), 0);
    start(&mut sight, &started("b", admission(), "null"), 100);
    assert_eq!(said(&sight), "");
    start(&mut sight, &started("c", admission(), "null"), 150);
    assert!(said(&sight).contains("within the window"), "{}", said(&sight));
}

#[test]
fn a_debounced_run_begins_with_the_last_input_and_in_time() {
    let (wait, at_most) = (Duration::from_millis(100), Duration::from_millis(150));
    let debounce = || Debounce { key: LimitKey::new("k").unwrap(), wait, at_most };
    let admission = || Admission { debounce: Some(debounce()), ..Admission::default() };
    let mut sight = Sight::default();
    start(&mut sight, &started("a", admission(), "1"), 0);
    join(&mut sight, &started("b", admission(), "2"), "a", 80);
    assert_eq!(sight.lobby.get(&run("a")).unwrap().not_before, at(150), "no later than it may");
    sight.begins_with(&run("a"), &json("2"));
    assert_eq!(said(&sight), "");
    sight.begins_with(&run("a"), &json("1"));
    assert!(said(&sight).contains("the last start said"), "{}", said(&sight));
    join(&mut sight, &started("c", limited("k", 1), "3"), "a", 90);
    assert!(said(&sight).contains("for no reason"), "{}", said(&sight));
}

#[test]
fn one_whose_time_has_come_and_for_which_there_is_room_is_named() {
    let mut sight = Sight::default();
    let later = Admission { begin: Begin::After(Duration::from_millis(100)), ..Admission::default() };
    start(&mut sight, &started("later", later, "null"), 0);
    for id in ["a", "b"] {
        start(&mut sight, &started(id, limited("k", 1), "null"), 0);
    }
    sight.let_in(&[run("a")], at(1), ALONE);
    let named = |sight: &Sight, now: i64| -> Vec<String> {
        let held = sight.lobby.held_with_room(&sight.runs, at(now));
        held.into_iter().map(|(run, _)| run.id.to_string()).collect()
    };
    assert_eq!(named(&sight, 99), Vec::<String>::new(), "one waits for its time, one for a place");
    assert_eq!(named(&sight, 100), ["later"]);
    sight.runs.get_mut(&run("a")).unwrap().ended = true;
    assert_eq!(named(&sight, 100), ["b", "later"]);
}
