//! A number over what was answered: the same seed must give the same answers, and not only the same order of tasks.

use std::fmt::{self, Debug, Write};

/// The offset and the prime of FNV-1a.
const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0100_0000_01B3;

/// A hash of everything it was told, if it listens.
#[derive(Debug, Default)]
pub(super) struct Trace(Option<u64>);

impl Trace {
    /// It listens from now on.
    pub(super) fn keep(&mut self) {
        self.0.get_or_insert(BASIS);
    }

    pub(super) fn number(&self) -> u64 {
        self.0.unwrap_or_default()
    }

    /// Takes in what something says about itself.
    pub(super) fn note(&mut self, what: &dyn Debug) {
        if self.0.is_some() {
            // Writing into a number cannot fail.
            let _ = write!(self, "{what:?}");
        }
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        self.0 = self.0.map(|hash| text.bytes().fold(hash, mix));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(notes: &[&str]) -> u64 {
        let mut trace = Trace::default();
        trace.keep();
        notes.iter().for_each(|note| trace.note(note));
        trace.number()
    }

    #[test]
    fn what_was_answered_and_in_which_order_is_in_the_trace() {
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["a"]), of(&["a", "a"]));
        let mut silent = Trace::default();
        silent.note(&"a");
        assert_eq!(silent.number(), 0);
    }
}
