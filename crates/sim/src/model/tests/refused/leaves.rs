//! Single operations.

use serde_json::json;

use super::*;
use crate::model::{Answer, Decision};
use crate::tree::Call;

fn step(work: &Work) -> Tree {
    Tree::Step(work.clone())
}

#[test]
fn step_succeeds_with_the_first_attempt_that_does_not_fail() {
    let tree = step(&Work { fails: 1, attempts: 3, ..plain() });
    for facts in [calm(), disturbed()] {
        keeps(&tree, &facts, &output(Outcome::Step(2)));
        for attempt in [0, 1, 3, 4] {
            breaks(&tree, &facts, &output(Outcome::Step(attempt)), "gave Step");
        }
    }
}

#[test]
fn attempts_that_may_have_been_too_slow_make_the_number_uncertain() {
    let tree = step(&Work { fails: 1, attempts: 3, timeout: Some(1_000), ..plain() });
    breaks(&tree, &calm(), &output(Outcome::Step(3)), "gave Step(3)");
    keeps(&tree, &disturbed(), &output(Outcome::Step(3)));
    breaks(&tree, &disturbed(), &output(Outcome::Step(1)), "gave Step(1)");
    breaks(&tree, &disturbed(), &output(Outcome::Step(4)), "gave Step(4)");
}

#[test]
fn step_that_fails_too_often_fails_with_its_last_attempt() {
    let tree = step(&Work { fails: 5, attempts: 3, ..plain() });
    keeps(&tree, &calm(), &failed("planned", "attempt 3"));
    breaks(&tree, &calm(), &failed("planned", "attempt 2"), "attempt 2");
    breaks(&tree, &calm(), &failed("planned", "attempt 4"), "attempt 4");
    breaks(&tree, &calm(), &failed("other", "attempt 3"), "other");
    breaks(&tree, &calm(), &output(Outcome::Step(3)), "gave Step(3)");
}

#[test]
fn permanent_failure_is_the_first_one() {
    let tree = step(&Work { fails: 2, attempts: 3, permanent: true, ..plain() });
    let permanent = |message| Ended::Failed(failure("planned", message).permanent());
    keeps(&tree, &calm(), &permanent("attempt 1"));
    breaks(&tree, &calm(), &permanent("attempt 2"), "attempt 2");
    breaks(&tree, &calm(), &failed("planned", "attempt 1"), "attempt 1");
    breaks(&tree, &calm(), &output(Outcome::Step(3)), "gave Step(3)");
}

#[test]
fn step_is_out_of_time_only_if_it_has_a_limit() {
    let late = failed("timeout", "");
    breaks(&step(&Work { takes: Some(5_000), ..plain() }), &disturbed(), &late, "timeout");
    let slow = step(&Work { takes: Some(5_000), timeout: Some(1_000), ..plain() });
    keeps(&slow, &calm(), &late);
    breaks(&slow, &calm(), &output(Outcome::Step(1)), "gave Step(1)");
    let quick = step(&Work { timeout: Some(1_000), ..plain() });
    breaks(&quick, &calm(), &late, "timeout");
    keeps(&quick, &disturbed(), &late);
    let silent = Work { takes: Some(5_000), heartbeat: Some(1_000), ..plain() };
    keeps(&step(&silent), &calm(), &late);
    breaks(&step(&Work { beats: true, ..silent }), &calm(), &late, "timeout");
    let endless = step(&Work { takes: None, timeout: Some(1_000), ..plain() });
    breaks(&endless, &disturbed(), &output(Outcome::Step(1)), "gave Step(1)");
}

#[test]
fn step_is_in_doubt_only_if_it_runs_at_most_once_and_something_went_wrong() {
    let doubt = failed("step_in_doubt", "");
    let careful = step(&Work { at_most_once: true, ..plain() });
    keeps(&careful, &disturbed(), &doubt);
    breaks(&careful, &calm(), &doubt, "step_in_doubt");
    breaks(&step(&plain()), &disturbed(), &doubt, "step_in_doubt");
}

#[test]
fn sleep_until_an_instant_ends_no_earlier() {
    let tree = Tree::Seq(vec![Tree::Now, Tree::SleepUntil(50)]);
    let slept = |until, after| output(Outcome::Seq(vec![Outcome::Now(100), Outcome::SleptUntil { until, after }]));
    keeps(&tree, &calm(), &slept(150, 150));
    breaks(&tree, &calm(), &slept(150, 149), "it was 149");
    breaks(&tree, &calm(), &slept(149, 150), "it was 99");
}

#[test]
fn signal_is_one_that_was_sent_under_that_name_and_is_consumed_once() {
    let tree = Tree::Seq(vec![Tree::Wait(wait("a")), Tree::Wait(wait("a"))]);
    let got = |one: u32, two: u32| output(Outcome::Seq(vec![Outcome::Signal(json!(one)), Outcome::Signal(json!(two))]));
    let signals = |signals| told(Told { signals, ..Told::default() });
    let both = signals(vec![sent("a", json!(1), "1"), sent("a", json!(2), "2"), sent("b", json!(3), "3")]);
    keeps(&tree, &both, &got(1, 2));
    breaks(&tree, &both, &got(1, 1), "wait-1");
    breaks(&tree, &both, &got(1, 3), "wait-1");
    breaks(&tree, &both, &got(4, 1), "wait-0");
    let again = signals(vec![sent("a", json!(1), "1"), sent("a", json!(1), "1")]);
    breaks(&tree, &again, &got(1, 1), "wait-1");
    let twins = signals(vec![sent("a", json!(1), "1"), sent("a", json!(1), "2")]);
    keeps(&tree, &twins, &got(1, 1));
}

#[test]
fn aimed_signal_is_for_one_operation_only() {
    let tree = Tree::Seq(vec![Tree::Wait(wait("a")), Tree::Emit]);
    let aimed = |key: &str| Sent { aimed: Some(key.to_owned()), ..sent("a", json!(null), "1") };
    let signals = |one| told(Told { signals: vec![one], ..Told::default() });
    let got = output(Outcome::Seq(vec![Outcome::Signal(json!(null)), Outcome::Done]));
    keeps(&tree, &signals(aimed("wait-0")), &got);
    breaks(&tree, &signals(aimed("wait-1")), &got, "wait-0");
}

#[test]
fn wait_for_a_number_is_not_given_anything_else() {
    let tree = Tree::Wait(Wait { number: true, ..wait("a") });
    let facts = told(Told { signals: vec![sent("a", json!(1), "1"), sent("a", json!(null), "2")], ..Told::default() });
    keeps(&tree, &facts, &output(Outcome::Signal(json!(1))));
    breaks(&tree, &facts, &output(Outcome::Signal(json!(null))), "gave Signal");
}

#[test]
fn wait_is_late_only_if_it_has_a_timeout() {
    let patient = Tree::Wait(wait("a"));
    let in_time = Tree::Wait(Wait { timeout: Some(5), ..wait("a") });
    let or_fail = Tree::Wait(Wait { timeout: Some(5), or_fail: true, ..wait("a") });
    let late = failed("wait_timeout", "the deadline passed before the signal \"a\" came");
    keeps(&in_time, &calm(), &output(Outcome::NoSignal));
    breaks(&patient, &calm(), &output(Outcome::NoSignal), "gave NoSignal");
    breaks(&or_fail, &calm(), &output(Outcome::NoSignal), "gave NoSignal");
    keeps(&or_fail, &calm(), &late);
    breaks(&in_time, &calm(), &late, "wait_timeout");
    breaks(&patient, &calm(), &late, "wait_timeout");
    breaks(&or_fail, &calm(), &failed("wait_timeout", "the signal \"b\" did not come"), "wait_timeout");
}

#[test]
fn decision_is_one_that_was_made() {
    let decisions = vec![Decision { key: "approve-".to_owned(), approved: true }];
    let facts = told(Told { decisions, ..Told::default() });
    keeps(&Tree::Approve(None), &facts, &output(Outcome::Decided(true)));
    breaks(&Tree::Approve(None), &facts, &output(Outcome::Decided(false)), "gave Decided");
    breaks(&Tree::Approve(None), &calm(), &output(Outcome::Decided(true)), "gave Decided");
    breaks(&Tree::Approve(None), &facts, &output(Outcome::Undecided), "gave Undecided");
    keeps(&Tree::Approve(Some(5)), &facts, &output(Outcome::Undecided));
}

#[test]
fn callback_is_answered_as_somebody_answered_it() {
    let call = Call { submitted: true, fails: 0, timeout: None, heartbeat: None };
    let tree = |call: &Call| Tree::Callback(call.clone());
    let key = "callback-/__callback-0".to_owned();
    let no = failure("no", "not today");
    let answers = vec![Answer { key: key.clone(), what: Ok(json!(1)) }, Answer { key, what: Err(no.clone()) }];
    let facts = told(Told { answers, ..Told::default() });
    keeps(&tree(&call), &facts, &output(Outcome::Answered(json!(1))));
    keeps(&tree(&call), &facts, &Ended::Failed(no));
    breaks(&tree(&call), &facts, &output(Outcome::Answered(json!(2))), "gave Answered");
    breaks(&tree(&call), &facts, &failed("no", "not tomorrow"), "not tomorrow");
    breaks(&tree(&Call { submitted: false, ..call.clone() }), &facts, &output(Outcome::Answered(json!(1))), "gave");
    breaks(&tree(&call), &facts, &failed("timeout", ""), "timeout");
    keeps(&tree(&Call { heartbeat: Some(5), ..call.clone() }), &facts, &failed("timeout", ""));
    keeps(&tree(&Call { timeout: Some(5), ..call }), &facts, &failed("timeout", ""));
}

#[test]
fn condition_is_checked_exactly_as_often_as_it_must_be() {
    let met = condition(2, 3);
    keeps(&met, &calm(), &output(Outcome::Condition(2)));
    breaks(&met, &calm(), &output(Outcome::Condition(1)), "gave Condition");
    let given_up = condition(3, 3);
    let not_met = |checked: u32| Ended::Failed(with_data("condition_not_met", &checked));
    keeps(&given_up, &calm(), &not_met(3));
    breaks(&given_up, &calm(), &not_met(2), "condition_not_met");
    breaks(&met, &calm(), &not_met(3), "condition_not_met");
    breaks(&given_up, &calm(), &output(Outcome::Condition(3)), "gave Condition");
}

#[test]
fn chance_does_not_repeat_itself() {
    let ids = Tree::Seq(vec![Tree::Uuid, Tree::Uuid, Tree::Random, Tree::Random]);
    let drawn = |one: &str, two: &str, three, four| {
        let ids = [one, two].map(|id| Outcome::Uuid(id.to_owned())).into_iter();
        output(Outcome::Seq(ids.chain([Outcome::Random(three), Outcome::Random(four)]).collect()))
    };
    keeps(&ids, &calm(), &drawn("a", "b", 1, 2));
    breaks(&ids, &calm(), &drawn("a", "a", 1, 2), "uuid-1");
    breaks(&ids, &calm(), &drawn("a", "b", 1, 1), "random-3");
}

#[test]
fn what_cannot_fail_does_not() {
    for tree in [Tree::Sleep(1), Tree::Emit, Tree::SetState, Tree::Now, Tree::Uuid, Tree::Random] {
        breaks(&tree, &calm(), &failed("error", "why not"), "why not");
    }
    breaks(&Tree::Fail, &calm(), &output(Outcome::Done), "gave Done");
}
