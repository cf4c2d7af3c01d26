//! Several operations at once.

use outlast::{BatchReason, Failure};

use super::{At, Judge, Judged, Past, refuse};
use crate::outcome::{Outcome, Settled};
use crate::tree::{Batch, Group, How, Tree, member_place, passes_failures_on};

impl Judge<'_> {
    pub(super) fn group(&mut self, at: &At<'_>, tree: &Tree, group: &Group, outcome: &Outcome, past: Past) -> Judged {
        let member_at = |number| at.moved(member_place(&at.place, group, number));
        self.has_room(group, outcome).or_else(|why| refuse(at, tree, why))?;
        match (group.how, outcome) {
            (How::All, Outcome::All(gave)) if gave.len() == group.members.len() => {
                let pairs = group.members.iter().zip(gave).enumerate();
                let mut ended = past;
                for (number, (member, gave)) in pairs {
                    ended = ended.join(self.gives(&member_at(number), member, gave, past)?);
                }
                Ok(ended)
            }
            (How::AllSettled, Outcome::Settled(settled)) if settled.len() == group.members.len() => {
                self.all_settle(at, group, settled, past)
            }
            (How::Any | How::Race, Outcome::Won(place, gave)) => {
                let Some(member) = group.members.get(*place) else {
                    return refuse(at, tree, format_args!("was won by number {place}, which there is not"));
                };
                // The shortest may have been one too many.
                if !self.facts.forked && self.facts.pending_max.is_none() {
                    is_first(at, tree, group, *place)?;
                }
                self.gives(&member_at(*place), member, gave, past)
            }
            (how, outcome) => refuse(at, tree, format_args!("awaits {how:?}, and gave {outcome:?}")),
        }
    }

    fn all_settle(&mut self, at: &At<'_>, group: &Group, settled: &[Settled], past: Past) -> Judged {
        let mut ended = past;
        for (number, (member, settled)) in group.members.iter().zip(settled).enumerate() {
            let member_at = at.moved(member_place(&at.place, group, number));
            ended = ended.join(self.settles(&member_at, member, settled, past)?);
        }
        Ok(ended)
    }

    pub(super) fn group_fails(
        &mut self,
        at: &At<'_>,
        tree: &Tree,
        group: &Group,
        failure: &Failure,
        past: Past,
    ) -> Judged {
        if passes_failures_on(group.how) {
            return self.one_fails(at, tree, group, failure, past);
        }
        let failures = failure.data.as_deref().and_then(|data| serde_json::from_slice::<Vec<Failure>>(data).ok());
        match failures {
            Some(failures)
                if group.how == How::Any && failure.code == "all_failed" && failures.len() == group.members.len() =>
            {
                let settled: Vec<Settled> = failures.into_iter().map(Settled::Failed).collect();
                self.all_settle(at, group, &settled, past)
            }
            Some(_) | None => refuse(at, tree, format_args!("awaits {:?}, and failed: {failure}", group.how)),
        }
    }

    /// The failure is that of some member.
    fn one_fails(&mut self, at: &At<'_>, tree: &Tree, group: &Group, failure: &Failure, past: Past) -> Judged {
        for (number, member) in group.members.iter().enumerate() {
            let member_at = at.moved(member_place(&at.place, group, number));
            if let Ok(ended) = self.attempt(|judge| judge.fails(&member_at, member, failure, past)) {
                return Ok(ended);
            }
        }
        refuse(at, tree, format_args!("no member fails so: {failure}"))
    }

    pub(super) fn batch(
        &mut self,
        at: &At<'_>,
        tree: &Tree,
        batch: &Batch,
        (reason, branches): (BatchReason, &[Option<Settled>]),
        past: Past,
    ) -> Judged {
        is_complete(batch, reason, branches).or_else(|why| refuse(at, tree, why))?;
        let mut ended = past;
        for (number, (branch, settled)) in batch.branches.iter().zip(branches).enumerate() {
            if let Some(settled) = settled {
                let branch_at = at.moved(at.place.branch("batch", number));
                ended = ended.join(self.settles(&branch_at, branch, settled, past)?);
            }
        }
        Ok(ended)
    }
}

/// Among sleeps that begin together the shortest is the first, and of equals the first written.
fn is_first(at: &At<'_>, tree: &Tree, group: &Group, place: usize) -> Result<(), String> {
    let naps: Option<Vec<u64>> = group.members.iter().map(nap).collect();
    let Some(naps) = naps else { return Ok(()) };
    let first = naps.iter().enumerate().min_by_key(|(_, ms)| **ms).map(|(first, _)| first);
    if first == Some(place) {
        return Ok(());
    }
    refuse(at, tree, format_args!("was won by number {place} of sleeps of {naps:?} ms"))
}

/// How long something takes that is one sleep and nothing else.
fn nap(tree: &Tree) -> Option<u64> {
    match tree {
        Tree::Sleep(ms) => Some(*ms),
        _ => None,
    }
}

/// Whether a batch ended when it had to, and for the reason it says.
fn is_complete(batch: &Batch, reason: BatchReason, branches: &[Option<Settled>]) -> Result<(), String> {
    let count = |wanted: fn(&Settled) -> bool| branches.iter().flatten().filter(|settled| wanted(settled)).count();
    let succeeded = count(|settled| matches!(settled, Settled::Gave(_)));
    let failed = count(|settled| matches!(settled, Settled::Failed(_)));
    let (total, open) = (batch.branches.len(), branches.len() - succeeded - failed);
    if batch.concurrency == Some(0) {
        return Err("nothing may run, and something did".to_owned());
    }
    if branches.len() > total {
        return Err(format!("{} of {total} branches began", branches.len()));
    }
    // The branch whose end decided took up a place too.
    if batch.concurrency.is_some_and(|max| open >= max) && open > 0 {
        return Err(format!("{open} branches were open beside the one that decided"));
    }
    let is_due = match reason {
        // Each end is looked at by itself: the first that is too many decides.
        BatchReason::FailureToleranceExceeded => {
            failed > 0 && is_exceeded(batch, failed) && !is_exceeded(batch, failed - 1)
        }
        BatchReason::AllCompleted => !is_exceeded(batch, failed) && succeeded + failed == total && open == 0,
        BatchReason::MinSuccessfulReached => {
            !is_exceeded(batch, failed) && succeeded + failed < total && batch.enough == Some(succeeded)
        }
    };
    if is_due {
        return Ok(());
    }
    Err(format!("{} with {succeeded} successes, {failed} failures and {open} open of {total}", reason.as_str()))
}

/// Whether so many failures are too many.
fn is_exceeded(batch: &Batch, failed: usize) -> bool {
    match (batch.tolerated, batch.percent) {
        (None, None) => failed > 0 && batch.enough.is_none(),
        (tolerated, percent) => {
            let part = percent.map(|percent| percent as usize * batch.branches.len());
            tolerated.is_some_and(|max| failed > max) || part.is_some_and(|part| failed * 100 > part)
        }
    }
}
