//! What clients want of schedules, and what they are told.

use super::{Ledger, Told, tick};

/// Something a client wants of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To be there, and say this.
    Put,
    /// To fire no instant.
    Pause,
    /// To go on.
    Resume,
    /// To start a run now; the answer is its id, or that it waits, or that it is skipped.
    Trigger,
    /// To start the runs of instants that have passed.
    Backfill {
        /// From this moment, in milliseconds.
        from: i64,
        /// To this one.
        to: i64,
    },
    /// To go.
    Remove,
}

/// Something that was wished for, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wished {
    /// Of which schedule.
    pub schedule: usize,
    /// What.
    pub wish: Wish,
    /// What the client was told; nothing while it waits.
    pub told: Option<Told>,
    /// When it was asked for: its place among everything that happened.
    pub begun: u64,
    /// When it was answered.
    pub ended: Option<u64>,
}

impl Wished {
    /// What the client was told, if it was done.
    pub fn done(&self) -> Option<&str> {
        match &self.told {
            Some(Told::Done(said)) => Some(said),
            Some(Told::Refused(_) | Told::Unknown) | None => None,
        }
    }

    /// Whether it may have happened.
    pub fn is_possible(&self) -> bool {
        !matches!(self.told, Some(Told::Refused(_)))
    }
}

impl Ledger {
    /// A client wants something of a schedule: it may happen from now on. Its number.
    pub fn wishes_for(&self, schedule: usize, wish: Wish) -> usize {
        let mut seen = self.seen();
        seen.wishes.push(Wished { schedule, wish, told: None, begun: tick(), ended: None });
        seen.wishes.len() - 1
    }

    /// A client was told what became of its wish.
    pub fn wish_told(&self, number: usize, told: Told) {
        if let Some(wished) = self.seen().wishes.get_mut(number) {
            (wished.told, wished.ended) = (Some(told), Some(tick()));
        }
    }

    /// What clients wished for, as they did so.
    pub fn wishes(&self) -> Vec<Wished> {
        self.seen().wishes.clone()
    }
}
