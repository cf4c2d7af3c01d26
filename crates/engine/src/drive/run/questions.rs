//! What its driver asks a run, and tells it.

use std::task::Waker;

use outlast_core::commit::{InboxItem, Then};
use outlast_core::id::{Fence, Index};
use outlast_core::lifecycle::Decision;
use outlast_core::time::Timestamp;

use super::{Identity, Run};
use crate::drive::lifecycle::Lifecycle;
use crate::drive::table::OperationInfo;

impl Run {
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// The next index in the store.
    pub(crate) fn durable(&self) -> Index {
        self.durable
    }

    /// Whether bodies of it run.
    pub(crate) fn is_executing(&self) -> bool {
        self.table.bodies_running()
    }

    pub(crate) fn is_committing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether the commit in flight ends the turn, or the generation.
    pub(crate) fn is_leaving(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|in_flight| in_flight.then != Then::Continue)
    }

    /// Starts no further body; whether nothing is left to wait for, so that the run can be given back.
    pub(crate) fn wind_down(&mut self) -> bool {
        self.winding_down = true;
        !self.table.bodies_running() && self.in_flight.is_none()
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.reading
    }

    pub(crate) fn set_reading(&mut self, reading: bool) {
        self.reading = reading;
    }

    /// Takes the run over again after it was suspended and claimed anew.
    pub(crate) fn reclaimed(&mut self, fence: Fence, waker: Waker) {
        self.fence = fence;
        // Its place on the driver is a new one: a body must not wake the old one.
        self.ops.set_waker(waker);
    }

    /// What came into the inbox since it was read last.
    pub(crate) fn receive(&mut self, items: Vec<InboxItem>) {
        self.inbox.receive(items);
    }

    /// When [`Run::advance`] must be called even if nothing happens.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        // While a transaction is under way nothing can be recorded, not even that.
        if self.is_transacting() { None } else { self.table.next_expiry() }
    }

    /// Whether somebody wants to know what happens to its operations.
    pub(crate) fn set_watched(&mut self, watched: bool) {
        self.table.notes.set_watched(watched);
    }

    /// What happened to its operations since this was asked last, if somebody watches.
    pub(crate) fn take_lifecycle(&mut self) -> Vec<Lifecycle> {
        self.table.notes.take()
    }

    /// Every operation that is not completed.
    pub(crate) fn operations(&self) -> Vec<OperationInfo> {
        self.table.infos()
    }

    /// Why the turn goes on, or could end.
    pub(crate) fn decision(&mut self) -> Decision {
        self.decide(self.draft.is_empty(), self.in_flight.is_some())
    }
}
