//! How far a schedule is.

use std::collections::VecDeque;

use outlast_core::id::RunId;
use outlast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Firing, FiringOutcome, KEYS_MAX, RECENT_MAX};

/// How far a schedule is, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The next instant, before any jitter; none at the end.
    pub(crate) next: Option<Timestamp>,
    /// The last instant that was dealt with: none up to here ever fires again.
    pub(crate) done: Option<Timestamp>,
    pub(crate) paused: Option<Pause>,
    /// How many more of its instants may start a run.
    pub(crate) remaining: Option<u64>,
    /// What waits for the previous run to end, in this order.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The run that was started last.
    pub(crate) previous: Option<RunId>,
    pub(crate) started: u64,
    pub(crate) skipped: u64,
    /// What became of the last firings, the newest last.
    pub(crate) recent: VecDeque<Firing>,
    /// What was wanted at once under a key, the newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) keyed: VecDeque<Keyed>,
}

/// A run that somebody wanted at once, under a key of theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keyed {
    key: String,
    wanted: Wanted,
}

/// What became of a run that somebody wanted at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wanted {
    Started(RunId),
    Waits,
    Skipped,
}

/// Why a schedule does not fire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) reason: String,
    pub(crate) at: Timestamp,
}

/// A firing whose run has not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) at: Timestamp,
    pub(crate) cause: Cause,
}

/// Why something fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// Its time came.
    Instant,
    /// Somebody wants it now.
    Trigger,
    /// Somebody wants what was missed.
    Backfill,
}

impl State {
    /// What may start first of what waits. While it is paused, only what somebody asked for.
    pub(super) fn first_waiting(&self) -> Option<usize> {
        self.waiting.iter().position(|waiting| self.paused.is_none() || waiting.cause != Cause::Instant)
    }

    /// What was answered to whoever wanted a run under this key.
    pub(crate) fn wanted(&self, key: &str) -> Option<&Wanted> {
        self.keyed.iter().find(|keyed| keyed.key == key).map(|keyed| &keyed.wanted)
    }

    /// Notes what is answered to whoever wants a run under this key.
    pub(crate) fn answer(&mut self, key: &str, wanted: Wanted) {
        self.keyed.push_back(Keyed { key: key.to_owned(), wanted });
        while self.keyed.len() > KEYS_MAX {
            self.keyed.pop_front();
        }
    }

    /// Whether something waits that may start once the previous run has ended.
    pub(crate) fn waits(&self) -> bool {
        self.first_waiting().is_some()
    }

    /// Notes that a run is started.
    pub(super) fn start(&mut self, at: Timestamp, run: RunId) {
        self.previous = Some(run.clone());
        self.started += 1;
        self.remember(at, FiringOutcome::Started(run));
    }

    /// The store would not start the run that was noted last.
    pub(crate) fn refuse(&mut self, before: Option<RunId>, problem: String) {
        self.previous = before;
        self.started = self.started.saturating_sub(1);
        if let Some(last) = self.recent.back_mut() {
            last.outcome = FiringOutcome::Refused(problem);
        }
    }

    pub(super) fn skip(&mut self, at: Timestamp, outcome: FiringOutcome) {
        self.skipped += 1;
        self.remember(at, outcome);
    }

    pub(super) fn remember(&mut self, at: Timestamp, outcome: FiringOutcome) {
        self.recent.push_back(Firing { at, outcome });
        while self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
    }
}
