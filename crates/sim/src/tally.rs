//! What was seen how often: a suite in which something never happened has shown nothing about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use outlast_core::event::Event;
use serde::Serialize;

/// Counters by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// What became of the instants of schedules, and by which policy.
    pub instants: BTreeMap<&'static str, u64>,
    /// What became of starts that flow control may hold back.
    pub flows: BTreeMap<&'static str, u64>,
    /// Operations in the journals of runs, by kind.
    pub operations: BTreeMap<String, u64>,
    /// Codes with which attempts and runs failed.
    pub codes: BTreeMap<String, u64>,
    /// Calls to the store that were made to fail, by name.
    pub calls_failed: BTreeMap<&'static str, u64>,
    /// Groups and batches that came to an end, cleanups, and what was said about children: by name.
    pub parts: BTreeMap<String, u64>,
    /// Entries that transactions left in the author's table.
    pub entries: u64,
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
        merge(&mut self.instants, &other.instants);
        merge(&mut self.flows, &other.flows);
        merge(&mut self.operations, &other.operations);
        merge(&mut self.codes, &other.codes);
        merge(&mut self.calls_failed, &other.calls_failed);
        merge(&mut self.parts, &other.parts);
        self.entries += other.entries;
        self.calls += other.calls;
        self.virtual_millis += other.virtual_millis;
    }
}

impl Tally {
    /// Counts what a journal has of each kind of operation, and of each code.
    pub(crate) fn look_at(&mut self, journal: &[Event]) {
        let mut keys = BTreeSet::new();
        for event in journal {
            if let Some(key) = event.key().filter(|key| keys.insert(key.as_str())) {
                // Operations are named after what they are, and where that is.
                let name = key.as_str().rsplit('/').find(|part| part.contains('-')).unwrap_or_default();
                count(&mut self.operations, name.split('-').next().unwrap_or_default().to_owned());
            }
            match event {
                Event::StepFailed { error, .. }
                | Event::TaskFailed { error, .. }
                | Event::StepRetryScheduled { error, .. }
                | Event::RunErrored { error } => count(&mut self.codes, error.code.clone()),
                Event::ChildStarted { on_close, .. } => count(&mut self.parts, format!("child {on_close:?}")),
                _ => {}
            }
        }
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
        list(f, "calls made to fail", &self.calls_failed)?;
        list(f, "acts of clients", &self.acts)?;
        list(f, "events", &self.events)?;
        list(f, "ends of runs", &self.ends)?;
        list(f, "instants of schedules", &self.instants)?;
        list(f, "flow control", &self.flows)?;
        list(f, "operations", &self.operations)?;
        list(f, "parts of workflows", &self.parts)?;
        list(f, "codes of failures", &self.codes)?;
        list(f, "checks by invariant", &self.invariants)?;
        let days = self.virtual_millis / 86_400_000;
        if self.entries > 0 {
            writeln!(f, "{} entries of transactions", self.entries)?;
        }
        write!(f, "{} calls to the store, {days} days of virtual time", self.calls)
    }
}
