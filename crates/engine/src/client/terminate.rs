//! Ending a run without asking it.

use std::pin::Pin;

use tokio::sync::oneshot;

use super::{EngineError, RunHandle};
use crate::driver::{Command, Terminate, Terminated};

impl RunHandle {
    /// Ends the run without asking it: its cleanup does not run, whoever drives it is cut off, and what it executes is
    /// refused. Works wherever it stands, also parked, and also if its program cannot be built any more. Its children are
    /// closed as it was said when they were started, and its parent is told.
    pub fn terminate(&self, reason: &str) -> Terminating<'_> {
        Terminating { handle: self, reason: reason.to_owned(), by: None }
    }
}

/// A run is about to be ended. Await it.
#[must_use = "the run is ended when this is awaited"]
pub struct Terminating<'h> {
    handle: &'h RunHandle,
    reason: String,
    by: Option<String>,
}

impl<'h> Terminating<'h> {
    /// Who ends it.
    pub fn by(mut self, by: &str) -> Terminating<'h> {
        self.by = Some(by.to_owned());
        self
    }

    async fn send(self) -> Result<(), EngineError> {
        let Terminating { handle, reason, by } = self;
        let inner = &handle.engine.inner;
        let node = inner.node()?;
        if !node.looping {
            node.hold_lease().await?;
        }
        let (reply, answer) = oneshot::channel();
        let order = Terminate { run: handle.run.clone(), reason, by, claim: inner.next_claim(), reply };
        if !inner.drivers.send(&handle.run, Command::Terminate(Box::new(order))) {
            return Err(EngineError::Stopped);
        }
        match answer.await.map_err(|_| EngineError::Stopped)?? {
            Terminated::Now => Ok(()),
            Terminated::Before => Err(EngineError::Lost { run: handle.run.clone(), what: "a request" }),
        }
    }
}

impl<'h> IntoFuture for Terminating<'h> {
    type Output = Result<(), EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'h>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
