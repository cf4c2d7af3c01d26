//! Which runs a node takes, and when.

use std::time::Duration;

use outlast_core::id::{ClaimId, LeaseId, RunKey};
use outlast_core::limits::{CLAIM_BATCH_MAX, TRIES_ALONE};
use outlast_core::planted;
use outlast_store::{Claim, Claimed, Pick, Release};

use super::Node;
use super::doubts::Doubts;
use super::suspects::Suspects;
use crate::board::Board;
use crate::driver::Command;
use crate::meters;

/// What a node claims with, and what it may not drive yet.
pub(super) struct Claims {
    ids: ClaimIds,
    suspects: Suspects,
    pub(super) doubts: Doubts,
    /// Claimed, and not to be driven now: to be given back.
    pub(super) surplus: Vec<Release>,
}

impl Claims {
    pub(super) fn new(random: u128) -> Claims {
        Claims {
            ids: ClaimIds::new(random),
            suspects: Suspects::default(),
            doubts: Doubts::default(),
            surplus: Vec::new(),
        }
    }

    /// Nothing more is claimed: suspects are left to others.
    pub(super) fn clear(&mut self, board: &Board) {
        self.suspects.clear(board);
    }

    /// What was held under the lease is nobody's now.
    pub(super) fn lease_lost(&mut self, board: &Board) {
        self.surplus.clear();
        self.doubts.clear();
        self.suspects.clear(board);
    }

    /// What this one took is driven: a repetition would be given it once more.
    pub(super) fn was_asked(&mut self, id: ClaimId) {
        if self.ids.current() == id && !planted!("claim-driven-twice") {
            self.ids.next();
        }
    }

    /// Whether there is nothing to come back for.
    pub(super) fn are_settled(&self) -> bool {
        self.surplus.is_empty() && self.doubts.is_empty() && self.suspects.are_none()
    }

    /// When to look again, even if nothing happens. While the store cannot be reached, the next poll is soon enough.
    pub(super) fn ask_at(&self) -> Option<Duration> {
        if self.surplus.is_empty() { self.suspects.ask_at() } else { None }
    }
}

impl Node {
    /// Takes suspects whose turn it is, or whoever is ready if it is not; whether the store answered.
    pub(super) async fn claim_what_may_begin(&self, lease: LeaseId, claims: &mut Claims, polled: bool) -> bool {
        self.give_back(&mut claims.surplus).await;
        if polled {
            self.settle_doubts(lease, claims).await;
        }
        self.board.take_suspects().into_iter().for_each(|run| claims.suspects.remember(run));
        self.drive_suspects(lease, claims).await;
        let in_vain = claims.suspects.is_resting() && !polled;
        if !claims.suspects.excludes_others() && !in_vain {
            return self.claim(lease, claims).await;
        }
        // There is somebody to come back for.
        false
    }

    /// Takes runs that are ready, as many as there is room for; whether the store answered.
    async fn claim(&self, lease: LeaseId, claims: &mut Claims) -> bool {
        loop {
            let room = self.runs_max.saturating_sub(self.board.driven()).min(CLAIM_BATCH_MAX);
            if room == 0 {
                self.board.set_full();
                // One may have left before that was noted.
                if self.board.driven() < self.runs_max {
                    continue;
                }
                return true;
            }
            let claim = Claim {
                lease,
                id: claims.ids.current(),
                limit: room,
                pick: Pick::Ready,
                serves: self.registry.serves(),
            };
            match self.store.claim(claim).await {
                Ok(claimed) => {
                    claims.ids.next();
                    if self.board.lease() != Some(lease) {
                        // It was over before the answer came: these may be somebody else's by now.
                        return false;
                    }
                    let taken = claimed.len();
                    meters::claimed(taken);
                    let (suspects, others): (Vec<_>, Vec<_>) = claimed.into_iter().partition(is_suspect);
                    self.hand_over(others);
                    let met_suspects = !suspects.is_empty();
                    self.set_aside(suspects, claims).await;
                    // A suspect that was given back would only be claimed again.
                    if taken < room || met_suspects {
                        return !met_suspects;
                    }
                }
                Err(error) => {
                    // The same id again: whatever this one took is given again, now or when it has arrived.
                    claims.doubts.add(claims.ids.current(), self.after(Duration::ZERO));
                    tracing::warn!(%error, "runs could not be claimed; they are looked for again");
                    return false;
                }
            }
        }
    }

    /// Gives suspects back, to be claimed again when each can be alone.
    async fn set_aside(&self, suspects: Vec<Claimed>, claims: &mut Claims) {
        for Claimed { run, fence, tries, .. } in suspects {
            tracing::warn!(%run, tries, "the run may kill its driver; it is driven alone");
            claims.suspects.remember(run.clone());
            claims.surplus.push(Release { run, fence, again: true });
        }
        self.give_back(&mut claims.surplus).await;
    }

    /// Gives runs back; those for which the store cannot be reached are kept for the next time.
    pub(super) async fn give_back(&self, surplus: &mut Vec<Release>) {
        if surplus.is_empty() {
            return;
        }
        let answers = self.store.release(surplus.clone()).await;
        let mut answers = answers.into_iter();
        surplus.retain(|_| matches!(answers.next(), Some(Err(error)) if error.is_retryable()));
    }

    /// Drives suspects, each alone.
    async fn drive_suspects(&self, lease: LeaseId, claims: &mut Claims) {
        // Those that could not be given back would be taken along.
        while claims.surplus.is_empty()
            && let Some(run) = claims.suspects.next(self.after(Duration::ZERO), &self.board)
        {
            self.drive_suspect(lease, run, claims).await;
        }
    }

    async fn drive_suspect(&self, lease: LeaseId, run: RunKey, claims: &mut Claims) {
        let (pick, serves) = (Pick::Run(run.clone()), self.registry.serves());
        match self.store.claim(Claim { lease, id: claims.ids.current(), limit: 1, pick, serves }).await {
            Ok(claimed) => {
                claims.ids.next();
                if self.board.lease() != Some(lease) {
                    return;
                }
                if claimed.iter().any(is_suspect) {
                    self.board.suspect_begins();
                }
                self.hand_over(claimed);
            }
            // The same id again: if this one took it after all, the next claim gives it again.
            Err(error) => {
                claims.doubts.add(claims.ids.current(), self.after(Duration::ZERO));
                tracing::warn!(%run, %error, "a suspect could not be claimed; it is looked for again");
            }
        }
    }

    pub(super) fn hand_over(&self, claimed: Vec<Claimed>) {
        self.board.driven_more(claimed.len());
        // The engine is gone for those that are left, and its lease goes with it.
        self.drivers.drive(claimed).iter().for_each(|run| self.board.left(run));
    }

    /// Hands over a run that is counted already.
    pub(super) fn give_to_driver(&self, claimed: Claimed) {
        let run = claimed.run.clone();
        if !self.drivers.send(&run, Command::Drive(vec![claimed])) {
            // The engine is gone, and its lease goes with it.
            self.board.left(&run);
        }
    }
}

/// Whether a run must be driven alone.
pub(super) fn is_suspect(claimed: &Claimed) -> bool {
    claimed.tries >= TRIES_ALONE && !planted!("suspect-driven-with-others")
}

/// Names for claims: a new one for each that was answered.
struct ClaimIds(u64);

impl ClaimIds {
    fn new(random: u128) -> ClaimIds {
        // Any number no other claim of this lease has. The top bit is left to runs that are owned from their creation.
        ClaimIds(u64::try_from(random >> 66).unwrap_or(0))
    }

    fn current(&self) -> ClaimId {
        ClaimId(self.0)
    }

    fn next(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }
}
