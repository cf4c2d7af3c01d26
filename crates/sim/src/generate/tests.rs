//! What grows.

use std::collections::BTreeSet;

use super::*;
use crate::tree::is_valid;

fn trees() -> Vec<Tree> {
    (0..300).map(|seed| grow(&mut Chance::new(seed), 4 + u32::try_from(seed % 9).unwrap())).collect()
}

#[test]
fn every_kind_of_node_grows_within_three_hundred_seeds() {
    let trees = trees();
    let nodes: Vec<&Tree> = trees.iter().flat_map(Tree::all).collect();
    let kinds: BTreeSet<&str> = nodes.iter().map(|node| node.kind()).collect();
    let all = [
        "seq",
        "try",
        "timed",
        "scope",
        "cleanup",
        "step",
        "transaction",
        "task",
        "sleep",
        "sleep until",
        "wait",
        "approve",
        "callback",
        "condition",
        "child",
        "batch",
        "group",
        "started",
        "lent",
        "now",
        "uuid",
        "random",
        "emit",
        "set state",
        "fail",
        "panic",
        "renew",
    ];
    assert_eq!(kinds, all.into_iter().collect());
    let groups: BTreeSet<String> = nodes
        .iter()
        .filter_map(|node| {
            if let Tree::Group(group) = node { Some(format!("{:?} {:?}", group.made, group.how)) } else { None }
        })
        .collect();
    assert_eq!(groups.len(), 24, "{groups:?}");
}

#[test]
fn every_option_grows_within_three_hundred_seeds() {
    let trees = trees();
    let mut seen = BTreeSet::new();
    for node in trees.iter().flat_map(Tree::all) {
        match node {
            Tree::Step(work) => {
                seen.extend(work.at_most_once.then_some("at most once"));
                seen.extend((work.permanent && work.fails > 0).then_some("permanent"));
                seen.extend((work.takes.is_none()).then_some("never returns"));
                seen.extend(work.spawned.then_some("spawned"));
                seen.extend((work.fails > 0 && work.mishap == Mishap::Panic).then_some("panics"));
                seen.extend((work.fails > 0 && work.mishap == Mishap::TooLarge).then_some("too large"));
                seen.extend((work.fails >= work.attempts).then_some("fails for good"));
                seen.extend((work.fails > 0 && work.fails < work.attempts).then_some("fails at first"));
                seen.extend((work.heartbeat.is_some() && work.beats).then_some("beats"));
                seen.extend((work.heartbeat.is_some() && !work.beats).then_some("silent"));
            }
            Tree::Transaction(work) => {
                seen.insert(match (work.fails > 0, work.mishap) {
                    (false, _) => "a transaction",
                    (true, Mishap::Error) => "a transaction that fails",
                    (true, Mishap::Panic) => "a transaction that panics",
                    (true, Mishap::TooLarge) => "a transaction that gives too much",
                });
            }
            Tree::Task(errand) => {
                seen.insert(if errand.detached { "a task for nobody" } else { "a task" });
                seen.extend(errand.alone.then_some("a task done alone"));
                seen.extend((errand.priority != 0).then_some("a task out of turn"));
                seen.extend((errand.later > 0).then_some("a task for later"));
            }
            Tree::Condition { fails: 1.., panics, .. } => {
                seen.insert(if *panics { "a check that panics" } else { "a check that fails" });
            }
            Tree::Wait(wait) => {
                seen.extend(wait.aimed.then_some("aimed"));
                seen.extend(wait.number.then_some("number"));
                seen.extend(wait.or_fail.then_some("or fail"));
                seen.extend(wait.timeout.is_none().then_some("for ever"));
            }
            Tree::Child(child) => {
                seen.insert(match child.how {
                    Kin::Awaited => "awaited",
                    Kin::Detached => "detached",
                    Kin::Left => "left",
                });
                seen.extend(child.close.map(|policy| match policy {
                    ClosePolicy::Cancel => "cancel",
                    ClosePolicy::Terminate => "terminate",
                    ClosePolicy::Abandon => "abandon",
                }));
            }
            Tree::Batch(batch) => {
                seen.insert(if batch.parallel { "parallel" } else { "map" });
                seen.extend(batch.concurrency.map(|max| if max == 0 { "none at once" } else { "few at once" }));
                seen.extend(batch.enough.map(|_| "enough"));
                seen.extend(batch.tolerated.map(|_| "tolerated"));
                seen.extend(batch.percent.map(|_| "percent"));
            }
            Tree::Callback(call) => {
                seen.insert(if call.submitted { "submitted" } else { "plain callback" });
                seen.extend(call.heartbeat.map(|_| "callback heartbeat"));
            }
            Tree::Started { last, .. } => {
                seen.insert(match last {
                    Last::Await => "awaited later",
                    Last::Cancel => "cancelled handle",
                    Last::Leave => "dropped handle",
                });
            }
            _ => {}
        }
    }
    assert_eq!(seen.len(), 44, "{seen:?}");
}

#[test]
fn what_grows_is_valid_and_small() {
    for (seed, tree) in trees().iter().enumerate() {
        assert!(is_valid(tree), "seed {seed}: {tree:?}");
        assert!(tree.all().len() <= 120, "seed {seed} has {} nodes", tree.all().len());
    }
}
