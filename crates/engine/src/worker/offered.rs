//! A task that an engine elsewhere offered, done by a handler here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use outlast_core::failure::Failure;
use outlast_core::id::TaskToken;
use outlast_store::ClaimedTask;
use tokio::runtime::Handle;

use super::TaskContext;
use super::handler::Call;
use crate::board::Board;
use crate::client::TaskOffer;
use crate::code::guarded;
use crate::error::Error;
use crate::host::{Threads, Time};

/// An attempt at a task that an engine elsewhere offered, made by a handler of this process: [`Handler::offered`]. Whoever asks over
/// a network claims the task, gives the signs of life and says what came of it; this is what lies between.
///
/// [`Handler::offered`]: crate::Handler::offered
pub struct OfferedAttempt {
    context: TaskContext,
    call: Arc<Call>,
    args: Bytes,
    time: Arc<Time>,
}

impl OfferedAttempt {
    pub(super) fn new(call: Arc<Call>, offer: &TaskOffer, runtime: Handle) -> OfferedAttempt {
        let time = Arc::new(Time::new(Arc::new(Threads::new(runtime))));
        let task = ClaimedTask {
            namespace: offer.namespace.clone(),
            id: offer.id.clone(),
            run: offer.run.clone(),
            key: None,
            name: offer.name.clone(),
            queue: offer.queue.clone(),
            args: offer.args.clone(),
            attempt: offer.attempt,
            since: offer.now,
            lapsed: None,
            token: TaskToken(0),
            until: offer.until,
            meta: None,
            now: offer.now,
        };
        let context = TaskContext::new(&task, Arc::clone(&time), Arc::new(Board::new()));
        OfferedAttempt { context, call, args: offer.args.clone(), time }
    }

    /// Runs the handler to its end, and gives its result as JSON; none if it was stopped before.
    pub async fn run(&self) -> Option<Result<Bytes, Failure>> {
        let work = guarded("the handler", || (self.call)(self.context.clone(), self.args.clone()));
        let ended = match select(std::pin::pin!(work), std::pin::pin!(self.context.cancelled())).await {
            Either::Left((result, _)) => Some(result.map_err(Error::into_failure)),
            Either::Right(_) => None,
        };
        // Whatever the handler left behind is told.
        self.context.cancel();
        ended
    }

    /// Stops it: nobody wants it any more, or it is somebody else's.
    pub fn stop(&self) {
        self.context.cancel();
    }

    /// How long ago its handler gave the last sign of life.
    pub fn silent_for(&self) -> Duration {
        self.time.host().elapsed().saturating_sub(self.context.last_beat())
    }

    /// What its handler wants to be shown, as JSON, if there is something new.
    pub fn take_progress(&self) -> Option<Bytes> {
        self.context.take_progress()
    }
}
