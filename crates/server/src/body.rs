//! Reading requests. Whatever is wrong with one is told to its sender, and nothing of it is ever a fault of the server.

mod scan;

use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};

use crate::error::{ApiError, ApiResult};

pub(crate) use scan::{DEPTH_MAX, compact};

/// The most a request's body can have.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much of a body that is too large is read, to be thrown away.
const SPILLED_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;
/// How many whole numbers of a body may be written as `91.0`, which says the same to every schema.
const WHOLE_NUMBERS_MAX: usize = 32;
/// How long a body may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(20);
/// The longest `Idempotency-Key`: as long as an id of a delivery can be.
pub(crate) const KEY_BYTES_MAX: usize = 255;

/// The body of a request, as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> ApiResult<Self> {
        let (parts, body) = request.into_parts();
        let is_json = check_type(&parts)?;
        let bytes = read(body).await?;
        if !is_json && !bytes.is_empty() {
            return Err(not_json());
        }
        // An empty body says nothing, as `{}` does, and as `null` does where there need be none.
        let says_nothing = bytes.is_empty() || bytes.trim_ascii() == b"null";
        let text = if says_nothing { &b"{}"[..] } else { &bytes[..] };
        // Fields without their names would be taken for what stands in their place.
        if text.trim_ascii_start().first() == Some(&b'[') {
            return Err(ApiError::invalid("the body is not what is expected: it must be an object, and is a list"));
        }
        parse(text).map(Json)
    }
}

/// Whether the body is said to be JSON; false if nothing is said. Only JSON is read: a form that a foreign page sends by itself
/// is not, and a browser asks first before it sends JSON.
fn check_type(parts: &Parts) -> ApiResult<bool> {
    let Some(kind) = parts.headers.get(header::CONTENT_TYPE) else { return Ok(false) };
    let kind = kind.to_str().map_err(|_| not_json())?;
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") { Ok(true) } else { Err(not_json()) }
}

fn not_json() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "the body of a request must be JSON",
        "send it with `content-type: application/json`",
    )
}

/// The whole body, if it is small enough and comes soon enough.
pub(crate) async fn read(mut body: Body) -> ApiResult<Bytes> {
    let gather = async {
        let (mut bytes, mut came) = (BytesMut::new(), 0);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ApiError::invalid("the body of the request was cut off"))?;
            let Ok(data) = frame.into_data() else { continue };
            came += data.len();
            if came <= BODY_BYTES_MAX {
                bytes.extend_from_slice(&data);
            } else if came <= SPILLED_BYTES_MAX {
                // It is not kept, but read for a while: whoever still sends does not hear the answer.
                bytes.clear();
            } else {
                break;
            }
        }
        if came > BODY_BYTES_MAX {
            return Err(ApiError::too_large(format!("the body of a request may have {BODY_BYTES_MAX} bytes")));
        }
        Ok(bytes.freeze())
    };
    tokio::time::timeout(BODY_TIME_MAX, gather).await.unwrap_or_else(|_| {
        let seconds = BODY_TIME_MAX.as_secs();
        let message = format!("the body of the request did not arrive within {seconds} s");
        Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message, "send it again, faster"))
    })
}

/// Reads JSON whose depth was checked before anything looks into it.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ApiError::invalid(format!("the body is not UTF-8: byte {} cannot be read", error.valid_up_to()))
    })?;
    if scan::depth(text) > DEPTH_MAX {
        return Err(ApiError::invalid(format!("the body nests deeper than {DEPTH_MAX} levels")));
    }
    let mut patched = None;
    for _ in 0..WHOLE_NUMBERS_MAX {
        match serde_json::from_str(patched.as_deref().unwrap_or(text)) {
            Ok(read) => return Ok(read),
            Err(error) => match scan::whole_number(patched.as_deref().unwrap_or(text), error.line(), error.column()) {
                Some(other) if error.is_data() => patched = Some(other),
                _ => return Err(unexpected(&error)),
            },
        }
    }
    serde_json::from_str(patched.as_deref().unwrap_or(text)).map_err(|error| unexpected(&error))
}

fn unexpected(error: &serde_json::Error) -> ApiError {
    ApiError::invalid(format!("the body is not what is expected: {error}"))
}

/// The parameters behind `?`.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let refused = |error: QueryRejection| ApiError::invalid(error.body_text());
        axum::extract::Query::from_request_parts(parts, state).await.map(|query| Query(query.0)).map_err(refused)
    }
}

/// A number that every client and database can write: the document says so.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(deserializer)?;
    let too_large = |number| D::Error::custom(format!("{number} is more than {}", i64::MAX));
    number.map(|number| i64::try_from(number).map(|_| number).map_err(|_| too_large(number))).transpose()
}

/// The parts of the path that vary.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let refused = |error: PathRejection| ApiError::invalid(error.body_text());
        // The document says of what letters each part is.
        if let Ok(raw) = RawPathParams::from_request_parts(parts, state).await
            && raw.iter().any(|(_, part)| part.chars().any(char::is_control))
        {
            return Err(ApiError::invalid("a part of the path has letters that cannot be printed"));
        }
        axum::extract::Path::from_request_parts(parts, state).await.map(|path| Path(path.0)).map_err(refused)
    }
}

/// The header `Idempotency-Key`: the same write under the same key is done once.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> ApiResult<Self> {
        IdempotencyKey::read(&parts.headers)
    }
}

impl IdempotencyKey {
    /// Its name, as people write it.
    pub(crate) const NAME: &'static str = "Idempotency-Key";

    /// Reads it. Every write does, also one that is the same twice by itself: a key that cannot be one is always told.
    pub(crate) fn read(headers: &HeaderMap) -> ApiResult<IdempotencyKey> {
        let Some(key) = headers.get(IdempotencyKey::NAME) else { return Ok(IdempotencyKey(None)) };
        let fits = |key: &&str| !key.is_empty() && key.len() <= KEY_BYTES_MAX && !key.contains('\t');
        let key = key.to_str().ok().filter(fits);
        let refusal = || {
            ApiError::invalid(format!(
                "the header `{}` must have 1 to {KEY_BYTES_MAX} printable characters",
                IdempotencyKey::NAME
            ))
        };
        Ok(IdempotencyKey(Some(key.ok_or_else(refusal)?.to_owned())))
    }
}

/// A text that people wrote. A NUL cannot be stored by every database, and everything has a limit.
pub(crate) fn text<'t>(what: &str, text: &'t str, bytes_max: usize) -> ApiResult<&'t str> {
    if text.contains('\0') {
        return Err(ApiError::unfit(format!("{what} must not contain a NUL")));
    }
    if text.len() > bytes_max {
        let message = format!("{what} has {} bytes, the limit is {bytes_max}", text.len());
        return Err(ApiError::unfit(message));
    }
    Ok(text)
}

/// The most that a reason, a note or a comment can have.
pub(crate) const TEXT_BYTES_MAX: usize = 8 * 1024;
