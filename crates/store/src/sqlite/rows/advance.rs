//! The shorter way of a commit of one event.

use outlast_core::id::{Fence, Index, RunKey};
use outlast_core::planted;
use outlast_core::record::Record;
use rusqlite::params;

use super::super::statements;
use super::{SqliteRows, signed};
use crate::rows::{Fault, Rows};

impl SqliteRows<'_> {
    /// Appends one event to a run that is owned, under this fence, at this index; whether it is.
    pub(in crate::sqlite) fn advance(
        &mut self,
        run: &RunKey,
        fence: Fence,
        expected: Index,
        event: &Record,
    ) -> Result<bool, Fault> {
        let Some(ns) = self.names.number(self.connection, &run.namespace)? else { return Ok(false) };
        let next = signed(expected.next().0);
        let fence =
            if planted!("sqlite-advance-unfenced") { self.run(run)?.map_or(fence, |run| run.fence) } else { fence };
        if let Some((row, generation)) = self.names.place(run) {
            let params = params![row, ns, run.id.as_str(), generation, signed(fence.0), signed(expected.0), next];
            if self.execute(statements::ADVANCE, params)? == 1 {
                self.insert_event(ns, row, generation, expected, event)?;
                return Ok(true);
            }
        }
        let params = params![ns, run.id.as_str(), signed(fence.0), signed(expected.0)];
        let found =
            self.one(statements::ADVANCING, params, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        let Some((row, generation)) = found else { return Ok(false) };
        self.names.remember(run, row, generation);
        self.execute("UPDATE run SET next = ?2, tries = 0 WHERE row = ?1", params![row, next])?;
        self.insert_event(ns, row, generation, expected, event)?;
        Ok(true)
    }
}
