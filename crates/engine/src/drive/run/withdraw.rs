//! Requests that are taken back before they are performed.

use std::collections::VecDeque;

use outlast_core::event::Event;
use outlast_core::id::Key;
use outlast_core::lifecycle::Transition;
use outlast_core::operation::{Operation, OperationKind, Requested};

use super::Run;

impl Run {
    /// Takes back a start that was held since before the program was told what makes it give that up: in a pause, or in a fork
    /// that has the one and not the other. Nothing is recorded of what never began. Whether it was so.
    pub(super) fn withdraw_start(&mut self, key: &Key, held_before: usize) -> bool {
        let starts_it = |requested: &Requested| {
            let kind = requested.operation.starts().filter(|kind| *kind != OperationKind::Scope);
            kind.is_some() && requested.operation.key() == Some(key)
        };
        let Some(place) = self.held.iter().take(held_before).position(starts_it) else { return false };
        if self.journal.operation(key).is_some() {
            return false;
        }
        self.held.remove(place);
        if self.table.is_live(key) {
            self.table.shift(key, Transition::Cancelled);
        }
        true
    }
}

/// A recorded mark need not be made: the flow, which asked for it, is fed the record. (If it asked for another, it says so
/// itself.) What an operator does takes back every mark, and the flow decides anew.
pub(super) fn withdraw_marks(held: &mut VecDeque<Requested>, event: &Event) {
    let is_it = |requested: &Requested| match &requested.operation {
        Operation::Mark { event: mark } => mark.kind() == event.kind() && mark.key() == event.key(),
        _ => false,
    };
    if event.is_intervention() {
        held.retain(|requested| !matches!(requested.operation, Operation::Mark { .. }));
    } else if let Some(place) = held.iter().position(is_it) {
        held.remove(place);
    }
}
