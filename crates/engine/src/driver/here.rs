//! Writing on the driver's own thread, while that has nothing else to do.
//!
//! A store that writes in this process is spared two changes of threads for each commit of a run that is alone. Whoever
//! comes meanwhile waits for one commit, which its own would have had to wait for anyway.

use outlast_core::commit::Commit;

use super::calls::{Creation, Done, Wanted, is_retryable};
use super::ready::RunNo;
use super::{Driver, Place, Slot};

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
