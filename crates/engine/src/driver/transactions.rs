//! What became of transactions.

use outlast_core::failure::{Failure, code};
use outlast_store::{CommitError, StoreError, Transact, Transacted};

use super::calls::Sent;
use super::ready::RunNo;
use super::{Driver, Place, Slot};

impl Driver {
    pub(super) fn transacted(&mut self, no: RunNo, transact: Transact, answer: Result<Transacted, CommitError>) {
        match answer {
            Ok(Transacted::Committed(committed)) => {
                self.time.has_passed(committed.now);
                self.transaction_applied(no);
            }
            Ok(Transacted::RolledBack(failure)) => self.rolled_back(no, failure),
            Err(CommitError::NotApplied(error @ StoreError::Unsupported)) => {
                let failure = Failure::new(code::TRANSACTIONS_UNSUPPORTED, error.to_string()).permanent();
                self.rolled_back(no, failure);
            }
            Err(CommitError::Unknown(txn)) => {
                self.under_way.push(self.calls.resolve(no, Sent::Transact(transact), txn));
            }
            Err(CommitError::NotApplied(error)) if error.is_retryable() => {
                tracing::warn!(run = %transact.commit.run, %error, "a transaction could not be run; it is tried again");
                let Some(place) = self.places.get_mut(&no) else { return };
                place.resends += 1;
                self.under_way.push(self.calls.again(no, Sent::Transact(transact), place.resends));
            }
            Err(CommitError::Rejected(rejection)) => self.rejected(no, &transact.commit, rejection),
            Err(error) => self.lost(no, &transact.commit, &error),
        }
    }

    /// Sends once more what was certainly not applied.
    pub(super) fn send_again(&mut self, no: RunNo, sent: Sent) {
        if !self.places.contains_key(&no) {
            return;
        }
        match sent {
            Sent::Commit(commit) => self.commits.push((no, commit)),
            Sent::Transact(transact) => self.under_way.push(self.calls.transact(no, transact)),
        }
    }

    pub(super) fn transaction_applied(&mut self, no: RunNo) {
        let Some(place) = self.places.get_mut(&no) else { return };
        if std::mem::take(&mut place.suspect) {
            self.board.suspect_settled();
        }
        let Slot::Live(run) = &mut place.slot else { return };
        (place.resends, place.reloads) = (0, 0);
        let (commit, mut applied) = match run.transacted() {
            Ok(Some(transacted)) => transacted,
            Ok(None) => return,
            Err(stop) => {
                self.stop(no, &stop);
                return;
            }
        };
        self.board.publish(&commit.run, run.identity().generation, std::mem::take(&mut applied.emitted));
        if !self.park_if_stopped(no) {
            self.after(no, &commit, applied);
        }
    }

    fn rolled_back(&mut self, no: RunNo, failure: Failure) {
        let Some(Place { slot: Slot::Live(run), resends, .. }) = self.places.get_mut(&no) else { return };
        *resends = 0;
        run.rolled_back(failure);
        if !self.park_if_stopped(no) {
            self.advance(no);
        }
    }

    /// Parks a run that was stopped while its commit was under way; whether it was.
    pub(super) fn park_if_stopped(&mut self, no: RunNo) -> bool {
        let Some(Place { slot: Slot::Live(run), stopped, .. }) = self.places.get_mut(&no) else { return false };
        let Some(reason) = stopped.take() else { return false };
        let (key, fence, next) = (run.identity().run.clone(), run.fence(), run.durable());
        self.park(no, &key, fence, next, reason);
        true
    }
}
