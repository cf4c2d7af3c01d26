//! The events before the one that is judged.

use std::collections::BTreeMap;

use crate::event::Event;
use crate::id::Index;

/// What is known of the events so far.
#[derive(Clone, Copy)]
pub(super) struct Past<'j> {
    /// The index of the first of `events`.
    pub(super) base: Index,
    pub(super) events: &'j [Event],
    /// Some of those below.
    pub(super) kept: &'j BTreeMap<Index, Event>,
}

impl<'j> Past<'j> {
    pub(super) fn get(self, index: Index) -> Option<&'j Event> {
        match index.0.checked_sub(self.base.0) {
            Some(place) => usize::try_from(place).ok().and_then(|place| self.events.get(place)),
            None => self.kept.get(&index),
        }
    }
}
