//! Workflows that between them use every primitive. Every body leaves a line in the ledger, outside the store.

mod ends;
mod families;
mod groups;
mod steps;
mod waits;

use std::time::Duration;

use outlast::{Ctx, Outlast, Result, Retry};

use crate::ledger::witness;

/// The input of every run, and so about how long it is.
pub(crate) const LENGTH: u32 = 6;

/// The runs a worker starts, by the names of their workflows.
pub(crate) const NAMES: [&str; 15] = [
    "steps",
    "naps",
    "signals",
    "greeted",
    "races",
    "batches",
    "crowded",
    "families",
    "answers",
    "generations",
    "payments",
    "failing",
    "pausable",
    "cancelled",
    "doomed",
];
/// The run that is forked from `steps`, and how many events it begins with.
pub(crate) const FORKED: (&str, u64) = ("forked", 3);

/// Soon over.
pub(crate) const SOON: Duration = Duration::from_millis(15);
pub(crate) const NEVER: Duration = Duration::from_secs(3_600);
/// The longest silence of the callback that is kept alive for a while.
pub(crate) const SILENCE: Duration = Duration::from_millis(40);
/// Steps whose attempts run out of time, by key, with how much they have.
pub(crate) const TIMEOUTS: [(&str, Duration); 2] = [("slow", SOON), ("silent", SOON)];

pub(crate) fn register(engine: Outlast) -> Outlast {
    engine
        .workflow("steps", steps::steps)
        .workflow("naps", steps::naps)
        .workflow("payments", steps::payments)
        .workflow("signals", waits::signals)
        .workflow("greeted", waits::greeted)
        .workflow("answers", waits::answers)
        .workflow("generations", waits::generations)
        .workflow("races", groups::races)
        .workflow("batches", groups::batches)
        .workflow("crowded", groups::crowded)
        .workflow("families", families::families)
        .workflow("child", families::child)
        .workflow("patient", families::patient)
        .workflow("failing", ends::failing)
        .workflow("pausable", ends::pausable)
        .workflow("cancelled", ends::cancelled)
        .workflow("doomed", ends::doomed)
}

async fn step(ctx: &Ctx, name: &str, value: u32) -> Result<u32> {
    ctx.step(name, async |s| {
        witness(&s);
        Ok(value)
    })
    .await
}

fn quickly(attempts: u32) -> Retry {
    Retry::attempts(attempts).initial(Duration::from_millis(5))
}
