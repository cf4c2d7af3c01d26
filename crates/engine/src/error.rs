//! The one error of workflow code.

use std::any::Any;
use std::fmt;

use outlast_core::failure::{Failure, code};
use outlast_store::TxError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What workflow code and step bodies return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation, a step or a workflow failed.
///
/// It is made from any error with `?`, and holds what is recorded of it: a code that programs branch on, a message that
/// people read, and data. It does not implement [`std::error::Error`], which is what makes `?` work for all that do.
///
/// ```
/// use outlast::Error;
///
/// fn parse(text: &str) -> outlast::Result<u32> {
///     Ok(text.parse()?)
/// }
///
/// let error = parse("x").unwrap_err();
/// assert_eq!(error.code(), "error");
/// assert_eq!(error.message(), "invalid digit found in string");
///
/// let declined = Error::new("card_declined", "the bank said no").permanent().with_data(&7);
/// assert_eq!(declined.data::<u32>(), Some(7));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Error(Box<Failure>);

impl Error {
    /// An error that may be retried, without data.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure::new(code, message).into()
    }

    /// The same, not to be retried.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.0.permanent = true;
        self
    }

    /// The same, with more about it. Data that cannot be written as JSON is mentioned in the message instead.
    #[must_use]
    pub fn with_data(mut self, data: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(data) {
            Ok(data) => self.0.data = Some(data.into()),
            Err(error) => self.0.message.push_str(&format!(" (its data cannot be written as JSON: {error})")),
        }
        self
    }

    /// What programs branch on.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What people read.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// More about it; none if there is no data, or data of another form.
    pub fn data<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(self.0.data.as_deref()?).ok()
    }

    /// Whether trying again is pointless.
    pub fn is_permanent(&self) -> bool {
        self.0.permanent
    }

    /// Whether the operation was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.code == code::CANCELLED
    }

    /// Whether a deadline passed.
    pub fn is_timeout(&self) -> bool {
        self.0.code == code::TIMEOUT
    }

    /// What is recorded of it.
    pub fn failure(&self) -> &Failure {
        &self.0
    }

    /// What is recorded of it.
    pub fn into_failure(self) -> Failure {
        *self.0
    }

    /// A value does not have the required form; trying again would not change that.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Error::new(code::VALIDATION_ERROR, message).permanent()
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        // These are errors too, and must keep their codes: this is the only way to tell inside a blanket impl.
        let mut error = Some(error);
        let known: &mut dyn Any = &mut error;
        if let Some(failure) = known.downcast_mut::<Option<Failure>>().and_then(Option::take) {
            return Error(Box::new(failure));
        }
        if let Some(error) = known.downcast_mut::<Option<TxError>>().and_then(Option::take) {
            return Error(Box::new(error.into()));
        }
        let message = error.as_ref().map_or_else(String::new, |error| with_sources(error));
        Error(Box::new(Failure::new(code::ERROR, message)))
    }
}

/// The message of an error and of what caused it, joined by `: `.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Many errors repeat their source in their own message.
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        source = cause.source();
    }
    message
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot pay")]
    struct CannotPay(#[source] std::io::Error);

    #[test]
    fn an_error_is_told_with_its_causes() {
        let error: Error = CannotPay(std::io::Error::other("the line is dead")).into();
        assert_eq!(error.to_string(), "error: cannot pay: the line is dead");
        assert!(!error.is_permanent());
    }

    #[test]
    fn a_cause_that_the_message_repeats_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot pay: {0}")]
        struct Repeats(#[source] std::io::Error);
        let error: Error = Repeats(std::io::Error::other("the line is dead")).into();
        assert_eq!(error.message(), "cannot pay: the line is dead");
    }

    #[test]
    fn a_failure_keeps_its_code_and_data() {
        let failure = Failure::new("card_declined", "no").with_data("7").permanent();
        let error: Error = failure.clone().into();
        assert_eq!(error.data::<u32>(), Some(7));
        assert_eq!(error.into_failure(), failure);
    }

    #[test]
    fn a_question_mark_passes_errors_of_any_kind() {
        fn inner() -> Result<()> {
            Err(Error::new("mine", "no"))
        }
        fn outer() -> Result<()> {
            inner()?;
            Ok("x".parse::<u32>().map(|_| ())?)
        }
        assert_eq!(outer().unwrap_err().code(), "mine");
    }

    #[test]
    fn codes_are_told_apart() {
        assert!(Error::from(Failure::timeout("late")).is_timeout());
        assert!(Error::from(Failure::cancelled("stop")).is_cancelled());
        assert_eq!(Error::new("x", "y").data::<u32>(), None);
    }

    #[test]
    fn data_that_is_not_json_is_mentioned() {
        let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
        let error = Error::new("x", "y").with_data(&odd);
        assert!(error.message().starts_with("y (its data cannot be written as JSON: "), "{error}");
    }
}
