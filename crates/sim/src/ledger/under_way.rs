//! Bodies that are under way: whoever drives a run runs one body of an operation at a time.

use super::{Ledger, Place};

/// A body that has begun. It is over when this is dropped, however that comes about.
pub(crate) struct UnderWay<'l> {
    ledger: &'l Ledger,
    place: Place,
    /// Whether another one was under way already, whose end is the end.
    second: bool,
}

impl Ledger {
    /// A body begins.
    pub(crate) fn begins(&self, place: Place) -> UnderWay<'_> {
        let mut seen = self.seen();
        let second = !seen.under_way.insert((self.life, place.clone()));
        if second {
            seen.twice.push((place.clone(), self.process.clone()));
        }
        UnderWay { ledger: self, place, second }
    }

    /// Operations of which two bodies ran at once in one life of a process, and where.
    pub(crate) fn twice(&self) -> Vec<(Place, String)> {
        self.seen().twice.clone()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.second {
            self.ledger.seen().under_way.remove(&(self.ledger.life, self.place.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bodies_of_an_operation_at_once_are_noted_and_one_after_the_other_or_elsewhere_are_not() {
        let ledger = Ledger::new();
        let (one, other) = (ledger.of("node-0"), ledger.of("node-0"));
        let place = || ("r".to_owned(), 0, "step-0".to_owned());
        drop(one.begins(place()));
        let first = one.begins(place());
        let _elsewhere = other.begins(place());
        assert_eq!(ledger.twice(), []);
        drop(one.begins(place()));
        assert_eq!(ledger.twice(), [(place(), "node-0".to_owned())]);
        drop(first);
        drop(one.begins(place()));
        assert_eq!(ledger.twice().len(), 1);
    }
}
