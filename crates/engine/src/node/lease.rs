//! A node's lease: begun, renewed, and given up when it is over.

use std::time::Duration;

use futures_util::future::{Either, select};
use outlast_core::id::LeaseId;
use outlast_store::{StoreError, Trouble};

use super::Node;
use crate::driver::Command;

/// A lease this node holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) id: LeaseId,
    /// The last moment at which it is certainly ours, by the host's clock.
    until: Duration,
}

enum Renewed {
    Until(Duration),
    Lapsed,
    NotReached,
}

impl Node {
    /// Begins a lease.
    pub(crate) async fn register(&self) -> Result<Held, StoreError> {
        // Counted from before it was asked for: the store begins to count when it hears of it.
        let (until, asked) = (self.after(self.lease), self.time.asked());
        let lease = self.store.register(self.id.clone(), self.lease).await?;
        self.time.observe(asked, lease.now);
        self.board.set_lease(Some(lease.id));
        Ok(Held { id: lease.id, until })
    }

    /// Renews the lease in time, for ever. When it is over, drops everything and begins another.
    pub(super) async fn keep_lease(&self, mut lease: Held) {
        loop {
            self.time.host().sleep_until(self.after(self.lease / 3)).await;
            lease = self.renewed(lease).await;
        }
    }

    async fn renewed(&self, lease: Held) -> Held {
        loop {
            match self.renew(lease).await {
                Renewed::Until(until) => return Held { until, ..lease },
                Renewed::NotReached if self.time.host().elapsed() < lease.until => {
                    // Soon: two or three answers that are lost must not cost the lease.
                    self.time.host().sleep_until(self.after(self.poll.min(self.lease / 12))).await;
                }
                Renewed::NotReached | Renewed::Lapsed => return self.begin_again().await,
            }
        }
    }

    async fn renew(&self, lease: Held) -> Renewed {
        let (until, asked) = (self.after(self.lease), self.time.asked());
        // An answer that comes when the lease is over is none.
        let over = self.time.host().sleep_until(lease.until);
        match select(self.store.renew(lease.id, self.lease), over).await {
            Either::Left((Ok(renewed), _)) => {
                self.time.observe(asked, renewed.now);
                Renewed::Until(until)
            }
            Either::Left((Err(StoreError::LeaseLapsed { .. }), _)) => Renewed::Lapsed,
            Either::Left((Err(error), _)) => {
                tracing::warn!(%error, "the lease could not be renewed");
                Renewed::NotReached
            }
            Either::Right(_) => Renewed::NotReached,
        }
    }

    /// The lease is over: every program is dropped before anybody else can go on with its run.
    async fn begin_again(&self) -> Held {
        tracing::error!(node = %self.id, "the lease is over; all runs are dropped and claimed again");
        self.board.set_lease(None);
        self.drivers.tell_all(|| Command::LeaseLost);
        loop {
            match self.register_in_time().await {
                Ok(lease) => {
                    self.board.somebody_woken();
                    return lease;
                }
                Err(error) => {
                    tracing::warn!(%error, "no lease could be had");
                    self.time.host().sleep_until(self.after(self.poll)).await;
                }
            }
        }
    }

    /// A lease that was over before its node heard of it is none.
    async fn register_in_time(&self) -> Result<Held, StoreError> {
        let over = self.time.host().sleep_until(self.after(self.lease));
        match select(std::pin::pin!(self.register()), over).await {
            Either::Left((lease, _)) => lease,
            Either::Right(_) => {
                let message = format!("a lease was asked for and not given within {:?}", self.lease);
                Err(StoreError::Unavailable { trouble: Trouble::Connection, message })
            }
        }
    }

    pub(super) async fn retire(&self, lease: LeaseId) {
        self.board.set_lease(None);
        if let Err(error) = self.store.retire(lease).await {
            tracing::warn!(%error, "the lease could not be given back; it lapses by itself");
        }
    }
}
