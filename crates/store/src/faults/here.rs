//! Calls that are made on the caller's own thread, and so cannot take time.

use std::sync::Arc;

use super::answer::Answer;
use super::{Fault, FaultStore};
use crate::Store;

impl FaultStore {
    /// Passes a call on that answers at once. Whatever takes time cannot happen to it here: then it is not made, and its
    /// caller sends it the other way, where that happens to it.
    pub(super) fn pass_here<T: Answer>(
        &self,
        name: &'static str,
        items: usize,
        call: impl FnOnce(&dyn Store) -> Option<T>,
    ) -> Option<T> {
        let arrives = {
            let state = self.state();
            let busy = state.latency.is_some() || !state.holds.is_empty() || !state.refusals.is_empty();
            if busy || state.crashed || state.cut || state.full {
                return None;
            }
            match state.next_fault(name) {
                None | Some(Fault::AppliedThenError | Fault::AppliedThenCrash) => true,
                Some(Fault::NotApplied { .. } | Fault::NotAppliedThenCrash) => false,
                Some(Fault::Late { .. } | Fault::InFlight { .. } | Fault::Hang { .. }) => return None,
            }
        };
        let truth = if arrives { Some(call(&*self.inner)?) } else { None };
        let course = self.begin(name);
        self.state().count("here");
        Some(self.answer(&course, items, truth))
    }

    /// Another handle to the same.
    pub(super) fn another(&self) -> FaultStore {
        FaultStore { inner: Arc::clone(&self.inner), timer: self.timer.clone(), state: Arc::clone(&self.state) }
    }
}
