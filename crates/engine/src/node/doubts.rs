//! Claims whose reply was lost. Such a claim is made again under its id, and if it was applied, what it took is given again.
//! But it may also be on its way still, and take runs when its repetition has long been answered: they would be held here, and
//! nobody would drive them. So for a while it is asked now and then what is held under its id.

use std::time::Duration;

use outlast_core::id::{ClaimId, LeaseId};
use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_core::planted;
use outlast_store::{Claim, Pick, Serves};

use super::Node;
use super::claims::Claims;
use crate::driver::Command;

/// How long a claim may be on its way.
const DOUBT: Duration = Duration::from_secs(120);

/// Claims whose reply was lost.
#[derive(Default)]
pub(super) struct Doubts(Vec<(ClaimId, Duration)>);

impl Doubts {
    /// A reply was lost at this time, by the host's clock.
    pub(super) fn add(&mut self, id: ClaimId, now: Duration) {
        self.0.retain(|(doubted, _)| *doubted != id);
        self.0.push((id, now + DOUBT));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Node {
    /// Has the drivers drive what claims took that were in doubt.
    pub(super) async fn settle_doubts(&self, lease: LeaseId, claims: &mut Claims) {
        self.board.take_doubts().into_iter().for_each(|id| claims.doubts.add(id, self.after(Duration::ZERO)));
        if planted!("late-claim-not-asked-for") {
            return;
        }
        let now = self.after(Duration::ZERO);
        let mut settled = Vec::new();
        for (id, until) in claims.doubts.0.clone() {
            // Nothing new: only what is held under the id.
            let serves = Serves::Only(Vec::new());
            let claim = Claim { lease, id, limit: CLAIM_BATCH_MAX, pick: Pick::Ready, serves };
            match self.store.claim(claim).await {
                Ok(held) if self.board.lease() == Some(lease) => {
                    for claimed in held {
                        self.drivers.send(&claimed.run.clone(), Command::Adopt(Box::new(claimed)));
                    }
                    claims.was_asked(id);
                    if until <= now {
                        settled.push(id);
                    }
                }
                // What was held under another lease is nobody's.
                Ok(_) => settled.push(id),
                Err(error) => tracing::warn!(%error, "what a claim took could not be asked; it is asked again"),
            }
        }
        claims.doubts.0.retain(|(id, _)| !settled.contains(id));
    }
}
