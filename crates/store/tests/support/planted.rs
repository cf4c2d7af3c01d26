//! Trying the contract: bugs are planted in the adapters of SQLite and PostgreSQL, and some case of the contract must find each.

use std::process::ExitCode;
use std::time::Instant;

use outlast_core::planted::{BUGS, Bug, plant};
use outlast_store::contract::{Harness, cases};

use super::harness::harnesses;
use super::tell;

/// Hunts one bug, or all those that are in adapters; none may be missed.
pub(crate) fn hunt(name: Option<&str>) -> ExitCode {
    // What a case says when it fails is told in the table.
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = 0;
    let mut hunted = 0;
    println!("{:<34} {:<12} {:<20} {:>7}  case", "bug", "family", "suite", "seconds");
    for harness in harnesses() {
        let is_here = |bug: &&Bug| bug.adapter() == Some(harness.name()) && name.is_none_or(|name| name == bug.name);
        for bug in BUGS.iter().filter(is_here) {
            hunted += 1;
            // It is in the table.
            let _ = plant(Some(bug.name));
            let begun = Instant::now();
            let found = find(&*harness);
            let _ = plant(None);
            missed += usize::from(found.is_none());
            let suite = format!("contract on {}", harness.name());
            let case = found.unwrap_or_else(|| format!("NOT FOUND: {}", bug.what));
            println!("{:<34} {:<12} {suite:<20} {:>7.2}  {case}", bug.name, bug.family, begun.elapsed().as_secs_f64());
        }
    }
    println!("{} of {hunted} planted bugs found by the contract", hunted - missed);
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The first case that fails. Without a bug none does: every run of the tests says so.
fn find(harness: &dyn Harness) -> Option<String> {
    cases().into_iter().find(|case| tell(harness, case).is_err()).map(|case| case.name.to_owned())
}
