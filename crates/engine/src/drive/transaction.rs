//! Steps that run inside the store: their SQL and the record of their outcome are one commit.
//!
//! A transaction is the run's one commit in flight. Nothing is appended while it is under way: it takes the journal's
//! next index, and only the store knows with what.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use outlast_core::commit::{Commit, Then};
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::Key;
use outlast_core::operation::{Operation, Requested};
use outlast_core::record::Record;
use outlast_store::{BoxFuture, Transact, Tx, TxBody};

use super::run::{Applied, InFlight, Run, Stop};
use super::table::{Code, Detail, Entry};

/// Runs an author's closure; what it returned, as it is recorded.
pub(crate) type Body = Arc<dyn Fn(Tx) -> BoxFuture<'static, Result<Bytes, Failure>> + Send + Sync>;

/// The closures of a program's transactions that are not settled: left by the program, run by the store.
#[derive(Clone, Default)]
pub(crate) struct Transactions(Rc<RefCell<BTreeMap<Key, Body>>>);

impl Transactions {
    pub(crate) fn put(&self, key: Key, body: Body) {
        self.0.borrow_mut().insert(key, body);
    }

    pub(crate) fn remove(&self, key: &Key) {
        let removed = self.0.borrow_mut().remove(key);
        // Outside of the borrow: what a closure holds may be anybody's.
        drop(removed);
    }

    fn get(&self, key: &Key) -> Option<Body> {
        self.0.borrow().get(key).cloned()
    }
}

/// A transaction under way.
pub(super) struct UnderWay {
    key: Key,
    commit: Commit,
    given: Given,
}

/// What the body gave the last time it ran.
type Given = Arc<Mutex<Option<(Event, Record)>>>;

impl Run {
    /// Whether a transaction is under way.
    pub(super) fn is_transacting(&self) -> bool {
        self.transaction.is_some()
    }

    /// Hands a transaction out, if everything it depends on is durable; whether it did.
    pub(super) fn start_transaction(&mut self, key: &Key) -> bool {
        let durable = self.durable() == self.journal.next() && self.draft.is_empty() && !self.is_committing();
        let Some(body) = self.transactions.get(key).filter(|_| durable) else { return false };
        let attempt = self.table.run_body(key, self.moment.now);
        let mut commit = Commit::new(self.identity.run.clone(), self.fence, self.durable());
        if let Some(Entry { detail: Detail::Code(Code { due_item, .. }), .. }) = self.table.get(key) {
            commit.consumed.extend(*due_item);
        }
        let given = Given::default();
        let transact = Transact {
            commit: commit.clone(),
            body: self.recording(key, attempt, body, &given),
            idempotency_key: format!("{}/{}/{key}", self.identity.run, self.identity.generation),
            attempt,
        };
        let emitted = std::mem::take(&mut self.draft.emitted);
        self.set_in_flight(InFlight {
            until: self.durable().next(),
            has_snapshot: false,
            emitted,
            then: Then::Continue,
        });
        self.transaction = Some(UnderWay { key: key.clone(), commit, given });
        self.outgoing = Some(transact);
        true
    }

    /// The transaction to send, once.
    pub(crate) fn take_transaction(&mut self) -> Option<Transact> {
        self.outgoing.take()
    }

    /// Makes the record of what the closure returned.
    fn recording(&self, key: &Key, attempts: u32, body: Body, given: &Given) -> TxBody {
        let (key, given, now) = (key.clone(), Arc::clone(given), self.moment.now);
        let settings = Arc::clone(&self.settings);
        Arc::new(move |tx| {
            let (ran, key, given, settings) = (body(tx), key.clone(), Arc::clone(&given), Arc::clone(&settings));
            Box::pin(async move {
                let result = ran.await?;
                let checked = settings.limits.check_payload("the result of a transaction", result.len());
                checked.map_err(|error| Failure::new(code::LIMIT_EXCEEDED, format!("{key}: {error}")).permanent())?;
                let event = Event::StepFinished { key, result, attempts };
                let record = event.encode(now);
                *given.lock().unwrap_or_else(PoisonError::into_inner) = Some((event, record.clone()));
                Ok(vec![record])
            })
        })
    }

    /// The transaction is durable: what it did and what is recorded of it. What was committed, and what follows.
    pub(crate) fn transacted(&mut self) -> Result<Option<(Commit, Applied)>, Stop> {
        let Some(UnderWay { key, mut commit, given }) = self.transaction.take() else { return Ok(None) };
        let Some((event, record)) = given.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            self.give_up_in_flight();
            return Err(Stop::Unsound(format!("the store committed the transaction {key} without running it")));
        };
        if self.journal.next() != commit.expected {
            self.give_up_in_flight();
            return Err(Stop::Unsound(format!("something was recorded while the transaction {key} was under way")));
        }
        self.journal.append(self.journal.next(), event)?;
        self.table.stop_body(&key);
        if let Some(Entry { detail: Detail::Code(code), .. }) = self.table.get_mut(&key) {
            code.attempts += 1;
            code.due_item = None;
        }
        self.snapshots.recorded(&record);
        commit.events.push(record);
        Ok(self.committed().map(|applied| (commit, applied)))
    }

    /// The transaction was rolled back: an attempt that failed, like any other.
    pub(crate) fn rolled_back(&mut self, error: Failure) {
        let Some(UnderWay { key, .. }) = self.transaction.take() else { return };
        let earlier = self.give_up_in_flight().unwrap_or_default();
        self.draft.emitted.splice(0..0, earlier);
        self.end_body(Requested { operation: Operation::FailStep { key, error }, location: None });
    }
}
