//! Values to JSON and back. What live code receives has always been through here, so that replay cannot differ.

use bytes::Bytes;
use outlast_core::failure::{Failure, code};
use outlast_core::limits::{TOLD_BYTES_MAX, within};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::slot::Outcome;
use crate::error::{Error, Result};

/// A value as it is recorded.
pub(super) fn encode(what: &str, value: &(impl Serialize + ?Sized)) -> Result<Bytes> {
    match serde_json::to_vec(value) {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => Err(Error::invalid(format!("{what} cannot be written as JSON: {error}"))),
    }
}

/// A value that observers are told.
pub(super) fn encode_told(what: &'static str, value: &(impl Serialize + ?Sized)) -> Result<Bytes> {
    let bytes = encode(what, value)?;
    within(what, bytes.len(), TOLD_BYTES_MAX, "bytes")
        .map_err(|error| Error::from(Failure::new(code::LIMIT_EXCEEDED, error.to_string()).permanent()))?;
    Ok(bytes)
}

/// A recorded value.
pub(super) fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid(format!("{what} is not a {}: {error}", std::any::type_name::<T>())))
}

/// The outcome of an operation that gives a value.
pub(super) fn value<T: DeserializeOwned>(outcome: Outcome) -> Result<T> {
    match outcome {
        Outcome::Value(bytes) => decode("the recorded value", &bytes),
        Outcome::Failed(failure) => Err(failure.into()),
        Outcome::TimedOut(_) => Err(late()),
        Outcome::Done | Outcome::Decided(_) | Outcome::Started(_) | Outcome::Queued(_) => Err(unexpected("a value")),
    }
}

/// The outcome of an operation that gives a value, or none when its deadline passes.
pub(super) fn value_in_time<T: DeserializeOwned>(outcome: Outcome) -> Result<Option<T>> {
    if matches!(outcome, Outcome::TimedOut(_)) { Ok(None) } else { value(outcome).map(Some) }
}

/// The code of a wait whose signal did not come in time.
const WAIT_TIMEOUT: &str = "wait_timeout";

/// The outcome of a wait that fails when its deadline passes.
pub(super) fn value_or_wait_timeout<T: DeserializeOwned>(outcome: Outcome) -> Result<T> {
    match outcome {
        Outcome::TimedOut(name) => {
            let name = name.map_or_else(String::new, |name| format!(" {:?}", name.as_str()));
            Err(Error::new(WAIT_TIMEOUT, format!("the deadline passed before the signal{name} came")))
        }
        outcome => value(outcome),
    }
}

/// The outcome of an operation that only ends.
pub(super) fn done(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(failure) => Err(failure.into()),
        Outcome::TimedOut(_) => Err(late()),
        Outcome::Value(_) | Outcome::Decided(_) | Outcome::Started(_) | Outcome::Queued(_) => Err(unexpected("an end")),
    }
}

pub(super) fn late() -> Error {
    Failure::timeout("the deadline passed").into()
}

/// The journal holds an outcome of another kind under this key. The driver finds that before it is fed.
pub(super) fn unexpected(wanted: &str) -> Error {
    Error::invalid(format!("the journal holds something else where {wanted} belongs"))
}
