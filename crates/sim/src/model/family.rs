//! Runs: their generations and their children.

use outlast::Failure;
use outlast_core::failure::code;

use super::{At, Judge, Judged, Past, refuse};
use crate::outcome::Outcome;
use crate::tree::{Child, Kin, Place, Tree, needs};

/// The number of the first generation.
const FIRST: u64 = 0;

/// What the generations of a run do, one after the other, as far as it comes.
pub fn generations(tree: &Tree) -> Vec<&Tree> {
    let mut all = vec![tree];
    let mut last = tree;
    while let Some(rest) = next(last) {
        all.push(rest);
        last = rest;
    }
    all
}

/// What the generation after this one does.
fn next(tree: &Tree) -> Option<&Tree> {
    match tree {
        Tree::Renew(rest) => Some(rest),
        Tree::Seq(parts) => parts.iter().find_map(next),
        Tree::Try(part) | Tree::Scope(part) => next(part),
        Tree::Batch(batch) => batch.branches.iter().find_map(next),
        // A new generation begins nowhere else.
        _ => None,
    }
}

/// Where a program panicked, if that is why it failed. Nothing in a program catches a panic, so that it is the run's end.
fn panicked(failure: &Failure) -> Option<&str> {
    let is_panic = failure.code == code::PANIC && failure.message.starts_with("the workflow panicked");
    let (_, place) = failure.message.rsplit_once(": ").filter(|_| is_panic)?;
    Some(place)
}

impl Judge<'_> {
    /// Whether a run can have given this.
    pub(super) fn run_gives(&mut self, run: Option<&str>, tree: &Tree, outcome: &Outcome, past: Past) -> Judged {
        let Outcome::Run { run: id, generation, gave } = outcome else {
            return Err(format!("a run gave {outcome:?}"));
        };
        if run.is_some_and(|run| run != id) {
            return Err(format!("the output of {id} is said to be that of {}", run.unwrap_or_default()));
        }
        let all = generations(tree);
        let place = generation.checked_sub(FIRST).and_then(|place| usize::try_from(place).ok());
        let Some(tree) = place.and_then(|place| all.get(place)) else {
            return Err(format!("{id} has {} generations, and ended in number {generation}", all.len()));
        };
        // How often it was asked to stop in one generation says nothing about another.
        let (at, past) = (At { run: Some(id), place: Place::root() }, Past { cancels: 0, ..past });
        self.within(tree, |judge| judge.gives(&at, tree, gave, past))
    }

    /// Whether a run can have failed so, in whichever generation.
    pub(super) fn run_fails(&mut self, run: Option<&str>, tree: &Tree, failure: &Failure, past: Past) -> Judged {
        // It may also be a child's, passed on.
        if panicked(failure).is_some_and(|place| needs(tree).panics.iter().any(|panic| panic == place)) {
            return Ok(past);
        }
        let mut why = Vec::new();
        for tree in generations(tree) {
            let at = At { run, place: Place::root() };
            let past = Past { cancels: 0, ..past };
            match self.within(tree, |judge| judge.attempt(|judge| judge.fails(&at, tree, failure, past))) {
                Ok(past) => return Ok(past),
                Err(reason) => why.push(reason),
            }
        }
        Err(why.join("; "))
    }

    pub(super) fn child_gives(
        &mut self,
        at: &At<'_>,
        tree: &Tree,
        child: &Child,
        outcome: &Outcome,
        past: Past,
    ) -> Judged {
        match (child.how, outcome) {
            (Kin::Awaited, Outcome::Run { run, .. }) if self.drawn.insert(run.clone()) => {
                let ended = self.run_gives(Some(run), &child.tree, outcome, past)?;
                Ok(Past { cancels: past.cancels, ..ended })
            }
            (Kin::Detached, Outcome::Detached(run)) if self.drawn.insert(run.clone()) => Ok(past),
            (Kin::Left, Outcome::Done) => Ok(past),
            (how, outcome) => refuse(at, tree, format_args!("is {how:?}, and gave {outcome:?}")),
        }
    }

    /// A child fails as its tree does, or because somebody stopped it.
    pub(super) fn child_fails(
        &mut self,
        at: &At<'_>,
        tree: &Tree,
        child: &Child,
        failure: &Failure,
        past: Past,
    ) -> Judged {
        if child.how != Kin::Awaited {
            return refuse(at, tree, format_args!("is {:?}, and failed: {failure}", child.how));
        }
        let told = self.told(None);
        let is_stopped = failure.code == code::CANCELLED && failure.message.starts_with("the child run ");
        if is_stopped && (told.cancels > 0 || told.terminated) {
            return Ok(past);
        }
        let ended = self.run_fails(None, &child.tree, failure, past)?;
        Ok(Past { cancels: past.cancels, ..ended })
    }
}
