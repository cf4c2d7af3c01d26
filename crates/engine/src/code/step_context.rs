//! What a step's body knows about itself.

use std::fmt;
use std::sync::Arc;

use outlast_core::id::{Key, RunId};
use outlast_core::planted;
use tokio::sync::watch;

use super::program::RunInfo;
use super::wake::Wakes;

/// What a step's body knows about the attempt it is. It has no durable operations: a step is one operation.
#[derive(Clone)]
pub struct StepContext(Arc<Attempt>);

struct Attempt {
    run: RunId,
    idempotency_key: String,
    number: u32,
    cancelled: watch::Sender<bool>,
    key: Key,
    wakes: Arc<Wakes>,
}

impl StepContext {
    pub(super) fn new(info: &RunInfo, wakes: &Arc<Wakes>, key: &Key, number: u32) -> Self {
        let own = if planted!("idempotency-key-per-attempt") { format!("/{number}") } else { String::new() };
        StepContext(Arc::new(Attempt {
            run: info.run.id.clone(),
            idempotency_key: format!("{}/{}/{key}{own}", info.run, info.generation),
            number,
            cancelled: watch::Sender::new(false),
            key: key.clone(),
            wakes: Arc::clone(wakes),
        }))
    }

    /// The same for all attempts at this step, and for no other step of any run: `namespace/run/generation/key`.
    /// Whoever does the work can recognise a second attempt by it.
    pub fn idempotency_key(&self) -> &str {
        &self.0.idempotency_key
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.number
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.0.run
    }

    /// Gives a sign of life: a step with a [`Step::heartbeat`](crate::Step::heartbeat) is allowed that much silence from
    /// now on. May be called from any thread, and as often as is convenient.
    pub fn heartbeat(&self) {
        if !self.is_cancelled() {
            self.0.wakes.heartbeat(&self.0.key);
        }
    }

    /// Whether this attempt is cancelled, or out of time. Its future is dropped then; what it handed to other tasks or
    /// threads goes on, and can ask here.
    pub fn is_cancelled(&self) -> bool {
        *self.0.cancelled.borrow()
    }

    /// Completes when this attempt is cancelled, or out of time.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        // The sender lives as long as the attempt, and this keeps the attempt alive: there is no other end to wait for.
        let attempt = Arc::clone(&self.0);
        async move {
            let _ = attempt.cancelled.subscribe().wait_for(|cancelled| *cancelled).await;
        }
    }

    pub(super) fn cancel(&self) {
        self.0.cancelled.send_replace(true);
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext").field("key", &self.0.idempotency_key).field("attempt", &self.0.number).finish()
    }
}
