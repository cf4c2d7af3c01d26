//! Claiming one run by name, on behalf of whoever asked. Whatever this node may have claimed is driven or given back, as
//! long as its lease lives: also if the reply to the claim is lost again and again, and also if the run is a suspect.

use std::time::Duration;

use futures_util::future::{join, select};
use outlast_core::id::{ClaimId, LeaseId, RunKey};
use outlast_core::limits::TRIES_ALONE;
use outlast_store::{Claim, Claimed, Pick, Release, StoreError, Trouble};
use tokio::sync::oneshot;

use super::claims::is_suspect;
use super::once::Once;
use super::suspects::{PATIENCE, SESSION};
use super::{Node, Stage};
use crate::board::Board;

/// How often the store is asked before whoever asked is told that it did not work, and how long to wait in between.
pub(super) const ASKS_MAX: u32 = 5;
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How long to wait in between after that.
const ASK_LATER: Duration = Duration::from_secs(1);

/// Whoever asked for a run to be driven.
pub(super) struct Asker(Option<oneshot::Sender<Result<Once, StoreError>>>);

impl Asker {
    pub(super) fn new(reply: oneshot::Sender<Result<Once, StoreError>>) -> Asker {
        Asker(Some(reply))
    }

    /// Tells them what became of it; once.
    pub(super) fn tell(&mut self, once: Result<Once, StoreError>) {
        if let Some(reply) = self.0.take() {
            // They may have stopped waiting.
            let _ = reply.send(once);
        }
    }

    pub(super) fn is_told(&self) -> bool {
        self.0.is_none()
    }
}

/// A run to claim. The id is the same however often the store is asked: if only a reply was lost, what it took is given
/// again.
#[derive(Clone, Copy)]
pub(super) struct Asking<'r> {
    pub(super) run: &'r RunKey,
    pub(super) lease: LeaseId,
    pub(super) id: ClaimId,
}

/// Nothing begins on a node as long as this is there.
struct Closed<'n>(&'n Board);

impl<'n> Closed<'n> {
    fn new(board: &'n Board) -> Closed<'n> {
        board.close(true);
        Closed(board)
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.close(false);
    }
}

impl Node {
    /// Claims a run when others may begin, and counts it as driven if it was claimed. When the store could not be reached
    /// a few times, whoever asked is told so; but it may have applied the claim, so it is asked on until it answers.
    pub(super) async fn claim_run(
        &self,
        asking: &Asking<'_>,
        asker: &mut Asker,
    ) -> Result<Option<Claimed>, StoreError> {
        let mut asks = 0;
        loop {
            // Counted before it is claimed, so that no suspect begins meanwhile.
            while !self.board.enter(usize::MAX) {
                if !self.may_hold(asking.lease).await {
                    return Ok(None);
                }
                self.pause(ASK_AGAIN).await;
            }
            let answer = self.ask(asking).await;
            if !matches!(answer, Ok(Some(_))) {
                self.board.driven_one_less();
            }
            match answer {
                Err(error) if error.is_retryable() && self.ask_later(asking, &mut asks, asker, &error).await => {}
                answer => return answer,
            }
        }
    }

    async fn ask(&self, asking: &Asking<'_>) -> Result<Option<Claimed>, StoreError> {
        let Asking { run, lease, id } = *asking;
        let (pick, serves) = (Pick::Run(run.clone()), self.registry.serves());
        let claimed = self.store.claim(Claim { lease, id, limit: 1, pick, serves }).await;
        if claimed.is_err() {
            self.board.doubt(id);
        }
        Ok(claimed?.pop())
    }

    /// Waits until it is time to ask again; whether anything can be held then.
    async fn ask_later(&self, asking: &Asking<'_>, asks: &mut u32, asker: &mut Asker, error: &StoreError) -> bool {
        *asks += 1;
        if *asks >= ASKS_MAX {
            tracing::warn!(%error, "a run may have been claimed, and the reply was lost; it is asked for on");
            asker.tell(Err(error.clone()));
        }
        self.pause_after(*asks).await;
        self.may_hold(asking.lease).await
    }

    /// Waits before a question is asked again that was asked so often in vain.
    pub(super) async fn pause_after(&self, asks: u32) {
        self.pause(if asks < ASKS_MAX { ASK_AGAIN } else { ASK_LATER }).await;
    }

    /// Has a suspect driven alone. It is given back meanwhile: were it held, the crash of another would count against it.
    pub(super) async fn drive_alone(
        &self,
        asking: &Asking<'_>,
        claimed: Claimed,
        next: ClaimId,
        asker: &mut Asker,
    ) -> Result<(), StoreError> {
        let (run, lease) = (asking.run, asking.lease);
        tracing::warn!(%run, tries = claimed.tries, "the run may kill its driver; it is driven alone");
        self.release(lease, &claimed).await;
        if asker.is_told() {
            return Ok(());
        }
        if self.looping {
            self.leave_to_loop(run).await
        } else {
            self.clear_for(&Asking { id: next, ..*asking }, asker).await
        }
    }

    /// The loop drives suspects, one by one: waits until it has driven this one, or nobody needs to.
    async fn leave_to_loop(&self, run: &RunKey) -> Result<(), StoreError> {
        loop {
            let left = self.board.await_left(run);
            self.board.suspect_met(run.clone());
            select(left, Box::pin(self.pause(PATIENCE))).await;
            let view = self.store.get(run.clone()).await?;
            // Not claimed from here as long as it is a suspect: the loop would not get it.
            if view.owner.is_some() || !view.ready || !view.status.is_claimable() || view.tries < TRIES_ALONE {
                return Ok(());
            }
            if *self.stage.borrow() != Stage::Running {
                return Ok(());
            }
        }
    }

    /// Without a loop: waits until nothing else is driven, keeps others out, and drives it.
    async fn clear_for(&self, asking: &Asking<'_>, asker: &mut Asker) -> Result<(), StoreError> {
        let _one_at_a_time = self.alone.lock().await;
        let closed = Closed::new(&self.board);
        let patience = self.after(PATIENCE);
        while self.board.driven() > 0 {
            if self.after(Duration::ZERO) >= patience {
                let run = asking.run;
                let message = format!("{run} may kill its driver, and others are driven beside it; ask again later");
                return Err(StoreError::Unavailable { trouble: Trouble::Busy, message });
            }
            self.pause(ASK_AGAIN).await;
        }
        self.claim_alone(asking, asker, closed).await
    }

    /// Claims a run while others are kept out, for a minute at most. If that is not enough, what was claimed is given back.
    async fn claim_alone(&self, asking: &Asking<'_>, asker: &mut Asker, closed: Closed<'_>) -> Result<(), StoreError> {
        let until = self.after(SESSION);
        let (mut closed, mut asks) = (Some(closed), 0);
        loop {
            let left = self.board.await_left(asking.run);
            let claimed = match self.ask(asking).await {
                Ok(None) => return Ok(()),
                Ok(Some(claimed)) => claimed,
                Err(error) if error.is_retryable() && self.ask_later(asking, &mut asks, asker, &error).await => {
                    closed = closed.filter(|_| self.after(Duration::ZERO) < until);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(closed) = closed else {
                self.release(asking.lease, &claimed).await;
                return Ok(());
            };
            if is_suspect(&claimed) {
                self.board.suspect_begins();
            }
            self.board.driven_more(1);
            self.give_to_driver(claimed);
            join(self.attend(left), self.open_when_settled(closed, until)).await;
            return Ok(());
        }
    }

    /// Others may begin when a suspect has committed once, or has left, or has done nothing wrong for a minute.
    async fn open_when_settled(&self, closed: Closed<'_>, until: Duration) {
        while self.board.has_suspect() && self.after(Duration::ZERO) < until {
            self.pause(ASK_AGAIN).await;
        }
        drop(closed);
    }

    /// Gives a run back, however often it must be tried, as long as the lease lives.
    pub(super) async fn release(&self, lease: LeaseId, claimed: &Claimed) {
        let mut surplus = vec![Release { run: claimed.run.clone(), fence: claimed.fence, again: true }];
        self.give_back(&mut surplus).await;
        while !surplus.is_empty() && self.may_hold(lease).await {
            self.pause(ASK_AGAIN).await;
            self.give_back(&mut surplus).await;
        }
    }

    /// Whether something may be held under a lease of this node: not if it is over, or about to be given back.
    async fn may_hold(&self, lease: LeaseId) -> bool {
        let stopped = self.stage.has_changed().is_err() || *self.stage.borrow() == Stage::Stopped;
        let ours = !stopped && self.board.lease() == Some(lease);
        // Where a loop keeps the lease, it says when it is over.
        ours && (self.looping || self.after(Duration::ZERO) < *self.held_until.lock().await)
    }

    /// Waits for a while, or until the engine stops.
    async fn pause(&self, pause: Duration) {
        let sleep = self.time.host().sleep_until(self.after(pause));
        let mut stage = self.stage.clone();
        select(sleep, Box::pin(stage.wait_for(|stage| *stage == Stage::Stopped))).await;
    }
}
