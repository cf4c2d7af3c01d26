//! What a step's body knows about itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use outlast_core::id::{Generation, Key, RunId, RunKey};
use outlast_core::planted;
use tokio::sync::Notify;

use super::program::RunInfo;
use super::wake::Wakes;
use crate::worker::part;

/// What a step's body knows about the attempt it is. It has no durable operations: a step is one operation.
#[derive(Clone)]
pub struct StepContext(Arc<Attempt>);

struct Attempt {
    run: RunKey,
    generation: Generation,
    key: Key,
    number: u32,
    /// Made when it is asked for.
    idempotency_key: OnceLock<String>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
    wakes: Arc<Wakes>,
}

impl StepContext {
    pub(super) fn new(info: &RunInfo, wakes: &Arc<Wakes>, key: &Key, number: u32) -> Self {
        StepContext(Arc::new(Attempt {
            run: info.run.clone(),
            generation: info.generation,
            key: key.clone(),
            number,
            idempotency_key: OnceLock::new(),
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            wakes: Arc::clone(wakes),
        }))
    }

    /// The same for all attempts at this step, and for no other step of any run: `namespace/run/generation/key`, where a
    /// `/` in the namespace or the run's id is `%2F`. Whoever does the work can recognise a second attempt by it.
    pub fn idempotency_key(&self) -> &str {
        self.0.idempotency_key.get_or_init(|| {
            let Attempt { run, generation, key, number, .. } = &*self.0;
            let own = if planted!("idempotency-key-per-attempt") { format!("/{number}") } else { String::new() };
            let (namespace, id) = (part(run.namespace.as_str()), part(run.id.as_str()));
            format!("{namespace}/{id}/{generation}/{key}{own}")
        })
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.number
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.0.run.id
    }

    /// Gives a sign of life: a step with a [`Step::heartbeat`](crate::Step::heartbeat) is allowed that much silence from
    /// now on. May be called from any thread, and as often as is convenient.
    pub fn heartbeat(&self) {
        if !self.is_cancelled() {
            self.0.wakes.heartbeat(&self.0.key, self.0.number);
        }
    }

    /// Whether this attempt is cancelled, or out of time. Its future is dropped then; what it handed to other tasks or
    /// threads goes on, and can ask here.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Completes when this attempt is cancelled, or out of time.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let attempt = Arc::clone(&self.0);
        async move {
            // Listens before it looks: what happens in between is heard.
            let notified = attempt.cancelled.notified();
            if !attempt.is_cancelled.load(Ordering::Acquire) {
                notified.await;
            }
        }
    }

    pub(super) fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.cancelled.notify_waiters();
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext").field("key", &self.idempotency_key()).field("attempt", &self.0.number).finish()
    }
}
