//! What a token may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at everything.
    Read,
    /// Start runs and queue tasks.
    Start,
    /// Send signals.
    Signal,
    /// Decide approvals.
    Approve,
    /// Do tasks.
    Worker,
    /// Everything, and what only operators do: put workflows and schedules, pause, cancel, fork, delete.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 6] = [Scope::Read, Scope::Start, Scope::Signal, Scope::Approve, Scope::Worker, Scope::Admin];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Start => "start",
            Scope::Signal => "signal",
            Scope::Approve => "approve",
            Scope::Worker => "worker",
            Scope::Admin => "admin",
        }
    }

    /// Whether a token with this scope may do what needs the other one.
    pub fn covers(self, needed: Scope) -> bool {
        self == needed || self == Scope::Admin
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Scope::ALL.map(Scope::name).join(", ");
        let found = Scope::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| format!("there is no scope {text:?}; use some of {}", known()))
    }
}
