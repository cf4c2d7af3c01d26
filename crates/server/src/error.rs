//! What a client is told when something did not work: a stable code, what happened, and what to do next.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outlast::{EngineError, StoreError, Trouble};

use crate::dto::ErrorBody;

/// An answer that is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    status: StatusCode,
    body: ErrorBody,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        code: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> ApiError {
        ApiError { status, body: ErrorBody { code: code.into(), message: message.into(), hint: hint.into() } }
    }

    /// Its code and message, for an answer that tells of several.
    pub(crate) fn told(self) -> (String, String) {
        (self.body.code, self.body.message)
    }

    /// The request cannot be read as the document describes it: whoever sent it must change it.
    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "validation_error", message, "correct the request, then send it again")
    }

    /// The request can be read, and says what cannot be: a cursor that no page ended with, a time zone that there is not.
    pub(crate) fn unfit(message: impl Into<String>) -> ApiError {
        ApiError { status: StatusCode::UNPROCESSABLE_ENTITY, ..ApiError::invalid(message) }
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", message, "check the id, and whose token you use")
    }

    /// Something is larger than its limit.
    pub(crate) fn too_large(message: impl Into<String>) -> ApiError {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "limit_exceeded",
            message,
            "send less, and keep what is large elsewhere",
        )
    }

    /// A fault on this side. What it was stands in the log, not in the answer.
    pub(crate) fn internal() -> ApiError {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the server failed to answer",
            "look at the server's log",
        )
    }

    /// The server is going away.
    pub(crate) fn stopping() -> ApiError {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "the server is shutting down",
            "ask again in a moment",
        )
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What the client reads.
    pub fn body(&self) -> &ErrorBody {
        &self.body
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let (status, code) = classify(&error);
        if status.is_server_error() {
            tracing::error!(%error, code, "a request could not be done");
        }
        match &error {
            // The database's own words are for the operator.
            EngineError::Store(StoreError::Unavailable { trouble, .. }) => {
                ApiError::new(status, code, "the store is unavailable", trouble.hint())
            }
            _ if status == StatusCode::INTERNAL_SERVER_ERROR => ApiError { status, ..ApiError::internal() }.coded(code),
            _ => ApiError::worded(status, code, &error.to_string()),
        }
    }
}

impl ApiError {
    fn coded(mut self, code: &str) -> ApiError {
        self.body.code = code.to_owned();
        self
    }

    /// The engine's messages say what happened and, behind a semicolon, what to do.
    fn worded(status: StatusCode, code: &str, text: &str) -> ApiError {
        // Where there is only one line for both, the code stands before the message.
        let text = text.strip_prefix(code).and_then(|text| text.strip_prefix(": ")).unwrap_or(text);
        let (message, hint) = text.rsplit_once("; ").unwrap_or((text, "correct the request, then send it again"));
        ApiError::new(status, code, message, hint)
    }
}

/// The status and code of an error. Every kind has its own line, so that a new one must be thought about.
fn classify(error: &EngineError) -> (StatusCode, &str) {
    let status = match error {
        EngineError::UnknownWorkflow(_) | EngineError::NotFound { .. } | EngineError::UnknownSchedule(_) => {
            StatusCode::NOT_FOUND
        }
        EngineError::Failed(_)
        | EngineError::Cancelled(_)
        | EngineError::VersionMismatch { .. }
        | EngineError::Parked { .. }
        | EngineError::DuplicateWorkflow(_)
        | EngineError::DuplicateHandler(_)
        | EngineError::Lost { .. }
        | EngineError::AlreadyRunning(_)
        | EngineError::TaskLost(_)
        | EngineError::NothingToRetry { .. }
        | EngineError::Held { .. } => StatusCode::CONFLICT,
        EngineError::Mistakes { .. } | EngineError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        EngineError::Stopped => return (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        EngineError::Codec(_) | EngineError::NoRuntime => return (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        EngineError::Store(error) => return classify_store(error),
        // The engine's errors may grow; a new one is a fault until somebody thought about it.
        _ => return (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
    };
    (status, error.code())
}

fn classify_store(error: &StoreError) -> (StatusCode, &'static str) {
    match error {
        StoreError::NotFound(_) | StoreError::UnknownTask(_) | StoreError::UnknownNamespace(_) => {
            (StatusCode::NOT_FOUND, "not_found")
        }
        StoreError::Deleted { .. } => (StatusCode::GONE, "run_lost"),
        StoreError::Exists { .. } => (StatusCode::CONFLICT, "run_exists"),
        StoreError::Live(_) => (StatusCode::CONFLICT, "run_live"),
        StoreError::TaskNotDead { .. } => (StatusCode::CONFLICT, "task_not_dead"),
        StoreError::TaskExists(_) => (StatusCode::CONFLICT, "task_exists"),
        StoreError::TaskFenced(_) => (StatusCode::CONFLICT, "task_lost"),
        StoreError::DefinitionExists { .. } => (StatusCode::CONFLICT, "definition_exists"),
        StoreError::DefinitionNeeded { .. } => (StatusCode::CONFLICT, "definition_needed"),
        StoreError::DefinitionCurrent { .. } => (StatusCode::CONFLICT, "definition_current"),
        StoreError::Limit(_) => (StatusCode::PAYLOAD_TOO_LARGE, "limit_exceeded"),
        StoreError::Settings(_) | StoreError::Unsupported => (StatusCode::UNPROCESSABLE_ENTITY, "validation_error"),
        StoreError::Corrupt { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "corrupt"),
        StoreError::NewerDatabase { .. } | StoreError::UnsafeSqlite { .. } => {
            (StatusCode::INTERNAL_SERVER_ERROR, "internal")
        }
        StoreError::LeaseLapsed { .. } | StoreError::Fenced { .. } | StoreError::Locked { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        }
        StoreError::Unavailable { trouble, .. } => match trouble {
            Trouble::DiskFull => (StatusCode::INSUFFICIENT_STORAGE, "disk_full"),
            Trouble::ReadOnly
            | Trouble::Io
            | Trouble::Connection
            | Trouble::Busy
            | Trouble::Closed
            | Trouble::Other => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_is_told_apart_from_what_happened() {
        let error = ApiError::from(EngineError::UnknownSchedule("x".to_owned()));
        assert_eq!(error.status, StatusCode::NOT_FOUND);
        assert_eq!(error.body.code, "not_found");
        assert_eq!(error.body.message, "there is no schedule \"x\" in this namespace");
        assert_eq!(error.body.hint, "check the id, or put it first");
    }

    #[test]
    fn a_store_in_trouble_does_not_tell_its_own_words() {
        let secret = "password authentication failed for user \"canary\"";
        for (trouble, status) in [(Trouble::DiskFull, 507), (Trouble::Connection, 503), (Trouble::Other, 503)] {
            let error = ApiError::from(EngineError::Store(StoreError::unavailable(trouble, secret)));
            assert_eq!(error.status.as_u16(), status);
            assert!(!format!("{error:?}").contains("canary"));
        }
        let corrupt = ApiError::from(EngineError::Store(StoreError::corrupt("a run", "canary")));
        assert_eq!((corrupt.status.as_u16(), corrupt.body.code.as_str()), (500, "corrupt"));
        assert!(!format!("{corrupt:?}").contains("canary"));
    }
}
