//! What was replied under a key is replied again.

use bytes::Bytes;
use outlast_core::id::DeliveryId;
use outlast_store::KeyedReply;

use super::EngineError;
use crate::engine::Engine;

impl Engine {
    /// What was replied to whoever asked this namespace for something under this key. If nothing was and there is a reply, keeps it,
    /// for a day at least. For those who put an engine behind a protocol whose requests are repeated: it is looked for before
    /// something is done, and kept before that is acknowledged.
    ///
    /// ```
    /// # use outlast::Outlast;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().start().await?;
    /// assert_eq!(engine.reply("k", None).await?, None);
    /// engine.reply("k", Some("done".into())).await?;
    /// assert_eq!(engine.reply("k", None).await?.as_deref(), Some(&b"done"[..]));
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reply(&self, key: &str, reply: Option<Bytes>) -> Result<Option<Bytes>, EngineError> {
        let (namespace, key) = (self.namespace.clone(), DeliveryId::new(key)?);
        Ok(self.inner.store()?.reply(KeyedReply { namespace, key, reply }).await?)
    }
}
