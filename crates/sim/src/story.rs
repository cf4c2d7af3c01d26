//! A case as a short story, for whoever has to find the bug.

use std::fmt::Write;

use outlast_core::event::Event;
use outlast_store::Store;
use outlast_store::invariants::World;

use crate::case::Case;
use crate::play::Verdict;

/// Tells the case and what it broke.
pub fn tell(case: &Case, verdict: &Verdict) -> String {
    let mut story = String::new();
    let options = &case.options;
    let _ = writeln!(story, "seed {}: {} processes, {options:?}", case.seed, options.processes);
    for (place, tree) in case.runs.iter().enumerate() {
        let _ = writeln!(story, "  run-{place} is {tree:?}");
    }
    let mut moments: Vec<(u64, String)> = Vec::new();
    moments.extend(case.acts.iter().enumerate().map(|(n, act)| (act.at, format!("client: {:?} (act {n})", act.what))));
    moments.extend(case.faults.iter().map(|fault| (fault.at, format!("FAULT: {:?}", fault.what))));
    moments.sort();
    for (at, what) in moments {
        let _ = writeln!(story, "  at {at} ms  {what}");
    }
    for violation in &verdict.violations {
        let _ = writeln!(story, "  BROKEN invariant {}: {}", violation.invariant, violation.text);
    }
    for line in &verdict.journals {
        let _ = writeln!(story, "    {line}");
    }
    story
}

/// The journals of all runs, a line for each event.
pub(crate) async fn journals(store: &dyn Store) -> Vec<String> {
    let mut lines = Vec::new();
    for namespace in store.namespaces().await.unwrap_or_default() {
        let Ok(world) = World::read(store, &namespace).await else { continue };
        for (run, state) in &world.runs {
            lines.push(format!("{run} is {:?}", state.view.status));
            for (generation, records) in state.journals.iter().enumerate() {
                for (index, record) in records.iter().enumerate() {
                    let event =
                        Event::decode(record).map_or_else(|error| error.to_string(), |event| format!("{event:?}"));
                    let event: String = event.chars().take(300).collect();
                    lines.push(format!("  {generation}/{index} at {} {event}", record.at.as_millis()));
                }
            }
        }
    }
    lines
}
