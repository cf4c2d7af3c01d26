//! Programs of suspended runs that stay in memory, so that the next wake needs no replay. Only a cache: evicting any of
//! them at any time changes nothing but time.

use std::collections::{BTreeMap, HashMap};

use outlast_core::id::RunKey;
use outlast_core::planted;
use outlast_store::Claimed;

use crate::drive::Run;

pub(super) struct Hot {
    runs: HashMap<RunKey, (u64, Run)>,
    /// By last use, the oldest first.
    order: BTreeMap<u64, RunKey>,
    uses: u64,
    max: usize,
    /// For tests: the state of the chance with which programs are evicted.
    eviction: Option<u64>,
}

impl Hot {
    pub(super) fn new(max: usize, eviction: Option<u64>) -> Hot {
        Hot { runs: HashMap::new(), order: BTreeMap::new(), uses: 0, max, eviction }
    }

    pub(super) fn put(&mut self, run: Run) {
        self.evict_at_random();
        if self.max == 0 {
            return;
        }
        let key = run.identity().run.clone();
        self.remove(&key);
        if self.runs.len() >= self.max
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.runs.remove(&oldest);
        }
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.runs.insert(key, (self.uses, run));
    }

    /// The program of a run that was just claimed, if it is as the store has it: the same generation and index, and
    /// nobody else had it meanwhile.
    pub(super) fn take(&mut self, claimed: &Claimed) -> Option<Run> {
        self.evict_at_random();
        let run = self.remove(&claimed.run)?;
        let same = run.identity().generation == claimed.generation
            && (run.durable() == claimed.next && run.fence().next() == claimed.fence || planted!("stale-program-kept"));
        same.then_some(run)
    }

    /// Throws a coin for every program that is kept, if that is wanted.
    fn evict_at_random(&mut self) {
        let Some(mut chance) = self.eviction else { return };
        let evicted = |_: &u64, _: &mut RunKey| {
            // Knuth's generator; its highest bit is the one to trust.
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            chance >> 63 == 1
        };
        let keys: Vec<RunKey> = self.order.extract_if(.., evicted).map(|(_, key)| key).collect();
        keys.iter().for_each(|key| drop(self.runs.remove(key)));
        self.eviction = Some(chance);
    }

    pub(super) fn remove(&mut self, key: &RunKey) -> Option<Run> {
        let (used, run) = self.runs.remove(key)?;
        self.order.remove(&used);
        Some(run)
    }

    pub(super) fn get(&self, key: &RunKey) -> Option<&Run> {
        self.runs.get(key).map(|(_, run)| run)
    }

    pub(super) fn clear(&mut self) {
        // In order: what a program does when it is dropped happens in the same order every time.
        while let Some((_, key)) = self.order.pop_first() {
            self.runs.remove(&key);
        }
    }
}

impl Drop for Hot {
    fn drop(&mut self) {
        self.clear();
    }
}
