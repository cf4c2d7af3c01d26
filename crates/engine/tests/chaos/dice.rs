//! Chance.

/// A small generator: the order of real processes is not repeatable anyway.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Below `sides`.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}
