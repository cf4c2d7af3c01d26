//! Driving one run to its next pause or end, because somebody asks: what the loop does for all runs, for this one.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use outlast_core::id::{ClaimId, LeaseId, RunKey};
use outlast_store::{RunView, StoreError, Trouble};
use tokio::sync::oneshot;

use super::asking::{ASKS_MAX, Asker, Asking};
use super::claims::is_suspect;
use super::{Node, Stage};
use crate::driver::{Command, Inspected};

/// What became of a run that was to be driven once.
pub(crate) enum Once {
    /// It stands here, and nothing more can be done about it now.
    Stands(Box<RunView>),
    /// Somebody else drives it.
    Held(LeaseId),
    /// This engine is on its way down.
    Stopping,
}

impl Node {
    /// A lease that lasts for a while. Where no loop keeps one, it is renewed here or begun anew.
    pub(crate) async fn hold_lease(&self) -> Result<LeaseId, StoreError> {
        let lease = self.board.lease();
        if self.looping {
            let message = "this engine has no lease at the moment".to_owned();
            return lease.ok_or(StoreError::Unavailable { trouble: Trouble::Busy, message });
        }
        let mut held_until = self.held_until.lock().await;
        // Nobody else says that this code is there.
        self.announce().await;
        let until = self.after(self.lease);
        let asked = self.time.asked();
        let held = match self.board.lease() {
            None => self.register().await.map(|lease| lease.id),
            Some(lease) => match self.store.renew(lease, self.lease).await {
                Ok(renewed) => {
                    self.time.observe(asked, renewed.now);
                    Ok(lease)
                }
                // Nobody called for a while. Whatever was driven meanwhile may belong to somebody else by now.
                Err(StoreError::LeaseLapsed { .. }) => {
                    self.board.set_lease(None);
                    self.drivers.tell_all(|| Command::LeaseLost);
                    self.register().await.map(|lease| lease.id)
                }
                Err(error) => Err(error),
            },
        };
        if held.is_ok() {
            *held_until = until;
        }
        held
    }

    /// Ends the lease of an engine without loops.
    pub(crate) async fn let_go(&self) {
        if let Some(lease) = self.board.lease().filter(|_| !self.looping) {
            self.retire(lease).await;
        }
    }

    /// Drives a run until it pauses or ends. Timers that are due are fired first.
    ///
    /// Beside whoever asked, who may stop waiting: a run that was claimed and then forgotten would lie still until the
    /// lease is over.
    pub(crate) async fn drive_once(
        self: Arc<Self>,
        run: RunKey,
        next_claim: impl Fn() -> ClaimId + Send + 'static,
    ) -> Option<Result<Once, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let host = Arc::clone(self.time.host());
        host.spawn(Box::pin(async move {
            let mut asker = Asker::new(reply);
            let once = self.until_it_rests(&run, next_claim, &mut asker).await;
            asker.tell(once);
        }));
        answer.await.ok()
    }

    async fn until_it_rests(
        &self,
        run: &RunKey,
        next_claim: impl Fn() -> ClaimId,
        asker: &mut Asker,
    ) -> Result<Once, StoreError> {
        let mut vain = 0;
        loop {
            // Whoever asked was told what happened meanwhile: they ask again, or not.
            if *self.stage.borrow() != Stage::Running || asker.is_told() {
                return Ok(Once::Stopping);
            }
            let lease = self.hold_lease().await?;
            self.sweep().await?;
            self.admit().await?;
            // The loop may have looked for the next timer in between, and found none.
            self.board.somebody_woken();
            // Before it is handed over, so that it is not missed.
            let left = self.board.await_left(run);
            let asking = Asking { run, lease, id: next_claim() };
            if let Some(claimed) = self.claim_run(&asking, asker).await? {
                if is_suspect(&claimed) {
                    self.board.driven_one_less();
                    self.drive_alone(&asking, claimed, next_claim(), asker).await?;
                } else {
                    self.give_to_driver(claimed);
                    self.attend(left).await;
                }
                // Something may have come for it while its turn ended.
                continue;
            }
            let view = self.store.get(run.clone()).await?;
            match view.owner {
                None => return Ok(Once::Stands(Box::new(view))),
                Some(owner) if owner != lease => return Ok(Once::Held(owner)),
                Some(_) if self.is_driven_here(run).await => self.attend(left).await,
                // Claimed here and not driven yet: whoever claimed it has not got the reply.
                Some(_) if vain == 2 * ASKS_MAX => {
                    let message = format!("{run} was claimed by this engine and the reply was lost; ask again later");
                    return Err(StoreError::Unavailable { trouble: Trouble::Busy, message });
                }
                Some(_) => {
                    vain += 1;
                    self.pause_after(vain).await;
                }
            }
        }
    }

    async fn is_driven_here(&self, run: &RunKey) -> bool {
        let (reply, answer) = oneshot::channel();
        self.drivers.send(run, Command::Inspect { run: run.clone(), reply });
        matches!(answer.await, Ok(Inspected::Driven { .. } | Inspected::Passing))
    }

    /// Waits until a run is no longer driven. Where no loop does, keeps the lease, fires timers and looks for wakes.
    pub(super) async fn attend(&self, mut left: oneshot::Receiver<()>) {
        if self.looping {
            let mut stage = self.stage.clone();
            select(left, pin!(stage.wait_for(|stage| *stage == Stage::Stopped))).await;
            return;
        }
        let mut renew = self.after(self.lease / 3);
        loop {
            let due = self.board.next_due().map(|due| self.time.instant(due));
            let until = [renew, self.after(self.poll)].into_iter().chain(due).min().unwrap_or(renew);
            let pause = self.time.host().sleep_until(until);
            let noticed = pin!(self.board.noticed());
            if let Either::Left(_) = select(&mut left, select(pause, noticed)).await {
                return;
            }
            let now = self.time.host().elapsed();
            if now >= renew {
                if let Err(error) = self.hold_lease().await {
                    tracing::warn!(%error, "the lease could not be renewed");
                }
                renew = self.after(self.lease / 3);
            }
            if self.board.next_due().is_some_and(|due| self.time.instant(due) <= now) {
                self.fire_timers().await;
            }
            if let Some(lease) = self.board.lease() {
                self.look_for_wakes(lease).await;
            }
        }
    }
}
