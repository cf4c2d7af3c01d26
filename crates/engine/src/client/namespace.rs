//! One engine for the clients of many namespaces.

use std::sync::Arc;

use outlast_core::id::Namespace;
use outlast_core::time::Timestamp;

use super::EngineError;
use crate::engine::Engine;

impl Engine {
    /// The same engine for the clients of another namespace, which is created if it is new: it shares drivers, workers and the
    /// store with this one, and sees no run, task, schedule or text of any other namespace.
    ///
    /// ```
    /// # use outlast::Outlast;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let engine = Outlast::memory().start().await?;
    /// let shop = engine.in_namespace("shop").await?;
    /// shop.define_script("n.wf", "return 1").await?;
    /// let run = shop.start("n", &()).id("a").await?;
    /// assert_eq!(run.result::<u32>().await?, 1);
    /// assert_eq!(engine.run("a")?.status().await.unwrap_err().code(), "not_found");
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn in_namespace(&self, namespace: &str) -> Result<Engine, EngineError> {
        let namespace = Namespace::new(namespace)?;
        self.inner.store()?.put_namespace(namespace.clone()).await?;
        Ok(Engine { inner: Arc::clone(&self.inner), namespace })
    }

    /// Whether there is a namespace of this name.
    pub async fn has_namespace(&self, namespace: &str) -> Result<bool, EngineError> {
        let known = self.inner.store()?.namespaces().await?;
        Ok(known.iter().any(|known| known.as_str() == namespace))
    }

    /// The namespace of this client.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The engine's time, which follows the store's.
    pub fn now(&self) -> Timestamp {
        self.inner.time.now()
    }

    /// Whether the store answers.
    pub async fn ping(&self) -> Result<(), EngineError> {
        self.inner.store()?.namespaces().await?;
        Ok(())
    }
}
