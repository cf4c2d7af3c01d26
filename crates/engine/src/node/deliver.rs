//! Delivering for a worker of this process, and taking what that made ready in the same call: most runs whose tasks are done here are
//! driven here.

use outlast_core::commit::Delivery;
use outlast_core::id::{ClaimId, LeaseId, RunKey};
use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_store::{Claim, Claimed, Delivered, DeliveredAndClaimed, Pick, StoreError};
use tokio::sync::oneshot;

use super::claims::is_suspect;
use super::{Node, Stage};
use crate::driver::{Command, Deliver, DeliveredHere};
use crate::meters;

impl Node {
    /// Delivers, and has the runs driven that are ready then. The id is one that no other claim has. If it is for one run, its
    /// driver may do so itself.
    pub(crate) async fn deliver(
        &self,
        deliveries: Vec<Delivery>,
        id: ClaimId,
        only: Option<RunKey>,
    ) -> Vec<Result<Delivered, StoreError>> {
        // Counted before anything is claimed, so that no suspect begins meanwhile.
        let entered = *self.stage.borrow() == Stage::Running && self.board.enter(self.runs_max);
        let room = (self.runs_max + 1).saturating_sub(self.board.driven()).min(CLAIM_BATCH_MAX);
        let Some(lease) = self.board.lease().filter(|_| entered && room > 0) else {
            let delivered = self.store.deliver(deliveries).await;
            if entered {
                self.board.driven_one_less();
            }
            // Runs may have been woken, whatever was answered.
            self.board.somebody_woken();
            return delivered;
        };
        let claim = Claim { lease, id, limit: room, pick: Pick::Ready, serves: self.registry.serves() };
        let here = match only.filter(|_| self.sole && self.time.host().may_block()) {
            Some(run) => self.deliver_on_driver(&deliveries, &claim, run).await,
            None => None,
        };
        let DeliveredHere { rest: DeliveredAndClaimed { delivered, claimed }, driven } = match here {
            Some(here) => here,
            None => DeliveredHere { rest: self.store.deliver_and_claim(deliveries, claim).await, driven: 0 },
        };
        match claimed {
            Some(Ok(claimed)) => self.take_in(lease, claimed, driven, room),
            Some(Err(error)) => {
                // If it was applied all the same, what it took is asked for.
                self.board.doubt(id);
                tracing::warn!(%error, "runs could not be claimed; they are looked for again");
                self.board.somebody_woken();
            }
            None => self.board.somebody_woken(),
        }
        self.board.driven_one_less();
        delivered
    }

    /// Has the driver of a run deliver what came of its task; none if it did not.
    async fn deliver_on_driver(&self, deliveries: &[Delivery], claim: &Claim, run: RunKey) -> Option<DeliveredHere> {
        let (reply, answer) = oneshot::channel();
        // By its name: who else is ready somebody else gave notice of.
        let claim = Claim { pick: Pick::Run(run.clone()), ..claim.clone() };
        let order = Deliver { deliveries: deliveries.to_vec(), claim, run: run.clone(), reply };
        if !self.drivers.send(&run, Command::Deliver(Box::new(order))) {
            return None;
        }
        // One that ended before it looked at this has not delivered anything.
        answer.await.ok().flatten()
    }

    /// Has these driven, beside those that are already.
    fn take_in(&self, lease: LeaseId, claimed: Vec<Claimed>, driven: usize, room: usize) {
        if self.board.lease() != Some(lease) {
            // It was over before the answer came: these may be somebody else's by now.
            return;
        }
        let taken = claimed.len() + driven;
        meters::claimed(claimed.len());
        let (suspects, others): (Vec<_>, Vec<_>) = claimed.into_iter().partition(is_suspect);
        // Besides these and the one that is counted for this call, others are driven that may have been woken.
        let others_may_be_woken = self.board.driven() > 1 + driven;
        self.hand_over(others);
        let met_suspects = !suspects.is_empty();
        for suspect in suspects {
            let node = self.clone();
            // Beside the worker, who has others to report: it must be given back, however often it must be tried.
            self.time.host().spawn(Box::pin(async move {
                node.release(lease, &suspect).await;
                node.board.suspect_met(suspect.run);
            }));
        }
        if others_may_be_woken || met_suspects || taken == room {
            self.board.somebody_woken();
        }
    }
}
