//! Runs that were taken over too often: each is driven alone until it has gone on, so that it takes nobody along.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::id::{LeaseId, RunKey};
use outlast_core::limits::TRIES_ALONE;

use super::Evidence;
use crate::ledger::Witnessed;
use crate::violation::Findings;
use crate::watch::Holder;

/// Whoever does nothing wrong for a minute is driven on with the others. Clocks are wrong by a tenth.
const ALONE: Duration = Duration::from_secs(50);

/// A run in the hands of one process, from a claim until it is given up, and what it did meanwhile.
struct Stint<'e> {
    run: &'e RunKey,
    holder: &'e Holder,
    bodies: Vec<&'e Witnessed>,
}

impl Stint<'_> {
    fn is_suspect(&self) -> bool {
        self.holder.tries >= TRIES_ALONE
    }

    fn is_over_by(&self, tick: u64) -> bool {
        self.holder.until.is_some_and(|until| until <= tick)
    }

    /// Whether it had shown by then that it is driven: a claim whose answer was lost is not.
    fn was_driven_by(&self, tick: u64) -> bool {
        self.bodies.first().is_some_and(|body| body.tick < tick)
            || self.holder.progress.is_some_and(|progress| progress < tick)
    }
}

pub(super) fn judge(evidence: &Evidence, findings: &mut Findings) {
    let stints = stints(evidence);
    for held in stints.values() {
        for suspect in held.iter().filter(|stint| stint.is_suspect()) {
            for other in held.iter().filter(|other| other.run != suspect.run) {
                let beside = beside(suspect, other);
                findings.check(18, beside.map_or(Ok(()), Err));
            }
        }
    }
}

/// Everything that was held under each lease: a lease is one life of one process.
fn stints(evidence: &Evidence) -> BTreeMap<LeaseId, Vec<Stint<'_>>> {
    let mut bodies: BTreeMap<(&str, u64), Vec<&Witnessed>> = BTreeMap::new();
    let shadows = || evidence.shadows.iter().filter(|(_, shadow)| shadow.sure);
    for (run, shadow) in shadows() {
        for body in evidence.bodies.iter().filter(|body| body.body.run == run.id.as_str()) {
            if let Some(holder) = shadow.holder_at(body.tick).filter(|holder| holder.process == body.process) {
                bodies.entry((run.id.as_str(), holder.tick)).or_default().push(body);
            }
        }
    }
    let mut stints: BTreeMap<LeaseId, Vec<Stint<'_>>> = BTreeMap::new();
    for (run, shadow) in shadows() {
        for holder in shadow.holders.values() {
            let bodies = bodies.remove(&(run.id.as_str(), holder.tick)).unwrap_or_default();
            stints.entry(holder.lease).or_default().push(Stint { run, holder, bodies });
        }
    }
    stints
}

/// How a suspect's first body and somebody else were under way in one process, if they were.
fn beside(suspect: &Stint<'_>, other: &Stint<'_>) -> Option<String> {
    let first = suspect.bodies.first()?;
    let is_cleared = |tick| suspect.holder.progress.is_some_and(|progress| progress <= tick);
    if is_cleared(first.tick) {
        return None;
    }
    let (run, tries) = (suspect.run, suspect.holder.tries);
    if other.was_driven_by(first.tick) && !other.is_over_by(first.tick) {
        return Some(format!("{run}, taken over {tries} times, ran while {} was driven beside it", other.run));
    }
    let joined = other.bodies.iter().find(|body| {
        body.tick > first.tick
            && !is_cleared(body.tick)
            && !suspect.is_over_by(body.tick)
            && body.body.at < first.body.at + ALONE
    })?;
    Some(format!("{} began {} beside {run}, which was taken over {tries} times", other.run, joined.body.key))
}
