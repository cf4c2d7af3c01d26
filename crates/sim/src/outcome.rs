//! What a program came to, node by node, as it saw that itself.

use outlast::{BatchReason, Failure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tree gave. It mirrors the tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A whole run: what its last generation gave.
    Run {
        /// Its id.
        run: String,
        /// Its last generation.
        generation: u64,
        /// What that gave.
        gave: Box<Outcome>,
    },
    /// What the parts gave.
    Seq(Vec<Outcome>),
    /// What became of it.
    Tried(Box<Settled>),
    /// The time before and after, in milliseconds.
    Timed {
        /// Before.
        before: i64,
        /// After.
        after: i64,
        /// What it gave.
        gave: Box<Outcome>,
    },
    /// What the inside gave.
    Scope(Box<Outcome>),
    /// What the body gave, which was not cancelled.
    Body(Box<Outcome>),
    /// Which attempt succeeded.
    Step(u32),
    /// Which attempt at a task succeeded.
    Task(u32),
    /// The id of a task that nobody waits for.
    Queued(String),
    /// It came to its end, and there is nothing more to say.
    Done,
    /// A sleep until an instant: the instant, and the time afterwards, in milliseconds.
    SleptUntil {
        /// The instant.
        until: i64,
        /// The time afterwards.
        after: i64,
    },
    /// The payload.
    Signal(Value),
    /// The signal did not come in time.
    NoSignal,
    /// Yes or no.
    Decided(bool),
    /// Nobody decided in time.
    Undecided,
    /// What the callback was answered with.
    Answered(Value),
    /// How many checks said that it does not hold.
    Condition(u32),
    /// The run of a detached child.
    Detached(String),
    /// What became of a batch.
    Batch {
        /// Why it was complete.
        reason: BatchReason,
        /// The branches that were started. None for one that did not end.
        branches: Vec<Option<Settled>>,
    },
    /// What all members gave.
    All(Vec<Outcome>),
    /// Which member was first, and what it gave.
    Won(usize, Box<Outcome>),
    /// What became of each member.
    Settled(Vec<Settled>),
    /// What was done meanwhile, and what became of what was started, if it was awaited.
    Started {
        /// What was done meanwhile.
        meanwhile: Box<Outcome>,
        /// What became of what was started.
        first: Option<Box<Settled>>,
    },
    /// How many sleeps won, and what became of the wait, if that is known.
    Lent {
        /// How many.
        naps: usize,
        /// What became of the wait.
        wait: Option<Box<Settled>>,
    },
    /// The time, in milliseconds.
    Now(i64),
    /// The id.
    Uuid(String),
    /// The number.
    Random(u64),
}

/// What became of something that may fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It gave this.
    Gave(Outcome),
    /// It failed.
    Failed(Failure),
}

impl Settled {
    /// What became of it.
    pub fn of(result: outlast::Result<Outcome>) -> Settled {
        match result {
            Ok(outcome) => Settled::Gave(outcome),
            Err(error) => Settled::Failed(error.into_failure()),
        }
    }
}

/// What was done before something failed. It travels as the failure's data, so that nothing a program did is hidden by
/// its failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// What the parts before gave.
    pub before: Vec<Outcome>,
    /// What became of the cleanup.
    pub cleaned: Option<Settled>,
    /// The failure's own data.
    pub cause: Option<Value>,
}

impl Partial {
    /// The same error, with what was done before.
    pub fn wrap(self, error: outlast::Error) -> outlast::Error {
        let cause = error.data::<Value>();
        error.with_data(&Partial { cause, ..self })
    }

    /// What was done before, and the failure itself.
    pub fn unwrap(failure: &Failure) -> Option<(Partial, Failure)> {
        let partial: Partial = serde_json::from_slice(failure.data.as_deref()?).ok()?;
        let data = partial.cause.as_ref().and_then(|cause| serde_json::to_vec(cause).ok()).map(Into::into);
        let inner = Failure { data, ..failure.clone() };
        Some((partial, inner))
    }
}
