//! Panics, results that are too large, transactions, checks that fail, and what must be told again.

use super::*;
use crate::tree::Mishap;

fn panicking(who: &str, message: &str) -> Ended {
    failed("panic", &format!("{who} panicked at somewhere.rs:1: planned: {message}"))
}

#[test]
fn panic_of_a_body_is_a_failure_that_is_tried_again() {
    let tree = Tree::Step(Work { fails: 5, attempts: 3, mishap: Mishap::Panic, ..plain() });
    keeps(&tree, &calm(), &panicking("the body", "attempt 3"));
    breaks(&tree, &calm(), &panicking("the body", "attempt 1"), "attempt 1");
    breaks(&tree, &calm(), &failed("planned", "attempt 3"), "planned");
    let later = Tree::Step(Work { fails: 1, attempts: 3, mishap: Mishap::Panic, ..plain() });
    keeps(&later, &calm(), &output(Outcome::Step(2)));
}

#[test]
fn result_that_is_too_large_ends_the_step() {
    let tree = Tree::Step(Work { fails: 1, attempts: 3, mishap: Mishap::TooLarge, ..plain() });
    keeps(&tree, &calm(), &Ended::Failed(failure("limit_exceeded", "too much").permanent()));
    breaks(&tree, &calm(), &output(Outcome::Step(2)), "gave Step(2)");
    let small = Tree::Step(Work { fails: 0, attempts: 3, mishap: Mishap::TooLarge, ..plain() });
    breaks(&small, &calm(), &Ended::Failed(failure("limit_exceeded", "too much").permanent()), "too much");
}

#[test]
fn step_that_was_spawned_fails_for_want_of_a_runtime() {
    let tree = Tree::Step(Work { spawned: true, ..plain() });
    keeps(&tree, &calm(), &Ended::Failed(failure("no_runtime", "").permanent()));
    breaks(&tree, &calm(), &output(Outcome::Step(1)), "gave Step(1)");
}

#[test]
fn transaction_needs_sql() {
    let tree = Tree::Transaction(Work { fails: 1, attempts: 2, ..plain() });
    let (sql, unsupported) = (Facts { sql: true, ..calm() }, failure("transactions_unsupported", "").permanent());
    keeps(&tree, &sql, &output(Outcome::Step(2)));
    breaks(&tree, &sql, &output(Outcome::Step(1)), "gave Step(1)");
    breaks(&tree, &sql, &Ended::Failed(unsupported.clone()), "unsupported");
    keeps(&tree, &calm(), &Ended::Failed(unsupported));
    breaks(&tree, &calm(), &output(Outcome::Step(2)), "gave Step(2)");
}

#[test]
fn checks_that_fail_count() {
    let with = |not, checks, fails, panics| Tree::Condition { not, checks, fails, panics };
    keeps(&with(1, 4, 2, false), &calm(), &output(Outcome::Condition(1)));
    breaks(&with(1, 3, 2, false), &calm(), &output(Outcome::Condition(1)), "gave Condition");
    let not_met = |checked: u32| Ended::Failed(with_data("condition_not_met", &checked));
    keeps(&with(1, 3, 2, false), &calm(), &not_met(1));
    breaks(&with(1, 3, 2, false), &calm(), &not_met(3), "condition_not_met");
    keeps(&with(1, 3, 3, false), &calm(), &failed("planned", "attempt 3"));
    breaks(&with(1, 3, 3, false), &calm(), &failed("planned", "attempt 2"), "attempt 2");
    keeps(&with(1, 3, 3, true), &calm(), &panicking("the body", "attempt 3"));
    breaks(&with(1, 3, 3, true), &calm(), &failed("planned", "attempt 3"), "planned");
}

#[test]
fn panic_of_a_program_is_its_end_whoever_would_catch_it() {
    let tree = Tree::Seq(vec![Tree::Emit, Tree::Try(Box::new(Tree::Panic))]);
    keeps(&tree, &calm(), &panicking("the workflow", "panic-1.0"));
    breaks(&tree, &calm(), &panicking("the workflow", "panic-0"), "panic-0");
    breaks(&Tree::Panic, &calm(), &output(Outcome::Done), "gave Done");
}

#[test]
fn what_is_on_record_is_told_again() {
    let tree = Tree::Seq(vec![Tree::Now, Tree::Uuid, Tree::Random]);
    let gave = |now, id: &str, number| {
        output(Outcome::Seq(vec![Outcome::Now(now), Outcome::Uuid(id.to_owned()), Outcome::Random(number)]))
    };
    let recorded = [("now-0", "5"), ("uuid-1", "a"), ("random-2", "7")];
    let recorded = recorded.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let facts = Facts { recorded: Some(recorded.into()), ..calm() };
    keeps(&tree, &facts, &gave(5, "a", 7));
    breaks(&tree, &facts, &gave(6, "a", 7), "now-0");
    breaks(&tree, &facts, &gave(5, "b", 7), "uuid-1");
    breaks(&tree, &facts, &gave(5, "a", 8), "random-2");
}
