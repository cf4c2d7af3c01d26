//! The public contract suite, on every store of this crate: `memory::case`, `sqlite::case`, `postgres::case`.

#[path = "support/harness.rs"]
mod harness;
#[cfg(outlast_planted)]
#[path = "support/planted.rs"]
mod planted;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use outlast_store::contract::{Case, Harness, cases};

fn main() -> ExitCode {
    #[cfg(outlast_planted)]
    if std::env::args().any(|argument| argument == "--planted") {
        return planted::hunt(std::env::args().skip(1).find(|argument| !argument.starts_with("--")).as_deref());
    }
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("names_are_unique_and_enough", names_are_unique_and_enough)];
    for harness in harness::harnesses() {
        let harness: Arc<dyn Harness> = Arc::from(harness);
        trials.extend(cases().into_iter().map(|case| trial(Arc::clone(&harness), case)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(harness: Arc<dyn Harness>, case: Case) -> Trial {
    let name = format!("{}::{}", harness.name(), case.name);
    Trial::test(name, move || tell(&*harness, &case).map_err(Failed::from))
}

/// Runs a case; what it said if it panicked.
fn tell(harness: &dyn Harness, case: &Case) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let told = catch_unwind(AssertUnwindSafe(|| runtime.block_on(case.run(harness))));
    told.map_err(|panic| said(&*panic))
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}

fn names_are_unique_and_enough() -> Result<(), Failed> {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    if names.len() != cases.len() {
        return Err("two cases have the same name".into());
    }
    if names.len() < 250 {
        return Err(format!("the contract had 250 cases once, now it has {}", names.len()).into());
    }
    Ok(())
}
