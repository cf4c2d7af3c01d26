//! Runs that were taken over too often without progress: one of them may kill its process. Each is driven alone, so that
//! it takes nobody along.
//!
//! A suspect is given back as soon as it is claimed and only its name is kept: were it held, the crash of another would
//! count against it. When nothing else is driven it is claimed by name. Until it has committed once, or has left, nothing
//! else begins; all of this within bounds, so that neither a body that runs for hours nor many suspects stop a node.

use std::collections::VecDeque;
use std::time::Duration;

use outlast_core::id::RunKey;

use crate::board::Board;

/// How long others are kept out, at most, until those that are driven have left.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long others are kept out, at most, while suspects are driven one by one. One that has done nothing wrong for so
/// long is driven on with the others.
pub(super) const SESSION: Duration = Duration::from_secs(60);
/// How long others come first after that.
const REST: Duration = Duration::from_secs(60);
/// Names kept; others are found again when they are claimed again.
const QUEUE_MAX: usize = 1_000;

/// The suspects a node knows of.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    queue: VecDeque<RunKey>,
    turn: Turn,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// Everybody's.
    #[default]
    Open,
    /// Others leave, and none begins.
    Clearing { patience: Duration, until: Duration },
    /// A suspect's.
    Alone { until: Duration },
    /// The others', for a while.
    Resting { until: Duration },
}

impl Suspects {
    /// Remembers a run that must be driven alone.
    pub(super) fn remember(&mut self, run: RunKey) {
        if self.queue.len() < QUEUE_MAX && !self.queue.contains(&run) {
            self.queue.push_back(run);
        }
    }

    /// Whether none is known, and everybody's turn it is.
    pub(super) fn are_none(&self) -> bool {
        self.queue.is_empty() && self.turn == Turn::Open
    }

    /// Forgets everything: the node drives nothing any more, or begins again.
    pub(super) fn clear(&mut self, board: &Board) {
        *self = Suspects::default();
        board.close(false);
    }

    /// The suspect to drive now, if it is time for one.
    pub(super) fn next(&mut self, now: Duration, board: &Board) -> Option<RunKey> {
        loop {
            let turn = self.after(now, board);
            if turn == self.turn {
                return None;
            }
            let begins = matches!((self.turn, turn), (Turn::Clearing { .. }, Turn::Alone { .. }));
            self.turn = turn;
            board.close(self.excludes_others());
            if begins {
                return self.queue.pop_front();
            }
        }
    }

    /// Whose turn it is next.
    fn after(&self, now: Duration, board: &Board) -> Turn {
        let clearing = |until| Turn::Clearing { patience: now + PATIENCE, until };
        match self.turn {
            Turn::Open if self.queue.is_empty() => Turn::Open,
            Turn::Open => clearing(now + SESSION),
            Turn::Clearing { .. } if self.queue.is_empty() => Turn::Open,
            Turn::Clearing { until, .. } if board.driven() == 0 && now < until => Turn::Alone { until },
            Turn::Clearing { patience, until } if now < patience && now < until => self.turn,
            Turn::Clearing { .. } => Turn::Resting { until: now + REST },
            Turn::Alone { until } if now >= until => Turn::Resting { until: now + REST },
            Turn::Alone { .. } if board.has_suspect() => self.turn,
            Turn::Alone { until } => clearing(until),
            Turn::Resting { until } if now < until && !self.queue.is_empty() => self.turn,
            Turn::Resting { .. } => Turn::Open,
        }
    }

    /// Whether nothing else may begin.
    pub(super) fn excludes_others(&self) -> bool {
        matches!(self.turn, Turn::Clearing { .. } | Turn::Alone { .. })
    }

    /// Whether suspects wait for their turn while others have theirs: whoever claims then claims them too, in vain.
    pub(super) fn is_resting(&self) -> bool {
        matches!(self.turn, Turn::Resting { .. })
    }

    /// When to ask again, even if nothing happens.
    pub(super) fn ask_at(&self) -> Option<Duration> {
        match self.turn {
            Turn::Open => (!self.queue.is_empty()).then_some(Duration::ZERO),
            Turn::Clearing { patience, until } => Some(patience.min(until)),
            Turn::Alone { until } | Turn::Resting { until } => Some(until),
        }
    }
}

#[cfg(test)]
mod tests;
