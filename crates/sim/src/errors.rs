//! Listening to the log: an error that the faults of a case do not explain is a finding, whatever the end looks like.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::case::{Case, Fails, Fault, run_id};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Whether a fault of the case is the reason for an error that was logged.
pub fn is_explained(line: &str, case: &Case) -> bool {
    let happens = |reason: fn(&Fault) -> bool| case.faults.iter().any(|fault| reason(&fault.what));
    // A process stood still, was cut off, or the clock jumped: it does as it should.
    line.contains("the lease is over; all runs are dropped and claimed again") && happens(ends_leases)
        // A journal that cannot be read parks its run and no other, which the oracle checks.
        || line.contains("the run is parked") && damaged(case).any(|run| line.contains(&run))
        // It was damaged on purpose. That it is not what this code made is never explained.
        || line.contains(UNUSABLE) && case.options.snapshots.torn > 0 && TORN.iter().any(|why| line.contains(why))
}

/// What is said of a snapshot that is of no use, and why it may be of none.
const UNUSABLE: &str = "a snapshot cannot be used";
const TORN: [&str; 3] = ["its checksum is wrong", "it is cut off", "it does not begin as a snapshot does"];

/// What an error says that is about a run whose journal is damaged.
fn damaged(case: &Case) -> impl Iterator<Item = String> {
    let runs = case.faults.iter().filter(|fault| matches!(fault.what, Fault::Damage { .. }));
    runs.filter_map(|fault| fault.what.run()).map(|run| format!("/{} ", run_id(run)))
}

/// Whether a process may lose its lease although it lives.
fn ends_leases(fault: &Fault) -> bool {
    match fault {
        Fault::Freeze { .. } | Fault::Jump { .. } | Fault::Cut { .. } | Fault::Full { .. } => true,
        // What a process sent that died while it started takes the name of whoever came in its place.
        Fault::Call { fails: Fails::SentThenCrash { .. }, early: true, .. } => true,
        Fault::Call { fails, .. } => matches!(fails, Fails::Late { .. } | Fails::Hangs { .. }),
        Fault::Crash { .. }
        | Fault::PowerCut { .. }
        | Fault::Deaf { .. }
        | Fault::WakesLost { .. }
        | Fault::WakesDoubled { .. }
        | Fault::WakesLate { .. }
        | Fault::Poison { .. }
        | Fault::Damage { .. } => false,
    }
}

/// Plays something, and collects the errors, and what is said of snapshots, that are logged on this thread meanwhile.
pub fn collecting<T>(play: impl FnOnce() -> T) -> (T, Vec<String>) {
    let overheard = Overheard::default();
    let heard = Arc::clone(&overheard.0);
    let played = tracing::subscriber::with_default(overheard, play);
    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    (played, heard)
}

/// Keeps what is logged as an error, or of snapshots that are of no use.
#[derive(Default)]
struct Overheard(Arc<Mutex<Vec<String>>>);

impl Subscriber for Overheard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
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
        // A state that cannot be used is rebuilt, and nobody notices: but it should not have been kept.
        if *event.metadata().level() == Level::WARN && !line.0.contains(UNUSABLE) {
            return;
        }
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

    fn with(fault: Fault) -> Case {
        let mut case = crate::draw::draw(0);
        case.faults = vec![crate::case::Timed { at: 0, what: fault }];
        case
    }

    #[test]
    fn an_error_is_explained_only_by_a_fault_that_brings_it_about() {
        let lease = "node: the lease is over; all runs are dropped and claimed again node=n";
        let damage = "driver: the run is parked run=default/run-0 reason=event 3: there is no kind 60000";
        let (frozen, damaged) =
            (with(Fault::Freeze { process: 0, long: 1 }), with(Fault::Damage { run: 0, long: 1, event: true }));
        let poisoned = with(Fault::Poison { run: 0, times: 1 });
        for case in [&frozen, &damaged, &poisoned] {
            assert_eq!(is_explained(lease, case), std::ptr::eq(case, &frozen));
            assert_eq!(is_explained(damage, case), std::ptr::eq(case, &damaged));
            assert!(!is_explained("an operation cannot move so", case));
        }
    }

    #[test]
    fn nothing_is_heard_after_the_play() {
        let ((), heard) = collecting(|| {});
        tracing::error!("too late");
        assert_eq!(heard, [""; 0]);
    }
}
