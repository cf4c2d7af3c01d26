//! The runs that end here.

use outlast_core::id::RunKey;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::RunHandle;
use crate::engine::Engine;

/// The runs of all namespaces whose last commit this process writes, as they end: [`Engine::ends`].
pub struct Ends {
    engine: Engine,
    ended: broadcast::Receiver<RunKey>,
}

impl Engine {
    /// Tells which runs end in this process from now on. Whoever is slow misses some: the engine waits for nobody.
    pub fn ends(&self) -> Ends {
        Ends { engine: self.clone(), ended: self.inner.board.ends() }
    }
}

impl Ends {
    /// One that has ended already, if there is one.
    pub fn ready(&mut self) -> Option<RunHandle> {
        loop {
            match self.ended.try_recv() {
                Ok(run) => return Some(RunHandle::new(&self.engine, run)),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// The next one; none once the engine is gone.
    pub async fn next(&mut self) -> Option<RunHandle> {
        loop {
            match self.ended.recv().await {
                Ok(run) => return Some(RunHandle::new(&self.engine, run)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
