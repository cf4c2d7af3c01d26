//! Workers that are gone, and runs that somebody wakes by hand.

use std::time::Duration;

use outlast_core::id::RunKey;
use outlast_core::time::Timestamp;

use super::Halt;
use super::serve::before;
use crate::error::StoreError;
use crate::rows::Rows;

/// How long a silent worker is remembered.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// Workers that were seen last at this instant or earlier are forgotten.
pub(crate) fn gone(now: Timestamp) -> Timestamp {
    before(now, MEMORY)
}

/// Leaves a resume for a run; whether it is there and has not ended. The row is written in any case, so that its lock keeps claimers
/// away until the wake is durable.
pub(crate) fn wake(rows: &mut dyn Rows, key: &RunKey) -> Result<bool, Halt<StoreError>> {
    let Some(run) = rows.run(key)?.filter(|run| run.deleted_at.is_none() && !run.status.is_terminal()) else {
        return Ok(false);
    };
    let mut after = run.clone();
    after.wake(rows.now());
    rows.update_run(&run, &after)?;
    Ok(true)
}
