//! Snapshots that are not what they were: nothing may depend on them.

use outlast_core::id::Index;

use super::FaultStore;
use crate::{Load, LoadFrom, Loaded, StoreError};

/// What becomes of the snapshots of runs that are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Snapshots {
    /// They are as they were stored.
    #[default]
    Kept,
    /// There are none.
    Lost,
    /// One bit of each is wrong.
    Damaged,
    /// A later release made them.
    Future,
}

/// Where a snapshot says which version it has: after four letters.
const VERSION_AT: usize = 4;

impl FaultStore {
    /// What becomes of snapshots from now on.
    pub fn set_snapshots(&self, snapshots: Snapshots) {
        self.state().snapshots = snapshots;
    }

    /// What is loaded instead.
    pub(super) fn loads(&self, mut loads: Vec<Load>) -> Vec<Load> {
        if self.state().snapshots == Snapshots::Lost {
            let snapped = loads.iter_mut().filter(|load| matches!(load.from, LoadFrom::Snapshot { .. }));
            snapped.for_each(|load| load.from = LoadFrom::Index(Index(0)));
        }
        loads
    }

    /// What is answered instead.
    pub(super) fn loaded(&self, mut answers: Vec<Result<Loaded, StoreError>>) -> Vec<Result<Loaded, StoreError>> {
        let mut state = self.state();
        let snapshots = answers.iter_mut().flatten().filter_map(|loaded| loaded.snapshot.as_mut());
        for (n, snapshot) in snapshots.enumerate() {
            let mut data = snapshot.data.to_vec();
            let at = (data.len() / 3 + 7 * n + state.log.len()) % data.len().max(1);
            match state.snapshots {
                Snapshots::Kept | Snapshots::Lost => continue,
                Snapshots::Damaged => data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 4),
                Snapshots::Future => data.iter_mut().skip(VERSION_AT).take(1).for_each(|byte| *byte = 99),
            }
            snapshot.data = data.into();
            state.count("snapshot");
        }
        answers
    }
}
