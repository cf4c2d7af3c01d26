//! Driving one run in one call.

use std::sync::Arc;

use outlast_core::commit::Status;
use outlast_core::id::RunKey;
use outlast_core::time::Timestamp;
use outlast_store::{Awaited, RunView};

use super::EngineError;
use crate::engine::Engine;
use crate::node::Once;

/// Where a run stands after it was driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driven {
    /// In a word.
    pub status: Status,
    /// What it waits for; nothing if it has ended.
    pub awaiting: Vec<Awaited>,
}

impl Driven {
    /// When the first of its timers is due. Nothing fires it by itself where there are no loops: call again then.
    pub fn due(&self) -> Option<Timestamp> {
        let due = self.awaiting.iter().filter_map(|awaited| match awaited {
            Awaited::Timer { due, .. } => Some(*due),
            Awaited::Wait { .. } | Awaited::Task { .. } | Awaited::Child { .. } => None,
        });
        due.min()
    }
}

impl Engine {
    /// Drives one run to its next pause or its end, and says where it stands then. Timers that are due are fired first; its
    /// children are not driven. For an engine [without loops](crate::Outlast::without_loops): a webhook delivers what came,
    /// and drives.
    ///
    /// The run is driven to its pause even if the caller stops waiting. If another engine drives it, the answer is
    /// [`EngineError::Held`]: it goes on there.
    ///
    /// ```
    /// # use outlast::{Ctx, Outlast, Status};
    /// # async fn hear(ctx: Ctx, _: ()) -> outlast::Result<String> { ctx.wait_for("word").await }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let engine = Outlast::memory().workflow("hear", hear).without_loops().start().await?;
    /// engine.start("hear", &()).id("a").await?;
    /// assert_eq!(engine.drive_once("a").await?.status, Status::Waiting);
    ///
    /// engine.run("a")?.signal("word", "hello", "signal-1").await?;
    /// assert_eq!(engine.drive_once("a").await?.status, Status::Completed);
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drive_once(&self, run: &str) -> Result<Driven, EngineError> {
        let key = self.key(run)?;
        let mut view = self.drive_here(&key).await?;
        let unknown = |view: &RunView| {
            let ready = view.ready && view.status.is_claimable();
            ready && !self.inner.registry.can_drive(&view.workflow, &view.version)
        };
        if unknown(&view) {
            // Another process may have been given its text.
            self.inner.registry.learn(&*self.inner.store()?).await?;
            view = self.drive_here(&key).await?;
        }
        if unknown(&view) {
            return Err(EngineError::UnknownWorkflow(view.workflow.to_string()));
        }
        let awaiting = self.inner.store()?.awaiting(key).await?;
        Ok(Driven { status: view.status, awaiting })
    }

    /// Where the run stands when this node has driven it.
    async fn drive_here(&self, key: &RunKey) -> Result<RunView, EngineError> {
        let inner = Arc::clone(&self.inner);
        let once = self.inner.node()?.drive_once(key.clone(), move || inner.next_claim()).await;
        match once.ok_or(EngineError::Stopped)?? {
            Once::Stands(view) => Ok(*view),
            Once::Stopping => Err(EngineError::Stopped),
            Once::Held(lease) => Err(EngineError::Held { run: key.clone(), lease }),
        }
    }
}
