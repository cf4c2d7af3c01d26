//! Workers: none does more at once than it may.

use super::{Evidence, Scene};
use crate::ledger::Effort;
use crate::violation::Findings;

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    let Some(most) = scene.tasks_max else { return };
    for effort in &evidence.efforts {
        let busy = at_once(&evidence.efforts, effort);
        findings.ensure(17, busy <= most, || {
            format!("{} began {} and does {busy} at once, it may do {most}", effort.process, effort.task)
        });
    }
}

/// How many its process has in hand when an attempt begins.
fn at_once(efforts: &[Effort], one: &Effort) -> usize {
    let begun = one.begun.0;
    let in_hand = |other: &&Effort| {
        let over = other.ended.is_some_and(|(tick, ..)| tick < begun);
        other.process == one.process && other.begun.0 <= begun && !over
    };
    efforts.iter().filter(in_hand).count()
}
