//! Whole runs: their ends, their generations, their children.

use super::*;
use crate::tree::{Child, Kin};

fn child(tree: Tree, how: Kin) -> Tree {
    Tree::Child(Child { tree: Box::new(tree), how, close: None })
}

#[test]
fn run_is_cancelled_only_if_somebody_asked() {
    keeps(&Tree::Sleep(9), &cancelled(1), &Ended::Cancelled);
    breaks(&Tree::Sleep(9), &calm(), &Ended::Cancelled, "nobody asked");
}

#[test]
fn run_that_catches_everything_is_not_cancelled() {
    let caught = Tree::Seq(vec![Tree::Try(Box::new(Tree::Sleep(9))), Tree::Emit]);
    breaks(&caught, &cancelled(1), &Ended::Cancelled, "nothing in it passes that on");
    // A later generation may.
    let later = Tree::Seq(vec![caught, Tree::Renew(Box::new(Tree::Sleep(9)))]);
    keeps(&later, &cancelled(1), &Ended::Cancelled);
}

#[test]
fn run_is_terminated_only_if_somebody_asked() {
    keeps(&Tree::Sleep(9), &told(Told { terminated: true, ..Told::default() }), &Ended::Terminated);
    breaks(&Tree::Sleep(9), &cancelled(1), &Ended::Terminated, "nobody asked");
}

#[test]
fn output_is_the_runs_own_and_a_runs() {
    breaks(&Tree::Emit, &calm(), &output_of("s", 0, Outcome::Done), "said to be that of");
    breaks(&Tree::Emit, &calm(), &Ended::Output(Outcome::Done), "a run gave");
}

#[test]
fn generations_are_counted_and_none_is_left_out() {
    let tree = Tree::Seq(vec![Tree::Emit, Tree::Renew(Box::new(Tree::Step(plain())))]);
    keeps(&tree, &calm(), &output_of(RUN, 1, Outcome::Step(1)));
    breaks(&tree, &calm(), &output_of(RUN, 0, Outcome::Step(1)), "seq-");
    breaks(&tree, &calm(), &output_of(RUN, 2, Outcome::Step(1)), "2 generations, and ended in number 2");
    let passed = Outcome::Seq(vec![Outcome::Done, Outcome::Done]);
    breaks(&tree, &calm(), &output_of(RUN, 0, passed), "gave Done");
    let went_on = behind(vec![Outcome::Done], failure("continued", "the run goes on as its next generation"));
    breaks(&tree, &calm(), &Ended::Failed(went_on), "continued");
}

#[test]
fn run_may_fail_in_any_generation() {
    let tree = Tree::Seq(vec![Tree::Fail, Tree::Renew(Box::new(condition(1, 1)))]);
    keeps(&tree, &calm(), &Ended::Failed(behind(vec![], failure("planned", "fail-0"))));
    keeps(&tree, &calm(), &Ended::Failed(with_data("condition_not_met", &1)));
    breaks(&tree, &calm(), &Ended::Failed(with_data("condition_not_met", &2)), "condition_not_met");
}

#[test]
fn child_gives_what_its_tree_gives() {
    let tree = child(Tree::Step(plain()), Kin::Awaited);
    keeps(&tree, &calm(), &output(ran("c", 0, Outcome::Step(1))));
    breaks(&tree, &calm(), &output(ran("c", 0, Outcome::Step(2))), "gave Step(2)");
    breaks(&tree, &calm(), &output(ran("c", 1, Outcome::Step(1))), "ended in number 1");
    breaks(&tree, &calm(), &output(Outcome::Detached("c".to_owned())), "is Awaited");
}

#[test]
fn child_is_a_run_of_its_own() {
    let tree = Tree::Seq(vec![child(Tree::Emit, Kin::Awaited), child(Tree::Emit, Kin::Detached)]);
    let children = |one: &str, two: &str| {
        output(Outcome::Seq(vec![ran(one, 0, Outcome::Done), Outcome::Detached(two.to_owned())]))
    };
    keeps(&tree, &calm(), &children("c", "d"));
    breaks(&tree, &calm(), &children("c", "c"), "child-1");
}

#[test]
fn child_fails_as_its_tree_does() {
    let tree = child(Tree::Seq(vec![Tree::Fail]), Kin::Awaited);
    keeps(&tree, &calm(), &Ended::Failed(behind(vec![], failure("planned", "fail-0"))));
    breaks(&tree, &calm(), &failed("planned", "fail-0"), "of a child");
    let left = child(Tree::Fail, Kin::Left);
    breaks(&left, &calm(), &failed("planned", "fail-"), "is Left");
}

#[test]
fn child_is_stopped_only_if_somebody_stopped_it() {
    let tree = child(Tree::Sleep(9), Kin::Awaited);
    let stopped = failed("cancelled", "the child run c was cancelled: enough");
    breaks(&tree, &calm(), &stopped, "the child run");
    // That its parent was asked is another matter.
    breaks(&tree, &cancelled(1), &stopped, "the child run");
    let mut facts = calm();
    facts.told.insert("c".to_owned(), Told { cancels: 1, ..Told::default() });
    keeps(&tree, &facts, &stopped);
}

#[test]
fn signal_to_a_child_is_not_its_parents() {
    let tree = Tree::Seq(vec![child(Tree::Wait(wait("a")), Kin::Awaited), Tree::Wait(wait("a"))]);
    let got = |payload: &str| Outcome::Signal(json!(payload));
    let mut facts = told(Told { signals: vec![sent("a", json!("mine"), "1")], ..Told::default() });
    facts.told.insert("c".to_owned(), Told { signals: vec![sent("a", json!("its"), "1")], ..Told::default() });
    let both = |one, two| output(Outcome::Seq(vec![ran("c", 0, got(one)), got(two)]));
    keeps(&tree, &facts, &both("its", "mine"));
    breaks(&tree, &facts, &both("mine", "its"), "wait-");
}
