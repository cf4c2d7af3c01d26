//! What all rounds of the simulator came to, added up.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::sim::target;

/// A file to which every simulator adds a line.
pub(super) struct Totals {
    file: PathBuf,
}

/// The lines, added up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    seeds: u64,
    millis: u64,
    /// Counters of the tally by name, each with its own by name.
    tally: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Totals {
    /// Nothing was simulated yet.
    pub(super) fn begin() -> Result<Totals> {
        let file = std::path::absolute(target().join("soak-totals.jsonl")).context("where totals are kept")?;
        if file.exists() {
            std::fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))?;
        }
        Ok(Totals { file })
    }

    /// What a simulator is told.
    pub(super) fn arguments(&self) -> [String; 2] {
        ["--totals".to_owned(), self.file.display().to_string()]
    }

    /// What was simulated until now.
    pub(super) fn tell(&self) -> Result<Sum> {
        // Where nothing was simulated there is none.
        if !self.file.exists() {
            return Ok(Sum::default());
        }
        let text = std::fs::read_to_string(&self.file).context("the totals cannot be read")?;
        text.lines().try_fold(Sum::default(), |sum, line| Ok(sum.and(&serde_json::from_str(line)?)))
    }
}

impl Sum {
    fn and(mut self, line: &Value) -> Sum {
        self.seeds += line["seeds"].as_u64().unwrap_or(0);
        self.millis += line["millis"].as_u64().unwrap_or(0);
        for (name, counters) in line["tally"].as_object().into_iter().flatten() {
            for (of, times) in counters.as_object().into_iter().flatten() {
                let sum = self.tally.entry(name.clone()).or_default().entry(of.clone()).or_default();
                *sum += times.as_u64().unwrap_or(0);
            }
        }
        self
    }

    fn list(&self, name: &str) -> String {
        let counters = self.tally.get(name).into_iter().flatten();
        counters.map(|(of, times)| format!("{of} {times}")).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = (self.seeds * 1_000).checked_div(self.millis).unwrap_or(0);
        writeln!(f, "{} seeds, {rate} seeds/s", self.seeds)?;
        writeln!(f, "faults landed: {}", self.list("faults"))?;
        write!(f, "checks by invariant: {}", self.list("invariants"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rounds_are_added_up_by_kind_and_by_invariant() {
        let round = |seeds: u64, crashes: u64| {
            let tally = json!({ "faults": { "crash": crashes }, "invariants": { "1": 10, "2": 1 }, "calls": 7 });
            json!({ "seeds": seeds, "millis": 500, "tally": tally })
        };
        let sum = Sum::default().and(&round(100, 3)).and(&round(50, 4));
        let told = "150 seeds, 150 seeds/s\nfaults landed: crash 7\nchecks by invariant: 1 20, 2 2";
        assert_eq!(sum.to_string(), told);
    }
}
