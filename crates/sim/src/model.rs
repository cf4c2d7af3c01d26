//! The model: whether what a run came to is possible at all. It knows the tree and what the outside knows, and nothing of
//! the engine.
//!
//! It does not foretell one outcome: when a signal comes and whether a deadline passes before it is up to the world. It walks
//! through the tree and the outcome side by side, and refuses whatever no world could have brought about.

mod facts;
mod family;
mod group;
mod leaf;
mod least;
mod refusal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use outlast::Failure;
use outlast_core::failure::code;
use serde::{Deserialize, Serialize};

use crate::interpret::PLANNED;
use crate::outcome::{Outcome, Partial, Settled};
use crate::tree::{Last, Place, Tree, Wait, first_place};
pub use facts::{Answer, Decision, Facts, Sent, Told};
pub use family::generations;
pub(crate) use leaf::{can_be_done, can_succeed, code_of, is_limited, is_permanent, is_slow};
pub(crate) use refusal::refused;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ended {
    /// With this output.
    Output(Outcome),
    /// With this failure.
    Failed(Failure),
    /// It was asked to stop, and did.
    Cancelled,
    /// It was ended without being asked.
    Terminated,
}

/// Whether a run of this tree can have ended so; if not, why not.
///
/// # Errors
///
/// If it cannot: which node came to what, and which rule that breaks.
pub fn accepts(tree: &Tree, ended: &Ended, facts: &Facts) -> Result<(), String> {
    let mut judge = Judge { facts, used: BTreeMap::new(), drawn: BTreeSet::new(), widest: 0 };
    let told = judge.told(Some(&facts.run));
    match ended {
        Ended::Output(outcome) => judge.run_gives(Some(&facts.run), tree, outcome, Past::default()).map(drop),
        Ended::Failed(failure) => judge.run_fails(Some(&facts.run), tree, failure, Past::default()).map(drop),
        Ended::Cancelled if told.cancels == 0 => Err("the run was cancelled, and nobody asked it to stop".to_owned()),
        Ended::Cancelled if !family::generations(tree).into_iter().any(can_be_cancelled) => {
            Err("the run was cancelled, and nothing in it passes that on".to_owned())
        }
        Ended::Terminated if !told.terminated => Err("the run was terminated, and nobody asked for that".to_owned()),
        Ended::Cancelled | Ended::Terminated => Ok(()),
    }
}

/// Whether a cancellation inside becomes its own.
fn can_be_cancelled(tree: &Tree) -> bool {
    match tree {
        Tree::Seq(parts) => parts.iter().any(can_be_cancelled),
        Tree::Timed(part) | Tree::Scope(part) => can_be_cancelled(part),
        Tree::Cleanup { body, .. } => can_be_cancelled(body),
        Tree::Group(group) => crate::tree::passes_failures_on(group.how) && group.members.iter().any(can_be_cancelled),
        Tree::Started { meanwhile, .. } => can_be_cancelled(meanwhile),
        Tree::Lent { naps, .. } => !naps.is_empty(),
        Tree::Child(child) => child.how != crate::tree::Kin::Left,
        Tree::Step(_)
        | Tree::Transaction(_)
        | Tree::Task(_)
        | Tree::Sleep(_)
        | Tree::SleepUntil(_)
        | Tree::Wait(_)
        | Tree::Approve(_)
        | Tree::Callback(_)
        | Tree::Condition { .. }
        | Tree::Batch(_) => true,
        Tree::Try(_)
        | Tree::Now
        | Tree::Uuid
        | Tree::Random
        | Tree::Emit
        | Tree::SetState
        | Tree::Fail
        | Tree::Panic
        | Tree::Renew(_) => false,
    }
}

/// What a program has behind it at some point.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    /// The latest time it was told, in milliseconds.
    now: i64,
    /// How often it was asked to stop, at least.
    cancels: u32,
}

impl Past {
    /// Behind both.
    fn join(self, other: Past) -> Past {
        Past { now: self.now.max(other.now), cancels: self.cancels.max(other.cancels) }
    }
}

/// What a check gives: what lies behind, or why not.
type Judged = Result<Past, String>;

/// Where a node stands.
#[derive(Clone)]
struct At<'a> {
    /// The run; none for a child that failed, which does not say who it was.
    run: Option<&'a str>,
    place: Place,
}

impl At<'_> {
    fn part(&self, number: usize) -> Self {
        At { run: self.run, place: self.place.part(number) }
    }

    fn moved(&self, place: Place) -> Self {
        At { run: self.run, place }
    }
}

/// Walks through tree and outcome, and remembers what can be used only once.
struct Judge<'f> {
    facts: &'f Facts,
    /// Which signals of a run were consumed.
    used: BTreeMap<String, BTreeSet<usize>>,
    /// Unique ids and random numbers.
    drawn: BTreeSet<String>,
    /// How many operations the run that is looked at can have pending at once.
    widest: usize,
}

impl Judge<'_> {
    /// Whether a node can have given this.
    fn gives(&mut self, at: &At<'_>, tree: &Tree, outcome: &Outcome, past: Past) -> Judged {
        match (tree, outcome) {
            (Tree::Seq(parts), Outcome::Seq(gave)) => {
                if parts.len() != gave.len() {
                    return refuse(at, tree, format_args!("gave {} outcomes for {} parts", gave.len(), parts.len()));
                }
                self.each(at, parts, gave, past)
            }
            (Tree::Try(part), Outcome::Tried(settled)) => self.settles(&at.part(0), part, settled, past),
            (Tree::Timed(part), Outcome::Timed { before, after, gave }) => {
                let begun = self.passes(at, tree, *before, past)?;
                let ended = self.gives(&at.part(0), part, gave, begun)?;
                self.took(at, part, gave, after.saturating_sub(*before))?;
                self.passes(at, tree, *after, ended)
            }
            (Tree::Scope(part), Outcome::Scope(gave)) => {
                self.gives(&at.moved(at.place.inside("scope").part(0)), part, gave, past)
            }
            (Tree::Cleanup { body, .. }, Outcome::Body(gave)) => self.gives(&at.part(0), body, gave, past),
            (Tree::Started { first, meanwhile, last }, Outcome::Started { meanwhile: gave, first: settled }) => {
                let ended = self.gives(&at.part(1), meanwhile, gave, past)?;
                match (settled, last) {
                    (Some(settled), Last::Await) => {
                        let first_at = at.moved(first_place(&at.place, first));
                        Ok(self.settles(&first_at, first, settled, past)?.join(ended))
                    }
                    (None, Last::Cancel | Last::Leave) => Ok(ended),
                    (_, last) => refuse(at, tree, format_args!("is to {last:?} what it started, and gave {settled:?}")),
                }
            }
            (Tree::Lent { wait, naps, last }, Outcome::Lent { naps: won, wait: settled }) => {
                self.lent(at, tree, (wait, naps.len(), *last), (*won, settled.as_deref()), past)
            }
            (Tree::Batch(batch), Outcome::Batch { reason, branches }) => {
                self.batch(at, tree, batch, (*reason, branches), past)
            }
            (Tree::Group(group), outcome) => self.group(at, tree, group, outcome, past),
            (Tree::Child(child), outcome) => self.child_gives(at, tree, child, outcome, past),
            (tree, outcome) => self.leaf_gives(at, tree, outcome, past),
        }
    }

    /// Whether a node can have failed so.
    fn fails(&mut self, at: &At<'_>, tree: &Tree, failure: &Failure, past: Past) -> Judged {
        if self.is_refused(at, tree, failure) {
            return Ok(past);
        }
        match tree {
            Tree::Seq(parts) => {
                let Some((partial, failure)) = Partial::unwrap(failure) else {
                    return refuse(at, tree, format_args!("failed and did not say what came before: {failure}"));
                };
                let Some(part) = parts.get(partial.before.len()) else {
                    return refuse(at, tree, "failed after its last part");
                };
                let begun = self.each(at, parts, &partial.before, past)?;
                self.fails(&at.part(partial.before.len()), part, &failure, begun)
            }
            Tree::Cleanup { body, cleanup } if failure.code == code::CANCELLED => {
                let Some((Partial { cleaned: Some(cleaned), .. }, failure)) = Partial::unwrap(failure) else {
                    return refuse(at, tree, "was cancelled and did not clean up");
                };
                let ended = self.fails(&at.part(0), body, &failure, past)?;
                self.settles(&at.part(1), cleanup, &cleaned, ended)
            }
            Tree::Cleanup { body, .. } => self.fails(&at.part(0), body, failure, past),
            Tree::Timed(part) => self.fails(&at.part(0), part, failure, past),
            Tree::Scope(part) => self.fails(&at.moved(at.place.inside("scope").part(0)), part, failure, past),
            Tree::Started { meanwhile, .. } => self.fails(&at.part(1), meanwhile, failure, past),
            Tree::Group(group) => self.group_fails(at, tree, group, failure, past),
            Tree::Fail if failure.code == PLANNED && failure.message == at.place.name("fail") => Ok(past),
            tree if can_be_cancelled(tree) && is_run_cancelled(failure) => self.is_asked_to_stop(at, tree, past),
            Tree::Child(child) => self.child_fails(at, tree, child, failure, past),
            tree => self.leaf_fails(at, tree, failure, past),
        }
    }

    fn settles(&mut self, at: &At<'_>, tree: &Tree, settled: &Settled, past: Past) -> Judged {
        match settled {
            Settled::Gave(outcome) => self.gives(at, tree, outcome, past),
            Settled::Failed(failure) => self.fails(at, tree, failure, past),
        }
    }

    /// One after the other.
    fn each(&mut self, at: &At<'_>, parts: &[Tree], gave: &[Outcome], past: Past) -> Judged {
        let pairs = parts.iter().zip(gave).enumerate();
        pairs.into_iter().try_fold(past, |past, (number, (part, gave))| self.gives(&at.part(number), part, gave, past))
    }

    /// The same, and nothing is remembered if it is refused.
    fn attempt(&mut self, judge: impl FnOnce(&mut Self) -> Judged) -> Judged {
        let (used, drawn) = (self.used.clone(), self.drawn.clone());
        judge(self).inspect_err(|_| (self.used, self.drawn) = (used, drawn))
    }

    /// A wait that was lent: it won against one of the sleeps, or all of them won.
    fn lent(
        &mut self,
        at: &At<'_>,
        tree: &Tree,
        (wait, naps, last): (&Wait, usize, Last),
        (won, settled): (usize, Option<&Settled>),
        past: Past,
    ) -> Judged {
        match settled {
            Some(settled) if won < naps || (won == naps && last == Last::Await) => {
                self.settles(at, &Tree::Wait(wait.clone()), settled, past)
            }
            None if won == naps && last != Last::Await => Ok(past),
            settled => refuse(at, tree, format_args!("{won} of {naps} sleeps won, and the wait gave {settled:?}")),
        }
    }

    /// Time does not go back.
    fn passes(&self, at: &At<'_>, tree: &Tree, now: i64, past: Past) -> Judged {
        match self.facts.slack {
            Some(slack) if now.saturating_add_unsigned(slack) < past.now => {
                refuse(at, tree, format_args!("it was {now} after it had been {}", past.now))
            }
            Some(_) => Ok(Past { now: now.max(past.now), ..past }),
            None => Ok(past),
        }
    }

    /// Nothing takes less time than it must.
    fn took(&self, at: &At<'_>, part: &Tree, gave: &Outcome, took: i64) -> Result<(), String> {
        let least = least::least(part, gave);
        match self.facts.slack {
            Some(slack) if took.saturating_add_unsigned(slack) < i64::try_from(least).unwrap_or(i64::MAX) => {
                refuse(at, part, format_args!("took {took} ms, and at least {least} ms were asked for"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An operation that was open when its run was asked to stop.
    fn is_asked_to_stop(&self, at: &At<'_>, tree: &Tree, past: Past) -> Judged {
        let asked = self.told(at.run).cancels;
        let cancels = past.cancels + 1;
        if cancels > asked {
            return refuse(at, tree, format_args!("was cancelled by request {cancels} of {asked}"));
        }
        Ok(Past { cancels, ..past })
    }
}

/// Whether an operation failed because its own run was asked to stop.
fn is_run_cancelled(failure: &Failure) -> bool {
    failure.code == code::CANCELLED && failure.message.starts_with("the run was cancelled")
}

fn refuse<T>(at: &At<'_>, tree: &Tree, why: impl std::fmt::Display) -> Result<T, String> {
    Err(format!("{} of {}: {why}", at.place.key(tree.kind()), at.run.unwrap_or("a child")))
}
