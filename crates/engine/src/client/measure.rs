//! How much there is to do, as numbers and as gauges.

use outlast_core::commit::Status;
use outlast_store::Depths;

use super::EngineError;
use crate::engine::Engine;
use crate::meters;

/// How much there is to do, and how many runs stand where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// What is ready and what is queued, in all namespaces: they share drivers and workers.
    pub depths: Depths,
    /// How many runs of the engine's namespace stand where; without those of which there are none.
    pub runs: Vec<(Status, u64)>,
}

impl Engine {
    /// Measures how much there is to do, and sets the gauges of the `metrics` facade to it: to be called before they are read, for
    /// instance when a scrape comes. The engine itself never does, because it costs the store a look at every task.
    ///
    /// ```
    /// # use outlast::Outlast;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().start().await?;
    /// engine.enqueue("pack", &42).queue("parcels").await?;
    /// let measured = engine.measure().await?;
    /// assert_eq!(measured.depths.queues[0].queue.as_str(), "parcels");
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn measure(&self) -> Result<Measured, EngineError> {
        let store = self.inner.store()?;
        let measured = Measured { depths: store.depths().await?, runs: store.count(self.namespace.clone()).await? };
        meters::measured(&self.namespace, &measured, &self.inner.gauged);
        Ok(measured)
    }
}
