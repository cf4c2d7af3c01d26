//! What was replied under a key is replied again.

use super::scene::*;
use crate::{KeyedReply, Retention, StoreError};

super::stories! {
    reply_is_kept_once_and_told_again,
    reply_of_another_namespace_is_another,
    reply_goes_with_retention_after_a_day,
}

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

async fn reply(s: &Scene<'_>, of: &str, key: &str, reply: Option<&str>) -> Result<Option<bytes::Bytes>, StoreError> {
    s.store.reply(KeyedReply { namespace: namespace(of), key: id(key), reply: reply.map(bytes) }).await
}

async fn reply_is_kept_once_and_told_again(s: Scene<'_>) {
    assert_eq!(reply(&s, "default", "k", None).await, Ok(None));
    assert_eq!(reply(&s, "default", "k", Some("one")).await, Ok(None), "it is new");
    assert_eq!(reply(&s, "default", "k", Some("two")).await, Ok(Some(bytes("one"))), "and stays as it was");
    assert_eq!(reply(&s, "default", "k", None).await, Ok(Some(bytes("one"))));
    assert_eq!(reply(&s, "default", "other", None).await, Ok(None));
}

async fn reply_of_another_namespace_is_another(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    reply(&s, "default", "k", Some("one")).await.unwrap();
    assert_eq!(reply(&s, "other", "k", Some("two")).await, Ok(None));
    assert_eq!(reply(&s, "other", "k", None).await, Ok(Some(bytes("two"))));
    let nowhere = reply(&s, "nowhere", "k", None).await;
    assert_eq!(nowhere, Err(StoreError::UnknownNamespace(namespace("nowhere"))));
}

async fn reply_goes_with_retention_after_a_day(s: Scene<'_>) {
    for key in ["old", "young"] {
        reply(&s, "default", key, Some("x")).await.unwrap();
        s.clock.advance(1);
    }
    let retain = || s.store.retain(Retention { age: std::time::Duration::MAX, limit: 10 });
    s.clock.set(DAY_MS - 1);
    assert_eq!(retain().await.unwrap().rows, 0);
    s.clock.set(DAY_MS);
    assert_eq!(retain().await.unwrap().rows, 1);
    assert_eq!(reply(&s, "default", "old", None).await, Ok(None));
    assert_eq!(reply(&s, "default", "young", None).await, Ok(Some(bytes("x"))));
}
