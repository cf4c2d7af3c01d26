//! Making a tree smaller: what a failing case is shrunk with.

use serde_json::Value;

use super::{Batch, Errand, Group, Made, Mishap, Tree, Wait, Work, is_valid};

/// How large a tree is: its nodes first, then its numbers. Counted on its JSON form, so that no part can be forgotten.
pub fn weight(tree: &Tree) -> u64 {
    count(&serde_json::to_value(tree).unwrap_or_default())
}

fn count(value: &Value) -> u64 {
    const NODE: u64 = 1_000_000;
    match value {
        Value::Null | Value::Bool(false) => 0,
        Value::Bool(true) => 1,
        Value::String(text) => text.len() as u64,
        // One more than it is, so that leaving it out is less than any number.
        Value::Number(number) => number.as_i64().map_or(0, i64::unsigned_abs).min(NODE / 8) + 1,
        Value::Array(parts) => NODE + parts.iter().map(count).sum::<u64>(),
        Value::Object(parts) => NODE + parts.values().map(count).sum::<u64>(),
    }
}

/// Trees that are a little smaller, each valid, the smallest first.
pub fn smaller(tree: &Tree) -> Vec<Tree> {
    let limit = weight(tree);
    let mut found: Vec<(u64, Tree)> = Vec::new();
    for candidate in candidates(tree) {
        let weight = weight(&candidate);
        if weight < limit && is_valid(&candidate) && !found.iter().any(|(_, known)| *known == candidate) {
            found.push((weight, candidate));
        }
    }
    found.sort_by_key(|(weight, _)| *weight);
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Whatever might be smaller: a part instead of the whole, the whole with a smaller part, fewer parts, smaller numbers.
fn candidates(tree: &Tree) -> Vec<Tree> {
    let mut all: Vec<Tree> = tree.parts().into_iter().cloned().collect();
    all.extend(replaced(tree));
    all.extend(fewer(tree));
    all.extend(plainer(tree));
    all
}

/// The same with one part made smaller.
fn replaced(tree: &Tree) -> Vec<Tree> {
    let mut all = Vec::new();
    for (number, part) in tree.parts().into_iter().enumerate() {
        all.extend(candidates(part).into_iter().map(|part| with_part(tree.clone(), number, part)));
    }
    all
}

fn with_part(mut tree: Tree, number: usize, part: Tree) -> Tree {
    match &mut tree {
        Tree::Seq(parts) => parts[number] = part,
        Tree::Try(inner) | Tree::Timed(inner) | Tree::Scope(inner) | Tree::Renew(inner) => **inner = part,
        Tree::Cleanup { body: first, cleanup: second } | Tree::Started { first, meanwhile: second, .. } => {
            **(if number == 0 { first } else { second }) = part;
        }
        Tree::Child(child) => *child.tree = part,
        Tree::Batch(batch) => batch.branches[number] = part,
        Tree::Group(group) => group.members[number] = part,
        Tree::Step(_)
        | Tree::Transaction(_)
        | Tree::Task(_)
        | Tree::Sleep(_)
        | Tree::SleepUntil(_)
        | Tree::Wait(_)
        | Tree::Approve(_)
        | Tree::Callback(_)
        | Tree::Condition { .. }
        | Tree::Lent { .. }
        | Tree::Now
        | Tree::Uuid
        | Tree::Random
        | Tree::Emit
        | Tree::SetState
        | Tree::Fail
        | Tree::Panic => {}
    }
    tree
}

/// The same with one part left out.
fn fewer(tree: &Tree) -> Vec<Tree> {
    match tree {
        Tree::Seq(parts) => without_one(parts).map(Tree::Seq).collect(),
        Tree::Batch(batch) => {
            without_one(&batch.branches).map(|branches| Tree::Batch(Batch { branches, ..batch.clone() })).collect()
        }
        Tree::Group(group) => {
            without_one(&group.members).map(|members| Tree::Group(Group { members, ..group.clone() })).collect()
        }
        Tree::Lent { wait, naps, last } => without_one(naps)
            .map(|naps| Tree::Lent { wait: wait.clone(), naps, last: *last })
            .chain([Tree::Wait(wait.clone())])
            .collect(),
        _ => Vec::new(),
    }
}

fn without_one<T: Clone>(parts: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0..parts.len()).map(|left_out| {
        let kept = parts.iter().enumerate().filter(move |(number, _)| *number != left_out);
        kept.map(|(_, part)| part.clone()).collect()
    })
}

/// The same kind of node with smaller numbers and fewer options.
fn plainer(tree: &Tree) -> Vec<Tree> {
    let plain = Tree::Step(Work { attempts: 1, takes: Some(0), ..Work::default() });
    match tree {
        Tree::Step(work) => vec![
            plain,
            Tree::Step(Work { timeout: None, ..work.clone() }),
            Tree::Step(Work { heartbeat: None, beats: false, ..work.clone() }),
            Tree::Step(Work { at_most_once: false, ..work.clone() }),
            Tree::Step(Work { permanent: false, ..work.clone() }),
            Tree::Step(Work { mishap: Mishap::Error, ..work.clone() }),
            Tree::Step(Work { spawned: false, ..work.clone() }),
            Tree::Step(Work { takes: Some(0), ..work.clone() }),
            Tree::Step(Work { fails: work.fails / 2, ..work.clone() }),
            Tree::Step(Work { attempts: work.attempts / 2, ..work.clone() }),
            Tree::Step(Work { delay: work.delay / 8, ..work.clone() }),
        ],
        Tree::Transaction(work) => vec![
            plain,
            Tree::Step(work.clone()),
            Tree::Transaction(Work { permanent: false, ..work.clone() }),
            Tree::Transaction(Work { mishap: Mishap::Error, ..work.clone() }),
            Tree::Transaction(Work { fails: work.fails / 2, ..work.clone() }),
            Tree::Transaction(Work { attempts: work.attempts / 2, ..work.clone() }),
            Tree::Transaction(Work { delay: work.delay / 8, ..work.clone() }),
        ],
        Tree::Task(errand) => plainer_errand(errand),
        Tree::Sleep(ms) => vec![Tree::Sleep(0), Tree::Sleep(ms / 2)],
        Tree::SleepUntil(ms) => vec![Tree::Sleep(ms.unsigned_abs()), Tree::SleepUntil(ms / 2)],
        Tree::Wait(wait) => plainer_wait(wait).into_iter().map(Tree::Wait).collect(),
        Tree::Approve(_) => vec![Tree::Approve(None)],
        Tree::Panic => vec![Tree::Fail],
        Tree::Condition { not, checks, fails, panics } => {
            let with = |not, checks, fails, panics| Tree::Condition { not, checks, fails, panics };
            vec![
                with(not / 2, *checks, *fails, *panics),
                with(*not, checks / 2, *fails, *panics),
                with(*not, *checks, fails / 2, *panics),
                with(*not, *checks, *fails, false),
            ]
        }
        Tree::Batch(batch) => vec![
            Tree::Batch(Batch { concurrency: None, ..batch.clone() }),
            Tree::Batch(Batch { enough: None, ..batch.clone() }),
            Tree::Batch(Batch { tolerated: None, ..batch.clone() }),
            Tree::Batch(Batch { percent: None, ..batch.clone() }),
            Tree::Batch(Batch { parallel: false, ..batch.clone() }),
        ],
        Tree::Group(Group { how, made: Made::Trio | Made::Family | Made::Started | Made::Tasks, members }) => {
            vec![Tree::Group(Group { how: *how, made: Made::Scopes, members: members.clone() })]
        }
        Tree::Lent { wait, naps, last } => {
            let waits = plainer_wait(wait).into_iter();
            waits.map(|wait| Tree::Lent { wait, naps: naps.clone(), last: *last }).collect()
        }
        Tree::Callback(call) => {
            let mut plain = call.clone();
            (plain.fails, plain.heartbeat, plain.submitted) = (0, None, false);
            vec![Tree::Callback(plain)]
        }
        Tree::Child(child) => {
            let mut plain = child.clone();
            plain.close = None;
            vec![Tree::Child(plain)]
        }
        _ => Vec::new(),
    }
}

/// The same work as a step, and tasks with fewer options.
fn plainer_errand(errand: &Errand) -> Vec<Tree> {
    let step = Tree::Step(errand.work.clone());
    let works = plainer(&step).into_iter().filter_map(|plainer| match plainer {
        Tree::Step(work) => Some(Errand { work, ..errand.clone() }),
        _ => None,
    });
    let errands = [
        Errand { alone: false, ..errand.clone() },
        Errand { priority: 0, ..errand.clone() },
        Errand { later: 0, ..errand.clone() },
        Errand { detached: false, ..errand.clone() },
    ];
    let errands: Vec<Tree> = works.chain(errands).map(Tree::Task).collect();
    std::iter::once(step).chain(errands).collect()
}

fn plainer_wait(wait: &Wait) -> Vec<Wait> {
    vec![
        Wait { timeout: None, or_fail: false, ..wait.clone() },
        Wait { or_fail: false, ..wait.clone() },
        Wait { number: false, ..wait.clone() },
        Wait { aimed: false, ..wait.clone() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use crate::tree::grow;

    #[test]
    fn every_candidate_is_smaller_and_valid() {
        for seed in 0..60 {
            let tree = grow(&mut Chance::new(seed), 6);
            for candidate in smaller(&tree) {
                assert!(is_valid(&candidate), "seed {seed}: {candidate:?}");
                assert!(weight(&candidate) < weight(&tree), "seed {seed}: {candidate:?}");
            }
        }
    }

    #[test]
    fn shrinking_ends_with_the_smallest_tree_that_still_shows_it() {
        let mut shown = 0;
        for seed in 0..200 {
            let mut tree = grow(&mut Chance::new(seed), 8);
            let shows = |tree: &Tree| tree.all().iter().any(|node| matches!(node, Tree::Condition { not: 2.., .. }));
            if !shows(&tree) {
                continue;
            }
            shown += 1;
            while let Some(next) = smaller(&tree).into_iter().find(|candidate| shows(candidate)) {
                tree = next;
            }
            assert!(matches!(tree, Tree::Condition { not: 2 | 3, checks: 1, fails: 0, .. }), "seed {seed}: {tree:?}");
        }
        assert!(shown > 10, "only {shown} seeds had such a condition");
    }

    #[test]
    fn shrinking_ends_also_if_everything_shows_it() {
        for seed in 0..25 {
            let mut tree = grow(&mut Chance::new(seed), 5);
            while let Some(next) = smaller(&tree).pop() {
                tree = next;
            }
            assert!(smaller(&tree).is_empty());
        }
    }
}
