//! Operations that were one too many.

use super::*;
use crate::tree::{Group, How, Made};

fn few(pending_max: usize) -> Facts {
    Facts { pending_max: Some(pending_max), ..calm() }
}

fn too_many(key: &str, max: usize) -> Failure {
    failure("limit_exceeded", &format!("{key}: the run has {max} operations pending, which is the limit")).permanent()
}

fn naps(how: How, count: usize) -> Tree {
    Tree::Group(Group { how, made: Made::Sleeps, members: vec![Tree::Sleep(1); count] })
}

#[test]
fn only_an_operation_beyond_the_limit_is_refused_and_says_which_it_is() {
    let three = naps(How::All, 3);
    keeps(&three, &few(2), &Ended::Failed(too_many("sleep-2", 2)));
    breaks(&three, &calm(), &Ended::Failed(too_many("sleep-2", 2)), "no member fails so");
    breaks(&three, &few(2), &Ended::Failed(too_many("sleep-2", 3)), "no member fails so");
    breaks(&three, &few(2), &Ended::Failed(too_many("sleep-7", 2)), "no member fails so");
    breaks(&three, &few(3), &Ended::Failed(too_many("sleep-2", 3)), "no member fails so");
    let one_by_one = Tree::Seq(vec![Tree::Sleep(1), Tree::Sleep(1)]);
    let second = Ended::Failed(behind(vec![Outcome::Done], too_many("sleep-1", 1)));
    breaks(&one_by_one, &few(1), &second, "Sleep(1) failed");
}

#[test]
fn of_operations_that_begin_together_those_beyond_the_limit_are_refused() {
    let settled = |refused: usize| {
        let one = |place: usize| match place < 3 - refused {
            true => Settled::Gave(Outcome::Done),
            false => Settled::Failed(too_many(&format!("sleep-{place}"), 2)),
        };
        output(Outcome::Settled((0..3).map(one).collect()))
    };
    keeps(&naps(How::AllSettled, 3), &few(2), &settled(1));
    breaks(&naps(How::AllSettled, 3), &few(2), &settled(0), "began together");
    breaks(&naps(How::All, 3), &few(2), &output(Outcome::All(vec![Outcome::Done; 3])), "began together");
    keeps(&naps(How::All, 3), &few(3), &output(Outcome::All(vec![Outcome::Done; 3])));
}
