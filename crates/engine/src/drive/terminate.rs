//! Ending a run without asking it: what is written when nobody can, or should, run its program.

use outlast_core::commit::Commit;
use outlast_core::id::{Fence, InboxId, Index, Key};
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::end::{OpenChild, Outcome, report};
use super::run::Identity;

/// A run that was seized to be ended.
#[derive(Clone, Debug)]
pub(crate) struct Termination {
    pub(crate) identity: Identity,
    pub(crate) fence: Fence,
    pub(crate) next: Index,
    /// Children that have not ended.
    pub(crate) children: Vec<OpenChild>,
    /// Operations that await tasks.
    pub(crate) tasks: Vec<Key>,
    /// What lies in its inbox: acknowledged, and fed to nobody any more.
    pub(crate) inbox: Vec<InboxId>,
    pub(crate) reason: String,
    pub(crate) by: Option<String>,
}

impl Termination {
    /// The run's last commit. Timers and waits go with the end itself; no journal and no program is needed.
    pub(crate) fn commit(&self, now: Timestamp) -> Commit {
        let outcome = Outcome::Terminated { reason: Some(self.reason.clone()), by: self.by.clone() };
        let known = if planted!("children-left-by-termination") { &[] } else { self.children.as_slice() };
        let children = known.iter().filter_map(|child| child.close(&self.identity));
        Commit {
            events: vec![outcome.event().encode(now)],
            deliveries: children.chain(report(&self.identity, &outcome)).collect(),
            tasks_cancelled: self.tasks.clone(),
            consumed: self.inbox.clone(),
            then: outcome.then(),
            ..Commit::new(self.identity.run.clone(), self.fence, self.next)
        }
    }
}
