//! Writes that are the same again by their key: what was replied once is replied again, and nothing is done.
//!
//! It is kept after the write is done and before it is acknowledged. So a server that dies in between does it once more when it is
//! asked again; all that come here may be repeated at once. What must not happen is that one is repeated after others came between.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use outlast::Engine;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::auth::{Caller, hex};
use crate::body::{self, IdempotencyKey};
use crate::error::{ApiError, ApiResult};

/// The longest reply that is kept. One that is longer, such as a long report of the doctor, is made anew.
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// What is kept.
#[derive(Serialize, Deserialize)]
struct Reply {
    /// The hash of what was asked for.
    request: String,
    status: u16,
    body: String,
}

/// Replies as before to what was asked before, and remembers what is new.
pub(crate) async fn once(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    match (caller, IdempotencyKey::read(request.headers())) {
        (Some(caller), Ok(IdempotencyKey(Some(key)))) => {
            under_key(&caller.engine, &key, request, next).await.unwrap_or_else(IntoResponse::into_response)
        }
        // The guard has told those whose key cannot be one.
        _ => next.run(request).await,
    }
}

async fn under_key(engine: &Engine, key: &str, request: Request, next: Next) -> ApiResult<Response> {
    let (parts, payload) = request.into_parts();
    let bytes = body::read(payload).await?;
    let asked = hash(&[parts.method.as_str().as_bytes(), parts.uri.to_string().as_bytes(), &bytes]);
    if let Some(body) = known(engine, key, &asked).await? {
        return Ok(body);
    }
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    if !response.status().is_success() {
        return Ok(response);
    }
    let (head, payload) = response.into_parts();
    let bytes = to_bytes(payload, usize::MAX).await.map_err(|_| ApiError::internal())?;
    if let (true, Ok(body)) = (bytes.len() <= REPLY_BYTES_MAX, String::from_utf8(bytes.to_vec())) {
        let reply = Reply { request: asked, status: head.status.as_u16(), body };
        keep(engine, key, &reply).await;
    }
    Ok(Response::from_parts(head, Body::from(bytes)))
}

/// The reply of the first time; none if this is the first time.
async fn known(engine: &Engine, key: &str, asked: &str) -> ApiResult<Option<Response>> {
    let Some(kept) = engine.reply(&name(key), None).await? else { return Ok(None) };
    let reply: Reply = serde_json::from_slice(&kept).map_err(|_| ApiError::internal())?;
    if reply.request != asked {
        return Err(reused());
    }
    let status = StatusCode::from_u16(reply.status).map_err(|_| ApiError::internal())?;
    let json = HeaderValue::from_static("application/json");
    Ok(Some((status, [(header::CONTENT_TYPE, json)], reply.body).into_response()))
}

async fn keep(engine: &Engine, key: &str, reply: &Reply) {
    let bytes = serde_json::to_vec(reply).map(Bytes::from).unwrap_or_default();
    // It is done: whoever asks again does it again, which is better than to be told that it was not.
    if let Err(error) = engine.reply(&name(key), Some(bytes)).await {
        tracing::warn!(%error, "what was replied under a key could not be kept");
    }
}

/// The name under which something is kept: keys may be of letters that no id can have.
fn name(key: &str) -> String {
    hash(&[key.as_bytes()])
}

/// One hash of several parts, each told apart from the next.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// A key says that a request is the same again, and this one is not.
pub(crate) fn reused() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "key_reused",
        "something else was asked for under this `Idempotency-Key`",
        "take another key for another request",
    )
}
