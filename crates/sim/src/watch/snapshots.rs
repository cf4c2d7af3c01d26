//! States of programs that are kept: some are gone when they are read, or damaged. They are a cache, so nobody may notice.

use std::collections::BTreeMap;

use bytes::Bytes;
use outlast_core::id::Index;
use outlast_store::{Load, LoadFrom, Loaded};

use super::Watch;
use crate::case::Snapshots;

/// What became of the states that were kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// What is to become of them.
    pub plan: Snapshots,
    /// How many were read, or could have been.
    read: u64,
    /// How many were damaged when they were read.
    pub torn: u64,
    /// How many were not there any more.
    pub lost: u64,
    /// How many were used as they were, by workflow.
    pub whole: BTreeMap<String, u64>,
}

impl Watch {
    /// Lets some of the states that are asked for be gone; which of all readings each is.
    pub(super) fn lose_snapshots(&self, mut loads: Vec<Load>) -> (Vec<Load>, Vec<u64>) {
        let mut sight = self.sight();
        let mut read = Vec::with_capacity(loads.len());
        for load in &mut loads {
            if matches!(load.from, LoadFrom::Snapshot { .. }) {
                sight.snapshots.read += 1;
                let plan = sight.snapshots.plan;
                let there = sight.runs.get(&load.run).and_then(|shadow| shadow.chapters.last());
                if there.is_some_and(|chapter| !chapter.snapshots.is_empty()) && is_hit(sight.snapshots.read, plan.lost)
                {
                    load.from = LoadFrom::Index(Index(0));
                    sight.snapshots.lost += 1;
                }
            }
            read.push(sight.snapshots.read);
        }
        (loads, read)
    }

    /// Damages some of those that are there: a part is missing, or a bit is wrong.
    pub(super) fn tear_snapshot(&self, loaded: &mut Loaded, read: u64) {
        let Some(snapshot) = &mut loaded.snapshot else { return };
        let mut sight = self.sight();
        if !is_hit(read + 1, sight.snapshots.plan.torn) {
            let workflow = sight.runs.get(&loaded.run).map(|shadow| shadow.workflow.to_string());
            *sight.snapshots.whole.entry(workflow.unwrap_or_default()).or_default() += 1;
            return;
        }
        sight.snapshots.torn += 1;
        let middle = snapshot.data.len() / 2;
        snapshot.data = if read.is_multiple_of(3) {
            snapshot.data.slice(..middle)
        } else {
            let mut bytes = snapshot.data.to_vec();
            bytes.iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 0x10);
            Bytes::from(bytes)
        };
    }
}

/// Whether it is one of those that are hit.
fn is_hit(read: u64, one_in: u64) -> bool {
    one_in > 0 && read.is_multiple_of(one_in)
}
