//! Watching the operations of a run.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::drive::Lifecycle;

/// The operations of a run that is being watched, as far as it is driven in this process.
pub struct Watched {
    happening: broadcast::Receiver<Lifecycle>,
}

impl Watched {
    pub(super) fn new(happening: broadcast::Receiver<Lifecycle>) -> Watched {
        Watched { happening }
    }

    /// What happens next. A watcher that is slow misses what it has no room for. Nothing tells that the run will never be
    /// driven here again: watch its status for that.
    pub async fn next(&mut self) -> Lifecycle {
        loop {
            match self.happening.recv().await {
                Ok(lifecycle) => return lifecycle,
                Err(RecvError::Lagged(_)) => {}
                // The last sender goes with the last commit of a run nobody drives here any more.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// What happened and was not told yet.
    pub fn so_far(&mut self) -> Vec<Lifecycle> {
        let mut told = Vec::new();
        loop {
            match self.happening.try_recv() {
                Ok(lifecycle) => told.push(lifecycle),
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => return told,
            }
        }
    }
}
