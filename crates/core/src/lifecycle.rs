//! The life of an operation, and when a turn may end.

mod quiescence;

use std::fmt;

use thiserror::Error;

pub use quiescence::{Decision, OperationView, Rule, Situation, SuspendReason, decide};

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The author's code runs: a step's body, the check of a condition; or an operation without code is being started.
    Executing,
    /// An attempt failed, or a condition did not hold; the next one begins later.
    RetryWaiting,
    /// Something else has to happen first, and nobody awaits it yet.
    IdleNotAwaited,
    /// Something else has to happen first, and the program awaits it.
    IdleAwaited,
    /// It is settled, cancelled, or its scope is closed.
    Completed,
}

impl State {
    /// All states.
    pub const ALL: [State; 5] =
        [State::Executing, State::RetryWaiting, State::IdleNotAwaited, State::IdleAwaited, State::Completed];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Executing => "executing",
            State::RetryWaiting => "waiting for a retry",
            State::IdleNotAwaited => "idle, not awaited",
            State::IdleAwaited => "idle, awaited",
            State::Completed => "completed",
        })
    }
}

/// What happened to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transition {
    /// It will be tried or checked again later.
    RetryScheduled,
    /// The time of its next attempt came.
    RetryDue,
    /// It was started, and now something else has to happen.
    WentIdle,
    /// The program began to await it.
    Awaited,
    /// Its outcome is known.
    Settled,
    /// It was cancelled.
    Cancelled,
    /// A scope around it closed.
    ScopeClosed,
}

impl Transition {
    /// All transitions.
    pub const ALL: [Transition; 7] = [
        Transition::RetryScheduled,
        Transition::RetryDue,
        Transition::WentIdle,
        Transition::Awaited,
        Transition::Settled,
        Transition::Cancelled,
        Transition::ScopeClosed,
    ];
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transition::RetryScheduled => "a retry was scheduled",
            Transition::RetryDue => "its retry came due",
            Transition::WentIdle => "it went idle",
            Transition::Awaited => "it was awaited",
            Transition::Settled => "it was settled",
            Transition::Cancelled => "it was cancelled",
            Transition::ScopeClosed => "its scope closed",
        })
    }
}

/// Something happened to an operation that cannot happen in its state: an error in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{transition}, but the operation is {state}")]
pub struct IllegalTransition {
    /// Where the operation stood.
    pub state: State,
    /// What happened.
    pub transition: Transition,
}

impl State {
    /// The state after `transition`.
    ///
    /// Awaiting is a change of idle operations only: one that executes is awaited as it is, and one that is completed
    /// answers at once.
    ///
    /// ```
    /// use outlast_core::lifecycle::{State, Transition};
    ///
    /// let idle = State::Executing.after(Transition::WentIdle)?;
    /// assert_eq!(idle, State::IdleNotAwaited);
    /// assert_eq!(idle.after(Transition::Settled)?, State::Completed); // settled before anyone awaited it
    /// # Ok::<(), outlast_core::lifecycle::IllegalTransition>(())
    /// ```
    pub fn after(self, transition: Transition) -> Result<State, IllegalTransition> {
        use State::{Completed, Executing, IdleAwaited, IdleNotAwaited, RetryWaiting};
        use Transition::{Awaited, Cancelled, RetryDue, RetryScheduled, ScopeClosed, Settled, WentIdle};
        match (self, transition) {
            (Executing, RetryScheduled) => Ok(RetryWaiting),
            (RetryWaiting, RetryDue) => Ok(Executing),
            (Executing, WentIdle) => Ok(IdleNotAwaited),
            (IdleNotAwaited, Awaited) => Ok(IdleAwaited),
            (Executing | IdleNotAwaited | IdleAwaited, Settled) => Ok(Completed),
            (Executing | RetryWaiting | IdleNotAwaited | IdleAwaited | Completed, Cancelled | ScopeClosed) => {
                Ok(Completed)
            }
            (RetryWaiting | IdleNotAwaited | IdleAwaited | Completed, RetryScheduled | WentIdle)
            | (Executing | IdleNotAwaited | IdleAwaited | Completed, RetryDue)
            | (Executing | RetryWaiting | IdleAwaited | Completed, Awaited)
            | (RetryWaiting | Completed, Settled) => Err(IllegalTransition { state: self, transition }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows are states, columns transitions; `.` is an error.
    const TABLE: &str = "
                   RetryScheduled RetryDue  WentIdle       Awaited     Settled   Cancelled ScopeClosed
    Executing      RetryWaiting   .         IdleNotAwaited .           Completed Completed Completed
    RetryWaiting   .              Executing .              .           .         Completed Completed
    IdleNotAwaited .              .         .              IdleAwaited Completed Completed Completed
    IdleAwaited    .              .         .              .           Completed Completed Completed
    Completed      .              .         .              .           .         Completed Completed";

    #[test]
    fn every_state_and_transition_is_as_the_table_says() {
        let mut rows = TABLE.lines().filter(|line| !line.trim().is_empty()).map(str::split_whitespace);
        let columns: Vec<&str> = rows.next().unwrap().collect();
        assert_eq!(columns, Transition::ALL.map(|transition| format!("{transition:?}")));
        for (state, mut row) in State::ALL.into_iter().zip(rows) {
            assert_eq!(row.next(), Some(format!("{state:?}").as_str()));
            for transition in Transition::ALL {
                let found = state.after(transition).map_or(".".to_owned(), |state| format!("{state:?}"));
                assert_eq!(row.next(), Some(found.as_str()), "{state:?}, {transition:?}");
            }
        }
    }

    #[test]
    fn an_illegal_transition_names_state_and_event() {
        let error = State::Completed.after(Transition::Settled).unwrap_err();
        assert_eq!(error.to_string(), "it was settled, but the operation is completed");
    }
}
