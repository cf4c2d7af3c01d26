//! Too many operations at once: the one too many fails, in the journal like any other failure, so that replay gives the
//! same and the author can catch it.

use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::Key;
use outlast_core::planted;

use super::run::{Run, Stop};

impl Run {
    /// Whether another operation would be one too many.
    pub(super) fn is_too_many(&self) -> bool {
        if planted!("operation-limit-ignored") {
            return false;
        }
        let early = usize::from(planted!("operation-refused-too-early"));
        self.settings.limits.check_pending(self.table.pending() + 1 + early).is_err()
    }

    /// Why an operation cannot be had, if it is one too many. That was decided when it was asked for.
    pub(super) fn refusal(&self, key: &Key) -> Option<Failure> {
        self.table.get(key).filter(|entry| entry.refused)?;
        let limit = self.settings.limits.pending_operations;
        let message = format!(
            "{key}: the run has {limit} operations pending, which is the limit (`Limits::pending_operations`); await some \
             before more are started"
        );
        Some(Failure::new(code::LIMIT_EXCEEDED, message).permanent())
    }

    /// Fails an operation that was just started, if it is one too many; whether it is.
    pub(super) fn refuse(&mut self, key: &Key) -> Result<bool, Stop> {
        let Some(error) = self.refusal(key) else { return Ok(false) };
        self.append(Event::OperationRefused { key: key.clone(), error })?;
        Ok(true)
    }
}
