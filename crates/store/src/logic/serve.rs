//! Which workflows somebody offers to drive, and what becomes of a run that nobody does.

use std::time::Duration;

use outlast_core::failure::code;
use outlast_core::time::{Timestamp, millis};

use crate::rows::{Fault, Rows, RunRow};

/// Ready runs one call looks at, by priority and age: a queue that is longer delays the parking of those behind, no more.
pub(crate) const UNSERVED_SCAN_MAX: usize = 10_000;

/// How long an announcement is kept, at least. One that is gone was of no use to anybody: it counts as silence.
const MEMORY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The instant `ago` before `now`.
pub(crate) fn before(now: Timestamp, ago: Duration) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_sub(millis(ago)))
}

/// Announcements from this instant or earlier are forgotten.
pub(crate) fn forgotten(now: Timestamp, grace: Duration) -> Timestamp {
    before(now, grace.max(MEMORY))
}

/// Whether a run without an owner has been waiting for one at least that long.
pub(crate) fn is_overdue(run: &RunRow, now: Timestamp, grace: Duration) -> bool {
    run.status.is_claimable() && run.ready_at.is_some_and(|since| since <= before(now, grace))
}

/// Parks a run nobody offers to drive: one that is overdue, or whose owner's lease is over. Whether it was one.
pub(crate) fn park(rows: &mut dyn Rows, run: &RunRow, grace: Duration) -> Result<bool, Fault> {
    let now = rows.now();
    if run.owner.is_none() && !is_overdue(run, now, grace) {
        return Ok(false);
    }
    let (workflow, version) = (&run.workflow, &run.version);
    let mut after = run.clone();
    let why = format!(
        "{}: no node has offered {workflow} version {version} for {}; register it as a previous version (for a text, \
         the steps and workflows that it names), deploy, and unpark the run",
        code::WORKFLOW_VERSION_MISMATCH,
        spoken(grace)
    );
    after.disown();
    after.park(why, now);
    rows.update_run(run, &after)?;
    Ok(true)
}

/// A duration in whole minutes, seconds or milliseconds.
fn spoken(duration: Duration) -> String {
    let all = duration.as_millis();
    let (count, unit) = match all {
        _ if all > 0 && all.is_multiple_of(60_000) => (all / 60_000, "minute"),
        _ if all > 0 && all.is_multiple_of(1_000) => (all / 1_000, "second"),
        _ => (all, "millisecond"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_spoken_in_the_largest_whole_unit() {
        let spoken_ms = |ms| spoken(Duration::from_millis(ms));
        assert_eq!(spoken_ms(300_000), "5 minutes");
        assert_eq!(spoken_ms(60_000), "1 minute");
        assert_eq!(spoken_ms(90_000), "90 seconds");
        assert_eq!(spoken_ms(1_500), "1500 milliseconds");
        assert_eq!(spoken_ms(0), "0 milliseconds");
    }
}
