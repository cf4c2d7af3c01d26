//! Several operations at once.

use outlast::BatchReason::{self, AllCompleted, FailureToleranceExceeded, MinSuccessfulReached};

use super::*;
use crate::tree::{Batch, Group, How, Made};

fn sleeps(how: How, naps: &[u64]) -> Tree {
    Tree::Group(Group { how, made: Made::Sleeps, members: naps.iter().map(|ms| Tree::Sleep(*ms)).collect() })
}

fn group(how: How, members: Vec<Tree>) -> Tree {
    Tree::Group(Group { how, made: Made::Scopes, members })
}

fn won(place: usize) -> Ended {
    output(Outcome::Won(place, Box::new(Outcome::Done)))
}

#[test]
fn race_of_sleeps_is_won_by_the_shortest_and_of_equals_by_the_first() {
    for how in [How::Race, How::Any] {
        let tree = sleeps(how, &[30, 10, 20, 10]);
        keeps(&tree, &disturbed(), &won(1));
        for place in [0, 2, 3] {
            breaks(&tree, &disturbed(), &won(place), "of sleeps of");
        }
        breaks(&tree, &disturbed(), &won(4), "which there is not");
    }
}

#[test]
fn winner_gave_what_it_can_give() {
    let tree = group(How::Race, vec![Tree::Sleep(5), Tree::Step(plain())]);
    keeps(&tree, &calm(), &output(Outcome::Won(1, Box::new(Outcome::Step(1)))));
    breaks(&tree, &calm(), &output(Outcome::Won(0, Box::new(Outcome::Step(1)))), "gave Step(1)");
    breaks(&tree, &calm(), &output(Outcome::All(vec![Outcome::Done, Outcome::Step(1)])), "awaits Race");
}

#[test]
fn race_fails_as_one_of_its_members_does() {
    let tree = group(How::Race, vec![Tree::Sleep(5), Tree::Fail]);
    keeps(&tree, &calm(), &failed("planned", "fail-1"));
    breaks(&tree, &calm(), &failed("planned", "fail-0"), "no member fails so");
}

#[test]
fn all_is_the_outcome_of_each_or_the_failure_of_one() {
    let tree = group(How::All, vec![Tree::Step(plain()), Tree::Sleep(5)]);
    keeps(&tree, &calm(), &output(Outcome::All(vec![Outcome::Step(1), Outcome::Done])));
    breaks(&tree, &calm(), &output(Outcome::All(vec![Outcome::Step(1)])), "awaits All");
    breaks(&tree, &calm(), &output(Outcome::All(vec![Outcome::Done, Outcome::Step(1)])), "gave Done");
    breaks(&tree, &calm(), &failed("planned", "attempt 1"), "no member fails so");
}

#[test]
fn any_fails_only_if_all_do() {
    let both = group(How::Any, vec![Tree::Fail, Tree::Fail]);
    let failures = |places: &[&str]| {
        let failures: Vec<Failure> = places.iter().map(|place| failure("planned", place)).collect();
        Ended::Failed(with_data("all_failed", &failures))
    };
    keeps(&both, &calm(), &failures(&["fail-0", "fail-1"]));
    breaks(&both, &calm(), &failures(&["fail-0"]), "awaits Any");
    breaks(&both, &calm(), &failures(&["fail-1", "fail-0"]), "fail-0");
    breaks(&both, &calm(), &failed("planned", "fail-0"), "awaits Any");
    let one = group(How::Any, vec![Tree::Fail, Tree::Sleep(5)]);
    keeps(&one, &calm(), &won(1));
    breaks(&one, &calm(), &failures(&["fail-0", "fail-1"]), "sleep-1");
}

#[test]
fn all_settled_tells_of_each_and_never_fails() {
    let tree = group(How::AllSettled, vec![Tree::Fail, Tree::Sleep(5)]);
    let settled = |settled| output(Outcome::Settled(settled));
    let bad = || Settled::Failed(failure("planned", "fail-0"));
    keeps(&tree, &calm(), &settled(vec![bad(), gave(Outcome::Done)]));
    breaks(&tree, &calm(), &settled(vec![bad()]), "awaits AllSettled");
    breaks(&tree, &calm(), &settled(vec![gave(Outcome::Done), bad()]), "gave Done");
    breaks(&tree, &calm(), &failed("planned", "fail-0"), "awaits AllSettled");
}

/// A batch of as many branches, of which those fail that are so many in front.
fn batch(total: usize, failing: usize) -> Batch {
    let branches = (0..total).map(|number| if number < failing { Tree::Fail } else { Tree::Emit }).collect();
    Batch { parallel: false, branches, concurrency: None, enough: None, tolerated: None, percent: None }
}

/// What became of its branches: `-` failed, `+` succeeded, `.` is open.
fn came_to(reason: BatchReason, branches: &str) -> Ended {
    let branches = branches.chars().enumerate().map(|(number, sign)| match sign {
        '-' => Some(Settled::Failed(failure("planned", &format!("fail-{number}")))),
        '+' => Some(gave(Outcome::Done)),
        _ => None,
    });
    output(Outcome::Batch { reason, branches: branches.collect() })
}

#[test]
fn batch_is_complete_when_all_branches_are() {
    let tree = Tree::Batch(batch(3, 0));
    keeps(&tree, &calm(), &came_to(AllCompleted, "+++"));
    for branches in ["++", "++.", "++++"] {
        breaks(&tree, &calm(), &came_to(AllCompleted, branches), "batch-");
    }
    keeps(&Tree::Batch(batch(0, 0)), &calm(), &came_to(AllCompleted, ""));
    breaks(&tree, &calm(), &came_to(AllCompleted, "+-+"), "ALL_COMPLETED");
}

#[test]
fn without_a_policy_one_failure_ends_a_batch() {
    let tree = Tree::Batch(batch(3, 2));
    keeps(&tree, &calm(), &came_to(FailureToleranceExceeded, "-.+"));
    keeps(&tree, &calm(), &came_to(FailureToleranceExceeded, "-"));
    breaks(&tree, &calm(), &came_to(FailureToleranceExceeded, "--+"), "2 failures");
    breaks(&tree, &calm(), &came_to(FailureToleranceExceeded, "..+"), "0 failures");
    breaks(&tree, &calm(), &came_to(AllCompleted, "--+"), "ALL_COMPLETED");
}

#[test]
fn tolerance_is_exceeded_by_one_more() {
    let tolerant = Tree::Batch(Batch { tolerated: Some(1), ..batch(4, 3) });
    keeps(&tolerant, &calm(), &came_to(FailureToleranceExceeded, "--.+"));
    breaks(&tolerant, &calm(), &came_to(FailureToleranceExceeded, "-..+"), "1 failures");
    breaks(&tolerant, &calm(), &came_to(FailureToleranceExceeded, "---+"), "3 failures");
    let half = Tree::Batch(Batch { percent: Some(50), ..batch(4, 3) });
    keeps(&half, &calm(), &came_to(FailureToleranceExceeded, "---+"));
    breaks(&half, &calm(), &came_to(FailureToleranceExceeded, "--.+"), "2 failures");
}

#[test]
fn minimum_is_reached_exactly_and_before_the_end() {
    let enough = Tree::Batch(Batch { enough: Some(2), ..batch(4, 1) });
    keeps(&enough, &calm(), &came_to(MinSuccessfulReached, "-++."));
    keeps(&enough, &calm(), &came_to(MinSuccessfulReached, ".++"));
    breaks(&enough, &calm(), &came_to(MinSuccessfulReached, "-+.."), "1 successes");
    breaks(&enough, &calm(), &came_to(MinSuccessfulReached, ".+++"), "3 successes");
    breaks(&Tree::Batch(batch(4, 0)), &calm(), &came_to(MinSuccessfulReached, "++"), "MIN_SUCCESSFUL");
    breaks(&enough, &calm(), &came_to(FailureToleranceExceeded, "-++."), "FAILURE_TOLERANCE");
}

#[test]
fn no_more_branches_run_than_may() {
    let two = Tree::Batch(Batch { concurrency: Some(2), ..batch(4, 1) });
    keeps(&two, &calm(), &came_to(FailureToleranceExceeded, "-."));
    breaks(&two, &calm(), &came_to(FailureToleranceExceeded, "-.."), "2 branches were open");
    let none = Tree::Batch(Batch { concurrency: Some(0), ..batch(0, 0) });
    keeps(&none, &calm(), &failed("validation_error", ""));
    breaks(&none, &calm(), &came_to(AllCompleted, ""), "nothing may run");
    breaks(&two, &calm(), &failed("validation_error", ""), "validation_error");
}

#[test]
fn branches_come_to_what_they_can() {
    let tree = Tree::Batch(Batch { tolerated: Some(2), ..batch(2, 1) });
    keeps(&tree, &calm(), &came_to(AllCompleted, "-+"));
    breaks(&tree, &calm(), &came_to(AllCompleted, "+-"), "fail-0");
    breaks(&tree, &calm(), &Ended::Failed(stopped()), "by request 1 of 0");
    keeps(&tree, &cancelled(1), &Ended::Failed(stopped()));
}
