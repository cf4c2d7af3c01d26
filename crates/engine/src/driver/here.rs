//! Writing on the driver's own thread, while that has nothing else to do.
//!
//! A store that writes in this process is spared two changes of threads for each commit of a run that is alone. Whoever
//! comes meanwhile waits for one commit, which its own would have had to wait for anyway.

use outlast_core::commit::{Commit, Delivery};
use outlast_core::id::RunKey;
use outlast_core::limits::TRIES_ALONE;
use outlast_store::{Claim, DeliveredAndClaimed, StoreError};
use tokio::sync::oneshot;

use super::calls::{Creation, Done, Wanted, is_retryable};
use super::ready::RunNo;
use super::{Driver, Place, Slot};
use crate::meters;

/// What came of a task, to be delivered by the driver of its run.
pub(crate) struct Deliver {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) claim: Claim,
    /// The run that awaits it.
    pub(crate) run: RunKey,
    /// None if it was not done: somebody else writes, or the driver has other things to do.
    pub(crate) reply: oneshot::Sender<Option<DeliveredHere>>,
}

/// What a driver delivered.
pub(crate) struct DeliveredHere {
    /// What was claimed, without the run that is driven already.
    pub(crate) rest: DeliveredAndClaimed,
    /// How many are driven already.
    pub(crate) driven: usize,
}

impl Place {
    /// Whether bodies of it run: they must not be kept waiting.
    fn is_executing(&self) -> bool {
        matches!(&self.slot, Slot::Live(run) if run.is_executing())
    }
}

impl Driver {
    fn has_nothing_else_to_do(&self) -> bool {
        self.time.host().may_block()
            && self.places.len() <= 1
            && self.under_way.is_empty()
            && self.commands.is_empty()
            && !self.places.values().any(Place::is_executing)
    }

    /// Creates runs, or gives them back to be sent.
    pub(super) fn create_here(&self, creations: Vec<Creation>) -> Result<Done, Vec<Creation>> {
        if !self.has_nothing_else_to_do() {
            return Err(creations);
        }
        let [creation] = &creations[..] else { return Err(creations) };
        match self.calls.store.create_here(std::slice::from_ref(&creation.new)) {
            // Asked again by whoever can wait.
            Some(answers) if !answers.iter().any(is_retryable) => {
                Ok(Done::Created(creations.into_iter().zip(answers).collect()))
            }
            Some(_) | None => Err(creations),
        }
    }

    /// Reads a journal and inbox, or gives it back to be asked for.
    pub(super) fn load_here(&self, loads: Vec<Wanted>) -> Result<Done, Vec<Wanted>> {
        if !self.has_nothing_else_to_do() {
            return Err(loads);
        }
        let [wanted @ Wanted { no, taking: None, .. }] = &loads[..] else { return Err(loads) };
        match self.calls.store.load_here(&[wanted.load()]) {
            // Asked again by whoever can wait.
            Some(answers) if !answers.iter().any(is_retryable) => {
                Ok(Done::Loaded(answers.into_iter().map(|answer| (*no, answer)).collect()))
            }
            Some(_) | None => Err(loads),
        }
    }

    /// Delivers what came of a task and takes the run that awaits it, without a way through other threads.
    pub(super) fn deliver_here(&mut self, order: Deliver) {
        let Deliver { deliveries, claim, run, reply } = order;
        if self.draining || !self.has_nothing_else_to_do() {
            let _ = reply.send(None);
            return;
        }
        let done = self.calls.store.deliver_and_claim_here(&deliveries, &claim);
        let Some(DeliveredAndClaimed { delivered, mut claimed }) = done else {
            let _ = reply.send(None);
            return;
        };
        if matches!(claimed, Some(Err(StoreError::NotFound(_) | StoreError::Deleted { .. }))) {
            // Nobody awaits it any more.
            claimed = Some(Ok(Vec::new()));
        }
        let mut mine = None;
        if let Some(Ok(claimed)) = &mut claimed
            && self.board.lease() == Some(claim.lease)
        {
            let at = claimed.iter().position(|claimed| claimed.run == run && claimed.tries < TRIES_ALONE);
            mine = at.map(|at| claimed.remove(at));
        }
        let driven = usize::from(mine.is_some());
        // Counted before whoever asked takes back what it counted for all of this.
        self.board.driven_more(driven);
        if let Some(claimed) = mine {
            // Before the answer, which wakes another thread: the run has waited for longer than whoever asked.
            meters::claimed(1);
            self.drive(claimed);
        }
        let rest = DeliveredAndClaimed { delivered, claimed };
        let _ = reply.send(Some(DeliveredHere { rest, driven }));
    }

    /// Commits, or gives it back to be sent.
    pub(super) fn commit_here(&self, commits: Vec<(RunNo, Commit)>) -> Result<Done, Vec<(RunNo, Commit)>> {
        if !self.has_nothing_else_to_do() {
            return Err(commits);
        }
        let [(_, commit)] = &commits[..] else { return Err(commits) };
        let asked = self.time.asked();
        match self.calls.store.commit_here(std::slice::from_ref(commit)) {
            Some(answers) => Ok(Done::Committed(
                asked,
                commits.into_iter().zip(answers).map(|((no, commit), answer)| (no, commit, answer)).collect(),
            )),
            None => Err(commits),
        }
    }
}
