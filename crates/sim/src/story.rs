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
    for (place, table) in case.schedules.iter().enumerate() {
        let _ = writeln!(story, "  schedule-{place} is {table:?}");
    }
    for (place, guest) in case.guests.iter().enumerate() {
        let _ = writeln!(story, "  guest-{place} is {guest:?}");
    }
    for (place, written) in case.written.iter().enumerate() {
        let _ = writeln!(story, "  written-{place} is {:?}\n{}", written.program, written.text(place, 1).1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Act, Fault, Timed};
    use crate::violation::Violation;

    #[test]
    fn a_story_is_told_in_the_order_of_time_and_ends_with_what_was_broken() {
        let mut case = crate::draw::draw(3);
        case.acts = vec![Timed { at: 20, what: Act::Cancel(0) }];
        case.faults = vec![Timed { at: 10, what: Fault::PowerCut { back: 1 } }];
        let violations = vec![Violation { invariant: 6, text: "it owns a timer".to_owned() }];
        let story = tell(&case, &Verdict { violations, ..Verdict::default() });
        let place = |text: &str| story.find(text).unwrap_or_else(|| panic!("no {text:?} in {story}"));
        assert!(story.starts_with("seed 3: "));
        assert!(place("FAULT: PowerCut") < place("client: Cancel(0)"));
        assert!(place("client: Cancel(0)") < place("BROKEN invariant 6: it owns a timer"));
    }
}
