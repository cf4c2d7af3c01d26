//! Chance for a pass of a program.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Identity, Run};

/// How far the seeds of neighbouring indices lie apart: any odd number without a pattern.
const INDICES_APART: u128 = 0xD120_0CE6_2AF3_6F9B_A5C2_9F1D_7B0E_4C63;

impl Run {
    /// The seed of this pass: another one for each run and index, and the same whether the program was kept or is replayed.
    /// So an id that was drawn and not recorded, because a commit was turned down, is drawn again.
    pub(super) fn seed(&self) -> u128 {
        let index = u128::from(self.journal.next().0).wrapping_mul(INDICES_APART);
        self.moment.seed ^ self.place.wrapping_add(index)
    }
}

/// A number that only this generation of this run has. The same in every pass of one process, and that is enough.
pub(super) fn place_of(identity: &Identity) -> u128 {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, &identity.run, identity.generation).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
