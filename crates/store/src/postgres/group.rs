//! Group commit: whatever callers ask for while a transaction commits shares the next one.
//!
//! Callers put their batches into one bounded queue and wait for the answer; a few lanes take their share of what is
//! there into a transaction each. All database work happens in the lanes, so a caller may stop waiting at any time.

pub(super) mod advance;
mod batch;
pub(super) mod lane;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use outlast_core::id::TxnId;
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::Core;
use super::needs::Needs;
use super::work::Work;
use super::working_set::WorkingSet;
use crate::error::{StoreError, Trouble};
use advance::Advance;
use batch::Batch;

/// A lane takes at least so many batches, if they are there: a smaller transaction costs as much.
const SHARE_MIN: usize = 32;
/// The most items one transaction takes, unless a single batch has more.
const GROUP_ITEMS_MAX: usize = 1024;
/// The most payload one transaction takes, in bytes, unless a single item has more.
const GROUP_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Batches that may wait. Beyond it callers wait to be let in.
const QUEUE_BATCHES_MAX: usize = 4096;

/// How a group ended, for its items.
enum Ending<'e> {
    /// The answers hold.
    Applied,
    /// Whether they hold is not known.
    Unknown(TxnId),
    /// Nothing was applied.
    Failed(&'e StoreError),
}

/// What a pass of the logic over a working set left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pass {
    /// Some item asked for rows that were not there.
    missed: bool,
    /// Some item failed on rows that cannot be read; what it wrote must not count.
    failed: bool,
}

/// A batch of any kind of work.
trait Job: Send + Sync {
    fn items(&self) -> usize;
    fn weight(&self) -> usize;
    /// Whether any of its items is not settled.
    fn is_open(&self) -> bool;
    /// Leaves all items but this one alone; with none, takes all.
    fn focus(&mut self, item: Option<usize>);
    fn needs(&self, needs: &mut Needs);
    fn apply(&mut self, set: &mut WorkingSet, limits: &Limits) -> Pass;
    /// Whether any of its items was accepted and must be resolved if the reply is lost.
    fn must_resolve(&self) -> bool;
    fn settle(&mut self, ending: &Ending<'_>);
    /// Adds its items, if all of them do no more than advance their runs; whether they do.
    fn advances<'j>(&'j self, limits: &Limits, into: &mut Vec<Advance<'j>>) -> bool;
    /// Settles those that were advanced, at the given times. The others stay open.
    fn advanced(&mut self, at: &[Option<Timestamp>]);
    fn answer(self: Box<Self>);
}

/// Batches of any kinds of work.
type Jobs = Vec<Box<dyn Job>>;

/// Where the lanes get their batches.
struct Line {
    waiting: Mutex<mpsc::Receiver<Box<dyn Job>>>,
    /// Batches that the lanes have taken and not answered.
    taken: AtomicUsize,
    lanes: usize,
}

/// Where callers leave their batches.
pub(super) struct Queue {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

impl Queue {
    /// Starts the lanes. They end when the queue is dropped and what is in it is done.
    pub(super) fn start(core: &Arc<Core>, lanes: usize) -> Self {
        let (jobs, waiting) = mpsc::channel(QUEUE_BATCHES_MAX);
        let line = Arc::new(Line { waiting: Mutex::new(waiting), taken: AtomicUsize::new(0), lanes });
        for _ in 0..lanes {
            core.own(lane::run(Arc::clone(core), Arc::clone(&line)));
        }
        Queue { jobs }
    }

    /// Has a batch done. Each item has its own answer; items of one batch are done in their order.
    pub(super) async fn submit<W: Work>(&self, items: Vec<W>) -> Vec<Result<W::Answer, W::Refusal>> {
        let mut answers = Vec::with_capacity(items.len());
        for items in split(items) {
            let expected = items.len();
            let (reply, answer) = oneshot::channel();
            let sent = self.jobs.send(Box::new(Batch::new(items, reply))).await.is_ok();
            match answer.await {
                Ok(answer) if sent => answers.extend(answer),
                Ok(_) | Err(_) => {
                    let closed = || StoreError::unavailable(Trouble::Closed, "the store's lanes have ended");
                    answers.extend((0..expected).map(|_| Err(closed().into())));
                }
            }
        }
        answers
    }

    /// As [`Queue::submit`], for one item.
    pub(super) async fn submit_one<W: Work>(&self, item: W) -> Result<W::Answer, W::Refusal> {
        let closed = StoreError::unavailable(Trouble::Closed, "the store's lanes have ended");
        self.submit(vec![item]).await.pop().unwrap_or_else(|| Err(closed.into()))
    }
}

/// Cuts a batch into parts of bounded size, in order.
fn split<W: Work>(items: Vec<W>) -> Vec<Vec<W>> {
    let mut parts: Vec<Vec<W>> = Vec::new();
    let mut weight = 0;
    for item in items {
        let more = item.weight();
        match parts.last_mut() {
            Some(part) if part.len() < GROUP_ITEMS_MAX && weight + more <= GROUP_BYTES_MAX => {
                weight += more;
                part.push(item);
            }
            Some(_) | None => {
                weight = more;
                parts.push(vec![item]);
            }
        }
    }
    parts
}
