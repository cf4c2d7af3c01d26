//! Listening to the log: an error that the faults of a case do not explain is a finding, whatever the end looks like.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Errors that faults bring about, by what they say. Each needs its reason.
const EXPECTED: [&str; 2] = [
    // A process stood still, was cut off, or the clock jumped: it does as it should.
    "the lease is over; all runs are dropped and claimed again",
    // A journal that cannot be read parks its run and no other, which the oracle checks.
    "it was damaged on purpose",
];

/// Plays something, and collects the errors that are logged on this thread meanwhile and that no fault explains.
pub fn collecting<T>(play: impl FnOnce() -> T) -> (T, Vec<String>) {
    let overheard = Overheard::default();
    let heard = Arc::clone(&overheard.0);
    let played = tracing::subscriber::with_default(overheard, play);
    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    (played, heard.into_iter().filter(|line| !is_expected(line)).collect())
}

fn is_expected(line: &str) -> bool {
    EXPECTED.iter().any(|expected| line.contains(expected))
}

/// Keeps what is logged as an error.
#[derive(Default)]
struct Overheard(Arc<Mutex<Vec<String>>>);

impl Subscriber for Overheard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // Spans are of no interest; all of them are one.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event as one line.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, ": {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_heard_with_its_fields_and_a_warning_is_not() {
        let (done, heard) = collecting(|| {
            tracing::warn!("slow");
            tracing::error!(run = "r", "an operation cannot move so");
            7
        });
        assert_eq!(done, 7);
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(heard[0].contains("an operation cannot move so") && heard[0].contains("run=\"r\""), "{heard:?}");
    }

    #[test]
    fn errors_that_faults_bring_about_are_not_findings() {
        let ((), heard) = collecting(|| {
            tracing::error!(node = "n", "the lease is over; all runs are dropped and claimed again");
            tracing::error!(
                reason = "a stored row of r cannot be read: it was damaged on purpose",
                "the run is parked"
            );
        });
        assert_eq!(heard, [""; 0]);
    }

    #[test]
    fn nothing_is_heard_after_the_play() {
        let ((), heard) = collecting(|| {});
        tracing::error!("too late");
        assert_eq!(heard, [""; 0]);
    }
}
