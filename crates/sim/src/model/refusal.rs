//! Too many operations at once: whether one may have been refused, and whether one must have been.

use outlast::Failure;
use outlast_core::failure::code;

use super::{At, Judge, Judged};
use crate::outcome::{Outcome, Settled};
use crate::tree::{Group, How, Kin, Made, Tree};

/// What stands between the key of an operation that was refused and the limit.
const SAID: &str = ": the run has ";

/// The key and the limit that a refusal tells.
pub(crate) fn refused(failure: &Failure) -> Option<(&str, usize)> {
    let (key, said) = failure.message.split_once(SAID).filter(|_| failure.code == code::LIMIT_EXCEEDED)?;
    let (limit, _) = said.split_once(" operations pending")?;
    Some((key, limit.parse().ok()?))
}

impl Judge<'_> {
    /// Judges a generation, which can have so many operations pending as its tree says.
    pub(super) fn within(&mut self, tree: &Tree, judge: impl FnOnce(&mut Self) -> Judged) -> Judged {
        let outer = std::mem::replace(&mut self.widest, width(tree));
        let judged = judge(self);
        self.widest = outer;
        judged
    }

    /// Whether an operation can have been one too many: it is the one that is named, and the program has more than may be
    /// pending.
    pub(super) fn is_refused(&self, at: &At<'_>, tree: &Tree, failure: &Failure) -> bool {
        let (Some((key, told)), Some(max)) = (refused(failure), self.facts.pending_max) else { return false };
        told == max && failure.permanent && self.widest > max && asks(tree) > 0 && at.place.has(key)
    }

    /// Operations of a group that are asked for in one breath do not all have room if they are too many.
    pub(super) fn has_room(&self, group: &Group, outcome: &Outcome) -> Result<(), String> {
        let together = matches!(group.made, Made::Sleeps | Made::Tasks | Made::Trio);
        let Some(max) = self.facts.pending_max.filter(|_| together && !self.facts.forked) else { return Ok(()) };
        let members = group.members.len();
        let at_once = group.members.iter().any(|member| matches!(member, Tree::Sleep(0)));
        // A signal that was aimed at it before is there as soon as it begins.
        let was_there = |winner: usize| matches!(group.members.get(winner), Some(Tree::Wait(_)));
        let began = match (group.how, outcome) {
            (How::All, Outcome::All(_)) => members,
            // The one too many is the first to settle, but for a sleep that is none.
            (How::Race, Outcome::Won(winner, _)) if !at_once && !was_there(*winner) => members,
            (How::AllSettled, Outcome::Settled(settled)) => {
                // A run that was cancelled before they were recorded began none of them.
                let never = |failure: &Failure| refused(failure).is_some() || failure.code == code::CANCELLED;
                let never = |one: &&Settled| matches!(one, Settled::Failed(failure) if never(failure));
                members - settled.iter().filter(never).count()
            }
            _ => 0,
        };
        if began <= max { Ok(()) } else { Err(format!("{began} operations began together, and {max} may be pending")) }
    }
}

/// How many operations that may be refused a node asks for itself.
fn asks(tree: &Tree) -> usize {
    match tree {
        Tree::Step(_)
        | Tree::Transaction(_)
        | Tree::Task(_)
        | Tree::Sleep(_)
        | Tree::SleepUntil(_)
        | Tree::Wait(_)
        | Tree::Approve(_)
        | Tree::Condition { .. }
        | Tree::Child(_) => 1,
        // The callback and what hands out its token; the wait and the sleep it races against.
        Tree::Callback(_) | Tree::Lent { .. } => 2,
        Tree::Seq(_)
        | Tree::Try(_)
        | Tree::Timed(_)
        | Tree::Scope(_)
        | Tree::Cleanup { .. }
        | Tree::Batch(_)
        | Tree::Group(_)
        | Tree::Started { .. }
        | Tree::Now
        | Tree::Uuid
        | Tree::Random
        | Tree::Emit
        | Tree::SetState
        | Tree::Fail
        | Tree::Panic
        | Tree::Renew(_) => 0,
    }
}

/// How many operations can be pending at once while a tree is played, at most.
fn width(tree: &Tree) -> usize {
    match tree {
        Tree::Seq(parts) => {
            let mut behind = 0;
            let mut widest = 0;
            for part in parts {
                widest = widest.max(behind + width(part));
                behind += left(part);
            }
            widest
        }
        Tree::Try(part) | Tree::Timed(part) | Tree::Scope(part) => width(part),
        Tree::Cleanup { body, cleanup } => width(body).max(left(body) + width(cleanup)),
        Tree::Batch(batch) => batch.branches.iter().map(width).sum(),
        Tree::Group(group) => group.members.iter().map(width).sum(),
        Tree::Started { first, meanwhile, .. } => width(first) + width(meanwhile),
        tree => asks(tree),
    }
}

/// How many of them may still be pending when it is over, at most.
fn left(tree: &Tree) -> usize {
    match tree {
        Tree::Seq(parts) => parts.iter().map(left).sum(),
        Tree::Try(part) | Tree::Timed(part) => left(part),
        Tree::Cleanup { body, cleanup } => left(body) + left(cleanup),
        // What is open in a scope ends with it.
        Tree::Scope(_) => 0,
        Tree::Batch(_) | Tree::Group(_) => width(tree),
        Tree::Started { first, meanwhile, .. } => width(first) + left(meanwhile),
        Tree::Lent { .. } | Tree::Callback(_) => 1,
        Tree::Child(child) => usize::from(child.how == Kin::Left),
        _ => 0,
    }
}
