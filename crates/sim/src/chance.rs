//! Chance: the same numbers for the same seed.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Chance with a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Another source, independent of what is drawn from this one later.
    pub fn fork(&mut self) -> Chance {
        Chance(self.next())
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "a source of chance is not a sequence")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias is far below what anybody could see.
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True once in `times`, on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the choices.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(choices.len() as u64)).unwrap_or(0);
        &choices[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_the_same_numbers_and_another_seed_others() {
        let draw = |seed| (0..8).map(move |_| seed).scan(Chance::new(seed), |chance, _| Some(chance.next())).collect();
        let (one, same, other): (Vec<u64>, Vec<u64>, Vec<u64>) = (draw(7), draw(7), draw(8));
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_both_ends() {
        let mut chance = Chance::new(1);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| chance.between(3, 5)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(chance.below(0), 0);
    }
}
