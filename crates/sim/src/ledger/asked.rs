//! What clients ask for, and what they are told.

use std::time::Duration;

use serde_json::Value;

/// Something a client asks of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// To begin.
    Start,
    /// To begin with another input than the run that is there: that must be refused.
    StartOther,
    /// To take a signal.
    Signal {
        /// Under which name.
        name: String,
        /// Under which id.
        id: String,
        /// What it says.
        payload: Value,
        /// Whether the run begins with it.
        with_start: bool,
        /// The only operation it is for, if it is for one.
        aimed: Option<String>,
    },
    /// To take a decision.
    Approve {
        /// Which approval.
        key: String,
        /// Under which id.
        id: String,
        /// The decision.
        yes: bool,
        /// Who decides.
        by: String,
    },
    /// To take the answer to a callback.
    Callback {
        /// Which callback.
        key: String,
        /// Under which id.
        id: String,
        /// The answer; none if it failed.
        value: Option<Value>,
    },
    /// To stop; it may clean up.
    Cancel,
    /// To start nothing new.
    Pause,
    /// To go on.
    Resume,
    /// To be ended without being asked.
    Terminate,
    /// To be the beginning of another run.
    Fork {
        /// How many of its events.
        at: u64,
        /// The new run.
        to: String,
    },
    /// To go, if it has ended.
    Delete,
    /// To go on, and to know this.
    Say(Value),
    /// To go on without a node.
    Skip(String),
    /// To begin a node again.
    Again(String),
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is done, or will be; in the words of the answer.
    Done(String),
    /// It was not done and will not be; the code of the error.
    Refused(String),
    /// Nobody knows.
    Unknown,
}

/// Something that was asked for, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Of which run.
    pub run: String,
    /// What.
    pub asked: Asked,
    /// What the client was told; nothing while it waits.
    pub told: Option<Told>,
    /// When it was asked for: its place among everything that happened.
    pub begun: u64,
    /// When it was answered: the place, and the virtual time.
    pub ended: Option<(u64, Duration)>,
    /// When it was asked for, in virtual time.
    pub at: Duration,
}

impl Ask {
    /// Whether the client was told that it is done, now or before.
    pub fn is_done(&self) -> bool {
        // A run that has too many signals says so, and does not take another one.
        matches!(&self.told, Some(Told::Done(said)) if said != "Full")
    }

    /// Whether the client was told that somebody waited for it.
    pub fn is_delivered(&self) -> bool {
        matches!(&self.told, Some(Told::Done(said)) if said == "Delivered")
    }

    /// Whether it may have happened.
    pub fn is_possible(&self) -> bool {
        !matches!(&self.told, Some(Told::Refused(_)))
    }
}
