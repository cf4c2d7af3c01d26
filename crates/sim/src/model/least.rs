//! How long something must have taken.

use crate::outcome::{Outcome, Settled};
use crate::tree::{Tree, Work};

/// The longest delay between two attempts, in milliseconds.
const DELAY_MAX: u64 = 300_000;
/// The first delay between two checks of a condition, in milliseconds.
const CHECKS_APART: u64 = 200;

/// The fewest milliseconds in which a tree can have given this.
pub(super) fn least(tree: &Tree, outcome: &Outcome) -> u64 {
    match (tree, outcome) {
        (Tree::Seq(parts), Outcome::Seq(gave)) => parts.iter().zip(gave).map(|(part, gave)| least(part, gave)).sum(),
        (Tree::Try(part), Outcome::Tried(settled)) => least_to_settle(part, settled),
        (Tree::Timed(part), Outcome::Timed { gave, .. })
        | (Tree::Scope(part), Outcome::Scope(gave))
        | (Tree::Cleanup { body: part, .. }, Outcome::Body(gave)) => least(part, gave),
        (Tree::Step(work) | Tree::Transaction(work), Outcome::Step(attempt)) => least_work(work, *attempt),
        // What attempts that were lost with their workers took, nobody knows.
        (Tree::Task(errand), Outcome::Task(_)) => errand.later + errand.work.takes.unwrap_or(0),
        (Tree::Sleep(ms), Outcome::Done) => *ms,
        (Tree::Wait(wait), Outcome::NoSignal) => wait.timeout.unwrap_or(0),
        (Tree::Approve(timeout), Outcome::Undecided) => timeout.unwrap_or(0),
        (Tree::Condition { fails, .. }, Outcome::Condition(checked)) => delays(CHECKS_APART, checked + fails),
        (Tree::Batch(batch), Outcome::Batch { branches, .. }) => {
            let ended = batch.branches.iter().zip(branches);
            // One branch after another may have had to wait for room: the longest is the least anyway.
            ended.filter_map(|(branch, settled)| Some(least_to_settle(branch, settled.as_ref()?))).max().unwrap_or(0)
        }
        (Tree::Group(group), Outcome::All(gave)) => {
            group.members.iter().zip(gave).map(|(member, gave)| least(member, gave)).max().unwrap_or(0)
        }
        (Tree::Group(group), Outcome::Settled(settled)) => {
            group.members.iter().zip(settled).map(|(member, one)| least_to_settle(member, one)).max().unwrap_or(0)
        }
        (Tree::Group(group), Outcome::Won(place, gave)) => {
            group.members.get(*place).map_or(0, |member| least(member, gave))
        }
        (Tree::Started { first, meanwhile, .. }, Outcome::Started { meanwhile: gave, first: settled }) => {
            let first = settled.as_ref().map_or(0, |settled| least_to_settle(first, settled));
            least(meanwhile, gave).max(first)
        }
        (Tree::Lent { naps, .. }, Outcome::Lent { naps: won, .. }) => naps.iter().take(*won).sum(),
        (_, _) => 0,
    }
}

fn least_to_settle(tree: &Tree, settled: &Settled) -> u64 {
    match settled {
        Settled::Gave(outcome) => least(tree, outcome),
        Settled::Failed(_) => 0,
    }
}

/// The attempt that succeeded took its time, and came after the delays between those before it.
fn least_work(work: &Work, attempt: u32) -> u64 {
    work.takes.unwrap_or(0) + delays(work.delay, attempt.saturating_sub(1))
}

/// So many delays, each double the one before, of which half may be left to chance.
fn delays(first: u64, count: u32) -> u64 {
    (0..count).map(|nth| first.saturating_mul(1 << nth.min(20)).min(DELAY_MAX) / 2).sum()
}
