//! Outcomes that could not be: for each rule of the model one that keeps it and one that breaks it.

mod groups;
mod leaves;
mod limits;
mod mishaps;
mod runs;

use outlast::Failure;
use serde_json::{Value, json};

use crate::model::{Ended, Facts, Sent, Told, accepts};
use crate::outcome::{Outcome, Partial, Settled};
use crate::tree::{Tree, Wait, Work};

const RUN: &str = "r";

/// Nobody was told anything, and nothing went wrong.
fn calm() -> Facts {
    Facts {
        run: RUN.to_owned(),
        told: [(RUN.to_owned(), Told::default())].into(),
        calm: true,
        slack: Some(0),
        ..Facts::default()
    }
}

fn told(told: Told) -> Facts {
    Facts { told: [(RUN.to_owned(), told)].into(), ..calm() }
}

fn disturbed() -> Facts {
    Facts { calm: false, ..calm() }
}

fn cancelled(cancels: u32) -> Facts {
    told(Told { cancels, ..Told::default() })
}

/// What a run in its first generation gives.
fn output(gave: Outcome) -> Ended {
    output_of(RUN, 0, gave)
}

fn output_of(run: &str, generation: u64, gave: Outcome) -> Ended {
    Ended::Output(ran(run, generation, gave))
}

fn ran(run: &str, generation: u64, gave: Outcome) -> Outcome {
    Outcome::Run { run: run.to_owned(), generation, gave: Box::new(gave) }
}

fn failure(code: &str, message: &str) -> Failure {
    Failure::new(code, message)
}

fn failed(code: &str, message: &str) -> Ended {
    Ended::Failed(failure(code, message))
}

fn with_data(code: &str, data: &impl serde::Serialize) -> Failure {
    failure(code, "").with_data(serde_json::to_vec(data).unwrap())
}

/// A failure behind what a sequence did before.
fn behind(before: Vec<Outcome>, failure: Failure) -> Failure {
    Partial { before, ..Partial::default() }.wrap(failure.into()).into_failure()
}

fn stopped() -> Failure {
    Failure::cancelled("the run was cancelled: enough")
}

fn gave(outcome: Outcome) -> Settled {
    Settled::Gave(outcome)
}

fn plain() -> Work {
    Work { attempts: 1, takes: Some(0), ..Work::default() }
}

fn condition(not: u32, checks: u32) -> Tree {
    Tree::Condition { not, checks, fails: 0, panics: false }
}

fn wait(name: &str) -> Wait {
    Wait { name: name.to_owned(), number: false, aimed: false, timeout: None, or_fail: false }
}

fn sent(name: &str, payload: Value, id: &str) -> Sent {
    Sent { name: name.to_owned(), payload, id: id.to_owned(), aimed: None }
}

fn keeps(tree: &Tree, facts: &Facts, ended: &Ended) {
    if let Err(why) = accepts(tree, ended, facts) {
        panic!("{ended:?} was refused: {why}");
    }
}

/// Refused, and for this reason.
fn breaks(tree: &Tree, facts: &Facts, ended: &Ended, why: &str) {
    let refused = accepts(tree, ended, facts).expect_err("what could not be was accepted");
    assert!(refused.contains(why), "{refused}");
}

#[test]
fn sequence_gives_one_outcome_for_each_part() {
    let tree = Tree::Seq(vec![Tree::Sleep(1), Tree::Emit]);
    keeps(&tree, &calm(), &output(Outcome::Seq(vec![Outcome::Done, Outcome::Done])));
    breaks(&tree, &calm(), &output(Outcome::Seq(vec![Outcome::Done])), "1 outcomes for 2 parts");
}

#[test]
fn sequence_fails_as_the_part_fails_that_comes_next() {
    let tree = Tree::Seq(vec![Tree::Sleep(1), Tree::Fail, Tree::Emit]);
    let planned = failure("planned", "fail-1");
    keeps(&tree, &calm(), &Ended::Failed(behind(vec![Outcome::Done], planned.clone())));
    breaks(&tree, &calm(), &Ended::Failed(behind(vec![], planned.clone())), "sleep-0");
    breaks(&tree, &calm(), &Ended::Failed(planned.clone()), "did not say what came before");
    let after = behind(vec![Outcome::Done, Outcome::Done, Outcome::Done], planned);
    breaks(&tree, &calm(), &Ended::Failed(after), "after its last part");
    let elsewhere = behind(vec![Outcome::Done], failure("planned", "fail-2"));
    breaks(&tree, &calm(), &Ended::Failed(elsewhere), "fail-1");
}

#[test]
fn sequence_that_failed_did_before_what_it_says() {
    let tree = Tree::Seq(vec![Tree::Step(plain()), Tree::Fail]);
    let planned = failure("planned", "fail-1");
    keeps(&tree, &calm(), &Ended::Failed(behind(vec![Outcome::Step(1)], planned.clone())));
    breaks(&tree, &calm(), &Ended::Failed(behind(vec![Outcome::Step(2)], planned)), "gave Step(2)");
}

#[test]
fn time_does_not_go_back() {
    let tree = Tree::Seq(vec![Tree::Now, Tree::Now]);
    let times = |one, two| output(Outcome::Seq(vec![Outcome::Now(one), Outcome::Now(two)]));
    keeps(&tree, &calm(), &times(5, 5));
    breaks(&tree, &calm(), &times(5, 4), "it was 4 after it had been 5");
    keeps(&tree, &Facts { slack: Some(1), ..calm() }, &times(5, 4));
    keeps(&tree, &Facts { slack: None, ..calm() }, &times(5, 0));
}

#[test]
fn nothing_takes_less_time_than_it_must() {
    let slow = Tree::Step(Work { fails: 1, attempts: 2, delay: 100, ..plain() });
    let late = Tree::Wait(Wait { timeout: Some(100), ..wait("a") });
    let cases = [
        (Tree::Sleep(100), Outcome::Done, 100),
        (Tree::Seq(vec![Tree::Sleep(60), Tree::Sleep(40)]), Outcome::Seq(vec![Outcome::Done, Outcome::Done]), 100),
        (slow, Outcome::Step(2), 50),
        (Tree::Step(Work { takes: Some(100), ..plain() }), Outcome::Step(1), 100),
        (late, Outcome::NoSignal, 100),
        (Tree::Approve(Some(100)), Outcome::Undecided, 100),
        (condition(1, 2), Outcome::Condition(1), 100),
    ];
    for (part, gave, least) in cases {
        let tree = Tree::Timed(Box::new(part));
        let timed = |after| output(Outcome::Timed { before: 7, after, gave: Box::new(gave.clone()) });
        keeps(&tree, &calm(), &timed(7 + least));
        breaks(&tree, &calm(), &timed(6 + least), "were asked for");
    }
}

#[test]
fn cleanup_runs_if_its_body_was_cancelled_and_only_then() {
    let (body, cleanup) = (Box::new(Tree::Sleep(9)), Box::new(Tree::Step(plain())));
    let tree = Tree::Try(Box::new(Tree::Cleanup { body, cleanup }));
    let caught = |failure| output(Outcome::Tried(Box::new(Settled::Failed(failure))));
    let cleaned =
        |settled| Partial { cleaned: Some(settled), ..Partial::default() }.wrap(stopped().into()).into_failure();
    let facts = cancelled(1);
    keeps(&tree, &facts, &caught(cleaned(gave(Outcome::Step(1)))));
    keeps(&tree, &facts, &output(Outcome::Tried(Box::new(gave(Outcome::Body(Box::new(Outcome::Done)))))));
    breaks(&tree, &facts, &caught(stopped()), "did not clean up");
    breaks(&tree, &facts, &caught(cleaned(gave(Outcome::Step(2)))), "gave Step(2)");
    // What cleans up is cancelled by another request only.
    breaks(&tree, &facts, &caught(cleaned(Settled::Failed(stopped()))), "by request 2 of 1");
    keeps(&tree, &cancelled(2), &caught(cleaned(Settled::Failed(stopped()))));
}

#[test]
fn operation_is_cancelled_once_for_each_request() {
    let tried = || Tree::Try(Box::new(Tree::Sleep(9)));
    let caught = || Outcome::Tried(Box::new(Settled::Failed(stopped())));
    let tree = Tree::Seq(vec![tried(), tried()]);
    let twice = output(Outcome::Seq(vec![caught(), caught()]));
    breaks(&tree, &cancelled(1), &twice, "by request 2 of 1");
    keeps(&tree, &cancelled(2), &twice);
    breaks(&tree, &calm(), &twice, "by request 1 of 0");
}

#[test]
fn what_was_started_is_settled_if_it_is_awaited() {
    let tree = |last| Tree::Started { first: Box::new(Tree::Sleep(9)), meanwhile: Box::new(Tree::Emit), last };
    let started = |first: Option<Settled>| {
        output(Outcome::Started { meanwhile: Box::new(Outcome::Done), first: first.map(Box::new) })
    };
    use crate::tree::Last;
    keeps(&tree(Last::Await), &calm(), &started(Some(gave(Outcome::Done))));
    keeps(&tree(Last::Cancel), &calm(), &started(None));
    breaks(&tree(Last::Await), &calm(), &started(None), "Await");
    breaks(&tree(Last::Leave), &calm(), &started(Some(gave(Outcome::Done))), "Leave");
    let wrong = Settled::Failed(with_data("all_failed", &json!([])));
    breaks(&tree(Last::Await), &calm(), &started(Some(wrong)), "all_failed");
}

#[test]
fn wait_that_was_lent_wins_or_loses_every_race() {
    use crate::tree::Last;
    let tree = |last| Tree::Lent { wait: wait("a"), naps: vec![5, 5], last };
    let facts = told(Told { signals: vec![sent("a", json!(1), "1")], ..Told::default() });
    let lent =
        |naps, wait: Option<Outcome>| output(Outcome::Lent { naps, wait: wait.map(|outcome| Box::new(gave(outcome))) });
    keeps(&tree(Last::Cancel), &facts, &lent(1, Some(Outcome::Signal(json!(1)))));
    keeps(&tree(Last::Await), &facts, &lent(2, Some(Outcome::Signal(json!(1)))));
    keeps(&tree(Last::Leave), &facts, &lent(2, None));
    breaks(&tree(Last::Cancel), &facts, &lent(1, None), "1 of 2 sleeps won");
    breaks(&tree(Last::Cancel), &facts, &lent(2, Some(Outcome::Signal(json!(1)))), "2 of 2 sleeps won");
    breaks(&tree(Last::Await), &facts, &lent(2, None), "2 of 2 sleeps won");
    breaks(&tree(Last::Cancel), &facts, &lent(1, Some(Outcome::NoSignal)), "NoSignal");
}
