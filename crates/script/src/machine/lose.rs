//! What lost a race belongs to nobody: it is taken back as soon as nobody can learn of its end.

use outlast_core::failure::Failure;
use outlast_core::id::Key;
use outlast_core::operation::Operations;
use rustc_hash::FxHashSet;

use super::Machine;
use crate::heap::{Marked, PromiseState, Reaction};
use crate::value::Id;
use crate::world::OpenOperation;

impl Machine {
    /// Notes the operations that lose with these promises: the promises' own, and those that only lead to them.
    pub(super) fn note_losers(&mut self, promises: &[Id]) {
        let is_pending = |id: &Id| match self.heap.promise_of(*id).map(|promise| promise.state) {
            Some(PromiseState::Pending | PromiseState::Following) => true,
            Some(PromiseState::Fulfilled(_) | PromiseState::Rejected(_)) | None => false,
        };
        let losers: Vec<Id> = promises.iter().copied().filter(is_pending).collect();
        let mut others = FxHashSet::default();
        for loser in losers {
            match self.own_operation(loser) {
                // Nothing else leads to it.
                Some(key) => self.world.lose(&key),
                None => {
                    others.insert(loser.0);
                }
            }
        }
        if others.is_empty() {
            return;
        }
        let candidates = self.world.open.iter().filter(|(_, open)| !open.stays && !open.is_lost);
        let loses =
            |open: &OpenOperation| self.led_to([open.promise]).promises.iter().any(|found| others.contains(&found.0));
        let lost: Vec<Key> = candidates.filter(|(_, open)| loses(open)).map(|(key, _)| key.clone()).collect();
        lost.iter().for_each(|key| self.world.lose(key));
    }

    /// The operation whose promise it is, while that is open.
    fn own_operation(&self, promise: Id) -> Option<Key> {
        let key = self.heap.promise_of(promise)?.operation.as_ref()?;
        (self.world.open.get(key)?.promise == promise).then(|| key.clone())
    }

    /// Takes back the losers that nothing refers to and nothing waits for, in the order in which they were started. Done
    /// once everything waits: until then a variable may be about to get another value.
    pub(super) fn give_up_losers(&mut self, ops: &mut Operations) -> Result<(), Failure> {
        while self.world.losers_are_due() && !self.is_over() {
            let needed = self.needed();
            let is_needed = |open: &OpenOperation| {
                let led = self.led_to([open.promise]);
                !led.calls.is_empty() || led.promises.iter().any(|found| needed.contains(*found))
            };
            let lost = self.world.open.iter().filter(|(_, open)| open.is_lost && !is_needed(open));
            let mut lost: Vec<(u64, Key)> = lost.map(|(key, open)| (open.order, key.clone())).collect();
            if lost.is_empty() {
                break;
            }
            lost.sort_unstable_by_key(|(order, _)| *order);
            for (_, key) in lost {
                self.cancel_operation(&key, "it lost a race", ops);
            }
            // Combinations that were only made of these end, and nobody sees it.
            self.run_jobs(ops)?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let main = self.main.and_then(|main| self.heap.promise_of(main)).map(|promise| promise.state);
        matches!(main, Some(PromiseState::Fulfilled(_) | PromiseState::Rejected(_)))
    }

    /// Everything that calls can name: those that run, and those that wait for something that is open.
    fn needed(&self) -> Marked {
        let mut roots = self.roots_of_calls();
        roots.extend(self.led_to(self.world.promises()).calls);
        self.heap.mark(roots)
    }

    /// What promises lead to: those that become something through one of them, themselves first, and the calls that wait for
    /// one of all these.
    fn led_to(&self, promises: impl IntoIterator<Item = Id>) -> Led {
        let mut led = Led { promises: promises.into_iter().collect(), calls: Vec::new() };
        let mut seen: FxHashSet<u32> = led.promises.iter().map(|id| id.0).collect();
        let mut next = 0;
        while let Some(id) = led.promises.get(next).copied() {
            next += 1;
            for reaction in self.heap.promise_of(id).into_iter().flat_map(|promise| &promise.reactions) {
                let other = match *reaction {
                    Reaction::Resume(call) => {
                        led.calls.push(call);
                        continue;
                    }
                    Reaction::Follow(other) => other,
                    Reaction::Item { combine, .. } => match self.heap.combine_of(combine) {
                        Some(combine) => combine.promise,
                        None => continue,
                    },
                };
                if seen.insert(other.0) {
                    led.promises.push(other);
                }
            }
        }
        led
    }
}

struct Led {
    promises: Vec<Id>,
    calls: Vec<Id>,
}
