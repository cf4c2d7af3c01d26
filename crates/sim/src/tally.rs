//! What was seen how often: a suite in which something never happened has shown nothing about it.

use std::collections::BTreeMap;
use std::fmt;

/// Counters by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Faults that took effect, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What clients asked, by kind.
    pub acts: BTreeMap<&'static str, u64>,
    /// Events that were appended, by kind.
    pub events: BTreeMap<String, u64>,
    /// How often each invariant was looked at.
    pub invariants: BTreeMap<u8, u64>,
    /// How runs ended, by status.
    pub ends: BTreeMap<String, u64>,
    /// Calls to the store.
    pub calls: u64,
    /// Virtual time, in milliseconds.
    pub virtual_millis: u64,
}

impl Tally {
    /// Takes in what another one counted.
    pub fn add(&mut self, other: &Tally) {
        merge(&mut self.faults, &other.faults);
        merge(&mut self.acts, &other.acts);
        merge(&mut self.events, &other.events);
        merge(&mut self.invariants, &other.invariants);
        merge(&mut self.ends, &other.ends);
        self.calls += other.calls;
        self.virtual_millis += other.virtual_millis;
    }
}

fn merge<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (name, count) in from {
        *into.entry(name.clone()).or_default() += count;
    }
}

/// Counts one.
pub(crate) fn count<K: Ord>(into: &mut BTreeMap<K, u64>, name: K) {
    *into.entry(name).or_default() += 1;
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<K: fmt::Display>(f: &mut fmt::Formatter<'_>, title: &str, counts: &BTreeMap<K, u64>) -> fmt::Result {
            let words: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            writeln!(f, "{title}: {}", words.join(", "))
        }
        list(f, "faults landed", &self.faults)?;
        list(f, "acts of clients", &self.acts)?;
        list(f, "events", &self.events)?;
        list(f, "ends of runs", &self.ends)?;
        list(f, "checks by invariant", &self.invariants)?;
        let days = self.virtual_millis / 86_400_000;
        write!(f, "{} calls to the store, {days} days of virtual time", self.calls)
    }
}
