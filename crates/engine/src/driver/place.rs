//! What a driver knows of one of its runs.

use outlast_core::id::RunKey;
use outlast_core::time::Timestamp;

use super::Slot;
use crate::meters;

/// A run on its driver.
pub(super) struct Place {
    pub(super) slot: Slot,
    pub(super) key: RunKey,
    /// Something came that was not read yet.
    pub(super) woken: bool,
    /// Why it parks, once nothing of it is under way.
    pub(super) stopped: Option<String>,
    /// Times the run was loaded again because its commit was turned down.
    pub(super) reloads: u32,
    /// Times its commit was sent again because the store was away.
    pub(super) resends: u32,
    /// It may kill its driver, and has not committed yet: it is driven alone.
    pub(super) suspect: bool,
    /// It waited for something before this turn.
    pub(super) resumed: bool,
    /// Something was appended in this turn.
    pub(super) progressed: bool,
    /// The end of an attempt's time that it was last woken for. If it could do nothing about it then, whatever keeps it
    /// from that wakes it again.
    pub(super) alarmed: Option<Timestamp>,
}

impl Place {
    pub(super) fn new(key: RunKey, slot: Slot) -> Place {
        Place {
            slot,
            key,
            woken: false,
            stopped: None,
            reloads: 0,
            resends: 0,
            suspect: false,
            resumed: false,
            progressed: false,
            alarmed: None,
        }
    }

    pub(super) fn count_turn(&self) {
        if self.resumed {
            meters::resumed(self.progressed);
        }
    }
}
