//! What can still be seen of containers that are over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::position::NodeStatus;
use crate::state::{Block, Container, Slot};

/// How the nodes of a body stood when it was left. Only people look at it, so that no value is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) nodes: Vec<NodeStatus>,
    /// Those inside of the containers among them, by their places.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) inner: BTreeMap<usize, Bodies>,
}

/// What is left of a container, for each of its bodies.
pub(crate) type Bodies = BTreeMap<u32, Left>;

impl Left {
    fn of(slots: Vec<Slot>, mut inner: BTreeMap<usize, Bodies>) -> Left {
        let mut nodes = Vec::with_capacity(slots.len());
        for (place, slot) in slots.into_iter().enumerate() {
            nodes.push(match slot {
                Slot::Waiting => NodeStatus::Pending,
                Slot::Done { .. } => NodeStatus::Done,
                Slot::Failed => NodeStatus::Failed,
                Slot::Skipped | Slot::Waived => NodeStatus::Skipped,
                Slot::Running(entry) => {
                    inner.insert(place, entry.left);
                    // It was taken back.
                    NodeStatus::Skipped
                }
            });
        }
        inner.retain(|_, bodies| !bodies.is_empty());
        Left { nodes, inner }
    }
}

impl Container {
    /// An iteration is over. Where all have the same nodes, only the last one can be seen.
    pub(crate) fn leave(&mut self, index: u32, slots: Vec<Slot>, inner: BTreeMap<usize, Bodies>) {
        self.left.insert(if self.repeats { 0 } else { index }, Left::of(slots, inner));
    }

    /// What is left of all of it.
    pub(crate) fn into_left(mut self) -> Bodies {
        // What failed is what people look for; otherwise the lowest iteration. Whatever comes last stays.
        let active = std::mem::take(&mut self.active);
        let (failed, others): (Vec<_>, Vec<_>) =
            active.into_iter().rev().partition(|(_, block)| block.failure.is_some());
        for (index, Block { slots, left, .. }) in others.into_iter().chain(failed) {
            self.leave(index, slots, left);
        }
        self.left
    }
}

impl Block {
    /// A node is over.
    pub(crate) fn end(&mut self, place: usize, slot: Slot) {
        if let Slot::Running(entry) = std::mem::replace(&mut self.slots[place], slot)
            && !entry.left.is_empty()
        {
            self.left.insert(place, entry.left);
        }
    }
}
